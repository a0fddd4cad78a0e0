"""Greedy-Kernel-UCBVI (paper, algorithm 3) on representative states (paper, section 6).

With V_h = R_h at first, and the estimates of `kernelrl.stores.merged`, at each visited state, of representative u,

    Q̃_h(u, a) = Σ_v w(u, v)·W_h(v, a)/C(u, a) + B_h(u, a)          from the data before this transition
    a          = argmax Q̃_h(u, ·)
    V_h(u)     ← min(V_h(u), max_a Q̃_h(u, a))

and, with interpolation, V_h(·) ← min(V_h(·), max_a Q̃_h(u, a) + L_h·ρ(·, u)) at all representatives.

W_h(v, a) = s(v, a) + Σ_y n(v, a, y)·V_{h+1}(y) is kept up to date: a new sample adds its reward and V_{h+1}(y) to its
pair, and where V_{h+1}(y) falls, the pairs that led to y are told. So one step costs one sum over the neighbours of u.

V_h is L_h-Lipschitz on representatives, so its value at any other state is the lowest of V_h(u) + L_h·ρ(·, u).
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.episodes.verbs import (
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
from kernelrl.geometry.buckets import check_memory, lengthen
from kernelrl.geometry.metrics import embed
from kernelrl.geometry.representatives import find, find_or_add, list_of, square_to
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, checks, require
from kernelrl.stores.merged import (
    JOINED,
    SAMPLES,
    Merged,
    add_transition,
    bonus_of,
    capacity_of,
    estimates_elsewhere,
    grow_merged,
    join,
    merged_room,
    new_merged,
    note_start,
    reading_bias,
    smooth_row,
)
from kernelrl.stores.samples import Settings, has_next, lone_target, pool
from kernelrl.stores.transitions import entries_of, pass_back

__all__ = ["GreedyMerged", "new_greedy_merged"]


class GreedyMerged(NamedTuple):
    """The state of Greedy-Kernel-UCBVI on representative states."""

    settings: Settings
    merged: Merged
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    W: Annotated[np.ndarray, Field("H U Columns", fill=0)]
    V: Annotated[np.ndarray, Field("H U", least="Least", most="Most")]
    smoothed: Annotated[np.ndarray, Field("U Columns", scratch=True)]  # T_h
    # an embedded state, an embedded next state, Q of each action
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]
    # the last target computed, and for which representative, step and number of samples
    memo: Annotated[np.ndarray, Field("4", scratch=True, fill=-1)]


@checks(GreedyMerged)
def check_greedy_merged(where, model):
    """All representatives have joined."""
    joined, number = model.merged.clock[JOINED], model.merged.reps.number[0]
    require(joined == number, f"{where}merged.clock", f"{joined} of {number} representatives have joined")


def new_greedy_merged(settings, stream, low, high, *options):
    """The state before any data, for embeddings in the box [low, high] (d,); `options` are `new_merged`'s."""
    merged = new_merged(settings, low, high, *options)
    H, U, columns = settings.horizon, capacity_of(merged.reps), merged.C.shape[2]
    check_memory((H, U, columns))
    model = GreedyMerged(
        settings, merged, stream, np.zeros((H, U, columns)), np.zeros((H, U)),
        np.zeros((U, columns)), np.zeros((3, max(len(low), settings.actions))), np.full(4, -1.0),
    )  # fmt: skip
    while not has_room(model):
        model = grow(model)
    return model


@has_room.implement(GreedyMerged)
def has_room_greedy_merged(model):
    return merged_room(model.merged, model.settings.horizon, 0)


@grow.implement_plain(GreedyMerged)
def grow_greedy_merged(model):
    merged = grow_merged(model.merged, model.settings, model.settings.horizon)
    U = capacity_of(merged.reps)
    return model._replace(
        merged=merged,
        W=lengthen(model.W, U, 1),
        V=lengthen(model.V, U, 1),
        smoothed=lengthen(model.smoothed, U, 0),
    )


@rescaled.implement_plain(GreedyMerged)
def rescale_greedy_merged(model, settings, keep):
    merged, R = model.merged, np.arange(settings.horizon, 0, -1.0)[:, None]
    V = R - keep * (R - model.V)
    W, units = np.zeros_like(model.W), settings.units
    entries = [entries_of(merged.transitions, p) for p in range(len(merged.N))]
    for h in range(settings.horizon):
        p = min(h, len(entries) - 1)  # one pool, or one per step
        after = units.nothing * (settings.horizon - h - 1)
        W[h] = (merged.rewards[p] - units.low * merged.N[p]) * units.factor + after * merged.ended[p]
        if h + 1 < settings.horizon:
            y, pairs, counts = entries[p]
            np.add.at(W[h].reshape(-1), pairs, counts * V[h + 1, y])
    model.memo[:] = -1.0
    return model._replace(settings=settings, V=V, W=W)


@inner
def targets_of(model, u, h, q):
    """Q̃_h(u, ·) of a representative into `q` (A,)."""
    settings, merged, p = model.settings, model.merged, pool(model.settings, h)
    smooth_row(merged.reps.weights, u, model.W[h], model.smoothed)
    for a in range(q.size):
        C = merged.C[p, u, a]
        q[a] = model.smoothed[u, a] / C + bonus_of(settings, merged, h, u, a, C)


@inner
def targets_at(model, x, h, q):
    """Q̃_h(x, ·) into `q` (A,), for an embedded state; return its representative, or -1."""
    settings, merged = model.settings, model.merged
    u = find(merged.reps, settings.space, x)
    if u >= 0:
        targets_of(model, u, h, q)
        return u
    estimates_elsewhere(settings, merged, h, x, model.W[h], merged.reps.number[0])
    for a in range(q.size):
        C = merged.sums[0, a]
        q[a] = merged.sums[1, a] / C + bonus_of(settings, merged, h, -1, a, C)
    return u


@choose.implement(GreedyMerged)
def choose_greedy_merged(model, state, h):
    x, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, x)
    u = targets_at(model, x, h, q)
    memo = model.memo
    memo[0], memo[1], memo[2], memo[3] = largest(q), u, h, model.merged.clock[SAMPLES]
    return pick_largest(q, model.stream)


@inner
def value_at(model, x, h):
    """V_h at an embedded state: of its representative, or else the lowest cone there."""
    settings, merged = model.settings, model.merged
    u = find(merged.reps, settings.space, x)
    if u >= 0:
        R = np.float64(settings.horizon - h)
        return min(R, model.V[h, u] + reading_bias(settings, merged, u, x, h))
    return lowest_cone(model, x, h, merged.reps.number[0])


@inner
def lowest_cone(model, x, h, U):
    """min(R_h, V_h(u) + L_h·ρ(x, u)) over the first `U` representatives; R_h without interpolation."""
    settings, value = model.settings, np.float64(model.settings.horizon - h)
    if settings.interpolate:
        for u in range(U):
            square = square_to(model.merged.reps, settings.space, u, x)
            value = min(value, model.V[h, u] + settings.lipschitz[h] * math.sqrt(square))
    return value


@inner
def representative(model, x):
    """The representative of a state that was visited; a new one joins and takes its values from the others."""
    u = find_or_add(model.merged.reps, model.settings, x)
    if u == model.merged.clock[JOINED]:
        join(model.settings, model.merged, u)
        for h in range(model.settings.horizon):
            model.V[h, u] = lowest_cone(model, x, h, u)
    return u


@inner
def lower(model, u, h, target):
    """V_h(·) ← min(V_h(·), target + L_h·ρ(·, u)), or at `u` alone without interpolation."""
    if target >= model.V[h, u]:
        return
    if not model.settings.interpolate:
        set_value(model, u, h, target)
        return
    near, L = model.merged.reps.cones, model.settings.lipschitz[h]
    start, end = list_of(near, u)
    for j in range(start, end):
        y, value = near.index[j], target + L * near.amount[j]
        if value < model.V[h, y]:
            set_value(model, y, h, value)


@inner
def set_value(model, y, h, value):
    """V_h(y) = value, and W_{h-1} of the pairs that led to `y`."""
    fall = value - model.V[h, y]
    model.V[h, y] = value
    if h == 0:
        return  # V_0 is nobody's next value
    W = model.W[h - 1]
    pass_back(model.merged.transitions, pool(model.settings, h - 1), y, fall, W.reshape(W.size))


@observe.implement(GreedyMerged)
def observe_greedy_merged(model, state, action, reward, next_state, h, terminated):
    settings, merged, memo, H = model.settings, model.merged, model.memo, model.settings.horizon
    x, q = model.scratch[0, : state.size], model.scratch[2, : settings.actions]
    embed(settings.space, state, x)
    if h == 0:
        note_start(merged, x)
    u = representative(model, x)
    if not (memo[1] == u and memo[2] == h and memo[3] == merged.clock[SAMPLES]):
        targets_of(model, u, h, q)
        memo[0] = largest(q)
    lower(model, u, h, memo[0])
    embed(settings.space, next_state, x)
    v = representative(model, x)
    alive = has_next(settings, h, terminated)
    add_transition(settings, merged, h, u, action, reward, v if alive else -1, terminated)
    first, last = (0, H - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        value = model.V[level + 1, v] if alive and level + 1 < H else 0.0
        model.W[level, u, action] += lone_target(settings, level, reward, terminated) + value


@read_q.implement(GreedyMerged)
def read_q_greedy_merged(model, state, h, out):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    u = targets_at(model, x, h, out)
    for a in range(out.size):
        out[a] += reading_bias(model.settings, model.merged, u, x, h)


@read_values.implement(GreedyMerged)
def read_values_greedy_merged(model, state, h):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    return value_at(model, x, h)


@inner
def counts_of(model, x, h, out):
    """C_h(x, ·) into `out` (A,); return the representative, or -1."""
    settings, merged = model.settings, model.merged
    u = find(merged.reps, settings.space, x)
    if u < 0:
        estimates_elsewhere(settings, merged, h, x, model.W[h], merged.reps.number[0])
    for a in range(out.size):
        out[a] = merged.sums[0, a] if u < 0 else merged.C[pool(settings, h), u, a]
    return u


@read_counts.implement(GreedyMerged)
def read_counts_greedy_merged(model, state, h, out):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    counts_of(model, x, h, out)


@read_bonuses.implement(GreedyMerged)
def read_bonuses_greedy_merged(model, state, h, out):
    x = model.scratch[0, : state.size]
    embed(model.settings.space, state, x)
    u = counts_of(model, x, h, out)
    for a in range(out.size):
        out[a] = bonus_of(model.settings, model.merged, h, u, a, out[a])
