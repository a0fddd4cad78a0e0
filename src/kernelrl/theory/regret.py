"""The regret bounds of the paper, term by term, with the constants that its proofs give.

On the good event (propositions in appendices C and D), following the proof line by line, with ρ ≤ 2σ to the nearest
sample,

    δ_h ≤ (1+1/H)(δ_{h+1} + ξ_{h+1}) + 2B + (11H²θ_v + 2βH)/C + [2(λ_r + L_1 + (1+2/H)·λ_pL_1) + θ_b]·σ + θ'_b·σ^{1+d_X}

and (1+1/H)^H ≤ e, so that the regret of Kernel-UCBVI is at most the sum of

    first order     e·2(H+1)√v·Σ1/√C            Σ1/√C ≤ H(β^{-1/2} + 2β^{1/2}/g4)·N_σ + 2H·√(N_σ·K/g4)
    second order    e·(2β(H+1) + 11H²θ_v + 2βH)·Σ1/C      Σ1/C ≤ H·N_σ/β + (H/g4)·N_σ·log(1 + (1 + g4·K/β)/N_σ)
    bias            e·KHσ·[2(b_p+b_r) + 2(λ_r + L_1 + (1+2/H)·λ_pL_1) + θ_b + θ'_b·σ^{d_X}]
    new cells       e·H²·N_σ                              steps at which the nearest sample is farther than 2σ
    martingale      √(8e²H²·log(2/δ))·√(KH)

Greedy-Kernel-UCBVI adds e·(H²·N_X + 2L_1·HKσ), "updates". With stationary data and a plan (or Greedy) at every step the
sums lose a factor H and have K·H samples instead of K. Here g4 = g(4), N_σ and N_X are the σ-covering numbers of
state-action and state space. As rates: H²√(N_σK) + H³N_σN_X + L_1KHσ; stationary H^{3/2}√(N_σK) + H²N_σN_X + L_1KHσ.

Choice of σ: with N_σ ~ σ^{-d} and N_X ~ σ^{-d_X}, σ = K^{-1/(2d+1)} gives K^{2d/(2d+1)} (for d < 1, where the
first-order term dominates, K^{(3d+1)/(4d+2)}, not K^{1/2} as printed). Balancing all three terms gives σ =
K^{-1/(d+max(d_X,1)+1)}: the exponent is then (d+d_X)/(d+d_X+1) for d_X ≥ 1, better whenever d_X < d, and the lower
bound's (d+1)/(d+2) for d_X ≤ 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelrl.theory.bonuses import Problem, full_coefficients
from kernelrl.theory.concentration import uniform_bernstein
from kernelrl.theory.covering import log_box_covering

__all__ = [
    "Rate",
    "RegretBound",
    "bandwidth_exponent",
    "better_bandwidth_exponent",
    "rates",
    "regret_bound",
    "regret_exponent",
    "sum_of_inverse_counts",
    "sum_of_inverse_roots",
]


@dataclass(frozen=True)
class RegretBound:
    """A bound on Σ_k V*_1 - V^{π_k}_1 that holds with probability 1-δ."""

    first_order: float
    second_order: float
    bias: float
    new_cells: float
    martingale: float
    updates: float = 0.0
    """Greedy's extra term."""

    @property
    def total(self) -> float:
        """The sum of all terms."""
        parts = (self.first_order, self.second_order, self.bias, self.new_cells, self.martingale, self.updates)
        return math.fsum(parts)


def sum_of_inverse_roots(cells: float, K: float, steps: float, beta: float, g4: float) -> float:
    """A bound on Σ1/√C at visited pairs with a sample within 2σ; `steps` sums of `K` terms each."""
    constant = (1.0 / math.sqrt(beta) + 2.0 * math.sqrt(beta) / g4) * cells
    return steps * (constant + 2.0 / g4 * math.sqrt(g4 * cells * K))


def sum_of_inverse_counts(cells: float, K: float, steps: float, beta: float, g4: float) -> float:
    """A bound on Σ1/C at visited pairs with a sample within 2σ; `steps` sums of `K` terms each."""
    return steps * cells * (1.0 / beta + math.log(1.0 + (1.0 + g4 * K / beta) / cells) / g4)


def regret_bound(
    problem: Problem, episodes: int, delta: float, g4: float, greedy: bool = False, reward_term: str = "corrected"
) -> RegretBound:
    """The bound for `problem` after `episodes` episodes; `problem.pooled` asks for the stationary case."""
    if problem.constants is None:
        raise ValueError("constants: the regret bound needs (λ_r, λ_p)")
    reward, transition = problem.constants
    H, K, sigma, beta, L1 = problem.horizon, float(episodes), problem.sigma, problem.beta, problem.lipschitz[0]
    d = len(problem.widths)
    most = problem.most_samples(episodes)
    cells = math.exp(problem.log_cover(sigma))
    states = math.exp(log_box_covering(problem.widths, sigma, 1, problem.p))
    bonus = full_coefficients(problem, 0, most, most, delta, reward_term)
    uniform = uniform_bernstein(
        most, most, H, sigma, beta, delta / 6.0, problem.C1, problem.C2, transition, L1,
        problem.log_cover(sigma ** (2 + d) / (most * H**2)), states,
    )  # fmt: skip
    steps = 1.0 if problem.pooled else float(H)
    roots = sum_of_inverse_roots(cells, most, steps, beta, g4)
    counts = sum_of_inverse_counts(cells, most, steps, beta, g4)
    near = 2.0 * (reward + L1 + (1.0 + 2.0 / H) * transition * L1)
    return RegretBound(
        first_order=math.e * 2.0 * bonus.root * roots,
        second_order=math.e * (2.0 * bonus.inverse + 11.0 * H**2 * uniform.variance + 2.0 * beta * H) * counts,
        bias=math.e * K * H * (2.0 * bonus.constant + sigma * (near + uniform.bias + uniform.bias_power * sigma**d)),
        new_cells=math.e * H * steps * cells,
        martingale=math.sqrt(8.0 * math.log(2.0 / delta) * K * H) * math.e * H,
        updates=math.e * (H**2 * states + 2.0 * L1 * H * K * sigma) if greedy else 0.0,
    )


def bandwidth_exponent(d: float) -> float:
    """σ = K^{-x} with x = 1/(2d+1), the paper's choice in units of the diameter."""
    return 1.0 / (2.0 * d + 1.0)


def better_bandwidth_exponent(d: float, d_states: float) -> float:
    """x = 1/(d + max(d_X, 1) + 1), which balances all terms where the states have dimension d_X ≤ d."""
    if not 0.0 <= d_states <= d:
        raise ValueError(f"d_states must lie between 0 and d={d}, got {d_states!r}")
    return 1.0 / (d + max(d_states, 1.0) + 1.0)


def regret_exponent(x: float, d: float, d_states: float) -> float:
    """The exponent of K in √K·σ^{-d/2} + σ^{-(d+d_X)} + K·σ for σ = K^{-x}."""
    return max(0.5 + 0.5 * d * x, (d + d_states) * x, 1.0 - x)


@dataclass(frozen=True)
class Rate:
    """H^a·K^b, a regret up to constants and logarithms."""

    name: str
    horizon_power: float
    episode_power: float

    def at(self, horizon: float, episodes: float) -> float:
        """Its value without constants."""
        return float(horizon**self.horizon_power * episodes**self.episode_power)


def rates(d: float, d_states: float) -> tuple[Rate, ...]:
    """Known rates for Lipschitz problems of dimension d (states d_X): upper bounds, then the lower bound.

    UCBVI on a uniform grid of X cells has H²√(XAK) + H³X²A plus the bias L_1KHσ, the same terms as Kernel-UCBVI. The
    lower bound's dependence on H is a conjecture from tabular problems.
    """
    ours = regret_exponent(bandwidth_exponent(d), d, d_states)
    better = regret_exponent(better_bandwidth_exponent(d, d_states), d, d_states)
    lower = (d + 1.0) / (d + 2.0)
    return (
        Rate("Kernel-UCBVI, Greedy", 3.0, ours),
        Rate("the same, stationary", 2.0, ours),
        Rate("the same, better σ", 3.0, better),
        Rate("UCBVI on a grid", 3.0, ours),
        Rate("OptQL on a grid", 2.5, lower),
        Rate("lower bound", 1.5, lower),
    )
