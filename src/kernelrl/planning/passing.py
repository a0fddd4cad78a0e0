"""Passing changes of V_{h+1} on to the sums T of the entries of step h, in the incremental plan of exact Kernel-UCBVI.

Where V_{h+1}(y_s) differs from P_s, the value that was last passed on, by more than `still`,

    T(x, a_s) += w(x, x_s)·(V_{h+1}(y_s) - P_s)    at all entries (x, a_s) near x_s

The error that this leaves in T/C at step h is at most `still` and what `drift` has counted since T was last computed
from scratch: weights in strips are rounded, which costs at most ROUGH·max_s |change| each time, and changes of T below
`faint` are not made, which costs at most faint/β for each change. When the drift exceeds its share of the budget, T of
the step is computed from scratch. Cones may lag behind Q̃ by another `still` (`planning/incremental.py`), so each step
adds at most PLAN_ERROR/H to the error of values.

If few values changed, each change searches for the entries around its sample. If many did, the entries are first sorted
into strips (`kernelrl.geometry.strips`), where a change meets hardly any other entries than those it changes.
"""

import math

from kernelrl.bonuses.interface import value
from kernelrl.geometry.buckets import WIDTH, all_chunks, found, point_at, size_of
from kernelrl.geometry.kernels import LOG2E, ROUGH, fades_at, is_gaussian
from kernelrl.geometry.metrics import is_plane
from kernelrl.geometry.strips import ENDS, ORDER, SUM, fineness, gather, lay_out, spread
from kernelrl.jit.compile import inner
from kernelrl.planning.entries import AWAKE, PLANNED
from kernelrl.stores.estimates import add_change, sums_at
from kernelrl.stores.interface import pool
from kernelrl.stores.samples import ACTION, FROM, action_list, row
from kernelrl.stores.units import mapped

__all__ = [
    "AWAKE",
    "MOVED",
    "ORPHANS",
    "PLAN_ERROR",
    "chunks_of",
    "entry_list",
    "moved",
    "pass_on",
    "still",
    "target_at",
]

PLAN_ERROR = 1e-6  # values are at least so close to those of a full plan
MOVED, ORPHANS = range(2)  # of `queues`
BY_ACTION = ORPHANS  # which is not in use then
MANY = 48  # changes for which sorting pays
ROUNDS = 100  # so often all values of a step can be passed on before small changes left out use up the drift


@inner
def still(settings):
    """Smaller changes of a value are not passed on, and smaller changes of a cone not made: 0.4·PLAN_ERROR per H."""
    return 0.4 * PLAN_ERROR / settings.horizon


@inner
def most_drift(settings):
    """The largest drift of a step: 0.2·PLAN_ERROR per H."""
    return 0.2 * PLAN_ERROR / settings.horizon


@inner
def faint(plan, settings):
    """Changes of T below this are not made."""
    samples = plan.clock[PLANNED] if settings.stationary else plan.clock[PLANNED] // settings.horizon
    return most_drift(settings) * settings.beta / (ROUNDS * (samples + 1.0))


@inner
def entry_list(settings, h, a):
    """The list of entries of step `h` and action `a`, and their first index in C, T and Q."""
    if settings.interpolate:
        return action_list(settings, h, a), 0
    return pool(settings, h), a


@inner
def moved(Y, which, V, P, least, fresh, queue):
    """Write the slots of list `which` where |V - P| > `least` into `queue`; return how many. V, P: (chunks, WIDTH)."""
    count = 0
    for i in range(all_chunks(Y, which)):
        chunk = found(Y, i)
        if fresh[chunk]:
            fresh[chunk] = False
            for place in range(size_of(Y, chunk)):
                if abs(V[chunk, place] - P[chunk, place]) > least:
                    queue[count] = chunk * WIDTH + place
                    count += 1
    return count


@inner
def sort_by_action(plan, samples, number, ends):
    """Sort the first `number` slots of queue MOVED by action into BY_ACTION; those of `a` end at ends[a + 1] (A+1,)."""
    for a in range(ends.size):
        ends[a] = 0.0
    for i in range(number):
        ends[samples.labels[ACTION, sample_of(plan, plan.queues[MOVED, i])] + 1] += 1.0
    before = 0.0
    for a in range(1, ends.size):
        count = ends[a]
        ends[a] = before
        before += count
    for i in range(number):
        y = plan.queues[MOVED, i]
        a = samples.labels[ACTION, sample_of(plan, y)]
        plan.queues[BY_ACTION, int(ends[a + 1])] = y
        ends[a + 1] += 1.0


@inner
def sample_of(plan, y):
    """The number of the sample whose next state is in slot `y`."""
    s = plan.sample[y // WIDTH, y % WIDTH]
    return plan.number[s // WIDTH, s % WIDTH]


@inner
def pass_on(plan, settings, samples, h, number):
    """Pass the changes of V_{h+1} at the `number` next states in queue MOVED on to T of the entries of step `h`.

    Return the largest rise.
    """
    r = row(settings, h)
    E = plan.S if settings.interpolate else plan.Y
    ends = plan.scratch[1, : settings.actions + 1]
    sort_by_action(plan, samples, number, ends)
    plane = is_plane(settings.space, plan.scratch[0, : E.points.shape[1]]) and is_gaussian(settings.kernel)
    rough = False
    for a in range(settings.actions):
        first, last = int(ends[a]), int(ends[a + 1])
        which, k = entry_list(settings, h, a)
        n = gather(E, which, plan.rest[k, r], AWAKE, plan.order) if plane and last - first >= MANY else 0
        fine = fineness(E.grid, n)
        if fine > 0:
            places = lay_out(E, n, fine, strip_scale(settings), plan.strips, plan.order)
            plan.strips[SUM, :places] = 0.0
            pass_on_action(plan, settings, samples, h, a, first, last, fine)
            collect(plan, settings, h, k, places)
            rough = True
        else:
            pass_on_action(plan, settings, samples, h, a, first, last, 0)
    largest, rise = settle_values(plan, settings, samples, h, number)
    plan.rises[h] += rise
    plan.drift[h] += number * faint(plan, settings) / settings.beta
    if rough:
        plan.drift[h] += ROUGH * largest
    if plan.drift[h] > most_drift(settings):
        for a in range(settings.actions):
            sum_again(plan, settings, h, a)
        plan.drift[h] = 0.0
    return rise


@inner
def collect(plan, settings, h, k, places):
    """Add the sums in strips to T of their entries; without interpolation also compute Q̃."""
    r = row(settings, h)
    for i in range(places):
        change, slot = plan.strips[SUM, i], plan.order[ORDER, i]
        if change != 0.0 and slot >= 0:
            chunk, place = slot // WIDTH, slot % WIDTH
            plan.T[k, r, chunk, place] += change
            if settings.interpolate:
                plan.touched[k, r, chunk] = True
            else:
                plan.fresh[r, chunk] = True
                plan.Q[k, r, chunk, place] = target_at(plan, settings, h, k, chunk, place)


@inner
def target_at(plan, settings, h, k, chunk, place):
    """Q̃ = T/C + B of an entry."""
    C, D, W2 = plan.C[k, chunk, place], 0.0, 0.0
    if plan.moments.shape[0] > 0:
        D, W2 = plan.moments[0, k, chunk, place], plan.moments[1, k, chunk, place]
    return plan.T[k, row(settings, h), chunk, place] / C + value(settings.bonus, h, C, D, W2)


@inner
def settle_values(plan, settings, samples, h, number):
    """Note in P and G that the values in queue MOVED have been passed on; return the largest change and rise."""
    r, above = row(settings, h), row(settings, h + 1)
    V, P, largest, rise = plan.V[above], plan.P[above], 0.0, 0.0
    for i in range(number):
        y = plan.queues[MOVED, i]
        s, now = plan.sample[y // WIDTH, y % WIDTH], V[y // WIDTH, y % WIDTH]
        change = now - P[y // WIDTH, y % WIDTH]
        largest, rise = max(largest, abs(change)), max(rise, change)
        P[y // WIDTH, y % WIDTH] = now
        reward = samples.reward[plan.number[s // WIDTH, s % WIDTH]]
        plan.G[r, s // WIDTH, s % WIDTH] = mapped(settings.units, reward) + now
    return largest, rise


@inner
def chunks_of(plan, buckets, which):
    """Write the chunks of a list into plan.order[0], where a search does not overwrite them; return how many."""
    number = all_chunks(buckets, which)
    for i in range(number):
        plan.order[0, i] = found(buckets, i)
    return number


@inner
def sum_again(plan, settings, h, a):
    """Compute T of the entries of step `h` and action `a` from scratch."""
    E, r = plan.S if settings.interpolate else plan.Y, row(settings, h)
    which, k = entry_list(settings, h, a)
    u = plan.scratch[0, : E.points.shape[1]]
    for i in range(chunks_of(plan, E, which)):
        chunk = plan.order[0, i]
        for place in range(size_of(E, chunk)):
            point_at(E, chunk * WIDTH + place, u)
            _, plan.T[k, r, chunk, place] = sums_at(settings, plan.S, action_list(settings, h, a), u, plan.G[r])
            if plan.rest[k, r, chunk, place] != AWAKE:
                plan.rest[k, r, chunk, place] = plan.rises[h]
        plan.touched[k, r, chunk] = True


@inner
def strip_scale(settings):
    """Multiplied by it, distances have weights 2^{-ρ²}."""
    return math.sqrt(0.5 * LOG2E * settings.inverse_sigma2)


@inner
def pass_on_action(plan, settings, samples, h, a, first, last, fine):
    """Pass on the changes in queue BY_ACTION from `first` to `last`-1; those of samples at the same state together."""
    above = row(settings, h + 1)
    V, P = plan.V[above], plan.P[above]
    place, change = -1, 0.0  # number of the sample whose state `change` belongs to
    for i in range(first, last):
        y = plan.queues[BY_ACTION, i]
        t = sample_of(plan, y)
        if place >= 0 and not same_place(samples, t, place):
            carry(plan, settings, samples, place, h, a, change, fine)
            change = 0.0
        change += V[y // WIDTH, y % WIDTH] - P[y // WIDTH, y % WIDTH]
        place = t
    if place >= 0:
        carry(plan, settings, samples, place, h, a, change, fine)


@inner
def same_place(samples, t, other):
    """Whether two samples have the same state."""
    for j in range(samples.states.shape[2]):
        if samples.states[FROM, t, j] != samples.states[FROM, other, j]:
            return False
    return True


@inner
def carry(plan, settings, samples, t, h, a, change, fine):
    """Add a change of G at the state of sample `t`, action `a`, to the entries of step `h`: to T, or to strips."""
    least = faint(plan, settings)
    if abs(change) <= least:
        return
    E, u, r = plan.S if settings.interpolate else plan.Y, samples.states[FROM, t], row(settings, h)
    radius = min(settings.reach, fades_at(settings.kernel, least / abs(change)) / math.sqrt(settings.inverse_sigma2))
    if fine > 0:
        spread(E.grid, fine, strip_scale(settings), plan.strips, plan.order[ENDS], u, change, radius)
        return
    which, k = entry_list(settings, h, a)
    add_change(settings, E, which, u, change, radius, plan.T[k, r], plan.touched[k, r])
