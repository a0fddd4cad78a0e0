"""Representative states: a set of states no two of which are within the merge distance m of each other.

A state stands for itself if no representative is within m, else for the nearest one (the earliest of equals). The set
grows as states arrive, and each representative u knows its neighbours v, those that a weight can reach,

    weight[u, j] = g(ρ(u, v)/σ),   v = neighbour[u, j],   j < degree[u]   (itself among them)

and, where values are interpolated, those that a cone can reach, with their distances. Memory is linear in
representatives × neighbours. Representatives are found through a grid of cells at least m wide on at most two axes.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.core.buckets import AXIS, CELLS, cell_on, lengthen, more, new_grid
from kernelrl.core.compile import compiled, inner
from kernelrl.core.kernels import kernel_weight
from kernelrl.core.metrics import squared_distances

__all__ = [
    "Near",
    "Representatives",
    "copy_place",
    "find",
    "find_or_add",
    "grow_representatives",
    "nearest",
    "new_representatives",
    "representative_room",
    "reweigh",
    "square_to",
]


class Near(NamedTuple):
    """Lists of neighbours; entries behind `degree` are zero."""

    index: np.ndarray  # (U, M) uint32
    amount: np.ndarray  # (U, M) weight, or distance
    degree: np.ndarray  # (U,)
    widest: np.ndarray  # (1,) the largest degree


class Representatives(NamedTuple):
    """The set (see the module's docstring)."""

    merge: float  # m
    limit: int  # at most so many
    cone_reach: float  # how far a cone can reach below the cap; 0 where values are not interpolated
    grid: np.ndarray  # (4, 2) as in `buckets`
    head: np.ndarray  # (cells,) first representative of a cell, or -1
    following: np.ndarray  # (U,) next representative of the cell, or -1
    points: np.ndarray  # (U, d, 1) embedded states
    number: (
        np.ndarray
    )  # (2,) how many there are; how many states were merged from farther away, the limit being reached
    weights: Near
    cones: Near
    memo: np.ndarray  # (d+2,) the state looked for last, what was found and how many there were
    square: np.ndarray  # (1,) scratch
    here: np.ndarray  # (d,) scratch


def new_near(capacity, width):
    """No neighbours, and room for `width` each."""
    index = np.zeros((capacity, width), np.uint32)
    return Near(index, np.zeros((capacity, width)), np.zeros(capacity, np.int64), np.zeros(1, np.int64))


def new_representatives(low, high, merge, limit, cone_reach, bounded, capacity=64, width=64):
    """No representatives yet, for embeddings in the box [low, high] (d,); `bounded` tells whether a grid is allowed."""
    grid = new_grid(low, high, merge if bounded else math.inf)
    return Representatives(
        float(merge), int(limit), float(cone_reach), grid, np.full(int(grid[CELLS].prod()), -1, np.int64),
        np.full(capacity, -1, np.int64), np.zeros((capacity, len(low), 1)), np.zeros(2, np.int64),
        new_near(capacity, width), new_near(capacity if cone_reach > 0 else 0, width),
        np.full(len(low) + 2, -1.0), np.zeros(1), np.zeros(len(low)),
    )  # fmt: skip


def grow_near(near, capacity, coming):
    """The same lists for `capacity` representatives, with room for `coming` more neighbours each."""
    width = near.index.shape[1]
    if near.widest[0] + coming > width:
        width = more(max(width, int(near.widest[0]) + coming)) // 4 * 4
    return near._replace(
        index=lengthen(lengthen(near.index, capacity, 0), width, 1),
        amount=lengthen(lengthen(near.amount, capacity, 0), width, 1),
        degree=lengthen(near.degree, capacity, 0),
    )


def grow_representatives(reps, coming):
    """The same set with room for `coming` more."""
    capacity = reps.following.size
    if reps.number[0] + coming > capacity:
        capacity = more(max(capacity, int(reps.number[0]) + coming))
    return reps._replace(
        following=lengthen(reps.following, capacity, 0, -1),
        points=lengthen(reps.points, capacity, 0),
        weights=grow_near(reps.weights, capacity, coming),
        cones=grow_near(reps.cones, capacity, coming) if reps.cone_reach > 0 else reps.cones,
    )


@compiled
def representative_room(reps):
    """How many more representatives fit."""
    room = min(reps.following.size - reps.number[0], reps.weights.index.shape[1] - reps.weights.widest[0])
    return min(room, reps.cones.index.shape[1] - reps.cones.widest[0])


@inner
def square_to(reps, space, v, u):
    """ρ² between representative `v` and the embedded state `u`."""
    squared_distances(space, reps.points, v, 1, 1, u, reps.square)
    return reps.square[0]


@inner
def find(reps, space, u):
    """The nearest representative within the merge distance of the embedded state `u`, or -1.

    A next state is looked for again when the next step chooses and observes there, so the last answer is kept.
    """
    memo, d = reps.memo, u.size
    known = memo[d + 1] == reps.number[0]
    for j in range(d):
        known = known and memo[j] == u[j]
    if not known:
        keep(reps, u, search(reps, space, u))
    return np.int64(memo[d])


@inner
def keep(reps, u, found):
    """Remember what was found for `u`."""
    memo, d = reps.memo, u.size
    for j in range(d):
        memo[j] = u[j]
    memo[d], memo[d + 1] = found, reps.number[0]


@inner
def search(reps, space, u):
    """What `find` finds."""
    grid, best, found = reps.grid, reps.merge * reps.merge, -1
    x, y = u[np.int64(grid[AXIS, 0])], u[np.int64(grid[AXIS, 1])]
    across = np.int64(grid[CELLS, 1])
    for i in range(cell_on(grid, 0, x - reps.merge), cell_on(grid, 0, x + reps.merge) + 1):
        for j in range(cell_on(grid, 1, y - reps.merge), cell_on(grid, 1, y + reps.merge) + 1):
            v = reps.head[i * across + j]
            while v >= 0:
                square = square_to(reps, space, v, u)
                if square < best or (square == best and (found < 0 or v < found)):
                    best, found = square, v
                v = reps.following[v]
    return found


@inner
def nearest(reps, space, u):
    """The nearest representative however far, or -1 if there is none."""
    best, found = math.inf, -1
    for v in range(reps.number[0]):
        square = square_to(reps, space, v, u)
        if square < best:
            best, found = square, v
    return found


@inner
def find_or_add(reps, settings, u):
    """The representative that the embedded state `u` stands for, which may be a new one."""
    v = find(reps, settings.space, u)
    if v >= 0:
        return v
    if reps.number[0] >= reps.limit:
        reps.number[1] += 1
        return nearest(reps, settings.space, u)
    v = reps.number[0]
    for j in range(u.size):
        reps.points[v, j, 0] = u[j]
    reps.number[0] = v + 1
    grid = reps.grid
    cell = cell_on(grid, 0, u[np.int64(grid[AXIS, 0])]) * np.int64(grid[CELLS, 1])
    cell += cell_on(grid, 1, u[np.int64(grid[AXIS, 1])])
    reps.following[v] = reps.head[cell]
    reps.head[cell] = v
    meet(reps, settings, v, u)
    keep(reps, u, v)
    return v


@inner
def append_neighbour(near, u, v, amount):
    """Add `v` to the list of `u`."""
    j = near.degree[u]
    near.index[u, j] = v
    near.amount[u, j] = amount
    near.degree[u] = j + 1
    near.widest[0] = max(near.widest[0], j + 1)


@inner
def meet(reps, settings, u, x):
    """Put the latest representative `u`, at `x`, and its neighbours into each other's lists."""
    reach = settings.reach * settings.reach
    cone_reach = reps.cone_reach * reps.cone_reach
    for v in range(u + 1):
        square = square_to(reps, settings.space, v, x)
        if square <= reach:
            weight = kernel_weight(settings.kernel, settings.power, square * settings.inverse_sigma2)
            append_neighbour(reps.weights, u, v, weight)
            if v != u:
                append_neighbour(reps.weights, v, u, weight)
        if reps.cone_reach > 0.0 and square <= cone_reach:
            distance = math.sqrt(square)
            append_neighbour(reps.cones, u, v, distance)
            if v != u:
                append_neighbour(reps.cones, v, u, distance)


@inner
def copy_place(reps, u, out):
    """Write the embedded state of representative `u` into `out` (d,)."""
    for j in range(out.size):
        out[j] = reps.points[u, j, 0]


@compiled
def count_neighbours(reps, settings):
    """The largest number of neighbours that any representative has under these settings."""
    widest = 0
    for u in range(reps.number[0]):
        degree, x = 0, reps.here
        copy_place(reps, u, x)
        for v in range(reps.number[0]):
            degree += square_to(reps, settings.space, v, x) <= settings.reach * settings.reach
        widest = max(widest, degree)
    return widest


@compiled
def weigh_anew(reps, settings):
    """Make all lists of weights anew; they must be empty and wide enough."""
    for u in range(reps.number[0]):
        x = reps.here
        copy_place(reps, u, x)
        for v in range(reps.number[0]):
            square = square_to(reps, settings.space, v, x)
            if square <= settings.reach * settings.reach:
                weight = kernel_weight(settings.kernel, settings.power, square * settings.inverse_sigma2)
                append_neighbour(reps.weights, u, v, weight)


def reweigh(reps, settings, coming):
    """The same set with the weights of another bandwidth, and room for `coming` more neighbours each."""
    width = (count_neighbours(reps, settings) + coming + 3) // 4 * 4
    reps = reps._replace(weights=new_near(reps.following.size, width))
    weigh_anew(reps, settings)
    return reps
