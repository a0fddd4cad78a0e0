"""`replan` as a factor: Kernel-UCBVI and UCBVI plan when the number of episodes has grown by it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from pairs import TOLERANCE, Pair
from problems import Log, random_log

PLACE = np.array([0.5])


@pytest.mark.parametrize("merge", [0.0613, None], ids=["representatives", "exact"])
@pytest.mark.parametrize(("replan", "episodes", "planned"), [(1.3, 60, 16), ("auto", 440, 420), (1.005, 440, 420)])
def test_when_due(replan, episodes, planned, merge):
    """Each plan is seen in the count, which otherwise stays as it is."""
    pair = Pair(False, Log(1, 1, 1, ()), merge=merge, replan=replan)
    seen = []
    for _ in range(episodes):
        pair.begin_episode()
        seen.append(pair.agent.counts([PLACE], 0)[0, 0])
        assert abs(seen[-1] - pair.naive.counts([PLACE], 0)[0, 0]) < TOLERANCE
        pair.agent.observe(PLACE, 0, 0.5, PLACE, 0)
        pair.naive.observe(PLACE, 0, 0.5, PLACE, 0)
        pair.agent.end_episode()
    assert len(set(seen)) == planned, "as counted by hand"


def test_auto_plans_before_each_of_the_first_400_episodes():
    """So nothing differs from planning before every one; after them something does."""
    same = {}
    for replan in ("auto", "episode"):
        pair = Pair(False, Log(1, 1, 1, ()), merge=0.0613, replan=replan)
        same[replan] = []
        for _ in range(403):
            pair.agent.begin_episode()
            same[replan].append(pair.agent.counts([PLACE], 0)[0, 0])
            pair.agent.observe(PLACE, 0, 0.5, PLACE, 0)
            pair.agent.end_episode()
    assert same["auto"][:401] == same["episode"][:401]
    assert same["auto"][401] != same["episode"][401]


@pytest.mark.parametrize("merge", [0.0613, None], ids=["representatives", "exact"])
@pytest.mark.parametrize("reward_range", ["auto", (0, 1)])
@pytest.mark.parametrize("replan", [1.4, "doubling"])
def test_in_parts_across_saving(reward_range, merge, replan, tmp_path):
    """When the next plan is due is part of the state, and so are the samples since the last one."""
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=150)
    box, states = gym.spaces.Box(0.0, 1.0, (2,), np.float64), log.states()[:9]

    def new():
        agent = krl.KernelUCBVI(
            bandwidth=0.117, representatives=merge, replan=replan, horizon=3, reward_range=reward_range
        )
        agent.start(box, gym.spaces.Discrete(2), 3, 0)
        return agent

    whole, parts = new(), new()
    for k, episode in enumerate(log.episodes):
        for agent in (whole, parts):
            agent.begin_episode()
            for t in episode:
                agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            agent.end_episode()
        for h in range(3):
            assert np.array_equal(whole.q_values(states, h), parts.q_values(states, h))
        if k % 5 == 3:
            parts.save(tmp_path / "agent.krl")
            parts = krl.load(tmp_path / "agent.krl")


def one_cell(replan, rewards, reward_range, path=None):
    """The counts that UCBVI shows in episodes with these rewards, all at one state; saved and loaded now and then."""
    agent, seen = krl.UCBVI(bins=1, horizon=1, replan=replan, reward_range=reward_range), []
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(1), 1, 0)
    for k, r in enumerate(rewards):
        agent.begin_episode()
        seen.append(int(agent.counts([PLACE], 0)[0, 0]))
        agent.observe(PLACE, 0, r, PLACE, 0)
        agent.end_episode()
        if path is not None and k % 7 == 3:
            agent.save(path)
            agent = krl.load(path)
    return seen


@pytest.mark.parametrize(("replan", "planned"), [(1.3, 16), ("auto", 60), ("doubling", 7)])
def test_plans_of_ucbvi(replan, planned, tmp_path):
    """As often as those of Kernel-UCBVI, also across saving."""
    seen = one_cell(replan, [0.5] * 60, (0, 1))
    assert len(set(seen)) == planned, "as counted by hand"
    assert one_cell(replan, [0.5] * 60, (0, 1), tmp_path / "agent.krl") == seen


def test_a_wider_range_of_rewards_is_a_plan():
    """UCBVI then plans at once, after 31 episodes, and the next plan is due when these have grown by the factor."""
    seen = one_cell(1.5, [0.5] * 30 + [0.75] * 30, "auto")
    assert seen[29:31] == [28, 28]
    assert seen[31:] == [31] * 15 + [46] * 14


@pytest.mark.parametrize("agent", [krl.KernelUCBVI, krl.UCBVI])
@pytest.mark.parametrize("replan", [1.0, 0.5, -2, float("nan"), float("inf"), True, "autos", None])
def test_what_is_no_factor(replan, agent):
    with pytest.raises(ValueError, match="replan"):
        agent(replan=replan)
