"""Kernel estimates (paper, section 3.2): weights, generalized counts, and weighted sums of what the samples say.

    w_s = ψ_σ((x,a), (x_s,a_s)),   C = β + Σ w_s,   r̂ + P̂V = T/C with T = Σ w_s·G_s and G_s = r_s + V(y_s)

Sums run over lists of buckets, so only near chunks are touched: a weight beyond `settings.reach` is so small that all
samples there could ever be would not change C in double precision.

`E` stands for points at which C and T are kept, `S` for the samples; functions that change C or T of a chunk set its
flag in `touched`, and `renew_targets` computes Q̃ = T/C + B where the flag is set.
"""

import numpy as np

from kernelrl.core.bonuses import bonus_value
from kernelrl.core.buckets import all_chunks, distances_in, dot, found, near, size_of, total
from kernelrl.core.compile import inner
from kernelrl.core.kernels import kernel_weight, weigh_in_place
from kernelrl.core.metrics import embed, squared_distances
from kernelrl.core.samples import action_list

__all__ = ["add_change", "add_weights", "bonus_at", "counts_at", "renew_targets", "row_sums_at", "sums_at",
           "weight_between"]


@inner
def bonus_at(settings, h, C):
    """B_h at generalized count `C`."""
    return bonus_value(settings.bonus, settings.bonus_scale, np.float64(settings.horizon - h), C)


@inner
def weights_in(settings, buckets, chunk, u):
    """Write the weights g(ρ/σ) of the chunk's points at `u` into `buffer`; return how many places were written."""
    n = distances_in(buckets, settings.space, chunk, u)
    weigh_in_place(settings.kernel, settings.power, settings.inverse_sigma2, n, buckets.buffer)
    return n


@inner
def sums_at(settings, S, which, u, G):
    """C = β + Σw and T = Σw·G over list `which` of `S` at `u` (d,); `G` is (chunks, WIDTH)."""
    C, T = settings.beta, 0.0
    for i in range(near(S, settings.space, which, u, settings.reach)):
        chunk = found(S, i)
        n = weights_in(settings, S, chunk, u)
        C += total(S.buffer, n)
        T += dot(S.buffer, G[chunk], n)
    return C, T


@inner
def weight_between(settings, u, v):
    """w = g(ρ(u, v)/σ) of two embedded states (d,)."""
    square = np.empty(1)
    squared_distances(settings.space, v.reshape((v.size, 1)), 1, 1, u, square)
    return kernel_weight(settings.kernel, settings.power, square[0] * settings.inverse_sigma2)


@inner
def counts_at(settings, S, G, state, h, out):
    """Write C_h(state, ·) into `out` (A,)."""
    u = np.empty(state.size)
    embed(settings.space, state, u)
    for a in range(out.size):
        out[a], _ = sums_at(settings, S, action_list(settings, h, a), u, G)


@inner
def row_sums_at(settings, S, which, u, G, T):
    """Like `sums_at` for each row of `G` (rows, chunks, WIDTH): write the sums into `T` (rows,), return C."""
    C = settings.beta
    for r in range(T.size):
        T[r] = 0.0
    for i in range(near(S, settings.space, which, u, settings.reach)):
        chunk = found(S, i)
        n = weights_in(settings, S, chunk, u)
        C += total(S.buffer, n)
        for r in range(T.size):
            T[r] += dot(S.buffer, G[r, chunk], n)
    return C


@inner
def add_multiple(T, w, factor, n):
    """T[:n] += factor·w[:n]."""
    for j in range(n):
        T[j] += factor * w[j]


@inner
def add_weights(settings, E, which, u, G, C, T, touched):
    """Let a sample at `u` with targets `G` (rows,) weigh in `C` (chunks, WIDTH) and `T` (rows, chunks, WIDTH) of E."""
    for i in range(near(E, settings.space, which, u, settings.reach)):
        chunk = found(E, i)
        n = weights_in(settings, E, chunk, u)
        add_multiple(C[chunk], E.buffer, 1.0, n)
        for r in range(G.size):
            add_multiple(T[r, chunk], E.buffer, G[r], n)
            touched[r, chunk] = True


@inner
def add_change(settings, E, which, u, change, radius, T, touched):
    """T += w·change at the points of E within `radius` of the sample at `u`; `T` (chunks, WIDTH), `touched` (chunks,)."""
    for i in range(near(E, settings.space, which, u, radius)):
        chunk = found(E, i)
        n = weights_in(settings, E, chunk, u)
        add_multiple(T[chunk], E.buffer, change, n)
        touched[chunk] = True


@inner
def renew_targets(settings, E, which, h, C, T, Q, touched):
    """Q̃_h = T/C + B in the touched chunks of list `which`; C, T, Q (chunks, WIDTH), `touched` (chunks,)."""
    for i in range(all_chunks(E, which)):
        chunk = found(E, i)
        if touched[chunk]:
            for place in range(size_of(E, chunk)):
                count = C[chunk, place]
                Q[chunk, place] = T[chunk, place] / count + bonus_at(settings, h, count)
