"""Where all rewards are costs and doing nothing costs nothing, agents go on looking for something better."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl


class Idle(gym.Env):
    """Moves cost something, staying costs nothing, and the far end pays; `ends` ends an episode when staying."""

    def __init__(self, ends=False):
        self.observation_space, self.action_space = gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(3)
        self.ends = ends

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = 0.5
        return np.array([self.x]), {}

    def step(self, action):
        self.x = float(np.clip(self.x + 0.07 * (action - 1), 0.0, 1.0))
        reward = -0.1 * abs(action - 1.0) + 5.0 * (self.x > 0.98)
        return np.array([self.x]), reward, bool(self.ends and action == 1), False, {}


def idle(ends=False, steps=12):
    return gym.wrappers.TimeLimit(Idle(ends), steps)


@pytest.mark.parametrize("cls", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_it_looks_for_more_where_doing_nothing_costs_nothing(cls):
    agent = cls()
    history = agent.fit(idle(), 120, seed=0, progress=False)
    assert history.returns.max() > 3.0  # the far end was found
    assert agent.settings_used()["reward_range"][1] > 4.0


def play_once(agent, actions, ends=False):
    """One episode with these actions."""
    env = idle(ends)
    agent.begin_episode()
    x, _ = env.reset(seed=0)
    for h, a in enumerate(actions):
        y, r, terminated, _, _ = env.step(a)
        agent.observe(x, a, r, y, h, terminated)
        x = y
        if terminated:
            break
    agent.end_episode()
    return agent.settings_used()["reward_range"]


def started(ends=False, **options):
    agent = krl.KernelUCBVI(**options)
    env = idle(ends)
    agent.start(env.observation_space, env.action_space, 12, 0)
    return agent


def test_the_rule():
    agent = started()
    assert play_once(agent, [1] * 12) == (0.0, 1.0)  # only rewards of 0: no range yet
    assert play_once(agent, [0] * 12) == (-0.1, 0.0)
    assert play_once(agent, [0] + [1] * 11) == (-0.1, 0.0)  # something was spent
    assert play_once(agent, [1] * 11) == (-0.1, 0.0)  # it was cut short
    assert play_once(agent, [1] * 12) == (-0.1, 0.1)
    assert play_once(agent, [1] * 12) == (-0.1, 0.1)  # once


def test_an_end_without_costs_is_as_good_as_can_be():
    agent = started(ends=True)
    assert play_once(agent, [0] * 12, ends=True) == (-0.1, 0.0)
    assert play_once(agent, [1], ends=True) == (-0.1, 0.0)


def test_a_range_that_is_given_stays():
    agent = started(reward_range=(-0.1, 0.0))
    assert play_once(agent, [1] * 12) == (-0.1, 0.0)


def test_an_empty_episode_says_nothing():
    agent = started()
    play_once(agent, [0] * 12)
    agent.begin_episode()
    agent.end_episode()
    assert agent.settings_used()["reward_range"] == (-0.1, 0.0)


def test_an_episode_that_is_half_done_goes_on(tmp_path):
    agent = started()
    play_once(agent, [0] * 12)
    agent.begin_episode()
    agent.observe([0.5], 1, 0.0, [0.5], 0)
    agent.save(tmp_path / "half.krl")
    for one in (agent, krl.load(tmp_path / "half.krl")):
        for h in range(1, 12):
            one.observe([0.5], 1, 0.0, [0.5], h)
        one.end_episode()
        assert one.settings_used()["reward_range"] == (-0.1, 0.1)


class Cancels(Idle):
    """The first episode costs 10, the second 1, which it then pays back."""

    episode = 0

    def reset(self, *, seed=None, options=None):
        self.episode, self.rewards = self.episode + 1, [-10.0, 0.0] if self.episode == 0 else [-1.0, 1.0]
        return super().reset(seed=seed)

    def step(self, action):
        return np.array([0.5]), self.rewards.pop(0), False, False, {}


def test_rewards_that_cancel_are_not_free():
    agent = krl.UCBVI(bins=2)
    agent.fit(gym.wrappers.TimeLimit(Cancels(), 2), 2, seed=0, progress=False)
    assert agent.settings_used()["reward_range"] == (-10.0, 1.0)


def test_parts_of_a_fit_agree():
    whole, parts = krl.UCBVI(bins=6), krl.UCBVI(bins=6)
    returns = whole.fit(idle(), 60, seed=3, progress=False).returns
    both = [parts.fit(idle(), n, seed=3, progress=False).returns for n in (7, 53)]
    assert np.array_equal(np.concatenate(both), returns)
    assert (returns == 0.0).any() and whole.settings_used()["reward_range"][1] > 0.0
