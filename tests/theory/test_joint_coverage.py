"""The joint inequality itself, |r̂ + P̂V* - Q*| ≤ B at all states and times, where the states are chosen against it."""

from __future__ import annotations

import numpy as np
import pytest

import kernelrl as krl
from kernelrl.theory.bonuses import Problem, best_radius, joint_coefficients
from naive.kernels import gaussian

RUNS, T = 300, 500
GRID = np.linspace(0.0, 1.0, 41)
SIGMA, BETA, DELTA, SLOPE = 0.2, 1.0, 0.5, 0.6


def mean_reward(x):
    return 0.5 + SLOPE * (x - 0.5)


def violated(normalised, scale, slope=SLOPE, where=None, seed=0):
    """The share of runs in which the bound fails at any state of the grid at any time (one step, coin-flip rewards)."""
    rng = np.random.default_rng(seed)
    g = krl.kernels.Gaussian()
    problem = Problem(1, 1, (1.0,), SIGMA, BETA, g.C1, g.C2, (slope,))
    radius = best_radius(problem, T, DELTA, normalised)
    C, S, D, W2 = (np.full((RUNS, GRID.size), value) for value in (BETA, 0.0, 0.0, 0.0))
    failed, error, bound = np.zeros(RUNS, bool), -mean_reward(GRID) * BETA / C, np.ones_like(C)
    for t in range(1, T + 1):
        # a state where the estimate is worst, to make it worse still; now and then any state
        i = np.where(rng.random(RUNS) < 0.9, (np.abs(error) / bound).argmax(axis=1), rng.integers(GRID.size, size=RUNS))
        x = GRID[i] if where is None else np.full(RUNS, where)
        r = (rng.random(RUNS) < mean_reward(x)).astype(float)
        rho = np.abs(x[:, None] - GRID)
        w = gaussian(rho / SIGMA)
        C, S, D, W2 = C + w, S + w * r[:, None], D + w * rho, W2 + w * w
        c = joint_coefficients(problem, 0, t + 1, radius, DELTA, normalised)
        root = np.sqrt(BETA + W2) if normalised else np.sqrt(C)
        bound = scale * (c.constant + (c.root * root + c.inverse + slope * D) / C)
        error = S / C - mean_reward(GRID)
        failed |= (np.abs(error) > bound).any(axis=1)
    return failed.mean()


@pytest.mark.parametrize("normalised", [False, True])
def test_the_bound_holds(normalised):
    assert violated(normalised, 1.0) <= DELTA


@pytest.mark.parametrize("normalised", [False, True])
def test_a_fifth_of_it_does_not(normalised):
    assert violated(normalised, 0.2) > DELTA


def test_a_wrong_lipschitz_constant_is_seen():
    """Samples at x = 1 are biased elsewhere; without an allowance for that the bound fails, however many there are."""
    assert violated(True, 1.0, where=1.0) <= DELTA
    assert violated(True, 1.0, where=1.0, slope=0.0) == 1.0
