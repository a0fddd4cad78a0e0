"""The algorithms against their naive versions on logs so small that this can be done without compiling, too.

`tests/algorithms` has the thorough comparisons. Without the JIT these show which lines of the algorithms are reached.
"""

from __future__ import annotations

import gymnasium as gym
import numba
import numpy as np
import pytest

import kernelrl as krl
from algorithms.test_bonuses_against_naive import compare as compare_bonuses
from pairs import KERNELS, compare
from theory.test_certificates import compare_bounds

SMALL = {"transitions": 24, "checks": 1}


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("replan", ["episode", "step", "doubling"])
@pytest.mark.parametrize("lipschitz", [None, 0.5])
def test_kernel_ucbvi(lipschitz, replan, stationary):
    compare(False, sigma=0.0531, lipschitz=lipschitz, replan=replan, stationary=stationary, **SMALL)


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("lipschitz", [0.5, (0.4, 0.6)])
def test_greedy_kernel_ucbvi(lipschitz, stationary):
    compare(True, lipschitz=lipschitz, stationary=stationary, transitions=60, checks=1)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("lipschitz", [None, 0.5])
def test_representatives(lipschitz, stationary, greedy):
    options = {} if greedy else {"replan": "doubling"}
    compare(greedy, merge=0.0613, lipschitz=lipschitz, stationary=stationary, transitions=60, checks=1, **options)


@pytest.mark.parametrize("greedy", [False, True])
def test_another_kernel_and_metric(greedy):
    compare(greedy, kernel=KERNELS["compact"], lipschitz=0.5, d=3, **SMALL)


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("merge", [None, 0.0613])
@pytest.mark.parametrize("name", ["full, anytime", "joint", "self-normalised"])
def test_bonuses_of_the_theory(name, merge, greedy):
    scale = 0.005 if name.startswith("full") else 0.1
    compare_bonuses(greedy, name, transitions=24, scale=scale, merge=merge)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("merge", [None, 0.02])
def test_certificates(merge, full):
    _, _, lower, upper = compare_bounds(False, full, merge, 15, 1e-4 if full else 0.01)
    assert (lower > 0.0).any() and (upper < 3).any()


@pytest.mark.parametrize("H", [2, 40])
@pytest.mark.parametrize("make", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_arrays_grow_as_they_fill_up(make, H):
    """All of them, since each of these states lies in a cell of its own; a long episode needs room from the start."""
    sigma = 0.011
    agent = make(bandwidth=sigma, lipschitz=1.0, bonus_scale=0.001, stationary=False, representatives=None)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(1), H, seed=0)
    before = agent.model
    rng = np.random.default_rng(0)
    samples = rng.random(((80 if numba.config.DISABLE_JIT else 800) // H, H, 2))
    for episode in samples:
        agent.begin_episode()
        for h, x in enumerate(episode):
            agent.observe(x, 0, 0.0, x, h)
        agent.end_episode()
    agent.begin_episode()
    after = agent.model
    assert after.store.number[0] == samples[:, :, 0].size <= after.store.reward.size
    for old, new in ((before.plan.S.box, after.plan.S.box), (before.plan.V, after.plan.V)):
        assert new.size > old.size
    states = rng.random((20, 2))
    distances = np.linalg.norm(states[:, None] - samples[None, :, 1], axis=2)
    expected = 0.01 + np.exp(-0.5 * (distances / sigma) ** 2).sum(axis=1)
    np.testing.assert_allclose(agent.counts(states, step=1)[:, 0], expected, rtol=1e-12)
