"""Sparse counts of transitions between the cells of a grid: only visited cells take memory for their successors.

For each pair (x, a) of a pool of data (all steps together, or one pool per step) there are the number of visits n, the
sum of rewards, and how often each successor y followed. From them

    r̂ = Σr/n,   P̂V = Σ_y n(y)·V(y)/n

Actions are kept in groups of four, side by side in lanes, and each cell has one list for each group. A row of a list
has one window for each lane: four consecutive cells w … w+3 and how often each of them followed
(`kernelrl.jit.windows`). On a grid successors lie together, so a few windows contain them all. A window begins at its
lowest successor; it is moved down if that makes room for a new one. The rows of a list are contiguous; a list that is
full moves to the end of the array, with room for twice as many. In two dimensions most are never full, so they lie in
the order in which cells were first visited, and plans go through them in this order.

A termination is one more successor, cell X; plans write its value there, that of `units`. Rewards are summed raw and
mapped to [0, 1] when they are used.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.bonuses.counted import Counted
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.grid import Grid
from kernelrl.jit.compile import in_both, inner
from kernelrl.jit.fields import Field, Rows, checks, require
from kernelrl.jit.windows import LANES, WIDTH
from kernelrl.stores.interface import add, grown_for, has_ended, has_room_for, pool, samples_in
from kernelrl.stores.units import Units

__all__ = [
    "BONUS_ROOT",
    "INVERSE",
    "LENGTH",
    "REWARD",
    "START",
    "VISITS",
    "CountSettings",
    "Counts",
    "groups_of",
    "lane_of",
    "list_of",
    "new_counts",
    "with_pads",
]

VISITS, REWARD, INVERSE, BONUS_ROOT, ENDED = range(5)  # of `pairs`
START, LENGTH, ROOM = range(3)  # of `lists`
ROWS, TRANSITIONS, LONGEST = range(3)  # of `number`
FIRST_ROOM = 3  # rows of a new list: on a grid of two axes, where a step leads to 3×3 cells, as many as it needs


class CountSettings(NamedTuple):
    """The hyper-parameters of the algorithms that keep counts."""

    horizon: int  # H
    actions: int  # A
    stationary: bool
    replan: int
    growth: float  # episodes grow by this factor from plan to plan
    minimum: bool
    units: Units
    grid: Grid
    bonus: Counted
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)
    allowed: np.ndarray  # (X, A) the same at the centres of cells; empty if all are


class Counts(NamedTuple):
    """The counts. A list's number is (pool·X + x)·groups + a//LANES, and the lane of an action a%LANES."""

    # VISITS n, sum of REWARD (raw), INVERSE 1/n, BONUS_ROOT root/√n, ENDED
    pairs: Annotated[np.ndarray, Field("Lists 5 4")]
    # START: first row; LENGTH: the number of rows, that of the action with most windows; ROOM: for how many
    lists: Annotated[np.ndarray, Rows(Field("Lists"), Field("Lists"), Field("Lists"), dtype=np.int32)]
    windows: Annotated[np.ndarray, Field("Lists 4", np.int32)]  # the number of windows of each action
    window: Annotated[np.ndarray, Field("Rows 4", np.uint32, index="X+1")]  # first cell
    times: Annotated[np.ndarray, Field("Rows 4 4", np.int32, fill=0)]  # n(y)
    number: Annotated[
        np.ndarray, Rows(Field("", counts="Rows"), Field(""), Field(""))
    ]  # ROWS; TRANSITIONS; LONGEST ROOM
    cells: Annotated[np.ndarray, Field("pools X", np.int32, index="X")]  # cells visited, in order of their first visit
    visited: Annotated[np.ndarray, Field("pools", np.int64, most="X")]  # how many


@checks(Counts)
def check_counts(where, counts):
    """Lists do not overlap and are in use, and the list of cells contains each visited cell exactly once."""
    require(
        (counts.pairs[:, [VISITS, INVERSE, BONUS_ROOT, ENDED]] >= 0.0).all(), f"{where}pairs", "an entry is negative"
    )
    start, length, room = counts.lists.astype(np.int64)
    require((length <= room).all(), f"{where}lists", "a list is longer than its room")
    require(np.array_equal(counts.windows.max(axis=1), length), f"{where}windows", "there are not as many as rows")
    require(int(room.max()) <= counts.number[LONGEST], f"{where}number", "a list has more room than the longest")
    order = np.argsort(start[room > 0])
    first, last = start[room > 0][order], (start + room)[room > 0][order]
    apart = (last[:-1] <= first[1:]).all() and (last <= counts.number[ROWS]).all()
    require(apart, f"{where}lists", "two lists overlap, or one is out of range")
    pools, X = counts.cells.shape
    seen = (counts.pairs[:, VISITS] > 0.0).reshape(pools, X, -1).any(axis=2)
    for p in range(pools):
        cells = np.sort(counts.cells[p, : counts.visited[p]])
        require(np.array_equal(cells, np.flatnonzero(seen[p])), f"{where}cells", "it is not the cells with visits")


def groups_of(actions):
    """The number of groups of LANES actions."""
    return -(-actions // LANES)


def with_pads(V):
    """Values (steps, X) of cells in the form that plans read: followed by that of a termination, and by zeros."""
    return np.pad(V, ((0, 0), (0, WIDTH)))


def new_counts(pools, X, A, samples):
    """No transitions, and room for `samples`."""
    lists, rows = pools * X * groups_of(A), rows_needed(samples, 0)
    check_memory((lists, 5, LANES))
    check_memory((rows, LANES, WIDTH))
    return Counts(
        np.zeros((lists, 5, LANES)), np.zeros((3, lists), np.int32), np.zeros((lists, LANES), np.int32),
        np.zeros((rows, LANES), np.uint32), np.zeros((rows, LANES, WIDTH), np.int32), np.zeros(3, np.int64),
        np.zeros((pools, X), np.int32), np.zeros(pools, np.int64),
    )  # fmt: skip


@in_both
def rows_needed(samples, longest):
    """How many rows so many transitions can need if no list has more room than `longest`.

    A transition makes at most one list move, to 2·room+1 rows. A list that is new has 3, 7, 15, … rows after 1, 4, 8, …
    transitions: in all less than four rows for each of them.
    """
    return samples * (2 * longest + 4)


@grown_for.implement_plain(Counts)
def grown_counts(store, settings, samples):
    rows = int(store.number[ROWS]) + rows_needed(samples, int(store.number[LONGEST]))
    rows = max(more(len(store.window)) + 1, rows)
    return store._replace(window=lengthen(store.window, rows, 0), times=lengthen(store.times, rows, 0))


@has_room_for.implement(Counts)
def has_room_for_counts(store, settings, samples):
    return store.window.shape[0] - store.number[ROWS] >= rows_needed(samples, store.number[LONGEST])


@samples_in.implement_plain(Counts)
@samples_in.implement(Counts)
def transitions_counted(store):
    return store.number[TRANSITIONS]


@has_ended.implement_plain(Counts)
def counted_has_ended(store):
    return bool(store.pairs[:, ENDED].any())


@inner
def list_of(counts, actions, pool, x):
    """The number of the first list of a cell."""
    return (pool * counts.cells.shape[1] + x) * ((actions + LANES - 1) // LANES)


@inner
def lane_of(counts, actions, pool, x, a):
    """The list and the lane of a pair."""
    return list_of(counts, actions, pool, x) + a // LANES, a % LANES


@inner
def move_list(counts, i):
    """Move list `i`, which is full, to the end."""
    lists, window, times, number = counts.lists, counts.window, counts.times, counts.number
    old, new, room = np.int64(lists[START, i]), number[ROWS], max(FIRST_ROOM, 2 * np.int64(lists[ROOM, i]) + 1)
    for k in range(lists[LENGTH, i]):
        for lane in range(LANES):
            window[new + k, lane] = window[old + k, lane]
            for j in range(WIDTH):
                times[new + k, lane, j] = times[old + k, lane, j]
    lists[START, i], lists[ROOM, i] = new, room
    number[ROWS], number[LONGEST] = new + room, max(number[LONGEST], room)


@inner
def move_down(counts, row, lane, y):
    """Make a window begin at `y`, which is below it, if nothing is lost; return whether it does."""
    down, times = np.int64(counts.window[row, lane]) - y, counts.times[row, lane]
    if down <= 0 or down >= WIDTH:
        return False
    for j in range(WIDTH - down, WIDTH):
        if times[j] > 0:
            return False
    for j in range(WIDTH - 1, -1, -1):
        times[j] = times[j - down] if j >= down else 0
    counts.window[row, lane] = y
    return True


@inner
def tally(counts, i, lane, y):
    """Count `y` once more in a lane of list `i`."""
    lists, used, start = counts.lists, np.int64(counts.windows[i, lane]), np.int64(counts.lists[START, i])
    for k in range(used):
        first = np.int64(counts.window[start + k, lane])
        if first <= y < first + WIDTH:
            counts.times[start + k, lane, y - first] += 1
            return
    for k in range(used):
        if move_down(counts, start + k, lane, y):
            counts.times[start + k, lane, 0] = 1
            return
    if used == lists[ROOM, i]:
        move_list(counts, i)
        start = np.int64(lists[START, i])
    counts.window[start + used, lane] = y
    counts.times[start + used, lane, 0] = 1
    counts.windows[i, lane] = used + 1
    lists[LENGTH, i] = max(np.int64(lists[LENGTH, i]), used + 1)


@add.implement(Counts, inline=True)
def add_counted(store, settings, x, action, reward, y, h, terminated):
    where, pairs = pool(settings, h), store.pairs
    i, lane = lane_of(store, settings.actions, where, x, action)
    n = pairs[i, VISITS, lane] + 1.0
    if n == 1.0:
        note_cell(store, settings.actions, where, x)
    pairs[i, VISITS, lane] = n
    pairs[i, REWARD, lane] += reward
    pairs[i, INVERSE, lane] = 1.0 / n
    pairs[i, BONUS_ROOT, lane] = settings.bonus.root / math.sqrt(n)
    if terminated:
        pairs[i, ENDED, lane] += 1.0
    store.number[TRANSITIONS] += 1
    tally(store, i, lane, np.int64(store.cells.shape[1]) if terminated else np.int64(y))
    return False  # unknown


@inner
def note_cell(store, actions, where, x):
    """Add `x` to the visited cells of a pool unless it is there."""
    i = list_of(store, actions, where, x)
    for k in range(i, i + (actions + LANES - 1) // LANES):
        for lane in range(LANES):
            if store.pairs[k, VISITS, lane] > 0.0:
                return
    store.cells[where, store.visited[where]] = x
    store.visited[where] += 1
