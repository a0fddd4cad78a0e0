"""Concentration of weighted sums (paper, appendix G), kernel bias and the uniform Bernstein bound (appendix C.3).

Weights w_s ∈ [0, 1] are fixed before Y_s is drawn ("predictable"), S_t = Σ w_s·Y_s, W_t = Σ w_s. With probability 1-δ,
for all t at once:

    Hoeffding   E[exp(λY_s) | past] ≤ exp(λ²c²/2) for all real λ;  V_t = Σ w_s²
                |S_t|/(W_t+β) ≤ c·√(2[log(1/δ) + ½log((V_t+β)/β)]·(V_t+β))/(W_t+β)
                              ≤ c·√(2 log(√(1+t/β)/δ)/(W_t+β))                               since V_t ≤ W_t ≤ t
    Bernstein   E[Y_s | past] = 0 and |Y_s| ≤ b;  V_t = Σ w_s²·E[Y_s² | past],  u = log(4e(2t+1)/δ)
                |S_t|/(W_t+β) ≤ √(2u(V_t+b²))/(W_t+β) + 2bu/(3(W_t+β))

The paper states the first for λ > 0, which would give one side only; its proof integrates over all real λ. A variable
in an interval of length R has c = R/2.

Kernel bias: with w_s = g(z_s/σ), Σ w̃_s·z_s ≤ 2σ(1 + √log(C1·t/β + e)).

Uniform Bernstein: the inequality for one function f, then for all f of an ε-net of the 2L_1-Lipschitz functions, then
for all of them. The first step is applied to the functions of the net, and those of the paper, min_i[y_i + 2L·ρ(x,x_i)]
with L = 2L_1, are 4L_1-Lipschitz. For a Λ-Lipschitz f, with P λ_p-Lipschitz and the kernel bias lemma,

    |Σ w̃_s·(Pf(x_s,a_s) - Pf(x,a))|             ≤ λ_pΛ·2σ(1 + √…)             bias of the mean
    (1/(2H²))·2H·Σ w̃_s·(P|f|(x_s,a_s) - P|f|(x,a)) ≤ (1/H)·λ_pΛ·2σ(1 + √…)     bias of the variance
    Lipschitz constant of (1/H)·P|f|             ≤ λ_pΛ/H ≤ λ_pΛ              from (x,a) to a net of pairs

which for Λ = 4L_1 gives 8 + 8/H and 4. The paper takes Λ = 2L_1 here, and omits the lemma's 2 in the second line. (With
min_i[y_i + L·ρ(x,x_i)], which is equally close to f, Λ = 2L_1 would be right; this code follows the paper's net.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = [
    "UniformBernstein",
    "bernstein_bound",
    "hoeffding_bound",
    "hoeffding_simple_bound",
    "kernel_bias_bound",
    "log_plus",
    "uniform_bernstein",
]


def hoeffding_bound(sum_weights: Any, sum_squares: Any, c: float, beta: float, delta: float) -> Any:
    """The self-normalised bound on |S_t|/(W_t+β), elementwise in W_t and V_t = Σw²."""
    V = np.asarray(sum_squares, float) + beta
    log_term = math.log(1.0 / delta) + 0.5 * np.log(V / beta)
    return c * np.sqrt(2.0 * log_term * V) / (np.asarray(sum_weights, float) + beta)


def hoeffding_simple_bound(sum_weights: Any, t: Any, c: float, beta: float, delta: float) -> Any:
    """The bound on |S_t|/(W_t+β) that needs only W_t and t."""
    log_term = math.log(1.0 / delta) + 0.5 * np.log1p(np.asarray(t, float) / beta)
    return c * np.sqrt(2.0 * log_term / (np.asarray(sum_weights, float) + beta))


def bernstein_bound(sum_weights: Any, variance: Any, t: Any, b: float, beta: float, delta: float) -> Any:
    """The bound on |S_t|/(W_t+β), elementwise in W_t, V_t = Σw²E[Y²|past] and t."""
    u = np.log(4.0 * math.e * (2.0 * np.asarray(t, float) + 1.0) / delta)
    C = np.asarray(sum_weights, float) + beta
    return np.sqrt(2.0 * u * (np.asarray(variance, float) + b * b)) / C + 2.0 * b * u / (3.0 * C)


def log_plus(x: float) -> float:
    """log(x + e)."""
    return math.log(x + math.e)


def kernel_bias_bound(t: float, sigma: float, beta: float, C1: float) -> float:
    """2σ(1 + √log(C1·t/β + e)), an upper bound on Σ w̃_s·ρ_s."""
    return 2.0 * sigma * (1.0 + math.sqrt(log_plus(C1 * t / beta)))


@dataclass(frozen=True)
class UniformBernstein:
    """|(P̂-P)f| ≤ P|f|/H + (11H²·variance + 2βH)/C + bias_power·σ^{1+d_X} + bias·σ for all 2L_1-Lipschitz f."""

    variance: float
    """θ_v = log(4e(2k+1)/δ · H · N(σ^{2+d_X}/(KH²)) · (2H/(L_1σ))^{N_X(σ)})."""
    bias_power: float
    """4λ_pL_1σ/(KH²) + 4C2/(Hβ) + 11·C2·θ_v/β²; the paper prints 2 for the first 4."""
    bias: float
    """32L_1 + (8+8/H)·λ_pL_1(1 + √log⁺(C1·k/β)); the paper prints 6 for 8+8/H."""


def uniform_bernstein(
    k: float, K: float, horizon: int, sigma: float, beta: float, delta: float, C1: float, C2: float,
    transition_lipschitz: float, L1: float, log_fine_cover: float, state_cover: float,
) -> UniformBernstein:  # fmt: skip
    """The quantities of the uniform Bernstein bound.

    `log_fine_cover` is log N(σ^{2+d_X}/(KH²)) of state-action space, `state_cover` the σ-covering number of the states.
    The factor (2H/(L_1σ)) covers functions into an interval of length 2H, and is at least 1 here.
    """
    H = float(horizon)
    if L1 > 0.0:
        functions = state_cover * math.log(max(1.0, 2.0 * H / (L1 * sigma)))
    else:
        functions = 0.0
    variance = math.log(4.0 * math.e * (2.0 * k + 1.0) / delta) + math.log(H) + log_fine_cover + functions
    power = 4.0 * transition_lipschitz * L1 * sigma / (K * H * H) + 4.0 * C2 / (H * beta)
    power += 11.0 * C2 * variance / beta**2
    spread = 1.0 + math.sqrt(log_plus(C1 * k / beta))
    return UniformBernstein(variance, power, 32.0 * L1 + (8.0 + 8.0 / H) * transition_lipschitz * L1 * spread)
