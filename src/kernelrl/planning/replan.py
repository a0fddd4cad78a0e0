"""When an algorithm plans.

"episode"    before each episode
"step"       also after each step
"doubling"   when the data of a pair have doubled
a number f   before an episode, when the number of episodes has grown by the factor f since the last plan
"auto"       1.005: before each of the first 400 episodes, then less often; for kernel agents with continuous actions
             and short episodes 1.0005: before each of the first 4,000, since plans are small there
"""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

from kernelrl.jit.compile import in_both, inner

__all__ = [
    "BEGUN", "DOUBLING", "DUE", "EACH_EPISODE", "EACH_STEP", "GROWING", "REPLAN", "begins_with_plan", "check_replan",
    "next_due", "replan_code",
]  # fmt: skip

REPLAN = ("episode", "step", "doubling")  # compiled code compares the numbers below
EACH_EPISODE, EACH_STEP, DOUBLING, GROWING = range(len(REPLAN) + 1)
AUTO, OFTEN = 1.005, 1.0005
BEGUN, DUE = range(2)  # of a model's `begun`: number of episodes; that of the next plan


def check_replan(replan: Any) -> str | float:
    """The argument in its one form, or an error that names it."""
    if isinstance(replan, str) and replan in (*REPLAN, "auto"):
        return replan
    if isinstance(replan, bool) or not isinstance(replan, Real) or not 1.0 < float(replan) < math.inf:
        raise ValueError(
            f"replan must be one of {', '.join(REPLAN)}, auto, or a number above 1, the factor by which episodes grow "
            f"from plan to plan; got {replan!r}"
        )
    return float(replan)


def replan_code(replan: str | float, often: bool = False) -> tuple[int, float]:
    """The code, and the factor of GROWING; `often`: that of "auto" where plans are small."""
    if isinstance(replan, str) and replan != "auto":
        return REPLAN.index(replan), 1.0
    auto = OFTEN if often else AUTO
    return GROWING, auto if isinstance(replan, str) else replan


@in_both
def next_due(settings: Any, k: Any) -> Any:
    """After how many episodes the next plan is due, if one was made after `k`."""
    return k + max(1, int(k * (settings.growth - 1.0) + 1e-9))


@inner
def begins_with_plan(settings: Any, begun: Any, plans: Any) -> Any:
    """Count an episode, and return whether it begins with a plan; `plans` have been made."""
    k = begun[BEGUN]
    begun[BEGUN] = k + 1
    waits = settings.replan == DOUBLING or (settings.replan == GROWING and k < begun[DUE])
    if waits and plans > 0:
        return False
    begun[DUE] = next_due(settings, k)
    return True
