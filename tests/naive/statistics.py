"""The report's statistics, written out one number at a time."""

import itertools

import numpy as np
from scipy import stats


def regret(returns, best):
    out = np.zeros_like(returns)
    for i in range(returns.shape[0]):
        for k in range(returns.shape[1]):
            out[i, k] = (k + 1) * best - sum(returns[i, : k + 1])
    return out


def smoothed(returns, window):
    out = np.zeros_like(returns)
    for i in range(returns.shape[0]):
        for k in range(returns.shape[1]):
            out[i, k] = np.mean(returns[i, max(0, k + 1 - window) : k + 1])
    return out


def bootstrap_means(values):
    """The mean of every resample there is, n^n of them."""
    return np.array([np.mean(sample, axis=0) for sample in itertools.product(values, repeat=len(values))])


def holm(p):
    """Walk up from the smallest p-value; the i-th of m is multiplied by m-i and never falls below the one before."""
    order = sorted(range(len(p)), key=lambda i: p[i])
    out, before = [0.0] * len(p), 0.0
    for i, which in enumerate(order):
        before = max(before, min(1.0, (len(p) - i) * p[which]))
        out[which] = before
    return out


def paired_p_value(first, second):
    return stats.ttest_rel(first, second).pvalue
