"""Sums of weighted rows for MEMBERS at once, which share one list of entries: smoothing of a group.

    T[e, c:c+4] = Σ_j weights[j, k] · rows[index[j], c:c+4] for the k-th member e of a group         (add_rows_to_all)
    Q[e] = (T[e] + a)·x[e] + b·y[e] and V[e] = min(R, max_c Q[e, c])                                 (best_rows_of_all)

A row is read once for all members. Two things limit the loop, and removing one of them alone makes little difference:
the number of loads, so one load brings the weights of two members (`add_entry`); and the wait for the addition before,
so there are TURNS sums that take turns. The second form does everything that follows while T is in registers, without a
branch for groups that are not full. With the JIT disabled NumPy does the same.
"""

import functools
import itertools
import math

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils
from kernelrl.jit.rows import COLUMNS, add_product, arrays_of, four, four_times, load, new_sums, scaled, store

__all__ = ["MEMBERS", "TURNS", "add_rows_to_all", "best_rows_of_all"]

MEMBERS = 4
TURNS = 2


def shuffled(builder, vector, *order, other=None):
    """A vector of the entries `order` of another, or of two, the second one's counted on."""
    other, lanes = other or ir.Constant(vector.type, ir.Undefined), ir.VectorType(ir.IntType(32), len(order))
    return builder.shuffle_vector(vector, other, ir.Constant(lanes, order))


def twice(builder, data, offset):
    """The two numbers a, b at `offset` as a vector a, b, a, b."""
    two = ir.VectorType(ir.DoubleType(), 2)
    pair = builder.load(builder.bitcast(builder.gep(data, [offset]), two.as_pointer()))
    pair.align = 8
    return shuffled(builder, pair, 0, 1, 0, 1)


def add_entry(builder, sums, w, row, entry):
    """Add one row, weighted, to the sums of all members.

    Two members with weights a and b share two sums: a, b, a, b times the row and times the row with its neighbours
    swapped. This takes one load of weights for two members; `untangled` sorts the sums.
    """
    swapped, word = shuffled(builder, row, 1, 0, 3, 2), ir.IntType(64)
    for k in range(0, MEMBERS, 2):
        weights = twice(builder, w.data, builder.add(builder.mul(entry, word(MEMBERS)), word(k)))
        add_product(builder, sums[k], row, weights)
        add_product(builder, sums[k + 1], swapped, weights)


def untangled(builder, straight, swapped):
    """The sums of two members from a·r0, b·r1, a·r2, b·r3 and a·r1, b·r0, a·r3, b·r2."""
    return [
        shuffled(builder, straight, 0, 4, 2, 6, other=swapped),
        shuffled(builder, swapped, 1, 5, 3, 7, other=straight),
    ]


def sums_for_all(builder, w, i, r, bounds, width, first):
    """The loop over a group's entries, `bounds`: weighted sums of rows, one for each member.

    There are TURNS sums for each member, since an addition has to wait for the one before.
    """
    word, sums = ir.IntType(64), [new_sums(builder, MEMBERS) for _ in range(TURNS)]
    for total in itertools.chain(*sums):
        builder.store(four(0.0), total)
    with cgutils.for_range_slice(builder, *bounds, word(TURNS), word) as (j, _):
        for turn in range(TURNS):
            entry = builder.add(j, word(turn))
            which = builder.zext(builder.load(builder.gep(i.data, [entry])), word)
            row = load(builder, r.data, builder.add(builder.mul(which, width), first))
            add_entry(builder, sums[turn], w, row, entry)
    totals = [functools.reduce(builder.fadd, map(builder.load, turns)) for turns in zip(*sums, strict=True)]
    return [total for k in range(0, MEMBERS, 2) for total in untangled(builder, totals[k], totals[k + 1])]


def members_of(builder, m, g):
    """The members of group `g`, the last one first; for one that is missing the first, which is then written last."""
    word = ir.IntType(64)
    place = builder.mul(g, word(MEMBERS))
    first, *others = [builder.load(builder.gep(m.data, [builder.add(place, word(k))])) for k in range(MEMBERS)]
    others = [builder.select(builder.icmp_signed("<", other, word(0)), first, other) for other in others]
    return list(enumerate([first, *others]))[::-1]


@intrinsic
def _add_rows_to_all(typingctx, weights, index, start, end, rows, first, members, g, out):
    """One row at a time, into all sums."""

    def codegen(context, builder, signature, arguments):
        w, i, r, m, o = arrays_of(context, builder, signature, arguments)
        _, _, start, end, _, first, _, g, _ = arguments
        width = cgutils.unpack_tuple(builder, r.shape)[1]
        sums = sums_for_all(builder, w, i, r, (start, end), width, first)
        for lane, member in members_of(builder, m, g):
            store(builder, sums[lane], o.data, builder.add(builder.mul(member, width), first))
        return context.get_dummy_value()

    integer = types.int64
    return types.void(weights, index, integer, integer, rows, integer, members, integer, out), codegen


def larger(builder, one, other):
    """The larger of two numbers, or of each two of two vectors."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def largest_of_each(builder, vectors):
    """A vector of the largest entries of four others."""
    for orders in (((0, 4, 2, 6), (1, 5, 3, 7)), ((0, 1, 4, 5), (2, 3, 6, 7))):
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [
            larger(builder, *(shuffled(builder, one, *order, other=other) for order in orders)) for one, other in pairs
        ]
    return vectors[0]


def are_actions(builder, first, actions):
    """Which of the four columns from `first` on are no padding."""
    word, kind = ir.IntType(64), ir.VectorType(ir.IntType(64), COLUMNS)
    left = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.sub(actions, first), ir.IntType(32)(0))
    left = shuffled(builder, left, *[0] * COLUMNS)
    return builder.icmp_signed("<", ir.Constant(kind, [word(c) for c in range(COLUMNS)]), left)


def best_rows(builder, arrays, bounds, g, factors, actions):
    """The code of `best_rows_of_all` for group `g`; `factors`: by_root, by_count and R, `bounds`: of its entries."""
    w, i, r, m, x, q, v = arrays
    word, (_, width) = ir.IntType(64), cgutils.unpack_tuple(builder, r.shape)
    layer, (root, count, most) = builder.mul(cgutils.unpack_tuple(builder, x.shape)[1], width), factors
    members, best = members_of(builder, m, g), new_sums(builder, MEMBERS)
    for found in best:
        builder.store(four(-math.inf), found)
    with cgutils.for_range_slice(builder, word(0), width, word(COLUMNS), word) as (first, _):
        sums = sums_for_all(builder, w, i, r, bounds, width, first)
        there = are_actions(builder, first, actions)
        for lane, member in members:
            place = builder.add(builder.mul(member, width), first)
            row = scaled(builder, sums[lane], x, place, layer, root, count)
            store(builder, row, q.data, place)
            row = builder.select(there, row, four(-math.inf))
            builder.store(larger(builder, row, builder.load(best[lane])), best[lane])
    values = largest_of_each(builder, [builder.load(found) for found in best])
    values = builder.select(builder.fcmp_ordered("<", values, most), values, most)
    for lane, member in members:
        value = builder.extract_element(values, ir.IntType(32)(lane))
        builder.store(value, builder.gep(v.data, [member]))


@intrinsic
def _best_rows_of_all(typingctx, weights, index, start, rows, members, which, scaling, actions, inverse, Q, V):
    """One group after the other, in one function: a call for each would cost as much as the work."""

    def codegen(context, builder, signature, arguments):
        w, i, s, r, m, n, x, q, v = arrays_of(context, builder, signature, arguments)
        by_root, by_count, most = cgutils.unpack_tuple(builder, arguments[6])
        factors, word = [four_times(builder, factor) for factor in (by_root, by_count, most)], ir.IntType(64)
        number = cgutils.unpack_tuple(builder, n.shape)[0]
        with cgutils.for_range_slice(builder, word(0), number, word(1), word) as (k, _):
            g = builder.zext(builder.load(builder.gep(n.data, [k])), word)
            bounds = [builder.load(builder.gep(s.data, [builder.add(g, word(end))])) for end in range(2)]
            best_rows(builder, (w, i, r, m, x, q, v), bounds, g, factors, arguments[7])
        return context.get_dummy_value()

    integer, factors = types.int64, types.UniTuple(types.float64, 3)
    return types.void(weights, index, start, rows, members, which, factors, integer, inverse, Q, V), codegen


def add_rows_to_all(weights, index, start, end, rows, first, members, g, out):
    """out[e, first:first+4] = Σ weights[j, k]·rows[index[j], first:first+4] over entries `start` … `end`-1.

    This is for each of the lists e = members[g, k] that is not -1. All arrays are contiguous, `weights` (entries,
    MEMBERS), their number a multiple of TURNS, and `out` is as wide as `rows`.
    """
    last, there = first + COLUMNS, members[g] >= 0
    sums = weights[start:end].T @ rows[index[start:end], first:last]
    out[members[g][there], first:last] = sums[there]


@overload(add_rows_to_all, jit_options=NO_REFERENCES)
def _add_rows_to_all_compiled(weights, index, start, end, rows, first, members, g, out):
    return lambda weights, index, start, end, rows, first, members, g, out: _add_rows_to_all(
        weights, index, start, end, rows, first, members, g, out
    )


def best_rows_of_all(weights, index, start, rows, members, which, scaling, actions, inverse, Q, V):
    """Q[u] = (T[u] + by_count)·inverse[0, u] + by_root·inverse[1, u] and V[u] = min(R, max_a Q[u, a]).

    T is that of `add_rows_to_all` with the entries start[g] … start[g+1]-1, u are the members of all groups g in
    `which` (n,), unsigned, `scaling` is (by_root, by_count, R), and the maximum is over the first `actions` columns.
    """
    by_root, by_count, most = scaling
    for g in which:
        there, entries = members[g] >= 0, slice(start[g], start[g + 1])
        u, T = members[g][there], weights[entries].T @ rows[index[entries]]
        Q[u] = (T[there] + by_count) * inverse[0, u] + by_root * inverse[1, u]
        V[u] = Q[u, :actions].max(axis=1).clip(max=most)


@overload(best_rows_of_all, jit_options=NO_REFERENCES)
def _best_rows_of_all_compiled(weights, index, start, rows, members, which, scaling, actions, inverse, Q, V):
    return lambda weights, index, start, rows, members, which, scaling, actions, inverse, Q, V: _best_rows_of_all(
        weights, index, start, rows, members, which, scaling, actions, inverse, Q, V
    )
