"""Bandwidths that change: nothing is lost, and the naive algorithms agree that are told the same bandwidths."""

from __future__ import annotations

from dataclasses import dataclass

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


def test_several():
    several = krl.schedules.Bandwidths([0.02, 0.1, 0.05])
    assert several.sigmas == (0.1, 0.05, 0.02) and several.minimum == 0.02
    assert several == krl.schedules.Bandwidths(np.array([0.1, 0.05, 0.02])) != krl.schedules.Bandwidths((0.1, 0.05))
    assert repr(several) == "Bandwidths(sigmas=(0.1, 0.05, 0.02))"
    agent = krl.GreedyKernelUCBVI(bandwidth=several, reward_range=(0, 1))
    agent.fit(gym.make("kernelrl/TwinRooms-v0"), 2, seed=0)
    assert agent.settings_used()["bandwidth"] == several and agent.settings_used()["representatives"] == 0.04


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], r"sigmas must be a list of at least two different bandwidths, such as .*; got \[\]"),
        (0.1, r"sigmas must be a list of at least two .*; got 0.1"),
        ("wide", r"sigmas must be a list of at least two .*; got 'wide'"),
        (None, "sigmas must be a list of at least two .*; got None"),
        (np.ones((2, 2)), "sigmas must be a list of at least two"),
        ([0.1], r"sigmas must be a list of at least two .*; got \[0.1\]: give bandwidth=0.1 instead"),
        ([0.1, 0.05, 0.1], r"sigmas must be a list of at least two different .*; one is twice in \[0.1, 0.05, 0.1\]"),
        ([0.1, -0.05], "sigmas must be a finite number above 0, got -0.05"),
        ([0.1, 0.0], "sigmas must be a finite number above 0, got 0.0"),
        ([0.1, float("nan")], "sigmas must be a finite number above 0, got nan"),
        ([0.1, float("inf")], "sigmas must be a finite number above 0, got inf"),
        ([0.1, "narrow"], "sigmas must be a finite number above 0, got 'narrow'"),
        ([0.1, [0.05]], r"sigmas must be a finite number above 0, got \[0.05\]"),
        ([0.1, 1e-200], "sigmas must lie between 1e-100 and"),
    ],
)
def test_bad_bandwidths(given, message):
    with pytest.raises(ValueError, match="^" + message):
        krl.schedules.Bandwidths(given)


@pytest.mark.parametrize("agent", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
@pytest.mark.parametrize("given", [[0.1, 0.05], (0.1, 0.05), np.array([0.1, 0.05]), []])
def test_a_list_is_no_bandwidth(given, agent):
    with pytest.raises(
        ValueError, match=r"^bandwidth must be .* several at once are krl.schedules.Bandwidths\(\[…\]\)$"
    ):
        agent(bandwidth=given)


@dataclass(frozen=True)
class Promising(krl.bonuses.Bonus):
    promises = True


@pytest.mark.parametrize("agent", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"representatives": None},
            "is for representative states, but representatives is None; give representatives=0",
        ),
        (
            {"bonus": Promising()},
            "must hold for all of them together, which Promising cannot say; use krl.bonuses.Joint",
        ),
    ],
)
def test_several_are_refused(options, message, agent):
    more = {"lipschitz": 1.0, "reward_range": (0, 1)}
    with pytest.raises(ValueError, match=r"^bandwidth: .*" + message):
        agent(bandwidth=krl.schedules.Bandwidths([0.1, 0.05]), **more, **options)


def test_bonuses_with_guarantees_name_what_they_take():
    with pytest.raises(ValueError, match=r"do not depend on the data; give a number, or several as krl.schedules.Band"):
        krl.KernelUCBVI(bonus="joint", lipschitz=1.0, reward_range=(0, 1))


def test_the_default_merge_distance():
    several = krl.schedules.Bandwidths([0.1, 0.02])
    for bandwidth, merge in ((0.03, 0.06), (krl.schedules.Power(0.05, 0.02, 0.25), 0.04), (several, 0.04)):
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
