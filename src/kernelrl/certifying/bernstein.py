"""The empirical Bernstein bonus: how far a mean may be from its expectation, for all numbers of samples at once.

Let X_s lie in an interval of length R, with weights w_s ∈ {0, 1} that are known before X_s, and n = Σ w_s. With
V̂ ≥ Σ w_s (X_s - q)² for one q of the grid 0, R/J, …, R

    B(V̂, n) = (R/n)·min_j [ℓ_j + ψ(λ_j)·V̂/R²]/λ_j,        ψ(λ) = -log(1-λ) - λ,     λ_j = ¾·2^{-j/2},
    ℓ_j = log(m·(J+1)·(j+1)(j+2)/δ)                          m: how many statements hold together

(docs/theory.md). As a function of V̂ the minimum is one of lines, so it is found by looking where V̂ lies between the
points at which the lowest line changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelrl.theory.bernstein import GRID, LAMBDAS, PSI

__all__ = ["GRID", "LAMBDAS", "PSI", "Bonus", "log_terms"]

Floats = npt.NDArray[np.float64]


def log_terms(statements: float, delta: float) -> Floats:
    """ℓ_j (24,)."""
    j = np.arange(len(LAMBDAS))
    return np.asarray(np.log((j + 1.0) * (j + 2.0) * (GRID + 1.0) * statements / delta))


@dataclass(frozen=True, eq=False)
class Bonus:
    """B, for so many statements that hold together with probability 1-δ."""

    starts: Floats  # V̂/R² from which on each line is the lowest
    heights: Floats  # ℓ_j/λ_j
    slopes: Floats  # ψ_j/λ_j

    @classmethod
    def of(cls, statements: float, delta: float) -> Bonus:
        """The lowest of the lines."""
        heights, slopes = log_terms(statements, delta) / LAMBDAS, PSI / LAMBDAS
        kept, starts = [0], [-np.inf]  # heights rise and slopes fall with j
        for j in range(1, len(LAMBDAS)):
            while True:
                i = kept[-1]
                meets = (heights[j] - heights[i]) / (slopes[i] - slopes[j])
                if meets > starts[-1]:
                    break
                kept.pop()
                starts.pop()
            kept.append(j)
            starts.append(float(meets))
        return cls(np.array(starts), heights[kept], slopes[kept])

    def __call__(self, squares: Floats, n: float, R: float) -> Floats:
        """B for V̂ = `squares`, an array; a mean over n samples in an interval of length R."""
        v = squares / (R * R)
        line = np.searchsorted(self.starts, v, side="right") - 1
        return np.asarray((self.heights[line] + self.slopes[line] * v) * (R / n))
