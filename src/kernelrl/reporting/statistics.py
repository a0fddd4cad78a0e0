"""The statistics of a report: pure functions of arrays.

Runs of one label with different seeds are independent; runs of different labels with the same seed share the episodes'
seeds, so labels are compared by their differences seed by seed. With returns R_k, the value V* of the best policy and
K episodes,

    regret = K·V* - Σ R_k,   fraction of the ceiling = Σ R_k / (K·V*).

Every interval is Student's over seeds, mean ± t·s/√n with s² the sample variance of the n seeds' numbers and t the
97.5 % point with n-1 degrees of freedom: exact for normal numbers with any n. The percentile bootstrap, which resamples
the seeds, covers 75 % instead of 95 % with three seeds and 88 % with eight.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats takes two seconds to import

__all__ = [
    "exponent_with_interval",
    "fitted_exponent",
    "geometric_mean_with_interval",
    "holm",
    "mean_with_interval",
    "paired_p_value",
    "regret",
    "smoothed",
    "thinned",
]

Floats = npt.NDArray[np.float64]


def mean_with_interval(curves: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over seeds of `curves` (n, k) and the ends of Student's 95 % interval, (k,) each; NaN from one seed."""
    n, mean = len(curves), curves.mean(axis=0)
    if n < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = stdtrit(n - 1, 0.975) * curves.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def geometric_mean_with_interval(curves: Floats) -> tuple[Floats, Floats, Floats]:
    """The geometric mean over seeds of `curves` (n, k) and its 95 % interval: Student's of the logarithms.

    For logarithmic axes: the interval of an arithmetic mean may reach below 0. NaN where a seed has 0.
    """
    logarithms = np.log(np.where(curves > 0, curves, np.nan))
    mean, low, high = (np.exp(part) for part in mean_with_interval(logarithms))
    return mean, low, high


def regret(returns: Floats, best: float) -> Floats:
    """k·V* - Σ_{i≤k} R_i after each episode, (n, K) from `returns` (n, K)."""
    return np.asarray(best * np.arange(1, returns.shape[1] + 1) - returns.cumsum(axis=1))


def smoothed(returns: Floats, window: int) -> Floats:
    """The mean of the last `window` episodes, or of all while there are fewer, (n, K) from `returns` (n, K)."""
    totals = np.concatenate([np.zeros((len(returns), 1)), returns.cumsum(axis=1)], axis=1)
    end = np.arange(1, returns.shape[1] + 1)
    begin = np.maximum(0, end - window)
    return np.asarray((totals[:, end] - totals[:, begin]) / (end - begin))


def fitted_exponent(curve: Floats) -> float:
    """The slope of log `curve` (K,) against log k over the last nine tenths of the episodes, NaN where there is none.

    Episodes are weighted by their distance on the logarithmic axis, so that the last ones do not dominate.
    """
    k = fitted_episodes(curve.size)
    k = k[curve[k - 1] > 0]
    if k.size < 10:
        return np.nan
    return float(np.polyfit(np.log(k), np.log(curve[k - 1]), 1)[0])


def fitted_episodes(K: int) -> npt.NDArray[np.int64]:
    """The episodes (from 1) that an exponent is fitted to."""
    return np.unique(np.geomspace(max(1, K // 10), K, 200).astype(np.int64))


def exponent_with_interval(curves: Floats) -> tuple[float, float, float]:
    """The mean over seeds of the exponents fitted to `curves` (n, K), each by itself, and Student's 95 % interval.

    Fits of different seeds are independent, so the t interval of their mean has the right coverage even with few seeds,
    unlike a bootstrap over seeds. NaN where a seed has no exponent; no interval for one seed.
    """
    exponents = np.array([fitted_exponent(curve) for curve in curves])
    mean, low, high = mean_with_interval(exponents[:, None])
    return float(mean[0]), float(low[0]), float(high[0])


def paired_p_value(first: Floats, second: Floats) -> float:
    """Two-sided p-value of two labels' numbers (n,), compared seed by seed; never 0; NaN from one seed.

    It is that of the paired t test, which assumes that the differences D_i are normal. If all are equal, they are not
    normal, and the test would divide by zero. Then only signs are used: if the labels do not differ, D_i and -D_i are
    equally likely, so all 2^n patterns of signs of the same |D_i| are equally likely. Two of them, all positive and all
    negative, have a mean as far from 0 as the one seen: p = 2/2^n. With five seeds or fewer it is above 5 %.
    """
    difference = first - second
    n = difference.size
    if n < 2:
        return np.nan
    largest = np.abs(difference).max()
    if largest == 0:
        return 1.0
    error = difference.std(ddof=1) / np.sqrt(n)
    p = float(2 * stdtr(n - 1, -abs(difference.mean() / error))) if error > 1e-12 * largest else 0.0
    return p or max(2.0 ** (1 - n), float(np.finfo(float).tiny))  # t.sf itself is rounded to 0 for many seeds


def holm(p_values: Floats) -> Floats:
    """Holm's correction: p-values (m,) to compare with the level of the whole family; NaN values are left out."""
    p = np.asarray(p_values, float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1))
    corrected[order] = np.minimum(1.0, steps)
    return corrected


def thinned(K: int, most: int) -> npt.NDArray[np.int64]:
    """At most `most` episodes (from 0) for drawing a curve of K: half evenly, half evenly on a logarithmic axis."""
    if most >= K:
        return np.arange(K)
    even = np.linspace(0, K - 1, most // 2).round()
    logarithmic = np.geomspace(1, K, most - most // 2).round() - 1
    return np.unique(np.concatenate([even, logarithmic]).astype(np.int64))
