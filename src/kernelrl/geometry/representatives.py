"""Representative states: a set of states, no two of them within the merge distance m of each other.

A state becomes a representative if none is within m; otherwise the nearest one represents it (the earliest, if equally
near). The set grows as states arrive. Each representative u stores its neighbours v, those within reach of a weight,

    w(u, v) = g(ρ(u, v)/σ)   (u itself is among them)

or, where each representative and action has a bandwidth of its own (`krl.schedules.Local`), one weight per action,

    w(u, a, v) = g(ρ(u, v)/σ(u, a))   if ρ(u, v) ≤ CUT·σ(u, a), else 0

or, with several bandwidths at once (`krl.schedules.Bandwidths`), one list for each of them: list e = u·M + j belongs to
the representative u and the j-th of M bandwidths, the widest first. Where there is one, e = u.

Of local weights, when a representative is new and when bandwidths are renewed, there are only those of the NEIGHBOURS
nearest; later ones join the list as long as it has fewer than LONGEST: the others are many in high dimensions and add
little.

Where values are interpolated, other lists hold the representatives within reach of a cone, with their distances. A list
of neighbours is a piece of one long array; when it is full it moves to a piece twice as long. Memory is linear in
representatives × neighbours. Representatives are found through cells of a grid, or all are gone through (`places`).
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import lengthen, more
from kernelrl.geometry.kernels import weight
from kernelrl.geometry.metrics import BLOCK, squared_distances, squares_in_block
from kernelrl.geometry.places import Places, cells_around, enter, new_places, next_cell, places_of
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import SCRATCH, Field, Rows, checks, completes, require
from kernelrl.jit.handles import hand_over

__all__ = [
    "CUT",
    "DEGREE",
    "FAR",
    "KNOWN",
    "LIVE",
    "REACH",
    "SCALE",
    "START",
    "Near",
    "Representatives",
    "copy_place",
    "find",
    "find_or_add",
    "find_within",
    "gather",
    "grow_representatives",
    "list_of",
    "lists_each",
    "local_weight",
    "nearest",
    "new_representatives",
    "put",
    "relist_cones",
    "representative_room",
    "reweigh",
    "square_to",
]


START, DEGREE, SPACE = range(3)  # of `span`
TAKEN, LIVE = range(2)  # of `used`
KNOWN, FAR = range(2)  # of `number`
SCALE, REACH = range(2)  # of `scales`
CUT = 3.0  # kernels with local bandwidths are cut at this multiple of them
NEIGHBOURS = 150  # with local bandwidths, only so many of the nearest representatives have a weight
LONGEST = 256  # nor does a list of neighbours with local weights become longer
WIDER = 1.0 + 1e-12  # radii are larger by this factor, since distances are rounded
BLEND = 1.5  # values are blended between representatives within this multiple of the merge distance
LEAST = 16  # smallest space of a list: a multiple of what sums of rows read at once; unused entries are zero


class Near(NamedTuple):
    """Lists of neighbours."""

    # START of a list, DEGREE: its number of entries, SPACE: room for entries
    span: Annotated[np.ndarray, Rows(*[Field("any", most="entries")] * 3)]
    index: Annotated[np.ndarray, Field("entries", np.uint32, index="U", fill=0)]
    # weight, or weights by action, or distance
    amount: Annotated[np.ndarray, Field("entries each", least=0, fill=0)]
    # TAKEN: entries up to which the arrays are in use; LIVE: those of them that have not been left by a list that moved
    used: Annotated[np.ndarray, Rows(Field("", counts="entries"), Field(""))]


@checks(Near)
def check_near(where, near):
    """Lists do not overlap, each lies inside its space, and the rest of its space is empty."""
    (start, degree, space), used = near.span, near.used
    order = np.argsort(start[space > 0])
    first, end = start[space > 0][order], (start + space)[space > 0][order]
    apart = (end[:-1] <= first[1:]).all() and (end <= used[TAKEN]).all()
    require(apart and (degree <= space).all(), f"{where}span", "a list does not lie in a space of its own")
    whole = (start[space > 0] % LEAST == 0).all() and (space % LEAST == 0).all() and used[TAKEN] % LEAST == 0
    require(whole, f"{where}span", f"a list does not take whole steps of {LEAST}")
    require(
        space.sum() == used[LIVE], f"{where}used", f"the lists have space for {space.sum()} entries, not {used[LIVE]}"
    )
    inside = np.zeros(near.index.size + 1, np.int64)  # +1 where a list's entries begin, -1 where they end
    np.add.at(inside, start, 1)
    np.add.at(inside, start + degree, -1)
    owned = np.zeros(near.index.size + 1, np.int64)
    np.add.at(owned, start, 1)
    np.add.at(owned, start + space, -1)
    empty = (np.cumsum(owned) > np.cumsum(inside))[:-1]
    require(not near.amount[empty].any(), f"{where}amount", "an entry behind a list's end is not 0")


class Representatives(NamedTuple):
    """The set (see the module's docstring)."""

    merge: float  # m
    limit: int  # the largest number of representatives
    cone_reach: float  # how far from its tip a cone is below the cap; 0 where values are not interpolated
    points: Annotated[np.ndarray, Field("U d 1")]  # embedded states
    # SCALE: 1/σ² of each bandwidth, the widest first; REACH: beyond it a weight cannot change a count in doubles
    scales: Annotated[np.ndarray, Field("2 Layers", least=0, infinite=True)]
    # 1/σ(u, a)² where bandwidths are local, else no columns
    local: Annotated[np.ndarray, Field("U own", least=0)]
    # KNOWN: how many representatives there are; FAR: how many states were merged from farther away, at the limit
    number: Annotated[np.ndarray, Rows(Field("", counts="U"), Field(""))]
    weights: Near
    cones: Near
    # the state searched for last; which representative was found and how many there were
    memo: Annotated[np.ndarray, Field("d+2", scratch=True, fill=-1)]
    square: Annotated[np.ndarray, Field("1", scratch=True)]
    here: Annotated[np.ndarray, Field("d", scratch=True)]
    buffer: Annotated[np.ndarray, Field("16", scratch=True)]  # ρ² of one block
    around: Annotated[np.ndarray, Field("U", np.int64, scratch=True)]  # representatives near a state
    share: Annotated[np.ndarray, Field("U", scratch=True)]  # and what each of them counts there
    sorting: Annotated[np.ndarray, Field("U", scratch=True)]
    places: Annotated[Places, SCRATCH]


@completes(Representatives)
def complete_representatives(reps):
    """Where the representatives lie."""
    return reps._replace(places=places_of(reps.places, reps.points, int(reps.number[KNOWN])))


@checks(Representatives)
def check_representatives(where, reps):
    """Each representative has its lists of neighbours."""
    require((reps.weights.amount <= 1.0).all(), f"{where}weights.amount", "a weight is above 1")
    capacity, number, each = len(reps.points), int(reps.number[KNOWN]), reps.scales.shape[1]
    for name, near, of_one in (("weights", reps.weights, each), ("cones", reps.cones, 1 if reps.cone_reach > 0 else 0)):
        there, wanted = near.span.shape[1], capacity * of_one
        require(there == wanted, f"{where}{name}.span", f"there are {there} lists, not {wanted}")
        unused = not near.span[:, number * of_one :].any()
        require(unused, f"{where}{name}.span", "a list of no representative is not empty")


def new_near(capacity, entries, each=1):
    """Empty lists for at most `capacity` representatives, with `each` numbers per neighbour."""
    index = np.zeros(entries, np.uint32)
    return Near(np.zeros((3, capacity), np.int64), index, np.zeros((entries, each)), np.zeros(2, np.int64))


def new_representatives(low, high, merge, limit, cone_reach, bounded, scales, own=0, capacity=64):
    """An empty set, for embeddings in the box [low, high] (d,); `bounded` says whether a grid is possible.

    `scales` (2, M) has 1/σ² and the reach of each bandwidth; `own` is the number of columns of local ones, or 0.
    """
    return Representatives(
        float(merge), int(limit), float(cone_reach), np.zeros((capacity, len(low), 1)), scales,
        np.zeros((capacity, own)), np.zeros(2, np.int64), new_near(capacity * scales.shape[1], LEAST, max(1, own)),
        new_near(capacity if cone_reach > 0 else 0, LEAST), np.full(len(low) + 2, -1.0), np.zeros(1),
        np.zeros(len(low)), np.zeros(BLOCK), np.zeros(capacity, np.int64), np.zeros(capacity), np.zeros(capacity),
        new_places(low, high, merge, bounded, capacity),
    )  # fmt: skip


@inner
def lists_each(reps):
    """M: how many lists of weights a representative has, one for each bandwidth."""
    return reps.scales.shape[1]


@compiled
def entries_for(near, number, coming, each):
    """How many entries the lists may need when `coming` representatives, with `each` lists, join `number` others.

    A list of n entries with space c then has at most n + coming entries. Until then it moves to pieces of twice, four
    times … its space, in all less than 4·(c + coming) + 2·LEAST. A new list may have to hold all representatives. Lists
    with local weights take less than 2·LONGEST in all.
    """
    old = 4 * near.used[LIVE] + each * number * (4 * coming + 2 * LEAST)
    needed = old + each * coming * (4 * (number + coming) + 2 * LEAST)
    if near.amount.shape[1] == 1:
        return needed
    return min(needed, 2 * LONGEST * (number + coming) - near.used[TAKEN])


def grow_near(near, capacity, number, coming, each):
    """The same lists, `each` for one of `capacity` representatives, with room for `coming` more.

    Only entries in use are copied: memory that is not written to is not taken from the system.
    """
    taken, span = int(near.used[TAKEN]), lengthen(near.span, capacity * each, 1)
    needed = taken + entries_for(near, number, coming, each)
    if needed <= near.index.size:
        return near._replace(span=span)
    index, amount = (lengthen(array[:taken], more(needed), 0) for array in (near.index, near.amount))
    return near._replace(span=span, index=index, amount=amount)


def grow_representatives(reps, coming):
    """The same set with room for `coming` more."""
    capacity, number, places = len(reps.points), int(reps.number[KNOWN]), reps.places
    points = reps.points
    if number + coming > capacity:
        capacity = more(max(capacity, number + coming))
        points = lengthen(points, capacity, 0)
        places = places_of(places, points, number)
    return reps._replace(
        points=points,
        places=places,
        local=lengthen(reps.local, capacity, 0),
        around=lengthen(reps.around, capacity, 0),
        share=lengthen(reps.share, capacity, 0),
        sorting=lengthen(reps.sorting, capacity, 0),
        weights=grow_near(reps.weights, capacity, number, coming, reps.scales.shape[1]),
        cones=grow_near(reps.cones, capacity, number, coming, 1) if reps.cone_reach > 0 else reps.cones,
    )


@inner
def near_room(near, number, coming, each):
    """Whether `coming` more representatives, with `each` lists, fit."""
    return near.index.size - near.used[TAKEN] >= entries_for(near, number, coming, each)


@compiled
def representative_room(reps, coming):
    """Whether `coming` more representatives fit."""
    number = reps.number[KNOWN]
    fits = reps.points.shape[0] - number >= coming and near_room(reps.weights, number, coming, lists_each(reps))
    return fits and (reps.cone_reach <= 0.0 or near_room(reps.cones, number, coming, 1))


@inner
def square_to(reps, space, v, u):
    """ρ² between representative `v` and the embedded state `u`."""
    squared_distances(space, reps.points, v, 1, 1, u, reps.square)
    return reps.square[0]


@inner
def find(reps, space, u):
    """The nearest representative within the merge distance of the embedded state `u`, or -1.

    The next state is searched for again when the next step chooses and observes there, so the last answer is kept.
    """
    memo, d = reps.memo, u.size
    known = memo[d + 1] == reps.number[KNOWN]
    for j in range(d):
        known = known and memo[j] == u[j]
    if not known:
        keep(reps, u, search_cells(reps, space, u))
    return np.int64(memo[d])


@inner
def keep(reps, u, found):
    """Remember what was found for `u`."""
    memo, d = reps.memo, u.size
    for j in range(d):
        memo[j] = u[j]
    memo[d], memo[d + 1] = found, reps.number[KNOWN]


@inner
def search_cells(reps, space, u):
    """The search behind `find`."""
    places, best, found = reps.places, reps.merge * reps.merge, -1
    cells = cells_around(places, u, reps.merge * WIDER, reps.number[KNOWN])
    if cells < 0:
        v = nearest(reps, space, u)
        return v if v >= 0 and reps.square[0] <= best else -1
    for _ in range(cells):
        key, v = next_cell(places)
        while v >= 0:
            if places.key[v] == key:
                square = square_to(reps, space, v, u)
                if square < best or (square == best and (found < 0 or v < found)):
                    best, found = square, v
            v = places.following[v]
    return found


@inner
def nearest(reps, space, u):
    """The nearest representative at any distance, or -1 if there is none; ρ² is then in `square`.

    It is the first one where all are so far away that ρ² overflows.
    """
    number = reps.number[KNOWN]
    best, found = math.inf, 0 if number > 0 else -1
    for block in range((number + (BLOCK - 1)) // BLOCK):
        if (
            squares_in_block(space, reps.places.blocks, block, min(BLOCK, number - block * BLOCK), u, reps.buffer)
            < best
        ):
            for i in range(min(BLOCK, number - block * BLOCK)):
                if reps.buffer[i] < best:
                    best, found = reps.buffer[i], block * BLOCK + i
    reps.square[0] = best
    return found


@inner
def find_or_add(reps, settings, u):
    """The representative of the embedded state `u`, which may be a new one."""
    v = find(reps, settings.space, u)
    if v >= 0:
        return v
    if reps.number[KNOWN] >= reps.limit:
        reps.number[FAR] += 1
        return nearest(reps, settings.space, u)
    v = put(reps, u)
    meet(reps, settings, v, u)
    keep(reps, u, v)
    return v


@inner
def put(reps, u):
    """Make the embedded state `u` a representative, which has no neighbours yet; return its number."""
    v = reps.number[KNOWN]
    for j in range(u.size):
        reps.points[v, j, 0] = u[j]
    reps.number[KNOWN] = v + 1
    enter(reps.places, v, reps.points)
    return v


@inner
def list_of(near, e):
    """The first entry of list `e`, and the end after its last."""
    return near.span[START, e], near.span[START, e] + near.span[DEGREE, e]


@inner
def append_neighbour(near, u, v):
    """Add `v` to list `u`; return its entry, in which the caller writes the amount."""
    start, degree, space = near.span[START, u], near.span[DEGREE, u], near.span[SPACE, u]
    if degree == space:
        near.span[START, u] = near.used[TAKEN]
        near.span[SPACE, u] = max(LEAST, 2 * space)
        near.used[TAKEN] += near.span[SPACE, u]
        near.used[LIVE] += near.span[SPACE, u] - space
        for j in range(degree):
            near.index[near.span[START, u] + j] = near.index[start + j]
            for c in range(near.amount.shape[1]):
                near.amount[near.span[START, u] + j, c] = near.amount[start + j, c]
        start = near.span[START, u]
    near.index[start + degree] = v
    near.span[DEGREE, u] = degree + 1
    return start + degree


@inner
def add_weight(reps, settings, u, v, square):
    """Add `v`, at the squared distance `square`, to the neighbours of `u`, unless it has no weight there."""
    near, actions = reps.weights, settings.actions
    if reps.local.shape[1] == 0:
        scales, M = reps.scales, lists_each(reps)
        for j in range(M):
            if square <= scales[REACH, j] * scales[REACH, j]:
                w = weight(settings.kernel, square * scales[SCALE, j])
                near.amount[append_neighbour(near, u * M + j, v), 0] = w
        return
    if near.span[DEGREE, u] >= LONGEST or square > reach_squared(reps, settings, u):
        return
    j = append_neighbour(near, u, v)
    for a in range(actions):
        near.amount[j, a] = local_weight(settings, square * reps.local[u, a])


@inner
def reach_squared(reps, settings, u):
    """(CUT·σ)² for the largest of the local bandwidths of `u`."""
    least = reps.local[u, 0]
    for a in range(1, settings.actions):
        least = min(least, reps.local[u, a])
    return CUT * CUT / least


@inner
def local_weight(settings, z2):
    """g(z), cut at CUT."""
    return weight(settings.kernel, z2) if z2 <= CUT * CUT else 0.0


@inner
def meet(reps, settings, u, x):
    """Enter the new representative `u`, at `x`, and its neighbours in each other's lists."""
    local, cone_reach = reps.local.shape[1] > 0, reps.cone_reach
    if local:
        meet_locally(reps, settings, u, x)
        if cone_reach <= 0.0:
            return
    reach = cone_reach if local else max(cone_reach, reps.scales[REACH, 0])
    for i in range(scan(reps, settings.space, x, reach * reach, u + 1)):
        v, square = reps.around[i], reps.share[i]
        if not local:
            add_weight(reps, settings, u, v, square)
            if v != u:
                add_weight(reps, settings, v, u, square)
        if cone_reach > 0.0 and square <= cone_reach * cone_reach:
            distance, cones = math.sqrt(square), reps.cones
            cones.amount[append_neighbour(cones, u, v), 0] = distance
            if v != u:
                cones.amount[append_neighbour(cones, v, u), 0] = distance


@inner
def meet_locally(reps, settings, u, x):
    """Enter local weights; none reaches farther than those of the new representative, with σ_0."""
    for c in range(reps.local.shape[1]):
        reps.local[u, c] = settings.inverse_sigma2
    n = find_within(reps, settings.space, x, reach_squared(reps, settings, u), u + 1)
    for i in range(n):
        if reps.around[i] != u:
            add_weight(reps, settings, reps.around[i], u, reps.share[i])
    list_nearest(reps, settings, u, n)


@inner
def find_within(reps, space, x, bound, number):
    """Find the representatives among the first `number` with ρ²(x, ·) ≤ `bound`; return how many.

    They are in `around`, and ρ² of each is in `share`.
    """
    places, n = reps.places, 0
    cells = cells_around(places, x, math.sqrt(bound) * WIDER, number)
    if cells < 0:
        return scan(reps, space, x, bound, number)
    for _ in range(cells):
        key, v = next_cell(places)
        while v >= 0:
            if places.key[v] == key and v < number:
                n = note_within(reps, space, v, x, bound, n)
            v = places.following[v]
    return n


@inner
def scan(reps, space, x, bound, number):
    """`find_within` through all representatives in order."""
    n, buffer = 0, reps.buffer
    for block in range((number + (BLOCK - 1)) // BLOCK):
        size = min(BLOCK, number - block * BLOCK)
        if squares_in_block(space, reps.places.blocks, block, size, x, buffer) <= bound:
            for i in range(size):
                if buffer[i] <= bound:
                    reps.around[n], reps.share[n] = block * BLOCK + i, buffer[i]
                    n += 1
    return n


@inner
def note_within(reps, space, v, x, bound, n):
    """Note `v` as number `n` of those found if ρ²(x, v) ≤ `bound`; return how many there are then."""
    square = square_to(reps, space, v, x)
    if square > bound:
        return n
    reps.around[n], reps.share[n] = v, square
    return n + 1


@inner
def gather(reps, space, x, number):
    """Find the representatives among the first `number` within BLEND·m of `x`, and their shares; return how many.

    Their shares λ = (1 - ρ/(BLEND·m))² are divided by their sum.
    """
    radius, n, total = BLEND * reps.merge, 0, 0.0
    for i in range(find_within(reps, space, x, radius * radius, number)):
        if reps.share[i] < radius * radius:
            short = 1.0 - math.sqrt(reps.share[i]) / radius
            reps.around[n], reps.share[n] = reps.around[i], short * short
            total += short * short
            n += 1
    for i in range(n):
        reps.share[i] /= total
    return n


@inner
def copy_place(reps, u, out):
    """Write the embedded state of representative `u` into `out` (d,)."""
    for j in range(out.size):
        out[j] = reps.points[u, j, 0]


@inner
def smallest(values, n, k):
    """The `k`-th smallest, from 1, of the first `n` of `values`, which are put into another order."""
    first, last = 0, n - 1
    while first < last:
        pivot, i, j = values[(first + last) // 2], first, last
        while i <= j:
            while values[i] < pivot:
                i += 1
            while values[j] > pivot:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            last = j
        elif k - 1 >= i:
            first = i
        else:
            break
    return values[k - 1]


@inner
def list_nearest(reps, settings, u, n):
    """Make the list of `u` with local weights: of the `n` found within reach, the NEIGHBOURS nearest, and ties."""
    bound = math.inf
    if n > NEIGHBOURS:
        for i in range(n):
            reps.sorting[i] = reps.share[i]
        bound = smallest(reps.sorting, n, NEIGHBOURS)
    for i in range(n):
        if reps.share[i] <= bound:
            add_weight(reps, settings, u, reps.around[i], reps.share[i])


@compiled
def fill_lists(reps, settings, near, reach, weigh):
    """Fill the empty lists `near` with the neighbours of each representative; return whether they fit.

    If `weigh`, they are `reps.weights`; else entries are the distances of those within `reach`.
    """
    number = reps.number[KNOWN]
    for u in range(number):
        if near.index.size - near.used[TAKEN] < lists_each(reps) * (4 * number + 2 * LEAST):
            return False
        x = reps.here
        copy_place(reps, u, x)
        if weigh and reps.local.shape[1] > 0:
            list_nearest(
                reps, settings, u, find_within(reps, settings.space, x, reach_squared(reps, settings, u), number)
            )
            continue
        for i in range(scan(reps, settings.space, x, reach * reach, number)):
            if weigh:
                add_weight(reps, settings, u, reps.around[i], reps.share[i])
            else:
                near.amount[append_neighbour(near, u, reps.around[i]), 0] = math.sqrt(reps.share[i])
    return True


def new_lists(reps, settings, reach, weigh):
    """New lists, filled by `fill_lists`."""
    most, each = 4 * LEAST * (int(reps.number[KNOWN]) + 1), reps.weights.amount.shape[1] if weigh else 1
    lists = len(reps.points) * (reps.scales.shape[1] if weigh else 1)
    if weigh:
        most = max(most, int(1.2 * reps.weights.used[TAKEN]))
    while True:
        near = new_near(lists, most, each)
        parts = (reps._replace(weights=near) if weigh else reps, settings, near)
        if fill_lists(*(hand_over(part) for part in parts), float(reach), weigh):
            return near
        most *= 2


def reweigh(reps, settings, coming):
    """The same set with the weights of another bandwidth, and room for `coming` more representatives."""
    reps = reps._replace(scales=np.array([[settings.inverse_sigma2], [settings.reach]]))
    reps = reps._replace(weights=new_lists(reps, settings, settings.reach, True))
    return grow_representatives(reps, coming) if coming else reps


def relist_cones(reps, settings, reach):
    """The same set with cones that reach as far as `reach`; the caller makes room for more representatives."""
    return reps._replace(cone_reach=float(reach), cones=new_lists(reps, settings, reach, False))
