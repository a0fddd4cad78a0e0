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
all, with g_i = g(ρ(u, x_i)/σ(u, a)); if no g_i is above 0, the nearest count alone. Where actions are related, samples
of other actions b_i take part: n' is in place of n, g_i has the factor K_A(b_i, a), and how near they are is measured
with actions as coordinates, in which σ_A is as long as σ_min is among states. V(z) has the shares λ as above.
If x_i is farther from u than the merge distance, and z_i is farther than that from every representative, z_i = y_i:
nothing was seen at z_i, and there may be a wall. Rewards, terminations and counts are smoothed as ever. This is for
pooled data and the Euclidean metric.
"""

import numpy as np

from kernelrl.geometry.representatives import KNOWN, find, gather, list_of, local_weight, put, square_to
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.stores.interface import pool
from kernelrl.stores.merged import STAYED, count_sample, new_counts, note_start, renew_local
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TERMINATED, TO, has_next, place
from kernelrl.stores.transitions import blocks_left, count_transition, grow_transitions

__all__ = ["landed", "relanded", "with_representatives"]

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
            if end == FROM and log.labels[STEP, t] == 0:
                note_start(store, x)
            if find(reps, settings.space, x) < 0:
                if reps.number[KNOWN] == reps.points.shape[0]:
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


def with_representatives(settings, log, order, new_store, capacity, most=np.inf):
    """A store with the representatives of all logged states and no data; None if there are more than `most` of them.

    They are made in this `order` of the transitions. `new_store(capacity)` makes an empty store with room for so many.
    """
    store = new_store(capacity)
    x = np.zeros(store.starts.shape[1])
    while not put_logged(hand_over(settings), hand_over(store), hand_over(log), order, x):
        if capacity > most:
            return None
        capacity *= 2
        store = new_store(capacity)
    return store if store.reps.number[KNOWN] <= most else None


def landed(settings, log, order, new_store, capacity, keeps, action_places):
    """A store with the data of all logged transitions by the rules above, and local bandwidths from these.

    The arguments are those of `with_representatives`, `relanded` and `with_own_steps`.
    """
    store = with_representatives(settings, log, order, new_store, capacity)
    store = renew_local(settings, relanded(settings, store, log, keeps), 0)
    return with_own_steps(settings, store, log, keeps, action_places) if settings.own_steps else store


# ----------------------------------------------------------------------------------------------------------- own steps


@compiled
def place_logged(settings, log, x, y):
    """Embed the states of all logged transitions into `x` and `y` (n, places)."""
    for t in range(log.number[LOGGED]):
        place(settings, log.states[FROM, t], log.labels[STEP, t], x[t])
        place(settings, log.states[TO, t], log.labels[STEP, t] + 1, y[t])


@inner
def going_on(store, alive, u, a):
    """n_0(u, a); `alive` (U, A) are the numbers of samples that did not terminate."""
    near, n = store.reps.weights, 0.0
    start, end = list_of(near, u)
    for j in range(start, end):
        n += near.amount[j, a] * alive[near.index[j], a]
    return n


@inner
def weigh_near(settings, reps, u, a, x, near, related, g):
    """Write g_i of the samples `near` at `x` (n, places) into `g`; return their sum. `related` are the K_A(b_i, a)."""
    total, closest = 0.0, np.inf
    for i in range(near.size):
        square = square_to(reps, settings.space, u, x[near[i]])
        g[i] = local_weight(settings, square * reps.local[u, a]) * related[i]
        total, closest = total + g[i], min(closest, square)
    if total > 0.0:
        return total
    for i in range(near.size):
        g[i] = 1.0 if square_to(reps, settings.space, u, x[near[i]]) <= closest * (1.0 + TIE) else 0.0
        total += g[i]
    return total


@compiled
def count_own_steps(settings, store, alive, a, first, x, y, start, index, related, keeps, g, z):
    """Count where action `a` leads from each representative from `first` on; return the first that had no room.

    `x` and `y` (n, places) are embedded states. Those near representative u are entries start[u] to start[u + 1] of
    `index`, with K_A(b_i, a) in `related`. `alive`: see `going_on`; `keeps` (places,) are the k_j; `g` (the longest
    list,) and `z` (places,) are scratch.
    """
    reps = store.reps
    for u in range(first, reps.number[KNOWN]):
        if blocks_left(store.transitions) < reps.number[KNOWN]:
            return u
        near, n = index[start[u] : start[u + 1]], going_on(store, alive, u, a)
        total = weigh_near(settings, reps, u, a, x, near, related[start[u] : start[u + 1]], g)
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


def with_own_steps(settings, store, log, keeps, action_places):
    """The store with the transitions of the second rule above; it has none yet.

    `action_places` (A, k) are actions as coordinates; k = 0 where they are not related.
    """
    n, known, places = int(log.number[LOGGED]), int(store.reps.number[KNOWN]), len(keeps)
    x, y, actions = np.zeros((n, places)), np.zeros((n, places)), log.labels[ACTION, :n]
    place_logged(hand_over(settings), hand_over(log), x, y)
    alive, K = store.N[0, :, : settings.actions] - store.ended[0, :, : settings.actions], settings.action_weights
    if len(K):
        alive = alive @ K[0, :, : settings.actions]
    for a, mine, near in near_samples(store.reps.points[:known, :, 0], x, actions, log, action_places):
        start, index, done = np.cumsum([0, *map(len, near)]), mine[np.concatenate(near)], 0
        related = K[0, actions[index], a] if len(K) else np.ones(len(index))
        while done < known:
            store = store._replace(transitions=grow_transitions(store.transitions, known))
            parts = hand_over(settings), hand_over(store)
            scratch = np.zeros(MOST), np.zeros(places)
            done = int(count_own_steps(*parts, alive, a, done, x, y, start, index, related, keeps, *scratch))
    return store


def near_samples(points, x, actions, log, action_places):
    """For each action: its number, the numbers of some samples, and which of these are near each of `points`."""
    from scipy.spatial import KDTree  # takes long to import

    going = log.labels[TERMINATED, : len(x)] == 0
    if not action_places.shape[1]:
        for a in range(len(action_places)):
            mine = np.flatnonzero((actions == a) & going)
            if mine.size:
                yield a, mine, nearest_of(KDTree(x[mine]), points)
        return
    mine = np.flatnonzero(going)
    if mine.size:
        tree = KDTree(np.hstack([x[mine], action_places[actions[mine]]]))
        for a, place in enumerate(action_places):
            yield a, mine, nearest_of(tree, np.hstack([points, np.tile(place, (len(points), 1))]))
