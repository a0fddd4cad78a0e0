"""Bandwidths that change: nothing is lost, and the naive algorithms agree that are told the same bandwidths."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from pairs import Pair, some_states
from problems import random_log


def falling(k):
    """A schedule of the user's own."""
    return 0.25 / (1 + 0.05 * k)


@pytest.mark.parametrize(
    ("greedy", "merge", "lipschitz"),
    [(False, 0.0613, None), (False, None, 0.8), (False, None, None), (True, 0.0613, None), (True, None, 0.8)],
)
def test_against_naive(greedy, merge, lipschitz):
    rng = np.random.default_rng(7)
    log = random_log(rng, H=3, A=2, d=2, transitions=160, sites=4)
    pair = Pair(greedy, log, sigma=falling(0), merge=merge, lipschitz=lipschitz, bandwidth=falling)
    states = some_states(log, rng)
    naive, deployed = ((it.naive if merge else it) for it in (pair.naive, pair.deployed))
    used, changes = falling(0), 0
    for k, episode in enumerate(log.episodes):
        if abs(falling(k) / used - 1) > 0.05:
            used, changes = falling(k), changes + 1
            naive.kernel["sigma"] = deployed.kernel["sigma"] = used
        pair.begin_episode()
        for t in episode:
            pair.observe(t)
        pair.agent.end_episode()
    assert changes > 5
    naive.begin_episode() if not greedy else None
    pair.agent.begin_episode()
    pair.check(states)
    pair.check_policies(states[:8])
    pair.check_moved(states)


def test_power():
    sigma = krl.schedules.Power(0.05, 0.012, 0.25)
    assert sigma(0) == 0.05
    assert sigma(300) == pytest.approx(0.05 / 4**0.25)
    assert sigma(10**6) == 0.012
    with pytest.raises(ValueError, match="minimum"):
        krl.schedules.Power(0.05, 0.1, 0.25)


def test_the_default_merge_distance():
    for bandwidth, merge in ((0.03, 0.06), (krl.schedules.Power(0.05, 0.02, 0.25), 0.04)):
        agent = krl.KernelUCBVI(bandwidth=bandwidth)
        agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), 3, 0)
        assert agent.model.store.reps.merge == merge
    with pytest.raises(ValueError, match="smallest bandwidth"):
        krl.KernelUCBVI(bandwidth=falling)


def test_a_function_of_the_users_own_is_saved_by_name(tmp_path):
    env = gym.make("kernelrl/TwinRooms-v0")
    agent = krl.GreedyKernelUCBVI(bandwidth=falling, representatives=0.1)
    whole = krl.GreedyKernelUCBVI(bandwidth=falling, representatives=0.1).fit(env, 40, seed=3)
    first = agent.fit(env, 25, seed=3)
    agent.save(tmp_path / "agent.krl")
    loaded = krl.load(tmp_path / "agent.krl", trust=True)
    assert loaded.bandwidth is falling
    second = loaded.fit(env, 15)
    assert np.array_equal(np.concatenate([first.returns, second.returns]), whole.returns)


@pytest.mark.parametrize("wrong", [0.0, -1.0, float("nan"), "wide"])
def test_a_schedule_that_gives_no_bandwidth(wrong):
    agent = krl.GreedyKernelUCBVI(bandwidth=lambda k: 0.1 if k < 5 else wrong, representatives=0.1)
    with pytest.raises(ValueError, match="bandwidth"):
        agent.fit(gym.make("kernelrl/TwinRooms-v0"), 10, seed=0)
    assert 0 < agent.episodes <= 5  # what was played before is there
