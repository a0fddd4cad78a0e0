"""Plans, rules, bonuses and envelopes against plain loops, on random problems of one to three dimensions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrl.certifying import pools, samples
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Cells, Room
from kernelrl.certifying.plan import RewardBounds, backward
from kernelrl.certifying.pools import pieces_of
from kernelrl.certifying.rewards import PARTS, envelope
from kernelrl.certifying.samples import observed
from naive import displacement as naive

A, H = 2, 3
COUNTS = {1: [(5,), (3,)], 2: [(4, 3), (2, 3)], 3: [(2, 3, 2)]}
SLACK = 1e-12


def rooms_of(d):
    """Two rooms, beside each other on the first axis; one in three dimensions."""
    found = []
    for i, counts in enumerate(COUNTS[d]):
        low = np.zeros(d)
        low[0] = 1.5 * i
        found.append(Room(low, low + 1.0 + 0.25 * np.arange(d), counts))
    return tuple(found)


def rooms_at(rooms, x):
    return Cells(rooms, np.full(x.shape[1], SLACK)).room_of(x)


def transitions(rng, rooms, n, noise, far):
    """Random transitions: displacements by action, some of them often the same, clipped onto the room."""
    d = len(rooms[0].counts)
    which = rng.integers(len(rooms), size=n)
    low, high = np.array([r.low for r in rooms])[which], np.array([r.high for r in rooms])[which]
    x = low + rng.random((n, d)) * (high - low)
    x[rng.random(n) < 0.2] = x[:1]  # duplicates
    a = rng.integers(A, size=n)
    moves = np.where(a[:, None] == 0, far, -far / 2) + noise * rng.choice([-1.0, 0.0, 0.3, 1.0], size=(n, d))
    low, high = (
        np.array([r.low for r in rooms])[rooms_at(rooms, x)],
        np.array([r.high for r in rooms])[rooms_at(rooms, x)],
    )
    return x, a, rng.random(n), np.clip(x + moves, low, high)


def seen(cells, rng, n, noise, far):
    x, a, r, y = transitions(rng, cells.rooms, n, noise, far)
    found = observed(cells, x, a, r, y, A)
    listed = [
        naive.Sample(int(i), tuple(p), int(b), tuple(q), float(v))
        for i, p, b, q, v in zip(cells.room_of(x), x.tolist(), a, y.tolist(), r, strict=True)
    ]
    return found, listed


def plain(room):
    return room.low.tolist(), room.high.tolist(), room.counts


problems = st.tuples(
    st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 2, 7, 30]),
    st.sampled_from([0.0, 0.02, 0.2]), st.sampled_from([0.0, 0.11, 5.0]),
)  # fmt: skip


@pytest.mark.parametrize("variation", [0.0, 0.1, 1.0])
@settings(max_examples=25, deadline=None)
@given(problem=problems, slope=st.sampled_from([None, 0.5, 4.0]), span=st.sampled_from([1, 2]))
def test_plan(variation, problem, slope, span):
    seed, d, n, noise, far = problem
    rng = np.random.default_rng(seed)
    cells = Cells(rooms_of(d), np.full(d, SLACK))
    warm, each = samples.WARM, pools.BLOCKS[d]
    try:
        samples.WARM, pools.BLOCKS[d] = 1, 2
        found, listed = seen(cells, rng, n, noise, far)
        pieces = pieces_of(cells, found, A, variation)
    finally:
        samples.WARM, pools.BLOCKS[d] = warm, each
    high = [rng.random((A, *room.counts)) for room in cells.rooms]
    rewards = RewardBounds(tuple(h * rng.random() for h in high), tuple(high))
    bonus = Bonus.of(2.0 * H * A * cells.number * len(pieces[0].pools), 0.5)
    scale = 0.05  # so that bounds are not all 0 and R
    values = backward(pieces, rewards, H, bonus, slope=slope, span=span, scale=scale)
    L, U = naive.plan(
        [plain(room) for room in cells.rooms], H, A, listed, [SLACK] * d,
        lambda i, c, a: rewards.lower[i][(a, *c)], lambda i, c, a: rewards.upper[i][(a, *c)], 0.5,
        warm=1, slope=slope, variation=variation, each=2, span=span, scale=scale,
    )  # fmt: skip
    for h, i in itertools.product(range(H), range(len(cells.rooms))):
        for c in np.ndindex(*cells.rooms[i].counts):
            assert values.lower[i][(h, *c)] == pytest.approx(L[h, i, c], abs=1e-9)
            assert values.upper[i][(h, *c)] == pytest.approx(U[h, i, c], abs=1e-9)
            assert values.lower[i][(h, *c)] <= L[h, i, c] + 1e-15 and values.upper[i][(h, *c)] >= U[h, i, c] - 1e-15


@settings(max_examples=50, deadline=None)
@given(problem=problems, warm=st.sampled_from([1, 2, 5]))
def test_which_samples_count(problem, warm):
    seed, d, n, noise, far = problem
    cells = Cells(rooms_of(d), np.full(d, SLACK))
    before = samples.WARM
    try:
        samples.WARM = warm
        found, listed = seen(cells, np.random.default_rng(seed), n, noise, far)
    finally:
        samples.WARM = before
    rooms = [plain(room) for room in cells.rooms]
    assert found.censored.tolist() == [naive.is_censored(s, rooms, [SLACK] * d) for s in listed]
    assert found.kept.tolist() == naive.keep(listed, rooms, [SLACK] * d, warm)


def test_all_censored_samples_say_nothing():
    """Displacements that always end at a wall: no sample is kept, or they give the widest bounds."""
    cells = Cells(rooms_of(2), np.full(2, SLACK))
    found, _ = seen(cells, np.random.default_rng(0), 30, 0.0, 5.0)
    assert found.censored[found.actions == 0].all() and not found.kept.any()
    found.kept[:] = True
    high = tuple(np.ones((1, *room.counts)) for room in cells.rooms)
    values = backward(
        pieces_of(cells, found, A, 0.0), RewardBounds(tuple(0 * h for h in high), high), H, Bonus.of(1, 0.5)
    )
    assert all((v == np.arange(H, 0, -1).reshape(-1, 1, 1)).all() for v in values.upper)
    assert all((v == 0).all() for v in values.lower)


@given(v=st.floats(0.0, 1e7), n=st.integers(1, 10**7), R=st.integers(1, 50), statements=st.floats(1.0, 1e9))
def test_bonus(v, n, R, statements):
    found = float(Bonus.of(statements, 0.05)(np.array([v]), n, R)[0])
    assert found == pytest.approx(naive.bonus(v, n, R, statements, 0.05), rel=1e-10)


@settings(max_examples=40, deadline=None)
@given(problem=problems, slope=st.sampled_from([0.5, 4.0]))
def test_envelopes(problem, slope):
    """Never tighter than all samples allow, and the same where there are few."""
    seed, d, n, _, _ = problem
    rng = np.random.default_rng(seed)
    cells = Cells(rooms_of(d), np.full(d, SLACK))
    x, a, _, y = transitions(rng, cells.rooms, n, 0.1, 0.1)
    goal = cells.rooms[0].centres().reshape(-1, d)[0]
    r = np.clip(1.0 - 0.5 * np.linalg.norm(x - goal, axis=1), 0.0, 1.0)
    found = observed(cells, x, a, r, y, A)
    own = found.rooms == 0
    low, high = envelope(cells.rooms[0], found, own, slope, 1e-9)
    listed = [naive.Sample(0, tuple(p), 0, tuple(p), float(v)) for p, v in zip(x[own].tolist(), r[own], strict=True)]
    L, U = naive.envelope(plain(cells.rooms[0]), listed, slope, 1e-9, PARTS)
    for c in np.ndindex(*cells.rooms[0].counts):
        assert low[c] <= L[c] + 1e-12 and high[c] >= U[c] - 1e-12
        if len(listed) <= 1:
            assert low[c] == pytest.approx(L[c], abs=1e-9) and high[c] == pytest.approx(U[c], abs=1e-9)
    assert math.isfinite(float(high.sum()))
