"""Bounds on cells and bounds between nodes from the same data: each at δ/2, and both hold, so the better one is taken.

Bounds between nodes (`kernelrl.certifying.nodes`) are tighter where there are many samples, those on cells where there
are few. They need the same law of displacements everywhere (λ_D = 0), and rewards that are known or deterministic.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Cells
from kernelrl.certifying.making import CROSSED, CellPlan, Problem, Transitions, plan_cells
from kernelrl.certifying.node_rewards import cone_nodes, function_nodes
from kernelrl.certifying.nodes import NodeBounds, moves_of, plan_nodes, statements
from kernelrl.certifying.rewards import of_action
from kernelrl.certifying.samples import Samples
from kernelrl.console import Progress
from kernelrl.models.displacement import NOISY, STATE, Displacement

__all__ = ["RefinedPlan", "check_refined", "nodes_of", "plan_refined"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RefinedPlan:
    """Both bounds."""

    coarse: CellPlan
    nodes: tuple[NodeBounds, ...]  # of each room

    @property
    def samples(self) -> Samples:
        """What the bounds are from."""
        return self.coarse.samples

    @property
    def cells(self) -> Cells:
        """The cells; nodes are their corners."""
        return self.coarse.cells

    def at(self, states: Floats, step: int) -> tuple[Floats, Floats]:
        """(n,) lower and upper bounds at `states` (n, d) and a step from 0, in mapped units."""
        lower, upper = self.coarse.at(states, step)
        rooms = self.cells.room_of(states)
        for i, bounds in enumerate(self.nodes):
            own = rooms == i
            low, high = bounds.at(states[own], step)
            lower[own], upper[own] = np.maximum(lower[own], low), np.minimum(upper[own], high)
        if (lower > upper + CROSSED).any():
            raise ValueError(
                f"model: the bounds at {states[np.argmax(lower - upper)]} contradict each other, so what was declared "
                "is not true, or an event of probability delta has happened; see check_declaration"
            )
        return lower, np.maximum(lower, upper)


def check_refined(model: Any) -> None:
    """Raise ValueError for a declaration that bounds between nodes are not for."""
    if not isinstance(model, Displacement):
        raise ValueError(
            f"refine=True is for displacements, and a model of the kind {type(model).__name__} was declared: bounds "
            "between nodes need a state that is moved by the same displacements everywhere; leave refine out"
        )
    if model.variation > 0.0:
        raise ValueError(
            f"refine=True is for displacements with the same law everywhere, and variation={model.variation:g} says "
            "that it changes; leave refine out"
        )
    if model.reward == NOISY:
        raise ValueError(
            'refine=True is for rewards that are deterministic or known, and reward="noisy" was declared; leave refine '
            "out, or give the mean reward as a function"
        )


def plan_refined(
    model: Displacement, problem: Problem, rows: Transitions, delta: float, cell: float, progress: bool | None = None
) -> RefinedPlan:
    """Bounds on cells of at most the side `cell`, and between their corners."""
    check_refined(model)
    coarse = plan_cells(model, problem, rows, 0.5 * delta, cell, progress, refine=True)
    return RefinedPlan(coarse, nodes_of(model, problem, coarse.cells, coarse.samples, 0.5 * delta, progress))


def nodes_of(
    model: Displacement, problem: Problem, cells: Cells, samples: Samples, delta: float, progress: bool | None = None
) -> tuple[NodeBounds, ...]:
    """Bounds between the nodes of each room, which hold together with probability 1-`delta`."""
    H, A, d = problem.horizon, problem.actions, problem.low.size
    bonus = Bonus.of(statements(cells.number, d, H, A), delta)
    slope = model.slope / (problem.reward_range[1] - problem.reward_range[0])
    of_action = [samples.kept & (samples.actions == a) for a in range(A)]
    known = [samples.moves[own & ~samples.censored] for own in of_action]
    lost = [int((own & samples.censored).sum()) for own in of_action]
    made = []
    with Progress(progress, "Certificate between nodes, steps", H * len(cells.rooms)) as bar:
        for i, room in enumerate(cells.rooms):
            moves = [moves_of(room, D, n) for D, n in zip(known, lost, strict=True)]
            rewards = rewards_of(model, problem, cells, samples, i)
            tick = functools.partial(advance, bar, i * H)
            made.append(plan_nodes(room, moves, rewards, H, bonus, cells.slack, slope, tick))
    return tuple(made)


def advance(bar: Progress, before: int, done: int) -> None:
    """Show `done` steps more than `before`."""
    bar.update(before + done)


def rewards_of(model: Displacement, problem: Problem, cells: Cells, samples: Samples, i: int) -> tuple[Floats, Floats]:
    """r↓ and r↑ (A or 1, nodes) of room i."""
    low, width = problem.reward_range[0], problem.reward_range[1] - problem.reward_range[0]
    slope, room, found = model.slope / width, cells.rooms[i], []
    numbers: list[Any] = [None] if model.reward_of == STATE else list(range(problem.actions))
    for a in numbers:
        if callable(model.reward):
            asked = (a or 0) + problem.first_action
            found.append(function_nodes(room, model.reward, asked, slope, low, width, cells.widest(1)))
        else:
            own = (samples.rooms == i) & of_action(samples, a)
            found.append(cone_nodes(room, samples.states[own], samples.rewards[own], slope, cells.widest(1)))
    return np.stack([lower for lower, _ in found]), np.stack([upper for _, upper in found])
