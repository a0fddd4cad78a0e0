"""Counts and weighted sums over buckets against sums over all samples."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.bonuses.interface import value
from kernelrl.bonuses.smoothed import Simplified, bonus_object
from kernelrl.geometry.buckets import WIDTH
from kernelrl.stores import estimates as module
from naive.estimates import simplified_bonus
from pools import BETA, CASES, LISTS, H, Pool

add_change, add_weights, list_counts, renew_targets, row_sums_at, sums_at, list_targets, weight_between = (
    callable_from_python(getattr(module, name))
    for name in (
        "add_change",
        "add_weights",
        "list_counts",
        "renew_targets",
        "row_sums_at",
        "sums_at",
        "list_targets",
        "weight_between",
    )
)

each_case = pytest.mark.parametrize("case", CASES)
TOLERANCE = {"rtol": 1e-12, "atol": 1e-14}


@each_case
@pytest.mark.parametrize("n", [1, 40, 400])
def test_sums(case, n):
    some = Pool(case, n)
    values = some.rng.normal(size=n)
    G = some.spread(values)
    for u in some.places():
        for which in range(LISTS):
            w = some.weights(u, which)
            C, T = sums_at(some.settings, some.buckets, which, u, G)
            assert_allclose([C, T], [BETA + w.sum(), w @ values], **TOLERANCE)


@each_case
@pytest.mark.parametrize("h", [0, H - 1])
def test_targets(case, h):
    """T/C + B for every action at once."""
    some = Pool(case, n=400, cell=0.1)
    values = some.rng.random(400)
    G, q = some.spread(values), np.zeros(LISTS)
    for u in some.places():
        list_targets(some.settings, some.buckets, G, u, h, False, q)
        for which in range(LISTS):
            w = some.weights(u, which)
            C = BETA + w.sum()
            assert_allclose(q[which], w @ values / C + simplified_bonus(C, H - h, 0.3), **TOLERANCE)


@each_case
def test_sums_of_rows(case):
    some = Pool(case)
    values = some.rng.normal(size=(H, len(some.points)))
    G, T = some.spread(values), np.full(H, 99.0)
    for u in some.places():
        for which in range(LISTS):
            w = some.weights(u, which)
            C = row_sums_at(some.settings, some.buckets, which, u, G, T)
            assert_allclose([C, *T], [BETA + w.sum(), *(values @ w)], **TOLERANCE)


@each_case
@pytest.mark.parametrize("stationary", [True, False])
def test_counts(case, stationary):
    """One list an action when data are pooled; here one pool holds all lists, the others nothing."""
    some = Pool(case, stationary=stationary, actions=LISTS)
    G = some.spread(np.zeros(len(some.points)))
    out = np.zeros(LISTS)
    for u in some.places():
        list_counts(some.settings, some.buckets, G, u, 0, out)
        assert_allclose(out, [BETA + some.weights(u, which).sum() for which in range(LISTS)], **TOLERANCE)


def test_counts_of_a_later_step():
    pooled, apart = Pool("plane", stationary=True, actions=1), Pool("plane", stationary=False, actions=1)
    u, out = np.array([0.4, 0.6]), np.zeros(1)
    for h in range(LISTS):
        for some, which in ((pooled, 0), (apart, h)):
            list_counts(some.settings, some.buckets, some.spread(np.zeros(len(some.points))), u, h, out)
            assert_allclose(out, BETA + some.weights(u, which).sum(), **TOLERANCE)


@each_case
def test_weight_between_two_states(case):
    some = Pool(case)
    for u in some.places():
        for v in some.points[:20]:
            w = weight_between(some.settings, u, v, some.buckets.buffer)
            expected = some.g(some.rho(u[None], v[None]) / 0.15)[0, 0]
            assert w == pytest.approx(expected, rel=1e-11, abs=1e-15)


@each_case
def test_adding_a_sample_to_the_sums(case):
    some = Pool(case)
    n = len(some.points)
    for which in range(LISTS):
        for u in some.places():
            targets = some.rng.normal(size=H)
            before_C, before_T = some.rng.random(n), some.rng.normal(size=(H, n))
            C, T = some.spread(before_C), some.spread(before_T)
            touched = np.zeros((H, some.chunks), bool)
            add_weights(some.settings, some.buckets, which, u, targets, C, T, touched)
            w = some.weights(u, which)
            assert_allclose(some.gather(C), before_C + w, **TOLERANCE)
            assert_allclose(some.gather(T), before_T + targets[:, None] * w, **TOLERANCE)
            check_touched(some, touched.any(axis=0), w)
            assert (touched.all(axis=0) == touched.any(axis=0)).all()


@each_case
@pytest.mark.parametrize("radius", [0.05, 0.4, np.inf])
def test_passing_on_a_change(case, radius):
    some = Pool(case)
    n, change = len(some.points), -0.7
    for which in range(LISTS):
        for u in some.places():
            before = some.rng.normal(size=n)
            T, touched = some.spread(before), np.zeros(some.chunks, bool)
            add_change(some.settings, some.buckets, which, u, change, radius, T, touched)
            w = some.weights(u, which)
            after = some.gather(T)
            inside = some.at(u) <= radius
            assert_allclose(after[inside], (before + change * w)[inside], **TOLERANCE)
            # a chunk is changed whole or not at all, so points farther away may have changed, but then rightly
            moved = after != before
            assert_allclose(after[moved], (before + change * w)[moved], **TOLERANCE)
            check_touched(some, touched, w * inside)


def check_touched(some, touched, w):
    """Every chunk with a weight worth speaking of has its flag, and no chunk in which there is none."""
    chunks = some.slots // WIDTH
    assert touched[chunks[w > 1e-14]].all()
    assert not touched[some.buckets.used[0] :].any()
    assert set(np.flatnonzero(touched)) <= set(chunks)


def test_flags_are_not_set_everywhere():
    some = Pool("compact", n=400, cell=0.05, inverse_sigma2=1 / 0.01**2, reach=0.05)
    touched = np.zeros((1, some.chunks), bool)
    C, T = some.spread(np.zeros(400)), some.spread(np.zeros((1, 400)))
    add_weights(some.settings, some.buckets, 0, np.array([0.5, 0.5]), np.ones(1), C, T, touched)
    assert 0 < touched.sum() < some.buckets.used[0] / 4


@pytest.mark.parametrize("h", range(H))
def test_renewing_targets(h):
    some = Pool("plane", n=300)
    n, old = len(some.points), -5.0
    counts, sums = BETA + some.rng.random(n), some.rng.random(n)
    C, T, Q = some.spread(counts, 1.0), some.spread(sums), some.spread(np.full(n, old), old)
    touched, lowest = some.rng.random(some.chunks) < 0.5, np.full(some.chunks, old)
    renew_targets(some.settings, some.buckets, 1, h, C, T, np.zeros((0, 1, 1, 1)), 0, Q, lowest, touched)
    due = (some.which == 1) & touched[some.slots // WIDTH]
    assert due.any() and not due[some.which == 1].all()
    expected = np.where(due, sums / counts + simplified_bonus(counts, H - h, 0.3), old)
    assert_allclose(some.gather(Q), expected, rtol=1e-13)
    chunks = some.slots // WIDTH
    for chunk in range(some.chunks):
        mine = due & (chunks == chunk)
        assert lowest[chunk] == (some.gather(Q)[mine].min() if mine.any() else old)


def test_bonus():
    settings = Pool("plane", n=1).settings
    for h in range(H):
        for C in (0.05, 1.0, 37.5):
            assert value(settings.bonus, h, C, 0.0, 0.0) == pytest.approx(
                float(simplified_bonus(np.array(C), H - h, 0.3)), rel=1e-14
            )


def test_resolving_a_bonus():
    assert bonus_object("simplified") == Simplified()
    for wrong in ("simple", None, 0, ["simplified"]):
        with pytest.raises(ValueError, match=r"^bonus: .* is not known; use one of simplified"):
            bonus_object(wrong)
