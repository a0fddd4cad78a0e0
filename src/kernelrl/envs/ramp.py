"""Ramp: a walk on [0, 1] towards higher rewards, small enough for the theory's bounds to be useful.

    y = clip(x ± 0.2 + ε),   ε ~ N(0, 0.02²),   clip onto [0, 1],      r = 0.5·x at the state before the move

Action 0 goes left, action 1 right; an episode starts at x = 0.5 and takes 2 steps when made by
`gymnasium.make("kernelrl/Ramp-v0")`. Rewards are 0.5-Lipschitz (`slope`) and transitions 1-Lipschitz, since clipping
moves no two states farther apart: `lipschitz=(0.5, 1.0)`, and L_h = 0.5·(H-h) with steps from 0.
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

from numbers import Real
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.compiled import CompiledEnv
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.jit.stream import normal, seed_stream

__all__ = ["Ramp", "RampDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


class RampDynamics(NamedTuple):
    """The parameters, all floats."""

    move: float
    noise: float
    slope: float
    start: float


@reset.implement(RampDynamics)
def reset_ramp(env: RampDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write the start into `state` (1,)."""
    seed_stream(stream, seed)
    state[0] = env.start


@advance.implement(RampDynamics)
def advance_ramp(
    env: RampDynamics, stream: Words, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One move: write y into `next_state` (1,); return r(x) and two False, since nothing ends the episode."""
    x = state[0]
    y = x + (env.move if action == 1 else -env.move) + env.noise * normal(stream)
    next_state[0] = min(max(y, 0.0), 1.0)
    return env.slope * x, False, False


class Ramp(CompiledEnv):
    """A walk on a line, two moves (0 left, 1 right), rewards that grow to the right; small enough for theory.

    Args:
        move: how far an action moves.
        noise: standard deviation of the noise.
        slope: reward of x = 1, and the Lipschitz constant of the rewards.
        start: where an episode starts.
    """

    action_names = ("left", "right")

    def __init__(self, *, move: float = 0.2, noise: float = 0.02, slope: float = 0.5, start: float = 0.5) -> None:
        for name, value, most in (
            ("move", move, 1.0),
            ("noise", noise, 1.0),
            ("slope", slope, 1.0),
            ("start", start, 1.0),
        ):
            if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= most:
                raise ValueError(f"{name} must be a number from 0 to {most:g}; got {value!r}.")
        super().__init__(
            RampDynamics(float(move), float(noise), float(slope), float(start)),
            observation_space=gym.spaces.Box(0.0, 1.0, (1,), np.float64),
            action_space=gym.spaces.Discrete(2),
        )

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p)."""
        return self.dynamics.slope, 1.0

    def motion(self) -> Motion:
        """Its equations, for computing optimal values."""
        move, noise, slope, start = self.dynamics
        return Motion(
            low=np.zeros((1, 1)),
            high=np.ones((1, 1)),
            noise=np.array([noise]),
            actions=self.action_names,
            room=lambda x: np.zeros(len(x), np.int64),
            move=lambda x, a: x + (move if a == 1 else -move),
            reward=lambda x, a: slope * x[:, 0],
            starts=np.array([[start]]),
        )
