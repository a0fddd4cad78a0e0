"""Lipschitz interpolation: Q_h(x, a) = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)] (paper, eq. 4), kept up to date.

A target at u of height q is a cone q + L·ρ(·, u). Values are capped at R_h, so a cone matters only within (R_h - q)/L_h
of its tip, and cones as high as R_h not at all.
"""

import math

from kernelrl.core.buckets import all_chunks, distances_in, found, near, size_of
from kernelrl.core.compile import SUMS, inner

__all__ = ["anything_above", "cone_radius", "cones_at", "disown", "drop_cone", "lowest_cone", "lowest_of_all"]


@inner
def cone_radius(R, height, L):
    """How far a cone of that height reaches below the cap R."""
    return (R - height) / L if L > 0.0 else math.inf


@inner(fastmath=SUMS | {"nnan"})
def smallest(values, n):
    """min(values[:n])."""
    result = values[0]
    for i in range(1, n):
        result = min(result, values[i])
    return result


@inner
def raise_in_place(squares, heights, chunk, L, n):
    """squares[:n] = heights[chunk, :n] + L·√squares[:n]."""
    for i in range(n):
        squares[i] = heights[chunk, i] + L * math.sqrt(squares[i])


@inner
def cones_at(buckets, space, which, u, heights, lowest, L, radius, best):
    """The smaller of `best` and the lowest cone of list `which` at `u`, of cones with tips within `radius`.

    `heights` is (chunks, WIDTH), and `lowest` (chunks,) a lower bound of each chunk's.
    """
    # Backwards, since later chunks tend to be lower and then rule out earlier ones.
    for i in range(near(buckets, space, which, u, radius) - 1, -1, -1):
        chunk = found(buckets, i)
        if lowest[chunk] >= best:
            continue
        distances_in(buckets, space, chunk, u)
        n = size_of(buckets, chunk)
        raise_in_place(buckets.buffer, heights, chunk, L, n)
        best = min(best, smallest(buckets.buffer, n))
    return best


@inner
def lowest_of_all(buckets, space, which, u, heights, L):
    """The lowest cone of list `which` at `u`, +∞ if there is none."""
    best = math.inf
    for i in range(all_chunks(buckets, which)):
        chunk = found(buckets, i)
        distances_in(buckets, space, chunk, u)
        n = size_of(buckets, chunk)
        raise_in_place(buckets.buffer, heights, chunk, L, n)
        best = min(best, smallest(buckets.buffer, n))
    return best


@inner
def lowest_cone(buckets, space, which, u, heights, L, R):
    """min(R, lowest cone of list `which` at `u`) and the slot of that cone (-1 where none is below R)."""
    best, slot = R, -1
    width = heights.shape[1]
    for i in range(near(buckets, space, which, u, cone_radius(R, 0.0, L))):
        chunk = found(buckets, i)
        distances_in(buckets, space, chunk, u)
        for place in range(size_of(buckets, chunk)):
            height = heights[chunk, place]
            if height < best:
                value = height + L * math.sqrt(buckets.buffer[place])
                if value < best:
                    best, slot = value, chunk * width + place
    return best, slot


@inner(fastmath=SUMS)
def anything_above(values, chunk, squares, height, L2, n):
    """Whether a cone lies below any of values[chunk, :n] at squared distances `squares`; no root, so it is cheap."""
    excess = 0.0
    for i in range(n):
        above = max(0.0, values[chunk, i] - height)
        excess += max(0.0, above * above - L2 * squares[i])
    return excess > 0.0


@inner
def drop_cone(Y, space, which, u, s, height, L, R, M, owner):
    """Lower `M` (chunks, WIDTH) under the cone of slot `s` with its tip at `u`, making it the owner where it does."""
    for i in range(near(Y, space, which, u, cone_radius(R, height, L))):
        chunk = found(Y, i)
        distances_in(Y, space, chunk, u)
        for place in range(size_of(Y, chunk)):
            if height < M[chunk, place]:
                value = height + L * math.sqrt(Y.buffer[place])
                if value < M[chunk, place]:
                    M[chunk, place] = value
                    owner[chunk, place] = s


@inner
def disown(Y, space, which, u, s, height, L, R, M, owner, queue, count):
    """Before the cone of slot `s` rises: raise M to R where it is the owner, and append those slots to `queue`."""
    # Rounding may put a point just beyond the radius within which the cone was found to lie below R.
    radius = cone_radius(R, height, L) * (1.0 + 1e-9)
    width = M.shape[1]
    for i in range(near(Y, space, which, u, radius)):
        chunk = found(Y, i)
        for place in range(size_of(Y, chunk)):
            if owner[chunk, place] == s:
                owner[chunk, place] = -1
                M[chunk, place] = R
                queue[count] = chunk * width + place
                count += 1
    return count
