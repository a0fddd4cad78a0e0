"""The episode loop, and the two ways to drive it.

`run_episodes` is the one loop there is. Over an environment of ours it runs compiled (`run_compiled`), over any other
as plain Python, with the environment behind a `GymEnvironment`; either way it calls the same compiled functions of the
algorithm, so both give the same numbers to the last bit.
"""

import math
from typing import Any, NamedTuple

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit

from kernelrl.algorithms.interface import begin_episode, choose, end_episode, has_room, observe, read_values
from kernelrl.core.compile import compiled
from kernelrl.core.stream import episode_seed
from kernelrl.envs.interface import advance, reset

__all__ = ["GymEnvironment", "compiled_dynamics", "run_compiled", "run_episodes", "time_limit"]

TRANSPARENT = (TimeLimit, OrderEnforcing, PassiveEnvChecker)
SLACK = 1e-9  # of rounding in rewards mapped to [0, 1]


def run_episodes(
    model: Any, env: Any, stream: Any, x: Any, y: Any, seed: Any, first: Any, count: Any,
    horizon: Any, lowest: Any, factor: Any, returns: Any, lengths: Any, values: Any, bad: Any,
) -> Any:  # fmt: skip
    """Play episodes `first` … `first`+`count`-1; return how many were played before room ran out.

    `values` takes the optimistic V_0 at each episode's first state, as it is when the episode has begun. Rewards are
    mapped to (reward-lowest)·factor. One outside [0, 1] ends the run: `bad` (2,) takes 1 and the reward.
    """
    for k in range(count):
        if not has_room(model):
            return k
        reset(env, episode_seed(seed, first + k), stream, x)
        begin_episode(model)
        values[k] = read_values(model, x, 0)
        total = 0.0
        steps = 0
        for h in range(horizon):
            a = int(choose(model, x, h))  # a float when Python calls it
            reward, terminated, truncated = advance(env, stream, x, a, y)
            r = (reward - lowest) * factor
            if not (-SLACK <= r <= 1.0 + SLACK):
                bad[0] = 1.0
                bad[1] = reward
                return k
            observe(model, x, a, min(max(r, 0.0), 1.0), y, h, terminated)
            total += reward
            steps += 1
            for j in range(x.size):
                x[j] = y[j]
            if terminated or truncated:
                break
        end_episode(model)
        returns[k] = total
        lengths[k] = steps
    return count


run_compiled = compiled(run_episodes)


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
