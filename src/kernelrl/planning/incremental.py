"""Planning of exact Kernel-UCBVI: taking in new samples and carrying their consequences backwards in h.

`kernelrl.algorithms.kernel_ucbvi` explains the idea; the entry is `plan`.
"""

import math

import numpy as np

from kernelrl.bonuses.smoothed import JOINT, count_sample
from kernelrl.geometry.buckets import WIDTH, add_point, all_chunks, found, point_at, size_of
from kernelrl.geometry.cones import Claims, claim, forget_slack, lowest_cone, rise, search, settle, sink
from kernelrl.jit.compile import inner
from kernelrl.stores.estimates import (
    add_change,
    add_spread,
    add_weights,
    renew_joint_targets,
    renew_targets,
    row_sums_at,
    spread_at,
)
from kernelrl.stores.samples import ACTION, STEP, TERMINATED, action_list, has_next, lone_target, pool, row
from kernelrl.stores.units import mapped

__all__ = ["plan"]

STILL = 2e-8  # a value that has moved by less is not passed on; 2·H·STILL is below 1e-6 for the usual horizons
FAINT = 1e-15  # a change of T by less is not made


# ---------------------------------------------------------------------------------------------------- adding samples


@inner
def entry_list(settings, h, a):
    """The list of entries of step `h` and action `a`, and their first index in C, T and Q."""
    if settings.interpolate:
        return action_list(settings, h, a), 0
    return pool(settings, h), a


@inner
def fill_entry(model, e, u, h, a, sums):
    """C and T of a new entry at slot `e` for the pair (u, a) of step `h`, from the samples in S; `sums` is scratch."""
    _, k = entry_list(model.settings, h, a)
    C = row_sums_at(model.settings, model.S, action_list(model.settings, h, a), u, model.G, sums)
    model.C[k, e // WIDTH, e % WIDTH] = C
    if model.settings.bonus >= JOINT:
        D, W2 = spread_at(model.settings, model.S, action_list(model.settings, h, a), u)
        model.spread[0, k, e // WIDTH, e % WIDTH] = D
        model.spread[1, k, e // WIDTH, e % WIDTH] = W2
    for r in range(sums.size):
        model.T[k, r, e // WIDTH, e % WIDTH] = sums[r]
        model.touched[r, e // WIDTH] = True


@inner
def claims_of(model, r, a):
    """Cones and points of row `r` and action `a`."""
    return Claims(
        model.height[r], model.slack[r], model.first[r], model.M[a, r], model.owner[a, r], model.links[a, r]
    )  # fmt: skip


@inner
def add_next_state(model, v, h, sums):
    """Make `v`, reached from step `h`, a point of Y with values at the cap, and return its slot."""
    settings, H = model.settings, model.settings.horizon
    y = add_point(model.Y, pool(settings, h + 1), v)
    chunk, place = y // WIDTH, y % WIDTH
    first, last = (1, H - 1) if settings.stationary else (h + 1, h + 1)
    for level in range(first, last + 1):
        r, R = row(settings, level), np.float64(H - level)
        model.V[r, chunk, place] = R
        model.P[r, chunk, place] = R
        model.fresh[r, chunk] = True
        if settings.interpolate:
            for a in range(settings.actions):
                which, L = action_list(settings, level, a), settings.lipschitz[level]
                settle(model.S, settings.space, which, v, y, L, R, claims_of(model, r, a))
    if not settings.interpolate:
        for a in range(settings.actions):
            fill_entry(model, y, v, h + 1, a, sums)
    return y


@inner
def arrival(model, u, h):
    """The slot in Y of the last sample's next state, if that is where `u` of step `h` is, as it usually is; else -1."""
    y = model.planned[2]
    if y < 0 or model.planned[3] != h:
        return -1
    for j in range(u.size):
        if model.Y.points[y // WIDTH, j, y % WIDTH] != u[j]:
            return -1
    return y


@inner
def add_sample(model, t):
    """Take sample number `t` into the plan's data."""
    settings, samples, H = model.settings, model.samples, model.settings.horizon
    h, a = samples.labels[STEP, t], samples.labels[ACTION, t]
    u, v = samples.states[0, t], samples.states[1, t]
    terminated = samples.labels[TERMINATED, t] != 0
    alive = has_next(settings, h, terminated)
    rows = model.G.shape[0]
    sums, targets = model.scratch[3, :rows], model.scratch[4, :rows]
    before = arrival(model, u, h)
    y = add_next_state(model, v, h, sums) if alive else -1
    model.planned[2], model.planned[3] = y, h + 1
    s = add_point(model.S, action_list(settings, h, a), u)
    model.number[s // WIDTH, s % WIDTH] = t
    model.tip[s // WIDTH, s % WIDTH] = before
    if alive:
        model.sample[y // WIDTH, y % WIDTH] = s
    first, last = (0, H - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        r = row(settings, level)
        targets[r] = lone_target(settings, level, samples.reward[t], terminated)
        if alive:
            targets[r] += np.float64(H - level - 1)
        model.G[r, s // WIDTH, s % WIDTH] = targets[r]
        if settings.interpolate:
            model.height[r, s // WIDTH, s % WIDTH] = np.float64(H - level)
    E = model.S if settings.interpolate else model.Y
    which, k = entry_list(settings, h, a)
    add_weights(settings, E, which, u, targets, model.C[k], model.T[k], model.touched)
    if settings.bonus >= JOINT:
        add_spread(settings, E, which, u, model.spread[0, k], model.spread[1, k])
    if settings.interpolate:
        fill_entry(model, s, u, h, a, sums)
    if count_sample(settings, h):
        touch_all(model.touched)


@inner
def touch_all(touched):
    """The bonus of every entry has changed."""
    for r in range(touched.shape[0]):
        for chunk in range(touched.shape[1]):
            touched[r, chunk] = True


# ------------------------------------------------------------------------------------------------------ going back in h


@inner
def moved(Y, which, V, P, fresh, queue):
    """Put into `queue` the slots of list `which` where `V` and `P` (chunks, WIDTH) differ; return how many."""
    count = 0
    for i in range(all_chunks(Y, which)):
        chunk = found(Y, i)
        if fresh[chunk]:
            fresh[chunk] = False
            for place in range(size_of(Y, chunk)):
                if abs(V[chunk, place] - P[chunk, place]) > STILL:
                    queue[count] = chunk * WIDTH + place
                    count += 1
    return count


@inner
def pass_on(model, h, count):
    """Carry the changes of V_{h+1} at the `count` next states in the first queue into T of the entries of step `h`.

    A change goes to the entries near the sample that the next state belongs to. Changes of samples at one place, such
    as a start state, are carried together: `changes` holds them by action until a sample elsewhere comes up.
    """
    settings, r = model.settings, row(model.settings, h)
    V, P = model.V[row(settings, h + 1)], model.P[row(settings, h + 1)]
    changes = model.scratch[3, : settings.actions]
    for a in range(settings.actions):
        changes[a] = 0.0
    place = -1  # number of the sample whose place `changes` is for
    for i in range(count):
        y = model.queues[0, i]
        s = model.sample[y // WIDTH, y % WIDTH]
        t = model.number[s // WIDTH, s % WIDTH]
        if place >= 0 and not same_place(model.samples, t, place):
            carry(model, place, h, changes)
        value = V[y // WIDTH, y % WIDTH]
        changes[model.samples.labels[ACTION, t]] += value - P[y // WIDTH, y % WIDTH]
        P[y // WIDTH, y % WIDTH] = value
        model.G[r, s // WIDTH, s % WIDTH] = mapped(settings.units, model.samples.reward[t]) + value
        place = t
    if place >= 0:
        carry(model, place, h, changes)


@inner
def same_place(samples, t, other):
    """Whether two samples have the same state."""
    for j in range(samples.states.shape[2]):
        if samples.states[0, t, j] != samples.states[0, other, j]:
            return False
    return True


@inner
def carry(model, t, h, changes):
    """Add each action's change (A,) of G at the place of sample `t` to T of the entries of step `h`, and reset it."""
    settings, r = model.settings, row(model.settings, h)
    E = model.S if settings.interpolate else model.Y
    for a in range(settings.actions):
        change = changes[a]
        changes[a] = 0.0
        if abs(change) <= FAINT:
            continue
        radius = settings.reach
        if not settings.compact:
            z = (2.0 * math.log(abs(change) / FAINT)) ** (1.0 / settings.power)
            radius = min(radius, z / math.sqrt(settings.inverse_sigma2))
        which, k = entry_list(settings, h, a)
        add_change(settings, E, which, model.samples.states[0, t], change, radius, model.T[k, r], model.touched[r])


@inner
def best_of_actions(Y, which, R, Q, r, V, fresh):
    """V = min(R, max_a Q_a) in fresh chunks of list `which`; `Q` (A, rows, chunks, WIDTH), `V` (chunks, WIDTH)."""
    for i in range(all_chunks(Y, which)):
        chunk = found(Y, i)
        if fresh[chunk]:
            for place in range(size_of(Y, chunk)):
                best = Q[0, r, chunk, place]
                for a in range(1, Q.shape[0]):
                    best = max(best, Q[a, r, chunk, place])
                V[chunk, place] = min(R, best)


@inner
def moved_cones(S, which, R, Q, height, touched, queue):
    """Put into `queue` the slots of list `which` where min(R, Q̃) is not `height`; return how many."""
    count = 0
    for i in range(all_chunks(S, which)):
        chunk = found(S, i)
        if touched[chunk]:
            for place in range(size_of(S, chunk)):
                if abs(min(R, Q[chunk, place]) - height[chunk, place]) > STILL:
                    queue[count] = chunk * WIDTH + place
                    count += 1
    return count


@inner
def move_cones(model, h, a):
    """Bring the cones of (h, a) up to date with Q̃."""
    settings, S, Y, queues, r = model.settings, model.S, model.Y, model.queues, row(model.settings, h)
    R, L, space = np.float64(settings.horizon - h), settings.lipschitz[h], settings.space
    which, there, claims = action_list(settings, h, a), pool(settings, h), claims_of(model, r, a)
    Q, fresh, u = model.Q[0, r], model.fresh[r], model.scratch[0, : model.samples.states.shape[2]]
    count = moved_cones(S, which, R, Q, claims.height, model.touched[r], queues[0])
    orphans = 0
    for i in range(count):
        s = queues[0, i]
        height = min(R, Q[s // WIDTH, s % WIDTH])
        if height < claims.height[s // WIDTH, s % WIDTH]:
            sink(claims, s, height, fresh)
        else:
            orphans = rise(claims, s, height, R, queues[1], orphans)
    if orphans > 0:
        forget_slack(S, which, claims.slack)
    for i in range(count):
        s = queues[0, i]
        height, y = claims.height[s // WIDTH, s % WIDTH], model.tip[s // WIDTH, s % WIDTH]
        # A cone that is not the lowest at its own tip is nowhere the lowest, by the triangle inequality.
        beaten = y >= 0 and claims.owner[y // WIDTH, y % WIDTH] != s and claims.M[y // WIDTH, y % WIDTH] <= height
        if height < R and claims.slack[s // WIDTH, s % WIDTH] < 0.0 and not beaten:
            point_at(S, s, u)
            search(Y, space, there, u, s, L, R, claims, fresh)
    for i in range(orphans):
        y = queues[1, i]
        point_at(Y, y, u)
        best, slot = lowest_cone(S, space, which, u, claims.height, L, R)
        claim(claims, y, slot, best)
        fresh[y // WIDTH] = True


@inner
def copy_flags(Y, which, touched, fresh):
    """Without interpolation V follows Q̃ of the same point."""
    for i in range(all_chunks(Y, which)):
        fresh[found(Y, i)] |= touched[found(Y, i)]


@inner
def clear(E, which, touched):
    """Take the flags of list `which` back."""
    for i in range(all_chunks(E, which)):
        touched[found(E, i)] = False


@inner
def go_back(model, h):
    """Bring Q̃_h and V_h up to date with V_{h+1} and with C and T."""
    settings, A = model.settings, model.settings.actions
    r, R = row(settings, h), np.float64(settings.horizon - h)
    if h + 1 < settings.horizon:
        above = row(settings, h + 1)
        count = moved(
            model.Y, pool(settings, h + 1), model.V[above], model.P[above], model.fresh[above], model.queues[0]
        )
        pass_on(model, h, count)
    E = model.S if settings.interpolate else model.Y
    for a in range(A):
        which, k = entry_list(settings, h, a)
        if settings.bonus >= JOINT:
            renew_joint_targets(
                settings, E, which, h, model.C[k], model.T[k, r], model.spread[0, k], model.spread[1, k],
                model.Q[k, r], model.lowest[r], model.touched[r],
            )  # fmt: skip
            continue
        renew_targets(
            settings, E, which, h, model.C[k], model.T[k, r], model.Q[k, r], model.lowest[r], model.touched[r]
        )  # fmt: skip
    if h > 0 and settings.interpolate:
        for a in range(A):
            move_cones(model, h, a)
        best_of_actions(model.Y, pool(settings, h), R, model.M, r, model.V[r], model.fresh[r])
    elif h > 0:
        copy_flags(model.Y, pool(settings, h), model.touched[r], model.fresh[r])
        best_of_actions(model.Y, pool(settings, h), R, model.Q, r, model.V[r], model.fresh[r])
    for a in range(A):
        which, _ = entry_list(settings, h, a)
        clear(E, which, model.touched[r])


@inner
def plan(model):
    """Bring everything up to date with all samples."""
    for t in range(model.planned[0], model.samples.number[0]):
        add_sample(model, t)
    model.planned[0] = model.samples.number[0]
    model.planned[1] += 1
    for h in range(model.settings.horizon - 1, -1, -1):
        go_back(model, h)
