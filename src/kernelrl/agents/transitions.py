"""The transitions of a call of `fit`, as a frame that `learn_from` takes back.

One row for each step: episode, step, state_0 …, action (or action_0 … of a Box), reward, next_state_0 …, terminated,
truncated. States of a Discrete space are in `state` and `next_state`. The last step of an episode that did not
terminate is truncated, whether by the environment, by a time limit or by the agent's horizon.

While `fit` runs a transition takes 16·d + 17 bytes (d coordinates of a state), and up to twice that when arrays have
just grown; as a frame it takes about 8·(2·d + d_A + 3) bytes, with d_A = 1 for Discrete actions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.rows import Rows
from kernelrl.agents.spaces import Spaces
from kernelrl.episodes.tape import Taped

if TYPE_CHECKING:
    import polars

__all__ = ["Tape", "empty_frame"]


class Tape:
    """Arrays that grow with the transitions."""

    def __init__(self, spaces: Spaces) -> None:
        d, room = spaces.dimensions, 1024
        self._spaces = spaces
        self._taped = Taped(
            None, np.zeros((room, d)), np.zeros(room, np.int64), np.zeros(room), np.zeros((room, d)),
            np.zeros(room, np.bool_), np.zeros(1, np.int64),
        )  # fmt: skip

    def around(self, world: Any, more: int) -> Taped:
        """The environment for the loop, with room for so many more transitions."""
        needed, taped = int(self._taped.number[0]) + more, self._taped
        if needed > len(taped.rewards):
            room = max(needed, 2 * len(taped.rewards))
            longer = {
                name: np.concatenate([array, np.zeros((room - len(array), *array.shape[1:]), array.dtype)])
                for name, array in taped._asdict().items()
                if name not in ("env", "number")
            }
            self._taped = taped._replace(**longer)
        return self._taped._replace(env=world)

    def rows(self, lengths: npt.NDArray[np.int64]) -> Rows:
        """The transitions of whole episodes with these `lengths`, as certificates take them."""
        n, taped = int(lengths.sum()), self._taped
        steps = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return Rows(
            taped.states[:n].copy(), taped.actions[:n].copy(), taped.rewards[:n].copy(), taped.next_states[:n].copy(),
            steps, taped.terminated[:n].copy(),
        )  # fmt: skip

    def frame(self, first: int, lengths: npt.NDArray[np.int64]) -> polars.DataFrame:
        """The transitions of whole episodes with these `lengths`, of which the first has number `first`."""
        import polars

        n, taped, spaces = int(lengths.sum()), self._taped, self._spaces
        ends = np.cumsum(lengths)
        truncated = np.zeros(n, np.bool_)
        truncated[ends - 1] = ~taped.terminated[ends - 1]
        columns = {
            "episode": np.repeat(first + np.arange(len(lengths)), lengths),
            "step": np.arange(n) - np.repeat(ends - lengths, lengths),
            **of_states("state", taped.states[:n], spaces),
            **of_actions(taped.actions[:n], spaces),
            "reward": taped.rewards[:n].copy(),
            **of_states("next_state", taped.next_states[:n], spaces),
            "terminated": taped.terminated[:n].copy(),
            "truncated": truncated,
        }
        return polars.DataFrame(columns)


def empty_frame(spaces: Spaces) -> polars.DataFrame:
    """A frame without transitions."""
    return Tape(spaces).frame(0, np.zeros(0, np.int64))


def of_states(name: str, states: npt.NDArray[np.float64], spaces: Spaces) -> dict[str, npt.NDArray[Any]]:
    """The columns of states (n, d)."""
    if spaces.discrete:
        return {name: states[:, 0].astype(np.int64)}
    return {f"{name}_{j}": np.ascontiguousarray(states[:, j]) for j in range(states.shape[1])}


def of_actions(actions: npt.NDArray[np.int64], spaces: Spaces) -> dict[str, npt.NDArray[Any]]:
    """The columns of actions (n,), which count from 0."""
    if spaces.net is None:
        return {"action": actions + spaces.first_action}
    chosen = spaces.net.points[actions]
    return {f"action_{j}": np.ascontiguousarray(chosen[:, j]) for j in range(chosen.shape[1])}
