"""The value of the policy to deploy, estimated by playing it; the agent does not change.

The episodes' returns G_1 … G_n are independent. With their mean Ḡ and sample variance s² there are two intervals for
the policy's value. Student's, Ḡ ± t·s/√n, holds for returns that are roughly normal. It fails where rewards are rare:
if one episode in a thousand has a reward, a third of all samples of a thousand contain none, and the interval has width
0. For returns of any distribution in a known range of width W, with probability at least 1-δ (Maurer and Pontil,
Empirical Bernstein Bounds and Sample Variance Penalization, 2009, theorem 4)

    E[G] ≥ Ḡ - √(2·s²·log(2/δ)/n) - 7·W·log(2/δ)/(3·(n-1)),

the same on the other side, and both at once with log(4/δ). An episode of at most H steps with rewards in [low, high]
may end early, after which nothing is collected, so that returns lie in [H·min(low, 0), H·max(high, 0)].

The gap of a policy is the mean over start states of V*(x) - V^π(x). If V↑ ≥ V* is certified, the mean of
D_i = V↑(x_i) - G_i over episodes from x_i estimates an upper bound of it, and D_i lies in a range of width 2·W.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.advice import warn_of_loss
from kernelrl.agents.masking import check_given
from kernelrl.agents.reward_range import SLACK
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.wrapping import compiled_dynamics, compiled_horizon, is_shipped
from kernelrl.episodes.adapter import GymEnvironment
from kernelrl.episodes.masked import FROM_INFO
from kernelrl.episodes.on_net import on_net
from kernelrl.jit.stream import episode_seed

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Evaluation", "PolicyGap", "empirical_bernstein", "evaluate", "policy_gap", "t_interval"]

Floats = npt.NDArray[np.float64]

FIRST = 2**40  # first episode of an evaluation; `fit` counts from 0, so they differ even with the same seed


@dataclass(frozen=True)
class Evaluation:
    """The deployed policy's value, in the environment's own units."""

    mean: float
    """The mean return."""
    interval: tuple[float, float] | None
    """Interval that covers the value with probability 1-δ for any distribution of returns, given the reward range;
    None if the user gave no range, or if a reward was outside it."""
    t_interval: tuple[float, float]
    """Student's interval, narrower, for returns that are roughly normal; infinite for one episode."""
    returns: Floats
    """(episodes,) the return of each episode."""


@dataclass(frozen=True)
class PolicyGap:
    """How far the deployed policy is from the best, on average over start states, in the environment's own units."""

    bound: float
    """Upper bound on the mean of V*_1(x_1) - V^π(x_1)."""
    mean_gap: float
    """The mean of V↑_1(x_1) - G over the episodes played, without a confidence margin."""
    interval: tuple[float, float]
    """Two-sided interval for the mean of V↑_1(x_1) - V^π(x_1), which is the gap plus V↑ - V*."""
    upper_values: Floats
    """(episodes,) the certified V↑_1 at each episode's start."""
    returns: Floats
    """(episodes,) the return of each episode."""


class Played(NamedTuple):
    """Episodes of the deployed policy."""

    returns: Floats  # (n,)
    starts: Floats  # (n, d)
    rewards: tuple[float, float]  # the lowest and the highest
    cut: bool  # whether one was truncated before the agent's horizon


def evaluate(agent: Agent, env: gym.Env[Any, Any], episodes: int, seed: int, delta: float) -> Evaluation:
    """What `agent.evaluate` returns."""
    check_delta(delta)
    played, horizon = play_episodes(agent, env, episodes, seed)
    returns = played.returns
    interval = None
    kept = (agent.rewards.low, agent.rewards.high) == agent.reward_range  # given by the user and never widened
    if isinstance(agent.reward_range, tuple) and kept and inside(played.rewards, agent.reward_range):
        lowest, highest = possible_returns(agent.reward_range, horizon)
        margin = empirical_bernstein(returns, highest - lowest, delta)
        mean = float(returns.mean())
        interval = max(lowest, mean - margin), min(highest, mean + margin)
    evaluation = Evaluation(float(returns.mean()), interval, t_interval(returns, delta), returns)
    warn_of_loss(agent.evaluated, name_of(env), agent.episodes, evaluation.t_interval)
    return evaluation


def name_of(env: gym.Env[Any, Any]) -> str:
    """The id of an environment, or else the name of its class."""
    return type(env.unwrapped).__name__ if env.spec is None else env.spec.id


def policy_gap(
    agent: Any, env: gym.Env[Any, Any], episodes: int, seed: int, delta: float, upper_bound: Any,
    reward_range: tuple[float, float],
) -> PolicyGap:  # fmt: skip
    """What `policy_gap` of agents and of certificates returns; `upper_bound(state)` is certified to be above V*_1."""
    check_delta(delta)
    played, _ = play_episodes(agent, env, episodes, seed)
    if played.cut:
        raise ValueError(
            f"env: it was truncated before {agent.spaces.horizon} steps, the agent's horizon, so that returns are not "
            "those of whole episodes; make the agent with a horizon of at most the environment's time limit"
        )
    if not inside(played.rewards, reward_range):
        low, high = played.rewards
        raise ValueError(f"reward_range: rewards from {low:g} to {high:g} were seen, outside {reward_range}")
    lowest, highest = possible_returns(reward_range, agent.spaces.horizon)
    starts, which = np.unique(played.starts, axis=0, return_inverse=True)
    bounds = [upper_bound(x.reshape(agent.spaces.shape)) for x in starts]
    upper = np.clip(bounds, lowest, highest)[which.reshape(-1)]
    gaps = upper - played.returns  # (n,)
    mean, margin = float(gaps.mean()), empirical_bernstein(gaps, 2.0 * (highest - lowest), delta)
    most = highest - lowest
    interval = max(-most, mean - margin), min(most, mean + margin)
    return PolicyGap(max(0.0, interval[1]), mean, interval, upper, played.returns)


# ----------------------------------------------------------------------------------------------------------- intervals


def empirical_bernstein(returns: npt.ArrayLike, width: float, delta: float, sides: int = 2) -> float:
    """A bound on the error of the mean of independent `returns` (n,), each in a range of `width`.

    With probability 1-δ the mean is not too high by more than that (`sides=1`; or not too low, but not both), or
    neither too high nor too low (`sides=2`). Infinite for one return. The formula is in the module's docstring.
    """
    check_delta(delta)
    if sides not in (1, 2):
        raise ValueError(f"sides must be 1 or 2, got {sides!r}")
    values = np.asarray(returns, float)
    n = values.size
    if n < 2:
        return math.inf
    log = math.log(2.0 * sides / delta)
    return math.sqrt(2.0 * float(values.var(ddof=1)) * log / n) + 7.0 * width * log / (3.0 * (n - 1))


def t_interval(values: Floats, delta: float = 0.05) -> tuple[float, float]:
    """Student's interval of the mean of `values` (n,)."""
    from scipy.special import stdtrit  # the quantile of Student's t

    mean, n = float(values.mean()), values.size
    if n < 2:
        return -np.inf, np.inf
    half = float(stdtrit(n - 1, 1.0 - delta / 2.0) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean + half


def check_delta(delta: float) -> None:
    """Raise ValueError unless `delta` is between 0 and 1."""
    if isinstance(delta, bool) or not isinstance(delta, int | float) or not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be a number between 0 and 1, such as 0.05, got {delta!r}")


def possible_returns(reward_range: tuple[float, float], horizon: int) -> tuple[float, float]:
    """The lowest and the highest return of an episode of at most `horizon` steps, which may end early."""
    low, high = reward_range
    return horizon * min(low, 0.0), horizon * max(high, 0.0)


def inside(rewards: tuple[float, float], reward_range: tuple[float, float]) -> bool:
    """Whether rewards from lowest to highest lie in the range, up to rounding."""
    slack = SLACK * (reward_range[1] - reward_range[0])
    return bool(rewards[0] >= reward_range[0] - slack and rewards[1] <= reward_range[1] + slack)


# ------------------------------------------------------------------------------------------------------------- playing


def play_episodes(agent: Agent, env: gym.Env[Any, Any], episodes: int, seed: int) -> tuple[Played, int]:
    """Play the deployed policy; also return the largest possible number of steps of an episode."""
    agent.check_started()
    agent.get_ready(env)
    # This package's environments need no checks: the same episodes without Gymnasium's wrappers are much faster.
    world = compiled_dynamics(env) if is_shipped(env) else None
    if world is None:
        adapted = GymEnvironment(env, agent.spaces.check_state, agent.spaces.action, [None])
        parts = [play(agent, adapted, agent.spaces.horizon, seed, k, 1) for k in range(episodes)]
        horizon = agent.spaces.horizon
    else:
        # Compiled dynamics have no state, so all episodes can be played step by step together, with fewer calls.
        horizon = compiled_horizon(env, agent.spaces.horizon)
        parts = [play(agent, on_net(world, agent.spaces.net), horizon, seed, 0, episodes)]
    played = Played(
        np.concatenate([part.returns for part in parts]),
        np.concatenate([part.starts for part in parts]),
        (min(part.rewards[0] for part in parts), max(part.rewards[1] for part in parts)),
        any(part.cut for part in parts),
    )
    return played, horizon


def play(agent: Agent, world: Any, horizon: int, seed: int, first: int, n: int) -> Played:
    """Episodes `first` … `first`+n-1 of at most `horizon` steps, side by side."""
    returns, d = np.zeros(n), agent.spaces.dimensions
    states, streams, y = np.zeros((n, d)), np.zeros((n, 4), np.uint64), np.zeros(d)
    for k in range(n):
        reset(world, episode_seed(seed, FIRST + first + k), streams[k], states[k])
    starts, lowest, highest, cut = states.copy(), math.inf, -math.inf, False
    playing = list(range(n))
    for h in range(horizon):
        actions, going = actions_of(agent, world, states[playing], h), []
        for k, action in zip(playing, actions, strict=True):
            reward, terminated, truncated = advance(world, streams[k], states[k], action, y)
            returns[k] += reward
            lowest, highest = min(lowest, reward), max(highest, reward)
            states[k] = y
            if not (terminated or truncated):
                going.append(k)
            cut |= truncated and not terminated and h + 1 < agent.spaces.horizon
        playing = going
        if not playing:
            break
    return Played(returns, starts, (lowest, highest), bool(cut or (playing and horizon < agent.spaces.horizon)))


def actions_of(agent: Agent, world: Any, states: Floats, h: int) -> list[int]:
    """The actions of the deployed policy, among those that the mask of an environment in Python allows."""
    mask = world.mask[0] if isinstance(world, GymEnvironment) else None
    if mask is None:
        found = agent.deployed_actions(states, h)
    else:
        found = agent.deployed_among(states, h, check_given(agent, mask, FROM_INFO, states[0])[None])
    numbers: list[int] = found.tolist()
    return numbers
