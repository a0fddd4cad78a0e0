"""The examples of docs/extending.md keep what the package's own parts promise."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.jit.stream import episode_seed

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

from own_algorithm import OptimisticQLearning

STATES, EPISODES = np.linspace(0.0, 1.0, 9)[:, None], 40


def read(agent):
    """All that can be read of an agent."""
    names = ("q_values", "values", "counts")
    found = {(name, h): getattr(agent, name)(STATES, h).tolist() for name in names for h in (0, 1)}
    return found | {("act", h): [agent.act(x, h) for x in STATES] for h in (0, 1)}


def learn(episodes=EPISODES, driver="compiled", **options):
    """An agent that has learnt on Ramp, with its history."""
    agent = OptimisticQLearning(**options)
    return agent, agent.fit("kernelrl/Ramp-v0", episodes, seed=3, driver=driver)


@pytest.mark.parametrize("options", [{}, {"reward_range": (-0.5, 1.0), "bins": 4, "rate": 0.5}], ids=["auto", "given"])
def test_own_algorithm_by_both_drivers(options):
    one, history = learn(**options)
    other, again = learn(driver="python", **options)
    assert np.array_equal(history.returns, again.returns)
    assert np.array_equal(history.optimistic_values, again.optimistic_values)
    assert read(one) == read(other)
    assert one.counts(STATES, 0).sum() > 0 and one.values(STATES, 0).min() < one.values(STATES, 0).max()


def test_own_algorithm_in_parts_and_files(tmp_path):
    """fit(n), save, load, fit(m) is fit(n+m)."""
    whole, history = learn()
    agent, first = learn(15)
    agent.save(tmp_path / "agent.krl")
    loaded = krl.load(tmp_path / "agent.krl")
    assert type(loaded) is OptimisticQLearning and repr(loaded) == repr(agent)
    assert read(loaded) == read(agent)
    second = loaded.fit("kernelrl/Ramp-v0", EPISODES - 15)
    assert np.array_equal(np.concatenate([first.returns, second.returns]), history.returns)
    assert read(loaded) == read(whole)


def test_own_algorithm_by_hand():
    whole, history = learn()
    agent, env = OptimisticQLearning(), gym.make("kernelrl/Ramp-v0")
    agent.start(env.observation_space, env.action_space, horizon=2, seed=3)
    for k in range(EPISODES):
        x, _ = env.reset(seed=int(episode_seed(3, k)))
        agent.begin_episode()
        for h in range(2):
            a = agent.choose(x, h)
            y, r, terminated, _, _ = env.step(a)
            agent.observe(x, a, r, y, h, terminated)
            x = y
        agent.end_episode()
    assert read(agent) == read(whole) and agent.episodes == len(history)


def test_own_algorithm_learns_and_is_evaluated():
    agent, _ = learn(400)
    best = krl.envs.solve(gym.make("kernelrl/Ramp-v0")).values(np.array([[0.5]]), 0)[0]
    found = agent.evaluate("kernelrl/Ramp-v0", 200)
    assert found.mean == pytest.approx(best, abs=0.01)
    assert agent.settings_used()["bins"] == 10


def test_own_algorithm_keeps_what_it_learnt_when_the_range_widens():
    """With rewards mapped from a range twice as wide, values that were lowered keep their distance from the cap."""
    agent = OptimisticQLearning(reward_range=(0, 1))
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(2), 1, seed=0)
    for reward in (0.0, 2.0):
        before = agent.q_values([[0.5]], 0)[0]
        agent.begin_episode()
        agent.observe([0.5], int(reward > 0), reward, [0.5], 0)
        if reward:
            with pytest.warns(UserWarning, match="reward_range: the reward 2.0 is outside"):
                agent.end_episode()
        else:
            agent.end_episode()
    assert agent.rewards.high == 2.0
    assert agent.q_values([[0.5]], 0)[0, 0] == pytest.approx(before[0] + 1.0)  # the rise of the upper end


def test_own_algorithm_is_checked_as_ours_are():
    krl.testing.check_agent(OptimisticQLearning, "kernelrl/Ramp-v0")
