"""Buckets against plain lists: a search misses nothing, slots stay, growing changes nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry import buckets as module
from kernelrl.geometry.buckets import (
    AWAY,
    LANES,
    NARROW,
    WIDTH,
    chunks_left,
    grow_buckets,
    lengthen,
    new_buckets,
    number_of_chunks,
)
from kernelrl.geometry.metrics import Lp
from naive import metrics as naive

add_point, near, near_too, all_chunks, size_of, found, distances_in, point_at, total_and_dot, lanes = (
    callable_from_python(getattr(module, name))
    for name in (
        "add_point",
        "near",
        "near_too",
        "all_chunks",
        "size_of",
        "found",
        "distances_in",
        "point_at",
        "total_and_dot",
        "lanes",
    )
)

LISTS = 3
LOW, HIGH = np.array([-1.0, 0.0, 2.0]), np.array([1.0, 0.5, 5.0])
BOXES = {
    "bounded": (LOW, HIGH),
    "unbounded": (np.full(3, -np.inf), np.full(3, np.inf)),
    "from below": (LOW, np.full(3, np.inf)),
    "from above": (np.full(3, -np.inf), HIGH),
    "mixed": (np.array([-1.0, -np.inf, 2.0]), np.array([np.inf, 0.5, 5.0])),
    "flat": (LOW, np.array([1.0, 0.0, 2.0])),
    "a point": (LOW, LOW),
}


class Filled:
    """Buckets with random points in random lists, and the same points in a plain list."""

    def __init__(
        self, seed, d=2, n=200, box="bounded", cell=0.3, p=2.0, width=WIDTH, chunks=16, lattice=False, outside=0.1
    ):
        rng = np.random.default_rng(seed)
        low, high = (bound[:d] for bound in BOXES[box])
        self.space = Lp(p).space(low, high)
        self.buckets = new_buckets(LISTS, low, high, cell, width, chunks)
        points = LOW[:d] + (HIGH - LOW)[:d] * rng.random((n, d))
        points = np.where(rng.random((n, 1)) < outside, points + rng.normal(0, 3, (n, d)), points)
        self.points = np.round(points * 4) / 4 if lattice else points
        self.which = rng.choice(LISTS, size=n, p=[0.7, 0.25, 0.05])
        self.slots = np.array([self.add(which, u) for which, u in zip(self.which, self.points, strict=True)], int)

    def add(self, which, u):
        while chunks_left(self.buckets) < 1:
            self.buckets = grow_buckets(self.buckets, 2 * number_of_chunks(self.buckets))
        return add_point(self.buckets, which, u)

    def slots_found(self, n):
        """Slots of all points of the `n` chunks that were found."""
        chunks = [found(self.buckets, i) for i in range(n)]
        assert len(set(chunks)) == n, "a chunk was found twice"
        return {chunk * WIDTH + place for chunk in chunks for place in range(size_of(self.buckets, chunk))}


filled = st.builds(
    Filled,
    seed=st.integers(0, 2**32 - 1),
    d=st.integers(1, 3),
    n=st.sampled_from([0, 1, 5, 63, 64, 65, 300]),
    box=st.sampled_from(sorted(BOXES)),
    cell=st.sampled_from([0.01, 0.3, 1.0, 50.0, math.inf]),
    p=st.sampled_from([1.0, 2.0, 3.0, math.inf]),
    width=st.sampled_from([WIDTH, NARROW]),
    chunks=st.sampled_from([1, 16, 400]),
    lattice=st.booleans(),
)


@settings(max_examples=150, deadline=None)
@given(filled, st.data())
def test_search_misses_nothing(some, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    radius = data.draw(st.sampled_from([0.0, 0.01, 0.2, 1.0, 7.0, 1e200, math.inf]))
    which = data.draw(st.integers(0, LISTS - 1))
    d = some.buckets.points.shape[1]
    u = LOW[:d] + (HIGH - LOW)[:d] * rng.uniform(-1, 2, d)
    if len(some.points) and data.draw(st.booleans()):
        u = some.points[rng.integers(len(some.points))].copy()
    there = some.slots_found(near(some.buckets, some.space, which, u, radius))
    mine = some.which == which
    assert there <= set(some.slots[mine].tolist()), "a point of another list was found"
    rho = naive.lp(some.space.p)(u[None], some.points)[0] if len(some.points) else np.zeros(0)
    assert set(some.slots[mine & (rho <= radius * (1 - 1e-12))].tolist()) <= there


def test_searches_one_behind_the_other():
    some = Filled(1, n=500)
    u, radius = np.array([0.1, 0.2]), 0.4
    apart = [
        [found(some.buckets, i) for i in range(near(some.buckets, some.space, w, u, radius))] for w in range(LISTS)
    ]
    ends, n = [], 0
    for which in range(LISTS):
        n = near_too(some.buckets, some.space, which, u, radius, n)
        ends.append(n)
    together = [found(some.buckets, i) for i in range(n)]
    assert ends == np.cumsum([len(chunks) for chunks in apart]).tolist() and n > 3
    assert together == [chunk for chunks in apart for chunk in chunks]


def test_search_leaves_out_what_is_far():
    """Or it would be no search."""
    some = Filled(0, n=2000, cell=0.1, outside=0.0)
    everything = all_chunks(some.buckets, 0)
    here = near(some.buckets, some.space, 0, np.array([0.0, 0.25]), 0.1)
    assert 0 < here < everything / 10
    assert near(some.buckets, some.space, 0, np.array([9.0, 9.0]), 0.1) == 0


@settings(max_examples=60, deadline=None)
@given(filled)
def test_all_chunks(some):
    for which in range(LISTS):
        assert some.slots_found(all_chunks(some.buckets, which)) == set(some.slots[some.which == which].tolist())


@settings(max_examples=60, deadline=None)
@given(filled)
def test_each_point_lies_in_its_slot(some):
    assert len(set(some.slots.tolist())) == len(some.slots)
    there = np.empty(some.points.shape[1])
    for u, slot in zip(some.points, some.slots, strict=True):
        assert np.array_equal(some.buckets.points[slot // WIDTH, :, slot % WIDTH], u)
        point_at(some.buckets, slot, there)
        assert np.array_equal(there, u)
    used = some.buckets.used[0]
    assert used == number_of_chunks(some.buckets) - chunks_left(some.buckets)
    sizes = [size_of(some.buckets, chunk) for chunk in range(used)]
    assert sum(sizes) == len(some.points) and 0 not in sizes
    for chunk, size in enumerate(sizes):
        inside = some.points[some.slots // WIDTH == chunk]
        assert np.array_equal(some.buckets.box[0, chunk], inside.min(axis=0))
        assert np.array_equal(some.buckets.box[1, chunk], inside.max(axis=0))
        assert (some.buckets.points[chunk, :, size:] == AWAY).all()


@settings(max_examples=40, deadline=None)
@given(filled)
def test_points_of_a_chunk_are_in_order_of_arrival(some):
    for chunk in range(some.buckets.used[0]):
        places = (some.slots % WIDTH)[some.slots // WIDTH == chunk]
        assert places.tolist() == list(range(len(places)))


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_a_chunk_is_filled_before_the_next_is_begun(width):
    some = Filled(0, n=3 * WIDTH + 5, cell=math.inf, width=width)
    for which in range(LISTS):
        sizes = [size_of(some.buckets, found(some.buckets, i)) for i in range(all_chunks(some.buckets, which))]
        assert sizes[:-1] == [width] * (len(sizes) - 1)  # one cell, so one chain, in order
        chunks = (some.slots // WIDTH)[some.which == which]
        assert (np.diff(chunks) >= 0).all()


@pytest.mark.parametrize("box", sorted(BOXES))
@pytest.mark.parametrize("d", [1, 2, 3])
def test_capacity_decides_nothing(d, box):
    options = {"seed": 5, "d": d, "n": 500, "box": box, "cell": 0.2}
    small, large = Filled(**options, chunks=1), Filled(**options, chunks=1000)
    assert number_of_chunks(small.buckets) < number_of_chunks(large.buckets) == 1000
    assert np.array_equal(small.slots, large.slots)
    u = np.full(d, 0.2)
    for which in range(LISTS):
        for radius in (0.3, math.inf):
            n = near(small.buckets, small.space, which, u, radius)
            assert n == near(large.buckets, large.space, which, u, radius)
            assert [found(small.buckets, i) for i in range(n)] == [found(large.buckets, i) for i in range(n)]


def test_growing_keeps_what_is_there():
    some = Filled(2, n=100)
    old, chunks = some.buckets, number_of_chunks(some.buckets)
    new = grow_buckets(old, 3 * chunks)
    assert number_of_chunks(new) == 3 * chunks
    assert chunks_left(new) == chunks_left(old) + 2 * chunks
    assert np.array_equal(new.points[:chunks], old.points) and (new.points[chunks:] == AWAY).all()
    assert np.array_equal(new.box[:, :chunks], old.box)
    assert (new.box[0, chunks:] == np.inf).all() and (new.box[1, chunks:] == -np.inf).all()
    assert np.array_equal(new.chain[:, :chunks], old.chain)
    assert (new.chain[module.FOLLOWING, chunks:] == -1).all() and (new.chain[module.SIZE, chunks:] == 0).all()


@pytest.mark.parametrize("width", [WIDTH, NARROW])
def test_payload_and_lengthening(width):
    buckets = new_buckets(1, LOW, HIGH, 0.5, width, chunks=4)
    marks = module.payload(buckets, 2, 3, dtype=np.int64, fill=-1)
    assert marks.shape == (2, 3, 4, width) and marks.dtype == np.int64 and (marks == -1).all()
    assert module.payload(buckets).dtype == np.float64
    marks[:] = np.arange(marks.size).reshape(marks.shape)
    longer = lengthen(marks, 9, 2, fill=-5)
    assert longer.shape == (2, 3, 9, width) and longer.dtype == np.int64
    assert np.array_equal(longer[:, :, :4], marks) and (longer[:, :, 4:] == -5).all()


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("cell", [1e-9, 0.01, 0.3, math.inf])
@pytest.mark.parametrize("box", sorted(BOXES))
def test_grid_stays_small(box, cell, d):
    """However small the cells are asked to be."""
    low, high = (bound[:d] for bound in BOXES[box])
    buckets = new_buckets(LISTS, low, high, cell)
    cells = int(buckets.grid[module.CELLS].prod())
    assert buckets.ends.shape[:2] == (2, LISTS) and 1 <= cells <= module.MOST_CELLS
    assert np.isfinite(buckets.grid).all()
    if cell == math.inf:
        assert cells == 1


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, math.inf])
@pytest.mark.parametrize("n", [1, 7, 8, 9, 64])
def test_distances_within_a_chunk(n, p):
    some = Filled(3, n=n, cell=math.inf, p=p)
    u = np.array([0.1, 0.2])
    for which in range(LISTS):
        for i in range(all_chunks(some.buckets, which)):
            chunk = found(some.buckets, i)
            written = distances_in(some.buckets, some.space, chunk, u)
            size = size_of(some.buckets, chunk)
            assert written % LANES == 0 and size <= written < size + LANES
            inside = some.points[some.slots // WIDTH == chunk]
            expected = naive.lp(p)(u[None], inside)[0] ** 2
            assert_allclose(some.buckets.buffer[:size], expected, rtol=1e-12)
            assert (some.buckets.buffer[size:written] > 1e200).all()


def test_lanes():
    assert [lanes(n) for n in range(WIDTH + 1)] == [-(-n // LANES) * LANES for n in range(WIDTH + 1)]
    assert WIDTH % LANES == NARROW % LANES == 0  # or work on whole lanes would leave the chunk


@pytest.mark.parametrize("n", [0, 1, 8, 24, WIDTH])
def test_total_and_dot(n):
    rng = np.random.default_rng(n)
    weights, values = rng.random(WIDTH), rng.normal(size=(3, WIDTH))
    total, dot = total_and_dot(weights, values, 1, n)
    assert total == pytest.approx(weights[:n].sum(), rel=1e-13, abs=1e-15)
    assert dot == pytest.approx(weights[:n] @ values[1, :n], rel=1e-12, abs=1e-13)
