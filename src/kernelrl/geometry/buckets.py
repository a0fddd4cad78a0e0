"""Points in buckets: many growing lists of embedded states in one set of arrays, searched by distance.

A list (for instance "samples of step 3 and action 2") is spread over the cells of a grid on at most two axes, and a
cell holds a chain of chunks of at most WIDTH points, in order of arrival. Each chunk knows the box around its points. A
search takes the cells that a radius can reach, then the chunks whose box is near enough; the caller works on whole
chunks. A chunk is stored coordinate by coordinate, so that this work vectorises, and padded with points very far away,
so that it needs no remainder loop: work is done on whole LANES.

A point has a slot = chunk·WIDTH + place, which never changes; data that belong to points are stored in arrays of shape
(…, chunks, width), made with `payload` and lengthened with `lengthen`. Buckets with small cells have narrow chunks,
which waste less memory. Where a point goes depends only on the order of arrival and on geometry, never on the capacity:
growing changes no result.
"""

import contextlib
import math
import os
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.metrics import gap_squared, squared_distances
from kernelrl.jit.compile import SUMS, compiled, inner
from kernelrl.jit.fields import Field, Rows, check_lists, checks, indices_of, require

__all__ = [
    "LANES",
    "NARROW",
    "WIDTH",
    "Buckets",
    "add_point",
    "all_chunks",
    "available_memory",
    "check_grid",
    "check_memory",
    "chunks_for",
    "chunks_left",
    "distances_in",
    "found",
    "grow_buckets",
    "lanes",
    "lengthen",
    "list_of_slots",
    "lists_of",
    "more",
    "near",
    "near_too",
    "new_buckets",
    "new_grid",
    "number_of_chunks",
    "payload",
    "point_at",
    "size_of",
    "slots",
    "total_and_dot",
]

WIDTH = 64
NARROW = 16
LANES = 16
AWAY = 1e150  # coordinates of the padding: its squared distance is finite, its weight zero
MOST_CELLS = 4096
LARGE = 2**24  # arrays of fewer bytes are allocated without checking the available memory
AXIS, ORIGIN, PER_WIDTH, CELLS = range(4)
HEAD, TAIL = range(2)
FOLLOWING, SIBLING, SIZE, FOUND = range(4)


class Buckets(NamedTuple):
    """Lists of points (see the module's docstring). Few arrays, since each costs compile time in every function."""

    grid: Annotated[np.ndarray, Field("4 2")]  # of two axes: coordinate, origin, 1/width of a cell, number of cells
    # HEAD and TAIL: first and last chunk of a cell's chain, or -1; after the last cell, those of the list's chain
    ends: Annotated[np.ndarray, Field("2 lists any", np.int64, index="chunks", none=True)]
    # FOLLOWING and SIBLING: next chunk in the cell and in the list, or -1; SIZE: number of points; FOUND: see `near`
    chain: Annotated[
        np.ndarray,
        Rows(
            Field("chunks", index="chunks", none=True, fill=-1),
            Field("chunks", index="chunks", none=True, fill=-1),
            Field("chunks", least=1, most="width", fill=0),
            Field("chunks", scratch=True),
        ),
    ]
    # lowest and highest coordinates of the chunk's points
    box: Annotated[np.ndarray, Rows(Field("chunks d", fill=np.inf), Field("chunks d", fill=-np.inf), dtype=np.float64)]
    points: Annotated[np.ndarray, Field("chunks d width", fill=AWAY)]
    buffer: Annotated[np.ndarray, Field("64", scratch=True)]  # distances or weights of one chunk
    used: Annotated[np.ndarray, Field("1", np.int64, counts="chunks")]  # number of chunks in use


@indices_of(Buckets)
def slots(buckets):
    """Which slots (chunks, WIDTH) hold points."""
    return np.arange(WIDTH) < buckets.chain[SIZE][:, None]


def list_of_slots(buckets):
    """The list (chunks, WIDTH) of each slot's point, or -1 where there is no point."""
    lists = np.full(number_of_chunks(buckets), -1)
    for which, chunk in enumerate(buckets.ends[HEAD, :, -1]):
        while chunk >= 0:
            lists[chunk] = which
            chunk = buckets.chain[SIBLING, chunk]
    return np.where(slots(buckets), lists[:, None], -1)


@checks(Buckets)
def check_buckets(where, buckets):
    """Chains end, boxes contain their points, and the grid has as many cells as there are chains."""
    used, ends, chain = int(buckets.used[0]), buckets.ends, buckets.chain
    check_grid(where, buckets.grid, buckets.points.shape[1], ends.shape[2] - 1)
    for link, cells in ((FOLLOWING, slice(-1)), (SIBLING, slice(-1, None))):
        check_lists(f"{where}chain[{link}]", ends[HEAD, :, cells], chain[link, :used], ends[TAIL, :, cells])
    real = slots(buckets)[:used, None, : buckets.points.shape[2]]
    points, box = buckets.points[:used], buckets.box[:, :used]
    require((points[np.broadcast_to(~real, points.shape)] == AWAY).all(), f"{where}points", "a place is not empty")
    inside = (points >= box[0, :, :, None]) & (points <= box[1, :, :, None])
    require((inside | ~real).all(), f"{where}box", "a point lies outside its chunk's box")


def check_grid(where, grid, d, cells):
    """The grid's axes are among `d` coordinates, and it has `cells` cells."""
    axis, count = grid[AXIS], grid[CELLS]
    whole = (grid[[AXIS, CELLS]] % 1 == 0).all() and (axis >= 0).all() and (axis < d).all() and (count >= 1).all()
    fits = whole and count.prod() == cells and (grid[PER_WIDTH] >= 0).all()
    require(fits, f"{where}grid", f"it is no grid of {cells} cells on axes of {d} coordinates")


def new_grid(low, high, cell):
    """A grid (4, 2) over the box [low, high] (d,) on its two widest axes, with cells of width `cell` (inf: one cell).

    There are at most MOST_CELLS cells; an unbounded axis gets as many as fit.
    """
    low, high = np.asarray(low, float), np.asarray(high, float)
    with np.errstate(over="ignore"):
        extent = np.where(np.isfinite(high - low), high - low, 32.0 * cell if 0.0 < cell < math.inf else 1.0)
    start = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - extent, -0.5 * extent))
    most = MOST_CELLS if low.size == 1 else math.isqrt(MOST_CELLS)
    grid = np.zeros((4, 2))
    grid[CELLS] = 1.0
    for i, axis in enumerate(np.argsort(-extent, kind="stable")[:2]):
        cells = max(1, math.ceil(min(most, extent[axis] / cell if cell > 0.0 else most) - 1e-9))
        grid[:, i] = axis, start[axis], cells / extent[axis] if extent[axis] > 0 else 0.0, cells
    return grid


def new_buckets(lists, low, high, cell, width=WIDTH, chunks=16):
    """Empty buckets for embeddings in the box [low, high] (d,), with cells of width `cell` (inf: one cell)."""
    grid, d = new_grid(low, high, cell), len(low)
    check_memory((2, lists, int(grid[CELLS].prod()) + 1))
    check_memory((chunks, d, width))
    return Buckets(
        grid, np.full((2, lists, int(grid[CELLS].prod()) + 1), -1, np.int64), new_chain(chunks), new_box(chunks, d),
        np.full((chunks, d, width), AWAY), np.zeros(WIDTH), np.zeros(1, np.int64),
    )  # fmt: skip


def new_chain(chunks):
    """The chain entries of empty chunks."""
    chain = np.zeros((4, chunks), np.int64)
    chain[FOLLOWING] = chain[SIBLING] = -1
    return chain


def new_box(chunks, d):
    """Empty boxes."""
    box = np.empty((2, chunks, d))
    box[0], box[1] = np.inf, -np.inf
    return box


def number_of_chunks(buckets):
    """How many chunks there is room for."""
    return buckets.chain.shape[1]


def payload(buckets, *leading, dtype=float, fill=0):
    """An array of shape (*leading, chunks, width) for data that belong to each point."""
    check_memory((*leading, number_of_chunks(buckets), buckets.points.shape[2]))
    return np.full((*leading, number_of_chunks(buckets), buckets.points.shape[2]), fill, dtype)


def grow_buckets(buckets, chunks):
    """The same buckets with room for `chunks` chunks."""
    old = number_of_chunks(buckets)
    check_memory((2, chunks, buckets.points.shape[1]))
    chain, box = new_chain(chunks), new_box(chunks, buckets.points.shape[1])
    chain[:, :old], box[:, :old] = buckets.chain, buckets.box
    return buckets._replace(chain=chain, box=box, points=lengthen(buckets.points, chunks, 0, AWAY))


def more(capacity):
    """The next capacity of something that grows: half as much again."""
    return capacity + capacity // 2


def check_memory(shape, size=8):
    """Raise MemoryError if an array of that shape, of `size` bytes an entry, does not fit into memory."""
    asked = size * math.prod(int(length) for length in shape)
    if asked >= LARGE and asked > available_memory():
        raise MemoryError(
            f"an array of shape {tuple(shape)} takes {asked:,} bytes, and {available_memory():,} bytes are available"
        )


def available_memory():
    """How many bytes of memory are available, according to the system and a container's limit."""
    try:
        available = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        available = 2**63
    with contextlib.suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        available = int(fields["MemAvailable"].split()[0]) * 1024
    with contextlib.suppress(OSError, ValueError):
        limit, used = (int(Path("/sys/fs/cgroup", f"memory.{name}").read_text()) for name in ("max", "current"))
        available = min(available, max(limit - used, 0))
    return available


def lengthen(array, length, axis, fill=0):
    """A copy of `array` that is `length` long on `axis`, the new part filled with `fill`."""
    shape = list(array.shape)
    old, shape[axis] = shape[axis], length
    check_memory(shape, array.itemsize)
    longer = np.full(shape, fill, array.dtype) if fill else np.zeros(shape, array.dtype)  # zeros use no memory yet
    longer[(slice(None),) * axis + (slice(old),)] = array
    return longer


def lists_of(buckets):
    """The list (chunks,) that each chunk belongs to, -1 for those not in use. Plain Python."""
    lists = np.full(number_of_chunks(buckets), -1, np.int64)
    chunk, owner = buckets.ends[HEAD, :, -1], np.arange(buckets.ends.shape[1])
    while (there := chunk >= 0).any():
        chunk, owner = chunk[there], owner[there]
        lists[chunk] = owner
        chunk = buckets.chain[SIBLING, chunk]
    return lists


@compiled
def chunks_left(buckets):
    """How many chunks are unused."""
    return buckets.chain.shape[1] - buckets.used[0]


@compiled
def chunks_for(buckets, n):
    """How many unused chunks `n` more points may need at most."""
    return min(n, n // buckets.points.shape[2] + buckets.ends.shape[1] * (buckets.ends.shape[2] - 1))


@inner
def cell_on(grid, i, coordinate):
    """The cell of a coordinate on grid axis `i`; points outside the grid belong to its outermost cells."""
    place = (coordinate - grid[ORIGIN, i]) * grid[PER_WIDTH, i]
    return np.int64(min(max(0.0, place), grid[CELLS, i] - 1.0))  # in this order NaN becomes 0


@inner
def append(ends, chain, link, which, cell, chunk):
    """Append `chunk` to a chain; the cell after the last stands for the whole list."""
    last = ends[TAIL, which, cell]
    if last < 0:
        ends[HEAD, which, cell] = chunk
    else:
        chain[link, last] = chunk
    ends[TAIL, which, cell] = chunk


@inner
def add_point(buckets, which, u):
    """Append `u` (d,) to list `which` and return its slot."""
    grid, ends, chain, box = buckets.grid, buckets.ends, buckets.chain, buckets.box
    first = cell_on(grid, 0, u[np.int64(grid[AXIS, 0])])
    cell = first * np.int64(grid[CELLS, 1]) + cell_on(grid, 1, u[np.int64(grid[AXIS, 1])])
    chunk = ends[TAIL, which, cell]
    if chunk < 0 or chain[SIZE, chunk] == buckets.points.shape[2]:
        chunk = buckets.used[0]
        buckets.used[0] = chunk + 1
        append(ends, chain, FOLLOWING, which, cell, chunk)
        append(ends, chain, SIBLING, which, ends.shape[2] - 1, chunk)
    place = chain[SIZE, chunk]
    chain[SIZE, chunk] = place + 1
    for j in range(u.size):
        buckets.points[chunk, j, place] = u[j]
        box[0, chunk, j] = min(box[0, chunk, j], u[j])
        box[1, chunk, j] = max(box[1, chunk, j], u[j])
    return chunk * WIDTH + place


@inner
def near(buckets, space, which, u, radius):
    """Find the chunks of list `which` that may hold points within `radius` of `u`: chain[FOUND, :n]; return n."""
    return near_too(buckets, space, which, u, radius, 0)


@inner
def near_too(buckets, space, which, u, radius, n):
    """Like `near`, appending to the `n` chunks that were found before."""
    grid, ends, chain, box = buckets.grid, buckets.ends, buckets.chain, buckets.box
    x, y = u[np.int64(grid[AXIS, 0])], u[np.int64(grid[AXIS, 1])]
    radius = min(radius, AWAY)
    square = radius * radius
    first, last = cell_on(grid, 0, x - radius), cell_on(grid, 0, x + radius)
    bottom, top = cell_on(grid, 1, y - radius), cell_on(grid, 1, y + radius)
    for i in range(first, last + 1):
        for j in range(bottom, top + 1):
            chunk = ends[HEAD, which, i * np.int64(grid[CELLS, 1]) + j]
            while chunk >= 0:
                if gap_squared(space, box, chunk, u) <= square:
                    chain[FOUND, n] = chunk
                    n += 1
                chunk = chain[FOLLOWING, chunk]
    return n


@inner
def all_chunks(buckets, which):
    """Find all chunks of list `which`: chain[FOUND, :n]; return n."""
    ends, chain = buckets.ends, buckets.chain
    chunk = ends[HEAD, which, ends.shape[2] - 1]
    n = 0
    while chunk >= 0:
        chain[FOUND, n] = chunk
        n += 1
        chunk = chain[SIBLING, chunk]
    return n


@inner
def size_of(buckets, chunk):
    """The number of points of a chunk."""
    return buckets.chain[SIZE, chunk]


@inner
def found(buckets, i):
    """The `i`-th chunk that `near` found."""
    return buckets.chain[FOUND, i]


@inner
def lanes(size):
    """`size` rounded up to whole lanes."""
    return (size + (LANES - 1)) & -LANES


@inner
def distances_in(buckets, space, chunk, u):
    """Write ρ² between `u` and the chunk's points into `buffer`; return how many places were written (whole lanes)."""
    size = buckets.chain[SIZE, chunk]
    n = lanes(size)
    squared_distances(space, buckets.points, chunk, size, n, u, buckets.buffer)
    return n


@inner
def point_at(buckets, slot, u):
    """Write the point at `slot` into `u` (d,)."""
    for j in range(u.size):
        u[j] = buckets.points[slot // WIDTH, j, slot % WIDTH]


@inner(fastmath=SUMS)
def total_and_dot(weights, values, chunk, n):
    """Σw and Σw·v over the first `n` of `weights` and of values[chunk]."""
    first, second = 0.0, 0.0
    for i in range(n):
        first += weights[i]
        second += weights[i] * values[chunk, i]
    return first, second
