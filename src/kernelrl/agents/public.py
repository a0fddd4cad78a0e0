"""The agent that takes any action."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Agent, Floats
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.random_agent import Uniform

__all__ = ["RandomAgent"]


class RandomAgent(Agent):
    """Takes every action with the same probability.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
    """

    def __init__(self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto") -> None:
        super().__init__(horizon, reward_range)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Nothing but the stream."""
        return Uniform(spaces.horizon, spaces.actions, stream)

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) random actions; deploying changes nothing, so each is a function of the seed, the state and the step."""
        key = self.seed.to_bytes(8, "little")
        draws = [hashlib.blake2b(np.append(x, step).tobytes(), digest_size=8, key=key).digest() for x in states]
        return np.array([int.from_bytes(draw, "little") % self.spaces.actions for draw in draws], np.int64)
