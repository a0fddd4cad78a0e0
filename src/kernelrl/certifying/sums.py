"""Sums over displacements for all cells at once, by the fast Fourier transform, with a bound on their rounding.

With counts k_i ≥ 0 of displacements by i cells, and a field z on a lattice,

    S(c) = Σ_i k_i·z(c + i)       for all cells c of a box: the cost does not grow with the number of samples.

Rounding. All lengths have the factors 2, 3 and 5 only, so a transform is a sequence of p passes of butterflies of radix
r ≤ 5 (4 counts as one pass, here as two). Each output of a pass is a sum of at most r inputs times numbers of modulus
1, which are themselves rounded, and takes at most 16 operations in sequence, counting a product of complex numbers as
three: its error is at most κu·√2·Σ|inputs| with κ = 16 and u = 2^-53. (√2: butterflies of radix 3 and 5 add real and
imaginary parts, |cos| + |sin| ≤ √2.) In the Euclidean norm a pass multiplies by √r, and its error relative to that is
at most κu√2·√r. So to first order in u, with n = Σ k_i, and N points in all,

    transform of z             relative error ε₂ = p·κ·√10·u in the Euclidean norm
    transform of k             each number off by at most n·ε_∞,  ε_∞ = p·κ·u·2^{t/2},  t passes of radix 3 or 5;
                               and none larger than n
    their product, and back    3u and ε₂

and as the largest error is at most the Euclidean norm of all,

    |S computed - S| ≤ n·‖z‖₂·(2ε₂ + ε_∞ + 3u).

Twice this is used, which also covers terms of second order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import fft

__all__ = ["Offsets", "Sums", "relative_error"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
U, KAPPA = 2.0**-53, 16.0


@dataclass(frozen=True, eq=False)
class Offsets:
    """How often each displacement, in whole cells, was seen."""

    places: Whole  # (k, d) different ones
    counts: Floats  # (k,)

    @property
    def total(self) -> float:
        """How many there are in all."""
        return float(self.counts.sum())

    @property
    def least(self) -> Whole:
        """(d,) the lowest displacement on each axis."""
        return np.asarray(self.places.min(axis=0))

    @property
    def most(self) -> Whole:
        """(d,) the highest displacement on each axis."""
        return np.asarray(self.places.max(axis=0))


def relative_error(lengths: tuple[int, ...]) -> float:
    """2·(2ε₂ + ε_∞ + 3u) for transforms of these lengths."""
    passes, odd = 0, 0
    for length in lengths:
        left = int(length)
        for factor in (2, 3, 5):
            while left % factor == 0:
                left, passes, odd = left // factor, passes + 1, odd + (factor > 2)
        if left != 1:
            raise ValueError(f"lengths of transforms must have the factors 2, 3 and 5 only, got {length}")
    two, largest = passes * KAPPA * math.sqrt(10.0) * U, passes * KAPPA * U * math.sqrt(2.0) ** odd
    return float(2.0 * (2.0 * two + largest + 3.0 * U))


class Sums:
    """S for one set of offsets, on a box of cells."""

    def __init__(self, offsets: Offsets, shape: tuple[int, ...]) -> None:
        """`shape` is that of the box."""
        self.offsets, self.shape = offsets, shape
        self.low, span = offsets.least, offsets.most - offsets.least
        self.needed = tuple(int(m + s) for m, s in zip(shape, span, strict=True))  # of the field, from low on
        self.lengths = tuple(fft.next_fast_len(n, real=True) for n in self.needed)
        counts = np.zeros(self.lengths)
        counts[tuple((offsets.places - self.low).T)] = offsets.counts
        self.axes = tuple(range(-len(shape), 0))
        self.spectrum = np.conj(fft.rfftn(counts))
        self.error = relative_error(self.lengths) * offsets.total

    def __call__(self, fields: Floats) -> tuple[Floats, Floats]:
        """S (m, …) of m fields (m, …), and how far each may be off (m,); fields begin at the cell `low`."""
        product = fft.rfftn(fields, s=self.lengths, axes=self.axes, overwrite_x=False) * self.spectrum
        found: Any = fft.irfftn(product, s=self.lengths, axes=self.axes, overwrite_x=True)
        box = (slice(None), *(slice(0, m) for m in self.shape))
        norms = np.sqrt((fields * fields).reshape(len(fields), -1).sum(axis=1))
        return found[box], self.error * norms
