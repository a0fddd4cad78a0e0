"""Sums of Gaussians from many sources at all points of a list: ΔT(v) = Σ_s δ_s·exp(-‖v - u_s‖²/(2σ²)), in the plane.

The chunks of a list of buckets hold points in order of arrival, so a small circle touches chunks that lie mostly
outside it. Here the points are sorted into cells much finer than the buckets'. The cells of one strip follow each other
in memory, so the points of a strip near a source are one range, and a circle is a few ranges. Sorting takes time
proportional to the number of points; it pays when there are many sources.

Each strip begins at a multiple of LANES. A range is widened to whole LANES, which stay inside its strip, and points
outside the circle get exactly nothing.

    sorted    (3, places) X and Y of each place in units in which the weight is 2^{-ρ²}; SUM: ΔT
    index     (3, places) ORDER: slot of the point, or -1; ENDS: where a strip begins, and where each of its cells ends;
              GATHERED: slots of the points before they are sorted

Weights have a relative error of at most ROUGH, so ΔT is off by at most ROUGH·Σ_s w_s·|δ_s|.
"""

import math

import numpy as np

from kernelrl.geometry.buckets import (
    AXIS,
    CELLS,
    LANES,
    ORIGIN,
    PER_WIDTH,
    WIDTH,
    all_chunks,
    found,
    lanes,
    size_of,
)  # fmt: skip
from kernelrl.geometry.kernels import rough_power
from kernelrl.jit.compile import inner

__all__ = ["ENDS", "ORDER", "SUM", "fineness", "gather", "lay_out", "spread"]

X, Y, SUM = range(3)  # of `sorted`
ORDER, ENDS, GATHERED = range(3)  # of `index`
LEAST = 256  # points; with fewer, sorting does not pay, and empty places would need more than half of the room
FINEST = 16
FARTHEST = 1000.0  # of ρ² in those units; smaller weights are below 1e-300
PER_CELL = 2  # about so many points are in a cell


@inner
def gather(E, which, marks, mark, index):
    """Write the slots of list `which` where `marks` (chunks, WIDTH) is `mark` into index[GATHERED]; return how many."""
    n = 0
    for i in range(all_chunks(E, which)):
        chunk = found(E, i)
        for j in range(size_of(E, chunk)):
            index[GATHERED, n] = chunk * WIDTH + j
            n += marks[chunk, j] == mark
    return n


@inner
def fineness(grid, n):
    """By how much the cells of the grid are divided on each axis for `n` points; 0 if these are too few."""
    if n < LEAST:
        return 0
    return min(FINEST, np.int64(math.sqrt(n / (PER_CELL * grid[CELLS, 0] * grid[CELLS, 1]))))


@inner
def fine_cell(grid, i, fine, coordinate):
    """The cell of a coordinate on grid axis `i`, each cell of the grid divided into `fine`."""
    place = (coordinate - grid[ORIGIN, i]) * (grid[PER_WIDTH, i] * fine)
    return np.int64(min(max(0.0, place), grid[CELLS, i] * fine - 1.0))


@inner
def lay_out(E, n, fine, scale, sorted_points, index):
    """Sort the `n` gathered points, multiplied by `scale`, into strips along the grid's first axis.

    Return how many places there are.
    """
    grid, ends = E.grid, index[ENDS]
    first, second = np.int64(grid[AXIS, 0]), np.int64(grid[AXIS, 1])
    columns, strips = np.int64(grid[CELLS, 0]) * fine, np.int64(grid[CELLS, 1]) * fine
    ends[: strips * (columns + 1)] = 0
    for i in range(n):
        chunk, j = index[GATHERED, i] // WIDTH, index[GATHERED, i] % WIDTH
        strip = fine_cell(grid, 1, fine, E.points[chunk, second, j])
        ends[strip * (columns + 1) + 1 + fine_cell(grid, 0, fine, E.points[chunk, first, j])] += 1
    places, k = 0, 0
    for _ in range(strips):
        places = lanes(places)
        for _ in range(columns + 1):
            count = ends[k]
            ends[k] = places
            places += count
            k += 1
    places = lanes(places)
    index[ORDER, :places] = -1
    for i in range(n):
        chunk, j = index[GATHERED, i] // WIDTH, index[GATHERED, i] % WIDTH
        x, y = E.points[chunk, first, j], E.points[chunk, second, j]
        k = fine_cell(grid, 1, fine, y) * (columns + 1) + 1 + fine_cell(grid, 0, fine, x)
        place = ends[k]
        ends[k] = place + 1
        sorted_points[X, place], sorted_points[Y, place] = x * scale, y * scale
        index[ORDER, place] = chunk * WIDTH + j
    return places


@inner(fastmath={"contract"})
def add_range(sorted_points, first, n, x, y, change, square):
    """SUM += w·change at `n` places from `first` on, where the squared distance is at most `square`."""
    xs, ys = sorted_points[X, first : first + n], sorted_points[Y, first : first + n]
    sums = sorted_points[SUM, first : first + n]
    for i in range(n):
        dx, dy = xs[i] - x, ys[i] - y
        z = dx * dx + dy * dy
        w = rough_power(z)
        sums[i] += change * w if z <= square else 0.0


@inner
def spread(grid, fine, scale, sorted_points, ends, u, change, radius):
    """SUM += change·w at all points within `radius` of `u` (2,); `fine` and `scale` are those of `lay_out`."""
    columns, strips = np.int64(grid[CELLS, 0]) * fine, np.int64(grid[CELLS, 1]) * fine
    x, y = u[np.int64(grid[AXIS, 0])], u[np.int64(grid[AXIS, 1])]
    square, scaled = radius * radius, min(FARTHEST, (radius * scale) * (radius * scale))
    per_width = grid[PER_WIDTH, 1] * fine
    height = 1.0 / per_width if per_width > 0.0 else math.inf
    place = (y - grid[ORIGIN, 1]) * per_width
    for strip in range(fine_cell(grid, 1, fine, y - radius), fine_cell(grid, 1, fine, y + radius) + 1):
        # Points beyond the grid belong to its outermost cells.
        gap = max(strip - place if strip > 0 else 0.0, place - (strip + 1) if strip + 1 < strips else 0.0)
        gap = gap * height if gap > 0.0 else 0.0
        half = math.sqrt(max(0.0, square - gap * gap))
        base = strip * (columns + 1)
        first = ends[base + fine_cell(grid, 0, fine, x - half)] & -LANES
        last = lanes(ends[base + fine_cell(grid, 0, fine, x + half) + 1])
        add_range(sorted_points, first, (last - first) & -LANES, x * scale, y * scale, change, scaled)
