"""AdaptiveQL with continuous actions against a plain list of boxes of the joint space."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.algorithms.balls import finest_depth
from naive.adaptive_ql import NaiveJointAdaptiveQL
from naive.grid import Optimism
from walks import pushed

H = 3
LOW, HIGH = np.array([-1.0, 0.0]), np.array([2.0, 0.5])


def pair(axes, d=2, reward_range=(0, 1), scale=0.05, seed=0):
    """An agent and the naive one."""
    agent = krl.AdaptiveQL(horizon=H, bonus_scale=scale, reward_range=reward_range)
    space = gym.spaces.Box(LOW[:d], HIGH[:d], dtype=np.float64)
    agent.start(space, gym.spaces.Box(-2.0, 4.0, (axes,), np.float64), H, seed)
    nothing = -reward_range[0] / (reward_range[1] - reward_range[0])
    actions = (agent.action_net + 2.0) / 6.0
    return agent, NaiveJointAdaptiveQL(
        H, actions, finest_depth(axes), Optimism(H, scale=scale), LOW[:d], HIGH[:d], nothing
    )  # fmt: skip


def check(agent, naive, states, rng):
    some = rng.integers(len(naive.actions), size=20)
    for h in range(H):
        balls = [[naive.ball(x, h, a) for a in some] for x in states]
        for name, read in (
            ("q_values", lambda ball: ball.q),
            ("counts", lambda ball: ball.n),
            ("bonuses", lambda ball, h=h: naive.optimism.bonus_at(h, ball.n)),
        ):
            expected = [[read(ball) for ball in row] for row in balls]
            assert_allclose(getattr(agent, name)(states, h)[:, some], expected, rtol=1e-12, atol=1e-12, err_msg=name)
        assert_allclose(agent.values(states, h), [naive.value(x, h) for x in states], rtol=1e-12)
        for x in states:
            best = naive.best(x, h)
            for action in (agent.choose(x, h), agent.act(x, h)):
                assert any(np.allclose((action + 2.0) / 6.0, centre, atol=1e-12) for centre in best)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]), st.sampled_from([1, 2]), st.integers(0, 60))
def test_any_log(seed, axes, d, transitions):
    rng = np.random.default_rng(seed)
    agent, naive = pair(axes, d)
    sites = LOW[:d] + (HIGH - LOW)[:d] * np.append(rng.random((3, d)), [np.ones(d)], axis=0)
    for t in range(transitions):
        h = t % H
        if h == 0:
            agent.begin_episode()
        x, y = sites[rng.integers(4)], sites[rng.integers(4)]
        a = (
            int(rng.integers(len(naive.actions)))
            if rng.random() < 0.5
            else agent.spaces.check_action(agent.choose(x, h))
        )
        r, ends = float(rng.random()), bool(rng.random() < 0.1)
        agent.observe(x, agent.spaces.action(a), r, y, h, terminated=ends)
        naive.observe(x, a, r, y, h, ends)
        if h == H - 1:
            agent.end_episode()
    check(agent, naive, sites, rng)


@pytest.mark.parametrize("axes", [1, 2])
def test_learning(axes):
    """Of an agent that plays itself, with costs as rewards."""
    rng = np.random.default_rng(0)
    agent, naive = pair(axes, d=1, reward_range=(-1, 0))
    for _ in range(150):
        x = LOW[:1] + rng.random(1)
        agent.begin_episode()
        for h in range(H):
            action = agent.choose(x, h)
            y = np.clip(x + 0.1 * action.sum() + 0.1 * rng.standard_normal(1), LOW[:1], HIGH[:1])
            r = -min(1.0, abs(float(y[0]) - 0.7))
            agent.observe(x, action, r, y, h)
            naive.observe(x, agent.spaces.check_action(action), r + 1.0, y, h)
            x = y
        agent.end_episode()
    states = LOW[:1] + 3.0 * rng.random((6, 1))
    for h in range(H):
        expected = np.array([naive.value(x, h) for x in states]) - (H - h)
        assert_allclose(agent.values(states, h), expected, rtol=1e-12, atol=1e-12)
    assert max(len(balls) for balls in naive.balls.values()) > 20


def test_partition_covers_the_joint_box():
    agent = krl.AdaptiveQL()
    agent.fit(pushed(shape=(2,)), 40, seed=0, progress=False)
    found = agent.partition(0)
    assert found.low.shape[1] == 3 and len(found.low) > 8
    assert (found.high - found.low).prod(axis=1).sum() == pytest.approx(1.0 * 2.0 * 2.0)
    with pytest.raises(ValueError, match=r"^action: balls are of the joint box"):
        agent.partition(0, 1)


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_drivers_and_files(driver, tmp_path):
    agent = krl.AdaptiveQL(bonus_scale=0.1)
    returns = agent.fit("kernelrl/Oil-v0", 300, seed=1, driver=driver, progress=False).returns
    other = krl.AdaptiveQL(bonus_scale=0.1)
    other.fit("kernelrl/Oil-v0", 120, seed=1, progress=False)
    other.save(tmp_path / "a.krl")
    loaded = krl.load(tmp_path / "a.krl")
    assert np.array_equal(loaded.fit("kernelrl/Oil-v0", 180, progress=False).returns, returns[120:])
    assert returns[-50:].mean() > returns[:50].mean()


def test_dimensions():
    agent = krl.AdaptiveQL(horizon=2)
    with pytest.raises(ValueError, match=r"^observation_space: a ball splits into 2\^d.* got 13"):
        agent.start(gym.spaces.Box(0.0, 1.0, (10,)), gym.spaces.Box(0.0, 1.0, (3,)), 2, 0)
    with pytest.raises(ValueError, match=r"^action_space: each axis must have a width"):
        krl.AdaptiveQL(horizon=2).start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Box(1.0, 1.0, (1,)), 2, 0)
