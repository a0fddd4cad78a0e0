"""SquareWorld: the unit square with a smooth reward around one point (Domingues et al., package rlly).

    y = clip(x + m_a + ε),   ε ~ N(0, 0.01² I),   clip onto [0, 1]²,   m_a: 0.1 to the right, left, up or down
    r = exp(-‖x - g‖² / (2·0.1²)),                g = (0.75, 0.75)

The reward is that of the state before the move. An episode starts at (0.1, 0.1) and takes 20 steps when made by
`gymnasium.make("kernelrl/SquareWorld-v0")`; nothing else ends it. In the original, rewards have noise of standard
deviation 0.01 and so leave [0, 1]: that is `reward_noise`, by default 0.

Rewards are e^{-1/2}/0.1 = 6.065-Lipschitz (`width`), transitions 1-Lipschitz. V*_1 at the start is 2.8842 with 15
steps, 7.1020 with 20 and 15.541 with 30, each ±5e-4.
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

import functools
import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.arguments import point_in, positive
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.envs.moves import NAMES, SHIFTS, shift
from kernelrl.envs.pictures import DrawnEnv, View
from kernelrl.jit.stream import normal, seed_stream

__all__ = ["SquareWorld", "SquareWorldDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
VIEW = View((0.0, 0.0), (1.0, 1.0), 380)


class SquareWorldDynamics(NamedTuple):
    """The parameters, all floats."""

    move: float
    noise: float
    width: float
    reward_noise: float
    start_x: float
    start_y: float
    goal_x: float
    goal_y: float


@reset.implement(SquareWorldDynamics)
def reset_square_world(env: SquareWorldDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write the start into `state` (2,)."""
    seed_stream(stream, seed)
    state[0], state[1] = env.start_x, env.start_y


@advance.implement(SquareWorldDynamics)
def advance_square_world(
    env: SquareWorldDynamics, stream: Words, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One move: write y into `next_state` (2,); return r(x) and two False, since nothing ends the episode."""
    x, y = state[0], state[1]
    square = (x - env.goal_x) ** 2 + (y - env.goal_y) ** 2
    r = math.exp(-square / (2.0 * env.width**2))
    dx, dy = shift(action, env.move)
    x = x + dx + env.noise * normal(stream)
    y = y + dy + env.noise * normal(stream)
    next_state[0] = min(max(x, 0.0), 1.0)
    next_state[1] = min(max(y, 0.0), 1.0)
    if env.reward_noise > 0.0:
        r += env.reward_noise * normal(stream)
    return r, False, False


class SquareWorld(DrawnEnv):
    """The unit square, four moves (0 right, 1 left, 2 up, 3 down), a bell of reward around one point.

    Args:
        render_mode: `"rgb_array"`, or None for no pictures.
        move: the length of a move.
        noise: the standard deviation of the noise in each coordinate.
        width: the width of the bell, its standard deviation.
        reward_noise: the standard deviation of noise added to rewards, which then leave [0, 1].
        start: where an episode starts.
        goal: the middle of the bell.
    """

    action_names = NAMES

    def __init__(
        self,
        *,
        render_mode: str | None = None,
        move: float = 0.1,
        noise: float = 0.01,
        width: float = 0.1,
        reward_noise: float = 0.0,
        start: tuple[float, float] = (0.1, 0.1),
        goal: tuple[float, float] = (0.75, 0.75),
    ) -> None:
        super().__init__(
            SquareWorldDynamics(
                positive("move", move),
                positive("noise", noise, zero=True),
                positive("width", width),
                positive("reward_noise", reward_noise, zero=True),
                *point_in("start", start, 0.0, 1.0),
                *point_in("goal", goal, 0.0, 1.0),
            ),
            observation_space=gym.spaces.Box(0.0, 1.0, (2,), np.float64),
            action_space=gym.spaces.Discrete(4),
            render_mode=render_mode,
        )

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p): the slope of the bell at one `width` from its middle, and 1."""
        return math.exp(-0.5) / self.dynamics.width, 1.0

    def motion(self) -> Motion:
        """Its equations, those of `advance_square_world`, for computing optimal values."""
        env = self.dynamics
        moves = env.move * SHIFTS
        return Motion(
            low=np.zeros((1, 2)),
            high=np.ones((1, 2)),
            noise=np.array([env.noise, env.noise]),
            actions=self.action_names,
            room=lambda x: np.zeros(len(x), np.int64),
            move=lambda x, a: x + moves[a],
            reward=lambda x, a: bell(env, x[:, 0], x[:, 1]),
            starts=np.array([[env.start_x, env.start_y]]),
        )

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """The square, with the reward as colour, and the agent."""
        return VIEW.with_agent(background(self.dynamics), state, 0.024)


def bell(env: SquareWorldDynamics, x: Floats, y: Floats) -> Floats:
    """The reward of states."""
    r: Floats = np.exp(-((x - env.goal_x) ** 2 + (y - env.goal_y) ** 2) / (2.0 * env.width**2))
    return r


@functools.lru_cache(maxsize=4)
def background(env: SquareWorldDynamics) -> NDArray[np.uint8]:
    """Everything except the agent."""
    return VIEW.background(VIEW.outside(), bell(env, *VIEW.axes()))
