"""Plans on representative states (paper, section 6): Kernel-UCBVI's own plan, the deployed policy, and lower bounds.

For all representatives u, with the estimates of `kernelrl.stores.merged`,

    W_h(v, a) = s(v, a) + Σ_y n(v, a, y)·V_{h+1}(y)                        looked up, smoothed over related actions
    T_h(u, a) = Σ_v w(u, v)·W_h(v, a)                                      smoothed
    Q̃_h(u, a) = T_h(u, a)/C(u, a) (± B_h(u, a))
    Q_h(x, a) = the lowest cone of targets with samples at x, or, without interpolation, Q̃_h(x, a) itself
    V_h(x)    = max_a Q_h(x, a), clipped                                   of all actions (`planning/between_actions`)

With a mask the maximum at a representative is over the actions that are allowed there, and Q_h(x, a) between
representatives is a mean over those that allow a (`blend_allowed`).

(and where other pairs count only so much, T_h and C are the smaller ones of `kernelrl.stores.merged`.)

With several bandwidths at once there are a w, C and T for each, and Q̃ is one of all (`kernelrl.planning.sides`).

Where transitions belong to the estimates themselves (`kernelrl.stores.own_steps`), V is looked up after
smoothing, T_h(u, a) += Σ_y n(u, a, y)·V_{h+1}(y), and a state with no representative around it has the values of the
nearest one.

Samples that arrive after a plan wait in the store until the next one.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.interface import factors, is_simplified
from kernelrl.geometry.buckets import check_memory, lengthen
from kernelrl.geometry.groups import (
    COVERED,
    MEMBERS,
    Groups,
    group_room,
    grow_groups,
    list_marked,
    new_groups,
    smooth,
    smooth_to_values,
)
from kernelrl.geometry.masks import allowed_at_place, drop_at_place, restricts
from kernelrl.geometry.representatives import KNOWN, copy_place, find, gather, list_of, lists_each, nearest, square_to
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import SCRATCH, Field, Rows
from kernelrl.jit.rows import COLUMNS
from kernelrl.planning.backward import backward, find_targets, find_values, prepare
from kernelrl.planning.between_actions import highest_of_all, spread_over_actions
from kernelrl.planning.changes import (
    NOW,
    Changes,
    add_waiting,
    begin_step,
    find_stale,
    grow_changes,
    may_skip,
    new_changes,
    pass_changes,
    regroup,
)
from kernelrl.planning.interface import (
    PLANS,
    bonuses_at,
    complete_plan,
    counts_at,
    for_settings,
    for_weights,
    grown,
    has_doubled,
    plan_room,
    q_at,
    renew,
)
from kernelrl.planning.sides import (
    UPPER,
    clip,
    cone,
    explores,
    highest,
    interpolates,
    no_cone,
    one_of_all,
    targets,
    targets_of_all,
)
from kernelrl.stores.interface import grown_for, has_room_for, pool
from kernelrl.stores.merged import (
    SUM_C,
    SUM_D,
    SUM_T,
    add_rewards,
    after_samples,
    capacity_of,
    count_waiting,
    estimates_elsewhere,
    has_doubled_at,
    is_local,
    limit_counts,
    limit_targets,
    limits,
    recount_row,
    relates,
    smooth_over_actions,
    smooth_row,
    tightest,
)
from kernelrl.stores.samples import BLEND
from kernelrl.stores.transitions import pass_back

__all__ = ["KEPT", "PLANNED", "STALE", "Smoothed", "blend_allowed", "forget", "new_smoothed"]

PLANNED, KEPT, STALE = 1, 2, 3


class Smoothed(NamedTuple):
    """A plan on representative states."""

    groups: Annotated[Groups, SCRATCH]
    changes: Changes
    # PLANS made; PLANNED: representatives in the last plan; KEPT: whether the next plan may begin from the last
    # STALE: how many `rows` there are whose V is still to be found
    clock: Annotated[np.ndarray, Rows(Field(""), Field("", most="U"), Field("", most=1), Field(""))]
    W: Annotated[np.ndarray, Field("H U Columns")]
    Q: Annotated[np.ndarray, Field("H U Columns", infinite=True)]  # Q̃
    V: Annotated[np.ndarray, Field("H U", least="Least", most="Most")]
    inverse: Annotated[np.ndarray, Field("2 U*Layers Columns", scratch=True)]  # 1/C and 1/√C
    T: Annotated[np.ndarray, Field("U*Layers Columns", scratch=True)]
    each: Annotated[np.ndarray, Field("U*Layers Columns", scratch=True)]  # Q̃ with each of several bandwidths
    rewards: Annotated[np.ndarray, Field("2 U? Columns", scratch=True)]  # sums, where rewards depend on the step
    share: Annotated[np.ndarray, Field("U? Columns", scratch=True)]  # φ, where other pairs are limited
    q: Annotated[np.ndarray, Field("Columns", scratch=True)]
    rows: Annotated[np.ndarray, Field("U*Layers", np.uint32, scratch=True)]  # estimates to compute again
    which: Annotated[np.ndarray, Field("U*Layers", np.uint32, scratch=True)]  # their groups


def new_smoothed(settings, merged):
    """An empty plan for this store."""
    H, U, (pools, estimates, columns) = settings.horizon, capacity_of(merged.reps), merged.C.shape
    check_memory((H, U, columns))
    return Smoothed(
        empty_groups(settings, merged), new_changes(settings, pools, U, columns), np.zeros(4, np.int64),
        np.zeros((H, U, columns)), np.zeros((H, U, columns)), np.zeros((H, U)), np.zeros((2, estimates, columns)),
        np.zeros((estimates, columns)), np.zeros((estimates, columns)),
        np.zeros((2, U if settings.by_step else 0, columns)),
        np.zeros((U if settings.others < math.inf else 0, columns)), np.zeros(columns),
        np.zeros(estimates, np.uint32), np.zeros(estimates, np.uint32),
    )  # fmt: skip


def empty_groups(settings, merged):
    """No groups yet."""
    return new_groups(capacity_of(merged.reps), merged.reps.scales.shape[1], merged.C.shape[0], settings.actions)


@complete_plan.implement_plain(Smoothed)
def complete_smoothed(plan, settings, merged):
    return plan._replace(groups=grown_groups(empty_groups(settings, merged), settings, merged)), merged


def grown_groups(groups, settings, merged):
    """The groups with room for one more episode."""
    near, number, each = merged.reps.weights, int(merged.reps.number[KNOWN]), merged.reps.scales.shape[1]
    return grow_groups(groups, capacity_of(merged.reps), near, number, 2 * settings.horizon, each)


@plan_room.implement(Smoothed)
def smoothed_room(plan, settings, store):
    H, reps = settings.horizon, store.reps
    if plan.V.shape[1] < store.coming.shape[1]:
        return False
    fits = group_room(plan.groups, reps.weights, reps.number[KNOWN], 2 * H, lists_each(reps))
    return fits and has_room_for(store, settings, H)


@grown.implement_plain(Smoothed)
def grow_smoothed(plan, settings, merged):
    merged = grown_for(merged, settings, settings.horizon)
    U, estimates = capacity_of(merged.reps), merged.C.shape[1]
    plan = plan._replace(
        groups=grown_groups(plan.groups, settings, merged),
        changes=grow_changes(plan.changes, U),
        W=lengthen(plan.W, U, 1),
        Q=lengthen(plan.Q, U, 1),
        V=lengthen(plan.V, U, 1),
        inverse=lengthen(plan.inverse, estimates, 1),
        T=lengthen(plan.T, estimates, 0),
        each=lengthen(plan.each, estimates, 0),
        rows=lengthen(plan.rows, estimates, 0),
        which=lengthen(plan.which, estimates, 0),
        rewards=lengthen(plan.rewards, U, 1) if settings.by_step else plan.rewards,
        share=lengthen(plan.share, U, 0) if settings.others < math.inf else plan.share,
    )
    return plan, merged


@for_weights.implement_plain(Smoothed)
def smoothed_for_weights(plan, settings, store):
    return start_again(plan)


@for_settings.implement_plain(Smoothed)
def smoothed_for_settings(plan, settings, new):
    return start_again(plan)


def start_again(plan):
    """The next episode begins with a plan from scratch."""
    plan.clock[PLANS] = 0
    forget(plan)
    return plan


def forget(plan):
    """The next plan is one from scratch."""
    plan.clock[KEPT] = plan.groups.number[COVERED] = 0


# ------------------------------------------------------------------------------------------------------------ planning


@renew.implement(Smoothed)
def renew_smoothed(plan, settings, store):
    if plan.clock[KEPT] != 0:
        add_waiting(plan, settings, store)
    count_waiting(settings, store)
    plan.clock[PLANS] += 1
    backward(plan, settings, store, UPPER)


@prepare.implement(Smoothed)
def prepare_smoothed(plan, settings, store):
    U, before, kept = store.reps.number[KNOWN], plan.clock[PLANNED], plan.clock[KEPT] != 0
    plan.clock[PLANNED] = U
    if is_local(store):
        for p in range(store.C.shape[0]):
            for u in range(U):
                recount_row(settings, store, p, u)
    regrouped = regroup(plan, settings, store, before, kept)
    find_stale(plan, settings, store, kept, regrouped)


@inner
def invert(C, inverse, n):
    """1/C and 1/√C of the first `n` entries of `C`, flat, into `inverse` (2, …)."""
    for i in range(n):
        inverse[0, i] = 1.0 / C[i]
        inverse[1, i] = math.sqrt(inverse[0, i])


@inner
def find_sums(plan, settings, store, h):
    """W_h, smoothed over actions where they are related."""
    kept, U = plan.clock[KEPT] != 0, plan.clock[PLANNED]
    W = plan.changes.raw[h] if relates(settings) else plan.W[h]
    if not kept:
        after_samples(settings, store, h, W.reshape(W.size))
    if h + 1 < settings.horizon and not settings.own_steps:
        pass_changes(plan, settings, store, h, W.reshape(W.size), kept)
    if relates(settings):
        touched = plan.changes.touched[h]
        for v in range(U):
            if touched[v] or not kept:
                touched[v] = False
                smooth_over_actions(settings, W, v, plan.W[h, v])


@inner
def smooth_stale(plan, store, h):
    """T_h of the members of all stale groups; return how many there are. They are listed in `rows`."""
    groups, rows, n = plan.groups, plan.rows, 0
    which = plan.which[: list_marked(groups, plan.changes.stale[NOW], plan.which)]
    for g in which:
        for k in range(MEMBERS):
            if groups.member[g, k] >= 0:
                rows[n] = groups.member[g, k]
                n += 1
    if not is_local(store):
        smooth(groups, which, plan.W[h], plan.T)
        return n
    for i in range(n):
        smooth_row(store.reps.weights, rows[i], plan.W[h], plan.T)
    return n


@inner
def in_one_go(settings, store, side):
    """Whether nothing comes between smoothing, bonus and maximum."""
    usual = explores(side) and is_simplified(settings.bonus) and not interpolates(side, settings)
    return usual and may_skip(settings, store) and not is_local(store) and not restricts(settings.mask)


@inner
def values_in_one_go(plan, settings, h):
    """Q_h and V_h of all stale groups."""
    which = plan.which[: list_marked(plan.groups, plan.changes.stale[NOW], plan.which)]
    by_root, by_count = factors(settings.bonus, h)
    scaling, actions = (by_root, by_count, np.float64(settings.horizon - h)), settings.actions
    smooth_to_values(plan.groups, which, plan.W[h], scaling, actions, plan.inverse, plan.Q[h], plan.V[h])
    plan.clock[STALE] = 0


@find_targets.implement(Smoothed)
def smoothed_targets(plan, settings, store, side, h):
    p, places, U, M = pool(settings, h), plan.T.size, plan.clock[PLANNED], lists_each(store.reps)
    if h == settings.horizon - 1 or not settings.stationary:
        if limits(settings):
            for u in range(U):
                limit_counts(settings, store.N[p, u], store.C[p, u], plan.share[u])
        invert(store.C[p].reshape(places), plan.inverse.reshape((2, places)), U * M * plan.T.shape[1])
    begin_step(plan, settings, store, h, plan.clock[KEPT] != 0)
    find_sums(plan, settings, store, h)
    if in_one_go(settings, store, side):
        values_in_one_go(plan, settings, h)
        return
    rows = plan.rows[: smooth_stale(plan, store, h)]
    plan.clock[STALE] = rows.size
    if limits(settings):
        for u in range(U):
            limit_targets(settings, plan.changes.raw[h, u], plan.share[u], plan.T[u])
    if h + 1 < settings.horizon and settings.own_steps:
        for y in range(U):
            pass_back(store.transitions, p, y, plan.V[h + 1, y], plan.T.reshape(places))
    if settings.by_step:
        for u in range(U):
            add_rewards(settings, store, h, u, store.C[0, u], plan.rewards, plan.T)
    T, C, inverse, moments, Q = plan.T, store.C[p], plan.inverse, store.moments[:, p], plan.Q[h]
    if M == 1:
        targets(side, settings.bonus, h, T, C, inverse, moments, Q, rows)
    else:
        targets_of_all(side, settings.bonus, h, T, C, inverse, moments, plan.each, Q, rows, M)


@find_values.implement(Smoothed)
def smoothed_values(plan, settings, store, side, h):
    R = np.float64(settings.horizon - h)
    if interpolates(side, settings):
        interpolated_values(plan, settings, store, side, h)
    elif restricts(settings.mask):
        best_allowed(plan, settings, store, side, h)
    elif lists_each(store.reps) == 1:
        best_of(side, plan.Q[h], plan.rows[: plan.clock[STALE]], settings.actions, R, plan.V[h])
    else:
        for u in range(plan.clock[PLANNED]):
            plan.V[h, u] = highest(side, plan.Q[h, u, : settings.actions], R)
    if h == 0:
        plan.clock[KEPT] = may_skip(settings, store)


@inner
def best_allowed(plan, settings, merged, side, h):
    """V_h at the representatives whose Q_h was computed, from the actions that are allowed there."""
    q, here, R = plan.q[: settings.actions], merged.reps.here, np.float64(settings.horizon - h)
    one = lists_each(merged.reps) == 1
    for i in range(plan.clock[STALE] if one else plan.clock[PLANNED]):
        u = np.int64(plan.rows[i]) if one else i
        copy_place(merged.reps, u, here)
        for a in range(q.size):
            q[a] = plan.Q[h, u, a]
        drop_at_place(settings, here, q)
        plan.V[h, u] = highest(side, q, R)


@inner(fastmath={"nnan"})
def best_of(side, Q, rows, actions, R, V):
    """V[u] from max_a Q[u, a] for some `rows` (n,); four actions at a time, where there are so many."""
    fours = actions - actions % COLUMNS
    for u in rows:
        best = -math.inf
        for c in range(0, fours, COLUMNS):
            best = max(best, max(max(Q[u, c], Q[u, c + 1]), max(Q[u, c + 2], Q[u, c + 3])))
        for c in range(fours, actions):
            best = max(best, Q[u, c])
        V[u] = clip(side, best, R)


@inner
def interpolated_values(plan, settings, merged, side, h):
    """V_h from the cones that lie below the cap; these are in the lists of neighbours."""
    near, N, L = merged.reps.cones, merged.N[pool(settings, h)], settings.lipschitz[h]
    Q, q, U = plan.Q[h], plan.q[: settings.actions], plan.clock[PLANNED]
    for u in range(U):
        for a in range(q.size):
            q[a] = no_cone(side)
        start, end = list_of(near, u)
        for j in range(start, end):
            v, rise = near.index[j], L * near.amount[j, 0]
            if v < U:
                for a in range(q.size):
                    if N[v, a] > 0.0:
                        q[a] = cone(side, q[a], Q[v, a], rise)
        spread_over_actions(settings.between, side, L, q)
        if restricts(settings.mask):
            copy_place(merged.reps, u, merged.reps.here)
            drop_at_place(settings, merged.reps.here, q)
        plan.V[h, u] = highest_of_all(settings.between, side, L, q, np.float64(settings.horizon - h))


# ------------------------------------------------------------------------------------------------------------- reading


@has_doubled.implement(Smoothed)
def smoothed_has_doubled(plan, settings, store, x, h, a):
    return has_doubled_at(settings, store, h, a)


@inner
def find_counts(plan, settings, merged, x, h):
    """Write C(x, ·) of each bandwidth into `merged.sums`; return the representative of `x` if it was planned, else -1.

    If the representative of `x` has not been planned yet, `x` is moved to it.
    """
    p, u, M = pool(settings, h), find(merged.reps, settings.space, x), lists_each(merged.reps)
    if 0 <= u < plan.clock[PLANNED]:
        for j in range(M):
            for a in range(settings.actions):
                merged.sums[SUM_C, j, a] = merged.C[p, u * M + j, a]
        return u
    if u >= 0:
        copy_place(merged.reps, u, x)
    estimates_elsewhere(settings, merged, h, x, plan.W[h], plan.clock[PLANNED])
    return -1


@q_at.implement(Smoothed)
def smoothed_q(plan, settings, store, side, x, h, q):
    if interpolates(side, settings):
        interpolated_q(plan, settings, store, side, x, h, q)
        return
    if settings.reading == BLEND and blended_q(plan, settings, store, side, x, h, q):
        return
    if settings.own_steps and restricts(settings.mask):
        for a in range(q.size):
            q[a] = blend_allowed(plan.Q[h], settings, store, side, x, h, a, 0)
        return
    if settings.own_steps:
        u = nearest(store.reps, settings.space, x)
        for a in range(q.size):
            q[a] = plan.Q[h, u, a]
        return
    u, sums, M = find_counts(plan, settings, store, x, h), store.sums, lists_each(store.reps)
    for a in range(q.size):
        if u >= 0:
            q[a] = plan.Q[h, u, a]
        else:
            q[a] = one_of_all(side, settings.bonus, h, sums[SUM_T], sums[SUM_C], sums[SUM_D:], 0, M, a)


@inner
def blended_q(plan, settings, merged, side, x, h, q):
    """Q_h(x, ·) = Σ_u λ_u·Q_h(u, ·) over the planned representatives around `x`; return whether there are any."""
    reps = merged.reps
    n = gather(reps, settings.space, x, plan.clock[PLANNED])
    for a in range(q.size):
        q[a] = 0.0
    if restricts(settings.mask):
        for a in range(q.size if n > 0 else 0):
            q[a] = blend_allowed(plan.Q[h], settings, merged, side, x, h, a, n)
        return n > 0
    for i in range(n):
        for a in range(q.size):
            q[a] += reps.share[i] * plan.Q[h, reps.around[i], a]
    return n > 0


@inner
def blend_allowed(Q, settings, merged, side, x, h, a, n):
    """The mean of Q(u, a), by their shares, over the `n` representatives around `x` that allow the action.

    If none does, it is the cap on the UPPER side, elsewhere Q of the nearest one that does, or else 0.
    """
    reps, total, shares, best, least = merged.reps, 0.0, 0.0, 0.0, math.inf
    for i in range(n):
        copy_place(reps, reps.around[i], reps.here)
        if allowed_at_place(settings, reps.here, a):
            total += reps.share[i] * Q[reps.around[i], a]
            shares += reps.share[i]
    if shares > 0.0:
        return total / shares
    if explores(side):
        return np.float64(settings.horizon - h)
    for u in range(reps.number[KNOWN]):
        square = square_to(reps, settings.space, u, x)
        if square < least:
            copy_place(reps, u, reps.here)
            if allowed_at_place(settings, reps.here, a):
                best, least = Q[u, a], square
    return best


@inner
def interpolated_q(plan, settings, merged, side, x, h, q):
    """Q_h(x, ·) from all cones."""
    Q, N, L = plan.Q[h], merged.N[pool(settings, h)], settings.lipschitz[h]
    for a in range(q.size):
        q[a] = no_cone(side)
    for v in range(plan.clock[PLANNED]):
        rise = L * math.sqrt(square_to(merged.reps, settings.space, v, x))
        for a in range(q.size):
            if N[v, a] > 0.0:
                q[a] = cone(side, q[a], Q[v, a], rise)
    spread_over_actions(settings.between, side, L, q)


@counts_at.implement(Smoothed)
def smoothed_counts(plan, settings, store, x, h, out):
    u = find_counts(plan, settings, store, x, h)
    for a in range(out.size):
        j, _ = tightest(settings, store, h, u, a)
        out[a] = store.sums[SUM_C, j, a]


@bonuses_at.implement(Smoothed)
def smoothed_bonuses(plan, settings, store, x, h, out):
    u = find_counts(plan, settings, store, x, h)
    for a in range(out.size):
        _, out[a] = tightest(settings, store, h, u, a)
