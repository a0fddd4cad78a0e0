"""Passing values back along transitions, four at a time: which have moved, and adding multiples of lists.

    all i with |values[i] - before[i]| > least                                                          (list_moved)
    out[place[i]] += amount[i]·factor,   start ≤ i < start + count rounded up to a multiple of AT_ONCE   (add_multiple)

Which values have moved is hard to predict, so there is no branch: four comparisons make a number of four bits, and a
table has the places of its ones.

When lists are added the number of loads and stores is the limit. LLVM cannot know that `out` and the lists do not
overlap, so it would load each place and each amount alone; here one load brings four amounts, and two bring four
places. With the JIT disabled NumPy does the same.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils
from kernelrl.jit.rows import COLUMNS, arrays_of, four_times, load

__all__ = ["AT_ONCE", "add_multiple", "list_moved"]

AT_ONCE = COLUMNS
ONES = [[k for k in range(AT_ONCE) if bits >> k & 1] for bits in range(2**AT_ONCE)]  # of each number of four bits


def four_places(builder, data, offset):
    """Four unsigned numbers of 32 bits from `offset` on, each in a word."""
    word, found = ir.IntType(64), []
    pairs = builder.bitcast(builder.gep(data, [offset]), word.as_pointer())
    for half in range(2):
        two = builder.load(builder.gep(pairs, [word(half)]))
        two.align = 4
        found += [builder.and_(two, word(0xFFFFFFFF)), builder.lshr(two, word(32))]
    return found


def table_of_ones(module):
    """A constant that has ONES, continued by zeros."""
    places = ir.VectorType(ir.IntType(32), AT_ONCE)
    rows = [ir.Constant(places, ones + [0] * (AT_ONCE - len(ones))) for ones in ONES]
    return cgutils.global_constant(module, "kernelrl_ones", ir.Constant(ir.ArrayType(places, len(rows)), rows))


@intrinsic
def _list_moved(typingctx, values, before, least, count, out):
    """One loop; `count` is a multiple of AT_ONCE."""

    def codegen(context, builder, signature, arguments):
        v, b, o = arrays_of(context, builder, signature, arguments)
        word, places = ir.IntType(64), ir.VectorType(ir.IntType(32), AT_ONCE)
        most, table = four_times(builder, arguments[2]), table_of_ones(builder.module)
        least = builder.fneg(most)
        first, none = ir.Constant(places, ir.Undefined), ir.Constant(places, None)
        number = cgutils.alloca_once_value(builder, word(0))
        with cgutils.for_range_slice(builder, word(0), arguments[3], word(AT_ONCE), word) as (i, _):
            change = builder.fsub(load(builder, v.data, i), load(builder, b.data, i))
            moved = builder.or_(builder.fcmp_ordered(">", change, most), builder.fcmp_ordered("<", change, least))
            bits = builder.zext(builder.bitcast(moved, ir.IntType(AT_ONCE)), word)
            ones = builder.load(builder.gep(table, [word(0), bits]))
            start = builder.insert_element(first, builder.trunc(i, ir.IntType(32)), ir.IntType(32)(0))
            ones = builder.add(ones, builder.shuffle_vector(start, first, none))
            n = builder.load(number)
            builder.store(ones, builder.bitcast(builder.gep(o.data, [n]), places.as_pointer())).align = 4
            builder.store(builder.add(n, builder.ctpop(bits)), number)
        return builder.load(number)

    integer = types.int64
    return integer(values, before, types.float64, integer, out), codegen


def list_moved(values, before, least, count, out):
    """List the i < `count` at which `values` and `before` differ by more than `least` in `out`; return how many.

    All arrays are contiguous and have at least `count` entries, `out` is of 32 bits. What `out` has after the list is
    undefined.
    """
    which = np.flatnonzero(np.abs(values[:count] - before[:count]) > least)
    out[: which.size] = which
    return which.size


@overload(list_moved, jit_options=NO_REFERENCES)
def _list_moved_compiled(values, before, least, count, out):
    def with_rest(values, before, least, count, out):
        whole = count - count % AT_ONCE
        n = _list_moved(values, before, least, whole, out)
        for i in range(whole, count):
            out[n] = i
            n += abs(values[i] - before[i]) > least
        return n

    return with_rest


@intrinsic
def _add_multiple(typingctx, place, amount, start, count, factor, out):
    """One loop."""

    def codegen(context, builder, signature, arguments):
        p, a, o = arrays_of(context, builder, signature, arguments)
        _, _, start, count, factor, _ = arguments
        word, lane, factors = ir.IntType(64), ir.IntType(32), four_times(builder, factor)
        with cgutils.for_range_slice(builder, word(0), count, word(AT_ONCE), word) as (i, _):
            entry = builder.add(start, i)
            products = builder.fmul(load(builder, a.data, entry), factors)
            for k, which in enumerate(four_places(builder, p.data, entry)):
                there = builder.gep(o.data, [which])
                total = builder.fadd(builder.load(there), builder.extract_element(products, lane(k)))
                builder.store(total, there)
        return context.get_dummy_value()

    integer = types.int64
    return types.void(place, amount, integer, integer, types.float64, out), codegen


def add_multiple(place, amount, start, count, factor, out):
    """out[place[i]] += amount[i]·factor for entries from `start` on, `count` rounded up to a multiple of AT_ONCE.

    All arrays are contiguous and read as flat; `place` is of 32 bits. The entries after `count` must exist, with valid
    places and amounts of zero.
    """
    entries = slice(start, start + -(-count // AT_ONCE) * AT_ONCE)
    np.add.at(out, place.reshape(-1)[entries], amount.reshape(-1)[entries] * factor)


@overload(add_multiple, jit_options=NO_REFERENCES)
def _add_multiple_compiled(place, amount, start, count, factor, out):
    return lambda place, amount, start, count, factor, out: _add_multiple(place, amount, start, count, factor, out)
