"""Plans on the cells of a grid: UCBVI's own plan, and the deployed policy of all agents that keep counts.

At every cell x visited so far, with the counts of `kernelrl.stores.counts`,

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) (+ B_h(n(x, a))),   V_h(x) = min(R_h, max_a Q_h(x, a))

A pair never tried has Q_h = max(R_h, B_h(0)), and a cell never visited V_h = R_h; for the deployed policy both are 0.

Only what may have changed is computed again: at each step the cells in a queue, because their counts have changed, or
V_{h+1} at a cell that was reached from them. The result equals that of planning all cells, to the last bit.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field
from kernelrl.jit.handles import hand_over
from kernelrl.planning.backward import backward, find_targets, find_values
from kernelrl.planning.interface import Planned
from kernelrl.planning.sides import DEPLOYED, clip, explores
from kernelrl.stores.counts import BLOCK, BONUS_ROOT, INVERSE, VISITS, Counts, pair_of, total_of
from kernelrl.stores.interface import pool
from kernelrl.stores.units import Units, after_end

__all__ = ["Cells", "cell_row", "deployed_q", "enqueue", "level_of", "new_cells", "queue_all", "untried"]


class Cells(NamedTuple):
    """A plan on cells."""

    clock: Annotated[np.ndarray, Field("1", np.int64)]  # PLANS made
    Q: Annotated[np.ndarray, Field("H X A", infinite=True)]
    V: Annotated[np.ndarray, Field("H+1 X", least="Least", most="Most")]
    N: Annotated[np.ndarray, Field("pools X A", least=0)]  # visits in the last plan
    # first block of the cells from which a cell was reached, or -1; the blocks belong to the store
    origins: Annotated[np.ndarray, Field("pools X", np.int32, index="Blocks", none=True)]
    queued: Annotated[np.ndarray, Field("H X", np.bool_)]  # whether a cell is in the queue
    queue: Annotated[np.ndarray, Field("H X+1", np.uint32, index="X")]  # cells to plan; the last is scratch
    length: Annotated[np.ndarray, Field("H", np.int64, most="X")]  # how many


def new_cells(horizon, X, actions, pools, Q, V):
    """No plan yet: Q_h (H,) of a pair never tried and V_h (H+1,) of a cell never visited."""
    return Cells(
        np.zeros(1, np.int64), np.full((horizon, X, actions), Q[:, None, None]), np.repeat(V[:, None], X, axis=1),
        np.zeros((pools, X, actions)), np.full((pools, X), -1, np.int32),
        np.zeros((horizon, X), np.bool_), np.zeros((horizon, X + 1), np.uint32), np.zeros(horizon, np.int64),
    )  # fmt: skip


def untried(bonus):
    """Q_h (H,) of a pair never tried: B_h(0), but at least the cap."""
    return np.maximum(bonus.cap[:-1], bonus.root + bonus.share)


def queue_all(plan, counts):
    """Queue every visited cell for the next plan."""
    for h in range(len(plan.length)):
        where = min(h, len(plan.N) - 1)
        cells = counts.cells[where, : counts.visited[where]]
        plan.queue[h, : cells.size] = cells
        plan.queued[h] = False
        plan.queued[h, cells] = True
        plan.length[h] = cells.size


@inner
def enqueue(queued, queue, n, x):
    """Put cell `x` into the queue of length `n` unless it is there; return the new length."""
    queue[n] = x  # without a branch, which would be hard to predict
    n += not queued[x]
    queued[x] = True
    return n


@inner
def enqueue_list(counts, queued, queue, n, b):
    """`enqueue` for all cells in the blocks from `b` on."""
    successor, following = counts.successor, counts.following
    while b >= 0:
        for j in range(BLOCK):
            n = enqueue(queued, queue, n, successor[b, j])
        b = np.int64(following[b])
    return n


class Level(NamedTuple):
    """What is the same for all cells of a step, and the data, as values: loops need not look them up again."""

    counts: Counts
    units: Units
    after: float  # value of a termination
    share: float  # factor of 1/n in the bonus
    never: float  # Q of a pair never tried


@inner
def level_of(settings, store, h):
    """What `cell_row` needs for step `h`."""
    counts = Counts(
        store.pairs, store.first, store.successor, store.times, store.following, store.number, store.cells,
        store.visited,
    )  # fmt: skip
    units, bonus = settings.units, settings.bonus
    return Level(
        counts, Units(units.low, units.factor, units.nothing, units.empty), after_end(units, settings.horizon, h),
        bonus.share[h], max(bonus.cap[h], bonus.root + bonus.share[h]),
    )  # fmt: skip


@inner
def cell_row(side, level, p, V, q, minimum):
    """Q_h of the pairs p, p+1, … of one cell into `q` (A,), for V_{h+1} (X,); return the largest.

    With `minimum` the q of a pair that was tried cannot rise: its value before the call is an upper bound.
    """
    best = 0.0
    for a in range(q.size):
        pair = level.counts.pairs[p + a]
        if pair[VISITS] == 0.0:
            q[a] = level.never if explores(side) else 0.0
        else:
            target = total_of(level.counts, level.units, p + a, level.after, V) * pair[INVERSE]
            if explores(side):
                target += pair[BONUS_ROOT] + level.share * pair[INVERSE]
            q[a] = min(q[a], target) if minimum else target
        best = max(best, q[a])
    return best


@find_targets.implement(Cells)
def cell_targets(plan, settings, store, side, h):
    where, minimum, actions = pool(settings, h), settings.minimum and explores(side), settings.actions
    queue, V, Q, N, pairs = plan.queue[h], plan.V[h + 1], plan.Q[h], plan.N[where], store.pairs
    level = level_of(settings, store, h)
    for i in range(plan.length[h]):
        x = np.int64(queue[i])
        p = pair_of(store, actions, where, x, 0)
        cell_row(side, level, p, V, Q[x], minimum)
        if where == h:  # once per pool
            for a in range(actions):
                N[x, a] = pairs[p + a, VISITS]


@find_values.implement(Cells)
def cell_values(plan, settings, store, side, h):
    R, actions, before = np.float64(settings.horizon - h), settings.actions, max(h - 1, 0)
    queue, queued, Q, V = plan.queue[h], plan.queued[h], plan.Q[h], plan.V[h]
    origins, n = plan.origins[pool(settings, before)], plan.length[before]
    for i in range(plan.length[h]):
        x = np.int64(queue[i])
        queued[x] = False
        best = 0.0
        for a in range(actions):
            best = max(best, Q[x, a])
        value = clip(side, best, R)
        if value != V[x]:
            V[x] = value
            if h > 0:
                n = enqueue_list(store, plan.queued[before], plan.queue[before], n, np.int64(origins[x]))
    plan.length[before] = n
    plan.length[h] = 0


@compiled
def plan_cells(planned, side):
    """Plan the cells in the queue."""
    backward(planned.plan, planned.settings, planned.store, side)


def deployed_q(settings, counts):
    """Q (H, X, A) of the deployed policy."""
    pools, X = counts.cells.shape
    nothing = np.zeros(settings.horizon + 1)
    plan = new_cells(settings.horizon, X, settings.actions, pools, nothing[:-1], nothing)
    queue_all(plan, counts)
    plan_cells(hand_over(Planned(plan, settings, counts)), DEPLOYED)
    return plan.Q
