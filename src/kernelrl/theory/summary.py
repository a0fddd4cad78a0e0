"""The numbers of the theory for one problem, which `kernelrl theory ENV` prints.

It shows from how many samples, and from how many episodes, the theory is informative: with a bonus above the cap
R_1 = H no value changes, and a regret bound above K·V*_1 is trivial (no algorithm can lose more).
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import gymnasium as gym
import numpy as np

from kernelrl.geometry.kernels import Kernel, resolve_kernel
from kernelrl.theory.bonuses import Problem, best_radius, full_bonus, joint_bonus, simplified_bonus
from kernelrl.theory.covering import log_box_covering
from kernelrl.theory.kernel_constants import moments, qualifying_kernels
from kernelrl.theory.lipschitz import unknown_lipschitz, wasserstein_lipschitz
from kernelrl.theory.regret import (
    bandwidth_exponent,
    better_bandwidth_exponent,
    rates,
    regret_bound,
    regret_exponent,
)

__all__ = ["summarise"]

COUNTS = tuple(10.0**i for i in range(7))
MOST_EPISODES = 10**80


def summarise(
    env_id: str, episodes: int, delta: float = 0.05, bandwidth: float | None = None, regularization: float = 0.01,
    kernel: str | Kernel = "gaussian", stationary: bool = True, lipschitz: tuple[float, float] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The theory's numbers for the environment `env_id` and `episodes` episodes, as JSON."""
    from kernelrl.envs.making import make_environment
    from kernelrl.envs.wrapping import time_limit

    if isinstance(episodes, bool) or episodes != int(episodes) or episodes < 1:
        raise ValueError(f"episodes must be a whole number of at least 1, got {episodes!r}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}")
    for name, value in (("bandwidth", bandwidth), ("regularization", regularization)):
        if value is not None and not (math.isfinite(value) and value > 0.0):
            raise ValueError(f"{name} must be a finite number above 0, got {value!r}")
    g: Kernel = resolve_kernel(kernel)
    if not g.admissible:
        raise ValueError(f"kernel: {g.name} is outside the theory; use {', '.join(qualifying_kernels())}")
    try:
        env = make_environment(env_id)
    except ValueError as error:
        raise ValueError(f"env: {error}") from error
    H = time_limit(env)
    if H is None:
        raise ValueError(f"env: {env_id} has no time limit, and the theory is about episodes of a fixed length")
    widths, actions = box_of(env)
    d = len(widths)
    diameter = math.hypot(*widths)
    if bandwidth is None:
        bandwidth = diameter * episodes ** -bandwidth_exponent(d)
    known: tuple[float, float] | None = lipschitz or getattr(env.unwrapped, "lipschitz_constants", None)
    constants = known or (unknown_lipschitz(episodes) / H, 1.0)
    L = wasserstein_lipschitz(*constants, H)
    problem = Problem(
        H, actions, widths, bandwidth, regularization, g.C1, g.C2, tuple(L.tolist()), constants, stationary
    )
    ceiling = start_value(env)
    return {
        "environment": env_id, "episodes": int(episodes), "delta": delta, "horizon": H, "actions": actions,
        "widths": list(widths), "bandwidth": bandwidth, "regularization": regularization, "kernel": g.name,
        "stationary": stationary, "lipschitz_constants": list(constants), "lipschitz_known": known is not None,
        "lipschitz": L.tolist(),
        "log_covering": {
            "state_actions": problem.log_cover(bandwidth),
            "states": log_box_covering(widths, bandwidth),
            "full_bonus": problem.log_cover(bandwidth**2 / (problem.most_samples(episodes) * H)),
        },
        "bonuses": bonus_table(problem, g, episodes, delta),
        "cap": float(H),
        "regret": regret_table(problem, episodes, delta, g.g4, ceiling, diameter),
        "rates": rate_table(d, H, episodes),
    }  # fmt: skip


def box_of(env: gym.Env[Any, Any]) -> tuple[tuple[float, ...], int]:
    """The widths of the box of states and the number of actions."""
    states, actions = env.observation_space, env.action_space
    if not isinstance(states, gym.spaces.Box) or not isinstance(actions, gym.spaces.Discrete):
        raise ValueError(f"env: states must be a Box and actions Discrete, got {states} and {actions}")
    widths = (states.high.astype(float) - states.low.astype(float)).reshape(-1)
    if not np.isfinite(widths).all():
        raise ValueError("env: the covering number of an unbounded box is infinite; wrap it so that states are bounded")
    return tuple(widths.tolist()), int(actions.n)


def start_value(env: gym.Env[Any, Any]) -> float | None:
    """V*_1 at the start, or None where it is not known."""
    try:
        from kernelrl.envs import solve  # type: ignore[attr-defined, unused-ignore]

        return float(solve(env).start_value)
    except (ImportError, AttributeError, ValueError):
        return None


def bonus_table(problem: Problem, kernel: Kernel, episodes: int, delta: float) -> dict[str, list[float]]:
    """Each bonus of the first step at COUNTS; the joint ones for samples evenly spread around the state."""
    most = problem.most_samples(episodes)
    C = np.array(COUNTS)
    distance, square = moments(kernel, len(problem.widths))
    weight = np.maximum(C - problem.beta, 0.0)
    table = {
        "simplified": simplified_bonus(C, problem.horizon),
        "full, printed": full_bonus(problem, 0, most, episodes, delta, C, "printed"),
        "full, corrected": full_bonus(problem, 0, most, episodes, delta, C),
    }
    for name, normalised in (("joint", False), ("joint, self-normalised", True)):
        radius = best_radius(problem, most, delta, normalised)
        table[name] = joint_bonus(
            problem, 0, most, radius, delta, C, distance * problem.sigma * weight, square * weight, normalised
        )
    return {"count": list(COUNTS), **{name: np.asarray(values).tolist() for name, values in table.items()}}


def regret_table(
    problem: Problem, episodes: int, delta: float, g4: float, ceiling: float | None, diameter: float
) -> dict[str, Any]:
    """The terms of both bounds, what to compare them with, and from which K on they are informative."""
    value = problem.horizon if ceiling is None else ceiling
    answer: dict[str, Any] = {"start_value": ceiling, "ceiling": episodes * float(value)}
    for name, greedy in (("kernel_ucbvi", False), ("greedy", True)):
        bound = regret_bound(problem, episodes, delta, g4, greedy)
        answer[name] = {**dataclasses.asdict(bound), "total": bound.total}
    answer["says_something_from"] = first_useful(problem, delta, g4, float(value), diameter)
    return answer


def first_useful(problem: Problem, delta: float, g4: float, value: float, diameter: float) -> float | None:
    """The first power of ten K with a bound below K·V*, at the bandwidth diameter·K^{-1/(2d+1)}; None: not by 10^80."""
    K = 1
    while K <= MOST_EPISODES:
        sigma = diameter * K ** -bandwidth_exponent(len(problem.widths))
        if regret_bound(dataclasses.replace(problem, sigma=sigma), K, delta, g4).total < K * value:
            return float(K)
        K *= 10
    return None


def rate_table(d: int, horizon: int, episodes: int) -> dict[str, Any]:
    """Exponents, and values without constants."""
    x, better = bandwidth_exponent(d), better_bandwidth_exponent(d, d)
    return {
        "bandwidth_exponent": x, "better_bandwidth_exponent": better, "regret_exponent": regret_exponent(x, d, d),
        "bounds": [
            {"name": rate.name, "horizon_power": rate.horizon_power, "episode_power": rate.episode_power,
             "value": rate.at(horizon, episodes)}
            for rate in rates(d, d)
        ],
    }  # fmt: skip
