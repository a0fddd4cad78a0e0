"""What a report says of numbers: pure functions of arrays.

Runs of one label with different seeds are independent; runs of different labels with the same seed share the episodes'
seeds, so labels are compared by their differences seed by seed. With returns R_k, the value V* of the best policy and
K episodes,

    regret = K·V* - Σ R_k,   fraction of the ceiling = Σ R_k / (K·V*).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy import stats

__all__ = [
    "bootstrap_interval",
    "exponent_interval",
    "fitted_exponent",
    "holm",
    "mean_with_interval",
    "paired_p_value",
    "regret",
    "smoothed",
    "thinned",
]

Floats = npt.NDArray[np.float64]
RESAMPLES = 10_000


def mean_with_interval(curves: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean over seeds of `curves` (n, k) and the ends of Student's 95 % interval, (k,) each; NaN from one seed."""
    n, mean = len(curves), curves.mean(axis=0)
    if n < 2:
        return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    half = stats.t.ppf(0.975, n - 1) * curves.std(axis=0, ddof=1) / np.sqrt(n)
    return mean, mean - half, mean + half


def bootstrap_interval(values: Floats) -> tuple[float, float]:
    """95 % percentile bootstrap interval of the mean of `values` (n,), always the same for the same values."""
    if values.size < 2:
        return np.nan, np.nan
    draws = np.random.default_rng(0).integers(values.size, size=(RESAMPLES, values.size))
    low, high = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


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

    Episodes count by their distance on the logarithmic axis, so that the last of them do not decide alone.
    """
    k = fitted_episodes(curve.size)
    k = k[curve[k - 1] > 0]
    if k.size < 10:
        return np.nan
    return float(np.polyfit(np.log(k), np.log(curve[k - 1]), 1)[0])


def fitted_episodes(K: int) -> npt.NDArray[np.int64]:
    """The episodes (from 1) that an exponent is fitted to."""
    return np.unique(np.geomspace(max(1, K // 10), K, 200).astype(np.int64))


def exponent_interval(curves: Floats) -> tuple[float, float]:
    """95 % percentile bootstrap interval over seeds of the exponent of the mean of `curves` (n, K).

    NaN from one seed, from fewer than ten episodes, and where a mean of some seeds is not above 0.
    """
    n, k = len(curves), fitted_episodes(curves.shape[1])
    if n < 2 or k.size < 10:
        return np.nan, np.nan
    draws = np.random.default_rng(0).integers(n, size=(RESAMPLES, n))
    share = (draws[:, :, None] == np.arange(n)).mean(axis=1)  # (resamples, n)
    means = share @ curves[:, k - 1]
    if (means <= 0).any():
        return np.nan, np.nan
    x = np.log(k) - np.log(k).mean()
    low, high = np.quantile(np.log(means) @ x / (x @ x), [0.025, 0.975])
    return float(low), float(high)


def paired_p_value(first: Floats, second: Floats) -> float:
    """Two-sided p-value of the paired t test of two labels' numbers (n,), seed by seed; NaN from one seed."""
    difference = first - second
    n = difference.size
    if n < 2:
        return np.nan
    mean, error = difference.mean(), difference.std(ddof=1) / np.sqrt(n)
    if error <= 1e-12 * np.abs(difference).max():  # equal differences: the t test knows no spread at all
        return 1.0 if mean == 0 else 0.0
    return float(2 * stats.t.sf(abs(mean / error), n - 1))


def holm(p_values: Floats) -> Floats:
    """Holm's correction: p-values (m,) that may be compared with the level of the whole family; NaN stays out of it."""
    p = np.asarray(p_values, float)
    corrected = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = np.maximum.accumulate(p[order] * np.arange(order.size, 0, -1))
    corrected[order] = np.minimum(1.0, steps)
    return corrected


def thinned(K: int, most: int) -> npt.NDArray[np.int64]:
    """At most `most` episodes (from 0) to draw a curve of K by: half evenly, half evenly on a logarithmic axis."""
    if most >= K:
        return np.arange(K)
    even = np.linspace(0, K - 1, most // 2).round()
    logarithmic = np.geomspace(1, K, most - most // 2).round() - 1
    return np.unique(np.concatenate([even, logarithmic]).astype(np.int64))
