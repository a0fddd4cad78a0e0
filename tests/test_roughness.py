"""How much neighbouring pairs differ, and the bonus that follows, against plain NumPy and on known functions."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents.action_net import ActionNet
from kernelrl.agents.roughness import Exploring, exploring, intercept, roughness
from kernelrl.stores.log import Log
from naive import automatic as naive


@given(st.integers(0, 60), st.integers(1, 3), st.integers(1, 40), st.integers(0, 1000))
def test_against_naive(n, d, different, seed):
    """With pairs that are there several times."""
    rng = np.random.default_rng(seed)
    points = rng.random((different, d))
    z = points[rng.integers(different, size=n)]
    G = np.cos(3.0 * z.sum(axis=1)) + 0.1 * rng.standard_normal(n)
    expected = naive.roughness(z, G, np.random.default_rng(n))
    found = roughness(z, G)
    assert (found is None) == (expected is None)
    if found is not None:
        assert_allclose(found, expected, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_what_is_left_at_distance_zero_is_noise(noise):
    rng = np.random.default_rng(1)
    z = rng.random((2000, 2))
    rough, sigma = roughness(z, z.sum(axis=1) + noise * rng.standard_normal(2000))
    assert sigma == pytest.approx(noise, rel=0.1, abs=0.005)
    assert rough == pytest.approx(np.sqrt(4.0 / 3.0) * noise, rel=0.15, abs=0.03)  # the mean of three has noise, too


def test_the_line():
    x = np.array([0.0, 1.0, 2.0])
    assert intercept(x, 3.0 + 2.0 * x) == pytest.approx(3.0)
    assert intercept(x, 3.0 - 2.0 * x) == pytest.approx(1.0)  # the slope is not below 0: the mean
    assert intercept(x, 5.0 * x - 1.0) == 0.0
    assert intercept(np.zeros(3), x) == pytest.approx(1.0)


def log_of(states, numbers, rewards):
    """A log of transitions that stay where they are."""
    n = len(rewards)
    labels = np.zeros((3, n), np.int64)
    labels[1] = numbers
    return Log(np.stack([states, states]), labels, rewards, np.array([n]))


def chosen(f, width=1.0, n=300):
    """What follows from rewards f(state, action)."""
    rng = np.random.default_rng(0)
    net = ActionNet.of(gym.spaces.Box(0.0, 1.0, (1,)), 31, 5)
    states, numbers = rng.random((n, 1)), rng.integers(31, size=n)
    rewards = f(states[:, 0], net.points[numbers, 0], rng)
    return exploring(log_of(states, numbers, rewards), np.arange(n), rewards, np.array([0.1]), net, width)


def test_what_follows():
    """A small bonus where little differs; few others without noise, and about 18 with nothing but noise."""
    smooth = chosen(lambda x, a, rng: 0.3 * (x + a))
    assert smooth.root < 0.001 and smooth.others < 7.0
    steep = chosen(lambda x, a, rng: np.exp(-50.0 * np.abs(x - a)))
    assert steep.root > 10.0 * smooth.root
    noisy = chosen(lambda x, a, rng: rng.random(len(x)))
    assert noisy == Exploring(0.04, noisy.others) and noisy.others > 15.0
    assert chosen(lambda x, a, rng: 7.0 * rng.random(len(x)), width=7.0).root == pytest.approx(noisy.root)
    assert chosen(lambda x, a, rng: np.full(len(x), 0.5)) == Exploring(0.0, 5.0)
    assert chosen(lambda x, a, rng: x, n=4) == Exploring() == Exploring(0.02, 20.0)


def test_only_in_short_episodes_with_continuous_actions():
    """What is used is what was chosen. A bonus that is given is taken as it is; m follows the data all the same."""
    env = gym.make("kernelrl/Oil-v0", form="quadratic", steepness=1)
    agent = krl.KernelUCBVI()
    agent.fit(env, 4, seed=0, progress=False)
    assert agent.settings_used()["bonus"] == krl.bonuses.Simplified(root=0.02, count=0.01)
    agent.fit(env, 36, seed=0, progress=False)
    kept = agent.to_store()["automatic"]
    assert kept["root"] < 0.02 and 5.0 <= kept["others"] < 20.0
    assert agent.settings_used()["bonus"] == krl.bonuses.Simplified(root=kept["root"], count=0.01)
    settings = agent.model.settings
    assert settings.others == kept["others"]
    given = krl.KernelUCBVI(bonus=krl.bonuses.Simplified(root=0.5, count=0.01))
    given.fit(env, 40, seed=0, progress=False)
    assert given.settings_used()["bonus"].root == 0.5
    assert given.model.settings.others == given.to_store()["automatic"]["others"] < 20.0
    rooms = krl.KernelUCBVI()
    rooms.fit("kernelrl/TwinRooms-v0", 20, seed=0, progress=False)
    assert rooms.settings_used()["bonus"] == krl.bonuses.Simplified(root=0.05, count=0.01)


def test_not_with_a_metric_that_is_given():
    """It measures states in units of its own, and might be no distance of vectors at all."""
    agent = krl.KernelUCBVI(metric=krl.metrics.Lp(2, scale="box"))
    agent.fit("kernelrl/Oil-v0", 40, seed=0, progress=False)
    assert Exploring(*(agent.to_store()["automatic"][key] for key in Exploring._fields)) == Exploring()


@pytest.mark.parametrize("kind", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_states_of_any_shape(kind):
    """A state of four numbers is the same problem as a square of them."""
    env = gym.wrappers.FlattenObservation(gym.wrappers.TimeLimit(Square(), 5))
    expected = kind().fit(env, 20, seed=0, progress=False).returns
    assert np.array_equal(kind().fit(gym.wrappers.TimeLimit(Square(), 5), 20, seed=0, progress=False).returns, expected)


class Square(gym.Env):
    """A state of 2 by 2 numbers, of which the action changes the first."""

    observation_space = gym.spaces.Box(0.0, 1.0, (2, 2), np.float64)
    action_space = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.np_random.random((2, 2))
        return self.state.copy(), {}

    def step(self, action):
        self.state[0, 0] = np.clip(self.state[0, 0] + 0.3 * action[0], 0.0, 1.0)
        return self.state.copy(), 1.0 - abs(self.state[0, 0] - 0.5), False, False, {}


def test_saved_and_gone_on(tmp_path):
    """An agent that was saved between two looks is the same as one that was not."""
    env = gym.make("kernelrl/Oil-v0")
    whole, first = krl.KernelUCBVI(), krl.KernelUCBVI()
    returns = whole.fit(env, 60, seed=3, progress=False).returns
    first.fit(env, 33, seed=3, progress=False)
    first.save(tmp_path / "agent.krl")
    second = krl.load(tmp_path / "agent.krl")
    assert second.settings_used() == first.settings_used()
    assert np.array_equal(second.fit(env, 27, progress=False).returns, returns[33:])
    assert second.to_store() == whole.to_store()


@pytest.mark.parametrize(
    "change", [{"root": -0.1}, {"root": 2.0}, {"root": 1}, {"others": 0.5}, {"others": float("nan")}, {"others": None}]
)
def test_what_cannot_be(change):
    agent = krl.KernelUCBVI()
    agent.fit("kernelrl/Oil-v0", 20, seed=0, progress=False)
    stored = agent.to_store()["automatic"] | change
    with pytest.raises(ValueError, match="started: automatic has Exploring"):
        agent._automatic.restore(stored, 1)
