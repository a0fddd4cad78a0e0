"""Certificates from what is stored: the transitions of runs, of agents' files and of tables.

A run has its transitions in a file of their own (`transitions = true`), or in its agent's file if the agent keeps
them, as agents with automatic settings do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from kernelrl.agents.certificates import Reader, check_no_mask, of_rows
from kernelrl.agents.reward_range import RewardRange
from kernelrl.agents.rows import Rows, rows_of
from kernelrl.agents.spaces import Spaces
from kernelrl.agents.stopping import CELL, DELTA
from kernelrl.agents.tables import read_table
from kernelrl.experiments.transitions import TRANSITIONS

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent
    from kernelrl.agents.certificates import Certificate
    from kernelrl.experiments.declared import Declared
    from kernelrl.experiments.store import Run

__all__ = ["CELL", "DELTA", "Logged", "first", "first_episodes", "logged_by", "logged_in", "together"]


class Logged(NamedTuple):
    """Transitions in order of time, and what they are transitions of."""

    rows: Rows
    spaces: Spaces
    reward_range: tuple[float, float] | None
    """That of the agent, if it was given."""
    played: Any = None
    """Actions as they were (n, k), where a net of continuous ones would move them; None: those of `spaces`."""

    @property
    def episodes(self) -> int:
        """How many episodes begin in them; 0 if their steps are not known."""
        return int((self.rows.steps == 0).sum())

    def certify(
        self, declared: Declared, *, delta: float | None = None, cell: float | None = None,
        refine: bool | None = None, usual: float = CELL, progress: bool | None = None,
    ) -> Certificate:  # fmt: skip
        """Bounds on V*. What is not given here is the declaration's, else 0.05, a `cell` of `usual` and no `refine`."""
        delta, cell = first(delta, declared.delta, DELTA), first(cell, declared.cell, usual)
        given = declared.reward_range or self.reward_range
        refine = declared.refine if refine is None else refine
        return of_rows(self.rows, declared.model, self.spaces, given, delta, cell, progress, refine, self.played)


def first(*numbers: float | None) -> float:
    """The first that is given."""
    return next(number for number in numbers if number is not None)


def logged_by(agent: Agent) -> Logged:
    """The transitions that an agent has kept, or a ValueError."""
    check_no_mask(agent)
    rows = agent.kept_transitions()
    if rows is None:
        raise ValueError(
            f"this {type(agent).__name__} does not keep its transitions, as only kernel agents with automatic settings "
            "do; record them by fit(…, transitions=True), or by `transitions = true` in an experiment"
        )
    return Logged(rows, agent.spaces, range_of(agent))


def logged_in(run: Run, agent: Any = None) -> Logged:
    """The transitions of a run, or a ValueError; `agent` is its agent, if that has been read already."""
    agent = run.agent() if agent is None else agent
    if not hasattr(agent, "kept_transitions"):
        raise ValueError("agents of other libraries record no transitions")
    if (run.path / TRANSITIONS).exists():
        check_no_mask(agent)
        rows = rows_of(Reader(agent.spaces, RewardRange.of("auto")), read_table(run.transitions(), ()))
        return Logged(rows, agent.spaces, range_of(agent))
    if agent.kept_transitions() is None:
        raise ValueError(
            "it has no transitions: add `transitions = true` to its agent in the experiment's file, under another label"
        )
    return logged_by(agent)


def range_of(agent: Agent) -> tuple[float, float] | None:
    """The range of rewards that an agent was given."""
    own = agent.reward_range
    return None if isinstance(own, str) else own


def first_episodes(logged: Logged, episodes: int) -> Logged:
    """The transitions of the first episodes, or all if there are fewer."""
    begins = np.flatnonzero(logged.rows.steps == 0)
    n = int(begins[episodes]) if episodes < len(begins) else len(logged.rows.steps)
    played = None if logged.played is None else logged.played[:n]
    return logged._replace(rows=Rows._make(part[:n] for part in logged.rows), played=played)


def together(parts: list[Logged]) -> Logged:
    """All transitions of runs of different seeds, one after another: an order of time, too, since none knows of others.

    Runs of the same seed must not be together: an episode's seed is that of the run and its number, so the noise of one
    says what that of the other will be, and what is drawn has not the declared law given what came before.
    """
    rows = Rows._make(np.concatenate(columns) for columns in zip(*(part.rows for part in parts), strict=True))
    ranges = {part.reward_range for part in parts}
    if len(horizons := {part.spaces.horizon for part in parts}) > 1:
        raise ValueError(f"the runs have episodes of different numbers of steps, {sorted(horizons)}: leave --pool out")
    played = None
    if parts[0].spaces.net is not None:  # agents may have different nets
        played = np.concatenate([part.spaces.net.points[part.rows.actions] for part in parts if part.spaces.net])
    return Logged(rows, parts[0].spaces, ranges.pop() if len(ranges) == 1 else None, played)
