"""Square patches of a grid: adding a product of two vectors to one, and reading one with such a product.

    grid[first + stride·i + j] += amount·w[0, i]·w[1, j]              (add_patch)
    Σ_ij w[0, i]·w[1, j]·grid[first + stride·i + j]                   (read_patch)

for i, j < SPAN, where `grid` is read as flat. LLVM does not keep the sums and weights of a patch in registers by
itself: written in plain loops this takes two to five times as long. With the JIT disabled NumPy does the same.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload
from numpy.lib.stride_tricks import as_strided

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils
from kernelrl.jit.rows import COLUMNS, arrays_of, four_times, load, new_sums, store

__all__ = ["SPAN", "add_patch", "read_patch"]

SPAN = 36  # a whole number of vectors
VECTORS = range(0, SPAN, COLUMNS)


def row_of(builder, weights, i, first, stride):
    """w[0, i], and where row `i` of the patch begins."""
    return builder.load(builder.gep(weights.data, [i])), builder.add(first, builder.mul(i, stride))


def product_added(builder, total, one, other):
    """total + one·other."""
    return builder.fadd(total, builder.fmul(one, other, flags=("contract",)), flags=("contract",))


@intrinsic
def _add_patch(typingctx, grid, first, stride, amount, w):
    """The code of `add_patch`."""

    def codegen(context, builder, signature, arguments):
        values, weights = arrays_of(context, builder, signature, arguments)
        _, first, stride, amount, _ = arguments
        word = ir.IntType(64)
        across = [load(builder, weights.data, word(SPAN + j)) for j in VECTORS]
        with cgutils.for_range_slice(builder, word(0), word(SPAN), word(1), word) as (i, _):
            weight, start = row_of(builder, weights, i, first, stride)
            times = four_times(builder, builder.fmul(amount, weight))
            for j, vector in zip(VECTORS, across, strict=True):
                place = builder.add(start, word(j))
                before = load(builder, values.data, place)
                store(builder, product_added(builder, before, times, vector), values.data, place)
        return context.get_dummy_value()

    return types.void(grid, types.int64, types.int64, types.float64, w), codegen


@intrinsic
def _read_patch(typingctx, grid, first, stride, w):
    """The code of `read_patch`: sums over i first, in registers."""

    def codegen(context, builder, signature, arguments):
        values, weights = arrays_of(context, builder, signature, arguments)
        _, first, stride, _ = arguments
        word, lane = ir.IntType(64), ir.IntType(32)
        sums = new_sums(builder, len(VECTORS) + 1)
        with cgutils.for_range_slice(builder, word(0), word(SPAN), word(1), word) as (i, _):
            weight, start = row_of(builder, weights, i, first, stride)
            times = four_times(builder, weight)
            for j, total in zip(VECTORS, sums, strict=False):
                vector = load(builder, values.data, builder.add(start, word(j)))
                builder.store(product_added(builder, builder.load(total), times, vector), total)
        found = builder.load(sums[-1])
        for j, total in zip(VECTORS, sums, strict=False):
            across = load(builder, weights.data, word(SPAN + j))
            found = product_added(builder, found, builder.load(total), across)
        parts = [builder.extract_element(found, lane(k)) for k in range(COLUMNS)]
        return builder.fadd(builder.fadd(parts[0], parts[1]), builder.fadd(parts[2], parts[3]))

    return types.float64(grid, types.int64, types.int64, w), codegen


def patch_of(grid, first, stride):
    """The patch as a view (SPAN, SPAN)."""
    flat = grid.reshape(-1)[first : first + stride * (SPAN - 1) + SPAN]
    step = flat.strides[0]
    return as_strided(flat, (SPAN, SPAN), (stride * step, step))


def add_patch(grid, first, stride, amount, w):
    """Add amount·w[0, i]·w[1, j] to a patch; `grid` and `w` (2, SPAN) are contiguous."""
    patch = patch_of(grid, first, stride)
    patch += amount * w[0][:, None] * w[1]


def read_patch(grid, first, stride, w):
    """Σ w[0, i]·w[1, j]·patch[i, j]; `grid` and `w` (2, SPAN) are contiguous."""
    return float(w[0] @ patch_of(grid, first, stride) @ w[1])


@overload(add_patch, jit_options=NO_REFERENCES)
def _add_patch_compiled(grid, first, stride, amount, w):
    return lambda grid, first, stride, amount, w: _add_patch(grid, first, stride, amount, w)


@overload(read_patch, jit_options=NO_REFERENCES)
def _read_patch_compiled(grid, first, stride, w):
    return lambda grid, first, stride, w: _read_patch(grid, first, stride, w)
