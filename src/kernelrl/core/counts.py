"""Counts of transitions between the cells of a grid, sparse: what is kept, and what planning costs, is what was visited.

For each pair (x, a) of a pool of data (all steps together, or one pool a step): the number of visits n, the sum of
rewards, and how often each successor y followed. From them

    r̂ = Σr/n,   P̂V = Σ_y n(y)·V(y)/n

Successors lie in blocks of BLOCK places, chained; a place not in use has n(y) = 0 and costs an addition of nothing,
which is less than a branch that cannot be foreseen. A terminal successor is not stored: its value is 0.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.core.buckets import lengthen, more
from kernelrl.core.compile import SUMS, compiled, inner

__all__ = [
    "VISITS",
    "Counts",
    "add_transition",
    "blocks_left",
    "estimate",
    "grow_counts",
    "new_counts",
    "pair_of",
    "plan_without_bonus",
    "target",
    "transitions",
]

BLOCK = 8
VISITS, REWARD, INVERSE, WIDTH = range(4)


class Counts(NamedTuple):
    """What was seen. A pair's number is (pool·X + x)·A + a."""

    pairs: np.ndarray  # (pools·X·A, 4) n, sum of rewards, 1/n, root/√n
    first: np.ndarray  # (pools·X·A,) first block of successors, or -1
    successor: np.ndarray  # (blocks, BLOCK) y
    times: np.ndarray  # (blocks, BLOCK) n(y)
    following: np.ndarray  # (blocks,) next block of the same pair, or -1
    number: np.ndarray  # (2,) blocks in use; transitions
    cells: np.ndarray  # (pools, X) cells visited, in order of their first visit
    visited: np.ndarray  # (pools,) how many


def new_counts(pools, X, A, room):
    """No transitions, and `room` blocks for successors."""
    return Counts(
        np.zeros((pools * X * A, 4)), np.full(pools * X * A, -1, np.int32),
        np.zeros((room, BLOCK), np.int32), np.zeros((room, BLOCK)), np.full(room, -1, np.int32), np.zeros(2, np.int64),
        np.zeros((pools, X), np.int32), np.zeros(pools, np.int64),
    )  # fmt: skip


def grow_counts(counts):
    """The same with more room."""
    blocks = more(counts.following.size) + 1
    return counts._replace(
        successor=lengthen(counts.successor, blocks, 0),
        times=lengthen(counts.times, blocks, 0),
        following=lengthen(counts.following, blocks, 0, -1),
    )


@inner
def blocks_left(counts):
    """How many more successors surely fit."""
    return counts.following.size - counts.number[0]


@inner
def transitions(counts):
    """The number of transitions so far."""
    return counts.number[1]


@inner
def pair_of(counts, actions, pool, x, a):
    """The number of a pair."""
    return (pool * counts.cells.shape[1] + x) * actions + a


@inner
def new_block(counts):
    """Take a block into use."""
    b = counts.number[0]
    counts.number[0] = b + 1
    return b


@inner
def add_successor(counts, p, y):
    """n(y) of pair `p` grows by one."""
    if counts.first[p] < 0:
        counts.first[p] = new_block(counts)
    b = np.int64(counts.first[p])
    while True:
        for j in range(BLOCK):
            if counts.times[b, j] == 0.0:
                counts.successor[b, j] = y
            if counts.successor[b, j] == y:
                counts.times[b, j] += 1.0
                return
        if counts.following[b] < 0:
            counts.following[b] = new_block(counts)
        b = np.int64(counts.following[b])


@inner
def add_transition(counts, actions, root, pool, x, a, r, y, terminated):
    """Take in one transition; `root` is that of the bonus."""
    p = pair_of(counts, actions, pool, x, a)
    pairs = counts.pairs
    if pairs[p, VISITS] == 0.0:
        known = False
        for other in range(actions):
            known = known or pairs[p - a + other, VISITS] > 0.0
        if not known:
            counts.cells[pool, counts.visited[pool]] = x
            counts.visited[pool] += 1
    n = pairs[p, VISITS] + 1.0
    pairs[p, VISITS] = n
    pairs[p, REWARD] += r
    pairs[p, INVERSE] = 1.0 / n
    pairs[p, WIDTH] = root / math.sqrt(n)
    if not terminated:
        add_successor(counts, p, y)
    counts.number[1] += 1


@inner(fastmath=SUMS)
def estimate(counts, p, V):
    """r̂ + P̂V of a pair that was tried, for V (X,)."""
    total = counts.pairs[p, REWARD]
    b = np.int64(counts.first[p])
    while b >= 0:
        for j in range(BLOCK):
            total += counts.times[b, j] * V[counts.successor[b, j]]
        b = np.int64(counts.following[b])
    return total * counts.pairs[p, INVERSE]


@inner
def target(counts, optimism, p, h, V):
    """r̂ + P̂V + B_h. Of a pair never tried nothing is known, so it is B_h(0), but no less than the cap."""
    if counts.pairs[p, VISITS] == 0.0:
        return max(optimism.cap[h], min(optimism.limit[h], optimism.root + optimism.share[h]))
    bonus = counts.pairs[p, WIDTH] + optimism.share[h] * counts.pairs[p, INVERSE]
    return estimate(counts, p, V) + min(optimism.limit[h], bonus)


@compiled
def plan_without_bonus(counts, V, Q):
    """Q_h = r̂ + P̂V_{h+1} and V_h = max_a Q_h, into Q (H, X, A) and V (H+1, X), both zero before: the policy to deploy.

    A pair never tried counts 0.
    """
    H, actions = Q.shape[0], Q.shape[2]
    for h in range(H - 1, -1, -1):
        pool = min(h, counts.visited.size - 1)  # one pool or one a step
        for i in range(counts.visited[pool]):
            x = np.int64(counts.cells[pool, i])
            for a in range(actions):
                p = pair_of(counts, actions, pool, x, a)
                if counts.pairs[p, VISITS] > 0.0:
                    Q[h, x, a] = estimate(counts, p, V[h + 1])
                    V[h, x] = max(V[h, x], Q[h, x, a])
