"""Declarations for the ambulance and for oil, and logged transitions with random actions."""

from __future__ import annotations

import gymnasium as gym
import numpy as np

import kernelrl as krl

ALPHA = 0.25


def waiting(alpha):
    """The reward of the ambulance."""
    return lambda x, a, z: 1.0 - alpha * np.abs(x - a)[:, 0] - (1.0 - alpha) * np.abs(a - z)[:, 0]


def ambulance(**changes):
    """The noise is the place of the call."""
    given = {
        "function": lambda x, a, z: z, "recover": lambda x, a, y: y, "reward": waiting(ALPHA), "noise": (0.0, 1.0),
        "lipschitz": (0, 0, 1), "reward_lipschitz": (ALPHA, 1, 1 - ALPHA),
    }  # fmt: skip
    return krl.models.Exogenous(**{**given, **changes})


def landed(x, a, y):
    """How far from the action it landed; not known at the border."""
    return np.where((y > 0.0) & (y < 1.0), y - a, np.nan)


def oil(steepness=1.0, **changes):
    """Laplace: the noise is how far from the action it lands."""
    given = {
        "function": lambda x, a, z: np.clip(a + z, 0.0, 1.0), "recover": landed, "noise": (-0.5, 0.5),
        "reward": lambda x, a: np.clip(np.exp(-steepness * np.abs(x - 0.75)) - np.abs(x - a), 0.0, 1.0)[:, 0],
        "lipschitz": (0, 1, 1), "reward_lipschitz": (steepness + 1.0, 1, 0), "reward_of": "state-action",
    }  # fmt: skip
    return krl.models.Exogenous(**{**given, **changes})


def logged(env, episodes, seed, discrete=False):
    """A table of transitions with random actions of `env`."""
    world, rng = gym.make(env) if isinstance(env, str) else env, np.random.default_rng(seed)
    rows = []
    for k in range(episodes):
        x, _ = world.reset(seed=seed * 1_000_003 + k)
        for h in range(5):
            a = int(rng.integers(world.action_space.n)) if discrete else rng.random(1)
            y, r, end, _, _ = world.step(a)
            rows.append((x[0], a if discrete else a[0], r, y[0], h, end))
            x = y
    names = ("state", "action", "reward", "next_state", "step", "terminated")
    return {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
