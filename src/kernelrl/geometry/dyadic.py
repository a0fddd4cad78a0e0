"""Boxes that are halved along every axis, again and again: dyadic cells, in trees.

The cell of a state is found by the binary digits of its position in the unit box: digit k of each coordinate says in
which half of a cell of depth k it lies. A cell includes its lower faces, and the last cell of an axis also its upper
face. A cell of depth k has the side 2^-k; its 2^d parts have consecutive numbers.

`CellTrees` are such trees of the box of states, one for each step, whose first cell has the number of the step. A cell
may have parts without being `divided`: the leaves of the partition that a tree stands for are the cells that are not
divided, and whose parent, if any, is. Cells below leaves are places where something was seen.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.jit.compile import in_both, inner
from kernelrl.jit.fields import Field, checks, completes, require

__all__ = [
    "DIGITS", "CellTrees", "add_parts", "cell_at", "centre", "centre_distance", "depths", "gap_to", "grown_trees",
    "half_at", "leaf", "leaf_at", "locate", "new_trees", "parts_of", "steps_of",
]  # fmt: skip

DIGITS = 30  # a cell of depth 30 would need billions of visits


class CellTrees(NamedTuple):
    """Trees of cells of the box of states."""

    child: Annotated[np.ndarray, Field("Cells", np.int32, index="Cells", none=True, fill=-1)]  # first of the parts
    divided: Annotated[np.ndarray, Field("Cells", np.bool_)]
    used: Annotated[np.ndarray, Field("1", np.int64, counts="Cells")]
    # All of the following can be told from `child`: position and depth, and lists of the cells of each step
    corner: Annotated[np.ndarray, Field("Cells d", np.int64, scratch=True)]  # digits of the lower corner
    depth: Annotated[np.ndarray, Field("Cells", np.int64, scratch=True)]
    following: Annotated[np.ndarray, Field("Cells", np.int32, scratch=True, fill=-1)]
    preceding: Annotated[np.ndarray, Field("Cells", np.int32, scratch=True, fill=-1)]
    last: Annotated[np.ndarray, Field("H", np.int64, scratch=True)]


@inner
def locate(settings, state, place):
    """Write the first DIGITS binary digits of each coordinate of `state` in the unit box into `place`."""
    for j in range(settings.low.size):
        u = np.int64((state[j] - settings.low[j]) * settings.inverse[j] * 2.0**DIGITS)
        place[j] = min(u, 2**DIGITS - 1)


@inner
def leaf(child, ball, place):
    """The undivided ball inside `ball`, the first of a tree, that contains a located state."""
    ball, k = np.int64(ball), DIGITS
    while child[ball] >= 0:
        k -= 1
        half = 0
        for j in range(place.size):
            half = 2 * half + ((place[j] >> k) & 1)
        ball = child[ball] + half
    return ball


# ----------------------------------------------------------------------------------------------------- trees, in Python


def depths(where, counter, child, used, roots, children):
    """(used,) the depth of each node of trees; ValueError unless each has `children` later ones, or none."""
    whole = used >= roots and (used - roots) % children == 0
    require(whole, f"{where}{counter}", f"{used} balls are no whole families")
    parents = np.flatnonzero(child[:used] >= 0)
    firsts = child[parents].astype(np.int64)
    families = np.array_equal(np.sort(firsts), np.arange(roots, used, children)) and (firsts > parents).all()
    require(families, f"{where}child", "the children of balls are not all others, each of one ball before it")
    depth = np.zeros(used)
    for parent, first in zip(parents[np.argsort(firsts)], np.sort(firsts), strict=True):
        depth[first : first + children] = depth[parent] + 1
    return depth


def steps_of(child, used, steps, children):
    """(used,) the step that each node belongs to, given those of the first balls."""
    found = np.zeros(used, np.int64)
    found[: len(steps)] = steps
    for node in range(used):  # children have higher numbers than their parents
        first = int(child[node])
        if first >= 0:
            found[first : first + children] = found[node]
    return found


def new_trees(horizon, d):
    """One cell for each step."""
    room = horizon * (1 + 4 * 2**d)
    check_memory((room, d))
    return CellTrees(
        np.full(room, -1, np.int32), np.zeros(room, np.bool_), np.array([horizon]), np.zeros((room, d), np.int64),
        np.zeros(room, np.int64), np.full(room, -1, np.int32), np.full(room, -1, np.int32), np.arange(horizon),
    )  # fmt: skip


def grown_trees(cells, needed):
    """Cells with room for `needed` more."""
    room = max(more(cells.child.size), int(cells.used[0]) + needed)
    return cells._replace(
        child=lengthen(cells.child, room, 0, -1), divided=lengthen(cells.divided, room, 0),
        corner=lengthen(cells.corner, room, 0), depth=lengthen(cells.depth, room, 0),
        following=lengthen(cells.following, room, 0, -1), preceding=lengthen(cells.preceding, room, 0, -1),
    )  # fmt: skip


@checks(CellTrees)
def check_cells(where, cells):
    """The cells form trees, and what is divided has parts and lies in what is divided."""
    used, horizon, parts = int(cells.used[0]), len(cells.last), parts_of(cells)
    depth = depths(where, "used", cells.child, used, horizon, parts)
    require(depth.max() <= DIGITS, f"{where}child", f"a cell is deeper than {DIGITS}")
    divided = cells.divided[:used]
    whole = (cells.child[:used][divided] >= 0).all()
    require(whole, f"{where}divided", "a cell without parts is said to be divided")
    for first in cells.child[:used][(cells.child[:used] >= 0) & ~divided]:
        below = cells.divided[first : first + parts].any()
        require(not below, f"{where}divided", "a cell is said to be divided inside one that is not")


@completes(CellTrees)
def complete_cells(cells):
    """Positions, depths and lists, from `child`."""
    used, horizon, parts = int(cells.used[0]), len(cells.last), parts_of(cells)
    d = cells.corner.shape[1]
    for cell in range(used):
        first, depth = int(cells.child[cell]), int(cells.depth[cell])
        if first >= 0:
            halves = (np.arange(parts)[:, None] >> np.arange(d - 1, -1, -1)) & 1
            cells.corner[first : first + parts] = cells.corner[cell] + (halves << (DIGITS - 1 - depth))
            cells.depth[first : first + parts] = depth + 1
    steps = steps_of(cells.child, used, np.arange(horizon), parts)
    for h in range(horizon):
        (own,) = np.nonzero(steps == h)
        cells.following[own[:-1]], cells.preceding[own[1:]] = own[1:], own[:-1]
        cells.last[h] = own[-1]
    return cells


# ------------------------------------------------------------------------------------------------------ trees, compiled


@in_both
def parts_of(cells):
    """2^d, how many parts a cell has."""
    return 1 << cells.corner.shape[1]


@inner
def add_parts(cells, h, cell):
    """Give a cell of step `h` its parts; return the number of the first."""
    first, parts, depth = cells.used[0], parts_of(cells), cells.depth[cell]
    d = cells.corner.shape[1]
    for i in range(parts):
        part = first + i
        for j in range(d):
            cells.corner[part, j] = cells.corner[cell, j] + (((i >> (d - 1 - j)) & 1) << (DIGITS - 1 - depth))
        cells.depth[part] = depth + 1
        before = cells.last[h]
        cells.following[before], cells.preceding[part] = part, before
        cells.last[h] = part
    cells.child[cell] = first
    cells.used[0] = first + parts
    return first


@inner
def half_at(place, d, k):
    """Which part of a cell of depth `k` contains a located state."""
    half = 0
    for j in range(d):
        half = 2 * half + ((place[j] >> (DIGITS - 1 - k)) & 1)
    return half


@inner
def leaf_at(cells, h, place):
    """The leaf of step `h` that contains a located state."""
    cell, k, d = np.int64(h), 0, cells.corner.shape[1]
    while cells.divided[cell]:
        cell = np.int64(cells.child[cell]) + half_at(place, d, k)
        k += 1
    return cell


@inner
def cell_at(cells, h, place, depth):
    """The deepest cell of step `h`, down to `depth`, that contains a located state, and how deep it is."""
    cell, k, d = np.int64(h), 0, cells.corner.shape[1]
    while k < depth and cells.child[cell] >= 0:
        cell = np.int64(cells.child[cell]) + half_at(place, d, k)
        k += 1
    return cell, k


@inner
def centre(cells, cell, j):
    """Coordinate `j` of a cell's centre, in the unit box."""
    return cells.corner[cell, j] * 2.0**-DIGITS + 0.5 * 2.0 ** -cells.depth[cell]


@inner
def centre_distance(cells, cell, other):
    """The distance between the centres of two cells, in the maximum norm."""
    found = 0.0
    for j in range(cells.corner.shape[1]):
        found = max(found, abs(centre(cells, cell, j) - centre(cells, other, j)))
    return found


@inner
def gap_to(cells, cell, other):
    """The distance between the centre of `cell` and the nearest point of `other`."""
    found, reach = 0.0, 0.5 * 2.0 ** -cells.depth[other]
    for j in range(cells.corner.shape[1]):
        found = max(found, abs(centre(cells, cell, j) - centre(cells, other, j)) - reach)
    return found
