"""From transitions and a declaration to bounds: what is done, in order, and what it takes.

    cells → samples → bounds on rewards → pools of displacements → backward induction

δ is that of displacements where rewards are known or deterministic; where they are noisy each takes half of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Cells, divide, rounding
from kernelrl.certifying.noisy_rewards import noisy_rewards
from kernelrl.certifying.own_range import bounds_of_rewards, fixed_range
from kernelrl.certifying.plan import RewardBounds, Values, backward
from kernelrl.certifying.pools import bytes_of_pieces, pieces_of
from kernelrl.certifying.recovered import Recovered
from kernelrl.certifying.rewards import (
    bytes_of_envelope,
    check_of_state,
    deterministic_rewards,
    function_range,
    known_rewards,
)
from kernelrl.certifying.samples import Samples, observed
from kernelrl.console import Progress, say
from kernelrl.geometry.buckets import available_memory
from kernelrl.models.displacement import DETERMINISTIC, NOISY, STATE, Displacement

__all__ = ["CellPlan", "Plan", "Problem", "Transitions", "check_cells", "plan_cells", "range_of", "rounded_up"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
SHARE = 0.8  # of the available memory may be taken
WORTH_SAYING = 2**28  # bytes
CROSSED = 1e-9  # bounds may cross by this: rounding


class Problem(NamedTuple):
    """What is known without data."""

    low: Floats  # (d,) of the state space
    high: Floats
    actions: int
    first_action: int
    horizon: int
    reward_range: tuple[float, float]


class Transitions(NamedTuple):
    """In order of time; rewards are in the environment's units."""

    states: Floats  # (n, d)
    actions: Whole  # (n,) from 0
    rewards: Floats  # (n,)
    next_states: Floats  # (n, d)


class Plan(Protocol):
    """Bounds on V*: any kind of plan."""

    @property
    def samples(self) -> Samples | Recovered:
        """What the bounds are from."""

    def at(self, states: Floats, step: int) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds at `states` (n, d) and a step from 0, in mapped units."""


@dataclass(frozen=True, eq=False)
class CellPlan:
    """Bounds that are constant on cells."""

    cells: Cells
    samples: Samples
    values: Values

    def at(self, states: Floats, step: int) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds at `states` (n, d) and a step from 0, in mapped units."""
        low, high, rooms = np.zeros(len(states)), np.zeros(len(states)), self.cells.room_of(states)
        if (rooms < 0).any():
            raise ValueError(f"state: {states[np.argmax(rooms < 0)]} lies in none of the rooms")
        for i, room in enumerate(self.cells.rooms):
            own = rooms == i
            where = tuple(room.index(states[own]).T)
            low[own], high[own] = self.values.lower[i][step][where], self.values.upper[i][step][where]
        return low, high


def range_of(
    model: Displacement, given: tuple[float, float] | None, low: Floats, high: Floats, A: list[int],
    rows: Transitions, horizon: int,
) -> tuple[tuple[float, float], float]:  # fmt: skip
    """The range of rewards, and which share of δ it leaves: the one given, of a known function, or of the rewards."""
    if given is not None:
        return given, 1.0
    if callable(model.reward):
        asked = A if model.reward_of != STATE else A[:1]
        return function_range(model.boxes(low, high), model.reward, asked, model.slope), 1.0
    if model.reward == NOISY:
        raise ValueError(
            "reward_range: bounds need the lowest and the highest reward that can be, and those of noisy rewards seen "
            "so far need not be these; give reward_range=(lowest, highest)"
        )
    least, most = bounds_of_rewards(model, low, high, *rows, len(A), horizon)
    if not (np.isfinite(least) and np.isfinite(most)):
        raise ValueError(
            "reward_range: there is a room, or an action in a room, of which a reward was never seen, so that rewards "
            "may be anything there; give reward_range=(lowest, highest), or more transitions"
        )
    return fixed_range(model, low, high, least, most)


def plan_cells(
    model: Displacement, problem: Problem, rows: Transitions, delta: float, cell: float, progress: bool | None = None,
    scale: float = 1.0, refine: bool = False,
) -> CellPlan:  # fmt: skip
    """Bounds on cells of at most the side `cell`; `scale` is for tests. `refine`: bounds between nodes will follow."""
    boxes = model.boxes(problem.low, problem.high)
    cells = divide(boxes, cell, rounding(boxes, rows.states, rows.next_states))
    low, width = problem.reward_range[0], problem.reward_range[1] - problem.reward_range[0]
    samples = observed(
        cells, rows.states, rows.actions, (rows.rewards - low) / width, rows.next_states, problem.actions
    )
    pieces_take = bytes_of_pieces(cells, samples, problem.actions, model.variation)
    check_memory(cells, problem, model, cell, progress, refine, pieces_take)
    noisy = model.reward == NOISY
    rewards = reward_bounds(model, problem, cells, samples, 0.5 * delta)
    pieces = pieces_of(cells, samples, problem.actions, model.variation, problem.horizon)
    radii = len(pieces[0].pools)
    statements = 2.0 * problem.horizon * problem.actions * cells.number * radii
    bonus = Bonus.of(statements, 0.5 * delta if noisy else delta)
    slope = model.slope / width if model.variation == 0.0 else None
    with Progress(progress, "Certificate, steps", problem.horizon) as bar:
        values = backward(pieces, rewards, problem.horizon, bonus, slope=slope, scale=scale, tick=bar.update)
    if any((low > high + CROSSED).any() for low, high in zip(values.lower, values.upper, strict=True)):
        raise ValueError(  # with variation=0 they are from the same samples, and cannot
            f"variation: bounds from near and from far samples contradict each other, so that {model.variation:g} is "
            "too small, or an event of probability delta has happened; give a larger one"
        )
    return CellPlan(cells, samples, values)


def reward_bounds(model: Displacement, problem: Problem, cells: Cells, samples: Samples, delta: float) -> RewardBounds:
    """Bounds on mean rewards over cells; `delta` is for noisy ones."""
    low, width = problem.reward_range[0], problem.reward_range[1] - problem.reward_range[0]
    slope, beyond = model.slope / width, cells.widest(problem.horizon)
    numbers: list[int | None] = [None] if model.reward_of == STATE else list(range(problem.actions))
    if callable(model.reward):
        asked: list[int | None] = [(a or 0) + problem.first_action for a in numbers]
        if model.reward_of == STATE:
            every = list(range(problem.first_action, problem.first_action + problem.actions))
            check_of_state(cells, model.reward, every, low, width)
        return known_rewards(cells, model.reward, asked, slope, low, width, beyond)
    if model.reward == NOISY:
        return noisy_rewards(cells, samples, slope, numbers, delta, beyond)
    return deterministic_rewards(cells, samples, slope, numbers, beyond)


def check_cells(model: Displacement, problem: Problem, cell: float, refine: bool = False) -> None:
    """Refuse rooms that do not fit the state space and cells that are too small, before there are data."""
    boxes = model.boxes(problem.low, problem.high)
    check_memory(divide(boxes, cell, np.zeros(problem.low.size)), problem, model, cell, progress=False, refine=refine)


def rounded_up(side: float) -> float:
    """The next number of two digits that is not smaller."""
    unit = 10.0 ** (math.floor(math.log10(side)) - 1)
    return float(f"{math.ceil(side / unit - 1e-9) * unit:.2g}")


def check_memory(
    cells: Cells, problem: Problem, model: Displacement, cell: float, progress: bool | None, refine: bool = False,
    more: float = 0.0,
) -> None:  # fmt: skip
    """Say how much memory the plan takes, if it is much; refuse cells that are too small, and say what would fit.

    `more` is what the data add where several pieces and radii are planned (`bytes_of_pieces`).
    """
    d, largest = len(cells.rooms[0].counts), max(room.number for room in cells.rooms)
    kept = 8.0 * cells.number * (2 * problem.horizon + 4 * (1 if model.reward_of == STATE else problem.actions))
    work = 8.0 * largest * (2 * problem.actions + 40) * 1.5**d
    if refine:  # as many values again, and 2d + 1 sums of each action instead of one
        kept, work = 2.0 * kept, 8.0 * largest * ((2 * d + 1) * problem.actions + 20 + 10 * d) * 1.5**d
    if model.reward == DETERMINISTIC:  # before the plan is made
        work = max(work, bytes_of_envelope(cells))
    needed, most = kept + work, SHARE * available_memory()
    if needed <= most < needed + more:
        raise MemoryError(
            f"cell={cell:g}: {cells.number:,} cells take about {needed / 1e9:.1f} GB and, with variation="
            f"{model.variation:g}, {more / 1e9:.1f} GB more; {most / 1e9:.1f} GB may be taken, and a larger cell takes "
            "less"
        )
    if needed > most:
        fits = rounded_up(cell * 1.02 * (needed / most) ** (1.0 / d))
        raise MemoryError(
            f"cell={cell:g}: {cells.number:,} cells and {problem.horizon} steps take about {needed / 1e9:.1f} GB, and "
            f"{most / 1e9:.1f} GB may be taken; cell={fits:g} fits"
        )
    if needed + more > WORTH_SAYING and progress is not False:
        say(f"Certificate: {cells.number:,} cells of sides {cells.sides[0]} take about {(needed + more) / 1e9:.1f} GB")
