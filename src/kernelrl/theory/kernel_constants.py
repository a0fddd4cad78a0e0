"""The constants of assumption 3, checked numerically: g(z) ≤ C1·exp(-z²/2), sup|g'| ≤ C2, g(4) > 0, g non-increasing.

`kernelrl.geometry.kernels` has C1 and C2 in closed form; here they are found by evaluating g on a fine grid, so the two
can be compared.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kernelrl.geometry.kernels import KERNELS, ExponentialPower, Kernel, resolve_kernel

__all__ = ["KernelCheck", "check_kernel", "moments", "qualifying_kernels"]


@dataclass(frozen=True)
class KernelCheck:
    """What was found on the grid."""

    C1: float
    """sup g(z)·exp(z²/2)."""
    C2: float
    """sup|g'|, from differences of neighbouring points."""
    g4: float
    """g(4)."""
    non_increasing: bool
    in_unit_interval: bool

    @property
    def admissible(self) -> bool:
        """Whether assumption 3 holds, as far as a grid can tell."""
        return self.g4 > 0.0 and math.isfinite(self.C1) and self.non_increasing and self.in_unit_interval


def check_kernel(kernel: str | Kernel, points: int = 20_001) -> KernelCheck:
    """The constants of `kernel` as a grid over [0, 8] shows them."""
    g_of: Kernel = resolve_kernel(kernel)
    z = np.linspace(0.0, 8.0, points)
    g = np.asarray(g_of(z))
    with np.errstate(over="ignore"):
        C1 = float((g * np.exp(0.5 * z * z)).max())
    steps = np.diff(g)
    return KernelCheck(
        C1=C1, C2=float(np.abs(steps).max() / (z[1] - z[0])), g4=float(g_of(4.0)),
        non_increasing=bool((steps <= 1e-15).all()), in_unit_interval=bool(((g >= 0.0) & (g <= 1.0)).all()),
    )  # fmt: skip


def qualifying_kernels() -> tuple[str, ...]:
    """The names of kernels that satisfy the assumption, for messages."""
    named = tuple(name for name in KERNELS if resolve_kernel(name).admissible)
    return (*named, f"krl.kernels.{ExponentialPower.__name__}(p) with p > 2")


def moments(kernel: str | Kernel, d: int, points: int = 20_001) -> tuple[float, float]:
    """Σw̃ρ/σ and Σw²/Σw where samples lie evenly around a point of d-dimensional space: ratios of integrals over z."""
    g_of: Kernel = resolve_kernel(kernel)
    z = np.linspace(0.0, min(g_of.support, 12.0), points)
    g = np.asarray(g_of(z))
    shell = z ** (d - 1)
    shell[[0, -1]] *= 0.5  # the trapezoidal rule
    total = (g * shell).sum()
    return float((g * shell * z).sum() / total), float((g * g * shell).sum() / total)
