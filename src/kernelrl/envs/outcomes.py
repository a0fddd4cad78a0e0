"""`Outcomes`: a general description of an environment by weighted next states, and its optimal values.

For each state x, action a and step h there are a few next states y_q with weights w_q(x, a, h), and

    Q_h(x,a) = r_h(x, a) + Σ_q w_q·V_{h+1}(y_q),   V_h(x) = max_a Q_h(x, a),   V_H = 0

with r_h the expected reward. So noise may depend on state and action, and everything on the step. Weights may sum to
less than 1: the rest is the probability that the episode ends. V_h is stored on a grid and interpolated linearly.

Actions are numbers: those of a list, or all from `lowest` to `highest`. In the second case the maximum is found on a
net of actions, with as many gaps as the grid has cells along an axis, and then around the best of the net, between its
neighbours, on ROUNDS nets that are each a quarter as wide.

The number of cells doubles, and with it the number of next states and of actions in the net, until no value at a point
of the coarser grid changes by more than the tolerance. The error falls with the square of the cell width where values
have kinks, and at least with the width itself, so the remaining error is at most about that change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import map_coordinates

__all__ = ["OutcomeValues", "Outcomes", "refine_outcomes"]

Floats = NDArray[np.float64]
FEWEST_CELLS = 64
MOST_WORK = 2**32  # states × actions × next states of one step
ROUNDS, FINER = 6, 9


@dataclass(frozen=True)
class Outcomes:
    """How an environment moves; functions take states (n, d) and one action for each, numbers (n,)."""

    low: Floats
    """(1, d) the lowest corner of the box of states."""
    high: Floats
    """(1, d) the highest."""
    starts: Floats
    """(s, d) where an episode may start, all equally likely."""
    next_states: Callable[[Floats, Floats, int, int], tuple[Floats, Floats]]
    """(states, actions, step, count) → next states (n, q, d) and weights (n, q), q being about `count` where that is
    needed. Where they are the same for all states and actions, (1, q, d) and (1, q) are enough."""
    reward: Callable[[Floats, Floats, int], Floats]
    """(states, actions, step) → expected rewards (n,)."""
    action_values: Floats | None = None
    """(A,) the actions; None for all numbers from `lowest` to `highest`."""
    lowest: float = 0.0
    """The lowest action, if they are a continuum."""
    highest: float = 1.0
    """The highest."""
    tolerance: float = 1e-3
    """The tolerance of its values by default: see `kernelrl.envs.solve`."""

    @property
    def actions(self) -> tuple[str, ...]:
        """The names of the actions of the list."""
        return () if self.action_values is None else tuple(f"{a:.3g}" for a in self.action_values)

    def net(self, gaps: int) -> Floats:
        """(A,) the actions that are tried: the list, or a net of the continuum."""
        return np.linspace(self.lowest, self.highest, gaps + 1) if self.action_values is None else self.action_values


@dataclass(frozen=True)
class OutcomeValues:
    """The optimal values of an environment described by `Outcomes`, with its time limit; steps count from 0."""

    horizon: int
    """H, the number of steps of an episode."""
    tolerance: float
    """The tolerance that was asked for."""
    change: float
    """The largest change of any value in the last refinement of grid and net."""
    cells: int
    """Cells along each axis of the grid."""
    start_value: float
    """V*_0, the mean over the start states."""
    motion: Outcomes = field(repr=False)
    table: Floats = field(repr=False)
    """(H, …) V_0 … V_{H-1} on the grid."""

    @property
    def starts(self) -> Floats:
        """(s, d) where an episode may start, all equally likely."""
        return self.motion.starts

    @property
    def action_net(self) -> Floats:
        """(A, 1) the actions of the columns of `q_values`."""
        return self.motion.net(self.cells)[:, None]

    def q_values(self, states: ArrayLike, step: int) -> Floats:
        """(n, A) Q*_h at `states` (n, d), for the actions of `action_net`."""
        x, h = self._check(states, step)
        columns = [self._q(x, np.full(len(x), a), h) for a in self.action_net[:, 0]]
        return np.stack(columns, axis=1)

    def values(self, states: ArrayLike, step: int) -> Floats:
        """(n,) V*_h at `states` (n, d)."""
        x, h = self._check(states, step)
        return best_of(self.motion, lambda a: self._q(x, a, h), len(x), self.cells)[0]

    def actions(self, states: ArrayLike, step: int) -> NDArray[Any]:
        """An optimal action at `states` (n, d): its index (n,) in the list, or for a continuum its number (n, 1)."""
        x, h = self._check(states, step)
        a = best_of(self.motion, lambda a: self._q(x, a, h), len(x), self.cells)[1]
        if self.motion.action_values is None:
            return a[:, None]
        found: NDArray[np.int64] = abs(self.motion.action_values - a[:, None]).argmin(axis=1)
        return found

    def _q(self, x: Floats, a: Floats, h: int) -> Floats:
        following = self.table[h + 1] if h + 1 < self.horizon else None
        return q_of(self.motion, x, a, h, following)

    def _check(self, states: ArrayLike, step: int) -> tuple[Floats, int]:
        x, d = np.asarray(states, np.float64), self.motion.low.shape[1]
        if x.ndim != 2 or x.shape[1] != d or not np.isfinite(x).all():
            raise ValueError(f"states must be finite numbers of shape (n, {d}), got an array of shape {x.shape}")
        if not 0 <= step < self.horizon or step != int(step):
            raise ValueError(f"step must be one of 0 … {self.horizon - 1}, got {step!r}")
        return x, int(step)


def q_of(motion: Outcomes, x: Floats, a: Floats, h: int, following: Floats | None) -> Floats:
    """(n,) Q_h at states x (n, d) and actions a (n,), from V_{h+1} on the grid (None: V_H = 0)."""
    r = motion.reward(x, a, h)
    if following is None:
        return r
    n = following.shape[0] - 1
    y, w = motion.next_states(x, a, h, next_count(n))
    found: Floats = r + (w * read(motion, following, y)).sum(axis=1)
    return found


def next_count(cells: int) -> int:
    """The number of next states with that many cells."""
    return max(32, cells // 4)


def read(motion: Outcomes, V: Floats, y: Floats) -> Floats:
    """V (n+1, …) at states y (…, d), interpolated linearly."""
    n, low, high = V.shape[0] - 1, motion.low[0], motion.high[0]
    if V.ndim == 1:
        return np.interp(y[..., 0], low[0] + (high[0] - low[0]) * np.arange(n + 1) / n, V)
    places = np.clip((y - low) / (high - low) * n, 0.0, n)
    found: Floats = map_coordinates(V, np.moveaxis(places, -1, 0), order=1, mode="nearest")
    return found


def best_of(motion: Outcomes, q: Callable[[Floats], Floats], n: int, cells: int) -> tuple[Floats, Floats]:
    """The largest value (n,) of `q`, a function of one action (n,) for each state, and the action (n,)."""
    net = motion.net(cells)
    best, action = np.full(n, -np.inf), np.empty(n)

    def consider(a: Floats) -> None:
        found = q(a)
        better = found > best
        best[better], action[better] = found[better], a[better]

    for a in net:
        consider(np.full(n, a))
    if motion.action_values is None:
        gap = net[1] - net[0]
        for _ in range(ROUNDS):
            middle = action.copy()
            for offset in np.linspace(-gap, gap, FINER):
                consider(np.clip(middle + offset, motion.lowest, motion.highest))
            gap /= 4.0
    return best, action


def grid_points(motion: Outcomes, n: int) -> Floats:
    """((n+1)^d, d) the points of the grid."""
    axes = [a + (b - a) * np.arange(n + 1) / n for a, b in zip(motion.low[0], motion.high[0], strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))


def values_on_grid(motion: Outcomes, n: int, horizon: int) -> Floats:
    """V_0 … V_{H-1} (H, n+1, …)."""
    x, shape = grid_points(motion, n), (n + 1,) * motion.low.shape[1]
    table = np.empty((horizon, *shape))
    for h in range(horizon - 1, -1, -1):
        following = table[h + 1] if h + 1 < horizon else None
        best, _ = best_of(motion, lambda a, h=h, V=following: q_of(motion, x, a, h, V), len(x), n)  # type: ignore[misc]
        table[h] = best.reshape(shape)
    return table


def work(motion: Outcomes, n: int) -> int:
    """How many next states one step looks at."""
    x = grid_points(motion, 1)
    a = motion.net(n)
    y, _ = motion.next_states(x, np.full(len(x), a[0]), 0, next_count(n))
    return int((n + 1) ** motion.low.shape[1] * a.size * (y.shape[1] if len(y) > 1 else 1))


def refine_outcomes(motion: Outcomes, horizon: int, tolerance: float) -> OutcomeValues:
    """Solve on finer and finer grids and nets until the change is below the tolerance."""
    n, coarser, change = FEWEST_CELLS, None, np.inf
    while coarser is None or work(motion, n) <= MOST_WORK:
        table = values_on_grid(motion, n, horizon)
        if coarser is not None:
            halves = (slice(None), *(slice(None, None, 2),) * motion.low.shape[1])
            change = float(abs(table[halves] - coarser).max())
        if change <= tolerance:
            found = OutcomeValues(horizon, tolerance, change, n, np.nan, motion, table)
            return replace(found, start_value=float(found.values(motion.starts, 0).mean()))
        coarser, n = table, 2 * n
    raise RuntimeError(
        f"tolerance: {tolerance:g} was not reached; with {n // 2:,} cells per axis the values still change by "
        f"{change:.2g}. Ask for a larger tolerance."
    )
