"""Kernel-UCBVI (paper, algorithms 1 and 2) on representative states (paper, section 6).

A plan goes backwards in h over all representatives u, with V_H = 0 and the estimates of `kernelrl.stores.merged`:

    W_h(v, a) = s(v, a) + Σ_y n(v, a, y)·V_{h+1}(y)
    Q̃_h(u, a) = Σ_v w(u, v)·W_h(v, a)/C(u, a) + B_h(u, a)
    Q_h(x, a) = min_v [Q̃_h(v, a) + L_h·ρ(x, v)]  over pairs with samples, or, without interpolation, Q̃_h(x, a) itself
    V_h(u)    = min(R_h, max_a Q_h(u, a))

Samples that come after a plan wait in `pending` until the next one, since read-outs are those of the last plan.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.algorithms.kernel_ucbvi import DOUBLING, EACH_STEP
from kernelrl.bonuses.smoothed import FULL, bonus_factors
from kernelrl.episodes.verbs import (
    begin_episode,
    choose,
    grow,
    has_room,
    largest,
    observe,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.groups import Groups, group_room, grow_groups, new_groups, renew_groups, smooth
from kernelrl.geometry.metrics import embed
from kernelrl.geometry.representatives import copy_place, find, find_or_add, list_of, square_to
from kernelrl.jit.compile import SUMS, inner
from kernelrl.jit.fields import SCRATCH, Field, Rows, checks, completes, require
from kernelrl.jit.rows import COLUMNS
from kernelrl.stores.merged import (
    JOINED,
    Merged,
    add_transition,
    after_samples,
    bonus_of,
    capacity_of,
    clear,
    estimates_elsewhere,
    grow_merged,
    join,
    merged_room,
    new_merged,
    note_start,
    spread,
)
from kernelrl.stores.samples import Settings, has_next, pool
from kernelrl.stores.transitions import Flat, flatten, grow_flat, new_flat, pass_all_back, pass_back

__all__ = ["KernelMerged", "look_up", "new_kernel_merged", "with_merged"]

STATE, ACTION, NEXT, STEP, SEEN, ENDED = range(6)  # of a pending sample; SEEN: how many representatives there were
PLANS, PLANNED, PENDING = range(3)


class KernelMerged(NamedTuple):
    """The state of Kernel-UCBVI on representative states."""

    settings: Settings
    merged: Merged
    groups: Annotated[Groups, SCRATCH]
    flat: Annotated[Flat, SCRATCH]  # transitions of the pool, where one pool serves all steps
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # PLANS made; PLANNED: representatives in the last one; PENDING: samples after it
    plans: Annotated[np.ndarray, Rows(Field(""), Field("", most="U"), Field("", counts="waiting"))]
    # STATE, ACTION, NEXT, STEP, SEEN and ENDED of samples after the last plan
    pending: Annotated[
        np.ndarray,
        Rows(
            Field("waiting", index="U"),
            Field("waiting", index="A"),
            Field("waiting", index="U", none=True),
            Field("waiting", index="H"),
            Field("waiting", most="U"),
            Field("waiting", most=1),
        ),
    ]
    pending_reward: Annotated[
        np.ndarray, Field("waiting", least="Lowest", most="Highest")
    ]  # in the environment's units
    W: Annotated[np.ndarray, Field("H U Columns")]
    Q: Annotated[np.ndarray, Field("H U Columns", infinite=True)]  # Q̃
    V: Annotated[np.ndarray, Field("H U", least="Least", most="Most")]
    inverse: Annotated[np.ndarray, Field("2 U Columns", scratch=True)]  # 1/C and 1/√C
    smoothed: Annotated[np.ndarray, Field("U Columns", scratch=True)]  # T_h
    # an embedded state, an embedded next state, Q of each action
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]


@checks(KernelMerged)
def check_kernel_merged(where, model):
    """Room for what waits to be taken in with the next plan."""
    merged, waiting = model.merged, model.plans[PENDING]
    left = merged.transitions.chain.shape[1] - merged.transitions.used[0]
    require(
        left >= waiting, f"{where}merged.transitions.chain", f"there is no room for the {waiting} samples that wait"
    )


@completes(KernelMerged)
def complete_kernel_merged(model):
    """Groups and flat lists with room for what they are made of at the next plan."""
    reps, H = model.merged.reps, model.settings.horizon
    U, columns = capacity_of(reps), model.W.shape[2]
    groups = grow_groups(new_groups(U, columns), U, reps.weights, int(reps.number[0]), 2 * H)
    flat = grow_flat(new_flat(), U, model.merged.transitions) if model.settings.stationary else new_flat()
    return model._replace(groups=groups, flat=flat)


def new_kernel_merged(settings, stream, low, high, *options):
    """The state before any data, for embeddings in the box [low, high] (d,); `options` are `new_merged`'s."""
    return with_merged(settings, stream, new_merged(settings, low, high, *options))


def with_merged(settings, stream, merged):
    """A model with these data and no plan yet."""
    H, U, columns = settings.horizon, capacity_of(merged.reps), merged.C.shape[2]
    check_memory((H, U, columns))
    model = KernelMerged(
        settings, merged, new_groups(U, columns), new_flat(), stream,
        np.zeros(3, np.int64), np.zeros((6, H), np.int64), np.zeros(H),
        np.zeros((H, U, columns)), np.zeros((H, U, columns)), np.zeros((H, U)), np.zeros((2, U, columns)),
        np.zeros((U, columns)), np.zeros((3, max(merged.reps.points.shape[1], settings.actions))),
    )  # fmt: skip
    while not has_room(model):
        model = grow(model)
    return model


@has_room.implement(KernelMerged)
def has_room_kernel_merged(model):
    H, waiting, merged = model.settings.horizon, model.plans[PENDING], model.merged
    if model.groups.member.shape[0] < merged.reps.following.size or model.flat.pair.size < flat_entries(model):
        return False
    if not group_room(model.groups, merged.reps.weights, merged.reps.number[0], 2 * H):
        return False
    return merged_room(merged, H, waiting) and model.pending_reward.size >= H + waiting


@inner
def flat_entries(model):
    """How many entries flat lists must have room for."""
    return model.merged.transitions.pair.size if model.settings.stationary else 0


@grow.implement_plain(KernelMerged)
def grow_kernel_merged(model):
    H, waiting = model.settings.horizon, int(model.plans[PENDING])
    merged = grow_merged(model.merged, model.settings, H, waiting)
    U = capacity_of(merged.reps)
    groups = grow_groups(model.groups, U, merged.reps.weights, int(merged.reps.number[0]), 2 * H)
    samples = max(model.pending_reward.size, more(H + waiting))
    return model._replace(
        merged=merged,
        groups=groups,
        flat=grow_flat(model.flat, U, merged.transitions) if model.settings.stationary else model.flat,
        pending=lengthen(model.pending, samples, 1),
        pending_reward=lengthen(model.pending_reward, samples, 0),
        W=lengthen(model.W, U, 1),
        Q=lengthen(model.Q, U, 1),
        V=lengthen(model.V, U, 1),
        inverse=lengthen(model.inverse, U, 1),
        smoothed=lengthen(model.smoothed, U, 0),
    )


@rescaled.implement_plain(KernelMerged)
def rescale_kernel_merged(model, settings, keep):
    model = model._replace(settings=settings)
    plans, model.plans[PLANS] = int(model.plans[PLANS]), 0  # so that this plans, whatever `replan` says
    begin_episode(model)
    model.plans[PLANS] = plans + 1
    return model


# ------------------------------------------------------------------------------------------------------------ planning


@inner
def take_in(model):
    """Count the pending samples, and let the new representatives join, in the order in which they came."""
    merged, settings = model.merged, model.settings
    for t in range(model.plans[PENDING]):
        for u in range(merged.clock[JOINED], model.pending[SEEN, t]):
            join(settings, merged, u)
        add_transition(
            settings, merged, model.pending[STEP, t], model.pending[STATE, t], model.pending[ACTION, t],
            model.pending_reward[t], model.pending[NEXT, t], model.pending[ENDED, t] != 0,
        )  # fmt: skip
    for u in range(merged.clock[JOINED], merged.reps.number[0]):
        join(settings, merged, u)
    model.plans[PENDING] = 0


@inner
def invert(C, inverse, n):
    """1/C and 1/√C of the first `n` entries of `C`, flat, into `inverse` (2, …)."""
    for i in range(n):
        inverse[0, i] = 1.0 / C[i]
        inverse[1, i] = math.sqrt(inverse[0, i])


@inner(fastmath=SUMS | {"contract"})
def targets(T, inverse, by_root, by_count, Q, n):
    """Q̃ = T/C + B in the first `n` entries, all flat."""
    for i in range(n):
        Q[i] = (T[i] + by_count) * inverse[0, i] + by_root * inverse[1, i]


@inner
def look_up(model, p, V, U, W):
    """W += Σ_y n(·, y)·V[y]; `W` is flat."""
    if model.settings.stationary:
        pass_all_back(model.flat, V, U, W)
        return
    for y in range(U):
        pass_back(model.merged.transitions, p, y, V[y], W)


@inner
def plan(model):
    """All of Q̃, W and V anew."""
    take_in(model)
    settings, merged, H = model.settings, model.merged, model.settings.horizon
    U, columns = merged.reps.number[0], merged.C.shape[2]
    n, places = U * columns, merged.C.shape[1] * columns
    model.plans[PLANS] += 1
    model.plans[PLANNED] = U
    inverse, T = model.inverse.reshape((2, places)), model.smoothed.reshape(places)
    renew_groups(model.groups, merged.reps.weights, U, settings.inverse_sigma2)
    if settings.stationary:
        flatten(merged.transitions, 0, U, model.flat)
    for h in range(H - 1, -1, -1):
        p, R = pool(settings, h), np.float64(H - h)
        if h == H - 1 or not settings.stationary:
            invert(merged.C[p].reshape(places), inverse, n)
        W = model.W[h].reshape(places)
        after_samples(settings, merged, h, W)
        if h + 1 < H:
            look_up(model, p, model.V[h + 1], U, W)
        smooth(model.groups, model.W[h], model.smoothed)
        if settings.bonus >= FULL:
            theory_targets(model, h, U)
        else:
            by_root, by_count = bonus_factors(settings, h)
            targets(T, inverse, by_root, by_count, model.Q[h].reshape(places), n)
        best_values(model, h, U, R)


@inner
def theory_targets(model, h, U):
    """Q̃ = T/C + B with a bonus of the theory."""
    merged, p = model.merged, pool(model.settings, h)
    for u in range(U):
        for a in range(model.settings.actions):
            C = merged.C[p, u, a]
            model.Q[h, u, a] = model.smoothed[u, a] / C + bonus_of(model.settings, merged, h, u, a, C)


@inner(fastmath=SUMS | {"nnan"})
def best_of_fours(Q, R, V, U):
    """V[u] = min(R, max_a Q[u, a]) where the actions are whole vectors; `Q` is flat."""
    columns = Q.size // V.size
    for u in range(U):
        V[u] = -math.inf
    for first in range(0, columns, COLUMNS):
        for u in range(U):
            i = u * columns + first
            V[u] = max(V[u], max(max(Q[i], Q[i + 1]), max(Q[i + 2], Q[i + 3])))
    for u in range(U):
        V[u] = min(R, V[u])


@inner
def best_values(model, h, U, R):
    """V_h(u) = min(R, max_a Q_h(u, a))."""
    settings, Q, V = model.settings, model.Q[h], model.V[h]
    if not settings.interpolate:
        if settings.actions == Q.shape[1]:
            best_of_fours(Q.reshape(Q.size), R, V, U)
            return
        for u in range(U):
            best = Q[u, 0]
            for a in range(1, settings.actions):
                best = max(best, Q[u, a])
            V[u] = min(R, best)
        return
    near, N, L = model.merged.reps.cones, model.merged.N[pool(settings, h)], settings.lipschitz[h]
    q = model.scratch[2, : settings.actions]
    for u in range(U):
        for a in range(q.size):
            q[a] = math.inf
        start, end = list_of(near, u)
        for j in range(start, end):
            v, rise = near.index[j], L * near.amount[j]
            if v < U:
                for a in range(q.size):
                    if N[v, a] > 0.0:
                        q[a] = min(q[a], Q[v, a] + rise)
        V[u] = min(R, largest(q))


# ------------------------------------------------------------------------------------------------------------ the verbs


@begin_episode.implement(KernelMerged)
def begin_kernel_merged(model):
    if model.settings.replan != DOUBLING or model.plans[PLANS] == 0:
        plan(model)


@inner
def counts_and_targets(model, x, h, q):
    """Write Q̃_h(x, ·) into `q` (A,) and C(x, ·) into row 0 of merged.sums; `x` may move to its representative."""
    settings, merged, p = model.settings, model.merged, pool(model.settings, h)
    u = find(merged.reps, settings.space, x)
    if 0 <= u < model.plans[PLANNED]:
        for a in range(q.size):
            merged.sums[0, a] = merged.C[p, u, a]
            q[a] = model.Q[h, u, a]
        return
    if u >= 0:
        copy_place(merged.reps, u, x)
    estimates_elsewhere(settings, merged, h, x, model.W[h], model.plans[PLANNED])
    for a in range(q.size):
        C = merged.sums[0, a]
        q[a] = merged.sums[1, a] / C + bonus_of(settings, merged, h, -1, a, C)


@inner
def q_at(model, x, h, q):
    """Q_h(x, ·) into `q` (A,), for an embedded state."""
    settings, merged = model.settings, model.merged
    if not settings.interpolate:
        counts_and_targets(model, x, h, q)
        return
    Q, N, L = model.Q[h], merged.N[pool(settings, h)], settings.lipschitz[h]
    for a in range(q.size):
        q[a] = math.inf
    for v in range(model.plans[PLANNED]):
        rise = L * math.sqrt(square_to(merged.reps, settings.space, v, x))
        for a in range(q.size):
            if N[v, a] > 0.0:
                q[a] = min(q[a], Q[v, a] + rise)


@choose.implement(KernelMerged)
def choose_kernel_merged(model, state, h):
    x, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, x)
    q_at(model, x, h, q)
    return pick_largest(q, model.stream)


@inner
def has_doubled(model, u, h, a):
    """Whether C of the newest sample's pair is at least twice what it is in the last plan."""
    settings, merged = model.settings, model.merged
    near, p = merged.reps.weights, pool(settings, h)
    C = settings.beta
    start, end = list_of(near, u)
    for j in range(start, end):
        C += near.amount[j] * merged.N[p, near.index[j], a]
    now = C
    spread(merged, u)
    for t in range(model.plans[PENDING]):
        if model.pending[ACTION, t] == a and pool(settings, model.pending[STEP, t]) == p:
            now += merged.of[model.pending[STATE, t]]
    clear(merged, u)
    return now >= 2.0 * C


@observe.implement(KernelMerged)
def observe_kernel_merged(model, state, action, reward, next_state, h, terminated):
    settings, merged = model.settings, model.merged
    x, y = model.scratch[0, : state.size], model.scratch[1, : state.size]
    embed(settings.space, state, x)
    embed(settings.space, next_state, y)
    if h == 0:
        note_start(merged, x)
    u = find_or_add(merged.reps, settings, x)
    v = find_or_add(merged.reps, settings, y)
    t = model.plans[PENDING]
    model.plans[PENDING] = t + 1
    model.pending[STATE, t], model.pending[ACTION, t], model.pending[STEP, t] = u, action, h
    model.pending[NEXT, t] = v if has_next(settings, h, terminated) else -1
    model.pending[SEEN, t] = merged.reps.number[0]
    model.pending[ENDED, t] = terminated
    model.pending_reward[t] = reward
    replan = settings.replan
    if replan == EACH_STEP or (replan == DOUBLING and has_doubled(model, u, h, action)):
        plan(model)


@read_q.implement(KernelMerged)
def read_q_kernel_merged(model, state, h, out):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    q_at(model, x, h, out)


@read_values.implement(KernelMerged)
def read_values_kernel_merged(model, state, h):
    x, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, x)
    q_at(model, x, h, q)
    return min(np.float64(model.settings.horizon - h), largest(q))


@read_counts.implement(KernelMerged)
def read_counts_kernel_merged(model, state, h, out):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    counts_and_targets(model, x, h, model.scratch[2, : out.size])
    for a in range(out.size):
        out[a] = model.merged.sums[0, a]


@read_bonuses.implement(KernelMerged)
def read_bonuses_kernel_merged(model, state, h, out):
    settings, merged = model.settings, model.merged
    x = model.scratch[0, : state.size]
    embed(settings.space, state, x)
    u = find(merged.reps, settings.space, x)
    counts_and_targets(model, x, h, model.scratch[2, : out.size])
    for a in range(out.size):
        known = u if u < model.plans[PLANNED] else -1
        out[a] = bonus_of(settings, merged, h, known, a, merged.sums[0, a])
