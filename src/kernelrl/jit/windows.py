"""Expected values of four actions at once: the inner loop of planning on the cells of a grid.

Successors of a pair are stored as windows of four consecutive cells, w … w+3, with the number of times that each of
them followed. Actions lie side by side in lanes: row k of a list has one window for each of four actions. With the
list's rows `start` … `end`-1, for each lane a

    q[4·place + a] = scale[a]·Σ_k Σ_j times[k, a, j]·values[window[k, a] + j] + base[a] + share·scale[a]

where scale = constants[c, 0] and base = constants[c, 1]; where scale[a] is 0, q stays as it is. A window is one vector
load, whatever it contains, so there is no branch inside and no gather. LLVM does not find this by itself: written in
plain loops the whole takes half as long again. With the JIT disabled NumPy does the same.
"""

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils
from kernelrl.jit.rows import arrays_of, at, four_times, load, store, vector_type

__all__ = ["LANES", "WIDTH", "window_targets"]

LANES = 4  # actions side by side
WIDTH = 4  # cells in a window


def load_counts(builder, data, offset):
    """Four 32-bit integers from `offset` on, as doubles."""
    kind = ir.VectorType(ir.IntType(32), WIDTH)
    value = builder.load(builder.bitcast(builder.gep(data, [offset]), kind.as_pointer()))
    value.align = 4
    return builder.sitofp(value, vector_type())


def load_firsts(builder, data, entries):
    """The first cells of a row's windows, two with one load: loads are what limits the loop."""
    word, firsts = ir.IntType(64), []
    for entry in entries[::2]:
        two = builder.load(builder.bitcast(builder.gep(data, [entry]), word.as_pointer()))
        two.align = 4
        both = builder.and_(two, word(2**32 - 1)), builder.lshr(two, word(32))
        firsts += both if sys.byteorder == "little" else both[::-1]
    return firsts


def shuffle(builder, one, other, lanes):
    """A vector of chosen lanes: 0 … 3 are those of `one`, 4 … 7 those of `other`."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), LANES), lanes))


def sum_each(builder, add, totals):
    """The sums of four vectors, as one vector."""
    one, other = (
        add(shuffle(builder, a, b, [0, 4, 2, 6]), shuffle(builder, a, b, [1, 5, 3, 7]))
        for a, b in (totals[:2], totals[2:])
    )
    return add(shuffle(builder, one, other, [0, 1, 4, 5]), shuffle(builder, one, other, [2, 3, 6, 7]))


def largest_lane(builder, vector):
    """The largest of four numbers."""
    for lanes in ([2, 3, 0, 1], [1, 0, 3, 2]):
        other = shuffle(builder, vector, vector, lanes)
        vector = builder.select(builder.fcmp_ordered(">", vector, other), vector, other)
    return builder.extract_element(vector, ir.IntType(32)(0))


@intrinsic
def _window_targets(typingctx, window, times, start, end, values, constants, c, share, q, place):
    """The code of the loop and of what follows it."""

    def codegen(context, builder, signature, arguments):
        windows, counts, v, k, out = arrays_of(context, builder, signature, arguments)
        _, _, start, end, _, _, c, share, _, place = arguments
        word, zero = ir.IntType(64), ir.Constant(vector_type(), [0.0] * LANES)

        def add(one, other):
            return builder.fadd(one, other, flags=("contract",))

        def product(one, other):
            return builder.fmul(one, other, flags=("contract",))

        totals = [cgutils.alloca_once_value(builder, zero) for _ in range(LANES)]
        with cgutils.for_range_slice(builder, start, end, word(1), word) as (row, _):
            entries = [builder.add(builder.mul(row, word(LANES)), word(lane)) for lane in range(LANES)]
            firsts = load_firsts(builder, windows.data, entries)
            for entry, first, total in zip(entries, firsts, totals, strict=True):
                number = load_counts(builder, counts.data, builder.mul(entry, word(WIDTH)))
                builder.store(add(builder.load(total), product(number, load(builder, v.data, first))), total)
        expected = sum_each(builder, add, [builder.load(total) for total in totals])
        constant, here = builder.mul(c, word(2 * LANES)), builder.mul(place, word(LANES))
        scale, base = (load(builder, k.data, builder.add(constant, word(i * LANES))) for i in range(2))
        found = add(product(expected, scale), add(base, product(scale, four_times(builder, share))))
        before = builder.load(at(builder, out.data, here))
        before.align = 8
        found = builder.select(builder.fcmp_ordered(">", scale, zero), found, before)
        store(builder, found, out.data, here)
        return largest_lane(builder, found)

    integer, number = types.int64, types.float64
    return number(window, times, integer, integer, values, constants, integer, number, q, integer), codegen


def window_targets(window, times, start, end, values, constants, c, share, q, place):
    """Write q of four actions (see the module's docstring) and return the largest of the four.

    All arrays are contiguous, `window` (rows, LANES) unsigned, `times` (rows, LANES, WIDTH) 32-bit integers,
    `constants` (…, 2, LANES), and `q` is read as flat. `values` must have WIDTH-1 more entries than there are cells.
    """
    scale, base = constants[c]
    expected = np.zeros(LANES)
    for lane in range(LANES):
        for row in range(start, end):
            first = int(window[row, lane])
            expected[lane] += times[row, lane] @ values[first : first + WIDTH]
    here = q.reshape(-1)[place * LANES : (place + 1) * LANES]
    here[:] = np.where(scale > 0.0, expected * scale + (base + scale * share), here)
    return here.max()


@overload(window_targets, jit_options={**NO_REFERENCES, "forceinline": True})
def _window_targets_compiled(window, times, start, end, values, constants, c, share, q, place):
    return lambda window, times, start, end, values, constants, c, share, q, place: _window_targets(
        window, times, start, end, values, constants, c, share, q, place
    )
