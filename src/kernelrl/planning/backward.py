"""Backward induction for representative states, cells and all samples, on any side.

With V_H = 0, for h = H-1 … 0

    Q̃_h = T_h/C (± B_h)    `find_targets`: r̂ + P̂V_{h+1} at all points of the plan, with the side's bonus
    V_h                    `find_values`: at all points where step h-1 will need it

(paper, algorithm 2; the sides are in `kernelrl.planning.sides`). Plans implement the two verbs; a store has the data.

    Smoothed   representative states (`planning/smoothed.py`)
    Cells      the cells of a grid (`planning/cells.py`)
    Full       every sample (`planning/full.py`)

Exact Kernel-UCBVI does not plan from scratch each time: `planning/incremental.py` computes only what changed, and
tests compare it with a full plan.
"""

from kernelrl.jit.compile import generic, in_both

__all__ = ["backward", "find_targets", "find_values", "prepare"]


@generic
def prepare(plan, settings, store):
    """Before the first step."""


@generic(required=True)
def find_targets(plan, settings, store, side, h):
    """Q̃_h from V_{h+1}."""


@generic(required=True)
def find_values(plan, settings, store, side, h):
    """V_h from Q̃_h."""


@in_both
def backward(plan, settings, store, side):
    """Plan all steps."""
    prepare(plan, settings, store)
    for h in range(settings.horizon - 1, -1, -1):
        find_targets(plan, settings, store, side, h)
        find_values(plan, settings, store, side, h)
