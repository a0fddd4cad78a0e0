"""Drawing next states of an environment from given states, reading values between the points of a grid, and playing.

`draw_all` and `play_all` run compiled for compiled dynamics and as Python for a `SettableEnv`: a Gymnasium environment
whose attribute `state` can be set and is what it observes. Next states, rewards and ends must depend on nothing but the
state and the action.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.interface import advance, reset
from kernelrl.envs.wrapping import TRANSPARENT, compiled_dynamics
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed, index_below, seed_stream

__all__ = [
    "ActionList", "Drawn", "SettableEnv", "back_up", "best_action", "draw_all", "draw_compiled", "drawn_from",
    "play_all", "play_compiled", "read_all",
]  # fmt: skip

Floats = NDArray[np.float64]
NEEDED = (
    "What is needed is a krl.envs.CompiledEnv (docs/extending.md), or an environment whose attribute `state` can be "
    "set and is what it observes, wrapped in nothing but Gymnasium's TimeLimit, OrderEnforcing and PassiveEnvChecker"
)


# ------------------------------------------------------------------------------------------------- compiled, or Python


@compiled
def interpolate(V: Any, low: Any, inverse: Any, cells: Any, x: Any, column: Any) -> Any:
    """V ((cells+1)^d, columns) at the state x (d,), linear along each axis; outside the grid as at its edge."""
    total = 0.0
    for corner in range(1 << x.size):
        weight, index = 1.0, 0
        for j in range(x.size):
            place = min(max((x[j] - low[j]) * inverse[j], 0.0), 1.0 * cells)
            base = min(int(place), cells - 1)
            upper = (corner >> j) & 1
            weight *= place - base if upper == 1 else 1.0 - (place - base)
            index = index * (cells + 1) + base + upper
        total += weight * V[index, column]
    return total


@compiled
def read_all(table: Any, low: Any, inverse: Any, cells: Any, states: Any, out: Any) -> None:
    """All columns of a table ((cells+1)^d, columns) at `states` (n, d), into `out` (n, columns)."""
    for i in range(states.shape[0]):
        for column in range(out.shape[1]):
            out[i, column] = interpolate(table, low, inverse, cells, states[i], column)


@compiled
def back_up(V: Any, low: Any, inverse: Any, cells: Any, drawn: Any, rewards: Any, going: Any, q: Any) -> None:
    """The mean of reward + V(y) over the draws of each pair, into `q` (pairs,); `going` is 0 where an episode ended."""
    count = rewards.size // q.size
    for pair in range(q.size):
        total = 0.0
        for row in range(pair * count, (pair + 1) * count):
            total += rewards[row]
            if going[row] > 0.0:
                total += interpolate(V, low, inverse, cells, drawn[row], 0)
        q[pair] = total / count


@compiled
def best_action(Q: Any, low: Any, inverse: Any, cells: Any, x: Any) -> Any:
    """The index of the largest Q(x, ·), the lowest of equal ones, where Q ((cells+1)^d, A) is on a grid."""
    best, highest = 0, interpolate(Q, low, inverse, cells, x, 0)
    for a in range(1, Q.shape[1]):
        value = interpolate(Q, low, inverse, cells, x, a)
        if value > highest:
            best, highest = a, value
    return best


def draw_all(
    env: Any, seeds: Any, stream: Any, states: Any, actions: Any, count: Any, drawn: Any, rewards: Any, going: Any
) -> None:
    """`count` draws for each of `states` (n, d) and `actions` (A,): next states (n·A·count, d), rewards, and 1 or 0.

    All actions of a state have the same random numbers in compiled dynamics, so that they can be compared with few
    draws. Each state takes a seed from the stream `seeds`; `stream` is scratch.
    """
    row = 0
    for i in range(states.shape[0]):
        number = index_below(seeds, 2**53)
        for a in range(actions.size):
            seed_stream(stream, number)
            for _ in range(count):
                reward, terminated, truncated = advance(env, stream, states[i], actions[a], drawn[row])
                rewards[row] = reward
                going[row] = 0.0 if terminated or truncated else 1.0
                row += 1


def play_all(
    env: Any, stream: Any, Q: Any, low: Any, inverse: Any, cells: Any, actions: Any, seed: Any, x: Any, y: Any,
    starts: Any, returns: Any,
) -> None:  # fmt: skip
    """Episodes of the policy that is greedy in Q (H, (cells+1)^d, A); write `starts` (n, d) and `returns` (n,)."""
    for k in range(returns.size):
        number = episode_seed(seed, k)
        seed_stream(stream, number)
        reset(env, number, stream, x)
        for j in range(x.size):
            starts[k, j] = x[j]
        returns[k] = 0.0
        for h in range(Q.shape[0]):
            a = best_action(Q[h], low, inverse, cells, x)
            reward, terminated, truncated = advance(env, stream, x, actions[a], y)
            returns[k] += reward
            if terminated or truncated:
                break
            for j in range(x.size):
                x[j] = y[j]


draw_compiled = compiled(draw_all)
play_compiled = compiled(play_all)


# ----------------------------------------------------------------------------------------------- environments in Python


class SettableEnv(NamedTuple):
    """A Gymnasium environment with the verbs of compiled ones; actions are indices into `actions`."""

    env: Any
    actions: Any
    """The actions of the environment, by their index."""
    form: Any = None
    """A state of the form that the environment gives it after a step. It is set before each step; None: it is not set,
    so that the steps of an episode follow each other."""


@reset.implement_plain(SettableEnv)
def reset_settable(env: SettableEnv, seed: int, stream: Any, state: Floats) -> None:
    """Reset with `seed`."""
    state[:] = env.env.reset(seed=int(seed))[0]


@advance.implement_plain(SettableEnv)
def advance_settable(
    env: SettableEnv, stream: Any, state: Floats, action: int, next_state: Floats
) -> tuple[float, bool, bool]:
    """One step; some environments remember that an episode is over, so they are reset then."""
    inside, sets = env.env.unwrapped, env.form is not None
    if sets:
        set_state(inside, state, env.form)
    observation, reward, terminated, truncated, _ = inside.step(env.actions[int(action)])
    next_state[:] = observation
    if sets and (terminated or truncated):
        env.env.reset()
    return float(reward), bool(terminated), bool(truncated)


def set_state(env: Any, state: Floats, form: Any) -> None:
    """Set `env.state`, as an array, tuple or list like `form`."""
    if isinstance(form, np.ndarray):
        env.state = state.astype(form.dtype)
    else:
        env.state = tuple(float(number) for number in state) if isinstance(form, tuple) else list(map(float, state))


# ------------------------------------------------------------------------------------- what an environment must be like


class ActionList(NamedTuple):
    """The actions that are tried."""

    values: Any
    """(A,) what `advance` takes: indices, or the numbers of compiled dynamics with a Box of actions."""
    net: Floats | None
    """(A, d_A) the actions of a Box; None for Discrete ones."""


class Drawn(NamedTuple):
    """An environment from which next states can be drawn."""

    env: gym.Env[Any, Any]
    dynamics: Any
    """Compiled dynamics, or None for an environment in Python."""
    form: Any
    """A state of an environment in Python."""
    low: Floats
    high: Floats

    def actions(self, gaps: int) -> ActionList:
        """The Discrete actions, or a net of a Box with so many gaps along each axis."""
        space: Any = self.env.action_space
        if isinstance(space, gym.spaces.Discrete):
            return ActionList(np.arange(int(space.n)), None)
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
        axes = [np.linspace(a, b, gaps + 1) for a, b in zip(low, high, strict=True)]
        net = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, low.size)
        return ActionList(np.arange(len(net)) if self.dynamics is None else np.ascontiguousarray(net[:, 0]), net)

    def how_many(self, gaps: int) -> float:
        """How many actions that are; without making the net, which may be too large."""
        space: Any = self.env.action_space
        return float(space.n) if isinstance(space, gym.spaces.Discrete) else float(gaps + 1) ** space.low.size

    def world(self, actions: ActionList, sets: bool) -> Any:
        """What the verbs take."""
        if self.dynamics is not None:
            return self.dynamics
        space: Any = self.env.action_space
        if actions.net is None:
            taken: list[Any] = [int(space.start) + int(a) for a in actions.values]
        else:
            taken = [a.reshape(space.shape).astype(space.dtype) for a in actions.net]
        return SettableEnv(self.env, taken, self.form if sets else None)


def drawn_from(env: gym.Env[Any, Any]) -> Drawn:
    """`env` as something to draw from, or a ValueError that says what is missing."""
    space, actions = env.observation_space, env.action_space
    if not isinstance(space, gym.spaces.Box) or len(space.shape) != 1:
        finite = "; for finite problems there is krl.envs.solve_finite"
        raise ValueError(
            "env: its optimal values are not known, and values on a grid need a Box of states of shape (d,), got "
            f"{space}{finite if isinstance(space, gym.spaces.Discrete) else ''}"
        )
    low, high = np.asarray(space.low, np.float64), np.asarray(space.high, np.float64)
    # Where there is no bound, float32 has its largest number.
    if not ((high > low) & (high - low < 1e30)).all():
        raise ValueError(
            "env: its optimal values are not known, and a grid needs bounds for each coordinate of the state; its "
            f"states reach from {low} to {high}. Give the environment an observation_space with bounds that its states "
            "do not leave"
        )
    if not isinstance(actions, gym.spaces.Discrete) and not (
        isinstance(actions, gym.spaces.Box) and actions.is_bounded()
    ):
        raise ValueError(f"env: the actions must be Discrete, or a Box with bounds, got {actions}")
    dynamics = compiled_dynamics(env)
    return Drawn(env, dynamics, state_form(env) if dynamics is None else None, low, high)


def state_form(env: gym.Env[Any, Any]) -> Any:
    """A state after a step; raise ValueError unless the environment's `state` can be set and is what it observes."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer) not in TRANSPARENT:
            raise ValueError(
                f"env: its optimal values are not known, and the wrapper {type(layer).__name__} may change what is "
                f"drawn. {NEEDED}"
            )
        layer = layer.env
    observation, _ = env.reset(seed=0)
    cannot = f"env: its optimal values are not known, and {type(layer).__name__} cannot be set to a state from which "
    cannot += "next states could be drawn: "
    if not hasattr(layer, "state"):
        raise ValueError(f"{cannot}it has no attribute `state`. {NEEDED}")
    for place in ("reset", "step"):
        state = layer.state
        shape, seen = np.shape(state), np.shape(observation)
        if not isinstance(state, np.ndarray | tuple | list) or shape != seen:
            raise ValueError(f"{cannot}its `state` has shape {shape} after {place}, what it observes {seen}. {NEEDED}")
        if not np.allclose(state, observation, rtol=1e-5, atol=1e-6):
            raise ValueError(f"{cannot}after {place} its `state` is {state}, what it observes {observation}. {NEEDED}")
        if place == "reset":
            observation = env.step(env.action_space.sample())[0]
    try:
        set_state(layer, np.asarray(observation, np.float64), state)
    except (AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{cannot}setting its `state` fails, {error}. {NEEDED}") from error
    return state
