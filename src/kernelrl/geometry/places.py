"""Where states lie: cells of a grid on up to six axes, found through a hash table, and blocks for going through all.

Coordinate j of a state lies in cell ⌊x_j/w⌋ of its axis, and the numbers on all axes, packed into one integer, are the
key of the state's cell. The table has a chain of states for each value of a hash of the key, the newest first. Cells of
different keys may share a chain, so each state stores its key. The grid has no bounds, and memory is linear in the
number of states.

A ball of radius r meets on average (1 + 2r/w)^k cells of k axes. With one or two axes cells are WIDE[0] usual radii
wide, with more WIDE[1]: in six dimensions a ball of that radius then meets 21 cells on average.

Where a ball meets most cells, going through all states takes less time. For that there is a copy of them in blocks of
BLOCK, coordinate by coordinate, so that this work vectorises.

Which states are found, and in which order, depends on keys and on the order of arrival only, not on the table's size.
Nothing of this is saved: it is made again from the states.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import AWAY
from kernelrl.geometry.metrics import BLOCK
from kernelrl.jit.compile import compiled, inner

__all__ = ["Places", "cells_around", "enter", "new_places", "next_cell", "places_of"]

AXIS, PER_WIDTH = range(2)  # of `axes`
FIRST, LAST, AT = range(3)  # of `around`
MOST_AXES = 6
KEY_BITS, MOST_BITS = 60, 20  # of a key, and of its part for one axis
HALF = 2**30 - 1
MULTIPLIERS = (1640531527, 2246822519)  # so small that products with half a key fit into 63 bits
FARTHEST = 2.0**52  # cell numbers beyond are all taken as this one
WIDE = (2.0, 3.0)  # width of a cell, in radii of the usual search: with at most two axes, and with more
LEAST = 64  # smallest size of the table
ORDERLY, FEW = 7, 64  # see `cells_around`
MOST_CELLS = 2**20


class Places(NamedTuple):
    """The cells and the blocks (see the module's docstring); `capacity` is for how many states there is room."""

    axes: np.ndarray  # (2, k): AXIS, the coordinate, and PER_WIDTH, 1/width of a cell
    head: np.ndarray  # (a power of two,): first state of a chain, or -1
    following: np.ndarray  # (capacity,): next one of the chain, or -1
    key: np.ndarray  # (capacity,)
    occupied: np.ndarray  # (1,): number of cells with states in them
    around: np.ndarray  # (3, k): FIRST and LAST cell on each axis that a search has to see, and the one AT which it is
    blocks: np.ndarray  # (capacity/BLOCK, d, BLOCK): coordinates


def new_places(low, high, radius, bounded, capacity):
    """Empty cells for searches of the given usual radius, on the widest axes of the box [low, high] (d,).

    If not `bounded`, differences of coordinates may be larger than distances, and there is one cell only.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    with np.errstate(over="ignore"):
        extent = high - low
    axes = np.argsort(-extent, kind="stable")[:MOST_AXES] if bounded else np.zeros(1, np.int64)
    width = np.full(axes.size, radius * WIDE[int(axes.size > 2)])
    if not radius > 0.0:  # only equal states are looked for
        width = np.where(np.isfinite(extent[axes]) & (extent[axes] > 0.0), extent[axes] / LEAST, 1.0)
    per_width = np.minimum(1.0 / width, 1e300) if bounded else np.zeros(1)
    return with_room(np.array([axes, per_width]), len(low), capacity)


def with_room(axes, d, capacity):
    """Empty cells on these axes."""
    table = max(LEAST, 1 << (int(capacity) - 1).bit_length())
    return Places(
        axes, np.full(table, -1, np.int64), np.full(capacity, -1, np.int64), np.zeros(capacity, np.int64),
        np.zeros(1, np.int64), np.zeros((3, axes.shape[1]), np.int64), np.full((-(-capacity // BLOCK), d, BLOCK), AWAY),
    )  # fmt: skip


def places_of(places, points, number):
    """The same grid with the first `number` of `points` (capacity, d, 1), and room for all of them."""
    made = with_room(places.axes, points.shape[1], len(points))
    enter_all(made, points, number)
    return made


@compiled
def enter_all(places, points, number):
    """Put the first `number` states into their places."""
    for v in range(number):
        enter(places, v, points)


@inner
def bits_of(places):
    """How many bits of a key an axis has."""
    return min(MOST_BITS, KEY_BITS // places.axes.shape[1])


@inner
def cell_on(places, i, coordinate):
    """The number of a coordinate's cell on axis `i`."""
    place = np.floor(coordinate * places.axes[PER_WIDTH, i])
    return np.int64(min(max(-FARTHEST, place), FARTHEST))


@inner
def slot_of(places, key):
    """The chain of a key."""
    mixed = (key & HALF) * MULTIPLIERS[0] + (key >> 30) * MULTIPLIERS[1]
    return (mixed ^ (mixed >> 23)) & (places.head.size - 1)


@inner
def enter(places, v, points):
    """Put state `v`, at points[v] (d, 1), into its cell and into its block."""
    bits, key = bits_of(places), np.int64(0)
    for j in range(points.shape[1]):
        places.blocks[v // BLOCK, j, v % BLOCK] = points[v, j, 0]
    for i in range(places.axes.shape[1]):
        place = cell_on(places, i, points[v, np.int64(places.axes[AXIS, i]), 0])
        key |= (place & ((1 << bits) - 1)) << (bits * i)
    slot = slot_of(places, key)
    known = places.head[slot]
    while known >= 0 and places.key[known] != key:
        known = places.following[known]
    places.occupied[0] += known < 0
    places.key[v] = key
    places.following[v] = places.head[slot]
    places.head[slot] = v


@inner
def cells_around(places, x, radius, number):
    """Begin a search through the cells within `radius` of `x` (d,); return how many these are.

    -1 if going through all `number` states takes less time: a cell takes as long as ORDERLY states in order, and so
    does a state of a cell, which may lie anywhere in memory.
    """
    around, cells = places.around, 1.0
    for i in range(places.axes.shape[1]):
        coordinate = x[np.int64(places.axes[AXIS, i])]
        around[FIRST, i] = cell_on(places, i, coordinate - radius)
        around[LAST, i] = cell_on(places, i, coordinate + radius)
        around[AT, i] = around[FIRST, i]
        across = around[LAST, i] - around[FIRST, i] + 1
        cells *= across if across <= 1 << bits_of(places) else math.inf  # else keys would come twice
    occupied = places.occupied[0]
    if cells > MOST_CELLS or cells * (ORDERLY * (occupied + number)) > (number + FEW) * occupied:
        return np.int64(-1)
    return np.int64(cells)


@inner
def next_cell(places):
    """The key of the cell at which the search is, and the first state of its chain, or -1; go to the next cell."""
    around, bits, key, going = places.around, bits_of(places), np.int64(0), True
    for i in range(places.axes.shape[1]):
        key |= (around[AT, i] & ((1 << bits) - 1)) << (bits * i)
        if going and around[AT, i] < around[LAST, i]:
            around[AT, i] += 1
            going = False
        elif going:
            around[AT, i] = around[FIRST, i]
    return key, places.head[slot_of(places, key)]
