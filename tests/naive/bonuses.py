"""The simplified bonus with factors, and the theory's: k is rounded up to the end of its epoch, 2^{j+1}-1."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from kernelrl.theory.bonuses import Problem, best_radius, full_bonus, full_coefficients, joint_bonus
from naive.estimates import simplified_bonus

radius_for = functools.cache(best_radius)


class SimplifiedBonus(NamedTuple):
    H: int
    root: float
    count: float
    scale: float

    def __call__(self, h: int, samples: int, C: np.ndarray, D: np.ndarray, W2: np.ndarray) -> np.ndarray:
        """B_h (n, A); nothing but C is needed."""
        return simplified_bonus(C, self.H - h, self.scale, self.root, self.count)


class TheoryBonus(NamedTuple):
    problem: Problem
    delta: float
    episodes: int | None
    kind: str  # "corrected", "printed", "joint" or "self-normalised"

    def __call__(
        self, h: int, samples: int, C: np.ndarray, D: np.ndarray, W2: np.ndarray, part: float = 1.0
    ) -> np.ndarray:
        """B_h where the pool holds `samples` samples; C, Σwρ and Σw² are (n, A).

        `part`: the part of R_h in which all r + V*_{h+1} lie (joint bonus only).
        """
        j = math.floor(math.log2(samples + 1))
        k, delta = 2 ** (j + 1) - 1, self.delta
        if self.episodes is None:
            most, delta = k, 6 * delta / (math.pi**2 * (j + 1) ** 2)
        else:
            most = self.problem.most_samples(self.episodes)
            k = min(k, most)
        if self.kind in ("corrected", "printed"):
            if self.episodes is not None:
                return full_bonus(self.problem, h, k, self.episodes, delta, C, self.kind)
            c = full_coefficients(self.problem, h, k, most, delta, self.kind)
            return c.constant + c.root / np.sqrt(C) + c.inverse / C
        normalised = self.kind == "self-normalised"
        radius = radius_for(self.problem, most, delta, normalised)
        return joint_bonus(self.problem, h, k, radius, delta, C, D, W2, normalised, part)
