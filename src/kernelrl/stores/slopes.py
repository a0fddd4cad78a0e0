"""How steps change with the state that they are taken from: straight lines through nearby samples.

The step of a sample (x_i, y_i), taken from u, leads to y_i + k·(u - x_i), where k_j is 1 if steps resemble each other
by their displacement, and 0 if they do by the place they lead to. In a smooth system what they have in common changes
with the state, near u about linearly,

    z_i = y_i + k·(u - x_i) + Bᵀ(u - x_i),        B = (Σ_i w_i·ξ_i·ξ_iᵀ + εI)⁻¹ Σ_i w_i·ξ_i·τ_iᵀ

with ξ_i = x_i - x̄ and τ_i = t_i - t̄, where t_i = y_i - k·x_i. The means x̄ and t̄ have the weights
w_i = exp(-ρ²(u, x_i)/2m²), m² is the mean of ρ²(u, x_i). The ridge is ε = RIDGE·Σ_i w_i·ρ²(u, x_i)/d for d coordinates:
it counts more where u is outside of the samples. Where actions are related, they are coordinates of x_i and u, too.

Where steps are mostly noise, lines predict worse than constants. `predict_probes` has the errors of both.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.jit.compile import compiled, inner

__all__ = ["Fit", "fit_slopes", "new_fit", "predict_probes", "shift"]

RIDGE = 0.01


class Fit(NamedTuple):
    """Lines through samples near a point, for x with `wide` coordinates and y with `places`."""

    w: np.ndarray  # (most samples,)
    x: np.ndarray  # (wide,) x̄
    t: np.ndarray  # (places,) t̄
    G: np.ndarray  # (wide, wide) scratch
    B: np.ndarray  # (wide, places)


def new_fit(most, wide, places):
    """Room for lines through `most` samples."""
    return Fit(np.zeros(most), np.zeros(wide), np.zeros(places), np.zeros((wide, wide)), np.zeros((wide, places)))


@inner
def solve(G, B):
    """Replace B by G⁻¹B; `G` is symmetric, with positive eigenvalues, and is overwritten by its Cholesky factor."""
    n, m = B.shape
    for i in range(n):
        for j in range(i + 1):
            s = G[i, j]
            for k in range(j):
                s -= G[i, k] * G[j, k]
            G[i, j] = math.sqrt(s) if i == j else s / G[j, j]
    for c in range(m):
        for i in range(n):
            s = B[i, c]
            for k in range(i):
                s -= G[i, k] * B[k, c]
            B[i, c] = s / G[i, i]
        for i in range(n - 1, -1, -1):
            s = B[i, c]
            for k in range(i + 1, n):
                s -= G[k, i] * B[k, c]
            B[i, c] = s / G[i, i]


@inner
def square_of(x, y):
    """The squared distance of two points."""
    s = 0.0
    for j in range(x.size):
        s += (x[j] - y[j]) * (x[j] - y[j])
    return s


@inner
def weigh(u, x, near, but, w):
    """Write w_i of the samples `near` at `x` (n, wide) into `w`, 0 for number `but`; return their sum."""
    squares, n, total = 0.0, 0, 0.0
    for i in range(near.size):
        w[i] = square_of(u, x[near[i]])
        if near[i] != but:
            squares, n = squares + w[i], n + 1
    for i in range(near.size):
        if near[i] == but:
            w[i] = 0.0
        else:
            w[i] = math.exp(-0.5 * w[i] * n / squares) if squares > 0.0 else 1.0
        total += w[i]
    return total


@inner
def fit_slopes(fit, u, x, y, near, but, keeps):
    """Fit lines around `u` (wide,) to samples `near` at `x` (n, wide), which lead to `y` (n, places), without `but`.

    `keeps` (places,) are the k_j. Return whether there is a sample.
    """
    total, mean_x, mean_t, G, B = weigh(u, x, near, but, fit.w), fit.x, fit.t, fit.G, fit.B
    mean_x[:], mean_t[:], G[:], B[:] = 0.0, 0.0, 0.0, 0.0
    if total <= 0.0:
        return False
    for i in range(near.size):
        for j in range(mean_x.size):
            mean_x[j] += fit.w[i] / total * x[near[i], j]
        for j in range(mean_t.size):
            mean_t[j] += fit.w[i] / total * (y[near[i], j] - keeps[j] * x[near[i], j])
    for i in range(near.size):
        for j in range(mean_x.size):
            xi = fit.w[i] * (x[near[i], j] - mean_x[j])
            for k in range(mean_x.size):
                G[j, k] += xi * (x[near[i], k] - mean_x[k])
            for k in range(mean_t.size):
                B[j, k] += xi * (y[near[i], k] - keeps[k] * x[near[i], k] - mean_t[k])
    ridge = 0.0
    for i in range(near.size):
        ridge += RIDGE / mean_x.size * fit.w[i] * square_of(u, x[near[i]])
    if ridge > 0.0:
        for j in range(mean_x.size):
            G[j, j] += ridge
        solve(G, B)
    return True


@inner
def shift(fit, u, x, y, keeps, bends, z):
    """Where a step from `x` (wide,) to `y` (places,) leads from `u` (wide,), into `z`.

    Coordinates for which `bends` (places,) is 1 have slopes.
    """
    for j in range(z.size):
        z[j] = y[j] + keeps[j] * (u[j] - x[j])
        if bends[j] != 0.0:
            for i in range(u.size):
                z[j] += fit.B[i, j] * (u[i] - x[i])


@compiled
def predict_probes(fit, x, y, probes, start, index, keeps, errors):
    """Add squared errors of the samples `probes` to `errors` (2, places): without slopes, and with them.

    Each is predicted from samples around it without itself. Those near probe i are entries start[i] to start[i + 1] of
    `index`.
    """
    for i in range(probes.size):
        t = probes[i]
        if not fit_slopes(fit, x[t], x, y, index[start[i] : start[i + 1]], t, keeps):
            continue
        for j in range(y.shape[1]):
            e = y[t, j] - keeps[j] * x[t, j] - fit.t[j]
            errors[0, j] += e * e
            for k in range(x.shape[1]):
                e -= fit.B[k, j] * (x[t, k] - fit.x[k])
            errors[1, j] += e * e
