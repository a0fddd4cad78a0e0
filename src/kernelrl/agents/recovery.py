"""Going back to the last whole episode after an error in the middle of one.

An environment may raise an exception at any point, when the agent has already learnt from a part of the episode.
Copying the agent before each episode would cost more than learning, so a copy is made only now and then, and the
episodes since then are played again: with a compiled environment from their seeds, with any other from a record of its
transitions. Every verb gets the same arguments as before, so the agent is the same to the last bit.
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
SHARE = 20.0  # a copy is made when learning since the last one took this many times as long as copying


class Record(NamedTuple):
    """The start state and the steps of one episode."""

    start: Floats
    steps: list[tuple[float, Floats, bool, bool, Any]]
    """Reward, next state, terminated, truncated and the action mask after each step, or None."""
    mask: Any
    """The action mask of the start, or None."""


class Recorded(NamedTuple):
    """Recorded episodes as an environment for the loop; the agent takes the same actions as the first time."""

    records: list[Record]
    place: list[int]
    """EPISODE: how many episodes have been begun; STEP: how many steps of the last one were taken."""
    mask: list[Any]
    """One entry: the action mask of the present state, or None."""


@reset.implement_plain(Recorded)
def reset_recorded(env: Recorded, seed: int, stream: Any, state: Floats) -> None:
    """Begin the next episode."""
    record = env.records[env.place[EPISODE]]
    state[:], env.mask[0] = record.start, record.mask
    env.place[EPISODE] += 1
    env.place[STEP] = 0


@advance.implement_plain(Recorded)
def advance_recorded(
    env: Recorded, stream: Any, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """The next step."""
    reward, y, terminated, truncated, env.mask[0] = env.records[env.place[EPISODE] - 1].steps[env.place[STEP]]
    env.place[STEP] += 1
    next_state[:] = y
    return reward, terminated, truncated


class Recovery:
    """What is needed to bring an agent back to the end of its last whole episode.

    An agent keeps it from one call of `fit` to the next. It must not keep the agent: Python frees objects that keep
    each other much later, and an agent's arrays are large.
    """

    def __init__(self, agent: Any, compiled: bool) -> None:
        self.records: list[Any] | None = None if compiled else []
        """(start, steps, mask) of each episode since the last copy; the environment's adapter appends to it."""
        self._copy(agent)

    @property
    def worth_keeping(self) -> bool:
        """Whether the next call of `fit` should reuse this copy instead of making its own."""
        return self.records is not None and self._learning < SHARE * self._cost

    def _copy(self, agent: Any) -> None:
        before = time.perf_counter()
        self._captured = agent.capture()
        self._cost, self._learning = time.perf_counter() - before, 0.0
        if self.records is not None:
            self.records.clear()

    def learnt(self, agent: Any, seconds: float) -> None:
        """Note that whole episodes were played, which took `seconds`."""
        self._learning += seconds
        if self._learning > SHARE * self._cost + 0.1:
            self._copy(agent)

    def restore(self, agent: Any, episodes: int, play: Any) -> None:
        """Bring the agent to the end of its episode number `episodes`; `play(world, count)` continues from its state.

        `world` is the record, or None for the compiled environment itself.
        """
        records = self.records
        agent.reinstate(self._captured)
        world = None if records is None else Recorded([Record(*record) for record in records], [0, 0], [None])
        while agent.episodes < episodes:
            play(world, episodes - agent.episodes)
