"""Between the agents and the theory: which bonuses may be used with which settings, and their tables of coefficients.

The joint and the full bonus hold with probability 1-δ where the theory's assumptions do: a kernel that satisfies
assumption 3, known Lipschitz constants, and a space of known covering number.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.bonuses.smoothed import FULL, Full, Joint, bonus_object, no_table
from kernelrl.geometry.kernels import Kernel, resolve_kernel
from kernelrl.geometry.metrics import SHIPPED_FOLDS, Folded, Lp
from kernelrl.planning.certified import Certified, bound_targets, bound_values, bounds_at, new_certified
from kernelrl.planning.certified_merged import CertifiedMerged, bounds_at_merged
from kernelrl.stores.merged import STARTED, STARTS
from kernelrl.theory.bonuses import Problem, full_table, joint_table
from kernelrl.theory.kernel_constants import qualifying_kernels

__all__ = [
    "bonus_settings",
    "bounds",
    "certify",
    "check_bonus",
    "check_certificate",
    "check_order",
    "start_gap",
]

Floats = npt.NDArray[np.float64]


def check_bonus(bonus: Any, kernel: str | Kernel, metric: Any, lipschitz: Any) -> None:
    """Refuse a bonus of the theory where its assumptions do not hold."""
    chosen = bonus_object(bonus)
    if chosen.code < FULL:
        return
    name = type(chosen).__name__
    g = resolve_kernel(kernel)
    if not g.admissible:
        raise ValueError(
            f"kernel: the bonus {name} holds for kernels of the theory's assumption only, and {g.name} is none of them "
            f"(g(4) = 0); use {', '.join(qualifying_kernels())}, or the bonus Simplified"
        )
    if lipschitz is None:
        raise ValueError(
            f"lipschitz: the bonus {name} needs Lipschitz constants; give lipschitz=(λ_r, λ_p)"
            + (" or L_h" if isinstance(chosen, Joint) else "")
        )
    if isinstance(chosen, Full) and not isinstance(lipschitz, tuple):
        raise ValueError("lipschitz: the bonus Full needs λ_r and λ_p themselves; give lipschitz=(λ_r, λ_p)")
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


def check_certificate(name: str, bonus: Any, scale: float, lipschitz: Any) -> None:
    """Refuse a certificate, or whatever `name` is, where the bonus gives none."""
    chosen = bonus_object(bonus)
    if chosen.code < FULL or (isinstance(chosen, Full) and chosen.reward_term == "printed"):
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


def bonus_settings(
    bonus: Any, kernel: str | Kernel, metric: Any, width: float, box: tuple[Floats, Floats], actions: int,
    horizon: int, sigma: float, beta: float, lipschitz: Any, constants: Floats | None, pooled: bool, merge: float,
) -> dict[str, Any]:  # fmt: skip
    """The bonus as the compiled settings hold it; `box` is that of embedded states, `constants` L_h (H,).

    `width` is that of the range of rewards; Lipschitz constants are for rewards mapped to [0, 1].
    """
    chosen = bonus_object(bonus)
    table, progress = no_table(horizon)
    if chosen.code >= FULL:
        widths = box[1] - box[0]
        if not np.isfinite(widths).all():
            raise ValueError(
                f"bonus: {type(chosen).__name__} needs the covering number of the state space, which must be bounded; "
                "wrap the environment so that its states are, or use the bonus Simplified"
            )
        assert constants is not None
        g = resolve_kernel(kernel)
        problem = Problem(
            horizon, actions, tuple(widths.tolist()), sigma, beta, g.C1, g.C2, tuple(constants.tolist()),
            lipschitz if isinstance(lipschitz, tuple) else None, pooled, merge, norm_of(metric),
            (metric.defect or 0.0) / width if isinstance(metric, Folded) else 0.0,
        )  # fmt: skip
        if isinstance(chosen, Full):
            table = full_table(problem, chosen.delta, chosen.episodes, chosen.reward_term)
        else:
            table = joint_table(problem, chosen.delta, chosen.episodes, chosen.self_normalised)
    return {"bonus": chosen.code, "table": table, "progress": progress}


def norm_of(metric: Any) -> float:
    """The p of the norm between embeddings."""
    return math.inf if math.isinf(p := (metric.metric if isinstance(metric, Folded) else metric).p) else float(p)


def certify(settings: Any, samples: Any, box: tuple[Floats, Floats], cell: float, planning: Any) -> Certified:
    """Bounds on the optimal values from all samples; `planning` wraps the list of pieces of work, to show progress."""
    number, block = int(samples.number[0]), 1000
    certified: Certified = new_certified(settings, samples, *box, cell)
    pieces = [(h, part) for h in range(settings.horizon - 1, -1, -1) for part in (bound_targets, bound_values)]
    for h, part in planning(pieces[:-1]):  # nobody's next value is that of step 0
        for t in range(0, number, block):
            part(certified, h, t, min(number, t + block))
    return certified


def bounds(certified: Certified | CertifiedMerged, u: Floats) -> tuple[float, float]:
    """V↓_0 and V↑_0 at the embedded state `u`."""
    out = np.zeros(2)
    (bounds_at if isinstance(certified, Certified) else bounds_at_merged)(certified, u, out)
    return float(out[0]), float(out[1])


def check_order(lower: float, upper: float, slack: float) -> None:
    """Refuse bounds that have crossed, up to rounding and `slack`, in mapped units."""
    if lower > upper + slack + 1e-9:
        raise ValueError(
            f"lipschitz: the data refute the constants, or the probability δ of failure has come true: the lower bound "
            f"on V* exceeds the upper one by {lower - upper:.3g} times the width of reward_range; make the agent with "
            "larger constants"
        )


def start_gap(certified: Certified | CertifiedMerged, slack: float) -> float:
    """The largest gap between the bounds at the start states of the last 32 episodes; infinite before the first."""
    if isinstance(certified, Certified):
        steps = certified.samples.labels[0, : certified.slot.size]
        starts = certified.samples.states[0, np.flatnonzero(steps == 0)[-STARTS:]]
    else:
        merged = certified.model.merged
        starts = merged.starts[: merged.clock[STARTED]]
    found = [bounds(certified, u) for u in np.unique(starts, axis=0)]
    for lower, upper in found:
        check_order(lower, upper, slack)
    return max((upper - lower for lower, upper in found), default=math.inf)
