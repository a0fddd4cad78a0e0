"""The report's statistics against the same written out, and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrl.reporting import statistics as s
from kernelrl.reporting.summary import Measure
from naive import statistics as naive


def numbers(n, seed):
    return np.random.default_rng(seed).normal(size=n)


@given(st.integers(1, 4), st.integers(1, 40), st.integers(1, 50), st.integers(0, 99))
def test_regret_and_smoothing(n, K, window, seed):
    returns = numbers((n, K), seed)
    np.testing.assert_allclose(s.regret(returns, 2.5), naive.regret(returns, 2.5), atol=1e-10)
    np.testing.assert_allclose(s.smoothed(returns, window), naive.smoothed(returns, window), atol=1e-10)


def test_mean_with_interval_by_hand():
    mean, low, high = s.mean_with_interval(np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]))
    np.testing.assert_array_equal(mean, [2, 5])
    half = 4.302652729911275 * 1 / np.sqrt(3)  # t of 2 degrees of freedom
    np.testing.assert_allclose(low, [2 - half, 5])
    np.testing.assert_allclose(high, [2 + half, 5])
    mean, low, high = s.mean_with_interval(np.array([[1.0, 2.0]]))
    assert mean.tolist() == [1, 2]
    assert np.isnan([low, high]).all()


@given(st.integers(2, 9), st.integers(0, 99))
def test_mean_with_interval(n, seed):
    values = numbers((n, 3), seed)
    expected = np.transpose([naive.student_interval(column.tolist()) for column in values.T])
    np.testing.assert_allclose(s.mean_with_interval(values), expected)


def coverage(low, high, truth):
    return float(np.mean((low <= truth) & (truth <= high)))


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_intervals_cover_with_few_seeds(n):
    """95 % of 20,000 intervals, within four standard errors; the bootstrap's had 75 to 89 %."""
    values = 3.0 + 2.0 * numbers((n, 20_000), seed=n)
    _, low, high = s.mean_with_interval(values)
    assert abs(coverage(low, high, 3.0) - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 20_000)
    measures = [Measure.of(column) for column in values.T[:2000]]
    found = coverage(*np.transpose([(measure.low, measure.high) for measure in measures]), 3.0)
    assert abs(found - 0.95) < 4 * np.sqrt(0.95 * 0.05 / 2000)


@pytest.mark.parametrize("n", [3, 4, 5, 8])
def test_intervals_of_exponents_cover_with_few_seeds(n):
    """Seeds that learn at different times, each with noise from episode to episode; the truth is the mean of all."""
    rng, groups, k = np.random.default_rng(n), 1000, np.arange(1.0, 201.0)
    learnt = rng.uniform(20, 100, (groups * n, 1))
    curves = (
        np.minimum(k, learnt) + 0.3 * np.maximum(k - learnt, 0) + rng.normal(size=(groups * n, 200)).cumsum(axis=1) / 3
    )
    truth = np.mean([s.fitted_exponent(curve) for curve in curves])
    ends = [s.exponent_with_interval(group)[1:] for group in curves.reshape(groups, n, 200)]
    assert (
        0.9 < coverage(*np.transpose(ends), truth) < 0.97
    )  # not normal, so not quite 95 %; the bootstrap has 74 to 88 %


def test_measures_within_what_is_possible():
    measure = Measure.of(np.array([0.0, np.nan, 0.1, 0.0]), 0.0, 1.0)
    assert measure.mean == pytest.approx(0.1 / 3) and measure.low == 0.0 and 0.1 < measure.high < 0.2
    assert np.isnan(Measure.of(np.array([0.5]), 0.0, 1.0).low) and np.isnan(Measure.of(np.array([np.nan])).mean)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm(p):
    np.testing.assert_allclose(s.holm(np.array(p)), naive.holm(p))


def test_holm_by_hand_and_without_what_is_unknown():
    np.testing.assert_allclose(s.holm(np.array([0.01, 0.04, 0.03])), [0.03, 0.06, 0.06])
    np.testing.assert_allclose(s.holm(np.array([0.02, np.nan, 0.03])), [0.04, np.nan, 0.04])


@settings(max_examples=30)
@given(st.integers(2, 12), st.integers(0, 99))
def test_paired_p_value(n, seed):
    first, second = numbers(n, seed), numbers(n, seed + 100)
    np.testing.assert_allclose(s.paired_p_value(first, second), naive.paired_p_value(first, second))


@pytest.mark.parametrize("n", [2, 3, 5, 8])
def test_paired_p_value_without_spread(n):
    """Equal differences: half of the patterns of two signs are as extreme, a quarter of three, and so on; never 0."""
    values = numbers(n, seed=n)
    assert s.paired_p_value(values, values) == 1.0
    for shift in (3.0, -3.0, 0.1):
        found = s.paired_p_value(values + shift, values)
        assert found == naive.sign_flip_p_value(values + shift, values) == 2.0 ** (1 - n)
    assert np.isnan(s.paired_p_value(values[:1], values[1:2]))


@pytest.mark.parametrize("n", [2, 10, 300, 3000])
def test_paired_p_value_is_never_zero(n):
    values = numbers(n, seed=n)
    for noise in (0.0, 1e-9, 1e-3):
        assert 0 < s.paired_p_value(1.0 + noise * values, np.zeros(n)) <= 0.5


def test_equal_differences_are_not_wrong_too_often():
    """Where labels do not differ and differences are of one size, p ≤ 0.05 comes in 5 % of cases at most."""
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (4000, 4))
    p_values = np.array([s.paired_p_value(row, np.zeros(4)) for row in signs])
    assert p_values.min() == 0.125
    for level in (0.05, 0.125):
        assert (p_values <= level).mean() <= level + 4 * np.sqrt(level / 4000)


@pytest.mark.parametrize("exponent", [0.5, 0.75, 1.0])
def test_exponent(exponent):
    k = np.arange(1, 5001)
    np.testing.assert_allclose(s.fitted_exponent(3 * k**exponent), exponent, rtol=1e-9)


@settings(max_examples=20)
@given(st.integers(2, 8), st.integers(30, 3000), st.integers(0, 99))
def test_exponent_with_interval(n, K, seed):
    curves = np.abs(numbers((n, K), seed)).cumsum(axis=1)
    expected = naive.student_interval([naive.exponent(curve) for curve in curves])
    np.testing.assert_allclose(s.exponent_with_interval(curves), expected, rtol=1e-8)


def test_exponent_with_interval_by_hand():
    k = np.arange(1.0, 2001.0)
    assert s.exponent_with_interval(np.array([k**0.5, 2 * k**0.5, 3 * k**0.5])) == pytest.approx((0.5, 0.5, 0.5))
    half = 12.706204736432095 * 0.25  # t of one degree of freedom
    assert s.exponent_with_interval(np.array([k**0.5, 7 * k])) == pytest.approx((0.75, 0.75 - half, 0.75 + half))


def test_no_exponent():
    assert np.isnan(s.fitted_exponent(-np.ones(1000)))
    assert np.isnan(s.fitted_exponent(np.ones(3)))
    for curves in (np.ones((2, 3)), np.stack([np.ones(1000), -3 * np.ones(1000)])):
        assert np.isnan(s.exponent_with_interval(curves)).all()
    mean, low, high = s.exponent_with_interval(np.arange(1.0, 1001.0)[None])
    assert mean == pytest.approx(1.0) and np.isnan([low, high]).all()


@pytest.mark.parametrize("K", [1, 2, 999, 1000, 1001, 50_000])
def test_thinned(K):
    k = s.thinned(K, 1000)
    assert k.size <= 1000
    assert k[0] == 0
    assert k[-1] == K - 1
    assert (np.diff(k) > 0).all()
    if K <= 1000:
        assert k.size == K


def test_geometric_mean_by_hand():
    """Means and intervals of logarithms are positive, whatever the seeds have."""
    mean, low, high = s.geometric_mean_with_interval(np.array([[1.0, 1e-6, 0.0], [100.0, 1.0, 2.0]]))
    np.testing.assert_allclose(mean[:2], [10.0, 1e-3])
    half = 12.7062047 * np.log(10)  # t of one degree of freedom, times s/√2 of the logarithms 0 and 2·log 10
    np.testing.assert_allclose([low[0], high[0]], [10 * np.exp(-half), 10 * np.exp(half)])
    assert (low[:2] > 0).all() and np.isnan([mean[2], low[2], high[2]]).all()
