"""Data at representatives from logged transitions, each with steps of its own: for the policy to deploy.

Smoothing has the same effect as rounding (`kernelrl.stores.landing`): a representative u leads where its neighbours v
do, so states spread by a bandwidth in each step, and in a slow system that is farther than they move. With `own_steps`
the steps of nearby samples are taken from u itself,

    T_h(u, a) = Σ_v w(u, a, v)·s(v, a) + n_0(u, a)·Σ_i g_i·V_{h+1}(z_i)/Σ_i g_i
    n_0(u, a) = Σ_v w(u, a, v)·(number of samples of (v, a) that did not terminate)

over the NEAREST samples (x_i, a, r_i, y_i) that did not terminate, and those as near as the last of them up to MOST in
all, with g_i = g(ρ(u, x_i)/σ(u, a)); if no g_i is above 0, the nearest count alone. z_i is where the step of sample i
leads from u (`kernelrl.stores.slopes`). Where actions are related, samples of other actions b_i take part: n' is in
place of n, g_i has the factor K_A(b_i, a), and how near they are is measured with actions as coordinates, in which σ_A
is as long as σ_min is among states. V(z) has the shares λ of `kernelrl.stores.landing`. If x_i is farther from u than
the merge distance, and z_i is farther than that from every representative, z_i = y_i: nothing was seen at z_i, and
there may be a wall. Rewards, terminations and counts are smoothed as ever. This is for pooled data and the Euclidean
metric.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.representatives import KNOWN, copy_place, list_of, local_weight, square_to
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.stores.landing import lead_from, relanded, with_representatives
from kernelrl.stores.merged import renew_local
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TERMINATED, TO, place
from kernelrl.stores.slopes import fit_slopes, new_fit, predict_probes, shift
from kernelrl.stores.transitions import blocks_left, grow_transitions

__all__ = ["Displacement", "landed", "with_slopes"]

NEAREST, MOST = 16, 1024
TIE = 1e-12  # distances that differ by less than this fraction are equal
PROBES = 1000  # samples at most are predicted from those around them
BETTER = 0.9  # slopes are used if the mean square of their errors is below this fraction of that without them


class Displacement(NamedTuple):
    """How steps near each other resemble each other."""

    keeps: np.ndarray  # (places,) the k_j
    bends: np.ndarray  # (places,) whether displacements have slopes: 1 or 0
    action_places: np.ndarray  # (A, k) actions as coordinates; k = 0 where they are not related


def landed(settings, log, order, new_store, capacity, moves):
    """A store with the data of all logged transitions by the rules above, and local bandwidths from these.

    The arguments before `moves` are those of `with_representatives`.
    """
    store = with_representatives(settings, log, order, new_store, capacity)
    store = renew_local(settings, relanded(settings, store, log, moves.keeps), 0)
    return with_own_steps(settings, store, log, moves) if settings.own_steps else store


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
    """Write g_i of the samples `near` at `x` (n, wide) into `g`; return their sum. `related` are the K_A(b_i, a)."""
    total, closest, places = 0.0, np.inf, reps.points.shape[1]
    for i in range(near.size):
        square = square_to(reps, settings.space, u, x[near[i], :places])
        g[i] = local_weight(settings, square * reps.local[u, a]) * related[i]
        total, closest = total + g[i], min(closest, square)
    if total > 0.0:
        return total
    for i in range(near.size):
        square = square_to(reps, settings.space, u, x[near[i], :places])
        g[i] = 1.0 if square <= closest * (1.0 + TIE) else 0.0
        total += g[i]
    return total


@compiled
def count_own_steps(settings, store, moves, alive, a, first, x, y, start, index, related, fit, scratch):
    """Count where action `a` leads from each representative from `first` on; return the first that had no room.

    `x` (n, wide) are embedded states and related actions as coordinates, `y` (n, places) next states. Samples near
    representative u are entries start[u] to start[u + 1] of `index`, with K_A(b_i, a) in `related`. `alive`: see
    `going_on`. `scratch` is room for u, followed by the coordinates of `a` (wide,); for g (the longest list,); and for
    z (places,).
    """
    reps, places = store.reps, y.shape[1]
    here, g, z = scratch
    for u in range(first, reps.number[KNOWN]):
        if blocks_left(store.transitions) < reps.number[KNOWN]:
            return u
        near, n = index[start[u] : start[u + 1]], going_on(store, alive, u, a)
        total = weigh_near(settings, reps, u, a, x, near, related[start[u] : start[u + 1]], g)
        copy_place(reps, u, here[:places])
        if moves.bends.any():
            fit_slopes(fit, here, x, y, near, -1, moves.keeps)
        for i in range(near.size):
            if n * g[i] > 0.0:
                t = near[i]
                shift(fit, here, x[t], y[t], moves.keeps, moves.bends, z)
                lead_from(settings, store, 0, u, a, x[t, :places], y[t], z, n * g[i] / total)
    return reps.number[KNOWN]


def with_own_steps(settings, store, log, moves):
    """The store with the transitions of the rule above; it has none yet."""
    known, places = int(store.reps.number[KNOWN]), len(moves.keeps)
    x, y, actions = coordinates(settings, log, moves)
    alive, K = store.N[0, :, : settings.actions] - store.ended[0, :, : settings.actions], settings.action_weights
    if len(K):
        alive = alive @ K[0, :, : settings.actions]
    fit, scratch = new_fit(MOST, x.shape[1], places), (np.zeros(x.shape[1]), np.zeros(MOST), np.zeros(places))
    points = store.reps.points[:known, :, 0]
    for a, mine, near in near_samples(points, x, actions, log, moves.action_places):
        start, index, done = np.cumsum([0, *map(len, near)]), mine[np.concatenate(near)], 0
        scratch[0][places:] = moves.action_places[a]
        related = K[0, actions[index], a] if len(K) else np.ones(len(index))
        while done < known:
            store = store._replace(transitions=grow_transitions(store.transitions, known))
            parts = hand_over(settings), hand_over(store), moves
            done = int(count_own_steps(*parts, alive, a, done, x, y, start, index, related, fit, scratch))
    return store


def with_slopes(settings, log, keeps, action_places):
    """The `Displacement` with slopes in those coordinates that they predict better."""
    moves = Displacement(keeps, np.zeros(len(keeps)), action_places)
    x, y, actions = coordinates(settings, log, moves)
    probes = np.random.default_rng(len(x)).permutation(len(x))[:PROBES]  # the same whenever the data are
    probes = probes[log.labels[TERMINATED, probes] == 0]
    errors, fit = np.zeros((2, len(keeps))), new_fit(MOST, x.shape[1], len(keeps))
    for a in np.unique(actions[probes]):
        ours = probes[actions[probes] == a]
        _, mine, near = next(near_samples(x[ours, : len(keeps)], x, actions, log, action_places, (a,)))
        start, index = np.cumsum([0, *map(len, near)]), mine[np.concatenate(near)]
        predict_probes(fit, x, y, ours, start, index, keeps, errors)
    return moves._replace(bends=np.where(errors[1] < BETTER * errors[0], 1.0, 0.0))


# ------------------------------------------------------------------------------------------------------- samples nearby


def coordinates(settings, log, moves):
    """(n, wide) embedded states of all transitions and related actions, (n, places) next states, (n,) actions."""
    n, places = int(log.number[LOGGED]), len(moves.keeps)
    x, y, actions = np.zeros((n, places)), np.zeros((n, places)), log.labels[ACTION, :n]
    place_logged(hand_over(settings), hand_over(log), x, y)
    return np.hstack([x, moves.action_places[actions]]), y, actions


def nearest_of(tree, points):
    """For each of `points` (n, wide) the numbers of the NEAREST states in a tree, and of those as near as the last.

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


def near_samples(points, x, actions, log, action_places, which=None):
    """For each action: its number, the numbers of some samples, and which of these are near each of `points`.

    `x` (n, wide) are states, followed by related actions as coordinates; `points` (m, places) are states. `which` are
    the actions, all if it is None.
    """
    from scipy.spatial import KDTree  # takes long to import

    going, which = log.labels[TERMINATED, : len(x)] == 0, range(len(action_places)) if which is None else which
    tree, mine = None, np.flatnonzero(going)
    for a in which:
        if not action_places.shape[1]:
            tree, mine = None, np.flatnonzero((actions == a) & going)
        if mine.size:
            tree = KDTree(x[mine]) if tree is None else tree
            yield a, mine, nearest_of(tree, np.hstack([points, np.tile(action_places[a], (len(points), 1))]))
