"""Sums of weighted rows, four columns at a time: the inner loop of planning on representative states.

    out[u, c:c+4] = Σ_j weights[j] · rows[index[j], c:c+4],   start ≤ j < start + count

The compiler does not vectorise a gather of short rows by itself, so the loop is written in the compiler's own terms:
vectors of four doubles, four independent sums (an addition takes four cycles and one can start every half cycle).
Where there is no compiler the same is done by NumPy.
"""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

__all__ = ["COLUMNS", "add_rows", "padded"]

COLUMNS = 4
SUMS_AT_ONCE = 4


def padded(number):
    """`number` rounded up to whole vectors."""
    return -(-number // COLUMNS) * COLUMNS


@intrinsic
def _add_rows(typingctx, weights, index, start, count, rows, first, out, u):
    """The loop over whole steps of SUMS_AT_ONCE."""

    def codegen(context, builder, signature, arguments):
        arrays = [
            context.make_array(kind)(context, builder, value)
            for kind, value in zip(signature.args, arguments, strict=True)
            if isinstance(kind, types.Array)
        ]
        w, i, r, o = arrays
        _, _, start, count, _, first, _, u = arguments
        word, real = ir.IntType(64), ir.DoubleType()
        vector = ir.VectorType(real, COLUMNS)
        width = cgutils.unpack_tuple(builder, r.shape)[1]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * COLUMNS)) for _ in range(SUMS_AT_ONCE)]
        fused = ("contract",)

        def load(pointer):
            pointer = builder.bitcast(pointer, vector.as_pointer())
            value = builder.load(pointer)
            value.align = 8
            return value

        with cgutils.for_range_slice(builder, word(0), count, word(SUMS_AT_ONCE), word) as (j, _):
            for lane, total in enumerate(sums):
                at = builder.add(start, builder.add(j, word(lane)))
                weight = builder.load(builder.gep(w.data, [at]))
                which = builder.zext(builder.load(builder.gep(i.data, [at])), word)
                row = load(builder.gep(r.data, [builder.add(builder.mul(which, width), first)]))
                splat = builder.insert_element(ir.Constant(vector, ir.Undefined), weight, ir.IntType(32)(0))
                splat = builder.shuffle_vector(
                    splat, ir.Constant(vector, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), COLUMNS), None)
                )
                product = builder.fmul(row, splat, flags=fused)
                builder.store(builder.fadd(builder.load(total), product, flags=fused), total)
        a, b, c, d = (builder.load(total) for total in sums)
        result = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        target = builder.gep(o.data, [builder.add(builder.mul(u, width), first)])
        store = builder.store(result, builder.bitcast(target, vector.as_pointer()))
        store.align = 8
        return context.get_dummy_value()

    integer = types.int64
    return types.void(weights, index, integer, integer, rows, integer, out, integer), codegen


def add_rows(weights, index, start, count, rows, first, out, u):
    """out[u, first:first+4] = Σ weights[j]·rows[index[j], first:first+4] over `count` entries from `start` on.

    All arrays are contiguous; `weights` and `index` are taken as flat. Up to the next multiple of SUMS_AT_ONCE there
    must be entries behind `count` whose weights or rows are zero.
    """
    entries, last = slice(start, start + count), first + COLUMNS
    out[u, first:last] = weights.reshape(-1)[entries] @ rows[index.reshape(-1)[entries], first:last]


@overload(add_rows, jit_options={"_nrt": False})
def _add_rows_compiled(weights, index, start, count, rows, first, out, u):
    return lambda weights, index, start, count, rows, first, out, u: _add_rows(
        weights, index, start, count, rows, first, out, u
    )
