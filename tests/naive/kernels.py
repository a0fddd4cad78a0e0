"""Kernel functions g of ψ_σ(u, v) = g(ρ(u, v)/σ): Section "Kernel Function" of the paper.

Every g maps an array of z ≥ 0 into [0, 1] with g(0) = 1 (the compact kernels are left unnormalised).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Kernel = Callable[[np.ndarray], np.ndarray]


def gaussian(z):
    return np.exp(-(z**2) / 2)


def exponential_power(p: float) -> Kernel:
    def g(z):
        return np.exp(-(z**p) / 2)

    return g


def compact(z):
    """Compact support and yet within the paper's assumption, since g(4) > 0."""
    return np.where(z < 5, 1 - np.minimum(z, 5) ** 2 / 25, 0.0) ** 3


def uniform(z):
    return np.where(z <= 1, 1.0, 0.0)


def triangular(z):
    return np.where(z <= 1, 1 - z, 0.0)


def epanechnikov(z):
    return np.where(z <= 1, 1 - z**2, 0.0)


def quartic(z):
    return np.where(z <= 1, 1 - z**2, 0.0) ** 2


def triweight(z):
    return np.where(z <= 1, 1 - z**2, 0.0) ** 3


def tricube(z):
    return np.where(z <= 1, 1 - z**3, 0.0) ** 3


def cosine(z):
    return np.where(z <= 1, np.cos(np.pi * z / 2), 0.0)


BY_NAME: dict[str, Kernel] = {
    "gaussian": gaussian,
    "compact": compact,
    "uniform": uniform,
    "triangular": triangular,
    "epanechnikov": epanechnikov,
    "quartic": quartic,
    "triweight": triweight,
    "tricube": tricube,
    "cosine": cosine,
}
