"""Adding multiples of a list to scattered entries, four at a time: how values are passed back along transitions.

    out[place[i]] += amount[i]·factor,   start ≤ i < start + count rounded up to a multiple of AT_ONCE   (add_multiple)

The number of loads and stores is the limit. LLVM cannot know that `out` and the lists do not overlap, so it would load
each place and each amount alone; here one load brings four amounts, and two bring four places. With the JIT disabled
NumPy does the same.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils
from kernelrl.jit.rows import COLUMNS, arrays_of, four_times, load

__all__ = ["AT_ONCE", "add_multiple"]

AT_ONCE = COLUMNS


def four_places(builder, data, offset):
    """Four unsigned numbers of 32 bits from `offset` on, each in a word."""
    word, found = ir.IntType(64), []
    pairs = builder.bitcast(builder.gep(data, [offset]), word.as_pointer())
    for half in range(2):
        two = builder.load(builder.gep(pairs, [word(half)]))
        two.align = 4
        found += [builder.and_(two, word(0xFFFFFFFF)), builder.lshr(two, word(32))]
    return found


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
