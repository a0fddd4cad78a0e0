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


class Chain(gym.Env):
    """Four places in a row: action 0 collects 0.2 where one is and goes back, action 1 goes on; at the end it pays 1.

    A move fails with probability `slip`. Observations are the places, from `first` on, or points of a box.
    """

    n = 4

    def __init__(self, box: bool = False, first: int = 0, slip: float = 0.1) -> None:
        self.box, self.first = box, first
        self.observation_space = gym.spaces.Discrete(self.n, start=first)
        if box:
            self.observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        self.action_space = gym.spaces.Discrete(2)
        places = np.arange(self.n)
        self.R = np.zeros((self.n, 2))  # (x, a)
        self.R[:, 0], self.R[-1, 1] = 0.2, 1.0
        self.P = np.zeros((self.n, 2, self.n))  # (x, a, y)
        self.P[places, 0, np.maximum(places - 1, 0)] = 1 - slip
        self.P[places, 1, np.minimum(places + 1, self.n - 1)] = 1 - slip
        self.P[places, :, places] += slip

    def observation(self, x: int) -> Any:
        return np.array([(x + 0.5) / self.n]) if self.box else self.first + x

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self.x = 0
        return self.observation(0), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        reward = float(self.R[self.x, action])
        self.x = int(self.np_random.choice(self.n, p=self.P[self.x, action]))
        return self.observation(self.x), reward, False, False, {}
