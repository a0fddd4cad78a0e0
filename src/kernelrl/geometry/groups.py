"""Groups of neighbouring representatives, which are planned together.

    T[u] = Σ_v w(u, v)·W[v]        for all representatives u

With several bandwidths each has its own sums, T[e] with e = u·M + j (see `representatives`), and groups of its own.
Nearby representatives have nearly the same neighbours. So up to MEMBERS of them form a group with one list of
neighbours, the union of theirs, and a weight for each member (zero where v is not its neighbour): a row W[v] is read
once for all members. The list is continued to a multiple of TURNS by entries with weights of zero.

A list may be cut (`limits`): left out are neighbours v with

    ratio(v) = max of w(u, v)·n_most(v, a)/(share·C(u, a))·(length of the list) ≤ f     over actions a and pools of data

with the largest f of FACTORS for which these ratios add up to at most the length of the list. All that is left out of
T(u, a) then is at most the fraction `share` of C(u, a), as long as no count n has passed n_most = TIMES·n + MORE, its
limit. Weights fall quickly, so more than half of the neighbours are left out, and f is rarely 1.

`reads` says which groups read the row W[v]: a bit for each group, or for several that follow each other if there are
more than BITS.

Local weights differ from action to action; their groups have no lists, and each member reads its own.

Groups are made again when there are more representatives, the bandwidth changes or a count has passed its limit; they
depend on the lists of neighbours and on the limits only.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import lengthen
from kernelrl.geometry.representatives import LIVE, list_of
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.group_rows import MEMBERS, TURNS, add_rows_to_all, best_rows_of_all
from kernelrl.jit.rows import COLUMNS

__all__ = [
    "COVERED", "GROUP", "MEMBERS", "MORE", "NUMBER", "TIMES", "WORDS", "Groups", "group_room", "grow_groups",
    "list_marked", "new_groups", "renew_groups", "set_bit", "smooth", "smooth_to_values", "words_used",
]  # fmt: skip

NUMBER, COVERED, TOGETHER = range(3)  # of `number`
GROUP, ENTRY = range(2)  # of `place`
TIMES, MORE = 2.0, 30.0
FACTORS = (64.0, 16.0, 4.0)  # and 1
WORDS = 16
BITS = 64 * WORDS


class Groups(NamedTuple):
    """The groups (see the module's docstring)."""

    number: np.ndarray  # (3,) NUMBER of groups; COVERED: how many lists are in them; 2^TOGETHER share a bit
    member: np.ndarray  # (U·M, MEMBERS) the lists e of a group, or -1
    start: np.ndarray  # (U·M+1,) first entry of a group's list, and the end of the last
    index: np.ndarray  # (entries,) uint32 v
    weight: np.ndarray  # (entries, MEMBERS)
    place: np.ndarray  # (2, U·M) GROUP of a list e, or -1; scratch: ENTRY of v in the list being made, or -1
    reads: np.ndarray  # (U, WORDS) uint64
    scale: np.ndarray  # (pools, A) scratch
    ratio: np.ndarray  # (U·M,) scratch: of the entries of one list


def new_groups(capacity, each, pools, actions):
    """No groups yet, for at most `capacity` representatives with `each` lists."""
    lists = capacity * each
    return Groups(
        np.zeros(3, np.int64), np.full((lists, MEMBERS), -1, np.int64), np.zeros(lists + 1, np.int64),
        np.zeros(0, np.uint32), np.zeros((0, MEMBERS)), np.full((2, lists), -1, np.int64),
        np.zeros((capacity, WORDS), np.uint64), np.zeros((pools, actions)), np.zeros(lists),
    )  # fmt: skip


@compiled
def entries_needed(near, number, coming, each):
    """How many entries the groups may need when `coming` representatives, with `each` lists, join `number` others."""
    if near.amount.shape[1] > 1:
        return 0
    return near.used[LIVE] + 2 * each * coming * (number + coming) + TURNS * each * (number + coming)


@inner
def group_room(groups, near, number, coming, each):
    """Whether the lists have room when `coming` representatives, with `each` lists, join `number` others."""
    return groups.index.size >= entries_needed(near, number, coming, each)


def grow_groups(groups, capacity, near, number, coming, each):
    """The same groups with that room, for at most `capacity` representatives."""
    entries, lists = max(groups.index.size, 2 * entries_needed(near, number, coming, each)), capacity * each
    return groups._replace(
        member=lengthen(groups.member, lists, 0, -1),
        start=lengthen(groups.start, lists + 1, 0),
        index=lengthen(groups.index, entries, 0),
        weight=lengthen(groups.weight, entries, 0),
        place=lengthen(groups.place, lists, 1, -1),
        reads=lengthen(groups.reads, capacity, 0),
        ratio=lengthen(groups.ratio, lists, 0),
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
def find_ratios(groups, near, e, limits, beta, share):
    """Write the ratio of each entry of list `e` into `ratio`; the counts are those behind `limits`."""
    scale, ratio = groups.scale, groups.ratio
    start, end = list_of(near, e)
    scale[:] = beta
    for i in range(start, end):
        v, w = near.index[i], near.amount[i, 0]
        for p in range(scale.shape[0]):
            for c in range(scale.shape[1]):
                scale[p, c] += w * (limits[p, v, c] - MORE) / TIMES
    for p in range(scale.shape[0]):
        for c in range(scale.shape[1]):
            scale[p, c] = (end - start) / (share * scale[p, c])
    for i in range(start, end):
        v, largest = near.index[i], 0.0
        for p in range(scale.shape[0]):
            for c in range(scale.shape[1]):
                largest = max(largest, limits[p, v, c] * scale[p, c])
        ratio[i - start] = near.amount[i, 0] * largest


@inner
def largest_factor(ratio):
    """The largest of FACTORS with which not too much is left out of a list with these ratios (n,)."""
    for factor in FACTORS:
        total = 0.0
        for r in ratio:
            if r <= factor:
                total += r
        if total <= ratio.size:
            return factor
    return 1.0


@inner
def add_list(groups, near, e, k, first, end, limits, beta, share):
    """Add the neighbours of `e`, member `k` of a group, to the group's list, `first` … `end`-1; return the new end."""
    entry, factor, ratio = groups.place[ENTRY], 0.0, groups.ratio
    start, last = list_of(near, e)
    if share > 0.0:
        find_ratios(groups, near, e, limits, beta, share)
        factor = largest_factor(ratio[: last - start])
    for j in range(start, last):
        v = near.index[j]
        if share > 0.0 and ratio[j - start] <= factor:
            continue
        if entry[v] < first:
            entry[v] = end
            groups.index[end] = v
            for i in range(MEMBERS):
                groups.weight[end, i] = 0.0
            end += 1
        groups.weight[entry[v], k] = near.amount[j, 0]
    return end


@inner
def whole_turns(groups, first, end):
    """Continue a group's list, `first` … `end`-1, to a multiple of TURNS with weights of 0; return the new end."""
    while (end - first) % TURNS != 0:
        groups.index[end] = groups.index[first]
        for k in range(MEMBERS):
            groups.weight[end, k] = 0.0
        end += 1
    return end


@inner
def renew_groups(groups, near, U, each, limits, beta, share):
    """Group the lists of the first `U` representatives again, `each` for one; with a `share` of 0 nothing is left out.

    `limits` (pools, U, columns) are the n_most. Local lists are not joined.
    """
    group, lists, local = groups.place[GROUP], U * each, near.amount.shape[1] > 1
    for e in range(lists):
        group[e], groups.place[ENTRY, e] = -1, -1
    g, end = 0, 0
    for e in range(lists):
        if group[e] < 0:
            first, other = end, e
            for k in range(MEMBERS):
                groups.member[g, k] = other
                if other >= 0:
                    group[other] = g
                    if not local:
                        end = add_list(groups, near, other, k, first, end, limits, beta, share)
                    other = closest_free(near, e, group, each)
            end = whole_turns(groups, first, end)
            g += 1
            groups.start[g] = end
    groups.number[NUMBER], groups.number[COVERED], groups.number[TOGETHER] = g, lists, 0
    while g > BITS << groups.number[TOGETHER]:
        groups.number[TOGETHER] += 1
    note_readers(groups, near, U, local)


@inner
def note_readers(groups, near, U, local):
    """Fill `reads`."""
    for v in range(U):
        for i in range(WORDS):
            groups.reads[v, i] = 0
    for g in range(groups.number[NUMBER]):
        if not local:
            for j in range(groups.start[g], groups.start[g + 1]):
                set_bit(groups, groups.reads[groups.index[j]], g)
            continue
        for k in range(MEMBERS):
            if groups.member[g, k] >= 0:
                start, end = list_of(near, groups.member[g, k])
                for j in range(start, end):
                    set_bit(groups, groups.reads[near.index[j]], g)


@inner
def set_bit(groups, bits, g):
    """Set the bit of group `g` in `bits` (WORDS,)."""
    b = g >> groups.number[TOGETHER]
    bits[b >> 6] |= np.uint64(1) << np.uint64(b & 63)


@inner
def has_bit(groups, bits, g):
    """Whether the bit of group `g` is set in `bits` (WORDS,)."""
    b = g >> groups.number[TOGETHER]
    return (bits[b >> 6] >> np.uint64(b & 63)) & np.uint64(1) != 0


@inner
def list_marked(groups, bits, out):
    """List the groups whose bit is set in `bits` (WORDS,) in `out` (U·M,); return how many they are."""
    n = 0
    for g in range(groups.number[NUMBER]):
        out[n] = g
        n += has_bit(groups, bits, g)
    return n


@inner
def words_used(groups):
    """How many words have a bit of a group."""
    return ((groups.number[NUMBER] - 1) >> (groups.number[TOGETHER] + 6)) + 1


@inner
def smooth(groups, which, W, T):
    """T[e] = Σ_v w(e, v)·W[v] for the members e of the groups `which` (n,); W is (U, columns) and T (U·M, columns)."""
    weight, index, start, member = groups.weight, groups.index, groups.start, groups.member
    for g in which:
        for first in range(0, W.shape[1], COLUMNS):
            add_rows_to_all(weight, index, start[g], start[g + 1], W, first, member, g, T)


@inner
def smooth_to_values(groups, which, W, scaling, actions, inverse, Q, V):
    """Q and V of the members of the groups `which` (n,) in one go, without T; see `best_rows_of_all`."""
    member = groups.member
    best_rows_of_all(groups.weight, groups.index, groups.start, W, member, which, scaling, actions, inverse, Q, V)
