"""Greedy values on all samples.

V_h is stored at the next states, where P̂V needs it, and r + V_{h+1}(y) with each sample (`G`), so that r̂ + P̂V is a
weighted sum of G. V_h is L_h-Lipschitz, so a cone with Ṽ ≥ V_h(x) lowers V_h nowhere and is dropped. The others are
stored, because V_h at a new next state is the lowest of all cones there. With many samples, the sums are read from
nodes (`planning/node_sums.py`).
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.interface import count
from kernelrl.geometry.buckets import (
    FOUND,
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
    slots,
)
from kernelrl.geometry.interpolation import anything_above, cone_radius, cones_at, is_below, largest
from kernelrl.geometry.metrics import gap_squared
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, Rows, checks, require
from kernelrl.jit.prefetch import AHEAD, prefetch_chunk, prefetch_place
from kernelrl.planning.greedy import learn, targets_at, value_at, with_units
from kernelrl.planning.interface import bonuses_at, counts_at, for_settings, grown, plan_room, q_at
from kernelrl.planning.node_sums import (
    INVERSE_SIGMA2,
    NodeSums,
    add_change_at_nodes,
    add_sample_at_nodes,
    check_node_sums,
    filled,
    is_time_for_nodes,
    new_node_sums,
    node_targets,
    refilled,
    without_nodes,
)
from kernelrl.stores.estimates import list_bonuses, list_counts, list_targets
from kernelrl.stores.interface import add, grown_for, has_room_for, pool, samples_in
from kernelrl.stores.samples import action_list, has_next, lone_target, row
from kernelrl.stores.units import mapped

__all__ = ["GreedyExact", "new_greedy_exact"]

SLOT, STEP = range(2)  # of `arrival`


class GreedyExact(NamedTuple):
    """Values at next states, and the cones that made them."""

    S: Buckets  # states by pool and action
    G: Annotated[np.ndarray, Field("rows S.chunks S.width", of="S", least="Least", most="Most")]  # r + V_{h+1}(y)
    owner: Annotated[np.ndarray, Field("S.chunks", np.int64, fill=0)]  # the list of each chunk of S
    sums: NodeSums
    Y: Buckets  # next states by pool
    V: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]  # V_h(y)
    # no value of the chunk is above
    ceiling: Annotated[np.ndarray, Field("rows Y.chunks", infinite=True, fill=0)]
    # slot of the sample in S
    sample: Annotated[np.ndarray, Field("Y.chunks Y.width", np.int64, of="Y", index="S", fill=0)]
    # its reward, in the environment's units
    reward: Annotated[np.ndarray, Field("Y.chunks Y.width", of="Y", least="Lowest", most="Highest")]
    cones: Buckets  # states whose target lowered V_h, by step
    # targets Ṽ
    height: Annotated[np.ndarray, Field("cones.chunks cones.width", of="cones", least="Least", most="Most")]
    # the lowest target of each chunk
    lowest: Annotated[np.ndarray, Field("cones.chunks", infinite=True, least="Least", fill=np.inf)]
    floor: Annotated[np.ndarray, Field("H", infinite=True, least="Least")]  # the lowest target of each step
    # SLOT of the last sample's next state, or -1, and its STEP
    arrival: Annotated[np.ndarray, Rows(Field("", index="Y", none=True), Field("", least=-1, most="H"))]
    moments: bool  # whether the bonus needs Σwρ and Σw²
    q: Annotated[np.ndarray, Field("A", scratch=True)]
    queue: Annotated[np.ndarray, Field("256", np.int64, scratch=True)]  # slots of samples whose G changes
    coming: Annotated[np.ndarray, Field("256", scratch=True)]  # and what it will be


def new_greedy_exact(settings, low, high, cell, cone_cell, moments):
    """Values without data, for embeddings in the box [low, high] (d,); cells as given by `cell_widths`."""
    H, A = settings.horizon, settings.actions
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    Y = new_buckets(pools, low, high, cone_cell)
    cones = new_buckets(H, low, high, cone_cell)
    return GreedyExact(
        S, payload(S, rows), np.zeros(number_of_chunks(S), np.int64),
        new_node_sums(settings, low, high, pools * A, rows, moments),
        Y, payload(Y, rows), np.zeros((rows, number_of_chunks(Y))), payload(Y, dtype=np.int64), payload(Y),
        cones, payload(cones), np.full(number_of_chunks(cones), np.inf), np.full(H, np.inf), np.full(2, -1, np.int64),
        bool(moments), np.zeros(A), np.zeros(256, np.int64), np.zeros(256),
    )  # fmt: skip


@checks(GreedyExact)
def check_greedy_exact(where, values):
    """Chunks have their own lists and no values above their ceilings, and sums at nodes fit the samples."""
    lists = lists_of(values.S)
    require(np.array_equal(values.owner, np.maximum(lists, 0)), f"{where}owner", "a chunk is of another list")
    below = (values.V <= values.ceiling[:, :, None]) | ~slots(values.Y)[:, : values.V.shape[2]]
    require(below.all(), f"{where}ceiling", "a value is above it")
    used = slots(values.S).reshape(-1)
    check_node_sums(f"{where}sums.", values.sums, values.S.ends.shape[1], values.G.shape[0], used)


@plan_room.implement(GreedyExact)
def greedy_exact_room(plan, settings, store):
    H = settings.horizon
    if is_time_for_nodes(plan.sums, samples_in(store)):
        return False
    left = min(chunks_left(plan.S), min(chunks_left(plan.Y), chunks_left(plan.cones)))
    return left >= H and has_room_for(store, settings, H)


@grown.implement_plain(GreedyExact)
def grow_greedy_exact(values, settings, samples):
    H = settings.horizon
    samples = grown_for(samples, settings, H)
    if chunks_left(values.S) < H:
        chunks = more(number_of_chunks(values.S))
        values = values._replace(
            S=grow_buckets(values.S, chunks),
            G=lengthen(values.G, chunks, 1),
            owner=lengthen(values.owner, chunks, 0),
        )
    if chunks_left(values.Y) < H:
        chunks = more(number_of_chunks(values.Y))
        values = values._replace(
            Y=grow_buckets(values.Y, chunks),
            V=lengthen(values.V, chunks, 1),
            ceiling=lengthen(values.ceiling, chunks, 1),
            sample=lengthen(values.sample, chunks, 0),
            reward=lengthen(values.reward, chunks, 0),
        )
    if chunks_left(values.cones) < H:
        chunks = more(number_of_chunks(values.cones))
        values = values._replace(
            cones=grow_buckets(values.cones, chunks),
            height=lengthen(values.height, chunks, 0),
            lowest=lengthen(values.lowest, chunks, 0, np.inf),
        )
    if is_time_for_nodes(values.sums, samples_in(samples)):
        values = values._replace(sums=filled(values.sums, values.S, values.owner, values.G))
    return values, samples


@for_settings.implement_plain(GreedyExact)
def greedy_exact_for_settings(plan, settings, new):
    if settings.inverse_sigma2 == plan.sums.limits[INVERSE_SIGMA2]:
        return plan
    return plan._replace(sums=without_nodes(plan.sums))


def fallen(values, left, keep):
    """Values with `keep` times their distance from the cap, `left`; infinite values stay."""
    known = np.isfinite(values)
    return np.where(known, left - keep * (left - np.where(known, values, 0.0)), values)


@with_units.implement_plain(GreedyExact)
def greedy_exact_with_units(values, settings, store, old, keep):
    H, new, stationary, Y = settings.horizon, settings.units, settings.stationary, values.Y
    # The number of remaining steps for the values of each row, or of each chunk.
    rows = (H - np.arange(H))[:, None, None]
    used = slots(Y)[:, : values.V.shape[2]]  # the others stay 0: the first row, which nobody reads, is never written
    V = np.where(used, fallen(values.V, rows if stationary else (H - lists_of(Y))[None, :, None], keep), 0.0)
    by_cone = H - lists_of(values.cones)
    # G also includes the sample's own step; for a sample without next state only the reward changes units.
    left = rows if stationary else (H - lists_of(values.S) // settings.actions)[None, :, None]
    G = (values.G / old.factor + (old.low - new.low) * left) * new.factor
    y = np.flatnonzero(np.arange(WIDTH) < Y.chain[SIZE][:, None])
    s, reward = values.sample.reshape(-1)[y], values.reward.reshape(-1)[y]
    for r in range(len(G)):
        if r + 1 < H or not stationary:
            following = V[r + 1 if stationary else 0].reshape(-1)[y]
            G[r].reshape(-1)[s] = (reward - new.low) * new.factor + following
    return values._replace(
        G=G,
        sums=refilled(values.sums, values.S, values.owner, G),
        V=V,
        ceiling=V.max(axis=2, initial=0.0),
        height=fallen(values.height, by_cone[:, None], keep),
        lowest=fallen(values.lowest, by_cone, keep),
        floor=fallen(values.floor, H - np.arange(H), keep),
    )


@targets_at.implement(GreedyExact)
def greedy_exact_targets(values, settings, store, x, h, q):
    if values.moments:
        list_targets(settings, values.S, values.G[row(settings, h)], x, h, True, q)
    else:
        node_targets(settings, values.sums, values.S, values.owner, values.G, row(settings, h), x, h, q)
    return True


@value_at.implement(GreedyExact)
def greedy_exact_value(values, settings, store, x, h):
    R, L = np.float64(settings.horizon - h), settings.lipschitz[h]
    # Cones of the same cell first: their result excludes most others by their distance.
    best = cones_at(values.cones, settings.space, h, x, values.height, values.lowest, L, 0.0, R)
    radius = cone_radius(best, values.floor[h], L)
    return cones_at(values.cones, settings.space, h, x, values.height, values.lowest, L, radius, best)


@inner
def current_value(values, settings, store, x, h):
    """V_h(x); if `x` is the last sample's next state, as usual, its stored value is up to date."""
    y = values.arrival[SLOT]
    known = y >= 0 and values.arrival[STEP] == h
    for j in range(x.size):
        known = known and values.Y.points[y // WIDTH, j, y % WIDTH] == x[j]
    if known:
        return values.V[row(settings, h), y // WIDTH, y % WIDTH]
    return value_at(values, settings, store, x, h)


@inner
def lower(values, settings, store, x, h, target):
    """V_h(·) ← min(V_h(·), target + L_h·ρ(·, x)), at the cones and at the next states."""
    Y = values.Y
    if target >= current_value(values, settings, store, x, h):
        return
    slot = add_point(values.cones, h, x)
    values.height[slot // WIDTH, slot % WIDTH] = target
    values.lowest[slot // WIDTH] = min(values.lowest[slot // WIDTH], target)
    values.floor[h] = min(values.floor[h], target)
    if h == 0:
        return  # V_0 is never a next value
    R, L = np.float64(settings.horizon - h), settings.lipschitz[h]
    V, ceiling, number = values.V[row(settings, h)], values.ceiling[row(settings, h)], 0
    count = chunks_above(Y, settings.space, pool(settings, h), x, target, L, R, ceiling)
    for i in range(count):
        chunk = found(Y, i)
        if i + AHEAD < count:
            prefetch_chunk(Y.points, V, found(Y, i + AHEAD), size_of(Y, found(Y, i + AHEAD)))
        if not anything_above(V, chunk, distances_in(Y, settings.space, chunk, x), Y.buffer, target, L * L):
            continue
        for place in range(size_of(Y, chunk)):
            if not is_below(target, L, Y.buffer[place], V[chunk, place]):
                continue
            value = target + L * math.sqrt(Y.buffer[place])
            if value < V[chunk, place]:
                V[chunk, place] = value
                number = note_change(values, settings, h - 1, chunk, place, value, number)
        ceiling[chunk] = largest(V, chunk, size_of(Y, chunk))
    make_changes(values, settings, h - 1, number)


@inner
def chunks_above(Y, space, which, x, target, L, R, ceiling):
    """Find the chunks of `which` where a cone may lie below a value: chain[FOUND, :n]; return n."""
    n = 0
    for i in range(near(Y, space, which, x, cone_radius(R, target, L))):
        chunk = found(Y, i)
        above = ceiling[chunk] - target
        if above > 0.0 and L * L * gap_squared(space, Y.box, chunk, x) < above * above:
            Y.chain[FOUND, n] = chunk
            n += 1
    return n


@inner
def note_change(values, settings, h, chunk, place, value, number):
    """Note in the queue, which has `number` entries, that V_{h+1} is `value` there; return how many there are now."""
    if number == values.queue.size:
        make_changes(values, settings, h, number)
        number = 0
    s = values.sample[chunk, place]
    values.queue[number] = s
    values.coming[number] = mapped(settings.units, values.reward[chunk, place]) + value
    # A sample is anywhere in memory, and its place is needed soon.
    prefetch_place(values.S.points, values.G, row(settings, h), s // WIDTH, s % WIDTH)
    return number + 1


@inner
def make_changes(values, settings, h, number):
    """Make the changes of G_h that are in the queue."""
    r = row(settings, h)
    for i in range(number):
        add_change_at_nodes(values.sums, values.S, values.owner, values.G, r, values.queue[i], values.coming[i])


@learn.implement(GreedyExact)
def greedy_exact_learn(values, settings, store, x, action, reward, y, h, terminated, known, best):
    H, q = settings.horizon, values.q
    if not known:
        targets_at(values, settings, store, x, h, q)
        best = q[0]
        for a in range(1, q.size):
            best = max(best, q[a])
    lower(values, settings, store, x, h, min(np.float64(H - h), best))
    add(store, settings, x, action, reward, y, h, terminated)
    count(settings.bonus, h)
    s = add_point(values.S, action_list(settings, h, action), x)
    values.owner[s // WIDTH] = action_list(settings, h, action)
    for r in range(values.G.shape[0]):
        level = r if settings.stationary else h
        values.G[r, s // WIDTH, s % WIDTH] = lone_target(settings, level, reward, terminated)
    values.arrival[SLOT] = -1
    if has_next(settings, h, terminated):
        add_next_state(values, settings, store, y, reward, h, s)
    add_sample_at_nodes(values.sums, values.S, values.owner, values.G, s)


@inner
def add_next_state(values, settings, store, v, reward, h, s):
    """Add `v`, reached from step `h` by the sample in slot `s`, to Y."""
    H = settings.horizon
    first, last = (1, H - 1) if settings.stationary else (h + 1, h + 1)
    y = add_point(values.Y, pool(settings, h + 1), v)
    values.arrival[SLOT], values.arrival[STEP] = y, h + 1
    values.sample[y // WIDTH, y % WIDTH] = s
    values.reward[y // WIDTH, y % WIDTH] = reward
    for level in range(first, last + 1):
        value = value_at(values, settings, store, v, level)
        values.V[row(settings, level), y // WIDTH, y % WIDTH] = value
        ceiling = values.ceiling[row(settings, level)]
        ceiling[y // WIDTH] = max(ceiling[y // WIDTH], value)
        values.G[row(settings, level - 1), s // WIDTH, s % WIDTH] = mapped(settings.units, reward) + value


@q_at.implement(GreedyExact)
def greedy_exact_q(plan, settings, store, side, x, h, q):
    # Not from the nodes, which take in samples when they are read: then reading would change how sums are rounded.
    list_targets(settings, plan.S, plan.G[row(settings, h)], x, h, plan.moments, q)


@counts_at.implement(GreedyExact)
def greedy_exact_counts(plan, settings, store, x, h, out):
    list_counts(settings, plan.S, plan.G[0], x, h, out)


@bonuses_at.implement(GreedyExact)
def greedy_exact_bonuses(plan, settings, store, x, h, out):
    list_bonuses(settings, plan.S, plan.G[0], x, h, plan.moments, out)
