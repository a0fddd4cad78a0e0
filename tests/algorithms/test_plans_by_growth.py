"""`replan` as a factor: Kernel-UCBVI plans when the number of episodes has grown by it."""

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
def test_in_parts_across_saving(reward_range, merge, tmp_path):
    """When the next plan is due is part of the state."""
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=150)
    box, states = gym.spaces.Box(0.0, 1.0, (2,), np.float64), log.states()[:9]

    def new():
        agent = krl.KernelUCBVI(
            bandwidth=0.117, representatives=merge, replan=1.4, horizon=3, reward_range=reward_range
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


@pytest.mark.parametrize("replan", [1.0, 0.5, -2, float("nan"), float("inf"), True, "autos", None])
def test_what_is_no_factor(replan):
    with pytest.raises(ValueError, match="replan"):
        krl.KernelUCBVI(replan=replan)
