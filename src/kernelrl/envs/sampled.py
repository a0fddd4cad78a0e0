"""Optimal values of an environment that declares no motion, from next states that are drawn: Monte Carlo on a grid.

With n draws (r_i, y_i) of `advance` at each point x of a grid, for each action and each step anew,

    Q_h(x,a) = (1/n)·Σ_i [r_i + 1(no end)·V_{h+1}(y_i)],   V_h(x) = max_a Q_h(x, a),   V_H = 0

V_h is interpolated linearly between the points. An episode that is terminated or truncated by the dynamics collects
nothing more. Actions of a Box are those of a net. There are three errors, and `interval` accounts for each:

    noise         the same is computed REPLICATES times with independent draws; Student's interval of their mean
    optimism      the maximum of noisy means is too large on average: E[V_h(x)] is at least the value without noise,
                  since the draws of a step are independent of V_{h+1}. It is small where all actions of a state have
                  the same random numbers, as they do in compiled dynamics. So the mean of the replicates is an upper
                  estimate, and the lower one comes from playing: the mean return, in fresh episodes, of the policy that
                  is greedy in Q. No policy is better than V*, so that its interval needs nothing of the grid.
    grid and net  cells, draws and gaps of the net double from level to level. The error is taken to be the last change
                  of the value at the start, or half of the change before if that is more; it is added above. It is an
                  estimate, not a bound: it is right once errors fall at least by half from level to level.

    interval = [played - t·s_played,   mean of replicates + t·s_replicates + change],   each side at 97.5 %

An environment whose draws are all equal needs one draw only, and has no noise and no optimism.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtrit

from kernelrl.envs.draws import (
    ActionList,
    Drawn,
    back_up,
    draw_all,
    draw_compiled,
    drawn_from,
    play_all,
    play_compiled,
    read_all,
)
from kernelrl.jit.stream import new_stream

__all__ = ["SampledValues", "solve_by_drawing"]

Floats = NDArray[np.float64]
REPLICATES = 4
FEWEST_CELLS = {1: 32, 2: 16, 3: 8}  # by the dimension of states; of more dimensions 4
FEWEST_DRAWS = 16
FEWEST_SLOW_DRAWS = 8  # of an environment in Python
FEWEST_GAPS = {1: 8, 2: 4}  # by the dimension of actions; of more dimensions 2
WORK = 1e8  # draws of compiled dynamics, where no tolerance is given
SLOW_WORK = 6e6  # draws of an environment in Python
MORE = 16.0  # times as many where a tolerance is given
MOST_NUMBERS = 4e7  # of the table of Q
BLOCK = 2**18  # draws that are held at once
PLAYED = 100_000  # episodes of compiled dynamics
SLOW_STEPS = 200_000  # steps that are played of an environment in Python
ROUNDING = 1e-6  # Q is kept in single precision
SEED = 20_210_711


@dataclass(frozen=True)
class SampledValues:
    """Estimates of the optimal values of an environment with its time limit; steps count from 0."""

    horizon: int
    """H, the number of steps of an episode."""
    tolerance: float | None
    """The tolerance that was asked for: half of the width of `interval`."""
    change: float
    """The largest change of any value in the last refinement, of which noise is a part."""
    cells: int
    """Cells along each axis of the grid."""
    start_value: float
    """V_0 of the grid, the mean over start states and replicates; if it is outside `interval`, the nearer end."""
    interval: tuple[float, float]
    """An interval of V*_0, the mean over start states, at 95 %, if the grid's error is not larger than estimated."""
    played: float
    """The mean return of the policy that is greedy in Q, in `episodes` fresh episodes."""
    episodes: int
    draws: int
    """How many next states were drawn for each point, action and step, in each of the replicates."""
    sampling_error: float
    """The standard error of `start_value`."""
    grid_error: float
    """The estimated error of grid and net at the start."""
    low: Floats = field(repr=False)
    high: Floats = field(repr=False)
    starts: Floats = field(repr=False)
    """(s, d) the different start states among the episodes that were played."""
    table: Floats = field(repr=False)
    """(H, (cells+1)^d) V_h at the points of the grid, the mean of the replicates."""
    q_table: NDArray[np.float32] = field(repr=False)
    """(H, (cells+1)^d, A) Q_h."""
    net: Floats | None = field(repr=False)
    """(A, d_A) the actions of a Box; None for Discrete ones."""

    @property
    def action_net(self) -> Floats:
        """(A, d_A) the actions of the columns of `q_values`; Discrete ones count from 0."""
        return np.arange(self.q_table.shape[2], dtype=np.float64)[:, None] if self.net is None else self.net

    def q_values(self, states: ArrayLike, step: int) -> Floats:
        """(n, A) Q_h at `states` (n, d)."""
        x, h = self._check(states, step)
        return read(self.q_table[h], self.low, self.high, self.cells, x)

    def values(self, states: ArrayLike, step: int) -> Floats:
        """(n,) V_h at `states` (n, d)."""
        x, h = self._check(states, step)
        return read(self.table[h][:, None], self.low, self.high, self.cells, x)[:, 0]

    def actions(self, states: ArrayLike, step: int) -> NDArray[Any]:
        """The best actions by `q_values` at `states` (n, d): their indices (n,), or those of a Box (n, d_A)."""
        best: NDArray[np.int64] = self.q_values(states, step).argmax(axis=1)
        return best if self.net is None else self.net[best]

    def _check(self, states: ArrayLike, step: int) -> tuple[Floats, int]:
        x, d = np.ascontiguousarray(states, np.float64), self.low.size
        if x.ndim != 2 or x.shape[1] != d or not np.isfinite(x).all():
            raise ValueError(f"states must be finite numbers of shape (n, {d}), got an array of shape {x.shape}")
        if not 0 <= step < self.horizon or step != int(step):
            raise ValueError(f"step must be one of 0 … {self.horizon - 1}, got {step!r}")
        return x, int(step)


def read(table: Any, low: Floats, high: Floats, cells: int, states: Floats) -> Floats:
    """(n, columns) a table ((cells+1)^d, columns) at `states` (n, d)."""
    out = np.zeros((len(states), table.shape[1]))
    read_all(table, low, cells / (high - low), cells, states, out)
    return out


# ------------------------------------------------------------------------------------------------------------ one level


@dataclass
class Level:
    """Values on one grid."""

    cells: int
    draws: int
    actions: ActionList
    Q: NDArray[np.float32]  # (H, points, A) the mean of the replicates
    V: Floats  # (H, points) the mean of the replicates
    first: Floats  # (replicates, points) V_0


def grid_points(drawn: Drawn, cells: int) -> Floats:
    """((cells+1)^d, d) the points of the grid."""
    axes = [np.linspace(a, b, cells + 1) for a, b in zip(drawn.low, drawn.high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


class Draws:
    """The draws at all points of a grid, block by block; if they are all equal, they are made once."""

    def __init__(self, drawn: Drawn, points: Floats, actions: ActionList, count: int, fixed: bool) -> None:
        self.drawn, self.points, self.actions, self.count, self.fixed = drawn, points, actions, count, fixed
        self._world = drawn.world(actions, sets=True)
        self._draw = draw_all if drawn.dynamics is None else draw_compiled
        self._kept: list[Any] = []

    def seed(self, number: int) -> None:
        """Begin another sequence of random numbers."""
        self._seeds = new_stream(number)
        if self.drawn.dynamics is None:
            self.drawn.env.reset(seed=number)

    def blocks(self) -> Any:
        """(first point, next states, rewards, whether it went on) of each block."""
        if self._kept:
            return self._kept
        size = max(1, BLOCK // (self.actions.values.size * self.count))
        made = (self._block(i, self.points[i : i + size]) for i in range(0, len(self.points), size))
        if self.fixed:
            self._kept = list(made)
            return self._kept
        return made

    def _block(self, first: int, points: Floats) -> tuple[int, Floats, Floats, Floats]:
        n = len(points) * self.actions.values.size * self.count
        y, rewards, going = np.zeros((n, points.shape[1])), np.zeros(n), np.zeros(n)
        self._draw(self._world, self._seeds, new_stream(0), points, self.actions.values, self.count, y, rewards, going)
        self._check(y, rewards, going)
        y[going <= 0] = self.drawn.low  # of these nothing is read, wherever they are
        return first, y, rewards, going

    def _check(self, y: Floats, rewards: Floats, going: Floats) -> None:
        """Reject states outside the box, unless the episode ended there and nothing is read of them."""
        low, high = self.drawn.low, self.drawn.high
        slack = 1e-5 * (high - low)
        wrong = ~((y >= low - slack) & (y <= high + slack)).all(axis=1) & (going > 0)
        if wrong.any() or not np.isfinite(rewards).all():
            what = f"next state {y[wrong][0]}" if wrong.any() else f"reward {rewards[~np.isfinite(rewards)][0]}"
            raise ValueError(
                f"env: from a state of its box, {low} to {high}, a step gave the {what}, which is outside that box or "
                "not a number; krl.testing.check_environment(env) says more"
            )


def solve_level(drawn: Drawn, horizon: int, number: int, cells: int, draws: int, gaps: int, fixed: bool) -> Level:
    """Backward induction with `draws` draws on a grid of `cells` cells."""
    points, actions = grid_points(drawn, cells), drawn.actions(gaps)
    inverse, A = cells / (drawn.high - drawn.low), actions.values.size
    replicates = 1 if fixed else REPLICATES
    found = Level(
        cells, draws, actions, np.zeros((horizon, len(points), A), np.float32), np.zeros((horizon, len(points))),
        np.zeros((replicates, len(points))),
    )  # fmt: skip
    source = Draws(drawn, points, actions, draws, fixed)
    q = np.zeros((len(points), A))
    for r in range(replicates):
        source.seed(SEED + 100 * (number + 1) + r)
        V = np.zeros((len(points), 1))
        for h in range(horizon - 1, -1, -1):
            for first, y, rewards, going in source.blocks():
                rows = q[first : first + rewards.size // (A * draws)]
                back_up(V, drawn.low, inverse, cells, y, rewards, going, rows.reshape(-1))
            V = q.max(axis=1)[:, None]
            found.Q[h] += q / replicates
            found.V[h] += V[:, 0] / replicates
        found.first[r] = V[:, 0]
    return found


def is_fixed(drawn: Drawn, cells: int, gaps: int) -> bool:
    """Whether two draws are equal at all points of a grid, for all actions."""
    source = Draws(drawn, grid_points(drawn, cells), drawn.actions(gaps), 2, False)
    source.seed(SEED)
    return all(
        np.array_equal(part[::2], part[1::2])
        for _, y, rewards, going in source.blocks()
        for part in (y, rewards, going)
    )


# ------------------------------------------------------------------------------------------------ levels and the errors


def solve_by_drawing(env: gym.Env[Any, Any], horizon: int, tolerance: float | None) -> SampledValues:
    """Estimate the optimal values of `env`; with a `tolerance` until half of the interval's width is at most that."""
    drawn = drawn_from(env)
    d, box = drawn.low.size, isinstance(env.action_space, gym.spaces.Box)
    cells, gaps = FEWEST_CELLS.get(d, 4), 0
    if box:
        gaps = FEWEST_GAPS.get(int(np.prod(env.action_space.shape or (1,))), 2)
    affordable = (WORK if drawn.dynamics is not None else SLOW_WORK) * (1.0 if tolerance is None else MORE)
    check_needs(drawn, horizon, cells, 2, gaps, True, affordable)
    fixed = is_fixed(drawn, cells, gaps)
    draws = 1 if fixed else FEWEST_DRAWS if drawn.dynamics is not None else FEWEST_SLOW_DRAWS
    check_needs(drawn, horizon, 2 * cells, draws if fixed else 2 * draws, 2 * gaps, fixed, affordable)
    levels: list[Level] = []
    starts, best = start_states(drawn, horizon), None
    while len(levels) < 2 or (best is None or best.tolerance is None or half_width(best) > best.tolerance):
        work, numbers = needs(drawn, horizon, cells, draws, gaps, fixed)
        if len(levels) >= 2 and (work > affordable or numbers > MOST_NUMBERS):
            break
        levels.append(solve_level(drawn, horizon, len(levels), cells, draws, gaps, fixed))
        if len(levels) > 3:
            del levels[0]
        cells, draws, gaps = 2 * cells, draws if fixed else 2 * draws, 2 * gaps
        if len(levels) >= 2 and tolerance is not None:
            best = summary(drawn, horizon, tolerance, levels, starts)
    found = summary(drawn, horizon, tolerance, levels, starts) if best is None else best
    if tolerance is not None and half_width(found) > tolerance:
        raise RuntimeError(
            f"tolerance: {tolerance:g} was not reached; with {found.cells} cells per axis and {found.draws} draws the "
            f"value at the start is between {found.interval[0]:.6g} and {found.interval[1]:.6g}. Ask for a larger "
            "tolerance, or for none."
        )
    return found


def needs(drawn: Drawn, horizon: int, cells: int, draws: int, gaps: int, fixed: bool) -> tuple[float, float]:
    """How many draws a level takes, and how many numbers its table of Q."""
    pairs = float(cells + 1) ** drawn.low.size * drawn.how_many(gaps)
    return pairs * draws * (1 if fixed else horizon * REPLICATES), pairs * horizon


def check_needs(drawn: Drawn, horizon: int, cells: int, draws: int, gaps: int, fixed: bool, affordable: float) -> None:
    """Raise ValueError if a level, one of those that are needed, takes too long."""
    work, numbers = needs(drawn, horizon, cells, draws, gaps, fixed)
    if work > affordable or numbers > MOST_NUMBERS:
        slow = "" if drawn.dynamics is not None else "; a krl.envs.CompiledEnv can afford a hundred times as many"
        raise ValueError(
            f"env: its optimal values are not known, and to draw them is too much: a grid of {cells} cells along each "
            f"of {drawn.low.size} axes, with {drawn.how_many(gaps):.2g} actions and {horizon} steps, takes "
            f"{work:.2g} draws ({affordable:.2g} are made at most{slow}) and {numbers:.2g} numbers "
            f"({MOST_NUMBERS:.2g} at most)"
        )


def half_width(found: SampledValues) -> float:
    """Half of the width of the interval."""
    return 0.5 * (found.interval[1] - found.interval[0])


def episodes_to_play(drawn: Drawn, horizon: int, actions: int) -> int:
    """How many episodes are played."""
    if drawn.dynamics is None:
        return int(np.clip(SLOW_STEPS // horizon, 100, 2000))
    return int(np.clip(WORK / (horizon * actions * 2**drawn.low.size), 1000, PLAYED))


def start_states(drawn: Drawn, horizon: int) -> Floats:
    """(n, d) start states of that many episodes, those that are played."""
    policy = np.zeros((0, 2**drawn.low.size, 1), np.float32)  # of no steps
    level = Level(1, 1, drawn.actions(1), policy, np.zeros((0, 1)), np.zeros((1, 1)))
    return play(drawn, level, episodes_to_play(drawn, horizon, 1))[0]


def play(drawn: Drawn, level: Level, episodes: int) -> tuple[Floats, Floats]:
    """Start states (n, d) and returns (n,) of episodes of the policy that is greedy in the level's Q."""
    d = drawn.low.size
    starts, returns = np.zeros((episodes, d)), np.zeros(episodes)
    run = play_all if drawn.dynamics is None else play_compiled
    run(
        drawn.world(level.actions, sets=False), new_stream(0), level.Q, drawn.low,
        level.cells / (drawn.high - drawn.low), level.cells, level.actions.values, SEED, np.zeros(d), np.zeros(d),
        starts, returns,
    )  # fmt: skip
    return starts, returns


def summary(drawn: Drawn, horizon: int, tolerance: float | None, levels: list[Level], starts: Floats) -> SampledValues:
    """The values of the last level and their errors."""
    last, before = levels[-1], levels[-2]
    states, which = np.unique(starts, axis=0, return_inverse=True)
    weights = np.bincount(which.reshape(-1)) / len(starts)
    at_start = [np.array([start_values(drawn, level, V, states) for V in level.first]) for level in levels]
    means = [float((values @ weights).mean()) for values in at_start]
    changes = [abs(b - a) for a, b in itertools.pairwise(means)]
    grid_error = max(changes[-1], 0.5 * changes[-2] if len(changes) > 1 else 0.0)
    replicates = at_start[-1] @ weights  # (R,)
    squares = (((at_start[-1].mean(axis=0) - means[-1]) ** 2) @ weights) / len(starts)
    if len(replicates) > 1:
        squares += replicates.var(ddof=1) / len(replicates)
    error = float(np.sqrt(squares))
    quantile = float(stdtrit(max(1, REPLICATES - 1), 0.975))
    _, returns = play(drawn, last, episodes_to_play(drawn, horizon, last.actions.values.size))
    played, margin = float(returns.mean()), float(2.0 * returns.std(ddof=1) / np.sqrt(returns.size))
    rounding = ROUNDING * max(1.0, abs(means[-1]))
    margin, upper = margin + rounding, means[-1] + quantile * error + grid_error + rounding
    if upper < played:  # the grid is too coarse for the estimate of its error
        upper = played + margin
    halves = (slice(None), *(slice(None, None, 2),) * drawn.low.size)
    fine = last.V.reshape(horizon, *(last.cells + 1,) * drawn.low.size)[halves]
    change = float(abs(fine.reshape(before.V.shape) - before.V).max())
    interval = played - margin, upper
    value = float(np.clip(means[-1], *interval))
    return SampledValues(
        horizon, tolerance, change, last.cells, value, interval, played, returns.size, last.draws,
        error, grid_error, drawn.low, drawn.high, states, last.V, last.Q, last.actions.net,
    )  # fmt: skip


def start_values(drawn: Drawn, level: Level, V: Floats, states: Floats) -> Floats:
    """(s,) V_0 (points,) at start states (s, d)."""
    return read(V[:, None], drawn.low, drawn.high, level.cells, states)[:, 0]
