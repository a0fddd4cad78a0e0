"""Lipschitz interpolation: Q_h(x, a) = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)] (paper, eq. 4).

A target at u of height q is a cone q + L·ρ(·, u). Values are capped at R_h, so a cone matters only within (R_h - q)/L_h
of its tip, and cones as high as R_h not at all.
"""

import math

from kernelrl.geometry.buckets import distances_in, found, near, size_of
from kernelrl.geometry.metrics import gap_squared
from kernelrl.jit.compile import SUMS, inner

__all__ = ["anything_above", "cone_radius", "cones_at", "is_below", "largest"]


@inner
def is_below(height, L, square, value):
    """Whether a cone lies below `value` at squared distance `square`, up to rounding; takes no root, which is slow."""
    return height < value and (value - height) * (value - height) > L * L * square


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


@inner(fastmath=SUMS | {"nnan"})
def largest(values, chunk, n):
    """max(values[chunk, :n])."""
    result = values[chunk, 0]
    for i in range(1, n):
        result = max(result, values[chunk, i])
    return result


@inner
def raise_in_place(squares, heights, chunk, L, n):
    """squares[:n] = heights[chunk, :n] + L·√squares[:n]."""
    for i in range(n):
        squares[i] = heights[chunk, i] + L * math.sqrt(squares[i])


@inner
def cones_at(buckets, space, which, u, heights, lowest, L, radius, best):
    """The smaller of `best` and the lowest cone of list `which` at `u`, among cones with tips within `radius`.

    `heights` is (chunks, WIDTH), and `lowest` (chunks,) a lower bound for each chunk: a chunk that cannot hold the
    lowest cone, by this bound and its distance, is skipped.
    """
    # Backwards: later chunks tend to be lower, and then exclude earlier ones.
    for i in range(near(buckets, space, which, u, radius) - 1, -1, -1):
        chunk = found(buckets, i)
        below = best - lowest[chunk]
        if below <= 0.0 or L * L * gap_squared(space, buckets.box, chunk, u) >= below * below:
            continue
        distances_in(buckets, space, chunk, u)
        n = size_of(buckets, chunk)
        raise_in_place(buckets.buffer, heights, chunk, L, n)
        best = min(best, smallest(buckets.buffer, n))
    return best


@inner(fastmath=SUMS)
def anything_above(values, chunk, n, squares, height, L2):
    """Whether a cone lies below any of values[chunk, :n] at squared distances `squares`; no root, so it is cheap."""
    excess = 0.0
    for i in range(n):
        above = max(0.0, values[chunk, i] - height)
        excess += max(0.0, above * above - L2 * squares[i])
    return excess > 0.0
