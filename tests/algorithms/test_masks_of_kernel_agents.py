"""Kernel agents on representatives that plan with a mask, against the same equations in plain NumPy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.planning.reading import read_q
from kernelrl.planning.sides import LOWER, UPPER
from pairs import METRICS, compare
from user_functions import each_on_its_side as mask  # one for all tests, since code is compiled for each function

both = pytest.mark.parametrize("greedy", [False, True])


@both
@pytest.mark.parametrize("reading", ["nearest", "blend"])
@pytest.mark.parametrize("merge", [0.0613, 0.1871, 0.4443])
def test_representatives(merge, reading, greedy):
    compare(greedy, merge=merge, reading=reading, mask=mask)


@pytest.mark.parametrize("replan", ["step", "doubling", 1.3])
def test_plans(replan):
    compare(False, merge=0.1871, replan=replan, reading="blend", stationary=False, mask=mask)


@both
def test_units_and_scales(greedy):
    compare(greedy, merge=0.1871, reward_range=(-2.0, 3.0), metric=METRICS["lp-inf-scaled"](2), mask=mask)


@both
def test_interpolation(greedy):
    compare(greedy, merge=0.0613, lipschitz=0.5, mask=mask)


def test_several_bandwidths():
    compare(False, merge=0.0613, several=(0.3, 0.1), mask=mask)


@pytest.mark.parametrize("kind", ["KernelUCBVI", "GreedyKernelUCBVI"])
def test_both_drivers_obey_it_and_agree(kind, tmp_path):
    env, found = gym.make("kernelrl/TwinRooms-v0"), []
    for driver in ("compiled", "python"):
        agent = getattr(krl, kind)(mask=mask)
        history = agent.fit(env, 30, seed=3, driver=driver, transitions=True, progress=False)
        rows = history.transitions.select("state_0", "action").rows()
        assert all(mask(np.array([x]), a) for x, a in rows) and {a for _, a in rows} == {0, 1, 2, 3}
        found.append((history.returns, history.optimistic_values))
    assert all(np.array_equal(one, other) for one, other in zip(*found, strict=True))
    agent.save(tmp_path / "agent.krl")
    again = krl.load(tmp_path / "agent.krl", trust=True)
    policy = agent.policy()
    for x in np.random.default_rng(0).random((20, 2)):
        assert agent.act(x, 3) == policy(x, 3) == again.act(x, 3)
        assert mask(x, agent.act(x, 3)) and mask(x, agent.choose(x, 3))


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"mask: an agent that keeps every sample"):
        krl.KernelUCBVI(bandwidth=0.1, representatives=None, mask=mask)
    with pytest.raises(ValueError, match=r"mask: it is a function of raw states"):
        krl.KernelUCBVI(metric=krl.metrics.Folded(krl.envs.twin_rooms_fold), mask=mask)
    joint = {"bonus": krl.bonuses.Joint(0.1, 100), "lipschitz": 1.0, "reward_range": (0, 1), "bandwidth": 0.1}
    with pytest.raises(ValueError, match=r"mask: with states that are merged the bonus"):
        krl.KernelUCBVI(**joint, representatives=0.1, mask=mask)


def test_both_sides_of_certificates():
    agent = krl.KernelUCBVI(
        bandwidth=0.1, representatives=0, bonus=krl.bonuses.Joint(0.1), bonus_scale=1.0, lipschitz=1.0,
        reward_range=(0, 1), horizon=3, mask=mask,
    )  # fmt: skip
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Discrete(2), 3, seed=0)
    rng, sites = np.random.default_rng(0), np.linspace(0.1, 0.9, 5)
    for _ in range(400):
        agent.begin_episode()
        x = rng.choice(sites)
        for h in range(3):
            y = rng.choice(sites)
            agent.observe([x], agent.choose([x], h), float(x > 0.4), [y], h)
            x = y
        agent.end_episode()
    for side in (LOWER, UPPER):
        planned = agent.planned(side, "")
        states = planned.store.reps.points[:5, :1, 0].copy()
        for h in range(3):
            q = read_q(planned, side, states, h)
            allowed = np.array([[mask(x, a) for a in range(2)] for x in states])
            expected = np.clip(np.where(allowed, q, -np.inf).max(axis=1), 0.0, 3.0 - h)
            assert np.allclose(np.clip(planned.plan.V[h, :5], 0.0, 3.0 - h), expected)
    lower, upper = agent.certificate([0.5])
    assert lower <= upper
    # where actions are forbidden V* may jump, so values between representatives are not searched for the range
    assert (agent.certified_bounds().lower.settings.bonus.ranges == 1.0).all()
