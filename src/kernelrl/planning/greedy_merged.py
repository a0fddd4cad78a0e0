"""Greedy values on representative states (paper, section 6).

With the estimates of `kernelrl.stores.merged`, at each visited state with representative u,

    Q̃_h(u, a) = Σ_v w(u, v)·W_h(v, a)/C(u, a) + B_h(u, a)          the smallest of all, with several bandwidths
    V_h(u)     ← min(V_h(u), max_a Q̃_h(u, a))

and, with interpolation, V_h(·) ← min(V_h(·), max_a Q̃_h(u, a) + L_h·ρ(·, u)) at all representatives.

(W'_h in place of W_h where actions are related; where other pairs count only so much, see `kernelrl.stores.merged`.)

W_h(v, a) = s(v, a) + Σ_y n(v, a, y)·V_{h+1}(y) is kept up to date: a new sample adds its reward and V_{h+1}(y) to its
pair, and when V_{h+1}(y) falls, so does W_h of the pairs that led to y. So one step costs one sum over the neighbours
of u.

When local bandwidths are renewed, values computed with the old ones say little, and may be too low. So all values begin
again from a full plan, that of Kernel-UCBVI (`kernelrl.planning.smoothed`), and fall from there.

With a mask the maximum at a representative is over the actions that are allowed there, and Q̃_h(x, a) between
representatives is a mean over those that allow a; R_h if none does.

V_h is L_h-Lipschitz on representatives, so its value at any other state is the lowest of V_h(u) + L_h·ρ(·, u).
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import check_memory, lengthen
from kernelrl.geometry.masks import allowed_at_place, drop_at_place, restricts
from kernelrl.geometry.representatives import (
    KNOWN,
    copy_place,
    find,
    find_or_add,
    gather,
    list_of,
    lists_each,
    square_to,
)
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, require
from kernelrl.planning.between_actions import spread_over_actions
from kernelrl.planning.greedy import best_of, learn, targets_at, value_at, with_units
from kernelrl.planning.interface import (
    bonuses_at,
    check_plan,
    complete_plan,
    counts_at,
    for_weights,
    grown,
    plan_room,
    q_at,
)
from kernelrl.planning.reading import plan_merged
from kernelrl.planning.sides import UPPER, one_of_all
from kernelrl.planning.smoothed import new_smoothed
from kernelrl.stores.interface import grown_for, has_room_for, pool
from kernelrl.stores.merged import (
    JOINED,
    OF_WEIGHTS,
    SUM_C,
    SUM_D,
    SUM_T,
    add_rewards,
    bonus_of,
    capacity_of,
    count_sample,
    estimates_elsewhere,
    is_local,
    join,
    limit_counts,
    limit_targets,
    limits,
    note_start,
    reading_bias,
    relates,
    smooth_all_over_actions,
    smooth_over_actions,
    smooth_row,
    tightest,
)
from kernelrl.stores.samples import BLEND, has_next, lone_target
from kernelrl.stores.transitions import entries_of, pass_back
from kernelrl.stores.units import mapped

__all__ = ["GreedyMerged", "new_greedy_merged"]


class GreedyMerged(NamedTuple):
    """Values at representatives."""

    W: Annotated[np.ndarray, Field("H U Columns", fill=0)]
    V: Annotated[np.ndarray, Field("H U", least="Least", most="Most")]
    T: Annotated[np.ndarray, Field("U*Layers Columns", scratch=True)]
    rewards: Annotated[np.ndarray, Field("2 U? Columns", scratch=True)]  # sums, where rewards depend on the step
    related: Annotated[np.ndarray, Field("U? Columns", scratch=True)]  # W'_h, where actions are related
    q: Annotated[np.ndarray, Field("Columns", scratch=True)]
    row: Annotated[np.ndarray, Field("Columns", scratch=True)]
    share: Annotated[np.ndarray, Field("Columns", scratch=True)]  # φ, where other pairs are limited
    shares: Annotated[np.ndarray, Field("Columns", scratch=True)]  # of representatives that allow each action


def new_greedy_merged(settings, merged):
    """No data yet."""
    H, U, columns = settings.horizon, capacity_of(merged.reps), merged.C.shape[2]
    check_memory((H, U, columns))
    return GreedyMerged(
        np.zeros((H, U, columns)), np.zeros((H, U)), np.zeros(merged.C.shape[1:]),
        np.zeros((2, U if settings.by_step else 0, columns)),
        np.zeros((U if len(settings.action_weights) else 0, columns)), np.zeros(columns), np.zeros(columns),
        np.zeros(columns), np.zeros(columns),
    )  # fmt: skip


@check_plan.implement_plain(GreedyMerged)
def check_greedy_merged(values, settings, merged, where):
    joined, number = merged.clock[JOINED], merged.reps.number[KNOWN]
    require(joined == number, f"{where}store.clock", f"{joined} of {number} representatives have joined")


@plan_room.implement(GreedyMerged)
def greedy_merged_room(plan, settings, store):
    return plan.V.shape[1] == store.coming.shape[1] and has_room_for(store, settings, settings.horizon)


@grown.implement_plain(GreedyMerged)
def grow_greedy_merged(values, settings, merged):
    merged = grown_for(merged, settings, settings.horizon)
    U = capacity_of(merged.reps)
    values = values._replace(
        W=lengthen(values.W, U, 1),
        V=lengthen(values.V, U, 1),
        T=lengthen(values.T, merged.C.shape[1], 0),
        rewards=lengthen(values.rewards, U, 1) if settings.by_step else values.rewards,
        related=lengthen(values.related, U, 0) if len(settings.action_weights) else values.related,
    )
    return values, merged


@with_units.implement_plain(GreedyMerged)
def greedy_merged_with_units(values, settings, merged, old, keep):
    left = np.arange(settings.horizon, 0, -1.0)[:, None]
    return with_values(values, settings, merged, left - keep * (left - values.V))


@for_weights.implement_plain(GreedyMerged)
def greedy_merged_for_weights(values, settings, merged):
    plan, merged = complete_plan(new_smoothed(settings, merged), settings, merged)
    V = plan_merged(plan, settings, merged, UPPER).plan.V
    number = int(merged.reps.number[KNOWN])
    values.V[:, :number] = V[:, :number]
    return with_values(values, settings, merged, values.V)


def with_values(values, settings, merged, V):
    """The plan with the values `V` (H, U)."""
    H, units, W = settings.horizon, settings.units, np.zeros_like(values.W)
    entries = [entries_of(merged.transitions, p) for p in range(len(merged.N))]
    for h in range(H):
        p = min(h, len(entries) - 1)  # one pool, or one per step
        after = units.nothing * (H - h - 1)
        W[h] = after * merged.ended[p]
        if not settings.by_step:
            W[h] += (merged.rewards[p] - units.low * merged.N[p]) * units.factor
        if h + 1 < H:
            y, pairs, counts = entries[p]
            np.add.at(W[h].reshape(-1), pairs, counts * V[h + 1, y])
    return values._replace(V=V, W=W)


@inner
def row_counts(values, settings, merged, p, u):
    """C(u, ·) of a representative, for each bandwidth, into `sums`; with local bandwidths it is not stored."""
    M = lists_each(merged.reps)
    if is_local(merged):
        N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
        smooth_row(merged.reps.weights, u, N, values.T)
    for j in range(M):
        e = u * M + j
        for a in range(settings.actions):
            C = settings.beta + values.T[e, a] if is_local(merged) else merged.C[p, e, a]
            merged.sums[SUM_C, j, a] = C
    if limits(settings):
        limit_counts(settings, merged.N[p, u], merged.sums[SUM_C, 0], values.share)


@inner
def smooth_related_row(values, settings, merged, h, e):
    """T[e] = Σ_v w·W'_h(v, ·) for list `e`; W' is computed for its entries only, since W changes with each sample."""
    near, T, row = merged.reps.weights, values.T[e], values.row
    for c in range(T.size):
        T[c] = 0.0
    start, end = list_of(near, e)
    for j in range(start, end):
        smooth_over_actions(settings, values.W[h], near.index[j], row)
        for c in range(settings.actions):
            T[c] += near.amount[j, c if is_local(merged) else 0] * row[c]


@inner
def targets_elsewhere(values, settings, merged, x, h):
    """C and T_h at a state that is no representative, into `sums`."""
    U = merged.reps.number[KNOWN]
    if relates(settings):
        smooth_all_over_actions(settings, values.W[h], U, values.row, values.related)
    W = values.related if relates(settings) else values.W[h]
    estimates_elsewhere(settings, merged, h, x, W, U)


@inner
def representative_targets(values, settings, merged, u, h, q):
    """Q̃_h(u, ·) of a representative into `q` (A,)."""
    C, M = merged.sums[SUM_C], lists_each(merged.reps)
    row_counts(values, settings, merged, pool(settings, h), u)
    for e in range(u * M, u * M + M):
        if relates(settings):
            smooth_related_row(values, settings, merged, h, e)
        else:
            smooth_row(merged.reps.weights, e, values.W[h], values.T)
    if limits(settings):
        limit_targets(settings, values.W[h, u], values.share, values.T[u])
    if settings.by_step:
        add_rewards(settings, merged, h, u, C[0], values.rewards, values.T)
    for a in range(q.size):
        q[a] = math.inf
        for j in range(M):
            q[a] = min(q[a], values.T[u * M + j, a] / C[j, a] + bonus_of(settings, merged, h, u, a, j))
    spread_over_actions(settings.between, UPPER, settings.lipschitz[h], q)


@inner
def read_targets(values, settings, merged, x, h, q):
    """Q̃_h(x, ·) into `q` (A,); return the representative of `x`, or -1."""
    u, sums, M = find(merged.reps, settings.space, x), merged.sums, lists_each(merged.reps)
    if u >= 0:
        representative_targets(values, settings, merged, u, h, q)
        return u
    targets_elsewhere(values, settings, merged, x, h)
    for a in range(q.size):
        q[a] = one_of_all(UPPER, settings.bonus, h, sums[SUM_T], sums[SUM_C], sums[SUM_D:], 0, M, a)
    spread_over_actions(settings.between, UPPER, settings.lipschitz[h], q)
    return u


@inner
def blended_targets(values, settings, merged, x, h, q):
    """Q̃_h(x, ·) = Σ_u λ_u·Q̃_h(u, ·) over the representatives around `x`; return whether there are any."""
    reps, each = merged.reps, values.q[: q.size]
    n = gather(reps, settings.space, x, reps.number[KNOWN])
    for a in range(q.size):
        q[a] = values.shares[a] = 0.0
    for i in range(n):
        representative_targets(values, settings, merged, reps.around[i], h, each)
        if restricts(settings.mask):
            copy_place(reps, reps.around[i], reps.here)
        for a in range(q.size):
            if not restricts(settings.mask):
                q[a] += reps.share[i] * each[a]
            elif allowed_at_place(settings, reps.here, a):
                q[a] += reps.share[i] * each[a]
                values.shares[a] += reps.share[i]
    if restricts(settings.mask):
        for a in range(q.size):
            q[a] = q[a] / values.shares[a] if values.shares[a] > 0.0 else np.float64(settings.horizon - h)
    return n > 0


@targets_at.implement(GreedyMerged)
def greedy_merged_targets(values, settings, store, x, h, q):
    if settings.reading == BLEND and blended_targets(values, settings, store, x, h, q):
        return False
    return read_targets(values, settings, store, x, h, q) >= 0 and settings.reading != BLEND


@inner
def value_from_cones(values, settings, merged, x, h, U):
    """min(R_h, V_h(u) + L_h·ρ(x, u)) over the first `U` representatives; R_h without interpolation."""
    value = np.float64(settings.horizon - h)
    if settings.interpolate:
        for u in range(U):
            square = square_to(merged.reps, settings.space, u, x)
            value = min(value, values.V[h, u] + settings.lipschitz[h] * math.sqrt(square))
    return value


@inner
def representative(values, settings, merged, x):
    """The representative of a visited state; if it is new, it joins and gets its values from the others."""
    u = find_or_add(merged.reps, settings, x)
    if u == merged.clock[JOINED]:
        join(settings, merged, u)
        for h in range(settings.horizon):
            values.V[h, u] = value_from_cones(values, settings, merged, x, h, u)
    return u


@inner
def lower(values, settings, merged, u, h, value):
    """V_h(·) ← min(V_h(·), value + L_h·ρ(·, u)), or only at `u` without interpolation."""
    if value >= values.V[h, u]:
        return
    if not settings.interpolate:
        set_value(values, settings, merged, u, h, value)
        return
    near, L = merged.reps.cones, settings.lipschitz[h]
    start, end = list_of(near, u)
    for j in range(start, end):
        y, there = near.index[j], value + L * near.amount[j, 0]
        if there < values.V[h, y]:
            set_value(values, settings, merged, y, h, there)


@inner
def set_value(values, settings, merged, y, h, value):
    """V_h(y) = value, and W_{h-1} of the pairs that led to `y`."""
    fall = value - values.V[h, y]
    values.V[h, y] = value
    if h == 0:
        return  # V_0 is never a next value
    W = values.W[h - 1]
    pass_back(merged.transitions, pool(settings, h - 1), y, fall, W.reshape(W.size))


@learn.implement(GreedyMerged)
def greedy_merged_learn(values, settings, store, x, action, reward, y, h, terminated, known, best):
    H, q = settings.horizon, values.q[: settings.actions]
    if h == 0:
        note_start(store, x)
    u = representative(values, settings, store, x)
    if not known:
        representative_targets(values, settings, store, u, h, q)
        if restricts(settings.mask):
            copy_place(store.reps, u, store.reps.here)
            drop_at_place(settings, store.reps.here, q)
        best = best_of(settings, h, q)
    lower(values, settings, store, u, h, best)
    v = representative(values, settings, store, y)
    alive = has_next(settings, h, terminated)
    count_sample(settings, store, h, u, action, reward, v if alive else -1, terminated)
    first, last = (0, H - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        value = values.V[level + 1, v] if alive and level + 1 < H else 0.0
        if settings.by_step:
            value -= mapped(settings.units, reward)
        values.W[level, u, action] += lone_target(settings, level, reward, terminated) + value


# ------------------------------------------------------------------------------------------------------------- reading


@value_at.implement(GreedyMerged)
def greedy_merged_value(values, settings, store, x, h):
    if settings.reading == BLEND:
        n, value = gather(store.reps, settings.space, x, store.reps.number[KNOWN]), 0.0
        for i in range(n):
            value += store.reps.share[i] * values.V[h, store.reps.around[i]]
        if n > 0:
            return value
    u = find(store.reps, settings.space, x)
    if u >= 0:
        return min(np.float64(settings.horizon - h), values.V[h, u] + reading_bias(settings, store, u, x, h))
    return value_from_cones(values, settings, store, x, h, store.reps.number[KNOWN])


@q_at.implement(GreedyMerged)
def greedy_merged_q(plan, settings, store, side, x, h, q):
    if settings.reading == BLEND and blended_targets(plan, settings, store, x, h, q):
        return
    u = read_targets(plan, settings, store, x, h, q)
    for a in range(q.size):
        q[a] += reading_bias(settings, store, u, x, h)


@inner
def find_counts(values, settings, merged, x, h):
    """C_h(x, ·) of each bandwidth into `sums`; return the representative, or -1."""
    u = find(merged.reps, settings.space, x)
    if u >= 0:
        row_counts(values, settings, merged, pool(settings, h), u)
    else:
        targets_elsewhere(values, settings, merged, x, h)
    return u


@counts_at.implement(GreedyMerged)
def greedy_merged_counts(plan, settings, store, x, h, out):
    u = find_counts(plan, settings, store, x, h)
    for a in range(out.size):
        j, _ = tightest(settings, store, h, u, a)
        out[a] = store.sums[SUM_C, j, a]


@bonuses_at.implement(GreedyMerged)
def greedy_merged_bonuses(plan, settings, store, x, h, out):
    u = find_counts(plan, settings, store, x, h)
    for a in range(out.size):
        _, out[a] = tightest(settings, store, h, u, a)
