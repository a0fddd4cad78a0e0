"""Lipschitz interpolation: Q_h(x, a) = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)] (paper, eq. 4), kept up to date.

A target at u of height q is a cone q + L·ρ(·, u). Values are capped at R_h, so a cone matters only within (R_h - q)/L_h
of its tip, and cones as high as R_h not at all.
"""

import math

from kernelrl.core.buckets import WIDTH, distances_in, found, near, size_of
from kernelrl.core.compile import SUMS, inner
from kernelrl.core.metrics import gap_squared, is_plane

__all__ = ["anything_above", "cone_radius", "cones_at", "disown", "drop_cone", "give", "is_below", "lowest_cone"]


@inner
def is_below(height, L, square, value):
    """Whether a cone lies below `value` at squared distance `square`, up to rounding: a root costs ten times more."""
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


@inner
def raise_in_place(squares, heights, chunk, L, n):
    """squares[:n] = heights[chunk, :n] + L·√squares[:n]."""
    for i in range(n):
        squares[i] = heights[chunk, i] + L * math.sqrt(squares[i])


@inner
def cones_at(buckets, space, which, u, heights, lowest, L, radius, best):
    """The smaller of `best` and the lowest cone of list `which` at `u`, of cones with tips within `radius`.

    `heights` is (chunks, WIDTH), and `lowest` (chunks,) a lower bound of each chunk's: a chunk whose lowest height and
    distance rule it out is not looked into.
    """
    # Backwards, since later chunks tend to be lower and then rule out earlier ones.
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


@inner
def lowest_cone(buckets, space, which, u, heights, L, R):
    """min(R, lowest cone of list `which` at `u`) and the slot of that cone (-1 where none is below R)."""
    best, slot = R, -1
    for i in range(near(buckets, space, which, u, cone_radius(R, 0.0, L))):
        chunk = found(buckets, i)
        distances_in(buckets, space, chunk, u)
        for place in range(size_of(buckets, chunk)):
            if is_below(heights[chunk, place], L, buckets.buffer[place], best):
                value = heights[chunk, place] + L * math.sqrt(buckets.buffer[place])
                if value < best:
                    best, slot = value, chunk * WIDTH + place
    return best, slot


@inner(fastmath=SUMS)
def anything_above(values, chunk, n, squares, height, L2):
    """Whether a cone lies below any of values[chunk, :n] at squared distances `squares`; no root, so it is cheap."""
    excess = 0.0
    for i in range(n):
        above = max(0.0, values[chunk, i] - height)
        excess += max(0.0, above * above - L2 * squares[i])
    return excess > 0.0


@inner
def give(owner, owned, chunk, place, s):
    """Make slot `s` (or -1, nobody) the owner of a point; `owned` (chunks, WIDTH) counts what each cone owns."""
    before = owner[chunk, place]
    if before >= 0:
        owned[before // WIDTH, before % WIDTH] -= 1
    if s >= 0:
        owned[s // WIDTH, s % WIDTH] += 1
    owner[chunk, place] = s


@inner
def drop_cone(Y, space, which, u, s, height, L, R, M, owner, owned, fresh):
    """Lower `M` (chunks, WIDTH) under the cone of slot `s` with its tip at `u`, making it the owner where it does.

    `fresh` (chunks,) is set for the chunks where M changed.
    """
    plane = is_plane(space, u)
    for i in range(near(Y, space, which, u, cone_radius(R, height, L))):
        chunk = found(Y, i)
        if not plane:
            distances_in(Y, space, chunk, u)
        for place in range(size_of(Y, chunk)):
            if (
                plane
            ):  # cells are small here, so that chunks are nearly empty: a pass of their own for distances is waste
                dx, dy = Y.points[chunk, 0, place] - u[0], Y.points[chunk, 1, place] - u[1]
                square = dx * dx + dy * dy
            else:
                square = Y.buffer[place]
            if is_below(height, L, square, M[chunk, place]):
                value = height + L * math.sqrt(square)
                if value < M[chunk, place]:
                    M[chunk, place] = value
                    fresh[chunk] = True
                    give(owner, owned, chunk, place, s)


@inner
def disown(Y, space, which, u, s, height, L, R, M, owner, owned, queue, count):
    """Before the cone of slot `s` rises: raise M to R where it is the owner, and append those slots to `queue`."""
    # Rounding may put a point just beyond the radius within which the cone was found to lie below R.
    radius = cone_radius(R, height, L) * (1.0 + 1e-9)
    for i in range(near(Y, space, which, u, radius)):
        chunk = found(Y, i)
        for place in range(size_of(Y, chunk)):
            if owner[chunk, place] == s:
                give(owner, owned, chunk, place, -1)
                M[chunk, place] = R
                queue[count] = chunk * WIDTH + place
                count += 1
        if owned[s // WIDTH, s % WIDTH] == 0:
            break
    return count
