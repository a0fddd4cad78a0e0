"""Exploration bonuses B_h(x, a) as functions of the generalized count C = β + Σw.

    simplified      B = s·(1/√C + R_h/C),  R_h = H-h+1 the largest value left at step h
    as-run          B = s/√C + (1+β)·R_h/C, and R_h for an action that was never tried: the authors' program, with
                    `caps="horizon"`, so that R_h = H at every step

`s` is `bonus_scale`; 1 is what the paper's experiments use. Compiled code takes a bonus as an integer code.
"""

import math

from kernelrl.core.compile import inner

__all__ = ["AS_RUN", "BONUSES", "NONE", "bonus_factors", "bonus_value", "resolve_bonus"]

SIMPLIFIED, AS_RUN, NONE = range(3)  # the last, no bonus at all, plans the policy to deploy
BONUSES = {"simplified": SIMPLIFIED, "as-run": AS_RUN}


@inner
def bonus_factors(bonus, scale, beta, R):
    """The factors of 1/√C and of 1/C where at most `R` can still be collected."""
    if bonus == SIMPLIFIED:
        return scale, scale * R
    if bonus == AS_RUN:
        return scale, (1.0 + beta) * R
    return 0.0, 0.0


@inner
def bonus_value(bonus, scale, beta, R, C):
    """B at generalized count `C` where at most `R` can still be collected."""
    by_root, by_count = bonus_factors(bonus, scale, beta, R)
    return by_root / math.sqrt(C) + by_count / C


def resolve_bonus(bonus):
    """The code of a bonus given by name."""
    if isinstance(bonus, str) and bonus in BONUSES:
        return BONUSES[bonus]
    raise ValueError(f"bonus: {bonus!r} is not known; use one of {', '.join(BONUSES)}")
