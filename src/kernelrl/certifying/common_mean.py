"""Whether a function of what was drawn has the same mean in all regions: a test that holds for any way of sampling.

Let φ_s ∈ [0, 1] have the mean μ_s given the past, and m be at least as large as all μ_s that count. For p > m

    (p/m)^φ·((1-p)/(1-m))^(1-φ)  ≤  φ·p/m + (1-φ)·(1-p)/(1-m)          (convex in φ, equal at 0 and 1)

has a mean of at most 1, since (μ_s - m)(p - m) ≤ 0. So with S = Σφ_s over n samples, F = n - S and the Beta(½, ½) law
of p, cut off below m,

    e(m) = ∫_{p>m} (p/m)^S·((1-p)/(1-m))^F dp = B(S+½, F+½)/B(½, ½)·(1 - I_m(S+½, F+½))/(m^S·(1-m)^F)

is a supermartingale that begins below 1, and e(m) ≥ e^ℓ happens with probability e^-ℓ at most, for all n together
(Ville). e falls where m < S/n. Hence the largest m with e(m) ≥ e^ℓ is below the largest μ_s; and with 1 - φ in the
place of φ, there is a bound above the smallest μ_s. B is the beta function, I its regularised incomplete integral.

The functions φ of a number z are soft steps: in a quarter of the hull of the first numbers they go from 0 to 1,

    ½ + 4·(z - t)/w, cut off to [0, 1],    w the width of the hull, t its middle, its lower end or its upper end;

(at the lower end 1 minus that), and the same with |z - (the middle)| for z and t = w/4. So they are nearly indicators:
there e is far larger than what a bound by variances gives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, betaln

__all__ = ["FUNCTIONS", "STEEP", "Found", "compare", "end_below", "log_e", "mean_intervals", "soft_steps"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
STEEP = 4.0  # steps are the width of the hull divided by this
FUNCTIONS = 4  # how many soft steps there are
HALVINGS = 60


@dataclass(frozen=True)
class Found:
    """The two regions that contradict each other most."""

    apart: float  # by how much the intervals are apart
    reason: str


def soft_steps(first: Floats, later: Floats, least: float) -> Iterator[tuple[str, Floats]]:
    """What each function says where it is large, and its values at `later`; the hull is at least `least` wide."""
    low, high = float(first.min()), float(first.max())
    middle, width = 0.5 * (low + high), max(high - low, least)
    z = (later - middle) / width
    for name, rise in (
        ("large", z), ("unusually large", z - 0.5), ("unusually small", -0.5 - z),
        ("far from their middle", np.abs(z) - 0.25),
    ):  # fmt: skip
        yield name, np.clip(0.5 + STEEP * rise, 0.0, 1.0)


def mean_intervals(
    phi: Floats, unknown: npt.NDArray[np.bool_], labels: Whole, regions: int, log_terms: float
) -> tuple[Floats, Floats]:
    """(m,) ends: the lower one is below the largest mean of φ in each region, the upper one above the smallest.

    `labels` (k, n) are the regions of each sample; φ may be anything where it is `unknown`. Each end fails with
    probability exp(-`log_terms`).
    """
    low, high = np.zeros(regions), np.ones(regions)
    least, most = np.where(unknown, 0.0, phi), np.where(unknown, 1.0, phi)
    for label in labels:
        sums = [np.bincount(label, w, regions).astype(np.float64) for w in (np.ones(len(phi)), least, most)]
        n, below, above = sums
        some = n > 0
        low[some] = end_below(below[some], n[some], log_terms)
        high[some] = 1.0 - end_below((n - above)[some], n[some], log_terms)
    return low, high


def end_below(total: Floats, n: Floats, log_terms: float) -> Floats:
    """The largest m with e(m) ≥ exp(`log_terms`), for S = `total`; by halving, from below."""
    low, high = np.zeros(len(n)), total / n
    for _ in range(HALVINGS):
        m = 0.5 * (low + high)
        enough = log_e(total, n, m) >= log_terms + 1e-6  # more than all rounding
        low, high = np.where(enough, m, low), np.where(enough, high, m)
    return np.asarray(np.maximum(low - 1e-12, 0.0))


def log_e(total: Floats, n: Floats, m: Floats) -> Floats:
    """log e(m), for S = `total`."""
    S, F = total + 0.5, np.maximum(n - total, 0.0) + 0.5
    with np.errstate(divide="ignore", invalid="ignore"):
        cut = np.log(betainc(F, S, 1.0 - m))
        return np.asarray(betaln(S, F) - betaln(0.5, 0.5) + cut - (S - 0.5) * np.log(m) - (F - 0.5) * np.log1p(-m))


def compare(low: Floats, high: Floats, allowed: float, what: str, names: list[str]) -> Found:
    """Whether means may be the same in all regions, or differ by what is allowed, given their intervals (m,)."""
    lowest, highest = int(np.argmin(high)), int(np.argmax(low))
    apart = float(low[highest] - high[lowest]) - allowed
    return Found(max(0.0, apart), f"{what} more often in {names[highest]} than in {names[lowest]}")
