"""PuddleWorld: the way to a corner of the unit square, around two puddles (Boyan and Moore 1995; package RLPy).

    y = clip(x + m_a + ε),   clip onto [0, 1]²,   m_a: 0.05 to the right, left, up or down
    r = -1 - 400·max(0, 0.1 - min_i d_i(y)),      d_i: distance to the segment of puddle i
    r = 0 and the episode ends                    where y_1 + y_2 > 1.9

The segments are (0.1, 0.75)–(0.45, 0.75) and (0.45, 0.4)–(0.45, 0.8): a puddle reaches 0.1 from its segment. The reward
is that of the next state y. With "shared" noise one draw ε ~ N(0, 0.01²) is added to both coordinates, as in RLPy; with
"independent" noise each has its own. An episode starts uniformly outside the goal, and takes at most 50 steps when made
by `gymnasium.make("kernelrl/PuddleWorld-v0")`.

V*_1 with 50 steps, ±0.02, on average over the starts: -20.46 with shared noise, -20.44 with independent; from
(0.2, 0.5) -32.93 and -32.92; from (0.1, 0.1) -33.58 and -33.54. More steps change nothing. With shared noise the error
of `kernelrl.envs.solve` falls only with the cell width: 128, 192 and 288 cells per axis give -20.448, -20.454 and
-20.456. Rewards and transitions jump at the goal, so there are no Lipschitz constants.
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

import functools
import math
from typing import NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.arguments import one_of
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.envs.moves import NAMES, SHIFTS, shift
from kernelrl.envs.pictures import REWARD, DrawnEnv, View, cover, lay
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import normal, seed_stream, uniform

__all__ = ["PuddleWorld", "PuddleWorldDynamics"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]
MOVE, NOISE, GOAL = 0.05, 0.01, 1.9
DEPTH, RADIUS = 400.0, 0.1
WATER = (70, 140, 200)
VIEW = View((0.0, 0.0), (1.0, 1.0), 380)


class PuddleWorldDynamics(NamedTuple):
    """Its only parameter: 1 if both coordinates have the same noise, 0 if each has its own."""

    shared: int


@compiled
def puddle_cost(x: float, y: float) -> float:
    """400·(0.1 - distance) around each of two segments, the larger of the two."""
    dx = max(0.0, max(0.1 - x, x - 0.45))
    dy = y - 0.75
    across = math.sqrt(dx * dx + dy * dy)
    dx = x - 0.45
    dy = max(0.0, max(0.4 - y, y - 0.8))
    upright = math.sqrt(dx * dx + dy * dy)
    return DEPTH * max(0.0, RADIUS - min(across, upright))


@reset.implement(PuddleWorldDynamics)
def reset_puddle_world(env: PuddleWorldDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write a start outside the goal into `state` (2,)."""
    seed_stream(stream, seed)
    state[0], state[1] = uniform(stream), uniform(stream)
    while state[0] + state[1] > GOAL:
        state[0], state[1] = uniform(stream), uniform(stream)


@advance.implement(PuddleWorldDynamics)
def advance_puddle_world(
    env: PuddleWorldDynamics, stream: Words, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One move: write y into `next_state` (2,); return the reward, whether y is in the goal, and False."""
    x, y = state[0], state[1]
    dx, dy = shift(action, MOVE)
    first = NOISE * normal(stream)
    second = first if env.shared == 1 else NOISE * normal(stream)
    x = min(max(x + dx + first, 0.0), 1.0)
    y = min(max(y + dy + second, 0.0), 1.0)
    next_state[0], next_state[1] = x, y
    if x + y > GOAL:
        return 0.0, True, False
    return -1.0 - puddle_cost(x, y), False, False


class PuddleWorld(DrawnEnv):
    """The unit square with two puddles, four moves (0 right, 1 left, 2 up, 3 down); the goal is the upper right corner.

    Args:
        noise: "shared", one draw for both coordinates, or "independent".
        render_mode: `"rgb_array"`, or None for no pictures.
    """

    action_names = NAMES

    def __init__(self, *, noise: str = "shared", render_mode: str | None = None) -> None:
        shared = one_of("noise", noise, ("shared", "independent")) == "shared"
        super().__init__(
            PuddleWorldDynamics(int(shared)),
            observation_space=gym.spaces.Box(0.0, 1.0, (2,), np.float64),
            action_space=gym.spaces.Discrete(4),
            render_mode=render_mode,
        )

    def motion(self) -> Motion:
        """Its equations, those of `advance_puddle_world`, for computing optimal values; starts are a fine grid."""
        moves = MOVE * SHIFTS
        middles = (np.arange(205) + 0.5) / 205  # as many cells are wrongly taken to be outside the goal as inside
        starts = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
        return Motion(
            low=np.zeros((1, 2)),
            high=np.ones((1, 2)),
            noise=np.array([NOISE, NOISE]),
            actions=self.action_names,
            room=lambda x: np.zeros(len(x), np.int64),
            move=lambda x, a: x + moves[a],
            reward=lambda x, a: np.zeros(len(x)),
            starts=starts[starts.sum(axis=1) <= GOAL],
            ends=lambda y: y[:, 0] + y[:, 1] > GOAL,
            reward_after=lambda y, a: -1.0 - costs(y[:, 0], y[:, 1]),
            shared_noise=self.dynamics.shared == 1,
            tolerance=0.15 if self.dynamics.shared == 1 else 0.04,
        )

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """The puddles, the goal and the agent."""
        return VIEW.with_agent(background(), state, 0.018)


def costs(x: Floats, y: Floats) -> Floats:
    """What states cost beside the 1 of each step."""
    across = np.hypot(np.maximum(0.0, np.maximum(0.1 - x, x - 0.45)), y - 0.75)
    upright = np.hypot(x - 0.45, np.maximum(0.0, np.maximum(0.4 - y, y - 0.8)))
    c: Floats = DEPTH * np.maximum(0.0, RADIUS - np.minimum(across, upright))
    return c


@functools.lru_cache(maxsize=1)
def background() -> NDArray[np.uint8]:
    """Everything except the agent."""
    x, y = VIEW.axes()
    paint = VIEW.background(VIEW.outside(), costs(x, y) / (DEPTH * RADIUS), WATER).astype(np.float64)
    goal = np.maximum((GOAL - x - y) / math.sqrt(2.0), VIEW.outside())
    lay(paint, REWARD, cover(goal, VIEW.scale))
    return np.rint(paint).astype(np.uint8)
