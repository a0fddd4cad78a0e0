"""Exact Greedy-Kernel-UCBVI with sums at nodes, against the paper's equations in plain NumPy.

Usually nodes are made when there are thousands of samples; here there are nodes from the first sample on.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import kernelrl as krl
from kernelrl.jit.compile import compiled
from kernelrl.jit.handles import hand_over
from kernelrl.planning import greedy_exact, node_sums
from kernelrl.planning.greedy import targets_at
from pairs import LIPSCHITZ, METRICS, Pair, compare, hyper_parameters
from problems import logs, states_for


@pytest.fixture(autouse=True)
def from_the_first(monkeypatch):
    monkeypatch.setattr(node_sums, "PER_LIST", 0)


def has_nodes(agent) -> bool:
    return agent.model.plan.sums.nodes.sums.size > 0


@compiled(cache=False)
def targets(model, x, h, q):
    """Q̃_h(x, ·) as the algorithm chooses by it."""
    targets_at(model.plan, model.settings, model.store, x, h, q)


def check_targets(agent, states, steps):
    """Sums at nodes agree with those over samples."""
    q, handle, range_ = np.zeros(agent.model.settings.actions), hand_over(agent.model), agent.rewards
    for h in range(steps):
        expected = agent.q_values(states, step=h)
        for x, wanted in zip(states, expected, strict=True):
            targets(handle, x, h, q)
            low, width = range_.units.low, range_.width
            assert_allclose(q * width + low * (steps - h), wanted, rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_on_any_log(data):
    log = data.draw(logs())
    pair = Pair(True, log, **data.draw(hyper_parameters(log, greedy=True)))
    pair.play(data.draw(states_for(log)), np.random.default_rng(0))


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("lipschitz", sorted(LIPSCHITZ))
def test_options(lipschitz, stationary):
    pair = compare(True, lipschitz=LIPSCHITZ[lipschitz], stationary=stationary, transitions=300)
    assert has_nodes(pair.agent) is stationary
    sums = pair.agent.model.plan.sums
    states = pair.log.states()[:20]
    assert (pair.naive.counts(states, 0) > node_sums.LEAST + 1.0).any(), "no sum was read from nodes"
    assert sums.limits[node_sums.OUTSIDE] == 0.0
    check_targets(pair.agent, states, pair.log.H)


@pytest.mark.parametrize("metric", ["manhattan", "lp-2-box"])
def test_metrics(metric):
    pair = compare(True, metric=METRICS[metric](2), lipschitz=1.5, transitions=80)
    assert has_nodes(pair.agent) is (metric == "lp-2-box")


def test_states_outside_the_box(monkeypatch):
    """A user's map of states may leave the box of the corners' images."""

    def smaller(settings, low, high, *others):
        return node_sums.new_node_sums(settings, np.full(2, 0.4), np.full(2, 0.6), *others)

    monkeypatch.setattr(greedy_exact, "new_node_sums", smaller)
    pair = compare(True, lipschitz=1.5, transitions=80)
    assert has_nodes(pair.agent) and pair.agent.model.plan.sums.limits[node_sums.OUTSIDE] == 1.0


SETTING = {"bandwidth": 0.1, "lipschitz": 3.0, "representatives": None, "reward_range": (0, 1)}


def environment():
    return gym.make("kernelrl/TwinRooms-v0")


@pytest.mark.parametrize("stationary", [True, False])
def test_in_pieces_and_through_a_file(stationary, tmp_path):
    whole, pieces = (krl.GreedyKernelUCBVI(**SETTING, stationary=stationary) for _ in range(2))
    history = whole.fit(environment(), 90, seed=3, progress=False)
    first = pieces.fit(environment(), 70, seed=3, progress=False)
    pieces.q_values(np.random.default_rng(0).random((5, 2)), step=4)  # reading changes nothing
    pieces.save(tmp_path / "agent.krl")
    loaded = krl.load(tmp_path / "agent.krl")
    rest = loaded.fit(environment(), 20, progress=False)
    assert has_nodes(loaded) is stationary
    assert_array_equal(np.concatenate([first.returns, rest.returns]), history.returns)
    for name in ("sums", "frame"):
        assert_array_equal(getattr(loaded.model.plan.sums.nodes, name), getattr(whole.model.plan.sums.nodes, name))
    assert_array_equal(loaded.model.plan.V, whole.model.plan.V)
    check_targets(whole, np.random.default_rng(1).random((10, 2)), 20)


def test_more_samples_than_may_wait():
    agent = krl.GreedyKernelUCBVI(**SETTING)
    agent.fit(environment(), 120, seed=0, progress=False)
    assert 120 * 20 > 2 * node_sums.ROOM
    check_targets(agent, np.random.default_rng(1).random((10, 2)), 20)


def test_nodes_begin_with_the_episode_after_so_many_samples(monkeypatch):
    monkeypatch.setattr(node_sums, "PER_LIST", 30)
    agent = krl.GreedyKernelUCBVI(**SETTING)
    agent.fit(environment(), 5, seed=0, progress=False)
    assert not has_nodes(agent)
    agent.fit(environment(), 5, progress=False)
    assert has_nodes(agent)
    check_targets(agent, np.random.default_rng(1).random((10, 2)), 20)


def test_the_range_of_rewards_widens():
    agent = krl.GreedyKernelUCBVI(**{**SETTING, "reward_range": "auto"})
    agent.fit(environment(), 40, seed=0, progress=False)
    state, beyond = np.array([0.3, 0.4]), np.array([0.35, 0.4])
    agent.begin_episode()
    agent.observe(state, 0, -2.0, beyond, 0)
    agent.end_episode()
    agent.begin_episode()
    assert has_nodes(agent) and agent.rewards.width >= 2.0
    check_targets(agent, np.random.default_rng(1).random((10, 2)), 20)


def test_a_new_bandwidth_ends_them():
    agent = krl.GreedyKernelUCBVI(**{**SETTING, "bandwidth": lambda k: 0.1 if k < 20 else 0.05})
    agent.fit(environment(), 10, seed=0, progress=False)
    assert has_nodes(agent)
    agent.fit(environment(), 30, progress=False)
    assert not has_nodes(agent)
    check_targets(agent, np.random.default_rng(1).random((10, 2)), 20)
