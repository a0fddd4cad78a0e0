"""Covering numbers, in logarithms (paper, appendices A and H.2).

N(ε, X, ρ) is the smallest number of balls of radius ε that cover X. A box of widths b_1 … b_d under the p-norm is
covered by cubes of side s whose half diagonal s·d^{1/p}/2 is at most ε, so with A actions, which are infinitely far
apart,

    log N(ε) ≤ log A + Σ_j log ⌈b_j·d^{1/p}/(2ε)⌉.

A greedy ε-net of data (no two of its points closer than ε, every data point within ε of one of them) has between N(ε)
and N(ε/2) points, where N is the covering number of the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["greedy_net", "log_box_covering", "log_data_covering", "log_lipschitz_covering"]


def log_box_covering(widths: Sequence[float], radius: float, actions: int = 1, p: float = 2.0) -> float:
    """log of a bound on the covering number of `actions` copies of a box under the p-norm."""
    if not (math.isfinite(radius) and radius > 0.0):
        raise ValueError(f"radius must be a finite number above 0, got {radius!r}")
    if not all(math.isfinite(width) and width >= 0.0 for width in widths):
        raise ValueError(f"widths must be finite numbers of at least 0, got {list(widths)}")
    spread = len(widths) ** (1.0 / p)  # 1/∞ is 0
    return math.log(actions) + sum(log_ceil(width, spread, radius) for width in widths)


def log_ceil(width: float, spread: float, radius: float) -> float:
    """log max(1, ⌈width·spread/(2·radius)⌉), also where that is beyond the largest float."""
    if width == 0.0:
        return 0.0
    log_ratio = math.log(width) + math.log(spread) - math.log(2.0 * radius)
    # Beyond e^27 rounding up adds less than one part in 10^11, which the last term covers.
    return math.log(max(1, math.ceil(math.exp(log_ratio)))) if log_ratio < 27.0 else log_ratio + 1e-11


def greedy_net(points: npt.ArrayLike, radius: float, p: float = 2.0) -> npt.NDArray[np.int64]:
    """Indices of a greedy ε-net of `points` (n, d): each next one is the first that lies farther than `radius`."""
    x = np.asarray(points, float)
    if x.ndim != 2:
        raise ValueError(f"points must have shape (n, d), got shape {x.shape}")
    if not radius >= 0.0:
        raise ValueError(f"radius must be at least 0, got {radius!r}")
    net: list[int] = []
    left = np.arange(len(x))
    while left.size:
        net.append(int(left[0]))
        left = left[np.linalg.norm(x[left] - x[left[0]], ord=p, axis=1) > radius]
    return np.array(net, np.int64)


def log_data_covering(points: npt.ArrayLike, radius: float, p: float = 2.0) -> float:
    """log of the size of a greedy ε-net of `points` (n, d), n ≥ 1."""
    return math.log(len(greedy_net(points, radius, p)))


def log_lipschitz_covering(log_net: float, lipschitz: float, height: float, radius: float) -> float:
    """log of the covering number in ‖·‖_∞ of L-Lipschitz functions into [0, height], at most (8·height/ε)^N(ε/(4L)).

    `log_net` is log N(ε/(4L)) of the space they are on, and `radius` is ε ≤ 8·height.
    """
    if lipschitz == 0.0:
        log_net = 0.0
    return math.exp(log_net) * math.log(max(1.0, 8.0 * height / radius))
