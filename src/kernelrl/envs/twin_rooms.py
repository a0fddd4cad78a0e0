"""TwinRooms: two rooms side by side, a wall between them, and a small reward in each.

The states are X = ([0, 1-Δ] ∪ [1+Δ, 2]) × [0, 1], the wall being 2Δ = 0.1 wide. An episode starts at the bottom left of
either room with probability ½ and stays in that room. Action a moves by m_a, 0.1 to the right, left, up or down:

    y = clip(x + m_a + ε),   ε ~ N(0, 0.01² I),   clip: onto the room that x is in,
    r = max(0, 1 - ‖x - g‖ / 0.1),                g: the goal of that room, (0.8, 0.8) or (1.8, 0.8).

The reward is that of the state before the move. Only the time limit ends an episode (20 steps when made by
`gymnasium.make("kernelrl/TwinRooms-v0")`).

The rooms are nearly alike: `twin_rooms_fold` maps the second to the first. They are not exact translates of each other,
because the wall is at the right of the first room and at the left of the second.
"""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-calls, allow-untyped-decorators

import functools
import math
from collections.abc import Callable
from numbers import Real
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.envs.moves import NAMES, SHIFTS, shift
from kernelrl.envs.pictures import FLOOR, PAPER, REWARD, RIM, WALL, DrawnEnv, View, cover, lay
from kernelrl.geometry.metrics import SHIPPED_FOLDS, LpSpace, implement_fold
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import normal, seed_stream, uniform

__all__ = ["TwinRooms", "TwinRoomsDynamics", "draw", "make_dynamics", "twin_rooms_fold"]

Floats = NDArray[np.float64]
Words = NDArray[np.uint64]


class TwinRoomsDynamics(NamedTuple):
    """The parameters, all floats: build it with `make_dynamics`, which checks and casts them."""

    wall: float
    move: float
    noise: float
    radius: float
    start_x: float
    start_y: float
    goal_x: float
    goal_y: float


def make_dynamics(
    wall: float = 0.1,
    move: float = 0.1,
    noise: float = 0.01,
    radius: float = 0.1,
    start: tuple[float, float] = (0.1, 0.1),
    goal: tuple[float, float] = (0.8, 0.8),
) -> TwinRoomsDynamics:
    """Build the dynamics of these parameters; `TwinRooms` says what they mean."""
    w = _number(
        "wall", wall, lambda v: 0.0 < v < 1.0 and 1.0 - 0.5 * v < 1.0, "a width over 0 and under 1, such as 0.1"
    )
    return TwinRoomsDynamics(
        w,
        _number("move", move, lambda v: 0.0 < v < math.inf, "a positive number, such as 0.1"),
        _number("noise", noise, lambda v: 0.0 <= v < math.inf, "a number not below 0, such as 0.01"),
        _number("radius", radius, lambda v: 0.0 < v < math.inf, "a positive number, such as 0.1"),
        *_point("start", start, w),
        *_point("goal", goal, w),
    )


def _number(name: str, value: Any, right: Callable[[float], bool], wanted: str) -> float:
    if isinstance(value, bool) or not isinstance(value, Real) or not right(float(value)):
        raise ValueError(f"{name} must be {wanted}; got {value!r}.")
    return float(value)


def _point(name: str, value: Any, wall: float) -> tuple[float, float]:
    low, high = 0.5 * wall, 1.0 - 0.5 * wall
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 2:
        raise ValueError(f"{name} must be a pair (x, y), such as (0.5, 0.5); got {value!r}.")
    x = _number(f"x of {name}", value[0], lambda v: low <= v <= high, f"from {low:g} to {high:g}, inside both rooms")
    y = _number(f"y of {name}", value[1], lambda v: 0.0 <= v <= 1.0, "from 0 to 1")
    return x, y


@reset.implement(TwinRoomsDynamics)
def reset_twin_rooms(env: TwinRoomsDynamics, seed: int, stream: Words, state: Floats) -> None:
    """Seed `stream` and write the start of a room drawn from it into `state` (2,)."""
    seed_stream(stream, seed)
    room = 0.0 if uniform(stream) < 0.5 else 1.0
    state[0] = env.start_x + room
    state[1] = env.start_y


@compiled
def reward_twin_rooms(env: TwinRoomsDynamics, state: Floats) -> float:
    """r(x) = max(0, 1 - ‖x - g‖ / radius), the same for every action."""
    room = 0.0 if state[0] < 1.0 else 1.0
    dx = state[0] - (env.goal_x + room)
    dy = state[1] - env.goal_y
    return max(0.0, 1.0 - math.sqrt(dx * dx + dy * dy) / env.radius)


@advance.implement(TwinRoomsDynamics)
def advance_twin_rooms(
    env: TwinRoomsDynamics, stream: Words, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One move: write y into `next_state` (2,); return r(x) and two False, since nothing ends the episode."""
    r = reward_twin_rooms(env, state)
    x, y = state[0], state[1]
    # The wall keeps the rooms apart, so x tells where the episode started.
    if x < 1.0:
        low, high = 0.0, 1.0 - 0.5 * env.wall
    else:
        low, high = 1.0 + 0.5 * env.wall, 2.0
    dx, dy = shift(action, env.move)
    x = x + dx + env.noise * normal(stream)
    y = y + dy + env.noise * normal(stream)
    next_state[0] = min(max(x, low), high)
    next_state[1] = min(max(y, 0.0), 1.0)
    return r, False, False


@compiled
def twin_rooms_fold(state: Floats, out: Floats) -> None:
    """Expert knowledge as a map of states: a state x of the second room becomes x - (1, 0) in the first."""
    x = state[0]
    out[0] = x - 1.0 if x >= 1.0 else x
    out[1] = state[1]


class TwinRoomsFold(NamedTuple):
    """The compiled form of `Folded(twin_rooms_fold)`; a class of this package, so its machine code is cached."""

    base: LpSpace


def embed_twin_rooms(space: Any, x: Any, out: Any) -> None:
    """x folded, then scaled."""
    twin_rooms_fold(x, out)
    for j in range(x.size):
        out[j] = out[j] * space.base.inverse_scale[j]


SHIPPED_FOLDS[twin_rooms_fold] = implement_fold(TwinRoomsFold, embed_twin_rooms)


class TwinRooms(DrawnEnv):
    """Two rooms, four moves (0 right, 1 left, 2 up, 3 down), one rewarding disc per room.

    Observations are the position, float64 (2,), in [0, 2] × [0, 1]; `info["room"]` is 0 (left) or 1 (right). An
    episode is a pure function of the seed of its `reset` and of its actions, here and in compiled loops.

    Args:
        render_mode: `"rgb_array"`, or None for no pictures.
        wall: the width of the wall around x = 1.
        move: the length of a move.
        noise: the standard deviation of the noise in each coordinate.
        radius: the radius of the rewarding discs.
        start: where an episode starts, relative to its room: (x, y) in the first, (x + 1, y) in the second.
        goal: the centre of the rewarding disc, relative to its room in the same way.
    """

    action_names = NAMES

    def __init__(
        self,
        *,
        render_mode: str | None = None,
        wall: float = 0.1,
        move: float = 0.1,
        noise: float = 0.01,
        radius: float = 0.1,
        start: tuple[float, float] = (0.1, 0.1),
        goal: tuple[float, float] = (0.8, 0.8),
    ) -> None:
        super().__init__(
            make_dynamics(wall, move, noise, radius, start, goal),
            observation_space=gym.spaces.Box(np.array([0.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float64),
            action_space=gym.spaces.Discrete(4),
            render_mode=render_mode,
        )

    def info(self) -> dict[str, Any]:
        """The room that the agent is in."""
        return {"room": int(self.state[0] >= 1.0)}

    def draw(self, state: Floats) -> NDArray[np.uint8]:
        """The rooms and where the agent is."""
        return draw(self.dynamics, state)

    @property
    def lipschitz_constants(self) -> tuple[float, float]:
        """(λ_r, λ_p): the rewards are cones, and moves and clipping take no two states of a room farther apart."""
        return 1.0 / self.dynamics.radius, 1.0

    def motion(self) -> Motion:
        """Its equations, those of `advance_twin_rooms`, for computing optimal values."""
        env = self.dynamics
        half, moves = 0.5 * env.wall, env.move * SHIFTS
        goals = np.array([[env.goal_x, env.goal_y], [env.goal_x + 1.0, env.goal_y]])

        def room(x: Floats) -> NDArray[np.int64]:
            return (x[:, 0] >= 1.0).astype(np.int64)

        def reward(x: Floats, a: int) -> Floats:
            r: Floats = np.maximum(0.0, 1.0 - np.linalg.norm(x - goals[room(x)], axis=1) / env.radius)
            return r

        return Motion(
            low=np.array([[0.0, 0.0], [1.0 + half, 0.0]]),
            high=np.array([[1.0 - half, 1.0], [2.0, 1.0]]),
            noise=np.array([env.noise, env.noise]),
            actions=self.action_names,
            room=room,
            move=lambda x, a: x + moves[a],
            reward=reward,
            starts=np.array([[env.start_x, env.start_y], [env.start_x + 1.0, env.start_y]]),
        )


VIEW = View((0.0, 0.0), (2.0, 1.0), 380)  # 800 × 420 pixels
AGENT_RADIUS = 0.024


def draw(env: TwinRoomsDynamics, state: Floats) -> NDArray[np.uint8]:
    """Draw the rooms, the wall, the rewarding discs (deeper colour: higher reward) and the agent."""
    return VIEW.with_agent(_rooms(env), state, AGENT_RADIUS)


@functools.lru_cache(maxsize=4)
def _rooms(env: TwinRoomsDynamics) -> NDArray[np.uint8]:
    """Draw everything except the agent, which is the same in every picture of an environment."""
    (x, y), scale, half = VIEW.axes(), VIEW.scale, 0.5 * env.wall
    paint = np.empty((y.size, x.size, 3))
    paint[:] = PAPER
    lay(paint, WALL, cover(VIEW.outside() - 6.0 / scale, scale))
    for room, left, right in ((0.0, 0.0, 1.0 - half), (1.0, 1.0 + half, 2.0)):
        floor = cover(np.maximum(np.maximum(left - x, x - right), abs(y - 0.5) - 0.5), scale)
        lay(paint, FLOOR, floor)
        z = np.hypot(x - (env.goal_x + room), y - env.goal_y)
        depth = 0.25 + 0.75 * np.clip(1.0 - z / env.radius, 0.0, 1.0)
        lay(paint, REWARD, floor * cover(z - env.radius, scale) * depth)
        lay(paint, RIM, floor * cover(abs(z - env.radius) - 1.0 / scale, scale))
    return np.rint(paint).astype(np.uint8)
