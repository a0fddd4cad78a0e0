"""A walk in a box, for agents that choose their settings themselves."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np


class Walk(gym.Env):
    """Two actions for each axis go up or down it; the far corner pays, the near one costs, and `ends` ends episodes.

    Axis j is `widths[j]` wide and a step goes `step` of that; if `unbounded` the space does not tell.
    """

    def __init__(self, widths=(1.0,), step=0.2, noise=0.1, unbounded=False, ends=False):
        self.widths, self.size, self.noise, self.ends = np.array(widths, dtype=float), step, noise, ends
        d, far = len(widths), np.inf if unbounded else self.widths
        low = np.full(d, -np.inf) if unbounded else np.zeros(d)
        self.observation_space = gym.spaces.Box(low, np.broadcast_to(far, d).astype(float), dtype=np.float64)
        self.action_space = gym.spaces.Discrete(2 * d)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self.x = (0.4 + 0.2 * self.np_random.random(len(self.widths))) * self.widths
        return self.x.copy(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        move = np.zeros(len(self.widths))
        move[action // 2] = self.size * (2 * (action % 2) - 1)
        return self.go(move)

    def go(self, move: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Take a step of that length, and some noise."""
        move += self.size * self.noise * self.np_random.standard_normal(len(move))
        self.x = np.clip(self.x + move * self.widths, 0.0, self.widths)
        place = (self.x / self.widths).mean()
        reward = 2.0 if place > 0.85 else -1.0 if place < 0.15 else 0.25
        return self.x.copy(), reward, bool(self.ends and place > 0.85), False, {}


def limited(horizon: int = 8, **options: Any) -> gym.Env:
    """A walk of so many steps."""
    return gym.wrappers.TimeLimit(Walk(**options), horizon)


class Pushed(Walk):
    """A walk on a line that is pushed by an action: the sum of its numbers, from -1 to 1 each."""

    def __init__(self, shape: tuple[int, ...], ends: bool = False):
        super().__init__(ends=ends)
        self.action_space = gym.spaces.Box(-1.0, 1.0, shape)

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        assert self.action_space.contains(action), action
        return self.go(np.array([self.size * float(action.sum())]))


def pushed(horizon: int = 8, shape: tuple[int, ...] = (1,), ends: bool = False) -> gym.Env:
    """So many steps of it."""
    return gym.wrappers.TimeLimit(Pushed(shape, ends), horizon)
