"""The environment as the library sees it.

`Seen` truncates episodes after H steps, and adds the time h/H to observations unless told otherwise: the best action
depends on how many steps are left. To add it, observations of any kind are flattened (Gymnasium's `flatten`): arrays to
one axis, whole numbers to one-hot vectors. Observations of a Discrete space are one-hot in any case.

`Episodes` resets episode k of a run with the seed derived from (seed, k), as for this package's agents, and records
returns and lengths. Between episodes it calls `between`, and after the last one it ends the library's loop.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium.spaces import Box, Discrete, flatten, flatten_space

from kernelrl.episodes.checks import as_flag, as_reward
from kernelrl.jit.stream import episode_seed
from kernelrl.peers.turns import Enough

__all__ = ["Episodes", "Seen", "check_actions"]

TAKES = {"DQN": (Discrete,), "SAC": (Box,), "TD3": (Box,)}


def check_actions(name: str, space: gym.Space[Any]) -> None:
    """Raise ValueError unless the algorithm of that name takes these actions."""
    kinds = TAKES.get(name)
    if kinds is not None and not isinstance(space, kinds):
        others = "SAC, TD3, PPO and A2C take a Box" if isinstance(space, Box) else "DQN, PPO and A2C take Discrete ones"
        raise ValueError(f"action_space: {name} needs {kinds[0].__name__} actions, got {space}; {others}")
    if isinstance(space, Box) and not space.is_bounded():
        raise ValueError(
            f"action_space: {name} needs actions with finite bounds, got {space}; "
            "gymnasium.wrappers.RescaleAction or TransformAction can give it some"
        )


class Seen(gym.Wrapper[Any, Any, Any, Any]):
    """`env` with episodes of at most `horizon` steps, and observations that a network takes."""

    def __init__(self, env: gym.Env[Any, Any], horizon: int, time_aware: bool) -> None:
        super().__init__(env)
        self._horizon, self._time_aware, self._step = horizon, time_aware, 0
        self._space, self._actions = env.observation_space, env.action_space
        self._flattened = time_aware or isinstance(self._space, Discrete)
        if self._flattened:
            self.observation_space = self._flat_space()
        # A copy, since the library seeds it; actions of Discrete spaces count from 0 in the library.
        actions = self._actions
        self.action_space = Discrete(int(actions.n)) if isinstance(actions, Discrete) else copy.deepcopy(actions)

    def _flat_space(self) -> Box:
        box = flatten_space(self._space) if self._space.is_np_flattenable else None
        if not isinstance(box, Box):
            raise ValueError(
                f"observation_space: {self._space} cannot be flattened to add the time; "
                "gymnasium.wrappers.TransformObservation(env, function, box) can describe states by numbers"
            )
        time = [0.0] if self._time_aware else []
        low, high = np.append(box.low, time), np.append(box.high, np.add(time, 1.0))
        with np.errstate(over="ignore"):
            return Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)

    def _features(self, name: str, observation: Any) -> Any:
        numbers = np.asarray(flatten(self._space, observation), np.float32) if self._flattened else observation
        if isinstance(numbers, np.ndarray) and not np.isfinite(numbers).all():
            raise ValueError(f"{name} must be finite, got {observation}")
        return np.append(numbers, np.float32(self._step / self._horizon)) if self._time_aware else numbers

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._step = 0
        observation, info = self.env.reset(seed=seed, options=options)
        if "action_mask" in info:
            raise ValueError(
                "the environment's info has an action_mask, which Stable-Baselines3's agents do not obey; a wrapper "
                "that removes it lets them take every action"
            )
        return self._features("the environment's start state", observation), info

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step; `action` is one of `action_space`."""
        actions = self._actions
        action = int(action) + int(actions.start) if isinstance(actions, Discrete) else action
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._step += 1
        reward = as_reward(reward, "the environment's reward")
        terminated = as_flag(terminated, "the environment's terminated")
        truncated = as_flag(truncated, "the environment's truncated") or self._step >= self._horizon
        return self._features("the environment's next state", observation), reward, terminated, truncated, info


class Episodes(gym.Wrapper[Any, Any, Any, Any]):
    """The first `episodes` episodes of a run with `seed`, or those until `steps` steps are reached."""

    def __init__(
        self, env: gym.Env[Any, Any], seed: int, between: Callable[[], None], episodes: int | None,
        steps: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(env)
        self._seed, self._between, self._episodes, self._steps, self._taken = seed, between, episodes, steps, 0
        self._sum, self._length, self._last = 0.0, 0, None
        self.returns: list[float] = []
        """The sum of rewards of each whole episode."""
        self.lengths: list[int] = []
        """The number of its steps."""
        self.stopping = False
        """Whether the loop should end at the next step."""

    def _enough(self) -> bool:
        return len(self.returns) == self._episodes if self._steps is None else self._taken >= self._steps

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode, whatever `seed` says.

        The library also resets after the last episode and then learns from it. The environment need not begin
        another one for that: nothing depends on the observation returned.
        """
        if self._enough():
            return self._last, {}
        self._between()
        self._sum, self._length = 0.0, 0
        return self.env.reset(seed=int(episode_seed(self._seed, len(self.returns))), options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """Take one step, or end the library's loop."""
        if self.stopping or self._enough():
            raise Enough
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._sum += float(reward)
        self._length += 1
        if terminated or truncated:
            self._last = observation
            self.returns.append(self._sum)
            self.lengths.append(self._length)
            self._taken += self._length
        return observation, reward, terminated, truncated, info
