"""PBall2D: the unit disc with rewards around one or two points, at five levels (Domingues et al., package rlberry).

    y = Proj(x + u_a + ε),   ε ~ N(0, σ² I),   Proj: onto the disc ‖y‖ ≤ 1,   u_a: 0, or ±0.05 along an axis
    r = Σ_i b_i·max(0, 1 - ‖x - x_i‖ / c_i)

The reward is that of the state before the move. An episode starts at N(0, 0.001² I) and takes 30 steps when made by
`gymnasium.make("kernelrl/PBall2D-v0")`; nothing else ends it.

| level | x_i | b_i | c_i | σ | V*_1 |
|---|---|---|---|---|---|
| 1 | (0.5, 0.5) | 1 | 0.5·√2 | 0.01 | 19.107 |
| 2 | (0.5, 0.5) | 1 | 0.2 | 0.01 | 11.103 |
| 3 | (0.5, 0.5) | 1 | 0.2 | 0.025 | 10.114 |
| 4 | (-0.5, -0.5), (0.5, 0.5) | 1, 0.1 | 0.2, 0.5·√2 | 0.01 | 11.103 |
| 5 | (-0.5, -0.5), (0.5, 0.5) | 1, 0.1 | 0.2, 0.5·√2 | 0.025 | 10.114 |

V*_1 is ±0.001. On level 3, grids of 128, 192, 288, 432, 648 and 972 cells per axis of [-1, 1]² give 10.1251, 10.1180,
10.1156, 10.1147, 10.1134 and 10.1139, on level 5 the first four 10.1253, 10.1182, 10.1158 and 10.1149. 200,000 episodes
of the greedy policy collected 10.112 and 10.107 on average (standard error 0.005), which excludes 10.149, a figure from
a coarser grid. The second reward of level 5 is worth only 0.0002, because it lies the other way. On level 2, 972 and
1300 cells give 11.1025 and 11.1029. `kernelrl.envs.solve` without a tolerance is within 0.002 of these values.

Rewards are Lipschitz with the largest b_i/c_i (1.414 on level 1, else 5; the cones of levels 4 and 5 do not overlap),
transitions are 1-Lipschitz, because a projection onto a convex set moves no two states farther apart.
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

import functools
import math
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.arguments import as_whole
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.envs.moves import NAMES, SHIFTS, shift
from kernelrl.envs.pictures import DrawnEnv, View
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import normal, seed_stream

__all__ = ["PBall2D", "PBall2DDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
MOVE, START = 0.05, 0.001
VIEW = View((-1.0, -1.0), (1.0, 1.0), 200)


class PBall2DDynamics(NamedTuple):
    """The parameters, all floats: the noise, and height, radius and centre of two cones of reward."""

    noise: float
    height_0: float
    radius_0: float
    x_0: float
    y_0: float
    height_1: float
    radius_1: float
    x_1: float
    y_1: float


ONE_WIDE = (1.0, 0.5 * math.sqrt(2.0), 0.5, 0.5, 0.0, 1.0, 0.0, 0.0)
ONE_NARROW = (1.0, 0.2, 0.5, 0.5, 0.0, 1.0, 0.0, 0.0)
TWO = (1.0, 0.2, -0.5, -0.5, 0.1, 0.5 * math.sqrt(2.0), 0.5, 0.5)
LEVELS = {
    1: PBall2DDynamics(0.01, *ONE_WIDE),
    2: PBall2DDynamics(0.01, *ONE_NARROW),
    3: PBall2DDynamics(0.025, *ONE_NARROW),
    4: PBall2DDynamics(0.01, *TWO),
    5: PBall2DDynamics(0.025, *TWO),
}


@compiled
def project(x: float, y: float, state: Floats) -> None:
    """Write the point of the disc nearest to (x, y) into `state` (2,)."""
    norm = math.sqrt(x * x + y * y)
    factor = 1.0 / norm if norm > 1.0 else 1.0
    state[0], state[1] = min(max(x * factor, -1.0), 1.0), min(max(y * factor, -1.0), 1.0)


@compiled
def cone(height: float, radius: float, dx: float, dy: float) -> float:
    """b·max(0, 1 - ‖(dx, dy)‖ / c)."""
    return height * max(0.0, 1.0 - math.sqrt(dx * dx + dy * dy) / radius)


@reset.implement(PBall2DDynamics)
def reset_pball(env: PBall2DDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write a start near the middle into `state` (2,)."""
    seed_stream(stream, seed)
    x = START * normal(stream)
    y = START * normal(stream)
    project(x, y, state)


@advance.implement(PBall2DDynamics)
def advance_pball(
    env: PBall2DDynamics, stream: Words, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One move: write y into `next_state` (2,); return r(x) and two False, since nothing ends the episode."""
    x, y = state[0], state[1]
    r = cone(env.height_0, env.radius_0, x - env.x_0, y - env.y_0)
    r += cone(env.height_1, env.radius_1, x - env.x_1, y - env.y_1)
    dx, dy = shift(action - 1, MOVE)
    x = x + dx + env.noise * normal(stream)
    y = y + dy + env.noise * normal(stream)
    project(x, y, next_state)
    return r, False, False


class PBall2D(DrawnEnv):
    """The unit disc, five actions (0 stay, 1 right, 2 left, 3 up, 4 down), rewards around one or two points.

    Args:
        level: 1 … 5; from level 2 on rewards are narrow, levels 4 and 5 have a second, lower and wider one, and levels
            3 and 5 more noise.
        render_mode: `"rgb_array"`, or None for no pictures.
    """

    action_names = ("stay", *NAMES)

    def __init__(self, level: int = 1, *, render_mode: str | None = None) -> None:
        number: Any = None if isinstance(level, bool) else as_whole(level)
        if number not in LEVELS:
            raise ValueError(f"level must be 1, 2, 3, 4 or 5, got {level!r}")
        super().__init__(
            LEVELS[number],
            observation_space=gym.spaces.Box(-1.0, 1.0, (2,), np.float64),
            action_space=gym.spaces.Discrete(5),
            render_mode=render_mode,
        )

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p): the steeper of the cones, and 1."""
        env = self.dynamics
        return max(env.height_0 / env.radius_0, env.height_1 / env.radius_1), 1.0

    def motion(self) -> Motion:
        """Its equations, those of `advance_pball`, for computing optimal values; starts count as the middle."""
        env = self.dynamics
        moves = MOVE * np.concatenate([np.zeros((1, 2)), SHIFTS])
        return Motion(
            low=-np.ones((1, 2)),
            high=np.ones((1, 2)),
            noise=np.array([env.noise, env.noise]),
            actions=self.action_names,
            room=lambda x: np.zeros(len(x), np.int64),
            move=lambda x, a: x + moves[a],
            reward=lambda x, a: cones(env, x[:, 0], x[:, 1]),
            starts=np.zeros((1, 2)),
            project=lambda y: y / np.maximum(1.0, np.linalg.norm(y, axis=1, keepdims=True)),
            tolerance=0.01,
        )

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """The disc, with the reward as colour, and the agent."""
        return VIEW.with_agent(background(self.dynamics), state, 0.04)


def cones(env: PBall2DDynamics, x: Floats, y: Floats) -> Floats:
    """The reward of states."""
    first = env.height_0 * np.maximum(0.0, 1.0 - np.hypot(x - env.x_0, y - env.y_0) / env.radius_0)
    second = env.height_1 * np.maximum(0.0, 1.0 - np.hypot(x - env.x_1, y - env.y_1) / env.radius_1)
    r: Floats = first + second
    return r


@functools.lru_cache(maxsize=5)
def background(env: PBall2DDynamics) -> NDArray[np.uint8]:
    """Everything except the agent."""
    x, y = VIEW.axes()
    return VIEW.background(np.hypot(x, y) - 1.0, cones(env, x, y))
