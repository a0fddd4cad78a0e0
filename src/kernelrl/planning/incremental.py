"""The incremental plan of exact Kernel-UCBVI (paper, algorithms 1 and 2): every sample is kept.

Planning goes backwards in h, with V_H = 0:

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)
    Q_h(x, a)  = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)]             or, without interpolation, Q̃_h(x, a) itself
    V_h(x)     = min(R_h, max_a Q_h(x, a))

Between two plans little changes, so little is computed again. An "entry" is a pair at which Q̃ is stored: with
interpolation each sample's own pair (entries are the points of `S`), without it each next state with every action (the
points of `Y`). Each entry stores C = β + Σw and T = Σw·G with G_s = r_s + P_s, where P_s is the value V_{h+1}(y_s) that
was last passed on. A plan then

 1. adds the new samples: they add weight to nearby entries, and become entries themselves;
 2. goes backwards in h: where V_{h+1}(y_s) differs from P_s, the difference is passed on to T of the
    entries near x_s; Q̃ = T/C + B is computed again where T or C changed; then V_h is updated.

With interpolation, each next state stores for each action the height M of its lowest cone and which cone that is
(`kernelrl.geometry.cones`).

Tiny changes wait until they have added up (`planning/passing.py`): values are within PLAN_ERROR of those of a full plan
(`planning/full.py`).
"""

import math

import numpy as np

from kernelrl.bonuses.interface import count
from kernelrl.geometry.buckets import WIDTH, add_point, all_chunks, found, point_at, size_of
from kernelrl.geometry.cones import Claims, claim, forget_slack, lowest_cone, rise, search, settle, sink
from kernelrl.geometry.interpolation import cones_at
from kernelrl.jit.compile import inner
from kernelrl.planning.entries import ARRIVAL, ARRIVAL_STEP, PLANNED, Incremental
from kernelrl.planning.interface import (
    PLANS,
    bonuses_at,
    counts_at,
    has_doubled,
    q_at,
    renew,
)
from kernelrl.planning.passing import MOVED, ORPHANS, entry_list, moved, pass_on, still
from kernelrl.planning.resting import best_of_awake
from kernelrl.stores.estimates import (
    add_moments,
    add_weights,
    list_bonuses,
    list_counts,
    list_targets,
    moments_at,
    renew_targets,
    row_sums_at,
    sums_at,
    weight_between,
)
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

__all__ = ["Incremental"]


# ---------------------------------------------------------------------------------------------------- adding samples


@inner
def fill_entry(plan, settings, e, u, h, a, sums):
    """Compute C and T of a new entry, slot `e`, for the pair (u, a) of step `h`, from S; `sums` is scratch."""
    _, k = entry_list(settings, h, a)
    C = row_sums_at(settings, plan.S, action_list(settings, h, a), u, plan.G, sums)
    plan.C[k, e // WIDTH, e % WIDTH] = C
    if plan.moments.shape[0] > 0:
        D, W2 = moments_at(settings, plan.S, action_list(settings, h, a), u)
        plan.moments[0, k, e // WIDTH, e % WIDTH] = D
        plan.moments[1, k, e // WIDTH, e % WIDTH] = W2
    for r in range(sums.size):
        plan.T[k, r, e // WIDTH, e % WIDTH] = sums[r]
        plan.touched[k, r, e // WIDTH] = True


@inner
def claims_of(plan, r, a):
    """Cones and points of row `r` and action `a`."""
    return Claims(
        plan.height[r], plan.slack[r], plan.first[r], plan.M[a, r], plan.owner[a, r], plan.links[a, r]
    )  # fmt: skip


@inner
def add_next_state(plan, settings, v, h, sums):
    """Add `v`, reached from step `h`, to Y with values at the cap, and return its slot."""
    H = settings.horizon
    y = add_point(plan.Y, pool(settings, h + 1), v)
    chunk, place = y // WIDTH, y % WIDTH
    first, last = (1, H - 1) if settings.stationary else (h + 1, h + 1)
    for level in range(first, last + 1):
        r, R = row(settings, level), np.float64(H - level)
        plan.V[r, chunk, place] = R
        plan.P[r, chunk, place] = R
        plan.fresh[r, chunk] = True
        if settings.interpolate:
            for a in range(settings.actions):
                which, L = action_list(settings, level, a), settings.lipschitz[level]
                settle(plan.S, settings.space, which, v, y, L, R, claims_of(plan, r, a))
    if not settings.interpolate:
        for a in range(settings.actions):
            fill_entry(plan, settings, y, v, h + 1, a, sums)
    return y


@inner
def arrival(plan, u, h):
    """The slot in Y of the last sample's next state if `u` of step `h` is that state, as usual; else -1."""
    y = plan.clock[ARRIVAL]
    if y < 0 or plan.clock[ARRIVAL_STEP] != h:
        return -1
    for j in range(u.size):
        if plan.Y.points[y // WIDTH, j, y % WIDTH] != u[j]:
            return -1
    return y


@inner
def add_sample(plan, settings, samples, t):
    """Add sample number `t` to the plan's data."""
    H = settings.horizon
    h, a = samples.labels[STEP, t], samples.labels[ACTION, t]
    u, v = samples.states[FROM, t], samples.states[TO, t]
    terminated = samples.labels[TERMINATED, t] != 0
    alive = has_next(settings, h, terminated)
    rows = plan.G.shape[0]
    sums, targets = plan.scratch[1, :rows], plan.scratch[2, :rows]
    before = arrival(plan, u, h)
    y = add_next_state(plan, settings, v, h, sums) if alive else -1
    plan.clock[ARRIVAL], plan.clock[ARRIVAL_STEP] = y, h + 1
    s = add_point(plan.S, action_list(settings, h, a), u)
    plan.number[s // WIDTH, s % WIDTH] = t
    plan.tip[s // WIDTH, s % WIDTH] = before
    if alive:
        plan.sample[y // WIDTH, y % WIDTH] = s
    first, last = (0, H - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        r = row(settings, level)
        targets[r] = lone_target(settings, level, samples.reward[t], terminated)
        if alive:
            targets[r] += np.float64(H - level - 1)
        plan.G[r, s // WIDTH, s % WIDTH] = targets[r]
        if settings.interpolate:
            plan.height[r, s // WIDTH, s % WIDTH] = np.float64(H - level)
    E = plan.S if settings.interpolate else plan.Y
    which, k = entry_list(settings, h, a)
    add_weights(settings, E, which, u, targets, plan.C[k], plan.T[k], plan.touched[k])
    if plan.moments.shape[0] > 0:
        add_moments(settings, E, which, u, plan.moments[0, k], plan.moments[1, k])
    if settings.interpolate:
        fill_entry(plan, settings, s, u, h, a, sums)
    if count(settings.bonus, h):
        touch_all(plan.touched)


@inner
def touch_all(touched):
    """Set all flags: the bonus of every entry has changed."""
    for k in range(touched.shape[0]):
        for r in range(touched.shape[1]):
            touched[k, r, :] = True


# ------------------------------------------------------------------------------------------------------ going back in h


@inner
def best_of_actions(Y, which, R, Q, r, V, fresh):
    """V = min(R, max_a Q_a) in fresh chunks of list `which`; `Q` (A, rows, chunks, WIDTH), `V` (chunks, WIDTH)."""
    for i in range(all_chunks(Y, which)):
        chunk = found(Y, i)
        if fresh[chunk]:
            for place in range(size_of(Y, chunk)):
                best = Q[0, r, chunk, place]
                for a in range(1, Q.shape[0]):
                    best = max(best, Q[a, r, chunk, place])
                V[chunk, place] = min(R, best)


@inner
def moved_cones(S, which, R, Q, height, least, touched, queue):
    """Write the slots where min(R, Q̃) differs from `height` by more than `least` into `queue`; return how many."""
    count = 0
    for i in range(all_chunks(S, which)):
        chunk = found(S, i)
        if touched[chunk]:
            for place in range(size_of(S, chunk)):
                if abs(min(R, Q[chunk, place]) - height[chunk, place]) > least:
                    queue[count] = chunk * WIDTH + place
                    count += 1
    return count


@inner
def move_cones(plan, settings, h, a):
    """Bring the cones of (h, a) up to date with Q̃."""
    S, Y, queues, r = plan.S, plan.Y, plan.queues, row(settings, h)
    R, L, space = np.float64(settings.horizon - h), settings.lipschitz[h], settings.space
    which, there, claims = action_list(settings, h, a), pool(settings, h), claims_of(plan, r, a)
    Q, fresh, u = plan.Q[0, r], plan.fresh[r], plan.scratch[0, : S.points.shape[1]]
    count = moved_cones(S, which, R, Q, claims.height, still(settings), plan.touched[0, r], queues[MOVED])
    orphans = 0
    for i in range(count):
        s = queues[MOVED, i]
        height = min(R, Q[s // WIDTH, s % WIDTH])
        if height < claims.height[s // WIDTH, s % WIDTH]:
            sink(claims, s, height, fresh)
        else:
            orphans = rise(claims, s, height, R, queues[ORPHANS], orphans)
    if orphans > 0:
        forget_slack(S, which, claims.slack)
    for i in range(count):
        s = queues[MOVED, i]
        height, y = claims.height[s // WIDTH, s % WIDTH], plan.tip[s // WIDTH, s % WIDTH]
        # A cone that is not the lowest at its own tip is nowhere the lowest, by the triangle inequality.
        beaten = y >= 0 and claims.owner[y // WIDTH, y % WIDTH] != s and claims.M[y // WIDTH, y % WIDTH] <= height
        if height < R and claims.slack[s // WIDTH, s % WIDTH] < 0.0 and not beaten:
            point_at(S, s, u)
            search(Y, space, there, u, s, L, R, claims, fresh)
    for i in range(orphans):
        y = queues[ORPHANS, i]
        point_at(Y, y, u)
        best, slot = lowest_cone(S, space, which, u, claims.height, L, R)
        claim(claims, y, slot, best)
        fresh[y // WIDTH] = True


@inner
def copy_flags(Y, which, touched, fresh):
    """Without interpolation V depends on Q̃ of the same point: copy its flags."""
    for i in range(all_chunks(Y, which)):
        fresh[found(Y, i)] |= touched[found(Y, i)]


@inner
def clear_flags(E, which, touched):
    """Reset the flags of list `which`."""
    for i in range(all_chunks(E, which)):
        touched[found(E, i)] = False


@inner
def go_back(plan, settings, samples, h):
    """Bring Q̃_h and V_h up to date with V_{h+1} and with C and T."""
    A = settings.actions
    r, R = row(settings, h), np.float64(settings.horizon - h)
    rise = 0.0
    if h + 1 < settings.horizon:
        above = row(settings, h + 1)
        queue, V, P, fresh = plan.queues[MOVED], plan.V[above], plan.P[above], plan.fresh[above]
        number = moved(plan.Y, pool(settings, h + 1), V, P, still(settings), fresh, queue)
        rise = pass_on(plan, settings, samples, h, number)
    E = plan.S if settings.interpolate else plan.Y
    for a in range(A):
        which, k = entry_list(settings, h, a)
        renew_targets(
            settings, E, which, h, plan.C[k], plan.T[k, r], plan.moments, k, plan.Q[k, r], plan.lowest[r],
            plan.touched[k, r],
        )  # fmt: skip
    if h > 0 and settings.interpolate:
        for a in range(A):
            move_cones(plan, settings, h, a)
        best_of_actions(plan.Y, pool(settings, h), R, plan.M, r, plan.V[r], plan.fresh[r])
    elif h > 0:
        for a in range(A):
            copy_flags(plan.Y, pool(settings, h), plan.touched[a, r], plan.fresh[r])
        best_of_awake(plan, settings, h, rise)
    for a in range(A):
        which, k = entry_list(settings, h, a)
        clear_flags(E, which, plan.touched[k, r])


@renew.implement(Incremental)
def renew_incremental(plan, settings, store):
    for t in range(plan.clock[PLANNED], store.number[LOGGED]):
        add_sample(plan, settings, store, t)
    plan.clock[PLANNED] = store.number[LOGGED]
    plan.clock[PLANS] += 1
    for h in range(settings.horizon - 1, -1, -1):
        go_back(plan, settings, store, h)


# ------------------------------------------------------------------------------------------------------------- reading


@has_doubled.implement(Incremental)
def incremental_has_doubled(plan, settings, store, x, h, a):
    C, _ = sums_at(settings, plan.S, action_list(settings, h, a), x, plan.G[0])
    now = C
    for t in range(plan.clock[PLANNED], store.number[LOGGED]):
        if store.labels[ACTION, t] == a and pool(settings, store.labels[STEP, t]) == pool(settings, h):
            now += weight_between(settings, x, store.states[FROM, t], plan.S.buffer)
    return now >= 2.0 * C


@q_at.implement(Incremental)
def incremental_q(plan, settings, store, side, x, h, q):
    r = row(settings, h)
    if not settings.interpolate:
        list_targets(settings, plan.S, plan.G[r], x, h, plan.moments.shape[0] > 0, q)
        return
    L, heights, lowest = settings.lipschitz[h], plan.Q[0, r], plan.lowest[r]
    for a in range(settings.actions):
        # The nearby cones first: their result excludes most of the others without a search.
        which = action_list(settings, h, a)
        best = cones_at(plan.S, settings.space, which, x, heights, lowest, L, 0.1 * settings.reach, math.inf)
        q[a] = cones_at(plan.S, settings.space, which, x, heights, lowest, L, math.inf, best)


@counts_at.implement(Incremental)
def incremental_counts(plan, settings, store, x, h, out):
    list_counts(settings, plan.S, plan.G[0], x, h, out)


@bonuses_at.implement(Incremental)
def incremental_bonuses(plan, settings, store, x, h, out):
    list_bonuses(settings, plan.S, plan.G[0], x, h, plan.moments.shape[0] > 0, out)
