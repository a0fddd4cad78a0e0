"""Gymnasium environments as the episode loop sees them: any behind our verbs, one of ours by its dynamics."""

import math
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from kernelrl.envs.interface import advance, reset

__all__ = ["GymEnvironment", "compiled_dynamics", "compiled_horizon", "time_limit"]

TRANSPARENT = (TimeLimit, OrderEnforcing, PassiveEnvChecker)


class GymEnvironment(NamedTuple):
    """Any Gymnasium environment, with the verbs of ours."""

    env: Any
    check_state: Any  # (name, state) → float64 (d,), or an error that says what is wrong
    first_action: int


@reset.implement_plain(GymEnvironment)
def reset_gym(env: GymEnvironment, seed: int, stream: Any, state: Any) -> None:
    """Reset with `seed`; `stream` is not used, the environment has its own."""
    observation, _ = env.env.reset(seed=int(seed))
    state[:] = env.check_state("the environment's start state", observation)


@advance.implement_plain(GymEnvironment)
def advance_gym(env: GymEnvironment, stream: Any, state: Any, action: int, next_state: Any) -> tuple[float, bool, bool]:
    """Take one step."""
    observation, reward, terminated, truncated, _ = env.env.step(int(action) + env.first_action)
    next_state[:] = env.check_state("the environment's next state", observation)
    return float(reward), bool(terminated), bool(truncated)


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
    """The compiled dynamics of `env` if it is one of ours in transparent wrappers only, else None."""
    layer: Any = env
    while isinstance(layer, gym.Wrapper):
        if type(layer) not in TRANSPARENT:
            return None
        layer = layer.env
    if not type(layer).__module__.startswith("kernelrl.envs."):
        return None
    return layer.dynamics


def compiled_horizon(env: gym.Env[Any, Any], horizon: int) -> int:
    """The steps of an episode in the compiled loop: the agent's horizon or the time limit, whichever is first."""
    return int(min(horizon, wrapped_limit(env) or math.inf))
