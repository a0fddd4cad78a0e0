"""Cones of the Lipschitz interpolation over buckets against minima over all of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from conftest import callable_from_python
from kernelrl.core import interpolation as module
from kernelrl.core.buckets import WIDTH
from pools import CASES, LISTS, Pool

anything_above, cone_radius, cones_at, disown, drop_cone, give, is_below, lowest_cone = (
    callable_from_python(getattr(module, name))
    for name in (
        "anything_above",
        "cone_radius",
        "cones_at",
        "disown",
        "drop_cone",
        "give",
        "is_below",
        "lowest_cone",
    )
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
def test_lowest_cone_and_whose_it_is(case, L):
    some, heights, _ = cones(case)
    layout = some.spread(heights)
    for u in some.places():
        for which in range(LISTS):
            values = all_cones(some, u, heights, L, which)
            best, slot = lowest_cone(some.buckets, some.settings.space, which, u, layout, L, R)
            assert_allclose(best, min(R, values.min()), **TOLERANCE)
            if values.min() >= R:
                assert slot == -1
            else:
                assert_allclose(values[some.slots == slot], best, **TOLERANCE)


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


class Owned:
    """Points with a value and the slot of the cone that each belongs to; cones are in buckets of their own."""

    CONE, OTHER = 77, 5

    def __init__(self, case):
        self.some, self.before, _ = cones(case)
        n, chunks = len(self.before), self.some.chunks
        self.M = self.some.spread(self.before, R)
        self.owner = self.some.spread(np.full(n, self.OTHER), -1)
        self.owned = np.zeros((2, WIDTH), int)
        self.owned.reshape(-1)[self.OTHER] = n
        self.fresh = np.zeros(chunks, bool)

    def drop(self, which, u, height, L):
        buckets, space = self.some.buckets, self.some.settings.space
        drop_cone(buckets, space, which, u, self.CONE, height, L, R, self.M, self.owner, self.owned, self.fresh)

    def disown(self, which, u, height, L, queue, count):
        buckets, space = self.some.buckets, self.some.settings.space
        return disown(buckets, space, which, u, self.CONE, height, L, R, self.M, self.owner, self.owned, queue, count)

    def check_numbers(self):
        """`owned` counts what `owner` says."""
        owners = self.owner[self.owner >= 0]
        assert np.array_equal(self.owned.reshape(-1), np.bincount(owners, minlength=2 * WIDTH))


@each_slope
@each_case
@pytest.mark.parametrize("height", [0.0, 1.0, 2.9, R])
def test_dropping_a_cone(case, L, height):
    for which in range(LISTS):
        for u in Owned(case).some.places(4):
            state = Owned(case)
            some, before = state.some, state.before
            state.drop(which, u, height, L)
            cone = np.where(some.which == which, height + L * some.at(u), np.inf)
            assert_allclose(some.gather(state.M), np.minimum(before, cone), **TOLERANCE)
            changed = some.gather(state.M) < before
            assert np.array_equal(some.gather(state.owner), np.where(changed, state.CONE, state.OTHER))
            state.check_numbers()
            assert set(np.flatnonzero(state.fresh)) == set(some.slots[changed] // WIDTH)
            outside = some.spread(np.zeros(len(before), bool), True)
            assert (state.M[outside] == R).all() and (state.owner[outside] == -1).all()


@each_slope
@each_case
def test_disowning_finds_all_that_a_cone_owns(case, L):
    """A cone is dropped, then taken away again: all next states that it owned are found, and no others."""
    total = 0
    for which in range(LISTS):
        for u in Owned(case).some.places(4):
            state = Owned(case)
            some, before = state.some, state.before
            state.drop(which, u, 0.4, L)
            kept = some.gather(state.owner) != state.CONE
            owned = some.slots[~kept]
            queue = np.full(some.chunks * WIDTH, -9)
            queue[:3] = 1, 2, 3
            count = state.disown(which, u, 0.4, L, queue, 3)
            assert queue[:3].tolist() == [1, 2, 3]
            assert sorted(queue[3:count]) == sorted(owned)
            assert (some.gather(state.M)[~kept] == R).all() and (some.gather(state.owner)[~kept] == -1).all()
            assert np.array_equal(some.gather(state.M)[kept], before[kept])
            assert (some.gather(state.owner)[kept] == state.OTHER).all()
            state.check_numbers()
            total += len(owned)
    assert total > 0


def test_giving():
    owner, owned = np.full((2, WIDTH), -1), np.zeros((2, WIDTH), int)
    for s, numbers in ((70, {70: 1}), (3, {3: 1}), (3, {3: 1}), (-1, {}), (-1, {})):
        give(owner, owned, 1, 4, s)
        assert owner[1, 4] == s and (np.delete(owner.reshape(-1), WIDTH + 4) == -1).all()
        assert {i: n for i, n in enumerate(owned.reshape(-1).tolist()) if n} == numbers


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
