"""Kernel estimates (paper, section 3.2): weights, generalized counts, and weighted sums over samples.

    w_s = ψ_σ((x,a), (x_s,a_s)),   C = β + Σ w_s,   r̂ + P̂V = T/C with T = Σ w_s·G_s and G_s = r_s + V(y_s)

Sums run over lists of buckets, so only nearby chunks are read: weights beyond `settings.reach` are so small that no
possible number of samples there would change C in double precision.

Some bonuses also need the moments D = Σw·ρ and W2 = Σw²; `moments` says whether to compute them.

`E` stands for the points at which C and T are stored, `S` for the samples. Functions that change C or T of a chunk set
its flag in `touched`, and `renew_targets` computes Q̃ = T/C + B where the flag is set.
"""

import math

import numpy as np

from kernelrl.bonuses.interface import value
from kernelrl.geometry.buckets import (
    FOUND,
    LANES,
    SIZE,
    all_chunks,
    distances_in,
    found,
    lanes,
    near,
    near_too,
    size_of,
    total_and_dot,
)
from kernelrl.geometry.kernels import exp_negative, is_gaussian, weigh_in_place, weight
from kernelrl.geometry.metrics import is_plane, squared_distances
from kernelrl.jit.compile import SUMS, inner
from kernelrl.jit.prefetch import AHEAD, prefetch_chunk
from kernelrl.stores.samples import action_list

__all__ = [
    "add_change",
    "add_moments",
    "add_weights",
    "list_bonuses",
    "list_counts",
    "list_targets",
    "moments_at",
    "moments_of_found",
    "renew_targets",
    "row_sums_at",
    "sums_at",
    "weight_between",
]


@inner
def weights_in(settings, buckets, chunk, u):
    """Write the weights g(ρ/σ) of the chunk's points at `u` into `buffer`; return how many places were written."""
    n = distances_in(buckets, settings.space, chunk, u)
    weigh_in_place(settings.kernel, settings.inverse_sigma2, n, buckets.buffer)
    return n


@inner
def sums_of_found(settings, S, first, last, count, u, G):
    """Σw and Σw·G over found chunks `first` … `last`-1 of `count`; memory is requested AHEAD chunks early."""
    if is_plane(settings.space, u) and is_gaussian(settings.kernel):
        factor = -0.5 * settings.inverse_sigma2
        return plane_sums(S.points, S.chain, first, last, count, u[0], u[1], factor, G)
    C, T = 0.0, 0.0
    for i in range(first, last):
        chunk = found(S, i)
        if i + AHEAD < count:
            later = found(S, i + AHEAD)
            prefetch_chunk(S.points, G, later, size_of(S, later))
        w, g = total_and_dot(S.buffer, G, chunk, weights_in(settings, S, chunk, u))
        C += w
        T += g
    return C, T


@inner(fastmath=SUMS | {"contract"})
def plane_sums(points, chain, first, last, count, x, y, factor, G):
    """`sums_of_found` for the Gaussian kernel on the Euclidean plane: one pass instead of three, and no calls."""
    C, T = 0.0, 0.0
    for i in range(first, last):
        chunk = chain[FOUND, i]
        if i + AHEAD < count:
            later = chain[FOUND, i + AHEAD]
            prefetch_chunk(points, G, later, chain[SIZE, later])
        n = (chain[SIZE, chunk] + (LANES - 1)) & -LANES
        for j in range(n):
            dx, dy = points[chunk, 0, j] - x, points[chunk, 1, j] - y
            w = exp_negative(factor * (dx * dx + dy * dy))
            C += w
            T += w * G[chunk, j]
    return C, T


@inner
def sums_at(settings, S, which, u, G):
    """C = β + Σw and T = Σw·G over list `which` of `S` at `u` (d,); `G` is (chunks, WIDTH)."""
    count = near(S, settings.space, which, u, settings.reach)
    C, T = sums_of_found(settings, S, 0, count, count, u, G)
    return settings.beta + C, T


@inner(fastmath=SUMS)
def moments_in(settings, squares, n):
    """Σw·ρ and Σw² over the first `n` of `squares`, which holds ρ²."""
    D, W2 = 0.0, 0.0
    if is_gaussian(settings.kernel):
        factor = -0.5 * settings.inverse_sigma2
        for i in range(n):
            w = exp_negative(factor * squares[i])
            D += w * math.sqrt(squares[i])
            W2 += w * w
        return D, W2
    for i in range(n):
        w = weight(settings.kernel, squares[i] * settings.inverse_sigma2)
        D += w * math.sqrt(squares[i])
        W2 += w * w
    return D, W2


@inner
def moments_of_found(settings, S, first, last, u):
    """Σw·ρ and Σw² at `u` over found chunks `first` … `last`-1."""
    D, W2 = 0.0, 0.0
    for i in range(first, last):
        chunk = found(S, i)
        distances_in(S, settings.space, chunk, u)
        d, w2 = moments_in(settings, S.buffer, size_of(S, chunk))  # not the padding, which may be infinitely far away
        D += d
        W2 += w2
    return D, W2


@inner
def moments_at(settings, S, which, u):
    """Σw·ρ and Σw² over list `which` of `S` at `u` (d,)."""
    count = near(S, settings.space, which, u, settings.reach)
    return moments_of_found(settings, S, 0, count, u)


@inner
def list_targets(settings, S, G, u, h, moments, q):
    """Q̃_h(u, ·) = T/C + B into `q` (A,), for an embedded state; `G` is (chunks, WIDTH)."""
    # All chunks of all actions are found first, so that memory is also requested early from one action to the next.
    count = 0
    for a in range(settings.actions):
        count = near_too(S, settings.space, action_list(settings, h, a), u, settings.reach, count)
        q[a] = count
    for i in range(min(AHEAD, count)):
        prefetch_chunk(S.points, G, found(S, i), size_of(S, found(S, i)))
    first = 0
    for a in range(settings.actions):
        last = np.int64(q[a])
        C, T = sums_of_found(settings, S, first, last, count, u, G)
        C += settings.beta
        D, W2 = 0.0, 0.0
        if moments:
            D, W2 = moments_of_found(settings, S, first, last, u)
        q[a] = T / C + value(settings.bonus, h, C, D, W2)
        first = last


@inner
def weight_between(settings, u, v, square):
    """w = g(ρ(u, v)/σ) of two embedded states (d,); `square` (1,) is scratch."""
    squared_distances(settings.space, v.reshape((1, v.size, 1)), 0, 1, 1, u, square)
    return weight(settings.kernel, square[0] * settings.inverse_sigma2)


@inner
def list_counts(settings, S, G, u, h, out):
    """Write C_h(u, ·) into `out` (A,), for an embedded state."""
    for a in range(out.size):
        out[a], _ = sums_at(settings, S, action_list(settings, h, a), u, G)


@inner
def list_bonuses(settings, S, G, u, h, moments, out):
    """Write B_h(u, ·) into `out` (A,), for an embedded state."""
    for a in range(out.size):
        which = action_list(settings, h, a)
        C, _ = sums_at(settings, S, which, u, G)
        D, W2 = 0.0, 0.0
        if moments:
            D, W2 = moments_at(settings, S, which, u)
        out[a] = value(settings.bonus, h, C, D, W2)


@inner
def row_sums_at(settings, S, which, u, G, T):
    """Like `sums_at` for each row of `G` (rows, chunks, WIDTH): write the sums into `T` (rows,), return C."""
    C = settings.beta
    for r in range(T.size):
        T[r] = 0.0
    for i in range(near(S, settings.space, which, u, settings.reach)):
        chunk = found(S, i)
        n = weights_in(settings, S, chunk, u)
        w = 0.0
        for r in range(T.size):
            w, g = total_and_dot(S.buffer, G[r], chunk, n)
            T[r] += g
        C += w
    return C


@inner
def add_multiple(T, chunk, w, factor, n):
    """T[chunk, :n] += factor·w[:n]."""
    for j in range(n):
        T[chunk, j] += factor * w[j]


@inner
def add_weights(settings, E, which, u, G, C, T, touched):
    """Add a sample at `u` with targets `G` (rows,) to `C` (chunks, WIDTH) and `T` (rows, chunks, WIDTH) of E."""
    for i in range(near(E, settings.space, which, u, settings.reach)):
        chunk = found(E, i)
        n = weights_in(settings, E, chunk, u)
        add_multiple(C, chunk, E.buffer, 1.0, n)
        for r in range(G.size):
            add_multiple(T[r], chunk, E.buffer, G[r], n)
            touched[r, chunk] = True


@inner
def add_moments(settings, E, which, u, D, W2):
    """Add a sample at `u` to `D` and `W2` (chunks, WIDTH), Σw·ρ and Σw² of the points of E."""
    for i in range(near(E, settings.space, which, u, settings.reach)):
        chunk = found(E, i)
        distances_in(E, settings.space, chunk, u)
        for place in range(size_of(E, chunk)):
            square = E.buffer[place]
            w = weight(settings.kernel, square * settings.inverse_sigma2)
            D[chunk, place] += w * math.sqrt(square)
            W2[chunk, place] += w * w


@inner(fastmath={"contract"})
def plane_change(points, chunk, n, x, y, factor, change, T):
    """T += w·change in one chunk for the Gaussian kernel on the Euclidean plane."""
    for i in range(n):
        dx, dy = points[chunk, 0, i] - x, points[chunk, 1, i] - y
        T[chunk, i] += change * exp_negative(factor * (dx * dx + dy * dy))


@inner
def add_change(settings, E, which, u, change, radius, T, touched):
    """T += w·change at the points of E within `radius` of `u`; `T` (chunks, WIDTH), `touched` (chunks,)."""
    plane = is_plane(settings.space, u) and is_gaussian(settings.kernel)
    factor = -0.5 * settings.inverse_sigma2
    for i in range(near(E, settings.space, which, u, radius)):
        chunk = found(E, i)
        if plane:
            plane_change(E.points, chunk, lanes(size_of(E, chunk)), u[0], u[1], factor, change, T)
        else:
            n = weights_in(settings, E, chunk, u)
            add_multiple(T, chunk, E.buffer, change, n)
        touched[chunk] = True


@inner
def renew_targets(settings, E, which, h, C, T, moments, k, Q, lowest, touched):
    """Q̃_h = T/C + B in the touched chunks of list `which`; C, T, Q (chunks, WIDTH), `touched` (chunks,).

    `lowest` (chunks,) takes the smallest Q̃ of each chunk; `moments` (2, …) has Σw·ρ and Σw² at [:, k], or no rows.
    """
    kept = moments.shape[0] > 0
    for i in range(all_chunks(E, which)):
        chunk = found(E, i)
        if touched[chunk]:
            smallest = math.inf
            for place in range(size_of(E, chunk)):
                count, D, W2 = C[chunk, place], 0.0, 0.0
                if kept:
                    D, W2 = moments[0, k, chunk, place], moments[1, k, chunk, place]
                q = T[chunk, place] / count + value(settings.bonus, h, count, D, W2)
                Q[chunk, place] = q
                smallest = min(smallest, q)
            lowest[chunk] = smallest
