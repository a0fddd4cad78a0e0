"""Data at representatives from logged transitions: steps lead where they would from the representative itself.

When a transition arrives, it counts for the representative v of its state x, and its next state y is replaced by y's
representative. That is quick, but in a slow system such rounding, repeated at every step, becomes a motion of its own.
An agent that keeps its raw transitions counts all of them again now and then, and for the policy to deploy. A sample
counts for the nearest representative v, and the step is taken from v itself,

    z_j = y_j + k_j·(v_j - x_j)          where it leads; k_j is 1 where steps resemble each other by their displacement,
                                         and 0 where they do by the place they lead to
    n(v, a, u) += λ_u(z)                 shares λ of the representatives u around z, as values are read between them

If there is no representative around z, the transition leads to the representative of y.
"""

import numpy as np

from kernelrl.geometry.representatives import KNOWN, find, gather, put, square_to
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.stores.interface import pool
from kernelrl.stores.merged import STAYED, count_sample, new_counts, note_start
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TERMINATED, TO, has_next, place
from kernelrl.stores.transitions import blocks_left, count_transition, grow_transitions

__all__ = ["lead_from", "relanded", "with_representatives"]


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
def lead_from(settings, store, p, v, a, x, y, z, amount):
    """Count a step from `x` to `y` in pool `p` as one from representative `v`, from which it leads to `z`.

    `z` (places,) may be overwritten.
    """
    reps = store.reps
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
            for j in range(z.size):
                z[j] = y[j] + keeps[j] * (reps.points[v, j, 0] - x[j])
            lead_from(settings, store, pool(settings, h), v, a, x, y, z, 1.0)
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
