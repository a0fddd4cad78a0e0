"""State metrics ρ_X of the paper's assumption ρ((x,a),(x',a')) = ρ_X(x,x') + ρ_A(a,a').

A metric here maps states (n, d) and (m, d) to all their distances (n, m). The action part, 0 or ∞, is
not here: `estimates` never lets a sample of another action count.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

Metric = Callable[[np.ndarray, np.ndarray], np.ndarray]


def lp(p: float, scale=None) -> Metric:
    """(Σ_i |(x_i - y_i)/scale_i|^p)^(1/p), the largest of them for p = ∞."""

    def rho(x, y):
        d = x.shape[1]
        difference = [np.abs(x[:, None, i] - y[None, :, i]) for i in range(d)]  # (n, m) on each axis
        if scale is not None:
            difference = [on_axis / s for on_axis, s in zip(difference, np.broadcast_to(scale, d), strict=True)]
        if np.isinf(p):
            return functools.reduce(np.maximum, difference)
        return sum(on_axis**p for on_axis in difference) ** (1 / p)

    return rho


def folded(fold: Callable[[np.ndarray], np.ndarray], metric: Metric) -> Metric:
    """The distance of the images of both states under `fold`, which maps one state to one state."""

    def rho(x, y):
        return metric(np.array([fold(u) for u in x]), np.array([fold(v) for v in y]))

    return rho


def custom(function: Callable[[np.ndarray, np.ndarray], float]) -> Metric:
    """The distance given by a function of two states."""

    def rho(x, y):
        return np.array([[function(u, v) for v in y] for u in x])

    return rho


euclidean = lp(2)
manhattan = lp(1)
chebyshev = lp(np.inf)
