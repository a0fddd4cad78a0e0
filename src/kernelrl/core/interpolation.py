"""Lipschitz interpolation: Q_h(x, a) = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)] (paper, eq. 4), kept up to date.

A target at u of height q is a cone q + L·ρ(·, u). Values are capped at R_h, so a cone matters only within (R_h - q)/L_h
of its tip, and cones as high as R_h not at all.
"""

import math

from kernelrl.core.buckets import distances_in, found, near, size_of
from kernelrl.core.compile import SUMS, inner

__all__ = ["anything_above", "cone_radius", "cones_at", "lowest_cone"]


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
def cones_in(buckets, space, chunk, u, heights, L):
    """The lowest cone of one chunk at `u`; `heights` is (WIDTH,)."""
    distances_in(buckets, space, chunk, u)
    buffer, n = buckets.buffer, size_of(buckets, chunk)
    for i in range(n):
        buffer[i] = heights[i] + L * math.sqrt(buffer[i])
    return smallest(buffer, n)


@inner
def cones_at(buckets, space, which, u, heights, L, radius, best):
    """The smaller of `best` and the lowest cone of list `which` at `u`, of cones with tips within `radius`."""
    for i in range(near(buckets, space, which, u, radius)):
        chunk = found(buckets, i)
        best = min(best, cones_in(buckets, space, chunk, u, heights[chunk], L))
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
def anything_above(values, squares, height, L2, n):
    """Whether a cone lies below any of `values[:n]` at squared distances `squares`: no square root, so it is cheap."""
    excess = 0.0
    for i in range(n):
        above = max(0.0, values[i] - height)
        excess += max(0.0, above * above - L2 * squares[i])
    return excess > 0.0
