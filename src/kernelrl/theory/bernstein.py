"""The empirical-Bernstein form of the joint bonus (derived in docs/theory.md), at confidence δ.

With ψ(λ) = -log(1-λ) - λ, λ_j = ¾·2^{-j/2}, C = β + Σw, n samples in the pool, k = n+1 and V̂ ≥ Σw_s²(G_s - q)² for
one q of the grid 0, R_h/J, …, R_h,

    B = min_j [(R_h·ℓ_j/λ_j + ψ(λ_j)/λ_j·V̂/R_h)/C + ε·Λ_j] + βR_h/C + L_h·Σw̃ρ
    ℓ_j = log(2(j+1)(j+2)(J+1)·H·N(ε)/δ)
    Λ_j = 2·C2·k·R_h/(βσ) + (R_h·ℓ_j/λ_j)·C2·k/(σβ²) + (ψ(λ_j)/λ_j)·(C2·R_h/σ)·(2 + k/β)

and where states are merged or identified the same is added as to the joint bonus. A rule is an array (24, 4) of
R_h·ℓ_j/λ_j, ψ(λ_j)/(λ_j·R_h), ε·Λ_j, to which that is added, and R_h/2J.

V* is not known, but bounded: G_s lies within g_s of m_s, the middle of [r_s + V↓_{h+1}(y_s), r_s + V↑_{h+1}(y_s)]. With
q nearest to the mean m̄ of all m_s, weighted by w_s², V̂ = (√(Σw²(m_s - m̄)² + Σw²·(R_h/2J)²) + √Σw²g_s²)².
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.theory.bonuses import Problem, epoch

__all__ = ["GRID", "LAMBDAS", "PSI", "bernstein_rule", "bernstein_rules", "bernstein_term", "radius_of_rule"]

Floats = npt.NDArray[np.float64]
GRID = 200  # J
LAMBDAS = 0.75 * 2.0 ** (-0.5 * np.arange(24))
PSI = np.array([sum(x**k / k for k in range(200, 1, -1)) for x in LAMBDAS])  # the series: differences would lose digits
USUAL = 0.01  # V̂ per count, in units of R_h², for which the radius is best


def bernstein_rule(problem: Problem, h: int, k: float, radius: float, delta: float) -> Floats:
    """(24, 4) the rule of step `h` with covering radius `radius`."""
    R, beta, over = float(problem.horizon - h), problem.beta, problem.C2 / problem.sigma
    j = np.arange(len(LAMBDAS))
    statements = math.log(problem.horizon) + problem.log_cover(radius) - math.log(delta)
    heights = R * (np.log(2.0 * (j + 1.0) * (j + 2.0) * (GRID + 1.0)) + statements) / LAMBDAS
    slopes = PSI / LAMBDAS
    net = over * (2.0 * k * R / beta + heights * k / beta**2 + slopes * R * (2.0 + k / beta))
    off = np.full(len(j), R / (2.0 * GRID))
    return np.stack([heights, slopes / R, radius * net + problem.identifying(h), off], axis=1)


def bernstein_term(rule: Floats, C: Any, squares: Any) -> Any:
    """min_j, without shrinkage and bias, at counts `C` and with V̂ = `squares`."""
    C, squares = np.asarray(C, float)[..., None], np.asarray(squares, float)[..., None]
    return ((rule[:, 0] + rule[:, 1] * squares) / C + rule[:, 2]).min(axis=-1)


@functools.cache
def radius_of_rule(problem: Problem, most: float, delta: float) -> float:
    """The ε of a log grid with the smallest bonus at the largest possible count, where V̂ is USUAL·R_h²·C.

    All terms with ε are proportional to R_h, so one radius is the best at every step. Any would be valid.
    """
    grid, C = problem.sigma * np.logspace(-24.0, 0.0, 241), most + problem.beta
    squares = USUAL * problem.horizon**2 * C

    def height(radius: float) -> float:
        return float(bernstein_term(bernstein_rule(problem, 0, most, radius, delta), C, squares))

    return float(min(grid, key=height))


def bernstein_rules(problem: Problem, h: int, j: int, delta: float, episodes: int | None) -> Floats:
    """(24, 4) the rule of step `h` in epoch `j`; as in `joint_table`, k is the end of the epoch."""
    k, most, share = epoch(problem, j, delta, episodes)
    return bernstein_rule(problem, h, k, radius_of_rule(problem, most, share), share)
