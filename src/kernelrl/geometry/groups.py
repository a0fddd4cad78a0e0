"""Groups of neighbouring representatives, so that sums over their neighbours share memory reads.

    T[u] = Σ_v w(u, v)·W[v]        for all representatives u

With several bandwidths each has its own sums, T[e] with e = u·M + j (see `representatives`), and groups of its own.
Nearby representatives have nearly the same neighbours. So up to MEMBERS of them form a group with one list of
neighbours, the union of theirs, and a weight for each member (zero where v is not its neighbour): a row W[v] is read
once for all members. There are a third more terms to add, and it takes less than half the time.

Groups are made again when there are more representatives or the bandwidth changes; they depend only on the lists of
neighbours.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import lengthen
from kernelrl.geometry.representatives import LIVE, list_of
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.rows import COLUMNS, SUMS_AT_ONCE, add_rows_to_all

__all__ = ["Groups", "group_room", "grow_groups", "new_groups", "renew_groups", "smooth"]

MEMBERS = SUMS_AT_ONCE
NUMBER, COVERED = range(2)  # of `number`
GROUP, ENTRY = range(2)  # of `place`


class Groups(NamedTuple):
    """The groups (see the module's docstring)."""

    number: np.ndarray  # (2,) NUMBER of groups; COVERED: how many lists are in them
    scale: np.ndarray  # (1,) 1/σ² of the weights
    member: np.ndarray  # (U·M, MEMBERS) the lists e of a group, or -1
    start: np.ndarray  # (U·M+1,) first entry of a group's list, and the end of the last
    index: np.ndarray  # (entries,) uint32 v
    weight: np.ndarray  # (entries, MEMBERS)
    place: np.ndarray  # (2, U·M) scratch: GROUP of a list e, or -1; ENTRY of v in the list being made, or -1
    sums: np.ndarray  # (MEMBERS, columns) scratch


def new_groups(capacity, columns):
    """No groups yet, for at most `capacity` lists."""
    return Groups(
        np.zeros(2, np.int64), np.zeros(1), np.full((capacity, MEMBERS), -1, np.int64),
        np.zeros(capacity + 1, np.int64), np.zeros(0, np.uint32), np.zeros((0, MEMBERS)),
        np.full((2, capacity), -1, np.int64), np.zeros((MEMBERS, columns)),
    )  # fmt: skip


@compiled
def entries_needed(near, number, coming, each):
    """How many entries the groups may need when `coming` representatives, with `each` lists, join `number` others."""
    return near.used[LIVE] + 2 * each * coming * (number + coming)


@inner
def group_room(groups, near, number, coming, each):
    """Whether the lists have room when `coming` representatives, with `each` lists, join `number` others."""
    return groups.index.size >= entries_needed(near, number, coming, each)


def grow_groups(groups, capacity, near, number, coming, each):
    """The same groups with that room, for at most `capacity` lists."""
    entries = max(groups.index.size, 2 * entries_needed(near, number, coming, each))
    return groups._replace(
        member=lengthen(groups.member, capacity, 0, -1),
        start=lengthen(groups.start, capacity + 1, 0),
        index=lengthen(groups.index, entries, 0),
        weight=lengthen(groups.weight, entries, 0),
        place=lengthen(groups.place, capacity, 1, -1),
    )


@inner
def closest_free(near, e, group, each):
    """Of list `e`, the neighbour with the largest weight whose list is in no group yet, or -1; `group` is (U·M,).

    Returned is its list for the same one of `each` bandwidths.
    """
    best, found, own = -1.0, -1, e % each
    start, end = list_of(near, e)
    for i in range(start, end):
        other = np.int64(near.index[i]) * each + own
        if group[other] < 0 and near.amount[i, 0] > best:
            best, found = near.amount[i, 0], other
    return found


@inner
def add_list(groups, near, u, k, first, end):
    """Add the neighbours of `u`, member `k` of a group, to the group's list, `first` … `end`-1; return the new end."""
    entry = groups.place[ENTRY]
    start, last = list_of(near, u)
    for j in range(start, last):
        v = near.index[j]
        if entry[v] < first:
            entry[v] = end
            groups.index[end] = v
            for i in range(MEMBERS):
                groups.weight[end, i] = 0.0
            end += 1
        groups.weight[entry[v], k] = near.amount[j, 0]
    return end


@inner
def renew_groups(groups, near, U, scale, each):
    """Group the first `U` lists again, `each` for a representative, if their number or 1/σ², `scale`, has changed."""
    if groups.number[COVERED] == U and groups.scale[0] == scale:
        return
    groups.scale[0] = scale
    group = groups.place[GROUP]
    for u in range(U):
        group[u], groups.place[ENTRY, u] = -1, -1
    g, end = 0, 0
    for u in range(U):
        if group[u] < 0:
            first, v = end, u
            for k in range(MEMBERS):
                groups.member[g, k] = v
                if v >= 0:
                    group[v] = g
                    end = add_list(groups, near, v, k, first, end)
                    v = closest_free(near, u, group, each)
            g += 1
            groups.start[g] = end
    groups.number[NUMBER], groups.number[COVERED] = g, U


@inner
def smooth(groups, W, T):
    """T[e] = Σ_v w(e, v)·W[v] for all lists in groups; W is (U, columns) and T (U·M, columns)."""
    sums = groups.sums
    for g in range(groups.number[NUMBER]):
        for first in range(0, W.shape[1], COLUMNS):
            add_rows_to_all(groups.weight, groups.index, groups.start[g], groups.start[g + 1], W, first, sums)
        for k in range(MEMBERS):
            u = groups.member[g, k]
            if u >= 0:
                for c in range(W.shape[1]):
                    T[u, c] = sums[k, c]
