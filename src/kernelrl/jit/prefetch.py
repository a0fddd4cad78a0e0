"""Loading memory into the cache before it is needed.

The chunks a search finds are scattered in memory, so the processor cannot predict which comes next; without help it
waits longer for a chunk than it works on it. `prefetch` starts loading an address, and does nothing else.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.compile import inner
from kernelrl.jit.numba_private import NO_REFERENCES, cgutils

__all__ = ["AHEAD", "prefetch_chunk", "prefetch_place"]

LINE = 8  # float64 numbers in a cache line
AHEAD = 6  # how many chunks ahead memory is requested


@intrinsic
def _prefetch(typingctx, array, offset):
    """Request the cache line of array.flat[offset]; the array must be contiguous."""

    def codegen(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), cgutils.voidptr_t)
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(function, [pointer, number(0), number(3), number(1)])  # to read, to keep, data
        return context.get_dummy_value()

    return types.void(array, types.int64), codegen


def prefetch(array, offset):
    """Do nothing; compiled callers use `_prefetch_compiled`."""


@overload(prefetch, jit_options=NO_REFERENCES)
def _prefetch_compiled(array, offset):
    return lambda array, offset: _prefetch(array, offset)


@inner
def prefetch_chunk(points, values, chunk, size):
    """Request the first `size` places of points[chunk] (d, WIDTH) and of values[chunk] (WIDTH,)."""
    d, width = points.shape[1], points.shape[2]
    for place in range(0, size, LINE):
        for j in range(d):
            prefetch(points, (chunk * d + j) * width + place)
        prefetch(values, chunk * width + place)


@inner
def prefetch_place(points, values, r, chunk, place):
    """Request points[chunk, :, place] and values[r, chunk, place]."""
    d, width = points.shape[1], points.shape[2]
    for j in range(d):
        prefetch(points, (chunk * d + j) * width + place)
    prefetch(values, (r * values.shape[1] + chunk) * values.shape[2] + place)
