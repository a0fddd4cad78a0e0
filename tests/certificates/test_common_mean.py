"""The test of a common mean: its intervals against numeric integration, and how often they fail, at any time."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad

import kernelrl as krl
from kernelrl.certifying.common_mean import end_below, log_e, mean_intervals, soft_steps


@pytest.mark.parametrize(("S", "n"), [(3.0, 3), (2.5, 4), (9.3, 12), (11.0, 40)])
def test_ends_by_numeric_integration(S, n):
    log_terms = 0.3
    m = float(end_below(np.array([S]), np.array([float(n)]), log_terms)[0])
    assert 0.0 < m < S / n

    def e(m):
        def inside(p):
            return (p / m) ** S * ((1 - p) / (1 - m)) ** (n - S) / (math.pi * math.sqrt(p * (1 - p)))

        return quad(inside, m, 1.0)[0]

    assert e(m) == pytest.approx(math.exp(log_terms), rel=1e-4)


def test_of_nothing():
    """No sample, or samples that say nothing, leave all means possible."""
    low, high = mean_intervals(np.ones(9), np.ones(9, bool), np.zeros((1, 9), int), 2, 1.0)
    assert (low == 0.0).all() and (high == 1.0).all()
    assert end_below(np.array([0.0]), np.array([50.0]), 1.0)[0] == 0.0


def test_unknown_values_may_be_anything():
    rng = np.random.default_rng(0)
    phi, unknown, labels = rng.random(60), np.arange(60) < 5, np.zeros((1, 60), int)
    low, high = mean_intervals(phi, unknown, labels, 1, 2.0)
    for _ in range(50):
        phi[:5] = rng.integers(2, size=5)
        mine = mean_intervals(phi, np.zeros(60, bool), labels, 1, 2.0)
        assert low <= mine[0] and mine[1] <= high


def failures(log_terms, runs=4000, n=300):
    """The share of runs in which the mean, 0.2, is below the end at some time."""
    rng = np.random.default_rng(1)
    phi = np.where(rng.random((runs, n)) < 0.5, rng.random((runs, n)) < 0.2, rng.beta(0.2, 0.8, (runs, n)))
    found = log_e(np.cumsum(phi, axis=1), np.arange(1.0, n + 1.0), 0.2)
    return np.mean((found >= log_terms).any(axis=1))


def test_ends_hold_at_all_times_together():
    assert failures(math.log(5.0)) <= 0.2
    assert failures(0.0) > 0.2  # so this could fail


def test_steps_are_within_the_hull_and_steep():
    first = np.array([0.1, 0.2, 0.3])
    found = dict(soft_steps(first, np.array([-1.0, 0.1, 0.2, 0.3, 1.0]), 1e-4))
    assert [v.tolist() for v in found.values()] == [
        pytest.approx(v) for v in ([0, 0, 0.5, 1, 1], [0, 0, 0, 0.5, 1], [1, 0.5, 0, 0, 0], [1, 1, 0, 1, 1])
    ]
    still = dict(soft_steps(np.full(20, 0.1), 0.1 + 1e-9 * np.arange(-5, 6), 1e-4))  # rounding is no difference
    assert all(np.ptp(v) < 1e-3 for v in still.values())


@pytest.mark.parametrize(("variation", "drop", "holds"), [(0.0, 0.0, True), (0.0, 0.02, False), (0.02, 0.02, True),
                                                          (0.02, 0.15, False)])  # fmt: skip
def test_what_a_variation_allows(variation, drop, holds):
    """Displacements that are smaller by `drop` in one half; the largest distance of states is 1."""
    rng = np.random.default_rng(7)
    x = rng.uniform(0.35, 0.65, (4000, 1))
    y = x + 0.1 - drop * (x > 0.5) + 0.01 * rng.normal(size=x.shape)
    rows = {"state": x, "action": 0, "reward": x[:, 0], "next_state": y, "terminated": 0}
    model = krl.models.Displacement([((0.0,), (1.0,))], variation=variation, reward_lipschitz=1.0)
    found = krl.certify(rows, model, horizon=2, actions=1, reward_range=(0, 1), cell=0.1).check_declaration()
    assert found.holds == holds and ("large" in found.reason) != holds


def test_displacements_that_are_rounded():
    """Deterministic moves, of states with few digits: rounding depends on where one is."""
    rng = np.random.default_rng(8)
    x = rng.uniform(0.0, 100.0, (20_000, 1)).astype(np.float32)
    rows = {
        "state": x, "action": 0, "reward": 0.0, "next_state": np.minimum(x + np.float32(0.1), np.float32(100.0)),
        "terminated": 0,
    }  # fmt: skip
    model = krl.models.Displacement([((0.0,), (100.0,))], reward_lipschitz=1.0)
    assert krl.certify(rows, model, horizon=2, actions=1, reward_range=(0, 1), cell=1.0).check_declaration()
