"""The open episode of an agent that is driven by hand, from `begin_episode` to `end_episode`.

It knows where the episode is (`Running`, which users see as an `Episode`), and the agent as it was before the episode
began (`Snapshot`), so that the episode can be abandoned. Both are saved with the agent (docs/own_loop.md):

    header     open     where the episode is, and under `before` the state of the agent before it, without arrays
    arrays     before/… those of the model before the episode
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.archive import BEFORE
from kernelrl.agents.saving import state_of

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Episode", "Running", "Snapshot", "leave_unused"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Episode:
    """Where an open episode is."""

    step: int
    """The step, from 0, that comes next: that of the chosen action, if there is one."""
    state: Any
    """The state at that step, as far as it is known: where an action was chosen, or the last next state; else None."""
    action: Any
    """The action that was chosen and whose result has not been told by `observe` yet; else None."""
    over: bool
    """Whether nothing can follow: the last transition terminated, or it was the last step."""


class Snapshot(NamedTuple):
    """An agent as it was at one time."""

    captured: dict[str, Any]
    outside: tuple[float, float] | None
    free_steps: int
    state: dict[str, Any]
    """Everything but the arrays of the model, as it is saved."""

    @classmethod
    def of(cls, agent: Agent) -> Snapshot:
        """The agent as it is now."""
        return cls(agent.capture(), agent.outside, agent.free_steps, copy.deepcopy(state_of(agent)))

    def put_back(self, agent: Agent) -> None:
        """Make the agent what it was; the snapshot cannot be used again."""
        agent.reinstate(self.captured)
        agent.outside, agent.free_steps, agent.recovery = self.outside, self.free_steps, None
        agent.numbers = self.state.get("numbers", 0)

    def arrays(self) -> Iterator[tuple[str, Any]]:
        """The arrays to save, by name."""
        return ((BEFORE + name, array) for name, array in storage.arrays_of(self.captured["model"]))


@dataclass
class Running:
    """The open episode; states are (d,), actions are counted from 0, as the algorithm has them."""

    before: Snapshot
    step: int = 0
    state: Floats | None = None
    action: int | None = None
    mask: npt.NDArray[np.bool_] | None = None
    """The mask with which the action was chosen."""
    over: bool = False

    def chosen(self, x: Floats, h: int, mask: npt.NDArray[np.bool_] | None) -> int | None:
        """The action that was already chosen for this, and whose result is not known yet; else None."""
        if self.action is None or self.state is None or self.step != h or not np.array_equal(self.state, x):
            return None
        same = self.mask is None if mask is None else self.mask is not None and np.array_equal(self.mask, mask)
        return self.action if same else None

    def choose(self, x: Floats, h: int, mask: npt.NDArray[np.bool_] | None, action: int) -> None:
        """Note that an action was chosen."""
        self.step, self.state, self.action, self.mask, self.over = h, x.copy(), action, mask, False

    def observe(self, y: Floats, h: int, terminated: bool, horizon: int) -> None:
        """Note that a transition of step `h` to the state `y` was told."""
        self.step, self.state, self.action, self.mask = h + 1, y.copy(), None, None
        self.over = terminated or h + 1 == horizon

    def shown(self, agent: Agent) -> Episode:
        """What users see."""
        action = None if self.action is None else agent.spaces.action(self.action)
        state = None if self.state is None else agent.spaces.as_given(self.state)
        return Episode(self.step, state, action, self.over)

    def to_store(self) -> dict[str, Any]:
        """What a file must have besides the arrays before the episode, as JSON."""
        return {
            "step": self.step, "state": None if self.state is None else self.state.tolist(), "action": self.action,
            "mask": None if self.mask is None else self.mask.tolist(), "over": self.over, "before": self.before.state,
        }  # fmt: skip


def leave_unused(agent: Agent, what: str) -> None:
    """Forget an open episode of which nothing but the beginning has happened; raise RuntimeError for any other.

    `what` was asked for.
    """
    running = agent.running
    if running is not None and running.state is not None:
        raise RuntimeError(
            f"{what}: an episode is open, at step {running.step} (see agent.episode); end_episode() ends it, "
            "abandon_episode() makes the agent what it was before it"
        )
    agent.running = None
