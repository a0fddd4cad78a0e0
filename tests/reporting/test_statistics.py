"""The report's statistics against the same written out, and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelrl.reporting import statistics as s
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


def test_bootstrap_against_every_resample():
    values = np.array([1.0, 4.0, 2.0, 8.0, 5.0])
    every = np.quantile(naive.bootstrap_means(values), [0.025, 0.975])
    np.testing.assert_allclose(s.bootstrap_interval(values), every, atol=0.1)
    assert s.bootstrap_interval(values) == s.bootstrap_interval(values)
    assert s.bootstrap_interval(np.full(4, 7.0)) == (7.0, 7.0)
    assert np.isnan(s.bootstrap_interval(np.array([1.0]))).all()


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


def test_paired_p_value_without_spread():
    values = np.array([0.1, 0.2, 0.7])
    assert s.paired_p_value(values, values) == 1.0
    assert s.paired_p_value(values + 3.0, values) == 0.0
    assert np.isnan(s.paired_p_value(values[:1], values[1:2]))


@pytest.mark.parametrize("exponent", [0.5, 0.75, 1.0])
def test_exponent(exponent):
    k = np.arange(1, 5001)
    np.testing.assert_allclose(s.fitted_exponent(3 * k**exponent), exponent, rtol=1e-9)


def test_exponent_interval_against_every_resample():
    """With three seeds of k^½, 2·k^½ and k, the mean of every one of the 27 resamples has an exponent."""
    k = np.arange(1.0, 2001.0)
    curves = np.array([k**0.5, 2 * k**0.5, k])
    found = sorted(s.fitted_exponent(means) for means in naive.bootstrap_means(curves))
    assert s.exponent_interval(curves) == pytest.approx((found[0], found[-1]), rel=1e-9)  # 1 in 27 is more than 2.5 %
    flat = s.exponent_interval(np.array([k**0.5, 2 * k**0.5, 3 * k**0.5]))
    assert flat == pytest.approx((0.5, 0.5), rel=1e-9)


def test_no_exponent():
    assert np.isnan(s.fitted_exponent(-np.ones(1000)))
    assert np.isnan(s.fitted_exponent(np.ones(3)))
    for curves in (np.ones((1, 1000)), np.ones((2, 3)), np.stack([np.ones(1000), -3 * np.ones(1000)])):
        assert np.isnan(s.exponent_interval(curves)).all()


@pytest.mark.parametrize("K", [1, 2, 999, 1000, 1001, 50_000])
def test_thinned(K):
    k = s.thinned(K, 1000)
    assert k.size <= 1000
    assert k[0] == 0
    assert k[-1] == K - 1
    assert (np.diff(k) > 0).all()
    if K <= 1000:
        assert k.size == K
