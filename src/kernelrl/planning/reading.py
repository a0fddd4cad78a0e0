"""Plans for Python: renewed, or made separately on a given side and read at many states in one call."""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.masks import drop_at_place, first_allowed, restricts
from kernelrl.geometry.representatives import KNOWN, copy_place, find, gather
from kernelrl.jit.compile import compiled, generic
from kernelrl.jit.handles import hand_over, model_of
from kernelrl.jit.policy_verb import deployed_action
from kernelrl.planning.backward import backward
from kernelrl.planning.between_actions import highest_of_all
from kernelrl.planning.interface import PLANS, Planned, q_at, renew
from kernelrl.planning.sides import DEPLOYED, UPPER
from kernelrl.planning.smoothed import Smoothed, blend_allowed, forget
from kernelrl.stores.merged import count_waiting
from kernelrl.stores.samples import place, places

__all__ = ["DeployedPlan", "add_plan", "plan_again", "plan_merged", "read_q", "read_value", "read_values"]


@compiled
def plan_in_one_go(planned, side):
    """Plan on representative states, from all data."""
    count_waiting(planned.settings, planned.store)
    backward(planned.plan, planned.settings, planned.store, side)


def plan_merged(plan, settings, store, side):
    """A plan on representative states; it is written to `plan`, and waiting samples are counted in `store`."""
    planned = Planned(plan, settings, store)
    forget(plan)
    plan_in_one_go(hand_over(planned), side)
    return planned


@compiled
def renew_plan(planned):
    """`renew` for Python."""
    renew(planned.plan, planned.settings, planned.store)


@generic
def plan_again(plan, settings, store):
    """Plan on all transitions in the store (plain Python, not compiled)."""
    renew_plan(hand_over(Planned(plan, settings, store)))


@plan_again.implement_plain(Smoothed)
def plan_smoothed_again(plan, settings, store):
    """With the code of separate plans, which then need not be compiled twice."""
    plan.clock[PLANS] += 1
    plan_merged(plan, settings, store, UPPER)


@compiled
def add_between(planned, other, x):
    """Add Q of `other`, read between its representatives, to that of `planned` at its own; `x` (places,) is scratch."""
    reps, near, H = planned.store.reps, other.store.reps, planned.settings.horizon
    Q, added, actions = planned.plan.Q, other.plan.Q, planned.settings.actions
    for u in range(reps.number[KNOWN]):
        copy_place(reps, u, x)
        n = gather(near, planned.settings.space, x, near.number[KNOWN])
        if n == 0:  # only states that are equal are merged
            near.around[0], near.share[0], n = find(near, planned.settings.space, x), 1.0, 1
        if restricts(planned.settings.mask):
            for h in range(H):
                for a in range(actions):
                    Q[h, u, a] += blend_allowed(added[h], planned.settings, other.store, DEPLOYED, x, h, a, n)
            continue
        for i in range(n):
            for h in range(H):
                for a in range(actions):
                    Q[h, u, a] += near.share[i] * added[h, near.around[i], a]


def add_plan(planned, other):
    """Add Q of `other` to that of `planned`, at the representatives of the latter; both are of the same data.

    Each of these states is within the merge distance of a representative of the other plan.
    """
    x = np.zeros(planned.store.reps.points.shape[1])
    add_between(hand_over(planned), hand_over(other), x)


@compiled
def fill_q(planned, side, states, h, u, out):
    """Write Q_h on that side at raw `states` (n, d) into `out` (n, A); `u` (d+1,) is scratch."""
    for i in range(states.shape[0]):
        x = u[: places(planned.settings, states[i])]
        place(planned.settings, states[i], h, x)
        q_at(planned.plan, planned.settings, planned.store, side, x, h, out[i])


def read_q(planned, side, states, h):
    """(n, A) Q_h on that side at `states` (n, d); `planned` may be a handle."""
    out = np.zeros((len(states), model_of(planned).settings.actions))
    fill_q(hand_over(planned), side, states, h, np.zeros(states.shape[1] + 1), out)
    return out


class DeployedPlan(NamedTuple):
    """A plan whose policy is deployed."""

    planned: Planned
    place: np.ndarray  # (d+1,) scratch


@deployed_action.implement(DeployedPlan)
def best_of_plan(rule, state, h, q):
    settings = rule.planned.settings
    x = rule.place[: places(settings, state)]
    place(settings, state, h, x)
    q_at(rule.planned.plan, settings, rule.planned.store, DEPLOYED, x, h, q)
    return first_allowed(settings.mask, state, q)


@compiled
def fill_values(planned, side, places, h, q, out):
    """Write V_h on that side at embedded states (n, d) into `out` (n,); `q` (A,) is scratch."""
    settings = planned.settings
    for i in range(out.size):
        q_at(planned.plan, settings, planned.store, side, places[i], h, q)
        if restricts(settings.mask):
            drop_at_place(settings, places[i], q)
        out[i] = highest_of_all(settings.between, side, settings.lipschitz[h], q, np.float64(settings.horizon - h))


def read_values(planned, side, places, h):
    """(n,) V_h on that side at embedded states (n, d). Exact plans know the step that was planned last only."""
    out = np.zeros(len(places))
    fill_values(hand_over(planned), side, places, h, np.zeros(planned.settings.actions), out)
    return out


def read_value(planned, side, u):
    """V_0 on that side at the embedded state `u` (d,)."""
    return float(read_values(planned, side, u[None], 0)[0])
