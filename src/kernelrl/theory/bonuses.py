"""The bonuses of the theory as plain functions (paper, definition 2; the joint one is derived in docs/theory.md).

With C = β + Σw, n samples in the pool that a step uses, at most N of them ever (N = K with data per step, K·H when
pooled), k = n+1, and everything at confidence δ:

    simplified  1/√C + R_h/C                                                          (no guarantee)
    full        (H+1)·√(v/C) + β(H+1)/C + (b_p + b_r)·σ,  v = 2·log(H·N(σ²/(N·H))·√(1+k/β)/(δ/6))
                b_p = 4·C2/β + √v·C2/β^{3/2} + 2·λ_p·L_1·(1 + √log(C1·k/β + e))
                b_r = the same with λ_r for λ_p·L_1 ("corrected") or with λ_r·L_1 ("printed")
    joint       c·√(v/C) + βR_h/C + L_h·Σw̃ρ + ε·[2·C2·k·R_h/(βσ) + c·√v·C2·k/(2σβ^{3/2})]
                c = R_h/2, v = 2·log(H·N(ε)·√(1+k/β)/δ), any ε > 0
    joint, self-normalised: √(β+Σw²)/C for 1/√C and (C2/σ)(k·β^{-3/2} + β^{-1/2}) for C2·k/(2σβ^{3/2})

Where states are merged at a distance m, (L_h + L_{h+1})·m is added to the last two; where a fold identifies states
whose Q* may differ by `defect`, 2·defect is added.

All have the form c0 + c1·D/C + c2/C (+ L_h·Σwρ/C), D = √C or √(β+Σw²), so an agent needs a table of c0, c1, c2. A bonus
must hold for all k. Since only its logarithm enters, k is rounded up to the end of its epoch, 2^{j+1}-1, and the bonus
of a count changes only when the number of samples has doubled. Without a number of episodes ("anytime"), epoch j has
its own radius and δ_j = 6δ/(π²(j+1)²), which sum to δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.theory.concentration import kernel_bias_bound
from kernelrl.theory.covering import log_box_covering

__all__ = [
    "EPOCHS",
    "Coefficients",
    "Problem",
    "best_radius",
    "epoch_end",
    "full_bonus",
    "full_coefficients",
    "full_table",
    "joint_bonus",
    "joint_coefficients",
    "joint_table",
    "simplified_bonus",
]

Floats = npt.NDArray[np.float64]
EPOCHS = 48  # nobody will ever have 2^48 samples


class Coefficients(NamedTuple):
    """B = constant + root·D/C + inverse/C (+ L_h·Σwρ/C)."""

    constant: float
    root: float
    inverse: float


@dataclass(frozen=True)
class Problem:
    """What the bonuses need to know about a problem and an agent; distances and widths are those of the metric."""

    horizon: int
    actions: int
    widths: tuple[float, ...]
    """Widths of the box of states."""
    sigma: float
    beta: float
    C1: float
    C2: float
    lipschitz: tuple[float, ...]
    """L_h, (H,)."""
    constants: tuple[float, float] | None = None
    """(λ_r, λ_p), which the full bonus needs."""
    pooled: bool = False
    merge: float = 0.0
    """Merge distance of representative states."""
    p: float = 2.0
    defect: float = 0.0
    """The largest difference of Q* between states that a fold identifies."""

    def log_cover(self, radius: float) -> float:
        """log N(radius) of state-action space."""
        return log_box_covering(self.widths, radius, self.actions, self.p)

    def most_samples(self, episodes: int) -> int:
        """How many samples a pool can hold after that many episodes."""
        return episodes * self.horizon if self.pooled else episodes

    def identifying(self, h: int) -> float:
        """The cost of identifying states: (L_h + L_{h+1})·m + 2·defect.

        Samples are moved by up to m, and so are their next states. If a fold identifies two states, a sample of one
        informs about Q* of the other up to the defect, and so does a value that is read there.
        """
        following = self.lipschitz[h + 1] if h + 1 < self.horizon else 0.0
        return (self.lipschitz[h] + following) * self.merge + 2.0 * self.defect


def log_v(problem: Problem, k: float, radius: float, delta: float) -> float:
    """v = 2·log(H·N(radius)·√(1+k/β)/δ)."""
    inside = math.log(problem.horizon) + problem.log_cover(radius) + 0.5 * math.log1p(k / problem.beta)
    return 2.0 * (inside - math.log(delta))


def simplified_bonus(C: Any, R: float) -> Any:
    """1/√C + R/C."""
    C = np.asarray(C, float)
    return 1.0 / np.sqrt(C) + R / C


# ---------------------------------------------------------------------------------------------------------- full


def full_coefficients(
    problem: Problem, h: int, k: float, most: float, delta: float, reward_term: str = "corrected"
) -> Coefficients:
    """The paper's bonus with k = `k` and K = `most`, both in samples of a pool."""
    if problem.constants is None:
        raise ValueError("constants: the full bonus needs (λ_r, λ_p), not only L_h")
    reward, transition = problem.constants
    H, beta, sigma, C2 = problem.horizon, problem.beta, problem.sigma, problem.C2
    L1 = problem.lipschitz[0]
    v = log_v(problem, k, sigma**2 / (most * H), delta / 6.0)
    bias = kernel_bias_bound(k, 1.0, beta, problem.C1)
    slopes = {"corrected": reward, "printed": reward * L1}
    if reward_term not in slopes:
        raise ValueError(f'reward_term must be "corrected" or "printed", got {reward_term!r}')
    shared = 4.0 * C2 / beta + math.sqrt(v) * C2 / beta**1.5
    b_p = shared + transition * L1 * bias
    b_r = shared + slopes[reward_term] * bias
    return Coefficients((b_p + b_r) * sigma + problem.identifying(h), (H + 1.0) * math.sqrt(v), beta * (H + 1.0))


def full_bonus(
    problem: Problem, h: int, k: float, episodes: int, delta: float, C: Any, reward_term: str = "corrected"
) -> Any:
    """The paper's bonus at generalized counts `C`; `k` counts the samples of the pool, plus one."""
    c = full_coefficients(problem, h, k, problem.most_samples(episodes), delta, reward_term)
    C = np.asarray(C, float)
    return c.constant + c.root / np.sqrt(C) + c.inverse / C


# --------------------------------------------------------------------------------------------------------- joint


def joint_coefficients(
    problem: Problem, h: int, k: float, radius: float, delta: float, self_normalised: bool = True
) -> Coefficients:
    """The joint bonus with covering radius `radius`."""
    beta, sigma, C2 = problem.beta, problem.sigma, problem.C2
    R = float(problem.horizon - h)
    root = 0.5 * R * math.sqrt(log_v(problem, k, radius, delta))
    slope = C2 * k / (2.0 * sigma * beta**1.5)
    if self_normalised:
        slope = C2 / sigma * (k * beta**-1.5 + beta**-0.5)
    constant = radius * (2.0 * C2 * k * R / (beta * sigma) + root * slope)
    return Coefficients(constant + problem.identifying(h), root, beta * R)


def best_radius(problem: Problem, most: float, delta: float, self_normalised: bool = True) -> float:
    """The ε of a log grid with the smallest joint bonus at the largest possible count, where it matters most.

    The terms with ε are proportional to R_h, so one radius is the best at every step.
    """
    grid = problem.sigma * np.logspace(-20.0, 0.0, 401)

    def height(radius: float) -> float:
        c = joint_coefficients(problem, 0, most, radius, delta, self_normalised)
        return c.constant + c.root / math.sqrt(most + problem.beta)

    return float(min(grid, key=height))


def joint_bonus(
    problem: Problem, h: int, k: float, radius: float, delta: float, C: Any, sum_distances: Any, sum_squares: Any,
    self_normalised: bool = True, part: float = 1.0,
) -> Any:  # fmt: skip
    """The joint bonus at counts `C`, where Σwρ and Σw² are `sum_distances` and `sum_squares`.

    `part`: the part of R_h in which all r + V*_{h+1} lie, where it is known.
    """
    c = joint_coefficients(problem, h, k, radius, delta, self_normalised)
    C = np.asarray(C, float)
    D = np.sqrt(problem.beta + np.asarray(sum_squares, float)) if self_normalised else np.sqrt(C)
    bias = problem.lipschitz[h] * np.asarray(sum_distances, float)
    return c.constant + (part * c.root * D + c.inverse + bias) / C


# -------------------------------------------------------------------------------------------------------- tables


def epoch_end(j: int) -> int:
    """The largest k of epoch j."""
    return int(2 ** (j + 1) - 1)


def full_table(problem: Problem, delta: float, episodes: int | None, reward_term: str = "corrected") -> Floats:
    """(EPOCHS, H, 3) coefficients of the full bonus."""
    table = np.empty((EPOCHS, problem.horizon, 3))
    for j in range(EPOCHS):
        k, most, share = epoch(problem, j, delta, episodes)
        for h in range(problem.horizon):
            table[j, h] = full_coefficients(problem, h, k, most, share, reward_term)
    return table


def joint_table(problem: Problem, delta: float, episodes: int | None, self_normalised: bool = True) -> Floats:
    """(EPOCHS, H, 3) coefficients of the joint bonus."""
    table = np.empty((EPOCHS, problem.horizon, 3))
    radius = 0.0
    for j in range(EPOCHS):
        k, most, share = epoch(problem, j, delta, episodes)
        if j == 0 or episodes is None:
            radius = best_radius(problem, most, share, self_normalised)
        for h in range(problem.horizon):
            table[j, h] = joint_coefficients(problem, h, k, radius, share, self_normalised)
    return table


def epoch(problem: Problem, j: int, delta: float, episodes: int | None) -> tuple[int, int, float]:
    """k, the largest number of samples and the share of δ in epoch j."""
    k = epoch_end(j)
    if episodes is None:
        return k, k, 6.0 * delta / (math.pi * (j + 1.0)) ** 2
    most = problem.most_samples(episodes)
    return min(k, most), most, delta
