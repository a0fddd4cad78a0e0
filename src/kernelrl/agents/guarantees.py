"""What agents take from the theory: which bonuses are valid with which settings, and their tables of coefficients.

The joint and the full bonus hold with probability 1-δ under the theory's assumptions: a kernel that satisfies
assumption 3, known Lipschitz constants, and a space with a known covering number.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.bonuses.problem import BonusProblem
from kernelrl.bonuses.smoothed import BONUSES, bonus_object
from kernelrl.geometry.kernels import Kernel, resolve_kernel
from kernelrl.geometry.metrics import SHIPPED_FOLDS, Folded, Lp
from kernelrl.planning.interface import Planned
from kernelrl.planning.reading import read_value
from kernelrl.planning.sides import LOWER, UPPER
from kernelrl.theory.bernstein import bernstein_rules
from kernelrl.theory.bonuses import Problem, full_table, joint_table
from kernelrl.theory.kernel_constants import check_kernel, qualifying_kernels

__all__ = [
    "Bounds",
    "TheoryProblem",
    "check_bonus",
    "check_certificate",
    "check_order",
    "check_several",
    "defect_of",
    "norm_of",
]

Floats = npt.NDArray[np.float64]


def check_bonus(bonus: Any, kernel: str | Kernel, metric: Any, lipschitz: Any) -> None:
    """Raise ValueError for a bonus of the theory whose assumptions do not hold."""
    chosen = bonus_object(bonus)
    if not chosen.promises:
        return
    name = type(chosen).__name__
    check_assumption(name, resolve_kernel(kernel))
    if lipschitz is None:
        raise ValueError(
            f"lipschitz: the bonus {name} needs Lipschitz constants; give lipschitz=(λ_r, λ_p)"
            + (" or L_h" if not chosen.needs_rates else "")
        )
    if chosen.needs_rates and not isinstance(lipschitz, tuple):
        raise ValueError(f"lipschitz: the bonus {name} needs λ_r and λ_p themselves; give lipschitz=(λ_r, λ_p)")
    if not (isinstance(metric, Lp) or (isinstance(metric, Folded) and metric.map in SHIPPED_FOLDS)):
        raise ValueError(
            f"metric: the bonus {name} needs covering numbers, which are not known for a metric of your own; use "
            "krl.metrics.Lp, or the bonus Simplified"
        )
    if isinstance(metric, Folded) and metric.defect is None:
        raise ValueError(
            f"metric: the bonus {name} needs to know by how much Q* may differ between states that the map makes one; "
            "give krl.metrics.Folded(map, metric, defect=…), where 0 is your promise that they are worth the same"
        )


def check_several(bonus: Any, bandwidths: Any) -> None:
    """Raise ValueError for a bonus of a user's own that promises something, with several bandwidths."""
    if bonus.promises and type(bonus) not in BONUSES.values():
        raise ValueError(
            f"bandwidth: with {bandwidths} a bonus that promises something must hold for all of them together, which "
            f"{type(bonus).__name__} cannot say; use krl.bonuses.Joint or Full, or give one bandwidth"
        )


@functools.cache
def check_assumption(name: str, g: Kernel) -> None:
    """Reject a kernel that violates assumption 3 or its declared constants C1 and C2."""
    if not g.admissible:
        raise ValueError(
            f"kernel: the bonus {name} holds for kernels of the theory's assumption only, and {g.name} is none of them "
            f"(g(4) = {g.g4:.3g}); use {', '.join(qualifying_kernels())}, or the bonus Simplified"
        )
    found = check_kernel(g, 2001)
    if not (found.admissible and found.C1 <= g.C1 * (1.0 + 1e-9) and found.C2 <= g.C2 * (1.0 + 1e-9)):
        raise ValueError(
            f"kernel: {g.name} does not satisfy the theory's assumption with C1 = {g.C1:.6g} and C2 = {g.C2:.6g}, "
            f"though it says so: {found}; set admissible = False, or constants that hold"
        )


def check_certificate(name: str, bonus: Any, scale: float, lipschitz: Any) -> None:
    """Raise ValueError for `name`, such as a certificate, if the bonus gives no certificates."""
    chosen = bonus_object(bonus)
    if not chosen.certifies:
        raise ValueError(
            f"{name}: the bonus {bonus!r} gives no certificate; make the agent with bonus=krl.bonuses.Joint(delta)"
        )
    if lipschitz == "log":
        raise ValueError(
            f'{name}: with lipschitz="log" nothing is certified, since nobody knows when log k has passed the true '
            "constant; make the agent with Lipschitz constants that hold"
        )
    if scale < 1.0:
        raise ValueError(f"{name}: with bonus_scale={scale} below 1 the bonus certifies nothing; make the agent with 1")


class TheoryProblem(BonusProblem):
    """What a bonus may depend on, with the theory's tables."""

    def full_table(self, delta: float, episodes: int | None, reward_term: str) -> Floats:
        """The coefficients of the full bonus."""
        return self._side_by_side("Full", delta, lambda p, share: full_table(p, share, episodes, reward_term))

    def joint_table(self, delta: float, episodes: int | None, self_normalised: bool) -> Floats:
        """The coefficients of the joint bonus."""
        return self._side_by_side("Joint", delta, lambda p, share: joint_table(p, share, episodes, self_normalised))

    def bernstein_rules(self, delta: float, episodes: int | None, epochs: Any) -> Floats:
        """The empirical-Bernstein form, for each step and bandwidth."""
        sigmas = self.bandwidths or (self.sigma,)
        problems, share = [self._problem("Joint", sigma) for sigma in sigmas], delta / len(sigmas)
        rules = [
            [bernstein_rules(problem, h, int(j), share, episodes) for problem in problems] for h, j in enumerate(epochs)
        ]
        return np.array(rules)

    def _side_by_side(self, name: str, delta: float, table: Callable[[Problem, float], Floats]) -> Floats:
        """The tables of all bandwidths, each at its share of δ, so that they hold together with probability 1-δ."""
        sigmas = self.bandwidths or (self.sigma,)
        return np.concatenate([table(self._problem(name, sigma), delta / len(sigmas)) for sigma in sigmas], axis=1)

    def _problem(self, name: str, sigma: float) -> Problem:
        widths, g, metric = self.box[1] - self.box[0], self.kernel, self.metric
        if not np.isfinite(widths).all():
            raise ValueError(
                f"bonus: {name} needs the covering number of the state space, which must be bounded; wrap the "
                "environment so that its states are, or use the bonus Simplified"
            )
        return Problem(
            self.horizon, self.actions, tuple(widths.tolist()), sigma, self.beta, g.C1, g.C2,
            tuple(self.lipschitz.tolist()), self.rates, self.stationary, self.merge, norm_of(metric),
            defect_of(metric, self.width),
        )  # fmt: skip


def norm_of(metric: Any) -> float:
    """The p of the norm between embeddings."""
    return math.inf if math.isinf(p := (metric.metric if isinstance(metric, Folded) else metric).p) else float(p)


def defect_of(metric: Any, width: float) -> float:
    """By how much Q* may differ between states that the metric makes one, for rewards mapped from a range so wide."""
    return (metric.defect or 0.0) / width if isinstance(metric, Folded) else 0.0


def check_order(lower: float, upper: float, slack: float) -> None:
    """Raise ValueError if the bounds have crossed by more than rounding and `slack`, in mapped units."""
    if lower > upper + slack + 1e-9:
        raise ValueError(
            "lipschitz: the data contradict the constants, or the failure of probability δ has happened: the lower "
            f"bound on V* exceeds the upper one by {lower - upper:.3g} times the width of reward_range; make the agent "
            "with larger constants"
        )


@dataclass(frozen=True)
class Bounds:
    """Bounds on the optimal values, planned from all data."""

    lower: Planned
    upper: Planned

    def at(self, u: Floats) -> tuple[float, float]:
        """V↓_0 and V↑_0 at the embedded state `u`, in mapped units."""
        return read_value(self.lower, LOWER, u), read_value(self.upper, UPPER, u)

    def widest(self, starts: Floats, slack: float) -> float:
        """The largest gap between the bounds at embedded states (n, d); infinite where there are none."""
        found = [self.at(u) for u in np.unique(starts, axis=0)]
        for lower, upper in found:
            check_order(lower, upper, slack)
        return max((upper - lower for lower, upper in found), default=math.inf)
