"""Greedy-Kernel-UCBVI (paper, algorithm 3), exact: every sample is kept.

With V_h = R_h = H-h at first, at each visited state x of step h

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)             from the data before this transition
    a          = argmax Q̃_h(x, ·)
    Ṽ          = min(R_h, max_a Q̃_h(x, a))
    V_h(·)     ← min(V_h(·), Ṽ + L_h·ρ(·, x))                      a cone

V_h is kept where P̂V needs it, at the next states, as r + V_{h+1}(y) beside each sample (`G`), so that P̂V is a weighted
sum like any other. V_h is L_h-Lipschitz, so a cone with Ṽ ≥ V_h(x) lowers nothing anywhere and is dropped; the others
are stored, since a new next state needs V_h there, which is the lowest of all cones.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.smoothed import count_sample
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
from kernelrl.geometry.buckets import (
    SIZE,
    WIDTH,
    Buckets,
    add_point,
    chunks_left,
    distances_in,
    found,
    grow_buckets,
    lengthen,
    lists_of,
    more,
    near,
    new_buckets,
    number_of_chunks,
    payload,
    size_of,
)
from kernelrl.geometry.interpolation import anything_above, cone_radius, cones_at, is_below
from kernelrl.geometry.metrics import embed
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, Rows
from kernelrl.stores.estimates import bonuses_at, counts_at, targets_at
from kernelrl.stores.samples import (
    Samples,
    Settings,
    action_list,
    append_sample,
    grow_samples,
    has_next,
    lone_target,
    new_samples,
    pool,
    row,
    sample_room,
)
from kernelrl.stores.units import mapped

__all__ = ["GreedyExact", "new_greedy_exact"]


class GreedyExact(NamedTuple):
    """The state of Greedy-Kernel-UCBVI on all samples."""

    settings: Settings
    samples: Samples
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    S: Buckets  # states by pool and action
    G: Annotated[np.ndarray, Field("rows S.chunks S.width", of="S", least="Least", most="Most")]  # r + V_{h+1}(y)
    Y: Buckets  # next states by pool
    V: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]  # V_h(y)
    # slot of the sample in S
    sample: Annotated[np.ndarray, Field("Y.chunks Y.width", np.int64, of="Y", index="S", fill=0)]
    # its reward, in the environment's units
    reward: Annotated[np.ndarray, Field("Y.chunks Y.width", of="Y", least="Lowest", most="Highest")]
    cones: Buckets  # states whose target lowered V_h, by step
    # targets Ṽ
    height: Annotated[np.ndarray, Field("cones.chunks cones.width", of="cones", least="Least", most="Most")]
    # the lowest of them
    lowest: Annotated[np.ndarray, Field("cones.chunks", infinite=True, least="Least", fill=np.inf)]
    floor: Annotated[np.ndarray, Field("H", infinite=True, least="Least")]  # the lowest target of each step
    # an embedded state, an embedded next state, Q of each action
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]
    # slot of the last sample's next state, or -1, and its step
    arrival: Annotated[np.ndarray, Rows(Field("", index="Y", none=True), Field("", least=-1, most="H"))]
    # the last target computed, and for which state, step and number of samples
    memo: Annotated[np.ndarray, Field("samples.d+3", scratch=True, fill=-1)]


def new_greedy_exact(settings, stream, low, high, cell, cone_cell):
    """The state before any data, for embeddings in the box [low, high] (d,); cells as `cell_widths` gives them."""
    H, A, d = settings.horizon, settings.actions, low.size
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    Y = new_buckets(pools, low, high, cone_cell)
    cones = new_buckets(H, low, high, cone_cell)
    model = GreedyExact(
        settings, new_samples(d, 4 * H), stream,
        S, payload(S, rows), Y, payload(Y, rows), payload(Y, dtype=np.int64), payload(Y),
        cones, payload(cones), np.full(number_of_chunks(cones), np.inf), np.full(H, np.inf),
        np.zeros((3, max(d, A))), np.full(2, -1, np.int64), np.full(d + 3, -1.0),
    )  # fmt: skip
    while not has_room(model):
        model = grow(model)
    return model


@has_room.implement(GreedyExact)
def has_room_greedy(model):
    H = model.settings.horizon
    left = min(chunks_left(model.S), min(chunks_left(model.Y), chunks_left(model.cones)))
    return left >= H and sample_room(model.samples) >= H


@grow.implement_plain(GreedyExact)
def grow_greedy(model):
    H = model.settings.horizon
    if sample_room(model.samples) < H:
        model = model._replace(samples=grow_samples(model.samples, more(model.samples.reward.size)))
    if chunks_left(model.S) < H:
        chunks = more(number_of_chunks(model.S))
        model = model._replace(S=grow_buckets(model.S, chunks), G=lengthen(model.G, chunks, 1))
    if chunks_left(model.Y) < H:
        chunks = more(number_of_chunks(model.Y))
        model = model._replace(
            Y=grow_buckets(model.Y, chunks),
            V=lengthen(model.V, chunks, 1),
            sample=lengthen(model.sample, chunks, 0),
            reward=lengthen(model.reward, chunks, 0),
        )
    if chunks_left(model.cones) < H:
        chunks = more(number_of_chunks(model.cones))
        model = model._replace(
            cones=grow_buckets(model.cones, chunks),
            height=lengthen(model.height, chunks, 0),
            lowest=lengthen(model.lowest, chunks, 0, np.inf),
        )
    return model


@rescaled.implement_plain(GreedyExact)
def rescale_greedy(model, settings, keep):
    H, old, new = settings.horizon, model.settings.units, settings.units
    stationary, Y = settings.stationary, model.Y

    def lowered(values, left):
        known = np.isfinite(values)  # infinite where there is nothing
        return np.where(known, left - keep * (left - np.where(known, values, 0.0)), values)

    # How many steps are left at the values of each row, or of each chunk.
    rows = (H - np.arange(H))[:, None, None]
    left = rows if stationary else (H - lists_of(Y))[None, :, None]
    V = lowered(model.V, left)
    by_cone = H - lists_of(model.cones)
    # What G holds counts the sample's own step, too; of a sample without next state the reward alone changes units.
    left = rows if stationary else (H - lists_of(model.S) // settings.actions)[None, :, None]
    G = (model.G / old.factor + (old.low - new.low) * left) * new.factor
    y = np.flatnonzero(np.arange(WIDTH) < Y.chain[SIZE][:, None])
    s, reward = model.sample.reshape(-1)[y], model.reward.reshape(-1)[y]
    for r in range(len(G)):
        if r + 1 < H or not stationary:
            following = V[r + 1 if stationary else 0].reshape(-1)[y]
            G[r].reshape(-1)[s] = (reward - new.low) * new.factor + following
    model.memo[:] = -1.0
    return model._replace(
        settings=settings,
        G=G,
        V=V,
        height=lowered(model.height, by_cone[:, None]),
        lowest=lowered(model.lowest, by_cone),
        floor=lowered(model.floor, H - np.arange(H)),
    )


@inner
def value_at(settings, cones, height, lowest, floor, u, h):
    """V_h(u) = min(R_h, lowest cone at u), for an embedded state."""
    R, L = np.float64(settings.horizon - h), settings.lipschitz[h]
    return cones_at(cones, settings.space, h, u, height, lowest, L, cone_radius(R, floor[h], L), R)


@inner
def best_target(model, u, h):
    """max_a Q̃_h(u, a); `choose` has computed it already in the usual course of things."""
    memo, d = model.memo, u.size
    known = memo[d] == h and memo[d + 1] == model.samples.number[0]
    for j in range(d):
        known = known and memo[j] == u[j]
    if known:
        return memo[d + 2]
    q = model.scratch[2, : model.settings.actions]
    targets_at(model.settings, model.S, model.G[row(model.settings, h)], u, h, q)
    return largest(q)


@choose.implement(GreedyExact)
def choose_greedy(model, state, h):
    u, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, u)
    targets_at(model.settings, model.S, model.G[row(model.settings, h)], u, h, q)
    memo, d = model.memo, u.size
    for j in range(d):
        memo[j] = u[j]
    memo[d], memo[d + 1], memo[d + 2] = h, model.samples.number[0], largest(q)
    return pick_largest(q, model.stream)


@inner
def current_value(model, u, h):
    """V_h(u); if `u` is the next state of the last sample, as it usually is, its value is kept up to date already."""
    y = np.int64(model.arrival[0])
    known = y >= 0 and model.arrival[1] == h
    for j in range(u.size):
        known = known and model.Y.points[y // WIDTH, j, y % WIDTH] == u[j]
    if known:
        return model.V[row(model.settings, h), y // WIDTH, y % WIDTH]
    return value_at(model.settings, model.cones, model.height, model.lowest, model.floor, u, h)


@inner
def lower(model, u, h, target):
    """V_h(·) ← min(V_h(·), target + L_h·ρ(·, u)), at the cones and at the next states."""
    settings, Y = model.settings, model.Y
    if target >= current_value(model, u, h):
        return
    slot = add_point(model.cones, h, u)
    model.height[slot // WIDTH, slot % WIDTH] = target
    model.lowest[slot // WIDTH] = min(model.lowest[slot // WIDTH], target)
    model.floor[h] = min(model.floor[h], target)
    if h == 0:
        return  # V_0 is nobody's next value
    R, L = np.float64(settings.horizon - h), settings.lipschitz[h]
    V, G = model.V[row(settings, h)], model.G[row(settings, h - 1)]
    for i in range(near(Y, settings.space, pool(settings, h), u, cone_radius(R, target, L))):
        chunk = found(Y, i)
        if not anything_above(V, chunk, distances_in(Y, settings.space, chunk, u), Y.buffer, target, L * L):
            continue
        for place in range(size_of(Y, chunk)):
            if not is_below(target, L, Y.buffer[place], V[chunk, place]):
                continue
            value = target + L * math.sqrt(Y.buffer[place])
            if value < V[chunk, place]:
                V[chunk, place] = value
                s = model.sample[chunk, place]
                G[s // WIDTH, s % WIDTH] = mapped(settings.units, model.reward[chunk, place]) + value


@observe.implement(GreedyExact)
def observe_greedy(model, state, action, reward, next_state, h, terminated):
    settings, H = model.settings, model.settings.horizon
    u, v = model.scratch[0, : state.size], model.scratch[1, : state.size]
    embed(settings.space, state, u)
    lower(model, u, h, min(np.float64(H - h), best_target(model, u, h)))
    embed(settings.space, next_state, v)
    append_sample(model.samples, u, action, reward, v, h, terminated)
    count_sample(settings, h)
    s = add_point(model.S, action_list(settings, h, action), u)
    for r in range(model.G.shape[0]):
        level = r if settings.stationary else h
        model.G[r, s // WIDTH, s % WIDTH] = lone_target(settings, level, reward, terminated)
    model.arrival[0] = -1
    if not has_next(settings, h, terminated):
        return
    first, last = (1, H - 1) if settings.stationary else (h + 1, h + 1)
    y = add_point(model.Y, pool(settings, h + 1), v)
    model.arrival[0], model.arrival[1] = y, h + 1
    model.sample[y // WIDTH, y % WIDTH] = s
    model.reward[y // WIDTH, y % WIDTH] = reward
    for level in range(first, last + 1):
        value = value_at(model.settings, model.cones, model.height, model.lowest, model.floor, v, level)
        model.V[row(settings, level), y // WIDTH, y % WIDTH] = value
        model.G[row(settings, level - 1), s // WIDTH, s % WIDTH] = mapped(settings.units, reward) + value


@read_q.implement(GreedyExact)
def read_q_greedy(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    targets_at(model.settings, model.S, model.G[row(model.settings, h)], u, h, out)


@read_values.implement(GreedyExact)
def read_values_greedy(model, state, h):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    return value_at(model.settings, model.cones, model.height, model.lowest, model.floor, u, h)


@read_counts.implement(GreedyExact)
def read_counts_greedy(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    counts_at(model.settings, model.S, model.G[0], u, h, out)


@read_bonuses.implement(GreedyExact)
def read_bonuses_greedy(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    bonuses_at(model.settings, model.S, model.G[0], u, h, out)
