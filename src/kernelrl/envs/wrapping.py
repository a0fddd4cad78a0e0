"""What is inside Gymnasium's wrappers: compiled dynamics and time limits."""

from __future__ import annotations

import math
from typing import Any

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from kernelrl.envs import ENVIRONMENTS
from kernelrl.envs.compiled import CompiledEnv

__all__ = ["compiled_dynamics", "compiled_horizon", "is_shipped", "time_limit", "why_not_compiled"]

TRANSPARENT = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


def time_limit(env: gym.Env[Any, Any]) -> int | None:
    """The number of steps after which `env` is truncated or, without a TimeLimit wrapper, its registered limit."""
    steps = wrapped_limit(env)
    if steps is None and env.spec is not None:
        steps = env.spec.max_episode_steps
    return None if steps is None or steps < 1 else int(steps)  # in Gymnasium -1 means no limit


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
    """The compiled dynamics of `env`, if it has them and all its wrappers are transparent, else None."""
    if why_not_compiled(env):
        return None
    inside: Any = env.unwrapped
    if not is_shipped(env):
        inside.try_dynamics()
    return inside.dynamics


def why_not_compiled(env: gym.Env[Any, Any]) -> str:
    """Why the episodes of `env` cannot run as compiled code; empty if they can."""
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
    if may_mask(layer):
        return (
            f"{type(layer).__name__} has an info of its own, whose action_mask compiled episodes would not read; if it "
            "never has one, say masks_actions = False in the class"
        )
    return ""


def may_mask(env: CompiledEnv) -> bool:
    """Whether the info of `env` may have an action mask: a user's own method may, unless the class says otherwise."""
    origin = next(cls for cls in type(env).__mro__ if "info" in cls.__dict__)
    return not origin.__module__.startswith("kernelrl.") and env.masks_actions is not False


def is_shipped(env: gym.Env[Any, Any]) -> bool:
    """Whether `env` is one of this package's own."""
    cls = type(env.unwrapped)
    return any(entry_point == f"{cls.__module__}:{cls.__qualname__}" for entry_point, _ in ENVIRONMENTS.values())


def compiled_horizon(env: gym.Env[Any, Any], horizon: int) -> int:
    """The steps of an episode in the compiled loop: the agent's horizon or the time limit, whichever is smaller."""
    return int(min(horizon, wrapped_limit(env) or math.inf))
