"""Data at representatives from logged transitions: steps lead where they would from the representative itself.

When a transition arrives, it counts for the representative v of its state x, and its next state y is replaced by y's
representative. That is quick, but in a slow system such rounding, repeated at every step, becomes a motion of its own.
An agent that keeps its raw transitions counts all of them again now and then, and for the policy to deploy. A sample
counts for the nearest representative v, and the step is taken from v itself,

    z_j = y_j + k_j·(v_j - x_j)          where it leads; k_j is 1 where steps resemble each other by their displacement,
                                         and 0 where they do by the place they lead to
    n(v, a, u) += λ_u(z)                 shares λ of the representatives u around z, as values are read between them

If there is no representative around z, the transition leads to the representative of y.

Smoothing has the same effect as rounding: a representative u leads where its neighbours v do, so states spread by a
bandwidth in each step, and in a slow system that is farther than they move. With `own_steps` the steps of nearby
samples are taken from u itself,

    T_h(u, a) = Σ_v w(u, a, v)·s(v, a) + n_0(u, a)·Σ_i g_i·V_{h+1}(z_i)/Σ_i g_i,        z_ij = y_ij + k_j·(u_j - x_ij)
    n_0(u, a) = Σ_v w(u, a, v)·(number of samples of (v, a) that did not terminate)

over the NEAREST samples (x_i, a, r_i, y_i) that did not terminate, and those as near as the last of them up to MOST in
all, with g_i = g(ρ(u, x_i)/σ(u, a)); if no g_i is above 0, the nearest count alone. V(z) has the shares λ as above.
If x_i is farther from u than the merge distance, and z_i is farther than that from every representative, z_i = y_i:
nothing was seen at z_i, and there may be a wall. Rewards, terminations and counts are smoothed as ever. This is for
pooled data and the Euclidean metric.
"""

import numpy as np

from kernelrl.geometry.representatives import KNOWN, find, gather, list_of, local_weight, put, square_to
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.stores.interface import pool
from kernelrl.stores.merged import STAYED, count_sample, new_counts, renew_local
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TERMINATED, TO, has_next, place
from kernelrl.stores.transitions import blocks_left, count_transition, grow_transitions

__all__ = ["landed", "relanded"]

NEAREST, MOST = 16, 1024
TIE = 1e-12  # distances that differ by less than this fraction are equal


@compiled
def put_logged(settings, store, log, order, x):
    """Make representatives of all logged states, in this order of transitions; return whether there was room.

    They have no neighbours yet. `x` (places,) is scratch.
    """
    reps = store.reps
    for t in order:
        for end in (FROM, TO):
            place(settings, log.states[end, t], log.labels[STEP, t] + end, x)
            if find(reps, settings.space, x) < 0:
                if reps.number[KNOWN] == reps.following.size:
                    return False
                put(reps, x)
    return True


@inner
def lead_from(settings, store, p, v, a, x, y, keeps, z, amount):
    """Count a step from `x` to `y` in pool `p` as one from representative `v`.

    `keeps` (places,) are the k_j; `z` (places,) is scratch.
    """
    reps = store.reps
    for j in range(z.size):
        z[j] = y[j] + keeps[j] * (reps.points[v, j, 0] - x[j])
    far = square_to(reps, settings.space, v, x) > reps.merge * reps.merge  # never where `v` represents `x`
    if far and find(reps, settings.space, z) < 0:
        for j in range(z.size):
            z[j] = y[j]
    n = gather(reps, settings.space, z, reps.number[KNOWN])
    if n == 0:
        reps.around[0], reps.share[0], n = find(reps, settings.space, y), 1.0, 1
    for i in range(n):
        count_transition(store.transitions, p, v * store.C.shape[2] + a, reps.around[i], amount * reps.share[i])


@compiled
def count_landings(settings, store, log, first, keeps, x, y, z):
    """Count the logged transitions from number `first` on; return the number of the first that had no room.

    `keeps` (places,) are the k_j; `x`, `y` and `z` (places,) are scratch.
    """
    reps = store.reps
    for t in range(first, log.number[LOGGED]):
        if blocks_left(store.transitions) < reps.number[KNOWN]:
            return t
        h, a, ends = log.labels[STEP, t], log.labels[ACTION, t], log.labels[TERMINATED, t] != 0
        place(settings, log.states[FROM, t], h, x)
        place(settings, log.states[TO, t], h + 1, y)
        v = find(reps, settings.space, x)
        count_sample(settings, store, h, v, a, log.reward[t], -1, ends)
        if has_next(settings, h, ends) and not settings.own_steps:
            store.clock[STAYED] += find(reps, settings.space, y) == v
            lead_from(settings, store, pool(settings, h), v, a, x, y, keeps, z, 1.0)
    return log.number[LOGGED]


def relanded(settings, store, log, keeps):
    """A store with the same representatives and the data of all logged transitions by the first rule above.

    Each logged state has a representative. `keeps` (places,) are the k_j. The bonus of `settings` has no data yet. With
    `own_steps` there are no transitions yet.
    """
    x, y, z = np.zeros((3, len(keeps)))
    store, known, done = new_counts(store), int(store.reps.number[KNOWN]), 0
    while done < log.number[LOGGED]:
        store = store._replace(transitions=grow_transitions(store.transitions, known))
        parts = (hand_over(part) for part in (settings, store, log))
        done = int(count_landings(*parts, done, keeps, x, y, z))
    return store


def landed(settings, log, order, new_store, capacity, keeps):
    """A store with the data of all logged transitions by the rules above, and local bandwidths from these.

    Representatives are made in this `order` of the transitions. `new_store(capacity)` makes an empty store without a
    limit on them; the others are as in `relanded`.
    """
    store, x = new_store(capacity), np.zeros(len(keeps))
    while not put_logged(hand_over(settings), hand_over(store), hand_over(log), order, x):
        capacity *= 2
        store = new_store(capacity)
    store = renew_local(settings, relanded(settings, store, log, keeps), 0)
    return with_own_steps(settings, store, log, keeps) if settings.own_steps else store


# ----------------------------------------------------------------------------------------------------------- own steps


@compiled
def place_logged(settings, log, x, y):
    """Embed the states of all logged transitions into `x` and `y` (n, places)."""
    for t in range(log.number[LOGGED]):
        place(settings, log.states[FROM, t], log.labels[STEP, t], x[t])
        place(settings, log.states[TO, t], log.labels[STEP, t] + 1, y[t])


@inner
def going_on(store, u, a):
    """n_0(u, a)."""
    near, n = store.reps.weights, 0.0
    start, end = list_of(near, u)
    for j in range(start, end):
        v = near.index[j]
        n += near.amount[j, a] * (store.N[0, v, a] - store.ended[0, v, a])
    return n


@inner
def weigh_near(settings, reps, u, a, x, near, g):
    """Write g_i of the samples `near` at `x` (n, places) into `g`; return their sum."""
    total, closest = 0.0, np.inf
    for i in range(near.size):
        square = square_to(reps, settings.space, u, x[near[i]])
        g[i] = local_weight(settings, square * reps.local[u, a])
        total, closest = total + g[i], min(closest, square)
    if total > 0.0:
        return total
    for i in range(near.size):
        g[i] = 1.0 if square_to(reps, settings.space, u, x[near[i]]) <= closest * (1.0 + TIE) else 0.0
        total += g[i]
    return total


@compiled
def count_own_steps(settings, store, a, first, x, y, start, index, keeps, g, z):
    """Count where action `a` leads from each representative from `first` on; return the first that had no room.

    `x` and `y` (n, places) are embedded states. Those near representative u are entries start[u] to start[u + 1] of
    `index`. `keeps` (places,) are the k_j; `g` (the longest list,) and `z` (places,) are scratch.
    """
    reps = store.reps
    for u in range(first, reps.number[KNOWN]):
        if blocks_left(store.transitions) < reps.number[KNOWN]:
            return u
        near, n = index[start[u] : start[u + 1]], going_on(store, u, a)
        total = weigh_near(settings, reps, u, a, x, near, g)
        for i in range(near.size):
            if n * g[i] > 0.0:
                t = near[i]
                lead_from(settings, store, 0, u, a, x[t], y[t], keeps, z, n * g[i] / total)
    return reps.number[KNOWN]


def nearest_of(tree, points):
    """For each of `points` (n, places) the numbers of the NEAREST states in a tree, and of those as near as the last.

    More than a few are asked for only where there are ties.
    """
    found, left, k = [None] * len(points), np.arange(len(points)), min(2 * NEAREST, tree.n)
    while left.size:
        distance, near = tree.query(points[left], np.arange(1, k + 1))
        within = distance <= distance[:, [min(NEAREST, tree.n) - 1]] * (1.0 + TIE)
        done = ~within[:, -1] | (k == min(MOST, tree.n))
        for i in np.flatnonzero(done):
            found[left[i]] = near[i, within[i]]
        left, k = left[~done], min(4 * k, MOST, tree.n)
    return found


def with_own_steps(settings, store, log, keeps):
    """The store with the transitions of the second rule above; it has none yet."""
    from scipy.spatial import KDTree  # takes long to import

    n, known, places = int(log.number[LOGGED]), int(store.reps.number[KNOWN]), len(keeps)
    x, y, done = np.zeros((n, places)), np.zeros((n, places)), 0
    place_logged(hand_over(settings), hand_over(log), x, y)
    points = store.reps.points[:known, :, 0]
    for a in range(settings.actions):
        mine = np.flatnonzero((log.labels[ACTION, :n] == a) & (log.labels[TERMINATED, :n] == 0))
        if not mine.size:
            continue
        tree, done = KDTree(x[mine]), 0
        near = nearest_of(tree, points)
        start, index, g = np.cumsum([0, *map(len, near)]), mine[np.concatenate(near)], np.zeros(MOST)
        while done < known:
            store = store._replace(transitions=grow_transitions(store.transitions, known))
            parts = hand_over(settings), hand_over(store)
            done = int(count_own_steps(*parts, a, done, x, y, start, index, keeps, g, np.zeros(places)))
    return store
