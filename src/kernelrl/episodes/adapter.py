"""Gymnasium environments as the episode loop sees them: any behind our verbs, a compiled one by its dynamics."""

import math
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from kernelrl.agents.reward_range import as_flag, as_reward
from kernelrl.envs import ENVIRONMENTS
from kernelrl.envs.compiled import CompiledEnv
from kernelrl.envs.interface import advance, reset

__all__ = ["GymEnvironment", "compiled_dynamics", "compiled_horizon", "is_shipped", "time_limit", "why_not_compiled"]

OLD = "; environments of the old Gym need a wrapper of Gymnasium's"
TRANSPARENT = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


class GymEnvironment(NamedTuple):
    """Any Gymnasium environment, with the verbs of ours."""

    env: Any
    check_state: Any  # (name, state) → float64 (d,), or an error that says what is wrong
    first_action: int
    records: list[Any] | None = None  # takes every episode, for `kernelrl.agents.recovery`


@reset.implement_plain(GymEnvironment)
def reset_gym(env: GymEnvironment, seed: int, stream: Any, state: Any) -> None:
    """Reset with `seed`; `stream` is not used, the environment has its own."""
    given = env.env.reset(seed=int(seed))
    if not (isinstance(given, tuple) and len(given) == 2):
        raise TypeError(f"env: reset must return (observation, info), got {short(given)}{OLD}")
    state[:] = env.check_state("the environment's start state", given[0])
    if env.records is not None:
        env.records.append((state.copy(), []))


@advance.implement_plain(GymEnvironment)
def advance_gym(env: GymEnvironment, stream: Any, state: Any, action: int, next_state: Any) -> tuple[float, bool, bool]:
    """Take one step."""
    given = env.env.step(int(action) + env.first_action)
    if not (isinstance(given, tuple) and len(given) == 5):
        raise TypeError(
            f"env: step must return (observation, reward, terminated, truncated, info), got {short(given)}{OLD}"
        )
    observation, reward, terminated, truncated, _ = given
    reward = as_reward(reward, "the environment's reward")
    terminated = as_flag(terminated, "the environment's terminated")
    truncated = as_flag(truncated, "the environment's truncated")
    next_state[:] = env.check_state("the environment's next state", observation)
    if env.records is not None:
        env.records[-1][1].append((reward, next_state.copy(), terminated, truncated))
    return reward, terminated, truncated


def short(given: Any) -> str:
    """What an environment returned, in a few words."""
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else f"{given!r:.60}"


def time_limit(env: gym.Env[Any, Any]) -> int | None:
    """The number of steps after which `env` is truncated or, where nothing does that, was registered to be."""
    steps = wrapped_limit(env)
    if steps is None and env.spec is not None:
        steps = env.spec.max_episode_steps
    return None if steps is None or steps < 1 else int(steps)  # Gymnasium takes -1 for no limit


def wrapped_limit(env: gym.Env[Any, Any]) -> int | None:
    """The smallest number of steps after which a `TimeLimit` around `env` truncates."""
    limits = []
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if isinstance(layer, TimeLimit):
            limits.append(int(layer._max_episode_steps))
        layer = layer.env
    return min(limits, default=None)


def compiled_dynamics(env: gym.Env[Any, Any]) -> Any:
    """The compiled dynamics of `env` if it has such, in transparent wrappers only, else None."""
    if why_not_compiled(env):
        return None
    inside: Any = env.unwrapped
    if not is_shipped(env):
        inside.try_dynamics()
    return inside.dynamics


def why_not_compiled(env: gym.Env[Any, Any]) -> str:
    """What keeps the episodes of `env` from running as compiled code; empty if nothing does."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer) not in TRANSPARENT:
            return f"the wrapper {type(layer).__name__} may change what the agent sees"
        layer = layer.env
    if not isinstance(layer, CompiledEnv):
        return f"{type(layer).__name__} is no krl.envs.CompiledEnv"
    for name in ("reset", "step"):
        if getattr(getattr(layer, name), "__func__", None) is not getattr(CompiledEnv, name):
            return f"{type(layer).__name__} has a {name} of its own"
    return ""


def is_shipped(env: gym.Env[Any, Any]) -> bool:
    """Whether `env` is one of this package's own."""
    cls = type(env.unwrapped)
    return any(entry_point == f"{cls.__module__}:{cls.__qualname__}" for entry_point, _ in ENVIRONMENTS.values())


def compiled_horizon(env: gym.Env[Any, Any], horizon: int) -> int:
    """The steps of an episode in the compiled loop: the agent's horizon or the time limit, whichever is first."""
    return int(min(horizon, wrapped_limit(env) or math.inf))
