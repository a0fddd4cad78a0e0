"""The statistics of an experiment over several problems: pure functions of arrays.

The definitions are those of Agarwal, Schwarzer, Castro, Courville and Bellemare, "Deep reinforcement learning at the
edge of the statistical precipice" (2021). An agent's scores are one array (n_p,) for each problem p, with one number
for each seed. A score is a fraction of the ceiling, (mean return - worst)/(best - worst) of a problem: 1 is the best
policy. With m problems and N runs in all,

    interquartile mean        the mean of what remains of all N scores, sorted, without the ⌊N/4⌋ lowest and highest
    optimality gap            mean over all N scores of max(0, 1 - score)
    performance profile       F(τ) = 1/m Σ_p 1/n_p Σ_i 1[x_{p,i} > τ]
    probability of improvement P(X > Y) = 1/m Σ_p 1/(n_p·k_p) Σ_{i,j} (1[x_{p,i} > y_{p,j}] + ½·1[x_{p,i} = y_{p,j}])

Intervals are those of the stratified bootstrap: the seeds of each problem are drawn again, with replacement, from the
seeds of that problem; the interval of 95 % reaches from the 2.5 % to the 97.5 % point of the numbers of all draws. Runs
of two agents with the same seed share their episodes' seeds, so they are drawn together. The bootstrap needs two seeds
on every problem; else there is no interval, and its ends are NaN. With few seeds such intervals are too narrow, since a
variance over n drawn seeds is too small by the factor (n-1)/n.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.reporting.statistics import Floats, smoothed

__all__ = [
    "REPLICATIONS", "Estimate", "Pair", "curve_of_means", "draws", "episodes_until", "exchange_p_value", "improvement",
    "interquartile_mean", "optimality_gap", "profile", "reached",
]  # fmt: skip

REPLICATIONS = 2000
CONFIDENCE = 0.95

Ints = npt.NDArray[np.int64]
Pair = tuple[Floats, Floats]


class Estimate(NamedTuple):
    """Numbers with the ends of their 95 % intervals, NaN where there are none: floats, or arrays of one shape."""

    value: Any
    low: Any
    high: Any


def checked(scores: Sequence[Floats], infinite: bool = False) -> list[Floats]:
    """Scores as arrays (n_p,) of at least one number each, none of them NaN, and finite unless `infinite`."""
    arrays = [np.asarray(values, float) for values in scores]
    if not arrays:
        raise ValueError("scores: there must be at least one problem, and there is none")
    for p, values in enumerate(arrays):
        if values.ndim != 1 or not values.size:
            raise ValueError(
                f"scores: problem {p} has an array of shape {values.shape}; it must be (n,) with one number per seed"
            )
        wrong = np.isnan(values) if infinite else ~np.isfinite(values)
        if wrong.any():
            raise ValueError(f"scores: problem {p} has {values[wrong][0]}; leave runs without a score out")
    return arrays


def draws(sizes: Sequence[int], replications: int = REPLICATIONS, seed: int = 0) -> list[Ints]:
    """Seeds drawn again within each problem, (B, n_p) for problem p: the same for all agents with the same sizes."""
    if replications < 1:
        raise ValueError(f"replications must be at least 1, and is {replications}")
    return [np.random.default_rng([seed, p, n]).integers(n, size=(replications, n)) for p, n in enumerate(sizes)]


def multiplicities(drawn: Ints) -> Floats:
    """How often each seed was drawn, (B, n) from `drawn` (B, n)."""
    rows, n = drawn.shape
    flat = (drawn + n * np.arange(rows)[:, None]).ravel()
    return np.bincount(flat, minlength=rows * n).reshape(rows, n).astype(float)


def estimate(value: Any, replicated: Any, sizes: Sequence[int]) -> Estimate:
    """A number or an array with its interval from `replicated`, (B,) or (B, …)."""
    if min(sizes) < 2:
        nothing = np.full_like(value, np.nan) if isinstance(value, np.ndarray) else math.nan
        return Estimate(value, nothing, nothing)
    low, high = np.quantile(replicated, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return Estimate(value, low, high) if isinstance(value, np.ndarray) else Estimate(value, float(low), float(high))


# ---------------------------------------------------------------------------------------------------- single numbers


def trimmed_mean(values: Floats) -> Floats:
    """The mean along the last axis without the lowest and the highest quarter, both rounded down."""
    N = values.shape[-1]
    cut = N // 4
    parts = np.partition(values, (cut, N - cut - 1), axis=-1) if cut else values
    return np.asarray(parts[..., cut : N - cut].mean(axis=-1))


def pooled(scores: Sequence[Floats], replications: int, seed: int) -> tuple[Floats, Floats, list[int]]:
    """All scores (N,), the same drawn again (B, N), and the number of seeds of each problem."""
    arrays = checked(scores)
    sizes = [values.size for values in arrays]
    drawn = draws(sizes, replications, seed)
    again = np.concatenate([values[index] for values, index in zip(arrays, drawn, strict=True)], axis=1)
    return np.concatenate(arrays), again, sizes


def interquartile_mean(scores: Sequence[Floats], replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """The interquartile mean of the runs of all problems."""
    values, again, sizes = pooled(scores, replications, seed)
    return estimate(float(trimmed_mean(values)), trimmed_mean(again), sizes)


def optimality_gap(scores: Sequence[Floats], replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """By how much runs are below the ceiling, on average; runs above it do not make up for others."""
    values, again, sizes = pooled(scores, replications, seed)
    gap, gaps = np.maximum(0, 1 - values).mean(), np.maximum(0, 1 - again).mean(axis=1)
    return estimate(float(gap), gaps, sizes)


def improvement(pairs: Sequence[Pair], replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """The probability that a run of the first agent is better than one of the second, mean over problems.

    `pairs` has the scores of both agents for each problem that both have, on the same seeds in the same order.
    """
    first, second = checked_pairs(pairs)
    sizes = [x.size for x in first]
    value, again = 0.0, np.zeros(replications)
    for x, y, drawn in zip(first, second, draws(sizes, replications, seed), strict=True):
        wins = (x[:, None] > y) + 0.5 * (x[:, None] == y)  # (n, n)
        often = multiplicities(drawn)
        value += float(wins.mean())
        again += ((often @ wins) * often).sum(axis=1) / x.size**2
    m = len(sizes)
    return estimate(value / m, again / m, sizes)


def checked_pairs(pairs: Sequence[Pair]) -> tuple[list[Floats], list[Floats]]:
    """The scores of both agents, (n_p,) each."""
    first, second = (checked([pair[i] for pair in pairs]) for i in range(2))
    for p, (x, y) in enumerate(zip(first, second, strict=True)):
        if x.size != y.size:
            raise ValueError(f"pairs: problem {p} has {x.size} and {y.size} scores; it must be the same seeds for both")
    return first, second


def exchange_p_value(pairs: Sequence[Pair], replications: int = REPLICATIONS, seed: int = 0) -> float:
    """Two-sided p-value of a probability of improvement: how often chance alone is as far from 1/2; never 0.

    If two agents do not differ, every choice of n of the 2n runs of a problem is equally likely to be the first
    agent's. So runs are exchanged between the agents within each problem, `replications` times at random. With few runs
    the bootstrap's interval can be [1, 1] although chance does the same often: with three seeds of each agent on one
    problem in a tenth of all cases.
    """
    first, second = checked_pairs(pairs)
    rng, seen, again = np.random.default_rng(seed), 0.0, np.zeros(replications)
    for x, y in zip(first, second, strict=True):
        n, both = x.size, np.concatenate([x, y])
        ranks = (both[:, None] > both).sum(axis=1) + 0.5 * (both[:, None] == both).sum(axis=1)  # of each run, (2n,)
        # P(X > Y) = (sum of the first agent's ranks - n²/2)/n², since its own runs among themselves make n²/2
        chosen = rng.permuted(np.tile(ranks, (replications, 1)), axis=1)[:, :n]
        seen += (ranks[:n].sum() - n * n / 2) / n**2
        again += (chosen.sum(axis=1) - n * n / 2) / n**2
    m = len(first)
    far = np.abs(again / m - 0.5) >= abs(seen / m - 0.5) - 1e-9
    return float((1 + far.sum()) / (1 + replications))


# ------------------------------------------------------------------------------------------------------------- curves


def shares(holds: Sequence[npt.NDArray[np.bool_]], replications: int, seed: int) -> Estimate:
    """The share of runs for which something holds, mean over problems, with pointwise intervals.

    `holds` has for each problem an array (n_p, T): whether it holds for each run at each of T places.
    """
    sizes = [len(part) for part in holds]
    value, again = np.zeros(holds[0].shape[1]), np.zeros((replications, holds[0].shape[1]))
    for part, drawn in zip(holds, draws(sizes, replications, seed), strict=True):
        value += part.mean(axis=0)
        again += multiplicities(drawn) @ part / len(part)
    return estimate(value / len(holds), again / len(holds), sizes)


def profile(scores: Sequence[Floats], thresholds: Floats, replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """The performance profile at each threshold: arrays (T,)."""
    return shares([values[:, None] > np.asarray(thresholds) for values in checked(scores)], replications, seed)


def reached(until: Sequence[Floats], episodes: Floats, replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """The share of runs with `until` (see `episodes_until`) at most each of `episodes`: arrays (T,)."""
    arrays = checked(until, infinite=True)
    return shares([values[:, None] <= np.asarray(episodes) for values in arrays], replications, seed)


def curve_of_means(curves: Sequence[Floats], replications: int = REPLICATIONS, seed: int = 0) -> Estimate:
    """The interquartile mean at each of T places, from `curves` (n_p, T) of each problem: arrays (T,)."""
    columns = [
        interquartile_mean([part[:, t] for part in curves], replications, seed) for t in range(curves[0].shape[1])
    ]
    return Estimate(*(np.array(part) for part in zip(*columns, strict=True)))


def episodes_until(fractions: Floats, level: float, window: int) -> Floats:
    """After how many episodes the mean of the last `window` was first at least `level`: (n,) from `fractions` (n, K).

    It is infinite for runs that never got there. Fewer episodes than `window` do not count.
    """
    n, K = fractions.shape
    if not 1 <= window <= K:
        raise ValueError(f"window must be from 1 to the number of episodes, {K}, and is {window}")
    if np.isnan(fractions).any():
        raise ValueError("fractions: an episode has NaN; leave runs without returns out")
    there = smoothed(fractions, window)[:, window - 1 :] >= level - 1e-12  # means are rounded
    first = there.argmax(axis=1) + window
    return np.where(there.any(axis=1), first.astype(float), np.inf).reshape(n)
