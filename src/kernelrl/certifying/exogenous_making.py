"""From transitions and a declared `Exogenous` to bounds: cells, bins of noise, samples, the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.absorbing import absorbing_cells, check_endings
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Cells, Room, divide, rounding
from kernelrl.certifying.exogenous import Counts, Known, Margins, backward
from kernelrl.certifying.images import Ranges
from kernelrl.certifying.making import SHARE, rounded_up
from kernelrl.certifying.recovered import Recovered, declared_rewards, recovered
from kernelrl.console import Progress
from kernelrl.geometry.buckets import available_memory
from kernelrl.models.exogenous import ALL, Exogenous

__all__ = ["ExogenousPlan", "Moves", "Net", "check_cells", "plan_exogenous"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
MOST = 2e11  # triples of a cell, an action and a bin, times steps: hours


class Net(NamedTuple):
    """The actions of the plan."""

    points: Any  # (K, k), or whole numbers (K,) of a Discrete space
    half: float  # how far an action can be from the nearest of them; 0 for a Discrete space
    rounding: float


class Moves(NamedTuple):
    """Transitions in order of time."""

    states: Floats  # (n, d)
    actions: Whole  # (n,) the number of the nearest action of the net
    played: Any  # (n, k) or (n,): actions as they were played
    rewards: Floats  # (n,) in the environment's units
    next_states: Floats  # (n, d)
    steps: Whole  # (n,)
    terminated: npt.NDArray[np.bool_]  # (n,)


@dataclass(frozen=True, eq=False)
class ExogenousPlan:
    """Bounds that are constant on cells."""

    cells: Cells
    samples: Recovered
    lower: Floats  # (H, …) in mapped units
    upper: Floats

    def at(self, states: Floats, step: int) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds at `states` (n, d) and a step from 0, in mapped units."""
        where = tuple(self.cells.rooms[0].index(states).T)
        return self.lower[step][where], self.upper[step][where]


def plan_exogenous(
    model: Exogenous, low: Floats, high: Floats, net: Net, rows: Moves, horizon: int,
    reward_range: tuple[float, float], delta: float, cell: float, progress: bool | None = None, scale: float = 1.0,
) -> ExogenousPlan:  # fmt: skip
    """Bounds on cells of at most the side `cell`, in a state space from `low` to `high`; `scale` is for tests."""
    box = model.box(low, high)
    check_cells(model, low, high, len(net.points), horizon, cell)
    cells = divide((box,), cell, rounding((box,), rows.states, rows.next_states))
    room, epsilon = cells.rooms[0], float(cells.slack.max())
    bins = bins_of(model, cell)
    check_endings(model.absorbing, rows.next_states, rows.terminated, cells.slack)
    largest = max(float(np.abs(one).max(initial=0.0)) for one in (*box, *model.noise_box, net.points))
    noise_error = model.recover_error + 16.0 * largest * (epsilon / max(float(np.abs(box).max()), 1e-300))
    samples = recovered(model, *rows[:6], within=model.lipschitz[2] * noise_error + epsilon)
    start, width = reward_range[0], reward_range[1] - reward_range[0]
    check_declared_rewards(model, samples, reward_range)
    zero = check_zero(model, reward_range)
    absorbing = None
    if model.absorbing is not None:
        absorbing = absorbing_cells(room, model.absorbing, 2.0 * cells.slack, zero)
    margins = margins_of(model, room, bins, net, epsilon, noise_error, width)
    known = Known(model, room, net.points, start, width, margins, absorbing)
    counts = counts_of(model, samples, bins, len(net.points))
    bonus = Bonus.of(2.0 * horizon * len(net.points) * room.number, delta)
    with Progress(progress, "Certificate, steps", horizon) as bar:
        lower, upper = backward(known, counts, horizon, bonus, scale=scale, tick=bar.update)
    return ExogenousPlan(cells, samples, lower, upper)


def margins_of(
    model: Exogenous, room: Room, bins: Room, net: Net, epsilon: float, noise_error: float, width: float
) -> Margins:
    """w and the margins of rewards, upward (with whole boxes of actions) and downward (at actions of the net)."""
    state, noise = 0.5 * float(room.side.max()) + epsilon, 0.5 * float(bins.side.max()) + noise_error

    def both(slopes: tuple[float, float, float], more: float) -> tuple[float, float]:
        x, a, z = slopes
        rest = x * state + z * noise + more
        return rest + a * (net.half + net.rounding), rest + a * net.rounding

    up, down = both(model.reward_lipschitz, epsilon)
    return Margins(both(model.lipschitz, epsilon), (up / width, down / width))


def counts_of(model: Exogenous, samples: Recovered, bins: Room, actions: int) -> list[Counts]:
    """How many samples that count lie in each bin: for each action, or one for all."""
    centres = bins.centres().reshape(bins.number, -1)
    places = np.zeros(samples.number, np.int64)
    known = ~samples.censored
    places[known] = np.ravel_multi_index(tuple(bins.index(samples.noise[known]).T), bins.counts)
    found = []
    for a in [None] if model.noise_of == ALL else range(actions):
        own = samples.kept if a is None else samples.kept & (samples.actions == a)
        seen, number = np.unique(places[own & known], return_counts=True)
        found.append(Counts(centres[seen], number.astype(np.float64), float((own & samples.censored).sum())))
    return found


def bins_of(model: Exogenous, cell: float) -> Room:
    """The bins of noise."""
    return divide((model.noise_box,), model.noise_cell or cell, np.zeros(len(model.noise[0]))).rooms[0]


def check_cells(model: Exogenous, low: Floats, high: Floats, actions: int, horizon: int, cell: float) -> None:
    """Refuse state spaces that cannot be divided, what would take hours, and what does not fit into memory."""
    room, bins = divide((model.box(low, high),), cell, np.zeros(low.size)).rooms[0], bins_of(model, cell)
    total = float(room.number) * actions * bins.number * horizon
    if total > MOST:
        raise ValueError(
            f"cell={cell:g}: {room.number:,} cells, {actions:,} actions, {bins.number:,} bins of noise and {horizon} "
            f"steps are too many, {total:.1g} in all; give a larger cell, or a larger noise_cell or action_cell of the "
            f"model, such that their product is below {MOST:.0g}"
        )
    slopes, widths = model.lipschitz, (float(room.side.max()), model.action_cell or cell, float(bins.side.max()))
    reach = Ranges(room, 0.5 * sum(slope * width for slope, width in zip(slopes, widths, strict=True)))
    tables = float(np.prod([2.0 * (n + q) for n, q in zip(room.counts, reach.shorter, strict=True)]))
    needed = 8.0 * (room.number * (2.0 * horizon + 10.0) + 8.0 * tables)  # bounds of all steps, and 4 tables at a time
    if needed > SHARE * available_memory():
        most = SHARE * available_memory()
        fits = rounded_up(cell * 1.02 * (needed / most) ** (1.0 / low.size))
        raise MemoryError(
            f"cell={cell:g}: {room.number:,} cells and {horizon} steps take about {needed / 1e9:.1f} GB, and "
            f"{most / 1e9:.1f} GB may be taken; cell={fits:g} fits"
        )


def check_declared_rewards(model: Exogenous, samples: Recovered, reward_range: tuple[float, float]) -> None:
    """Raise ValueError for a sample at which the reward function is outside the range."""
    known = ~samples.censored if model.with_noise else np.ones(samples.number, np.bool_)
    values = declared_rewards(model, samples, known)
    low, high = reward_range
    slack = 1e-9 * max(abs(low), abs(high))
    outside = (values < low - slack) | (values > high + slack)
    if outside.any():
        row = int(np.flatnonzero(known)[np.argmax(outside)])
        raise ValueError(
            f"reward: at row {row} (the first is 0) the function gives {values[np.argmax(outside)]:g}, outside "
            f"reward_range={reward_range}"
        )


def check_zero(model: Exogenous, reward_range: tuple[float, float]) -> float:
    """What collecting nothing is worth at each step, in mapped units."""
    low, high = reward_range
    if model.absorbing is not None and not low <= 0.0 <= high:
        raise ValueError(f"reward_range: with absorbing states it must include 0, what they give; got {reward_range}")
    return (0.0 - low) / (high - low)
