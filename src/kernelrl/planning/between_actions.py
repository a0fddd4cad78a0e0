"""Bounds between actions, where values are interpolated and the Lipschitz constants hold for actions, too.

With a distance ρ_A between actions, a bound q_j of one action a_j bounds all others:

    UPPER   q(a) = min_j [q_j + L_h·ρ_A(a, a_j)]        the lowest cone
    LOWER   q(a) = max_j [q_j - L_h·ρ_A(a, a_j)]        the highest

and V_h is the largest q(a), of all actions of the box and not only of those in the net. On the LOWER side that is the
largest of the net. On the UPPER side it lies between actions of the net:

    in one dimension    q rises from both of two neighbours a_i, a_{i+1} until the cones meet, so its largest value is
                        (q(a_i) + q(a_{i+1}) + L_h·ρ_A(a_i, a_{i+1}))/2
    in more             branch and bound: q(a) ≤ q(m) + L_h·r in a cell with centre m and radius r. The cells of the
                        net are halved until none can exceed the largest value known by more than TOLERANCE·R_h. The
                        result is an upper bound, too high by no more than that.

How actions lie is told by a type (`kernelrl.geometry.actions`), so that agents without cones between actions compile
nothing of this.
"""

import math

from kernelrl.geometry.actions import CENTRE, HALF, Among, Interval, Region
from kernelrl.jit.compile import generic, inner
from kernelrl.planning.sides import cone, explores, highest

__all__ = ["highest_of_all", "spread_over_actions"]

TOLERANCE = 1e-3


@generic
def spread_over_actions(between, side, L, q):
    """Bound `q` (A,) of each action by those of the others."""


@generic
def highest_of_all(between, side, L, q, R):
    """V_h from the bounds `q` (A,) of the net, which have been spread."""
    return highest(side, q, R)


@inner
def spread(distances, side, L, q):
    """In place: by the triangle inequality it does not matter whether q_j has been bounded by others before."""
    for i in range(q.size):
        for j in range(q.size):
            q[i] = cone(side, q[i], q[j], L * distances[i, j])


def spread_by_distances(between, side, L, q):
    spread(between.distances, side, L, q)


for kind in (Among, Interval, Region):
    spread_over_actions.implement(kind)(spread_by_distances)


@highest_of_all.implement(Interval)
def highest_in_interval(between, side, L, q, R):
    best = highest(side, q, R)
    if explores(side):
        for i in range(q.size - 1):
            best = max(best, 0.5 * (q[i] + q[i + 1] + L * between.distances[i, i + 1]))
        best = min(best, R)
    return best


# ---------------------------------------------------------------------------------------------------- branch and bound


@inner
def more_by(p, total, gap):
    """The sum whose root is a p-norm, with one more coordinate."""
    if p == 2.0:
        return total + gap * gap
    if p == math.inf:
        return max(total, gap)
    return total + (gap if p == 1.0 else gap**p)


@inner
def norm_of(p, total):
    """The p-norm from this sum."""
    if p == 2.0:
        return math.sqrt(total)
    return total if p == 1.0 or p == math.inf else total ** (1.0 / p)


@inner
def lowest_cone_at(between, L, q, m):
    """q of the action with coordinates `m` (d,)."""
    p, points, best = between.p, between.points, math.inf
    for i in range(q.size):
        if q[i] < best:
            total = 0.0
            for j in range(m.size):
                total = more_by(p, total, abs(points[i, j] - m[j]))
            best = min(best, q[i] + L * norm_of(p, total))
    return best


@inner
def radius_of(p, half):
    """The distance from the centre of a cell to its corners; `half` (d,) are half its widths."""
    total = 0.0
    for j in range(half.size):
        total = more_by(p, total, half[j])
    return norm_of(p, total)


@inner
def halve(stack, n):
    """Divide cell `n` of the stack along its longest side into cells `n` and `n + 1`."""
    longest = 0
    for j in range(stack.shape[2]):
        if stack[n, HALF, j] > stack[n, HALF, longest]:
            longest = j
    stack[n, HALF, longest] *= 0.5
    for j in range(stack.shape[2]):
        stack[n + 1, CENTRE, j], stack[n + 1, HALF, j] = stack[n, CENTRE, j], stack[n, HALF, j]
    stack[n, CENTRE, longest] -= stack[n, HALF, longest]
    stack[n + 1, CENTRE, longest] += stack[n, HALF, longest]


@inner
def highest_in_cells(between, L, q, best, tolerance):
    """An upper bound of the largest q(a), at most `tolerance` above it; `best` is that of the net."""
    stack, upper = between.stack, best
    for cell in range(between.cells.shape[0]):
        n = 1
        for j in range(stack.shape[2]):
            stack[0, CENTRE, j], stack[0, HALF, j] = between.cells[cell, CENTRE, j], between.cells[cell, HALF, j]
        while n > 0:
            n -= 1
            here = lowest_cone_at(between, L, q, stack[n, CENTRE])
            best = max(best, here)
            bound = here + L * radius_of(between.p, stack[n, HALF])
            if bound <= best + tolerance or n + 1 == stack.shape[0]:
                upper = max(upper, bound)
            else:
                halve(stack, n)
                n += 2
    return max(best, upper)


@highest_of_all.implement(Region)
def highest_in_region(between, side, L, q, R):
    best = highest(side, q, R)
    if explores(side) and best < R:
        best = min(R, highest_in_cells(between, L, q, best, TOLERANCE * R))
    return best
