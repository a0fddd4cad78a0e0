"""How good the policy to deploy is: plays it and changes nothing in the agent.

The episodes' returns R_1 … R_n are independent, so their mean has the interval mean ± t·s/√n, with s the standard
deviation and t the 97.5 % point of Student's distribution with n-1 degrees of freedom.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.core.stream import episode_seed
from kernelrl.envs.interface import advance, reset

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


def evaluate(agent: Agent, world: Any, horizon: int, episodes: int, seed: int) -> Evaluation:
    """Play `episodes` episodes of at most `horizon` steps in `world`, compiled dynamics or a `GymEnvironment`."""
    returns, d = np.zeros(episodes), agent._low.size
    x, y, stream = np.zeros(d), np.zeros(d), np.zeros(4, np.uint64)
    for k in range(episodes):
        reset(world, episode_seed(seed, FIRST + k), stream, x)
        for h in range(horizon):
            reward, terminated, truncated = advance(world, stream, x, agent._deployed_action(x, h), y)
            returns[k] += reward
            x[:] = y
            if terminated or truncated:
                break
    return Evaluation(float(returns.mean()), t_interval(returns), returns)


def t_interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean of `values` (n,)."""
    from scipy.stats import t

    mean, n = float(values.mean()), values.size
    if n < 2:
        return -np.inf, np.inf
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half
