"""What has changed on representative states since the last plan: only that is planned again.

A plan is kept, and the next one begins from it (see `kernelrl.planning.smoothed` for W, T and Q). With a tolerance τ
for the values of all steps together (`settings.tolerance`),

    a value V_{h+1}(y) is passed on to W_h once it has moved by more than τ/(2·H) from what W_h contains
        (`passed`)
    the row Q_h(u, ·) is computed again if a W_h(v, ·) that it reads has changed, or C(u, ·) by more than the fraction
        min(1, C)·τ/(12·H²) (`counted`: C as it was when all rows of u were last computed)
    neighbours are left out of T(u, a) that together have at most the fraction τ/(4·H²) of C(u, a) (`limits`)

Each makes an error in Q_h of at most a half, a quarter and a quarter of τ/H: values are at most H, averages do not
enlarge errors, and a bonus s·(root/√C + count·R_h/C) with factors of at most 1 moves by less than (H + 1)/(C·min(1,
C)) times a small change of C. So every value is within τ of a full plan. Sums in W also collect rounding errors, 1e-16
of them at each change.

Rows are planned in groups (`kernelrl.geometry.groups`), and `stale` has a bit for each group that must be. `leads` has
the bits of the groups that must be when V(y) has changed: those that read a row W(v, ·) of a pair (v, a) that led to y.

With a bonus that has a guarantee, or of a user's own, τ is 0, and each plan is a full one.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import lengthen
from kernelrl.geometry.groups import COVERED, GROUP, MORE, TIMES, WORDS, renew_groups, set_bit, words_used
from kernelrl.geometry.representatives import KNOWN, lists_each
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field
from kernelrl.jit.rows import COLUMNS
from kernelrl.jit.scatter import list_moved
from kernelrl.stores.interface import pool
from kernelrl.stores.merged import ACTION, ENDED, NEXT, OF_WEIGHTS, STATE, STEP, WAITING, relates
from kernelrl.stores.transitions import FIRST, FOLLOWING, SIZE, mark_origins, pass_changes_back
from kernelrl.stores.units import after_end, mapped

__all__ = [
    "NOW", "Changes", "add_waiting", "begin_step", "find_stale", "grow_changes", "may_skip",
    "new_changes", "pass_changes", "regroup",
]  # fmt: skip

ALWAYS, NOW = range(2)  # of `stale`


class Changes(NamedTuple):
    """What the last plan was made from."""

    passed: Annotated[np.ndarray, Field("H U")]  # V_h as W_{h-1} contains it
    counted: Annotated[np.ndarray, Field("pools U Columns")]
    limits: Annotated[np.ndarray, Field("pools U Columns")]  # n_most, see `kernelrl.geometry.groups`
    raw: Annotated[np.ndarray, Field("H U? Columns")]  # W before it is smoothed over actions, where they are related
    touched: Annotated[np.ndarray, Field("H U?", np.bool_, scratch=True)]  # whether a row of `raw` has changed
    leads: Annotated[np.ndarray, Field("pools U 16", np.uint64, scratch=True)]
    changed: Annotated[np.ndarray, Field("U", np.uint32, scratch=True)]  # next states whose value has changed
    amount: Annotated[np.ndarray, Field("U", scratch=True)]  # and by how much
    stale: Annotated[
        np.ndarray, Field("2 16", np.uint64, scratch=True)
    ]  # ALWAYS: at all steps; NOW: at the one that is planned


def new_changes(settings, pools, U, columns):
    """Before the first plan, for at most `U` representatives."""
    related = U if len(settings.action_weights) else 0
    H = settings.horizon
    return Changes(
        np.zeros((H, U)), np.zeros((pools, U, columns)), np.zeros((pools, U, columns)), np.zeros((H, related, columns)),
        np.zeros((H, related), np.bool_), np.zeros((pools, U, WORDS), np.uint64), np.zeros(U, np.uint32), np.zeros(U),
        np.zeros((2, WORDS), np.uint64),
    )  # fmt: skip


def grow_changes(changes, U):
    """The same for at most `U` representatives."""
    related = U if changes.raw.shape[1] else 0
    return changes._replace(
        passed=lengthen(changes.passed, U, 1),
        counted=lengthen(changes.counted, U, 1),
        limits=lengthen(changes.limits, U, 1),
        raw=lengthen(changes.raw, related, 1),
        touched=lengthen(changes.touched, related, 1),
        leads=lengthen(changes.leads, U, 1),
        changed=lengthen(changes.changed, U, 0),
        amount=lengthen(changes.amount, U, 0),
    )


@inner
def may_skip(settings, store):
    """Whether a plan may begin from the one before.

    Not with several bandwidths, where sums over all data are added to every row, or where other pairs count only so
    much, since C then does not tell of all new samples; these are planned in full.
    """
    simple = lists_each(store.reps) == 1 and not settings.own_steps and not settings.by_step
    return simple and settings.others == math.inf and settings.tolerance > 0.0


@inner
def share_left_out(settings, store):
    """The fraction of C that may be left out of lists of neighbours."""
    return settings.tolerance / (4.0 * settings.horizon * settings.horizon) if may_skip(settings, store) else 0.0


# ---------------------------------------------------------------------------------------------------- before a plan


@inner
def add_waiting(plan, settings, store):
    """Add the samples that wait to W, with the values of their next states that it contains; they are counted later."""
    changes, waiting, units = plan.changes, store.waiting, settings.units
    for t in range(store.clock[WAITING]):
        v, a, y, step = waiting[STATE, t], waiting[ACTION, t], waiting[NEXT, t], waiting[STEP, t]
        reward = mapped(units, store.waiting_reward[t])
        first, end = (0, settings.horizon) if settings.stationary else (step, step + 1)
        for h in range(first, end):
            W = changes.raw[h] if relates(settings) else plan.W[h]
            W[v, a] += reward
            if waiting[ENDED, t] != 0:
                W[v, a] += after_end(units, settings.horizon, h)
            elif y >= 0 and h + 1 < settings.horizon:
                W[v, a] += changes.passed[h + 1, y]
            if relates(settings):
                changes.touched[h, v] = True
        if y >= 0:
            note_lead(plan, pool(settings, step), v, y)


@inner
def note_lead(plan, p, v, y):
    """Groups that read row `v` depend on V(y)."""
    groups, leads = plan.groups, plan.changes.leads[p, y]
    for i in range(words_used(groups)):
        leads[i] |= groups.reads[v, i]


@inner
def note_all_leads(plan, store, U):
    """`note_lead` for all transitions that were counted."""
    transitions, columns = store.transitions, store.C.shape[2]
    for p in range(store.C.shape[0]):
        for y in range(U):
            for i in range(WORDS):
                plan.changes.leads[p, y, i] = 0
            block = transitions.ends[FIRST, p, y]
            while block >= 0:
                for i in range(transitions.chain[SIZE, block]):
                    note_lead(plan, p, transitions.pair[block, i] // columns, y)
                block = transitions.chain[FOLLOWING, block]


@inner
def is_within(limits, store, U):
    """Whether no count has passed its limit."""
    for p in range(limits.shape[0]):
        N = store.S[OF_WEIGHTS, p] if store.S.shape[0] > 0 else store.N[p]
        for v in range(U):
            for c in range(N.shape[1]):
                if N[v, c] > limits[p, v, c]:
                    return False
    return True


@inner
def set_limits(limits, store, U):
    """The limits for the counts as they are."""
    for p in range(limits.shape[0]):
        N = store.S[OF_WEIGHTS, p] if store.S.shape[0] > 0 else store.N[p]
        for v in range(U):
            for c in range(N.shape[1]):
                limits[p, v, c] = TIMES * N[v, c] + MORE


@inner
def regroup(plan, settings, store, before, kept):
    """Make the groups again if need be; return whether they differ. The last plan had `before` representatives.

    After an agent was loaded, the same groups are made that there were when it was saved.
    """
    groups, limits, U, M = plan.groups, plan.changes.limits, store.reps.number[KNOWN], lists_each(store.reps)
    share = share_left_out(settings, store)
    valid = share == 0.0 or is_within(limits, store, U)
    if valid and groups.number[COVERED] == U * M:
        return False
    same = valid and kept and before == U
    if share > 0.0 and not same:
        set_limits(limits, store, U)
    renew_groups(groups, store.reps.weights, U, M, limits, settings.beta, share)
    if may_skip(settings, store):
        note_all_leads(plan, store, U)
    return not same


# ---------------------------------------------------------------------------------------------------- step by step


@inner
def find_stale(plan, settings, store, kept, regrouped):
    """Find the groups that are stale at all steps.

    These are all of them, unless the plan before was kept and the same neighbours are left out.
    """
    changes, everything = plan.changes, np.uint64(0xFFFFFFFFFFFFFFFF)
    for i in range(WORDS):
        changes.stale[ALWAYS, i] = 0
        if regrouped or not kept:
            changes.stale[ALWAYS, i] = everything
    if not kept:
        changes.passed[:] = 0.0
        changes.counted[:] = 0.0
        for p in range(store.C.shape[0] if may_skip(settings, store) else 0):
            note_counts(plan, settings, store, p, changes.stale[ALWAYS])
    elif settings.stationary:
        note_counts(plan, settings, store, 0, changes.stale[ALWAYS])


@inner
def note_counts(plan, settings, store, p, stale):
    """Mark the groups with a C that has changed in pool `p`, and note how it is now."""
    C, counted, H = store.C[p], plan.changes.counted[p], settings.horizon
    part = settings.tolerance / (12.0 * H * H)
    for u in range(store.reps.number[KNOWN]):
        if has_moved(C[u], counted[u], part):
            set_bit(plan.groups, stale, plan.groups.place[GROUP, u])
            for c in range(C.shape[1]):
                counted[u, c] = C[u, c]


@inner(fastmath={"nnan"})
def has_moved(C, counted, part):
    """Whether one of these counts differs by more than min(1, C)·part·C; without a branch for each, four at a time."""
    most = 0.0
    for first in range(0, C.size, COLUMNS):
        for c in range(first, first + COLUMNS):
            most = max(most, abs(C[c] - counted[c]) - part * C[c] * min(1.0, C[c]))
    return most > 0.0


@inner
def begin_step(plan, settings, store, h, kept):
    """Find the groups that are stale at step `h` before values have been passed on."""
    stale = plan.changes.stale
    for i in range(WORDS):
        stale[NOW, i] = stale[ALWAYS, i]
    if kept and not settings.stationary:
        note_counts(plan, settings, store, pool(settings, h), stale[NOW])


@inner
def pass_changes(plan, settings, store, h, W, kept):
    """Pass on to `W`, W_h flat, the values V_{h+1} that have changed."""
    changes, p, columns = plan.changes, pool(settings, h), plan.W.shape[2]
    V, passed = plan.V[h + 1], changes.passed[h + 1]
    least = settings.tolerance / (2.0 * settings.horizon) if kept else 0.0
    changed, amount = changes.changed, changes.amount
    n = list_moved(V, passed, least, store.reps.number[KNOWN], changed)
    for k in range(n):
        amount[k] = V[changed[k]] - passed[changed[k]]
        passed[changed[k]] += amount[k]
        if relates(settings):
            mark_origins(store.transitions, p, changed[k], columns, changes.touched[h])
    mark_readers(plan, p, changed[:n])
    pass_changes_back(store.transitions, p, changed[:n], amount[:n], W)


@inner
def mark_readers(plan, p, changed):
    """Mark the groups that depend on V(y) of a y in `changed` (n,) as stale now: four words at a time, in registers."""
    leads, stale = plan.changes.leads[p], plan.changes.stale[NOW]
    for i in range(0, words_used(plan.groups), 4):
        a, b, c, d = stale[i], stale[i + 1], stale[i + 2], stale[i + 3]
        for y in changed:
            a |= leads[y, i]
            b |= leads[y, i + 1]
            c |= leads[y, i + 2]
            d |= leads[y, i + 3]
        stale[i], stale[i + 1], stale[i + 2], stale[i + 3] = a, b, c, d
