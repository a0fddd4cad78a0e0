"""Kernel estimates on representative states: raw counts per representative and action, smoothed.

Each sample counts for the representative v of its state; its next state is replaced by its representative y, or shared
among those around where it leads (`landing`). With n(v,a) samples of a pair, the sum of their rewards s(v,a), and
transitions n(v,a,y) (see `transitions`),

    C(u, a) = β + Σ_v w(u,v)·n(v,a),   T_h(u, a) = Σ_v w(u,v)·W_h(v,a),   W_h(v,a) = s(v,a) + Σ_y n(v,a,y)·V_{h+1}(y)

(V_{h+1} after a termination is given by `units`, and s is mapped to [0, 1] when it is used) give Q̃_h = T_h/C + B_h. P̂
is never stored: V is first looked up for each pair (v, a), then smoothed over the neighbours of u. Counts are raw, so a
new representative uses all earlier samples at once, and a new bandwidth loses none.

Added transitions wait until `count_waiting`, so that between two plans everything stays as in the last one. Their
states become representatives at once.

With local bandwidths (`krl.schedules.Local`) w(u,v) is a weight w(u,a,v) = g(ρ(u,v)/σ(u,a)) for each action, cut at
CUT·σ(u,a), where, with the mean n̄ of n over the pools of data,

    C_0(u, a) = Σ_v g(ρ(u,v)/σ_0)·n̄(v,a)   over ρ(u,v) ≤ CUT·σ_0,    σ(u, a) = max(σ_min, σ_0·(1 + C_0(u,a))^-exponent)

is renewed now and then; a new representative begins with σ_0.

With several bandwidths at once (`krl.schedules.Bandwidths`) each of the M has its own w, C and T. Arrays of estimates
then have M rows for a representative: row e = u·M + j is that of the representative u and the j-th bandwidth, the
widest first. The data, n, s and W, have one row, as ever.

Some bonuses also need Σ_v w·ρ(u,v)·n(v,a) and Σ_v w²·n(v,a) (`moments`); they are stored only for these. Some
certificates need the sum of m(r)² over the samples of (v, a), too. It is the third of the moments, not smoothed, and in
the row of the widest bandwidth of v.

Where actions are related (`kernelrl.agents.action_kernel`), data are smoothed over actions first,

    n'(v, a) = Σ_b n(v,b)·K_A(b,a)   in place of n in C and in local bandwidths,   W'_h(v, a) = Σ_b W_h(v,b)·K_A(b,a)

and moments are over pairs: Σwρ = Σ w·ρ(u,v)·n' + Σ w·Σ_b n·K_A·ρ_A, Σw² = Σ w²·Σ_b n·K_A². Sums over actions are kept
in `S`, one kind for each of K_A, K_A·ρ_A and K_A².

Where `others`, m, is finite, the samples of all other pairs together count for a pair at most as m of its own:

    O(u, a) = Σ_v w(u,a,v)·n'(v,a) - n(u,a),   φ = min(1, m/O),   C = β + n + φ·O,   T_h = W_h + φ·(Σ_v w·W'_h - W_h)

with n and W_h of the pair itself. A state that is no representative has n = W_h = 0. Bandwidths do not follow this.

`columns` is the number of actions rounded up to whole vectors.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.interface import count, own_value
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.kernels import weight
from kernelrl.geometry.representatives import (
    CUT,
    DEGREE,
    KNOWN,
    REACH,
    SCALE,
    START,
    Representatives,
    copy_place,
    find_or_add,
    find_within,
    grow_representatives,
    list_of,
    lists_each,
    local_weight,
    new_representatives,
    representative_room,
    reweigh,
    square_to,
)
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field, Rows, checks, completes, require
from kernelrl.jit.handles import hand_over
from kernelrl.jit.rows import COLUMNS, add_own_rows, add_rows, padded
from kernelrl.stores.interface import add, grown_for, has_ended, has_room_for, pool, samples_in, start_states
from kernelrl.stores.samples import STARTS, has_next
from kernelrl.stores.transitions import (
    Transitions,
    blocks_left,
    count_transition,
    grow_transitions,
    lengthen_transitions,
    new_transitions,
)
from kernelrl.stores.units import after_end, mapped, mapped_sum

__all__ = [
    "ACTION",
    "COUNTED",
    "ENDED",
    "JOINED",
    "NEXT",
    "OF_SQUARES",
    "OF_WEIGHTS",
    "SQUARES",
    "STATE",
    "STAYED",
    "STEP",
    "SUM_C",
    "SUM_D",
    "SUM_T",
    "SUM_W2",
    "WAITING",
    "Merged",
    "add_rewards",
    "after_samples",
    "bonus_of",
    "capacity_of",
    "count_sample",
    "count_waiting",
    "estimates_elsewhere",
    "has_doubled_at",
    "is_local",
    "join",
    "limit_counts",
    "limit_targets",
    "limits",
    "new_counts",
    "new_merged",
    "note_start",
    "reading_bias",
    "rebandwidth",
    "recount_row",
    "relates",
    "renew_local",
    "smooth_all_over_actions",
    "smooth_over_actions",
    "smooth_row",
    "tightest",
]

COUNTED, JOINED, STARTED, WAITING, STAYED = range(5)  # of `clock`
STATE, ACTION, NEXT, STEP, SEEN, ENDED = range(6)  # of a waiting sample; SEEN: how many representatives there were
SUM_C, SUM_T, SUM_D, SUM_W2 = range(4)  # of `sums`
SQUARES = 2  # of `moments`
OF_WEIGHTS, OF_DISTANCES, OF_SQUARES = range(3)  # of `S`: sums of K_A, K_A·ρ_A and K_A²
TRIED, GOT = range(2)  # of `steps`: visits, and sums of their rewards
USUAL = 0.1  # the mean reward of a step counts as so much of a visit
MANY, TINY = 1e15, 1e-100  # upper bound on numbers of samples, lower bound on C


class Merged(NamedTuple):
    """Representatives and the data at them."""

    reps: Representatives
    transitions: Transitions
    N: Annotated[np.ndarray, Field("pools U Columns", least=0, most=MANY, fill=0)]  # raw counts
    S: Annotated[np.ndarray, Field("kinds pools U Columns", least=0, most=MANY, fill=0)]  # n' where actions are related
    rewards: Annotated[np.ndarray, Field("pools U Columns", fill=0)]  # sums of rewards, in the environment's units
    ended: Annotated[np.ndarray, Field("pools U Columns", least=0, most=MANY, fill=0)]  # how many of them terminated
    C: Annotated[np.ndarray, Field("pools U*Layers Columns", least=TINY, most=1e101)]  # generalized counts
    # COUNTED samples; JOINED: representatives whose C is stored; STARTED: start states noted; WAITING samples;
    # STAYED: samples counted whose next state has the same representative
    clock: Annotated[
        np.ndarray, Rows(Field(""), Field("", most="U"), Field(""), Field("", counts="waiting"), Field(""))
    ]
    # STATE, ACTION, NEXT, STEP, SEEN and ENDED of the samples that wait
    waiting: Annotated[
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
    coming: Annotated[np.ndarray, Field("pools U Columns", scratch=True)]  # how many of each pair they are
    # their rewards, in the environment's units
    waiting_reward: Annotated[np.ndarray, Field("waiting", least="Lowest", most="Highest")]
    starts: Annotated[np.ndarray, Field("32 d")]  # embedded start states; new ones replace the oldest
    # TRIED and GOT of each step, where rewards depend on it, smoothed over actions
    steps: Annotated[np.ndarray, Field("2 timed U Columns", fill=0)]
    # TRIED and GOT of each step at all representatives together, summed in order of arrival
    of_step: Annotated[np.ndarray, Field("2 timed")]
    # C, T, D = Σwρ and W2 = Σw² of a state that is no representative, for each bandwidth
    sums: Annotated[np.ndarray, Field("4 Layers Columns", scratch=True)]
    # Σwρ and Σw² (joint bonus only), and SQUARES (with the empirical-Bernstein form)
    moments: Annotated[np.ndarray, Field("moments pools U*Layers Columns", least=0, fill=0)]


@checks(Merged)
def check_merged(where, merged):
    """There is room for the transitions of the samples that wait."""
    waiting, left = merged.clock[WAITING], merged.transitions.chain.shape[1] - merged.transitions.used[0]
    require(left >= waiting, f"{where}transitions.chain", f"there is no room for the {waiting} samples that wait")


@completes(Merged)
def complete_merged(merged):
    """`coming`, from the samples that wait."""
    for t in range(int(merged.clock[WAITING])):
        pool_of = int(merged.waiting[STEP, t]) if len(merged.coming) > 1 else 0
        merged.coming[pool_of, merged.waiting[STATE, t], merged.waiting[ACTION, t]] += 1.0
    return merged


def new_merged(settings, low, high, merge, limit, cone_reach, bounded, moments, scales, local=False, capacity=64):
    """An empty store for embeddings in the box [low, high] (d,); `moments`: how many the bonus needs.

    `scales` (2, M): see `new_representatives`. `local`: whether each representative and action has a bandwidth of its
    own. `capacity`: for how many representatives there is room.
    """
    columns, M = padded(settings.actions), scales.shape[1]
    reps = new_representatives(low, high, merge, limit, cone_reach, bounded, scales, columns if local else 0, capacity)
    H, U = settings.horizon, capacity_of(reps)
    pools = 1 if settings.stationary else H
    check_memory((pools, U * M, columns))
    return Merged(
        reps, new_transitions(pools, U),
        np.zeros((pools, U, columns)), np.zeros((len(settings.action_weights), pools, U, columns)),
        np.zeros((pools, U, columns)), np.zeros((pools, U, columns)),
        np.full((pools, U * M, columns), settings.beta), np.zeros(5, np.int64), np.zeros((6, H), np.int64),
        np.zeros((pools, U, columns)), np.zeros(H),
        np.zeros((STARTS, len(low))), np.zeros((2, H if settings.by_step else 0, U, columns)),
        np.zeros((2, H if settings.by_step else 0)), np.zeros((4, M, columns)),
        np.zeros((moments, pools, U * M, columns)),
    )  # fmt: skip


def new_counts(merged):
    """The same representatives without data; all of them have joined. Bandwidths are local, so C need not be reset."""
    clock = merged.clock.copy()
    clock[[COUNTED, WAITING, STAYED]], clock[JOINED] = 0, merged.reps.number[KNOWN]
    return merged._replace(
        transitions=new_transitions(merged.N.shape[0], capacity_of(merged.reps), merged.transitions.chain.shape[1]),
        clock=clock,
        **{
            name: np.zeros_like(getattr(merged, name))
            for name in ("N", "S", "rewards", "ended", "steps", "of_step", "coming")
        },
    )


def capacity_of(reps):
    """How many representatives there is room for."""
    return reps.points.shape[0]


# Each sample may add two representatives. Those of waiting samples exist already.


@grown_for.implement_plain(Merged)
def grown_merged(store, settings, samples):
    waiting = int(store.clock[WAITING])
    reps, room = grow_representatives(store.reps, 2 * samples), max(store.waiting_reward.size, more(samples + waiting))
    U = capacity_of(reps)
    estimates = U * reps.scales.shape[1]
    return store._replace(
        reps=reps,
        transitions=grow_transitions(lengthen_transitions(store.transitions, U), samples + waiting),
        N=lengthen(store.N, U, 1),
        S=lengthen(store.S, U, 2),
        rewards=lengthen(store.rewards, U, 1),
        ended=lengthen(store.ended, U, 1),
        C=lengthen(store.C, estimates, 1, settings.beta),
        waiting=lengthen(store.waiting, room, 1),
        coming=lengthen(store.coming, U, 1),
        waiting_reward=lengthen(store.waiting_reward, room, 0),
        steps=lengthen(store.steps, U, 2),
        moments=lengthen(store.moments, estimates, 2),
    )


@has_room_for.implement(Merged)
def has_room_for_merged(store, settings, samples):
    coming = samples + store.clock[WAITING]
    if store.coming.shape[1] < store.reps.points.shape[0]:  # new lists of neighbours may have come with more room
        return False
    if store.waiting_reward.size < coming or blocks_left(store.transitions) < coming:
        return False
    return representative_room(store.reps, 2 * samples)


@samples_in.implement_plain(Merged)
@samples_in.implement(Merged)
def samples_merged(store):
    return store.clock[COUNTED] + store.clock[WAITING]


@has_ended.implement_plain(Merged)
def merged_has_ended(store):
    return bool(store.waiting[ENDED, : store.clock[WAITING]].any() or store.ended.any())


@start_states.implement_plain(Merged)
def noted_starts(store):
    return store.starts[: store.clock[STARTED]]


@inner
def note_start(merged, u):
    """Keep the embedded state `u` as the start of an episode."""
    place = merged.clock[STARTED] % STARTS
    merged.clock[STARTED] += 1
    for j in range(u.size):
        merged.starts[place, j] = u[j]


@inner
def relates(settings):
    """Whether data of one action count for others."""
    return settings.action_weights.shape[0] > 0


@inner
def join(settings, merged, u):
    """Compute C of representative `u`, the first that has not joined, from the samples counted so far."""
    merged.clock[JOINED] = u + 1
    if is_local(merged):
        return  # it is computed where it is needed
    near, M = merged.reps.weights, lists_each(merged.reps)
    columns = merged.C.shape[2]
    for e in range(u * M, u * M + M):
        start, end = list_of(near, e)
        for p in range(merged.C.shape[0]):
            for c in range(columns):
                merged.C[p, e, c] = settings.beta
            N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
            for i in range(start, end):
                v, w = near.index[i], near.amount[i, 0]
                for c in range(columns):
                    merged.C[p, e, c] += w * N[v, c]
        if merged.moments.shape[0] > 0:
            join_moments(settings, merged, u, e)


@inner
def distance_between(settings, reps, u, v):
    """ρ between two representatives."""
    copy_place(reps, u, reps.here)
    return math.sqrt(square_to(reps, settings.space, v, reps.here))


@inner
def join_moments(settings, merged, u, e):
    """Compute Σwρ and Σw² of estimate `e` of representative `u` from the samples counted so far."""
    near, moments = merged.reps.weights, merged.moments
    start, end = list_of(near, e)
    for j in range(start, end):
        v, w = near.index[j], near.amount[j, 0]
        rho = distance_between(settings, merged.reps, u, v)
        for p in range(moments.shape[1]):
            for c in range(moments.shape[3]):
                D, W2 = moments_of(merged, p, v, c, w, rho)
                moments[0, p, e, c] += D
                moments[1, p, e, c] += W2


@inner
def moments_of(merged, p, v, c, w, rho):
    """What the data at `v`, with weight `w` at distance `rho`, contribute to Σwρ and Σw² of column `c`."""
    if merged.S.shape[0] == 0:
        return w * rho * merged.N[p, v, c], w * w * merged.N[p, v, c]
    S = merged.S[:, p, v, c]
    return w * rho * S[OF_WEIGHTS] + w * S[OF_DISTANCES], w * w * S[OF_SQUARES]


@add.implement(Merged)
def add_merged(store, settings, x, action, reward, y, h, terminated):
    if h == 0:
        note_start(store, x)
    u = find_or_add(store.reps, settings, x)
    v = find_or_add(store.reps, settings, y)
    waiting, t = store.waiting, store.clock[WAITING]
    store.clock[WAITING] = t + 1
    waiting[STATE, t], waiting[ACTION, t], waiting[STEP, t] = u, action, h
    waiting[NEXT, t] = v if has_next(settings, h, terminated) else -1
    waiting[SEEN, t] = store.reps.number[KNOWN]
    waiting[ENDED, t] = terminated
    store.waiting_reward[t] = reward
    store.coming[pool(settings, h), u, action] += 1.0
    return False


@inner
def count_waiting(settings, merged):
    """Count the samples that wait, and let new representatives join, in their order of arrival."""
    waiting = merged.waiting
    for t in range(merged.clock[WAITING]):
        for u in range(merged.clock[JOINED], waiting[SEEN, t]):
            join(settings, merged, u)
        count_sample(
            settings, merged, waiting[STEP, t], waiting[STATE, t], waiting[ACTION, t], merged.waiting_reward[t],
            waiting[NEXT, t], waiting[ENDED, t] != 0,
        )  # fmt: skip
        merged.coming[pool(settings, waiting[STEP, t]), waiting[STATE, t], waiting[ACTION, t]] = 0.0
    for u in range(merged.clock[JOINED], merged.reps.number[KNOWN]):
        join(settings, merged, u)
    merged.clock[WAITING] = 0


@inner
def has_doubled_at(settings, merged, h, a):
    """Whether the samples that wait double C of action `a` at the representative of the last one, or more.

    With several bandwidths one of them is enough.
    """
    u, M = waiting_state(merged), lists_each(merged.reps)
    for e in range(u * M, u * M + M):
        if estimate_has_doubled(settings, merged, e, h, a):
            return True
    return False


@inner
def waiting_state(merged):
    """The representative of the last sample that waits."""
    return merged.waiting[STATE, merged.clock[WAITING] - 1]


@inner
def estimate_has_doubled(settings, merged, e, h, a):
    """`has_doubled_at` for one bandwidth."""
    near, p, column = merged.reps.weights, pool(settings, h), a if is_local(merged) else 0
    N, coming = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p], merged.coming[p]
    C, new = settings.beta, 0.0
    start, end = list_of(near, e)
    for i in range(start, end):
        w, v = near.amount[i, column], near.index[i]
        C += w * N[v, a]
        if relates(settings):
            for b in range(settings.actions):
                new += w * coming[v, b] * settings.action_weights[OF_WEIGHTS, b, a]
        else:
            new += w * coming[v, a]
    return C + new >= 2.0 * C


@inner
def count_sample(settings, merged, h, v, a, reward, y, terminated):
    """Count a sample of step `h` at representative `v`; `y` is -1 if no planned value follows."""
    p = pool(settings, h)
    merged.clock[COUNTED] += 1
    merged.clock[STAYED] += v == y
    merged.N[p, v, a] += 1.0
    merged.rewards[p, v, a] += reward
    if terminated:
        merged.ended[p, v, a] += 1.0
    if merged.moments.shape[0] > SQUARES:
        merged.moments[SQUARES, p, v * lists_each(merged.reps), a] += mapped(settings.units, reward) ** 2.0
    if relates(settings):
        count_at_actions(settings, merged, h, v, a, reward)
    elif settings.by_step:
        merged.steps[TRIED, h, v, a] += 1.0
        merged.steps[GOT, h, v, a] += reward
    if settings.by_step:
        merged.of_step[TRIED, h] += 1.0
        merged.of_step[GOT, h] += reward
    if not is_local(merged):
        for j in range(lists_each(merged.reps)):
            if relates(settings):
                count_around_actions(settings, merged, p, v, a, j)
            else:
                count_around(settings, merged, p, v, a, j)
    count(settings.bonus, h)
    if y >= 0:
        count_transition(merged.transitions, p, v * merged.C.shape[2] + a, y, 1.0)


@inner
def count_at_actions(settings, merged, h, v, a, reward):
    """Count a sample at `v` for all actions that `a` is related to."""
    K, p = settings.action_weights, pool(settings, h)
    for c in range(settings.actions):
        for kind in range(K.shape[0]):
            merged.S[kind, p, v, c] += K[kind, a, c]
        if settings.by_step:
            merged.steps[TRIED, h, v, c] += K[OF_WEIGHTS, a, c]
            merged.steps[GOT, h, v, c] += K[OF_WEIGHTS, a, c] * reward


@inner
def count_around_actions(settings, merged, p, v, a, j):
    """`count_around` for all actions that `a` is related to."""
    near, joined, M, K = merged.reps.weights, merged.clock[JOINED], lists_each(merged.reps), settings.action_weights
    start, end = list_of(near, v * M + j)
    for i in range(start, end):
        u, w = near.index[i], near.amount[i, 0]
        if u < joined:
            e = u * M + j
            rho = distance_between(settings, merged.reps, v, u) if merged.moments.shape[0] > 0 else 0.0
            for c in range(settings.actions):
                merged.C[p, e, c] += w * K[OF_WEIGHTS, a, c]
                if merged.moments.shape[0] > 0:
                    merged.moments[0, p, e, c] += w * rho * K[OF_WEIGHTS, a, c] + w * K[OF_DISTANCES, a, c]
                    merged.moments[1, p, e, c] += w * w * K[OF_SQUARES, a, c]


@inner
def count_around(settings, merged, p, v, a, j):
    """Count a sample at `v` in the estimates of its neighbours with the j-th bandwidth; weights are symmetric."""
    near, joined, M = merged.reps.weights, merged.clock[JOINED], lists_each(merged.reps)
    start, end = list_of(near, v * M + j)
    for i in range(start, end):
        u = near.index[i]
        if u < joined:
            e = u * M + j
            merged.C[p, e, a] += near.amount[i, 0]
            if merged.moments.shape[0] > 0:
                w, rho = near.amount[i, 0], distance_between(settings, merged.reps, v, u)
                merged.moments[0, p, e, a] += w * rho
                merged.moments[1, p, e, a] += w * w


@inner
def after_samples(settings, merged, h, W):
    """W_h(v, a) without planned values: mapped rewards and the values after terminations; `W` is flat.

    Where rewards depend on the step, they are added after smoothing (`reward_of_step`).
    """
    p, n, units = pool(settings, h), merged.reps.number[KNOWN] * merged.C.shape[2], settings.units
    after = after_end(units, settings.horizon, h)
    rewards, N, ended = merged.rewards[p].reshape(W.size), merged.N[p].reshape(W.size), merged.ended[p].reshape(W.size)
    for i in range(n):
        W[i] = after * ended[i] if settings.by_step else mapped_sum(units, rewards[i], N[i]) + after * ended[i]


@inner
def smooth_over_actions(settings, W, v, row):
    """Write W'(v, ·) into `row` (columns,)."""
    K = settings.action_weights
    for c in range(row.size):
        row[c] = 0.0
    for b in range(settings.actions):
        w = W[v, b]
        if w != 0.0:
            for c in range(row.size):
                row[c] += w * K[OF_WEIGHTS, b, c]


@inner
def smooth_all_over_actions(settings, W, U, row, out):
    """Write W' of the first `U` representatives into `out`, which may be `W`; `row` (columns,) is scratch."""
    for v in range(U):
        smooth_over_actions(settings, W, v, row)
        for c in range(row.size):
            out[v, c] = row[c]


@inner
def usual_reward(settings, merged, h):
    """m̄_h: the mean of the mapped rewards of step `h`, or a reward of 0 if there are none."""
    tried = merged.of_step[TRIED, h]
    return mapped_sum(settings.units, merged.of_step[GOT, h], tried) / tried if tried > 0.0 else settings.units.nothing


@inner
def reward_of_step(settings, usual, C, got, tried):
    """r̂_h = (USUAL·m̄_h·(C-β)/C + Σw·m(r))/(USUAL + Σw), sums over the samples of step h: `got`, `tried`, smoothed.

    The factor (C-β)/C leaves actions that were never tried around a state with nothing. The estimate from all steps
    does not take the place of m̄_h: where a reward is paid at the end only, it promises some of it at every step at
    which a state was not seen, and the best policy collects these promises.
    """
    known = USUAL * usual * (C - settings.beta) / C
    return (known + mapped_sum(settings.units, got, tried)) / (USUAL + tried)


@inner
def bonus_of(settings, merged, h, u, a, j):
    """B_h of representative `u`, action `a` and the j-th bandwidth, whose C is in `sums`; any other state is -1."""
    D, W2, e = 0.0, 0.0, u * lists_each(merged.reps) + j
    if merged.moments.shape[0] > 0:
        p = pool(settings, h)
        D = merged.sums[SUM_D, j, a] if u < 0 else merged.moments[0, p, e, a]
        W2 = merged.sums[SUM_W2, j, a] if u < 0 else merged.moments[1, p, e, a]
    return own_value(settings.bonus, j, h, merged.sums[SUM_C, j, a], D, W2)


@inner
def tightest(settings, merged, h, u, a):
    """Which bandwidth has the smallest bonus, and that bonus; the arguments are those of `bonus_of`."""
    found, least = 0, bonus_of(settings, merged, h, u, a, 0)
    for j in range(1, lists_each(merged.reps)):
        B = bonus_of(settings, merged, h, u, a, j)
        if B < least:
            found, least = j, B
    return found, least


@inner
def reading_bias(settings, merged, u, x, h):
    """L_h·ρ(x, u), by which `x` may be worth more than its representative `u`, if the bonus has a guarantee; else 0."""
    if u < 0 or not settings.promises:
        return 0.0
    return settings.lipschitz[h] * math.sqrt(square_to(merged.reps, settings.space, u, x))


@inner
def is_local(merged):
    """Whether each representative and action has a bandwidth of its own."""
    return merged.reps.local.shape[1] > 0


@inner
def smooth_row(near, u, W, T):
    """T[u] = Σ_v w(u,v)·W[v] for list `u`; both have `columns` columns."""
    start, count = near.span[START, u], near.span[DEGREE, u]
    for first in range(0, W.shape[1], COLUMNS):
        if near.amount.shape[1] == 1:
            add_rows(near.amount, near.index, start, count, W, first, T, u)
        else:
            add_own_rows(near.amount, near.index, start, count, W, first, T, u)


@inner
def recount_row(settings, merged, p, u):
    """C of representative `u` from the raw counts."""
    N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
    smooth_row(merged.reps.weights, u, N, merged.C[p])
    for c in range(merged.C.shape[2]):
        merged.C[p, u, c] += settings.beta


@inner
def limits(settings):
    """Whether the samples of other pairs count only so much."""
    return settings.others < math.inf


@inner
def limit_counts(settings, N, C, share):
    """Lower C (columns,) of a representative with raw counts N (columns,) to β + n + φ·O; write φ into `share`."""
    for c in range(settings.actions):
        others, share[c] = C[c] - settings.beta - N[c], 1.0
        if others > settings.others:
            share[c] = settings.others / others
            C[c] = settings.beta + N[c] + settings.others


@inner
def limit_targets(settings, W, share, T):
    """T = W + φ·(T - W) for a representative; all are (columns,), and φ is `share`."""
    for c in range(settings.actions):
        if share[c] < 1.0:
            T[c] = W[c] + share[c] * (T[c] - W[c])


@inner
def own_scales(settings, merged, x, U, out):
    """Write 1/σ(x, ·)² into `out` (columns,), from the first `U` representatives."""
    reps, pools = merged.reps, merged.N.shape[0]
    for a in range(settings.actions):
        out[a] = 0.0
    for i in range(find_within(reps, settings.space, x, CUT * CUT / settings.inverse_sigma2, U)):
        v, w = reps.around[i], weight(settings.kernel, reps.share[i] * settings.inverse_sigma2) / pools
        for p in range(pools):
            N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
            for a in range(settings.actions):
                out[a] += w * N[v, a]
    least = math.inf
    for a in range(settings.actions):
        least = min(least, out[a])
    for a in range(settings.actions):
        count = least if settings.by_state else out[a]
        narrowed = settings.inverse_sigma2 * (1.0 + count) ** (2.0 * settings.exponent)
        out[a] = min(narrowed, 1.0 / (settings.least_sigma * settings.least_sigma))


@compiled
def renew_scales(settings, merged):
    """Renew the local bandwidths from all counts; the lists of neighbours have to follow."""
    reps = merged.reps
    for u in range(reps.number[KNOWN]):
        copy_place(reps, u, reps.here)
        own_scales(settings, merged, reps.here, reps.number[KNOWN], reps.local[u])


@inner
def estimates_elsewhere(settings, merged, h, x, W, U):
    """Write C and T_h at an embedded state that is no representative, from the first `U` of them, into `sums`.

    `W` is W_h, smoothed over actions where they are related.
    """
    sums, reps, M = merged.sums, merged.reps, lists_each(merged.reps)
    for j in range(M):
        for c in range(W.shape[1]):
            sums[SUM_C, j, c], sums[SUM_T, j, c] = settings.beta, 0.0
            sums[SUM_D, j, c], sums[SUM_W2, j, c] = 0.0, 0.0
    if is_local(merged):
        local_estimates(settings, merged, h, x, W, U)
        return
    for v in range(U):
        square = square_to(reps, settings.space, v, x)
        for j in range(M):
            if square <= reps.scales[REACH, j] * reps.scales[REACH, j]:
                add_to_sums(settings, merged, h, v, j, square, W)


@inner
def add_to_sums(settings, merged, h, v, j, square, W):
    """Add what representative `v`, at the squared distance `square`, contributes with the j-th bandwidth."""
    p, sums, w = pool(settings, h), merged.sums, weight(settings.kernel, square * merged.reps.scales[SCALE, j])
    N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
    rho = math.sqrt(square)
    for c in range(W.shape[1]):
        sums[SUM_C, j, c] += w * N[v, c]
        sums[SUM_T, j, c] += w * W[v, c]
        if merged.moments.shape[0] > 0:
            D, W2 = moments_of(merged, p, v, c, w, rho)
            sums[SUM_D, j, c] += D
            sums[SUM_W2, j, c] += W2


@inner
def local_estimates(settings, merged, h, x, W, U):
    """`estimates_elsewhere` with the bandwidths of `x` itself; `sums` has been reset."""
    p, sums, reps, scales = pool(settings, h), merged.sums, merged.reps, merged.sums[SUM_D, 0]
    own_scales(settings, merged, x, U, scales)
    N = merged.S[OF_WEIGHTS, p] if merged.S.shape[0] > 0 else merged.N[p]
    for v in range(U):
        square = square_to(reps, settings.space, v, x)
        if square * settings.inverse_sigma2 <= CUT * CUT:
            for a in range(settings.actions):
                w = local_weight(settings, square * scales[a])
                sums[SUM_C, 0, a] += w * N[v, a]
                sums[SUM_T, 0, a] += w * W[v, a]
    if limits(settings):
        for a in range(settings.actions):
            others = sums[SUM_C, 0, a] - settings.beta
            if others > settings.others:
                sums[SUM_T, 0, a] *= settings.others / others
                sums[SUM_C, 0, a] = settings.beta + settings.others
    if settings.by_step:
        add_rewards_elsewhere(settings, merged, h, x, U, scales)
    for a in range(settings.actions):
        scales[a] = 0.0


@inner
def add_rewards_elsewhere(settings, merged, h, x, U, scales):
    """Add the rewards of step `h` to T in `sums`, with the bandwidths `scales` (columns,) of `x`."""
    reps, sums = merged.reps, merged.sums
    usual = usual_reward(settings, merged, h)
    for a in range(settings.actions):
        got, tried = 0.0, 0.0
        for v in range(U):
            w = local_weight(settings, square_to(reps, settings.space, v, x) * scales[a])
            got += w * merged.steps[GOT, h, v, a]
            tried += w * merged.steps[TRIED, h, v, a]
        C = sums[SUM_C, 0, a]
        sums[SUM_T, 0, a] += C * reward_of_step(settings, usual, C, got, tried)


@inner
def add_rewards(settings, merged, h, u, C, sums, T):
    """Add C (A,) times the rewards of step `h` to T[u] (columns,) of a representative.

    `sums` (2, U, columns) is scratch.
    """
    near, usual = merged.reps.weights, usual_reward(settings, merged, h)
    smooth_row(near, u, merged.steps[GOT, h], sums[GOT])
    smooth_row(near, u, merged.steps[TRIED, h], sums[TRIED])
    for a in range(settings.actions):
        T[u, a] += C[a] * reward_of_step(settings, usual, C[a], sums[GOT, u, a], sums[TRIED, u, a])


@compiled
def recount(settings, merged):
    """Compute C, and Σwρ and Σw² where they are kept, again from the raw counts; there is one bandwidth."""
    for p in range(merged.C.shape[0]):
        for u in range(merged.clock[JOINED]):
            recount_row(settings, merged, p, u)
    if merged.moments.shape[0] > 0:
        for u in range(merged.clock[JOINED]):
            merged.moments[:SQUARES, :, u] = 0.0
            join_moments(settings, merged, u, u)


def rebandwidth(settings, merged, samples):
    """The same data with the settings' bandwidth."""
    merged = merged._replace(reps=reweigh(merged.reps, settings, 2 * samples))
    recount(hand_over(settings), hand_over(merged))
    return merged


@compiled
def count_now(settings, merged):
    """`count_waiting` for Python."""
    count_waiting(settings, merged)


def renew_local(settings, merged, samples):
    """The same data with new local bandwidths. C is computed where it is needed."""
    if merged.clock[WAITING]:
        count_now(hand_over(settings), hand_over(merged))
    renew_scales(hand_over(settings), hand_over(merged))
    return merged._replace(reps=reweigh(merged.reps, settings, 2 * samples))
