"""V_h = min(R_h, max_a Q̃_h) at the next states, without keeping every action's Q̃ up to date.

Without interpolation only the best action at a state matters, and none but it if it reaches the cap R_h. So an entry
whose Q̃ is well below the best one's, or whose state has an action well above the cap, rests: changes of V_{h+1} are not
passed on to it. They move its Q̃ = T/C + B upwards by no more than they rise themselves, since Σw ≤ C. `rises` sums the
largest rise of each plan, and `rest` has what that sum was when the entry began to rest, so

    Q̃ ≤ (stored Q̃) + rises - rest

When this bound is above the best action's Q̃, which is below the cap, T is computed from the samples, and the entry
rests no longer. New samples count in C and T of all entries.
"""

import numpy as np

from kernelrl.geometry.buckets import WIDTH, point_at, size_of
from kernelrl.jit.compile import inner
from kernelrl.planning.passing import AWAKE, chunks_of, target_at
from kernelrl.stores.estimates import sums_at
from kernelrl.stores.interface import pool
from kernelrl.stores.samples import action_list, row

__all__ = ["best_of_awake"]

MARGIN = 1e-3  # an entry rests if its value is so far from mattering
PLANS_AHEAD = 32  # and if rises like the last one need so many plans to make it matter


@inner
def best_of_awake(plan, settings, h, rise):
    """V_h at the states of step `h` whose Q̃ may have changed; `rise` is the last addition to `rises`."""
    Y, r, R = plan.Y, row(settings, h), np.float64(settings.horizon - h)
    margin = max(MARGIN, PLANS_AHEAD * rise)
    best, bound = plan.strips[0], plan.strips[1]  # as scratch
    for i in range(chunks_of(plan, Y, pool(settings, h))):
        chunk = plan.order[0, i]
        if plan.fresh[r, chunk] or rise > 0.0:
            plan.fresh[r, chunk] = True
            n = size_of(Y, chunk)
            look(plan.Q, plan.rest, r, chunk, n, plan.rises[h], best, bound)
            if any_above(best, bound, n, R):
                for place in range(n):
                    if best[place] < R and bound[place] > best[place]:
                        wake(plan, settings, h, chunk, place, best[place])
                look(plan.Q, plan.rest, r, chunk, n, plan.rises[h], best, bound)
            for place in range(n):
                plan.V[r, chunk, place] = min(R, best[place])
            lie_down(plan.Q, plan.rest, r, chunk, n, plan.rises[h], R, margin, best)


@inner
def look(Q, rest, r, chunk, n, rises, best, bound):
    """Write the largest Q̃ of entries that are awake, and the largest bound of those that rest, at each place."""
    for place in range(n):
        best[place], bound[place] = -np.inf, -np.inf
    for a in range(Q.shape[0]):
        for place in range(n):
            q, since = Q[a, r, chunk, place], rest[a, r, chunk, place]
            best[place] = max(best[place], q if since == AWAKE else -np.inf)
            bound[place] = max(bound[place], -np.inf if since == AWAKE else q + (rises - since))


@inner
def any_above(best, bound, n, R):
    """Whether an entry that rests may matter."""
    number = 0
    for place in range(n):
        number += (best[place] < R) & (bound[place] > best[place])
    return number > 0


@inner
def lie_down(Q, rest, r, chunk, n, rises, R, margin, best):
    """Let entries rest that are far from mattering; the best ones stay awake."""
    for a in range(Q.shape[0]):
        for place in range(n):
            q, since = Q[a, r, chunk, place], rest[a, r, chunk, place]
            below = (since == AWAKE) & (q < best[place])
            far = (best[place] - R > margin) | (best[place] - q > margin)
            rest[a, r, chunk, place] = rises if below & far else since


@inner
def wake(plan, settings, h, chunk, place, best):
    """Compute T and Q̃ of the entries at one state that may be above `best`; they rest no longer."""
    u, r = plan.scratch[0, : plan.Y.points.shape[1]], row(settings, h)
    point_at(plan.Y, chunk * WIDTH + place, u)
    for a in range(settings.actions):
        since = plan.rest[a, r, chunk, place]
        if since != AWAKE and plan.Q[a, r, chunk, place] + (plan.rises[h] - since) > best:
            _, T = sums_at(settings, plan.S, action_list(settings, h, a), u, plan.G[r])
            plan.T[a, r, chunk, place] = T
            plan.Q[a, r, chunk, place] = target_at(plan, settings, h, a, chunk, place)
            plan.rest[a, r, chunk, place] = AWAKE
