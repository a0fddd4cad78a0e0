"""`agent.evaluate`: the deployed policy's value, and an agent that stays as it was."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from kernelrl.core.stream import episode_seed
from kernelrl.evaluation import FIRST
from small_envs import Counting, Line


def fitted(**options):
    agent = krl.GreedyKernelUCBVI(bandwidth=0.1, bonus_scale=0.02, representatives=None, lipschitz=2.0, **options)
    agent.fit(gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3), 30, seed=3)
    return agent


@pytest.mark.parametrize(
    "agent",
    [
        krl.GreedyKernelUCBVI(bandwidth=0.1, bonus_scale=0.02, representatives=None, lipschitz=2.0),
        krl.KernelUCBVI(bandwidth=0.1, bonus_scale=0.02, representatives=0.1),
        krl.UCBVI(bins=5, bonus_scale=0.02),
        krl.AdaptiveQL(bonus_scale=0.02),
        krl.RandomAgent(),
    ],
    ids=lambda agent: type(agent).__name__,
)
def test_plays_the_deployed_policy(agent):
    """Against the loop written out."""
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    agent.fit(env, 30, seed=3)
    found = agent.evaluate(env, 12, 5)
    returns = []
    for k in range(12):
        state, _ = env.reset(seed=int(episode_seed(5, FIRST + k)))
        total = 0.0
        for step in range(20):
            state, reward, *_ = env.step(agent.act(state, step))
            total += reward
        returns.append(total)
    np.testing.assert_array_equal(found.returns, returns)
    assert found.mean == np.mean(returns)
    half = 2.2009851600916384 * np.std(returns, ddof=1) / np.sqrt(12)  # t of 11 degrees of freedom
    np.testing.assert_allclose(found.interval, [found.mean - half, found.mean + half])


def test_changes_nothing(tmp_path):
    env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
    agent, other = fitted(), fitted()
    agent.evaluate(env, 3, 3)
    agent.save(tmp_path / "a.krl")
    other.save(tmp_path / "b.krl")
    assert (tmp_path / "a.krl").read_bytes() == (tmp_path / "b.krl").read_bytes()
    np.testing.assert_array_equal(agent.fit(env, 5).returns, other.fit(env, 5).returns)


def test_not_the_episodes_of_a_fit():
    env = Counting(TimeLimit(Line(), 6))
    agent = krl.RandomAgent(reward_range=(-1, 2))
    agent.fit(env, 3, seed=0)
    seeds = {int(episode_seed(0, k)) for k in range(1000)}
    assert not seeds & {int(episode_seed(0, FIRST + k)) for k in range(1000)}
    before = env.steps
    agent.evaluate(env, 4, 0)
    assert env.steps == before + 4 * 6  # a wrapper of the user's is obeyed


def test_ends_when_the_episode_ends():
    env = TimeLimit(Line(actions=3, first=2, ends=True), 50)
    agent = krl.RandomAgent(reward_range=(-1, 2))
    agent.fit(env, 1, seed=0)
    assert len(agent.evaluate(env, 20, 1).returns) == 20


def test_one_episode_says_nothing_about_the_spread():
    agent = fitted()
    found = agent.evaluate(gym.make("kernelrl/TwinRooms-v0"), 1)
    assert found.interval == (-np.inf, np.inf)


def test_refusals():
    env = gym.make("kernelrl/TwinRooms-v0")
    with pytest.raises(RuntimeError, match="not been started"):
        krl.RandomAgent().evaluate(env, 3)
    agent = fitted()
    with pytest.raises(ValueError, match="episodes"):
        agent.evaluate(env, 0)
    with pytest.raises(ValueError, match="seed"):
        agent.evaluate(env, 3, -1)
    with pytest.raises(ValueError, match="states"):
        agent.evaluate(TimeLimit(Line(), 3), 3)
