"""Going back to the last whole episode after something went wrong in the middle of one.

An exception in an environment may come at any point, and by then the agent has taken in a part of the episode. Copying
the agent before each episode would cost more than learning, so a copy is made now and then, and what has happened since
is played again: over a compiled environment from the episodes' seeds, over any other from a record of its transitions.
Every verb sees what it saw before, so the agent comes out the same to the last bit.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.envs.interface import advance, reset

__all__ = ["Record", "Recorded", "Recovery"]

Floats = npt.NDArray[np.float64]
EPISODE, STEP = range(2)  # of `place`
SHARE = 20.0  # a copy is made when learning since the last one took so many times as long as copying


class Record(NamedTuple):
    """One episode as an environment gave it."""

    start: Floats
    steps: list[tuple[float, Floats, bool, bool]]
    """Reward, next state, terminated and truncated of each step."""


class Recorded(NamedTuple):
    """Episodes of a record as an environment of the loop; the actions are those of the first time."""

    records: list[Record]
    place: list[int]
    """EPISODE: how many episodes have been begun; STEP: how many steps of the last one were taken."""


@reset.implement_plain(Recorded)
def reset_recorded(env: Recorded, seed: int, stream: Any, state: Floats) -> None:
    """Begin the next episode."""
    state[:] = env.records[env.place[EPISODE]].start
    env.place[EPISODE] += 1
    env.place[STEP] = 0


@advance.implement_plain(Recorded)
def advance_recorded(
    env: Recorded, stream: Any, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """The next step."""
    reward, y, terminated, truncated = env.records[env.place[EPISODE] - 1].steps[env.place[STEP]]
    env.place[STEP] += 1
    next_state[:] = y
    return reward, terminated, truncated


class Recovery:
    """What is needed to bring an agent back to the end of its last whole episode."""

    def __init__(self, agent: Any, compiled: bool) -> None:
        self._agent = agent
        self.records: list[Any] | None = None if compiled else []
        """What the environment has given since the last copy, (start, steps) of each episode; it appends to it."""
        self._copy()

    @property
    def worth_keeping(self) -> bool:
        """Whether another call of `fit` had better go on with this copy than make one of its own."""
        return self.records is not None and self._learning < SHARE * self._cost

    def _copy(self) -> None:
        before = time.perf_counter()
        self._captured = self._agent.capture()
        self._cost, self._learning = time.perf_counter() - before, 0.0
        if self.records is not None:
            self.records.clear()

    def learnt(self, seconds: float) -> None:
        """Whole episodes were played, which took so long."""
        self._learning += seconds
        if self._learning > SHARE * self._cost + 0.1:
            self._copy()

    def restore(self, episodes: int, play: Any) -> None:
        """Bring the agent to the end of its episode number `episodes`; `play(world, count)` plays on from where it is.

        `world` is the record, or None for the compiled environment itself.
        """
        agent, records = self._agent, self.records
        agent.reinstate(self._captured)
        world = None if records is None else Recorded([Record(*record) for record in records], [0, 0])
        while agent.episodes < episodes:
            play(world, episodes - agent.episodes)
