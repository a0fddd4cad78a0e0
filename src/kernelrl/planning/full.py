"""Full plans on all samples: the policy that an exact agent deploys, and bounds on the optimal values.

With G_s = r_s + V_{h+1}(y_s) (after a termination, the value given by `units`), C = β + Σw and T = Σw·G,

    interpolated         Q̃_h at each sample's own pair, and V_h(y) from the cones of these targets
    not interpolated     V_h(y) = max_a T/C at the next states y themselves: the deployed policy

If the bonus is valid, V↓_h ≤ V*_h ≤ V↑_h everywhere: the concentration inequality is two-sided, so both bounds hold
with the same δ. An action without samples is worth R_h in the upper bound, 0 in the lower one and for the deployed
policy.

Where targets are not interpolated and samples are many, sums are read from nodes (`planning/full_at_nodes.py`).

The cones of the lower side are stored upside down, as heights -Q̃, so that the lowest cone is wanted on both sides.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.bonuses.interface import count
from kernelrl.geometry.buckets import WIDTH, Buckets, add_point, new_buckets, number_of_chunks, payload
from kernelrl.geometry.interpolation import cones_at
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.planning.backward import backward, find_targets, find_values
from kernelrl.planning.full_at_nodes import (
    PlanNodes,
    add_samples,
    best_at_nodes,
    clear_nodes,
    new_plan_nodes,
    no_plan_nodes,
    uses_nodes,
)
from kernelrl.planning.interface import Planned, q_at
from kernelrl.planning.sides import clip, highest, interpolates, target, upright
from kernelrl.stores.estimates import moments_at, row_sums_at, sums_at
from kernelrl.stores.interface import pool
from kernelrl.stores.samples import (
    ACTION,
    FROM,
    LOGGED,
    STEP,
    TERMINATED,
    TO,
    action_list,
    has_next,
    lone_target,
    row,
)
from kernelrl.stores.units import mapped

__all__ = ["FullPlan", "InPieces", "new_full"]

BLOCK = 1000  # samples planned between two checks for Ctrl-C


class FullPlan(NamedTuple):
    """The samples and their targets."""

    S: Buckets  # states by pool and action
    slot: np.ndarray  # (N,) slot of each sample in S
    G: np.ndarray  # (rows, chunks of S, WIDTH) r + V_{h+1}(y)
    height: np.ndarray  # (chunks of S, WIDTH) Q̃ of the step that was planned last, turned by `upright`
    lowest: np.ndarray  # (chunks of S) the lowest height of each chunk
    C: np.ndarray  # (N,) generalized count at each sample's pair, where targets are interpolated
    moments: np.ndarray  # (2, N) Σwρ and Σw² there, or no rows
    q: np.ndarray  # (A,) scratch
    T: np.ndarray  # (1,) scratch
    at_nodes: PlanNodes  # while the plan is made


def new_full(settings, samples, low, high, cell, moments):
    """A plan with all samples and no values yet; `settings` must have their own copy of the bonus."""
    H, N, A = settings.horizon, int(samples.number[LOGGED]), settings.actions
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    S = new_buckets(pools * A, low, high, cell, chunks=N // WIDTH + min(N, S.ends[0].size) + 1)
    plan = FullPlan(
        S, np.zeros(N, np.int64), payload(S, rows), payload(S), np.zeros(number_of_chunks(S)), np.zeros(N),
        np.zeros((2 if moments else 0, N)), np.zeros(A), np.zeros(1), no_plan_nodes(),
    )  # fmt: skip
    fill(hand_over(Planned(plan, settings, samples)))
    plan = plan._replace(at_nodes=new_plan_nodes(settings, samples, low, high, plan.slot))
    return Planned(plan, settings, samples)


@compiled
def fill(planned):
    """Put all samples into S, and compute counts."""
    plan, settings, samples = planned.plan, planned.settings, planned.store
    for t in range(plan.slot.size):
        h, ended = samples.labels[STEP, t], samples.labels[TERMINATED, t] != 0
        s = add_point(plan.S, action_list(settings, h, samples.labels[ACTION, t]), samples.states[FROM, t])
        plan.slot[t] = s
        count(settings.bonus, h)
        for r in range(plan.G.shape[0]):
            level = r if settings.stationary else h
            plan.G[r, s // WIDTH, s % WIDTH] = lone_target(settings, level, samples.reward[t], ended)


@inner
def sample_targets(plan, settings, samples, side, h, first, last):
    """Q̃_h at the pairs of samples `first` … `last`-1."""
    for t in range(first, last):
        if pool(settings, samples.labels[STEP, t]) != pool(settings, h):
            continue
        u, which = samples.states[FROM, t], action_list(settings, h, samples.labels[ACTION, t])
        C = row_sums_at(settings, plan.S, which, u, plan.G[row(settings, h) : row(settings, h) + 1], plan.T)
        if plan.C[t] == 0.0:  # not computed yet; it is the same for all steps that use the sample
            plan.C[t] = C
            if plan.moments.shape[0] > 0:
                plan.moments[0, t], plan.moments[1, t] = moments_at(settings, plan.S, which, u)
        D, W2 = 0.0, 0.0
        if plan.moments.shape[0] > 0:
            D, W2 = plan.moments[0, t], plan.moments[1, t]
        chunk, place = plan.slot[t] // WIDTH, plan.slot[t] % WIDTH
        height = upright(side, target(side, settings.bonus, h, plan.T[0], C, D, W2))
        plan.height[chunk, place] = height
        if place == 0 or height < plan.lowest[chunk]:
            plan.lowest[chunk] = height


@inner
def sample_values(plan, settings, samples, side, h, first, last):
    """V_h, h ≥ 1, at the next states of samples `first` … `last`-1, as part of G."""
    by_nodes = uses_nodes(plan.at_nodes) and not interpolates(side, settings)
    for i in range(first, last):
        t = plan.at_nodes.order[i] if by_nodes else i
        step, ended = samples.labels[STEP, t], samples.labels[TERMINATED, t] != 0
        if pool(settings, step + 1) != pool(settings, h) or not has_next(settings, step, ended):
            continue
        if by_nodes:
            value = clip(side, best_at_nodes(plan.at_nodes, settings, samples, t), settings.horizon - h)
        else:
            full_q_at(plan, settings, side, samples.states[TO, t], h, plan.q)
            value = highest(side, plan.q, settings.horizon - h)
        s, r = plan.slot[t], row(settings, h - 1)
        plan.G[r, s // WIDTH, s % WIDTH] = mapped(settings.units, samples.reward[t]) + value


@inner
def full_q_at(plan, settings, side, u, h, q):
    """Q_h(u, ·); where targets are interpolated `h` must be the step that was planned last."""
    for a in range(q.size):
        which = action_list(settings, h, a)
        if interpolates(side, settings):
            # Only cones below R_h (upper side) or above 0 (lower side) matter.
            end = max(0.0, upright(side, np.float64(settings.horizon - h)))
            lowest = cones_at(
                plan.S, settings.space, which, u, plan.height, plan.lowest, settings.lipschitz[h], np.inf, end
            )
            q[a] = upright(side, lowest)
        else:
            C, T = sums_at(settings, plan.S, which, u, plan.G[row(settings, h)])
            q[a] = T / C


@q_at.implement(FullPlan)
def full_q(plan, settings, store, side, x, h, q):
    full_q_at(plan, settings, side, x, h, q)


# -------------------------------------------------------------------------------------------------------- from Python


@compiled
def targets_part(planned, side, h, first, last):
    """`sample_targets` or, if they are not interpolated, sums at nodes, for Python."""
    plan, settings, samples = planned.plan, planned.settings, planned.store
    if interpolates(side, settings):
        sample_targets(plan, settings, samples, side, h, first, last)
    elif uses_nodes(plan.at_nodes):
        if first == 0:
            clear_nodes(plan.at_nodes, settings, h)
        add_samples(plan.at_nodes, settings, samples, plan.slot, plan.G[row(settings, h)], h, first, last)


@compiled
def values_part(planned, side, h, first, last):
    """`sample_values` for Python."""
    sample_values(planned.plan, planned.settings, planned.store, side, h, first, last)


class InPieces:
    """A full plan made in pieces; between them Python checks for Ctrl-C and shows progress, since it takes long."""

    def __init__(self, planned):
        """`tick` is called after each piece; there are `number` of them."""
        self.planned, self.handle, self.tick = planned, hand_over(planned), lambda: None
        self.blocks = [(t, min(t + BLOCK, planned.plan.slot.size)) for t in range(0, planned.plan.slot.size, BLOCK)]

    @property
    def number(self):
        """How many pieces there are."""
        return (2 * self.planned.settings.horizon - 1) * len(self.blocks)

    def plan(self, side):
        """Make the plan and return it, without what was needed only to make it."""
        backward(self, self.planned.settings, self.planned.store, side)
        return self.finished()

    def finished(self):
        """The plan without what was needed only to make it."""
        return self.planned._replace(plan=self.planned.plan._replace(at_nodes=no_plan_nodes()))

    def another(self):
        """A plan of the same samples, for another side; counts are shared."""
        plan = self.planned.plan
        own = {name: getattr(plan, name).copy() for name in ("G", "height", "lowest", "q", "T")}
        return InPieces(self.planned._replace(plan=plan._replace(**own)))


@find_targets.implement_plain(InPieces)
def targets_in_pieces(plan, settings, store, side, h):
    for first, last in plan.blocks:
        targets_part(plan.handle, side, h, first, last)
        plan.tick()


@find_values.implement_plain(InPieces)
def values_in_pieces(plan, settings, store, side, h):
    for first, last in plan.blocks if h > 0 else []:  # V_0 is never a next value
        values_part(plan.handle, side, h, first, last)
        plan.tick()
