"""Kernel-UCBVI (paper, algorithms 1 and 2), exact: every sample is kept.

Planning goes backwards in h, with V_H = 0:

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)
    Q_h(x, a)  = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)]             or, without interpolation, Q̃_h(x, a) itself
    V_h(x)     = min(R_h, max_a Q_h(x, a))

Between two plans little changes, so nothing is computed anew. An "entry" is a pair at which Q̃ is kept: each sample's
own pair with interpolation (entries are the points of `S`), each next state with every action without it (the points
of `Y`). Of each entry we keep C = β + Σw and T = Σw·G with G_s = r_s + P_s, where P_s is the value V_{h+1}(y_s) that has
been passed on. A plan then

 1. adds the new samples: they lend weight to entries near them, and become entries themselves;
 2. goes backwards in h: where V_{h+1}(y_s) has moved away from P_s by more than STILL, the difference is passed on to
    the T of the entries near x_s; Q̃ = T/C + B is taken anew where T or C changed; and V_h follows.

With interpolation, each next state remembers for each action the lowest cone above it, M, and whose it is. A cone that
falls can only lower its neighbours; a cone that rises makes those look for another that had it as their lowest.

Each of the H levels adds at most STILL of error to the next for values and once more for cones, so values are within
2·H·STILL of a full recomputation.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.algorithms.interface import (
    begin_episode,
    choose,
    end_episode,
    grow,
    has_room,
    observe,
    largest,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
)
from kernelrl.core.buckets import (
    WIDTH,
    Buckets,
    add_point,
    all_chunks,
    chunks_left,
    distances_in,
    dot,
    found,
    grow_buckets,
    lengthen,
    near,
    new_buckets,
    number_of_chunks,
    payload,
    size_of,
    total,
)
from kernelrl.core.compile import inner
from kernelrl.core.interpolation import cone_radius, cones_at, lowest_cone
from kernelrl.core.metrics import embed
from kernelrl.core.samples import (
    ACTION,
    STEP,
    TERMINATED,
    Samples,
    Settings,
    action_list,
    append_sample,
    bonus_at,
    counts_at,
    grow_samples,
    has_next,
    new_samples,
    pool,
    row,
    sample_room,
    sums_at,
    weight_between,
    weights_in,
)

__all__ = ["KernelExact", "new_kernel_exact"]

STILL = 1e-10  # a value that has moved by less is not passed on
FAINT = 1e-15  # a change of T by less is not made
EACH_EPISODE, EACH_STEP, DOUBLING = range(3)


class KernelExact(NamedTuple):
    """The state of Kernel-UCBVI on all samples. `E` below stands for S with interpolation, else for Y."""

    settings: Settings
    samples: Samples
    planned: np.ndarray  # (2,) number of samples in the plan; number of plans
    stream: np.ndarray  # (4,) the agent's own random stream
    S: Buckets  # states by pool and action
    G: np.ndarray  # (rows, chunks of S, WIDTH) r + P
    index: np.ndarray  # (chunks of S, WIDTH) number of the sample in `samples`
    Y: Buckets  # next states by pool
    V: np.ndarray  # (rows, chunks of Y, WIDTH) V_h(y)
    P: np.ndarray  # (rows, chunks of Y, WIDTH) V_h(y) as it was passed on
    sample: np.ndarray  # (chunks of Y, WIDTH) slot of the sample in S
    C: np.ndarray  # (1 or A, chunks of E, WIDTH)
    T: np.ndarray  # (1 or A, rows, chunks of E, WIDTH)
    Q: np.ndarray  # (1 or A, rows, chunks of E, WIDTH) Q̃
    touched: np.ndarray  # (rows, chunks of E) T or C changed since Q was computed
    cone: np.ndarray  # (rows, chunks of S, WIDTH) min(R_h, Q̃) as M knows it     (interpolation only, like the next two)
    M: np.ndarray  # (A, rows, chunks of Y, WIDTH) min(R_h, lowest cone) at y
    owner: np.ndarray  # (A, rows, chunks of Y, WIDTH) slot of that cone in S, or -1
    queues: np.ndarray  # (2, places of S or Y) scratch: slots that moved; next states whose lowest cone rose


def new_kernel_exact(settings, stream, low, high, cell):
    """The state before any data, for embeddings in the box [low, high] (d,)."""
    H, A, d = settings.horizon, settings.actions, low.size
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    Y = new_buckets(pools, low, high, cell)
    E, each = (S, 1) if settings.interpolate else (Y, A)
    some = int(settings.interpolate)
    model = KernelExact(
        settings, new_samples(d, 4 * H), np.zeros(2, np.int64), stream,
        S, payload(S, rows), payload(S, dtype=np.int64),
        Y, payload(Y, rows), payload(Y, rows), payload(Y, dtype=np.int64),
        payload(E, each), payload(E, each, rows), payload(E, each, rows, fill=math.inf),
        np.zeros((rows, number_of_chunks(E)), np.bool_),
        payload(S, rows * some), payload(Y, A * some, rows), payload(Y, A * some, rows, dtype=np.int64),
        np.zeros((2, number_of_chunks(S) * WIDTH), np.int64),
    )  # fmt: skip
    while not has_room(model):
        model = grow(model)
    return model


@has_room.implement(KernelExact)
def has_room_kernel(model):
    H = model.settings.horizon
    # What is pending from the last episode is not in the buckets yet.
    pending = model.samples.number[0] - model.planned[0]
    chunks = min(chunks_left(model.S), chunks_left(model.Y))
    return chunks >= H + pending and sample_room(model.samples) >= H


@grow.implement_plain(KernelExact)
def grow_kernel(model):
    if sample_room(model.samples) < model.settings.horizon:
        model = model._replace(samples=grow_samples(model.samples, 2 * model.samples.reward.size))
    need = model.settings.horizon + model.samples.number[0] - model.planned[0]
    entries = []
    if chunks_left(model.S) < need:
        chunks = 2 * number_of_chunks(model.S)
        model = model._replace(
            S=grow_buckets(model.S, chunks),
            G=lengthen(model.G, chunks, 1),
            index=lengthen(model.index, chunks, 0),
            cone=lengthen(model.cone, chunks, 1),
        )
        entries += [chunks] if model.settings.interpolate else []
    if chunks_left(model.Y) < need:
        chunks = 2 * number_of_chunks(model.Y)
        model = model._replace(
            Y=grow_buckets(model.Y, chunks),
            V=lengthen(model.V, chunks, 1),
            P=lengthen(model.P, chunks, 1),
            sample=lengthen(model.sample, chunks, 0),
            M=lengthen(model.M, chunks, 2),
            owner=lengthen(model.owner, chunks, 2),
        )
        entries += [] if model.settings.interpolate else [chunks]
    for chunks in entries:
        model = model._replace(
            C=lengthen(model.C, chunks, 1),
            T=lengthen(model.T, chunks, 2),
            Q=lengthen(model.Q, chunks, 2, math.inf),
            touched=lengthen(model.touched, chunks, 1),
        )
    places = WIDTH * max(number_of_chunks(model.S), number_of_chunks(model.Y))
    return model._replace(queues=np.zeros((2, places), np.int64))


# ---------------------------------------------------------------------------------------------------- adding samples


@inner
def entry_list(settings, h, a):
    """The list of entries of step `h` and action `a`, and their first index in C, T and Q."""
    if settings.interpolate:
        return action_list(settings, h, a), 0
    return pool(settings, h), a


@inner
def lend_weight(model, s, u, h, a):
    """Let the new sample at slot `s` of S weigh in C and T of the entries near it (all rows)."""
    settings = model.settings
    E = model.S if settings.interpolate else model.Y
    which, k = entry_list(settings, h, a)
    for i in range(near(E, settings.space, which, u, settings.reach)):
        chunk = found(E, i)
        n = weights_in(settings, E, chunk, u)
        C, w = model.C[k, chunk], E.buffer
        for j in range(n):
            C[j] += w[j]
        for r in range(model.G.shape[0]):
            add_multiple(model.T[k, r, chunk], w, model.G[r, s // WIDTH, s % WIDTH], n)
            model.touched[r, chunk] = True


@inner
def add_multiple(T, w, factor, n):
    """T[:n] += factor·w[:n]."""
    for j in range(n):
        T[j] += factor * w[j]


@inner
def fill_entry(model, e, u, h, a):
    """C and T (all rows) of a new entry at slot `e` for the pair (u, a) of step `h`, from the samples in S."""
    settings, S = model.settings, model.S
    _, k = entry_list(settings, h, a)
    chunk, place = e // WIDTH, e % WIDTH
    C = settings.beta
    for r in range(model.G.shape[0]):
        model.T[k, r, chunk, place] = 0.0
        model.touched[r, chunk] = True
    for i in range(near(S, settings.space, action_list(settings, h, a), u, settings.reach)):
        other = found(S, i)
        n = weights_in(settings, S, other, u)
        C += total(S.buffer, n)
        for r in range(model.G.shape[0]):
            model.T[k, r, chunk, place] += dot(S.buffer, model.G[r, other], n)
    model.C[k, chunk, place] = C


@inner
def add_next_state(model, v, h):
    """Make `v`, reached from step `h`, a point of Y with values at the cap, and return its slot."""
    settings = model.settings
    H = settings.horizon
    y = add_point(model.Y, pool(settings, h + 1), v)
    chunk, place = y // WIDTH, y % WIDTH
    first, last = (1, H - 1) if settings.stationary else (h + 1, h + 1)
    for level in range(first, last + 1):
        r, R = row(settings, level), np.float64(H - level)
        model.V[r, chunk, place] = R
        model.P[r, chunk, place] = R
        if settings.interpolate:
            for a in range(settings.actions):
                which, L = action_list(settings, level, a), settings.lipschitz[level]
                best, slot = lowest_cone(model.S, settings.space, which, v, model.cone[r], L, R)
                model.M[a, r, chunk, place] = best
                model.owner[a, r, chunk, place] = slot
    if not settings.interpolate:
        for a in range(settings.actions):
            fill_entry(model, y, v, h + 1, a)
    return y


@inner
def add_sample(model, t):
    """Take sample number `t` into the plan's data."""
    settings, samples = model.settings, model.samples
    H, h, a = settings.horizon, samples.labels[STEP, t], samples.labels[ACTION, t]
    u, v = samples.states[0, t], samples.states[1, t]
    alive = has_next(settings, h, samples.labels[TERMINATED, t])
    y = add_next_state(model, v, h) if alive else -1
    s = add_point(model.S, action_list(settings, h, a), u)
    model.index[s // WIDTH, s % WIDTH] = t
    first, last = (0, H - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        r = row(settings, level)
        model.G[r, s // WIDTH, s % WIDTH] = samples.reward[t] + (np.float64(H - level - 1) if alive else 0.0)
        if settings.interpolate:
            model.cone[r, s // WIDTH, s % WIDTH] = np.float64(H - level)
    if alive:
        model.sample[y // WIDTH, y % WIDTH] = s
    lend_weight(model, s, u, h, a)
    if settings.interpolate:
        fill_entry(model, s, u, h, a)


# ------------------------------------------------------------------------------------------------------ going back in h


@inner
def moved_values(model, h):
    """Put into the first queue the next states whose V_h is not what was passed on; return how many."""
    r, Y = row(model.settings, h), model.Y
    count = 0
    for i in range(all_chunks(Y, pool(model.settings, h))):
        chunk = found(Y, i)
        V, P = model.V[r, chunk], model.P[r, chunk]
        for place in range(size_of(Y, chunk)):
            if abs(V[place] - P[place]) > STILL:
                model.queues[0, count] = chunk * WIDTH + place
                count += 1
    return count


@inner
def pass_on(model, y, h):
    """Carry the change of V_{h+1} at slot `y` of Y into T of the entries of step `h` near the sample it belongs to."""
    settings = model.settings
    E = model.S if settings.interpolate else model.Y
    above, r = row(settings, h + 1), row(settings, h)
    s = model.sample[y // WIDTH, y % WIDTH]
    t = model.index[s // WIDTH, s % WIDTH]
    change = model.V[above, y // WIDTH, y % WIDTH] - model.P[above, y // WIDTH, y % WIDTH]
    model.P[above, y // WIDTH, y % WIDTH] += change
    model.G[r, s // WIDTH, s % WIDTH] = model.samples.reward[t] + model.P[above, y // WIDTH, y % WIDTH]
    u = model.samples.states[0, t]
    radius = settings.reach
    if not settings.compact:
        z = (2.0 * math.log(abs(change) / FAINT)) ** (1.0 / settings.power)
        radius = min(radius, z / math.sqrt(settings.inverse_sigma2))
    which, k = entry_list(settings, h, model.samples.labels[ACTION, t])
    for i in range(near(E, settings.space, which, u, radius)):
        chunk = found(E, i)
        n = weights_in(settings, E, chunk, u)
        add_multiple(model.T[k, r, chunk], E.buffer, change, n)
        model.touched[r, chunk] = True


@inner
def renew_targets(model, E, which, k, h):
    """Q̃_h = T/C + B in the touched chunks of list `which`."""
    r = row(model.settings, h)
    for i in range(all_chunks(E, which)):
        chunk = found(E, i)
        if model.touched[r, chunk]:
            C, T, Q = model.C[k, chunk], model.T[k, r, chunk], model.Q[k, r, chunk]
            for place in range(size_of(E, chunk)):
                Q[place] = T[place] / C[place] + bonus_at(model.settings, h, C[place])


@inner
def values_without_interpolation(model, h):
    """V_h = min(R_h, max_a Q̃_h(y, a)) in the touched chunks of Y."""
    settings, Y = model.settings, model.Y
    R, r = np.float64(settings.horizon - h), row(settings, h)
    for i in range(all_chunks(Y, pool(settings, h))):
        chunk = found(Y, i)
        if model.touched[r, chunk]:
            model.touched[r, chunk] = False
            for place in range(size_of(Y, chunk)):
                best = model.Q[0, r, chunk, place]
                for a in range(1, settings.actions):
                    best = max(best, model.Q[a, r, chunk, place])
                model.V[r, chunk, place] = min(R, best)


@inner
def moved_cones(model, h, a):
    """Put into the first queue the entries of (h, a) whose cone is not as M knows it; return how many."""
    settings, S = model.settings, model.S
    R, r = np.float64(settings.horizon - h), row(settings, h)
    count = 0
    for i in range(all_chunks(S, action_list(settings, h, a))):
        chunk = found(S, i)
        if model.touched[r, chunk]:
            model.touched[r, chunk] = False
            Q, cone = model.Q[0, r, chunk], model.cone[r, chunk]
            for place in range(size_of(S, chunk)):
                if abs(min(R, Q[place]) - cone[place]) > STILL:
                    model.queues[0, count] = chunk * WIDTH + place
                    count += 1
    return count


@inner
def disown(model, s, h, a, count):
    """Before the cone of slot `s` rises: make orphans of the next states that have it as their lowest."""
    settings, Y = model.settings, model.Y
    R, L, r = np.float64(settings.horizon - h), settings.lipschitz[h], row(settings, h)
    u = model.samples.states[0, model.index[s // WIDTH, s % WIDTH]]
    radius = cone_radius(R, model.cone[r, s // WIDTH, s % WIDTH], L)
    # Rounding may put a next state just beyond the radius within which it was found.
    for i in range(near(Y, settings.space, pool(settings, h), u, radius * (1.0 + 1e-12) + 1e-12)):
        chunk = found(Y, i)
        owner = model.owner[a, r, chunk]
        for place in range(size_of(Y, chunk)):
            if owner[place] == s:
                owner[place] = -1
                model.M[a, r, chunk, place] = R
                model.queues[1, count] = chunk * WIDTH + place
                count += 1
    return count


@inner
def drop_cone(model, s, h, a):
    """Lower M of action `a` under the cone of slot `s`."""
    settings, Y = model.settings, model.Y
    R, L, r = np.float64(settings.horizon - h), settings.lipschitz[h], row(settings, h)
    u = model.samples.states[0, model.index[s // WIDTH, s % WIDTH]]
    height = model.cone[r, s // WIDTH, s % WIDTH]
    for i in range(near(Y, settings.space, pool(settings, h), u, cone_radius(R, height, L))):
        chunk = found(Y, i)
        distances_in(Y, settings.space, chunk, u)
        M, owner = model.M[a, r, chunk], model.owner[a, r, chunk]
        for place in range(size_of(Y, chunk)):
            if height < M[place]:
                value = height + L * math.sqrt(Y.buffer[place])
                if value < M[place]:
                    M[place] = value
                    owner[place] = s


@inner
def move_cones(model, h, a):
    """Bring M of (h, a) up to date with Q̃."""
    settings = model.settings
    R, L, r = np.float64(settings.horizon - h), settings.lipschitz[h], row(settings, h)
    count = moved_cones(model, h, a)
    orphans = 0
    for i in range(count):
        s = model.queues[0, i]
        height = min(R, model.Q[0, r, s // WIDTH, s % WIDTH])
        if height > model.cone[r, s // WIDTH, s % WIDTH]:
            orphans = disown(model, s, h, a, orphans)
        model.cone[r, s // WIDTH, s % WIDTH] = height
    for i in range(count):
        s = model.queues[0, i]
        if model.cone[r, s // WIDTH, s % WIDTH] < R:
            drop_cone(model, s, h, a)
    which = action_list(settings, h, a)
    for i in range(orphans):
        y = model.queues[1, i]
        s = model.sample[y // WIDTH, y % WIDTH]
        v = model.samples.states[1, model.index[s // WIDTH, s % WIDTH]]
        best, slot = lowest_cone(model.S, settings.space, which, v, model.cone[r], L, R)
        model.M[a, r, y // WIDTH, y % WIDTH] = best
        model.owner[a, r, y // WIDTH, y % WIDTH] = slot


@inner
def values_with_interpolation(model, h):
    """V_h = max_a M_a, M being capped at R_h already."""
    settings, Y = model.settings, model.Y
    r = row(settings, h)
    for a in range(settings.actions):
        move_cones(model, h, a)
    for i in range(all_chunks(Y, pool(settings, h))):
        chunk = found(Y, i)
        V = model.V[r, chunk]
        V[:] = model.M[0, r, chunk]
        for a in range(1, settings.actions):
            M = model.M[a, r, chunk]
            for place in range(WIDTH):
                V[place] = max(V[place], M[place])


@inner
def clear(flags):
    """Set all flags to False."""
    for i in range(flags.size):
        flags[i] = False


@inner
def plan(model):
    """Bring everything up to date with all samples."""
    settings = model.settings
    H = settings.horizon
    for t in range(model.planned[0], model.samples.number[0]):
        add_sample(model, t)
    model.planned[0] = model.samples.number[0]
    model.planned[1] += 1
    for h in range(H - 1, -1, -1):
        if h + 1 < H:
            for i in range(moved_values(model, h + 1)):
                pass_on(model, model.queues[0, i], h)
        E = model.S if settings.interpolate else model.Y
        for a in range(settings.actions):
            which, k = entry_list(settings, h, a)
            renew_targets(model, E, which, k, h)
        if h == 0:
            clear(model.touched[row(settings, h)])  # V_0 is nobody's next value
        elif settings.interpolate:
            values_with_interpolation(model, h)
        else:
            values_without_interpolation(model, h)


# ------------------------------------------------------------------------------------------------------------ the verbs


@begin_episode.implement(KernelExact)
def begin_kernel(model):
    if model.settings.replan != DOUBLING or model.planned[1] == 0:
        plan(model)


@end_episode.implement(KernelExact)
def end_kernel(model):
    return None


@inner
def q_at(model, u, h, q):
    """Q_h(u, ·) into `q` (A,), for an embedded state."""
    settings = model.settings
    r = row(settings, h)
    for a in range(settings.actions):
        which = action_list(settings, h, a)
        if settings.interpolate:
            L = settings.lipschitz[h]
            q[a] = cones_at(model.S, settings.space, which, u, model.Q[0, r], L, math.inf, math.inf)
        else:
            C, T = sums_at(settings, model.S, which, u, model.G[r])
            q[a] = T / C + bonus_at(settings, h, C)


@choose.implement(KernelExact)
def choose_kernel(model, state, h):
    u, q = np.empty(state.size), np.empty(model.settings.actions)
    embed(model.settings.space, state, u)
    q_at(model, u, h, q)
    return pick_largest(q, model.stream)


@inner
def has_doubled(model, u, h, a):
    """Whether C of the newest sample's pair is at least twice what it is in the last plan."""
    settings, samples = model.settings, model.samples
    C, _ = sums_at(settings, model.S, action_list(settings, h, a), u, model.G[0])
    now = C
    for t in range(model.planned[0], samples.number[0]):
        if samples.labels[ACTION, t] == a and pool(settings, samples.labels[STEP, t]) == pool(settings, h):
            now += weight_between(settings, u, samples.states[0, t])
    return now >= 2.0 * C


@observe.implement(KernelExact)
def observe_kernel(model, state, action, reward, next_state, h, terminated):
    u, v = np.empty(state.size), np.empty(state.size)
    embed(model.settings.space, state, u)
    embed(model.settings.space, next_state, v)
    append_sample(model.samples, u, action, reward, v, h, terminated)
    replan = model.settings.replan
    if replan == EACH_STEP or (replan == DOUBLING and has_doubled(model, u, h, action)):
        plan(model)


@read_q.implement(KernelExact)
def read_q_kernel(model, state, h, out):
    u = np.empty(state.size)
    embed(model.settings.space, state, u)
    q_at(model, u, h, out)


@read_values.implement(KernelExact)
def read_values_kernel(model, state, h):
    u, q = np.empty(state.size), np.empty(model.settings.actions)
    embed(model.settings.space, state, u)
    q_at(model, u, h, q)
    return min(np.float64(model.settings.horizon - h), largest(q))


@read_counts.implement(KernelExact)
def read_counts_kernel(model, state, h, out):
    counts_at(model.settings, model.S, model.G[0], state, h, out)


@read_bonuses.implement(KernelExact)
def read_bonuses_kernel(model, state, h, out):
    counts_at(model.settings, model.S, model.G[0], state, h, out)
    for a in range(out.size):
        out[a] = bonus_at(model.settings, h, out[a])
