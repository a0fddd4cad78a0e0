"""The interface of a plan: verbs dispatched on its class.

A plan belongs to settings and to a store (see `kernelrl.stores.interface`). Transitions added to the store do not count
until the plan is renewed: read-outs are those of the last plan. States are embedded.
"""

from typing import Any, NamedTuple

from kernelrl.jit.compile import generic

__all__ = [
    "PLANS", "Planned", "bonuses_at", "check_plan", "complete_plan", "counts_at", "for_settings", "for_weights",
    "grown", "has_doubled", "plan_room", "q_at", "renew",
]  # fmt: skip

PLANS = 0  # plan.clock[PLANS] is the number of plans made


class Planned(NamedTuple):
    """A plan with its settings and its store, separate from the agent's own."""

    plan: Any
    settings: Any
    store: Any


@generic(required=True)
def plan_room(plan, settings, store):
    """Whether the transitions of one more episode fit into the plan and its store."""


@generic(required=True)
def grown(plan, settings, store):
    """(plan, store) with more room (plain Python, not compiled)."""


@generic
def for_settings(plan, settings, new):
    """The plan to continue with under other settings; `new()` makes one without data (plain Python)."""
    return plan


@generic(required=True)
def renew(plan, settings, store):
    """Plan on all transitions in the store."""


@generic(required=True)
def has_doubled(plan, settings, store, x, h, a):
    """Whether C of the newest transition's pair (x, a) is at least twice its value in the last plan."""


@generic(required=True)
def q_at(plan, settings, store, side, x, h, q):
    """Write Q_h(x, ·) on that side into `q` (A,). The incremental plan and greedy values know UPPER only."""


@generic(required=True)
def counts_at(plan, settings, store, x, h, out):
    """Write C_h(x, ·) into `out` (A,)."""


@generic(required=True)
def bonuses_at(plan, settings, store, x, h, out):
    """Write B_h(x, ·) into `out` (A,)."""


@generic(required=True)
def for_weights(plan, settings, store):
    """The plan to continue with when the bandwidths of representatives have been renewed (plain Python)."""


@generic
def check_plan(plan, settings, store, where):
    """Raise an error if a plan and a store from a file do not fit together (plain Python)."""


@generic
def complete_plan(plan, settings, store):
    """(plan, store) from a file, completed by what is not saved (plain Python)."""
    return plan, store
