"""The statistics over several problems against the same written out, and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernelrl.reporting.across import statistics as s
from naive import across as naive

# Few different numbers, so that there are ties
SCORES = st.lists(
    st.lists(st.sampled_from([-0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25]), min_size=1, max_size=5), min_size=1, max_size=4
)
B = 25


def arrays(scores):
    return [np.array(values) for values in scores]


def drawn(scores):
    return s.draws([len(values) for values in scores], B, seed=7)


def assert_interval(found, statistic, *samples):
    """The interval is that of the naive version with the same draws, or there is none."""
    if min(len(values) for values in samples[0]) < 2:
        assert np.isnan([found.low, found.high]).all()
    else:
        np.testing.assert_allclose((found.low, found.high), naive.bootstrap(statistic, samples, drawn(samples[0])))


@settings(max_examples=40)
@given(SCORES)
def test_interquartile_mean_and_gap(scores):
    for mine, theirs in (
        (s.interquartile_mean, naive.interquartile_mean), (s.optimality_gap, naive.optimality_gap),
    ):  # fmt: skip
        found = mine(arrays(scores), B, seed=7)
        np.testing.assert_allclose(found.value, theirs(scores), atol=1e-12)
        assert_interval(found, theirs, scores)


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=40))
def test_interquartile_mean_is_scipys_trimmed_mean(values):
    found = s.interquartile_mean([np.array(values)], replications=1)
    np.testing.assert_allclose(found.value, stats.trim_mean(values, 0.25), atol=1e-12)


@settings(max_examples=40)
@given(SCORES, st.sampled_from([-1.0, 0.0, 0.3, 0.5, 2.0]))
def test_profile(scores, threshold):
    found = s.profile(arrays(scores), np.array([threshold, 0.1]), B, seed=7)
    np.testing.assert_allclose(found.value[0], naive.profile(scores, threshold))
    first = s.Estimate(*(part[0] for part in found))
    assert_interval(first, lambda scores: naive.profile(scores, threshold), scores)


@settings(max_examples=40)
@given(SCORES, st.integers(0, 99))
def test_improvement(scores, seed):
    rng = np.random.default_rng(seed)
    others = [rng.choice([0.0, 0.25, 0.5, 1.0], len(values)).tolist() for values in scores]
    found = s.improvement(list(zip(arrays(scores), arrays(others), strict=True)), B, seed=7)
    np.testing.assert_allclose(found.value, naive.improvement(scores, others))
    assert_interval(found, naive.improvement, scores, others)
    back = s.improvement(list(zip(arrays(others), arrays(scores), strict=True)), B, seed=7)
    np.testing.assert_allclose([back.value, back.low, back.high], [1 - found.value, 1 - found.high, 1 - found.low])


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 30), st.integers(1, 30), st.integers(0, 99))
def test_episodes_until(n, K, window, seed):
    window = min(window, K)
    fractions = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (n, K)) + np.linspace(0, 0.5, K)
    for level in (0.5, 0.9, 3.0):
        found = s.episodes_until(fractions, level, window)
        np.testing.assert_array_equal(found, naive.episodes_until(fractions, level, window))
    until = [found, s.episodes_until(fractions, 0.5, window)]
    share = s.reached(until, np.array([3.0, float(K)]), B, seed=7)
    np.testing.assert_allclose(share.value, [naive.reached(until, 3), naive.reached(until, K)])


def test_by_hand():
    scores = [np.array([0.0, 1.0]), np.array([0.4, 0.6])]
    assert s.interquartile_mean(scores).value == 0.5  # of 0, 0.4, 0.6 and 1 the middle two
    assert s.interquartile_mean([np.array([0.0, 0.0, 0.9])]).value == pytest.approx(0.3)  # of three none is left out
    assert s.optimality_gap([np.array([0.5, 3.0])]).value == 0.25
    np.testing.assert_array_equal(s.profile(scores, np.array([0.0, 0.4, 1.0])).value, [0.75, 0.5, 0.0])
    unequal = [np.array([1.0]), np.array([0.0, 0.0, 0.0])]
    assert s.profile(unequal, np.array([0.5])).value == 0.5  # problems count the same
    # 1 > 0, 1 = 1, 2 > 0, 2 > 1 on the first problem; both lost on the second
    pairs = [(np.array([1.0, 2.0]), np.array([0.0, 1.0])), (np.array([0.0, 0.0]), np.array([1.0, 1.0]))]
    assert s.improvement(pairs).value == (3.5 / 4 + 0) / 2
    np.testing.assert_array_equal(
        s.episodes_until(np.array([[0.0, 1.0, 0.8, 1.0], [1.0, 0.0, 0.0, 0.0]]), 0.9, 2), [3, np.inf]
    )


def test_equal_agents_and_certain_ones():
    same = np.array([0.1, 0.2, 0.3])
    found = s.improvement([(same, same), (same, same)])
    assert found.value == 0.5 and found.low <= 0.5 <= found.high
    assert s.improvement([(same + 1, same)]) == (1.0, 1.0, 1.0)
    assert s.interquartile_mean([np.full(4, 0.7)]) == pytest.approx((0.7, 0.7, 0.7))


def test_one_seed_has_no_interval():
    found = s.interquartile_mean([np.array([0.5, 0.6]), np.array([0.7])])
    assert found.value == pytest.approx(0.6) and np.isnan([found.low, found.high]).all()
    curve = s.profile([np.array([0.5])], np.linspace(0, 1, 5))
    assert curve.value.tolist() == [1, 1, 0, 0, 0] and np.isnan(curve.low).all() and np.isnan(curve.high).all()


def test_the_same_draws_again():
    scores = [np.random.default_rng(0).normal(size=8) for _ in range(3)]
    assert s.interquartile_mean(scores) == s.interquartile_mean(scores)
    assert s.interquartile_mean(scores) != s.interquartile_mean(scores, seed=1)


def test_curve_of_means_is_that_of_each_place():
    curves = [np.random.default_rng(p).normal(size=(4, 3)) for p in range(2)]
    found = s.curve_of_means(curves, B)
    for t in range(3):
        one = s.interquartile_mean([part[:, t] for part in curves], B)
        assert (found.value[t], found.low[t], found.high[t]) == one


@pytest.mark.parametrize(("seeds", "least"), [(3, 0.82), (5, 0.87), (10, 0.90)])
def test_how_often_intervals_hold(seeds, least):
    """Of 300 experiments with six problems; fewer than 95 % with few seeds, as the module says."""
    held = 0
    for experiment in range(300):
        rng = np.random.default_rng([seeds, experiment])
        found = s.interquartile_mean([rng.normal(size=seeds) for _ in range(6)], 400)
        held += found.low <= 0 <= found.high  # scores are symmetric about 0, so this is the truth
    assert least < held / 300 < 0.98


@settings(max_examples=25)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=2), st.integers(0, 99))
def test_exchange_p_value(sizes, seed):
    """Within five standard errors of the share of all divisions, with ties."""
    rng = np.random.default_rng(seed)
    X, Y = ([rng.integers(0, 5, n).astype(float) for n in sizes] for _ in range(2))
    expected = naive.exchange_p_value([x.tolist() for x in X], [y.tolist() for y in Y])
    found = s.exchange_p_value(list(zip(X, Y, strict=True)), 4000)
    assert abs(found - expected) <= 5 * np.sqrt(expected * (1 - expected) / 4000) + 1 / 4000


def test_exchange_p_value_by_hand():
    three, four = np.arange(3.0), np.arange(4.0)
    assert s.exchange_p_value([(three + 3, three)]) == pytest.approx(2 / 20, abs=0.03)  # two of 20 divisions
    assert s.exchange_p_value([(four + 4, four)]) == pytest.approx(2 / 70, abs=0.015)
    assert s.exchange_p_value([(three, three)]) == 1.0
    assert 0 < s.exchange_p_value([(four + 4, four)] * 9) < 0.001


def test_equal_agents_are_rarely_told_apart():
    """3 seeds on 4 problems: in at most 5 % of experiments, within four standard errors."""
    found = []
    for experiment in range(400):
        rng = np.random.default_rng(experiment)
        found.append(s.exchange_p_value([(rng.normal(size=3), rng.normal(size=3)) for _ in range(4)], 400))
    assert np.mean(np.array(found) < 0.05) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: s.interquartile_mean([]), "at least one problem"),
        (lambda: s.interquartile_mean([np.array([0.1]), np.array([])]), r"problem 1 has an array of shape \(0,\)"),
        (lambda: s.interquartile_mean([np.array([0.1, np.nan])]), "problem 0 has nan; leave runs"),
        (lambda: s.optimality_gap([np.array([np.inf])]), "problem 0 has inf"),
        (lambda: s.profile([np.ones((2, 2))], np.ones(1)), r"shape \(2, 2\)"),
        (lambda: s.reached([np.array([np.nan])], np.ones(1)), "problem 0 has nan"),
        (lambda: s.improvement([(np.ones(2), np.ones(3))]), "2 and 3 scores"),
        (lambda: s.improvement([(np.ones(2), np.array([0.0, np.nan]))]), "nan"),
        (lambda: s.episodes_until(np.ones((2, 3)), 0.9, 4), "window must be from 1 to the number of episodes, 3"),
        (lambda: s.episodes_until(np.full((2, 3), np.nan), 0.9, 1), "NaN"),
        (lambda: s.draws([2], 0), "replications must be at least 1"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
