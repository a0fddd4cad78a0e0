"""An environment of one's own, compiled: a water tank whose level is to be kept near 0.7 by one of three valves.

    y = clip(x + inflow·valve - outflow·√x + ε),   ε ~ N(0, noise²),   clip onto [0, 1],   r = 1 - 2·|y - 0.7|

An episode ends, with a reward of -1, when the tank overflows. Compiled code makes no arrays: states are written one
entry after the other. docs/extending.md explains each part.

    python examples/tank.py
"""

import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

import kernelrl as krl

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
GOAL = 0.7


class Tank(NamedTuple):
    """The dynamics: numbers, or NumPy arrays of them."""

    inflow: float
    outflow: float
    noise: float


@krl.envs.reset.implement(Tank)
def start(env: Tank, seed: int, stream: Words, state: Floats) -> None:
    state[0] = 0.3 * krl.random.uniform(stream)


@krl.envs.advance.implement(Tank)
def step(env: Tank, stream: Words, state: Floats, action: int, next_state: Floats) -> tuple[float, bool, bool]:
    level = state[0] + 0.5 * action * env.inflow - env.outflow * math.sqrt(state[0])
    level += env.noise * krl.random.normal(stream)
    next_state[0] = min(max(level, 0.0), 1.0)
    if level > 1.0:
        return -1.0, True, False
    return 1.0 - 2.0 * abs(next_state[0] - GOAL), False, False


class TankEnv(krl.envs.CompiledEnv):
    """The tank as a Gymnasium environment."""

    action_names = ("shut", "half open", "open")

    def __init__(self, inflow: float = 0.2, outflow: float = 0.1, noise: float = 0.02) -> None:
        super().__init__(
            Tank(inflow, outflow, noise),
            observation_space=gym.spaces.Box(0.0, 1.0, (1,), np.float64),
            action_space=gym.spaces.Discrete(3),
        )


if __name__ == "__main__":
    env = TimeLimit(TankEnv(), 30)
    krl.testing.check_environment(env)
    agent = krl.GreedyKernelUCBVI()
    history = agent.fit(env, episodes=2_000, seed=0)
    print(f"mean return of the last 200 episodes: {history.returns[-200:].mean():.1f}")
    print(f"mean return of the policy to deploy: {agent.evaluate(env, 200).mean:.1f}")
