"""How good the policy to deploy is: plays it and changes nothing in the agent.

The episodes' returns R_1 … R_n are independent, so their mean has the interval mean ± t·s/√n, with s the standard
deviation and t the 97.5 % point of Student's distribution with n-1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.core.stream import episode_seed

if TYPE_CHECKING:
    from kernelrl.agent import Agent

__all__ = ["Evaluation", "evaluate"]

FIRST = 2**40  # episodes of `fit` are numbered from 0, so those of an evaluation are others even with the same seed


@dataclass(frozen=True)
class Evaluation:
    """The deployed policy's value, in the environment's own units."""

    mean: float
    """The mean return."""
    interval: tuple[float, float]
    """95 % confidence interval of the mean; from one episode, the whole line."""
    returns: npt.NDArray[np.float64]
    """(episodes,) the return of each episode."""


def evaluate(agent: Agent, env: gym.Env[Any, Any], episodes: int, horizon: int, seed: int) -> Evaluation:
    """Play `episodes` episodes of at most `horizon` steps by `agent.act`."""
    returns = np.zeros(episodes)
    for k in range(episodes):
        state, _ = env.reset(seed=int(episode_seed(seed, FIRST + k)))
        for step in range(horizon):
            state, reward, terminated, truncated, _ = env.step(agent.act(state, step))
            returns[k] += float(reward)
            if terminated or truncated:
                break
    mean = float(returns.mean())
    return Evaluation(mean, t_interval(returns), returns)


def t_interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean of `values` (n,)."""
    from scipy.stats import t

    mean, n = float(values.mean()), values.size
    if n < 2:
        return -np.inf, np.inf
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half
