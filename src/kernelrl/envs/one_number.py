"""What the environments share whose state and action are one number from 0 to 1: their actions and their pictures."""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.arguments import whole_number
from kernelrl.envs.pictures import DrawnEnv, View
from kernelrl.jit.compile import compiled

__all__ = ["OneNumberEnv", "action_value", "check_actions"]

Floats = NDArray[np.float64]
STRIP = View((0.0, 0.0), (1.0, 0.12), 760)


def check_actions(actions: Any) -> int:
    """The number of actions as the dynamics have it, 0 for all numbers from 0 to 1, or an error."""
    if actions is None:
        return 0
    try:
        return whole_number("actions", actions, 2)
    except ValueError:
        raise ValueError(
            "actions must be a whole number of at least 2, for the actions 0, 1/(actions-1), …, 1, or None for all "
            f"numbers from 0 to 1, got {actions!r}"
        ) from None


@compiled
def action_value(count: int, action: Any) -> Any:
    """The action as a number from 0 to 1: `action` itself or, if there are `count` actions, that of its index."""
    return action / (count - 1.0) if count > 0 else 1.0 * action


class OneNumberEnv(DrawnEnv):
    """An environment with states [0, 1] and as many actions as its dynamics' `actions` says; 0: all of [0, 1]."""

    def __init__(self, dynamics: Any, render_mode: str | None) -> None:
        n = dynamics.actions
        discrete, box = gym.spaces.Discrete, gym.spaces.Box
        super().__init__(
            dynamics,
            observation_space=box(0.0, 1.0, (1,), np.float64),
            action_space=discrete(n) if n else box(0.0, 1.0, (1,), np.float64),
            render_mode=render_mode,
        )

    def action_list(self) -> Floats | None:
        """(A,) the actions as numbers, or None for all from 0 to 1."""
        n = self.dynamics.actions
        return np.arange(n) / (n - 1.0) if n else None

    def strip(self, deep: Floats, state: Floats) -> NDArray[np.uint8]:
        """A strip from 0 to 1 with a colour `deep` (1, width) and the agent."""
        picture = STRIP.background(STRIP.outside(), deep)
        return STRIP.with_agent(picture, np.array([state[0], 0.06]), 0.016)
