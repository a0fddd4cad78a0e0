"""Small Gymnasium environments and wrappers with one trait each."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Line(gym.Env):
    """A walk on [0, 1]: action `first` goes left, the others right; every reward lies in [-1, 2].

    An episode terminates at the right end if `ends`; nothing truncates it.
    """

    def __init__(self, actions: int = 2, first: int = 0, ends: bool = False, dtype: Any = np.float64) -> None:
        self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), dtype)
        self.action_space = gym.spaces.Discrete(actions, start=first)
        self.ends, self.dtype = ends, dtype
        self.taken: list[int] = []

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.x = 0.5 + 0.1 * self.np_random.random()
        return self._observation(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action)
        self.taken.append(action)
        right = action != self.action_space.start
        self.x = float(np.clip(self.x + (0.2 if right else -0.2) + 0.02 * self.np_random.standard_normal(), 0, 1))
        reward = 2.0 if self.x > 0.9 else -1.0 if self.x < 0.1 else 0.25
        return self._observation(), reward, self.ends and self.x > 0.9, False, {}

    def _observation(self) -> np.ndarray:
        return np.array([self.x], self.dtype)


class Counting(gym.Wrapper):
    """Counts steps; the user's own, so it must be obeyed."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        self.steps = 0

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.env.step(action)


class Halved(gym.RewardWrapper):
    """Half the reward."""

    def reward(self, reward: Any) -> float:
        return 0.5 * float(reward)
