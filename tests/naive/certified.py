"""Bounds on V* by the equations of docs/theory.md, in plain NumPy.

The joint bonus with the range of r + V_{h+1} that is known, and the empirical-Bernstein form where that is smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from naive.estimates import Related, counts, distances, next_values, pair_weights, smoothed, spread
from naive.kernels import gaussian
from naive.metrics import euclidean

GRID = np.linspace(0.0, 1.0, 4001)[:, None]
J = 200
LAMBDAS = [0.75 * 2.0 ** (-j / 2) for j in range(24)]


class Rules(NamedTuple):
    """What the bounds are made of; `bonuses` has a `TheoryBonus` for each bandwidth, at its share of δ."""

    bonuses: dict
    L: np.ndarray
    beta: float
    bernstein: dict | None = None  # for each bandwidth (problem, δ, ε as a function of most samples and δ)
    scale: float = 1.0
    nothing: float = 0.0  # m(0), what a step after the end is worth
    ends: bool = True  # whether episodes may end
    by_sample: bool = True  # whether rewards and next values are known for each sample, or only their sums
    A: int = 2
    related: Related | None = None


class Bounds(NamedTuple):
    """V↓_1 and V↑_1 as functions of states (n, 1), and how wide the interval with all r + V*_{h+1} was at each step."""

    lower: object
    upper: object
    widths: list


def naive_bounds(data, rules, widths=None):
    """The bounds. `widths` (H,): those to use; None: those of a dense grid of states in [0, 1]."""
    steps, found = len(rules.L), []
    lower = upper = None
    for h in reversed(range(steps)):
        R, pool = steps - h, data.pool(h)
        found.insert(0, width_at(lower, upper, rules, h))
        part = min(1.0, (found[0] if widths is None else widths[h]) / R)
        lower, upper = one_step(pool, rules, h, part, lower, upper)
    return Bounds(lower, upper, found)


def width_at(lower, upper, rules, h):
    """1 + sup V↑_{h+1} - inf V↓_{h+1}, on a grid."""
    if lower is None:
        return 1.0
    low, high = lower(GRID).min(), upper(GRID).max()
    if rules.ends:
        after = rules.nothing * (len(rules.L) - h - 1)
        return 1.0 + max(high, after) - min(low, after)
    return 1.0 + min(high - low, rules.L[h + 1])  # the box is 1 wide


def one_step(pool, rules, h, part, lower, upper):
    """V↓_h and V↑_h as functions of states."""
    R, n, L, A = len(rules.L) - h, len(pool.a), rules.L[h], rules.A
    after = rules.nothing * (R - 1)
    low, high = (np.where(pool.terminated, after, next_values(pool, V) if V else np.zeros(n)) for V in (lower, upper))
    ups, downs = [], []
    for sigma, bonus in rules.bonuses.items():
        kernel = {"sigma": sigma, "g": gaussian, "rho": euclidean, "related": rules.related}
        C, (D, W2) = counts(pool.x, A, pool, beta=rules.beta, **kernel), spread(pool.x, A, pool, **kernel)
        shrinkage = rules.beta * (len(rules.L) + 1 if bonus.kind == "corrected" else R) / C
        B = bonus(h, n, C, D, W2, part)
        T = [smoothed(pool.x, A, pool, pool.r + V, beta=rules.beta, **kernel) for V in (low, high)]
        up, down = T[1] + rules.scale * B, T[0] - rules.scale * (B - shrinkage)
        if rules.bernstein is not None and n > 0:
            B = bernstein_bonus(pool, rules, h, sigma, C, D, low, high)
            up = np.minimum(up, T[1] + rules.scale * (B + shrinkage))
            down = np.maximum(down, T[0] - rules.scale * B)
        ups.append(up)
        downs.append(down)
    apart = np.where(np.eye(A), 0.0, np.inf) if rules.related is None else rules.related.rho
    own = np.arange(n), pool.a
    up, down = np.min(ups, axis=0)[own], np.max(downs, axis=0)[own]

    def upper_now(x):
        cones = up + L * distances(x, pool.x, euclidean)
        by_action = [(cones + L * apart[a, pool.a]).min(axis=1, initial=np.inf) for a in range(A)]
        return np.minimum(R, np.max(by_action, axis=0))

    def lower_now(x):
        return (down - L * distances(x, pool.x, euclidean)).max(axis=1, initial=0.0)

    return lower_now, upper_now


def bernstein_bonus(pool, rules, h, sigma, C, D, low, high):
    """The empirical-Bernstein form without shrinkage at each sample's state and all actions, (n, A)."""
    problem, delta, radius_for = rules.bernstein[sigma]
    H, n = len(rules.L), len(pool.a)
    R, j = float(H - h), math.floor(math.log2(n + 1))
    k, share = 2 ** (j + 1) - 1, 6 * delta / (math.pi**2 * (j + 1) ** 2)
    radius = radius_for(problem, k, share)
    moved = (rules.L[h + 1] if h + 1 < H else 0.0) * problem.merge
    middle, half = 0.5 * (low + high), np.where(pool.terminated, 0.0, 0.5 * (high - low) + moved)
    if h == H - 1:
        half = np.zeros(n)
    w = pair_weights(pool.x, rules.A, pool, sigma, gaussian, euclidean, rules.related)
    B = np.empty_like(C)
    for i in range(n):
        for a in range(rules.A):
            weight = w[i, :, a]
            if rules.by_sample:
                deviation = root_of_squares(weight, pool.r + middle)
            else:
                deviation = root_of_squares(weight, pool.r) + root_of_squares(weight, middle)
            off = np.sum(weight**2) * (R / (2 * J)) ** 2
            squares = (math.sqrt(deviation**2 + off) + math.sqrt(np.sum(weight**2 * half**2))) ** 2
            lines = []
            for i_lambda, lam in enumerate(LAMBDAS):
                psi = -math.log1p(-lam) - lam
                count = 2 * (i_lambda + 1) * (i_lambda + 2) * (J + 1) * H
                ell = math.log(count) + problem.log_cover(radius) - math.log(share)
                slope = 2 * problem.C2 * k * R / (rules.beta * sigma)
                slope += R * ell / lam * problem.C2 * k / (sigma * rules.beta**2)
                slope += psi / lam * problem.C2 * R / sigma * (2 + k / rules.beta)
                lines.append((R * ell / lam + psi / lam * squares / R) / C[i, a] + radius * slope)
            B[i, a] = min(lines) + rules.L[h] * D[i, a] / C[i, a] + problem.identifying(h)
    return B


def root_of_squares(weight, z):
    """√Σw²(z - z̄)², z̄ the mean with weights w²."""
    if not weight.any():
        return 0.0
    mean = np.sum(weight**2 * z) / np.sum(weight**2)
    return math.sqrt(np.sum(weight**2 * (z - mean) ** 2))
