"""Exploration bonuses B_h(x, a) as functions of the generalized count C = β + Σw.

    simplified      B = s·(1/√C + R_h/C),  R_h = H-h+1 the largest value left at step h

`s` is `bonus_scale`; 1 is what the paper's experiments use. Compiled code takes a bonus as an integer code.
"""

import math

from kernelrl.core.compile import inner

__all__ = ["BONUSES", "bonus_value", "resolve_bonus"]

BONUSES = {"simplified": 0}


@inner
def bonus_value(bonus, scale, R, C):
    """B at generalized count `C` where at most `R` can still be collected."""
    return scale * (1.0 / math.sqrt(C) + R / C)


def resolve_bonus(bonus):
    """The code of a bonus given by name."""
    if isinstance(bonus, str) and bonus in BONUSES:
        return BONUSES[bonus]
    raise ValueError(f"bonus: {bonus!r} is not known; use one of {', '.join(BONUSES)}")
