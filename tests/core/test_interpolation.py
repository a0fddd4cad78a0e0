"""Cones of the Lipschitz interpolation over buckets against minima over all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry import interpolation as module
from kernelrl.geometry.buckets import WIDTH
from pools import CASES, LISTS, Pool

anything_above, cone_radius, cones_at, is_below = (
    callable_from_python(getattr(module, name)) for name in ("anything_above", "cone_radius", "cones_at", "is_below")
)

each_case = pytest.mark.parametrize("case", CASES)
each_slope = pytest.mark.parametrize("L", [0.0, 0.3, 2.0, 40.0])
R = 3.0
TOLERANCE = {"rtol": 1e-13, "atol": 1e-14}


def cones(case, seed=0, n=150):
    """Points with heights, several of them at the cap, and the lowest height of each chunk."""
    some = Pool(case, n, seed)
    heights = np.minimum(R, some.rng.uniform(0, 1.3 * R, n))
    lowest = np.full(some.chunks, np.inf)
    np.minimum.at(lowest, some.slots // WIDTH, heights)
    return some, heights, lowest


def all_cones(some, u, heights, L, which):
    """Height of each cone at `u`, (n,); +∞ for those of other lists."""
    return np.where(some.which == which, heights + L * some.at(u), np.inf)


def test_radius():
    assert cone_radius(R, 1.0, 4.0) == 0.5
    assert cone_radius(R, R, 4.0) == 0.0
    assert cone_radius(R, 1.0, 0.0) == math.inf


@settings(max_examples=200, deadline=None)
@given(st.floats(0, R), st.sampled_from([0.0, 0.5, 2.0]), st.floats(0, 4), st.floats(0, R))
def test_below(height, L, distance, value):
    excess = value - (height + L * distance)
    if abs(excess) > 1e-6:
        assert is_below(height, L, distance**2, value) == (excess > 0)


@each_slope
@each_case
def test_lowest_below_a_bound(case, L):
    some, heights, lowest = cones(case)
    layout = some.spread(heights)
    for u in some.places():
        for which in range(LISTS):
            for start, radius in ((R, cone_radius(R, 0.0, L)), (0.1, cone_radius(R, 0.0, L)), (math.inf, math.inf)):
                found = cones_at(some.buckets, some.settings.space, which, u, layout, lowest, L, radius, start)
                assert_allclose(found, min(start, all_cones(some, u, heights, L, which).min()), **TOLERANCE)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_anything_above_is_never_silent_about_a_point_that_would_be_lowered(data):
    n = data.draw(st.sampled_from([8, 16, 64]))
    size = data.draw(st.integers(1, n))  # the rest is padding, infinitely far away
    value, distance = st.floats(0, R, allow_subnormal=False), st.floats(0, 4, allow_subnormal=False)
    values = np.array(data.draw(st.lists(value, min_size=size, max_size=size)) + [0.0] * (n - size))
    squares = np.array(data.draw(st.lists(distance, min_size=size, max_size=size)) + [math.inf] * (n - size)) ** 2
    height = data.draw(st.one_of(st.sampled_from([0.0, R]), value))
    L = data.draw(st.sampled_from([0.0, 0.5, 2.0]))
    below = values[:size] - (height + L * np.sqrt(squares[:size]))  # by how much each would be lowered
    with np.errstate(invalid="ignore"):  # 0·∞ in the padding where L = 0
        found = anything_above(np.stack([np.full(n, -1.0), values]), 1, n, squares, height, L * L)
    if below.max() > 1e-6:
        assert found
    if below.max() < -1e-6:
        assert not found
