"""Sums of weighted rows, four columns at a time: the inner loop of planning on representative states.

    out[u, c:c+4] = Σ_j weights[j] · rows[index[j], c:c+4],   start ≤ j < start + count             (add_rows)
    out[u, c:c+4] = Σ_j weights[j, c:c+4] · rows[index[j], c:c+4], likewise                          (add_own_rows)
    out[u] = (rows[u] + a)·x[u] + b·y[u]                                                            (scale_rows)

LLVM does not vectorise a gather of short rows by itself, so the loop is written in LLVM's vector instructions: vectors
of four doubles, four independent sums (an addition takes four cycles and one can start every half cycle). In the
second form each column has a weight of its own. With the JIT disabled NumPy does the same. Sums for several at once are
in `kernelrl.jit.group_rows`.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.numba_private import NO_REFERENCES, cgutils

__all__ = [
    "COLUMNS", "SUMS_AT_ONCE", "add_own_rows", "add_product", "add_rows", "arrays_of", "four", "four_times", "load",
    "new_sums", "padded", "scale_rows", "scaled", "store",
]  # fmt: skip

COLUMNS = 4
SUMS_AT_ONCE = 4


def padded(number):
    """`number` rounded up to whole vectors."""
    return -(-number // COLUMNS) * COLUMNS


def vector_type():
    """Four doubles."""
    return ir.VectorType(ir.DoubleType(), COLUMNS)


def at(builder, data, offset):
    """A pointer to four doubles at `offset`."""
    return builder.bitcast(builder.gep(data, [offset]), vector_type().as_pointer())


def load(builder, data, offset):
    """Four doubles from `offset` on."""
    value = builder.load(at(builder, data, offset))
    value.align = 8
    return value


def store(builder, value, data, offset):
    """Write four doubles from `offset` on."""
    builder.store(value, at(builder, data, offset)).align = 8


def four(number):
    """A constant vector."""
    return ir.Constant(vector_type(), [number] * COLUMNS)


def new_sums(builder, number):
    """Zeros, in registers."""
    return [cgutils.alloca_once_value(builder, four(0.0)) for _ in range(number)]


def four_times(builder, weight):
    """A vector of four equal weights."""
    none, lane = ir.Constant(vector_type(), ir.Undefined), ir.IntType(32)
    splat = builder.insert_element(none, weight, lane(0))
    return builder.shuffle_vector(splat, none, ir.Constant(ir.VectorType(lane, COLUMNS), None))


def add_product(builder, total, row, weights):
    """total += weights·row."""
    product = builder.fmul(row, weights, flags=("contract",))
    builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)


def arrays_of(context, builder, signature, arguments):
    """The arrays among the arguments."""
    return [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(signature.args, arguments, strict=True)
        if isinstance(kind, types.Array)
    ]


def row_loop(own):
    """The code of a loop over whole steps of SUMS_AT_ONCE; `own`: each column has a weight of its own."""

    def codegen(context, builder, signature, arguments):
        w, i, r, o = arrays_of(context, builder, signature, arguments)
        _, _, start, count, _, first, _, u = arguments
        word, width, sums = ir.IntType(64), cgutils.unpack_tuple(builder, r.shape)[1], new_sums(builder, SUMS_AT_ONCE)
        with cgutils.for_range_slice(builder, word(0), count, word(SUMS_AT_ONCE), word) as (j, _):
            for lane, total in enumerate(sums):
                entry = builder.add(start, builder.add(j, word(lane)))
                which = builder.zext(builder.load(builder.gep(i.data, [entry])), word)
                row = load(builder, r.data, builder.add(builder.mul(which, width), first))
                if own:
                    weights = load(builder, w.data, builder.add(builder.mul(entry, width), first))
                else:
                    weights = four_times(builder, builder.load(builder.gep(w.data, [entry])))
                add_product(builder, total, row, weights)
        a, b, c, d = (builder.load(total) for total in sums)
        result = builder.fadd(builder.fadd(a, b), builder.fadd(c, d))
        store(builder, result, o.data, builder.add(builder.mul(u, width), first))
        return context.get_dummy_value()

    return codegen


@intrinsic
def _add_rows(typingctx, weights, index, start, count, rows, first, out, u):
    """One weight for all columns."""
    integer = types.int64
    return types.void(weights, index, integer, integer, rows, integer, out, integer), row_loop(False)


@intrinsic
def _add_own_rows(typingctx, weights, index, start, count, rows, first, out, u):
    """A weight for each column."""
    integer = types.int64
    return types.void(weights, index, integer, integer, rows, integer, out, integer), row_loop(True)


def scaled(builder, total, inverse, place, layer, root, count):
    """(total + count)·inverse[0] + root·inverse[1] for the four entries at `place` of layers of so many numbers."""
    mean = builder.fadd(total, count)
    mean = builder.fmul(mean, load(builder, inverse.data, place), flags=("contract",))
    bonus = builder.fmul(root, load(builder, inverse.data, builder.add(layer, place)), flags=("contract",))
    return builder.fadd(mean, bonus, flags=("contract",))


@intrinsic
def _scale_rows(typingctx, T, inverse, rows, by_root, by_count, Q):
    """One row after the other."""

    def codegen(context, builder, signature, arguments):
        t, i, r, q = arrays_of(context, builder, signature, arguments)
        _, _, _, by_root, by_count, _ = arguments
        word, (height, width) = ir.IntType(64), cgutils.unpack_tuple(builder, t.shape)
        number, layer = cgutils.unpack_tuple(builder, r.shape)[0], builder.mul(height, width)
        root, count = four_times(builder, by_root), four_times(builder, by_count)
        with cgutils.for_range_slice(builder, word(0), number, word(1), word) as (k, _):
            which = builder.zext(builder.load(builder.gep(r.data, [k])), word)
            row = builder.mul(which, width)
            with cgutils.for_range_slice(builder, word(0), width, word(COLUMNS), word) as (c, _):
                place = builder.add(row, c)
                T = load(builder, t.data, place)
                store(builder, scaled(builder, T, i, place, layer, root, count), q.data, place)
        return context.get_dummy_value()

    double = types.float64
    return types.void(T, inverse, rows, double, double, Q), codegen


def add_rows(weights, index, start, count, rows, first, out, u):
    """out[u, first:first+4] = Σ weights[j]·rows[index[j], first:first+4] over `count` entries from `start` on.

    All arrays are contiguous; `weights` and `index` are read as flat. The entries after `count`, up to the next
    multiple of SUMS_AT_ONCE, must exist and have zero weights or rows.
    """
    entries, last = slice(start, start + count), first + COLUMNS
    out[u, first:last] = weights.reshape(-1)[entries] @ rows[index.reshape(-1)[entries], first:last]


@overload(add_rows, jit_options=NO_REFERENCES)
def _add_rows_compiled(weights, index, start, count, rows, first, out, u):
    return lambda weights, index, start, count, rows, first, out, u: _add_rows(
        weights, index, start, count, rows, first, out, u
    )


def add_own_rows(weights, index, start, count, rows, first, out, u):
    """out[u, first:first+4] = Σ weights[j, first:first+4]·rows[index[j], first:first+4], otherwise like `add_rows`."""
    entries, last = slice(start, start + count), first + COLUMNS
    out[u, first:last] = (weights[entries, first:last] * rows[index.reshape(-1)[entries], first:last]).sum(axis=0)


@overload(add_own_rows, jit_options=NO_REFERENCES)
def _add_own_rows_compiled(weights, index, start, count, rows, first, out, u):
    return lambda weights, index, start, count, rows, first, out, u: _add_own_rows(
        weights, index, start, count, rows, first, out, u
    )


def scale_rows(T, inverse, rows, by_root, by_count, Q):
    """Q[u] = (T[u] + by_count)·inverse[0, u] + by_root·inverse[1, u] for all u in `rows` (n,), unsigned."""
    Q[rows] = (T[rows] + by_count) * inverse[0, rows] + by_root * inverse[1, rows]


@overload(scale_rows, jit_options=NO_REFERENCES)
def _scale_rows_compiled(T, inverse, rows, by_root, by_count, Q):
    return lambda T, inverse, rows, by_root, by_count, Q: _scale_rows(T, inverse, rows, by_root, by_count, Q)
