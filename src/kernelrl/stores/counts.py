"""Sparse counts of transitions between the cells of a grid: only visited pairs take memory.

For each pair (x, a) of a pool of data (all steps together, or one pool per step) there are the number of visits n, the
sum of rewards, and how often each successor y followed. From them

    r̂ = Σr/n,   P̂V = Σ_y n(y)·V(y)/n

Successors are stored in chained blocks of BLOCK places. An unused place repeats the block's first successor with
n(y) = 0: adding zero costs less than a branch that is hard to predict. Terminal successors are only counted; `units`
gives their value. Rewards are summed raw and mapped to [0, 1] when they are used.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.counted import Counted
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.grid import Grid
from kernelrl.jit.compile import SUMS, inner
from kernelrl.jit.fields import Field, Rows, checks, require
from kernelrl.stores.interface import add, grown_for, has_ended, has_room_for, pool, samples_in
from kernelrl.stores.units import Units, mapped_sum

__all__ = [
    "BLOCK",
    "BLOCKS",
    "BONUS_ROOT",
    "INVERSE",
    "VISITS",
    "CountSettings",
    "Counts",
    "new_counts",
    "pair_of",
    "tally",
    "total_of",
]

BLOCK = 8
VISITS, REWARD, INVERSE, BONUS_ROOT, ENDED = range(5)  # of `pairs`
BLOCKS, TRANSITIONS = range(2)  # of `number`


class CountSettings(NamedTuple):
    """The hyper-parameters of the algorithms that keep counts."""

    horizon: int  # H
    actions: int  # A
    stationary: bool
    replan: int
    minimum: bool
    units: Units
    grid: Grid
    bonus: Counted


class Counts(NamedTuple):
    """The counts. A pair's number is (pool·X + x)·A + a."""

    pairs: Annotated[
        np.ndarray, Field("Pairs 5")
    ]  # VISITS n, sum of REWARD (raw), INVERSE 1/n, BONUS_ROOT root/√n, ENDED
    # first block of successors, or -1
    first: Annotated[np.ndarray, Field("Pairs", np.int32, index="Blocks", none=True)]
    successor: Annotated[np.ndarray, Field("Blocks 8", np.uint32, index="X")]  # y
    times: Annotated[np.ndarray, Field("Blocks 8", least=0, fill=0)]  # n(y)
    # next block of the same pair, or -1
    following: Annotated[np.ndarray, Field("Blocks", np.int32, index="Blocks", none=True, fill=-1)]
    number: Annotated[np.ndarray, Rows(Field("", counts="Blocks"), Field(""))]  # BLOCKS in use; TRANSITIONS
    cells: Annotated[np.ndarray, Field("pools X", np.int32, index="X")]  # cells visited, in order of their first visit
    visited: Annotated[np.ndarray, Field("pools", np.int64, most="X")]  # how many


@checks(Counts)
def check_counts(where, counts):
    """The list of cells contains each visited cell exactly once."""
    require(
        (counts.pairs[:, [VISITS, INVERSE, BONUS_ROOT, ENDED]] >= 0.0).all(), f"{where}pairs", "an entry is negative"
    )
    pools, X = counts.cells.shape
    seen = (counts.pairs[:, VISITS] > 0.0).reshape(pools, X, -1).any(axis=2)
    for p in range(pools):
        cells = np.sort(counts.cells[p, : counts.visited[p]])
        require(np.array_equal(cells, np.flatnonzero(seen[p])), f"{where}cells", "it is not the cells with visits")


def new_counts(pools, X, A, room):
    """No transitions, and `room` blocks for successors."""
    check_memory((pools * X * A, 5))
    check_memory((room, BLOCK))
    return Counts(
        np.zeros((pools * X * A, 5)), np.full(pools * X * A, -1, np.int32),
        np.zeros((room, BLOCK), np.uint32), np.zeros((room, BLOCK)), np.full(room, -1, np.int32), np.zeros(2, np.int64),
        np.zeros((pools, X), np.int32), np.zeros(pools, np.int64),
    )  # fmt: skip


@grown_for.implement_plain(Counts)
def grown_counts(store, settings, samples):
    blocks = max(more(store.following.size) + 1, int(store.number[BLOCKS]) + samples)
    return store._replace(
        successor=lengthen(store.successor, blocks, 0),
        times=lengthen(store.times, blocks, 0),
        following=lengthen(store.following, blocks, 0, -1),
    )


@has_room_for.implement(Counts)
def has_room_for_counts(store, settings, samples):
    return store.following.size - store.number[BLOCKS] >= samples  # each may need a block


@samples_in.implement_plain(Counts)
@samples_in.implement(Counts)
def transitions_counted(store):
    return store.number[TRANSITIONS]


@has_ended.implement_plain(Counts)
def counted_has_ended(store):
    return bool(store.pairs[:, ENDED].any())


@inner
def pair_of(counts, actions, pool, x, a):
    """The number of a pair."""
    return (pool * counts.cells.shape[1] + x) * actions + a


@inner
def new_block(counts, y):
    """Start a new block whose first successor will be `y`."""
    b = counts.number[BLOCKS]
    counts.number[BLOCKS] = b + 1
    for j in range(BLOCK):
        counts.successor[b, j] = y
    return b


@inner(inline=True)
def tally(counts, first, i, y):
    """Count `y` once more in the list whose first block is first[i]; return whether it is new there."""
    if first[i] < 0:
        first[i] = new_block(counts, y)
    b = np.int64(first[i])
    while True:
        place = BLOCK
        for j in range(BLOCK - 1, -1, -1):
            place = j if counts.times[b, j] == 0.0 or counts.successor[b, j] == y else place
        if place < BLOCK:
            break
        if counts.following[b] < 0:
            counts.following[b] = new_block(counts, y)
        b = np.int64(counts.following[b])
    new = counts.times[b, place] == 0.0
    counts.successor[b, place] = y
    counts.times[b, place] += 1.0
    return new


@add.implement(Counts, inline=True)
def add_counted(store, settings, x, action, reward, y, h, terminated):
    where = pool(settings, h)
    p = pair_of(store, settings.actions, where, x, action)
    pair = store.pairs[p]
    if pair[VISITS] == 0.0:
        known = False
        for other in range(settings.actions):
            known = known or store.pairs[p - action + other, VISITS] > 0.0
        if not known:
            store.cells[where, store.visited[where]] = x
            store.visited[where] += 1
    n = pair[VISITS] + 1.0
    pair[VISITS] = n
    pair[REWARD] += reward
    pair[INVERSE] = 1.0 / n
    pair[BONUS_ROOT] = settings.bonus.root / math.sqrt(n)
    if terminated:
        pair[ENDED] += 1.0
    store.number[TRANSITIONS] += 1
    return not terminated and tally(store, store.first, p, y)


@inner(fastmath=SUMS)
def expected(counts, b, V):
    """Σ_y n(y)·V(y) over the blocks from `b` on, for V (X,)."""
    successor, times, following = counts.successor, counts.times, counts.following
    total = 0.0
    while b >= 0:
        y, n = successor[b], times[b]
        for j in range(BLOCK):
            total += n[j] * V[y[j]]
        b = np.int64(following[b])
    return total


@inner
def total_of(counts, units, p, after, V):
    """Σ m(r) + Σ V over the samples of pair `p`, for V (X,); a termination is worth `after`."""
    pair = counts.pairs[p]
    collected = mapped_sum(units, pair[REWARD], pair[VISITS]) + after * pair[ENDED]
    return collected + expected(counts, np.int64(counts.first[p]), V)
