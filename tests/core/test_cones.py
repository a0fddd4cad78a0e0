"""The lowest cone at each point, kept up to date, against minima over all cones."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry import cones as module
from kernelrl.geometry.buckets import WIDTH
from kernelrl.geometry.cones import AFTER, BEFORE, MARGIN, VOID, Claims
from pools import CASES, LISTS, Pool

claim, forget_slack, lowest_cone, rise, search, settle, sink = (
    callable_from_python(getattr(module, name))
    for name in ("claim", "forget_slack", "lowest_cone", "rise", "search", "settle", "sink")
)

each_case = pytest.mark.parametrize("case", CASES)
each_slope = pytest.mark.parametrize("L", [0.0, 0.3, 2.0, 40.0])
R = 3.0
WHICH = 0  # the list that the cones and points below are in
TOLERANCE = {"rtol": 1e-13, "atol": 1e-13}


@each_slope
@each_case
def test_lowest_cone_and_whose_it_is(case, L):
    some = Pool(case)
    heights = np.minimum(R, some.rng.uniform(0, 1.3 * R, len(some.slots)))
    layout = some.spread(heights)
    for u in some.places():
        for which in range(LISTS):
            values = np.where(some.which == which, heights + L * some.at(u), np.inf)
            best, slot = lowest_cone(some.buckets, some.settings.space, which, u, layout, L, R)
            assert_allclose(best, min(R, values.min()), **TOLERANCE)
            if values.min() >= R:
                assert slot == -1
            else:
                assert_allclose(values[some.slots == slot], best, **TOLERANCE)


class World:
    """Cones and points that settle one by one, with `height` of each cone as plain numbers."""

    def __init__(self, case, L, seed, cones=40, points=60):
        self.L, self.tips, self.points = L, Pool(case, cones, seed), Pool(case, points, seed + 1)
        self.space = self.tips.settings.space
        self.height = np.full(cones, R)
        self.settled = np.zeros(points, bool)
        number = np.full(points, -1, np.int32)
        self.fresh = np.zeros(self.points.chunks, bool)
        self.claims = Claims(
            self.tips.spread(self.height), self.tips.spread(np.full(cones, VOID), VOID),
            self.tips.spread(np.full(cones, -1, np.int32), -1), self.points.spread(np.full(points, R), R),
            self.points.spread(number, -1), self.points.spread(np.stack([number, number]), -1),
        )  # fmt: skip
        self.searches = 0

    def mine(self):
        return self.tips.which == WHICH

    def settle(self, i):
        if self.points.which[i] == WHICH and not self.settled[i]:
            self.settled[i] = True
            u, y = self.points.points[i], self.points.slots[i]
            settle(self.tips.buckets, self.space, WHICH, u, y, self.L, R, self.claims)

    def move(self, i, height):
        """As planning does it, for one cone."""
        s, before = self.tips.slots[i], self.height[i]
        queue, orphans = np.zeros(self.points.chunks * WIDTH, int), 0
        if not self.mine()[i] or height == before:
            return
        if height < before:
            sink(self.claims, s, height, self.fresh)
        else:
            orphans = rise(self.claims, s, height, R, queue, 0)
        self.height[i] = height
        if orphans:
            forget_slack(self.tips.buckets, WHICH, self.claims.slack)
        if height < R and self.claims.slack[s // WIDTH, s % WIDTH] < 0:
            self.searches += 1
            u = self.tips.points[i]
            search(self.points.buckets, self.space, WHICH, u, s, self.L, R, self.claims, self.fresh)
        for y in queue[:orphans]:
            place = self.points.points[self.points.slots == y][0]
            best, slot = lowest_cone(self.tips.buckets, self.space, WHICH, place, self.claims.height, self.L, R)
            claim(self.claims, y, slot, best)

    def check(self):
        known = np.flatnonzero(self.settled)
        if not len(known):
            return
        cones = np.array([self.height + self.L * self.tips.at(self.points.points[i]) for i in known])
        cones[:, ~self.mine()] = np.inf
        M, owner = self.points.gather(self.claims.M)[known], self.points.gather(self.claims.owner)[known]
        assert_allclose(M, np.minimum(R, cones.min(1)), **TOLERANCE)
        owned = owner >= 0
        own = np.array([np.flatnonzero(self.tips.slots == s)[0] for s in owner[owned]], int)
        assert_allclose(cones[owned, own], M[owned], **TOLERANCE)
        assert (M[~owned] == R).all()
        slack = self.tips.gather(self.claims.slack)
        assert (slack <= MARGIN * R).all()
        for j in np.flatnonzero(self.mine() & (slack > 0)):
            others = owner != self.tips.slots[j]
            assert (cones[others, j] - M[others] >= slack[j] - 1e-12).all()
        for j, s in enumerate(self.tips.slots):
            assert sorted(self.list_of(s)) == sorted(self.points.slots[known][owner == s]), j

    def list_of(self, s):
        """The points that a cone owns, by following the links."""
        slots, y, before = [], self.claims.first[s // WIDTH, s % WIDTH], -1
        while y >= 0:
            assert self.claims.links[BEFORE, y // WIDTH, y % WIDTH] == before
            slots.append(y)
            before, y = y, self.claims.links[AFTER, y // WIDTH, y % WIDTH]
        return slots


@each_slope
@each_case
def test_cones_fall_and_rise_while_points_settle(case, L):
    world = World(case, L, seed=3)
    for i in range(len(world.settled)):
        world.settle(i)
    moves = 0
    for _ in range(150):
        i = world.tips.rng.integers(len(world.height))
        falls = world.tips.rng.random() < 0.85
        target = world.height[i] - 0.2 * world.tips.rng.random() ** 3 if falls else world.height[i] + 0.5
        world.move(i, float(np.clip(target, 0.0, R)))
        moves += bool(world.mine()[i])
        world.check()
    assert world.fresh.any()
    assert world.searches < moves  # slack is of use


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_order(data):
    """Few heights, so that there are ties; duplicates are among the points and the tips."""
    case, L = data.draw(st.sampled_from(list(CASES))), data.draw(st.sampled_from([0.0, 0.3, 2.0]))
    world = World(case, L, data.draw(st.integers(0, 50)), cones=8, points=8)
    for i in range(8):
        world.settle(i)
    for _ in range(data.draw(st.integers(0, 25))):
        i = data.draw(st.integers(0, 7))
        world.move(i, data.draw(st.sampled_from([0.0, 0.5, 1.0, 1.01, 1.02, 2.5, R])))
        world.check()


@each_case
def test_points_that_come_late(case):
    """A new point is seen by cones whose slack was found before it came."""
    world = World(case, 2.0, seed=5)
    late = world.points.rng.permutation(len(world.settled))
    buckets, slots = world.points.buckets, world.points.slots
    away = buckets.points[slots // WIDTH, :, slots % WIDTH].copy()
    buckets.points[slots // WIDTH, :, slots % WIDTH] = 1e150  # nowhere, until they settle
    for i in late:
        buckets.points[slots[i] // WIDTH, :, slots[i] % WIDTH] = away[i]
        world.settle(i)
        for j in world.tips.rng.integers(len(world.height), size=6):
            world.move(j, max(0.0, world.height[j] - 0.1 * world.tips.rng.random() ** 2))
        world.check()
    assert world.settled.sum() > 20
