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


def student_interval(values):
    """mean ± t·s/√n, in the order of the textbook."""
    n = len(values)
    mean = sum(values) / n
    variance = sum((v - mean) ** 2 for v in values) / (n - 1)
    half = stats.t.interval(0.95, n - 1)[1] * (variance / n) ** 0.5
    return mean, mean - half, mean + half


def exponent(curve):
    """Least squares of log regret against log k at 200 episodes spread evenly on the logarithmic axis."""
    K = len(curve)
    episodes = sorted({int(k) for k in np.geomspace(max(1, K // 10), K, 200)})
    x, y = np.array([(np.log(k), np.log(curve[k - 1])) for k in episodes if curve[k - 1] > 0]).T
    return ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()


def empirical_bernstein(returns, width, delta, sides):
    """Maurer and Pontil's theorem 4 for returns scaled to [0, 1], with δ shared between the sides."""
    n = len(returns)
    Z = [r / width for r in returns]
    variance = sum((a - b) ** 2 for a in Z for b in Z) / (2 * n * (n - 1))
    log = np.log(2 / (delta / sides))
    return width * (np.sqrt(2 * variance * log / n) + 7 * log / (3 * (n - 1)))


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


def sign_flip_p_value(first, second):
    """The share of all 2^n patterns of signs with a mean difference at least as far from 0 as the one seen."""
    differences = [a - b for a, b in zip(first, second, strict=True)]
    patterns = list(itertools.product([-1, 1], repeat=len(differences)))
    sums = [abs(sum(sign * d for sign, d in zip(signs, differences, strict=True))) for signs in patterns]
    return sum(total >= abs(sum(differences)) * (1 - 1e-9) for total in sums) / len(patterns)
