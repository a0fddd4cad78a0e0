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
from kernelrl.envs.adapter import GymEnvironment
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
    # Compiled dynamics have no state of their own, so all episodes can be at the same step, which needs fewer calls.
    together = 1 if isinstance(world, GymEnvironment) else episodes
    parts = [play(agent, world, horizon, seed, k, together) for k in range(0, episodes, together)]
    returns = np.concatenate(parts)
    return Evaluation(float(returns.mean()), t_interval(returns), returns)


def play(agent: Agent, world: Any, horizon: int, seed: int, first: int, n: int) -> npt.NDArray[np.float64]:
    """The returns (n,) of episodes `first` … `first`+n-1, played side by side."""
    returns, d = np.zeros(n), agent._low.size
    states, streams, y = np.zeros((n, d)), np.zeros((n, 4), np.uint64), np.zeros(d)
    for k in range(n):
        reset(world, episode_seed(seed, FIRST + first + k), streams[k], states[k])
    playing = list(range(n))
    for h in range(horizon):
        actions, going = agent._deployed_actions(states[playing], h).tolist(), []
        for k, action in zip(playing, actions, strict=True):
            reward, terminated, truncated = advance(world, streams[k], states[k], action, y)
            returns[k] += reward
            states[k] = y
            if not (terminated or truncated):
                going.append(k)
        playing = going
        if not playing:
            break
    return returns


def t_interval(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """95 % interval of the mean of `values` (n,)."""
    from scipy.stats import t

    mean, n = float(values.mean()), values.size
    if n < 2:
        return -np.inf, np.inf
    half = float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half
