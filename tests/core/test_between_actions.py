"""Bounds between actions against the same in plain NumPy, and branch and bound against a fine grid."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry.actions import Among, Apart, Interval, region_of
from kernelrl.jit.compile import inner
from kernelrl.planning import between_actions as module
from kernelrl.planning.sides import LOWER, UPPER
from naive.between_actions import Between

R = 4.0


@inner
def spread_and_highest(between, side, L, q, R):
    module.spread_over_actions(between, side, L, q)
    return module.highest_of_all(between, side, L, q, R)


both = callable_from_python(spread_and_highest)
slopes = st.sampled_from([0.0, 0.05, 0.7, 3.0])
heights = st.one_of(st.floats(0.0, 6.0), st.just(np.inf), st.just(1.0))


def distances(points, p=2.0):
    return Between(points, p).rho(points)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.floats(-2, 2), heights), min_size=1, max_size=8, unique_by=lambda each: each[0]), slopes)
def test_upper_bounds_in_one_dimension(actions, L):
    points, q = (np.array(part) for part in zip(*sorted(actions), strict=True))
    points = points[:, None]
    for kind, all_between in ((Among, False), (Interval, True)):
        naive, found = Between(points, all_between=all_between), q.copy()
        best = both(kind(distances(points)), UPPER, L, found, R)
        assert_allclose(found, naive.spread(q, L), atol=1e-12)
        assert_allclose(best, min(R, naive.highest(q, L)), atol=1e-12)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-3.0, 4.0), min_size=2, max_size=8), slopes)
def test_lower_bounds(q, L):
    """The best action of the net is the best of all: bounds fall on all sides of each."""
    points, q = np.arange(float(len(q)))[:, None], np.array(q)
    for between in (Among(distances(points)), Interval(distances(points))):
        found = q.copy()
        best = both(between, LOWER, L, found, R)
        assert_allclose(found, -Between(points).spread(-q, L), atol=1e-12)
        assert_allclose(best, max(0.0, q.max()), atol=1e-12)


def test_apart():
    q = np.array([1.0, 3.0])
    assert both(Apart(), UPPER, 0.1, q, R) == 3.0
    assert q.tolist() == [1.0, 3.0]


@settings(max_examples=60, deadline=None)
@given(st.data())
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, np.inf])
def test_branch_and_bound(p, data):
    """The bound is never below the largest value, and hardly above it; where cells run out, by a part of a cell."""
    bins = data.draw(st.sampled_from([(2, 2), (3, 4), (5, 2), (2, 2, 3)]))
    L = data.draw(slopes)
    axes = [np.linspace(0.0, width, n) for n, width in zip(bins, (1.0, 2.0, 0.5), strict=False)]
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    q = rng.uniform(0.0, data.draw(st.sampled_from([0.3, 3.0, 6.0])), int(np.prod(bins)))
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    naive, found = Between(points, p), q.copy()
    best = both(region_of(distances(points, p), p, axes), UPPER, L, found, R)
    assert_allclose(found, naive.spread(q, L), atol=1e-12)
    steps = 81 if len(bins) == 2 else 31
    lowest = min(R, naive.highest_on_grid(q, L, steps))
    apart = np.linalg.norm([axis[-1] / (steps - 1) for axis in axes], p)
    radius = np.linalg.norm([0.5 * axis[1] for axis in axes], p)  # of the cells of the net
    enough = len(bins) == 2 and p in (2.0, 3.0)  # else q may be largest along a whole ridge
    slack = max(module.TOLERANCE * R, 0.0 if enough else L * radius / 4)
    assert lowest - 1e-12 <= best <= min(R, lowest + L * apart + slack) + 1e-12


def test_a_tent():
    """Four equal corners of a square: the centre is highest."""
    axes = [np.array([0.0, 1.0])] * 2
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
    best = both(region_of(distances(points), 2.0, axes), UPPER, 1.0, np.full(4, 1.0), R)
    assert 1.0 + np.sqrt(0.5) <= best + 1e-12 <= 1.0 + np.sqrt(0.5) + 1e-3 * R


def test_a_ridge():
    """In the maximum norm q is largest along a whole ridge: the search ends, with a bound that holds and is below R."""
    axes = [np.linspace(0.0, 1.0, 2)] * 4
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 4)
    q = np.full(16, 1.0)
    region = region_of(distances(points, np.inf), np.inf, axes)
    assert 1.5 - 1e-12 <= both(region, UPPER, 1.0, q, 100.0) <= 1.5 + 0.5
    assert both(region, UPPER, 100.0, np.full(16, 1.0), 3.0) == 3.0
