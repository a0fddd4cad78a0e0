"""Bounds between actions, where values are interpolated and the Lipschitz constants hold for actions, too.

With a distance ρ_A between actions, a bound q_j of one action a_j bounds all others:

    UPPER   q(a) = min_j [q_j + L_h·ρ_A(a, a_j)]        the lowest cone
    LOWER   q(a) = max_j [q_j - L_h·ρ_A(a, a_j)]        the highest

and V_h is the largest q(a), of all actions of the box and not only of those in the net. On the LOWER side that is the
largest of the net. On the UPPER side it lies between actions of the net:

    in one dimension    q rises from both of two neighbours a_i, a_{i+1} until the cones meet, so its largest value is
                        (q(a_i) + q(a_{i+1}) + L_h·ρ_A(a_i, a_{i+1}))/2
    in more             branch and bound: q(a) ≤ q(m) + L_h·r in a cell with centre m and radius r. The cells of the
                        net are halved until none can exceed the largest value known by more than TOLERANCE·R_h, or
                        until there are MOST_CELLS more. The result is an upper bound in any case. Only where q is
                        largest along a whole ridge, as with the maximum norm, are there so many.

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


def spread_by_distances(between, side, L, q):
    # In place: by the triangle inequality it does not matter whether q_j has been bounded by others before.
    for i in range(q.size):
        for j in range(q.size):
            q[i] = cone(side, q[i], q[j], L * between.distances[i, j])


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
def look_at(between, L, q, n):
    """Bound q(a) in cell `n` of the queue; return q at its centre."""
    here = lowest_cone_at(between, L, q, between.queue[n, CENTRE])
    between.bounds[n] = here + L * radius_of(between.p, between.queue[n, HALF])
    return here


@inner
def halve(queue, n, end):
    """Write the halves of cell `n` of the queue, divided along its longest side, to places `end` and `end + 1`."""
    longest = 0
    for j in range(queue.shape[2]):
        if queue[n, HALF, j] > queue[n, HALF, longest]:
            longest = j
    for half in range(2):
        for j in range(queue.shape[2]):
            queue[end + half, CENTRE, j], queue[end + half, HALF, j] = queue[n, CENTRE, j], queue[n, HALF, j]
        queue[end + half, HALF, longest] *= 0.5
        queue[end + half, CENTRE, longest] += (2 * half - 1) * queue[end + half, HALF, longest]


@inner
def highest_in_cells(between, L, q, best, R):
    """An upper bound of the largest q(a), below R or R itself; `best` is the largest of the net.

    Larger cells are divided first, so that the bound is as good as it can be when there is no room for more.
    """
    queue, bounds, upper = between.queue, between.bounds, best
    first, end = 0, between.cells.shape[0]
    for n in range(end):
        for j in range(queue.shape[2]):
            queue[n, CENTRE, j], queue[n, HALF, j] = between.cells[n, CENTRE, j], between.cells[n, HALF, j]
        best = max(best, look_at(between, L, q, n))
    while first < end and best < R:
        if bounds[first] <= best + TOLERANCE * R or end + 2 > bounds.size:
            upper = max(upper, bounds[first])
        else:
            halve(queue, first, end)
            best = max(best, look_at(between, L, q, end), look_at(between, L, q, end + 1))
            end += 2
        first += 1
    return min(R, max(best, upper))


@highest_of_all.implement(Region)
def highest_in_region(between, side, L, q, R):
    best = highest(side, q, R)
    if explores(side) and best < R:
        best = highest_in_cells(between, L, q, best, R)
    return best
