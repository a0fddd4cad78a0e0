"""Plans on the cells of a grid: UCBVI's own, and the policy that agents deploy that count.

At every cell x visited so far, with the counts of `kernelrl.stores.counts`,

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) (+ B_h(n(x, a))),   V_h(x) = min(R_h, max_a Q_h(x, a))

A pair never tried has Q_h = max(R_h, B_h(0)), and a cell never visited V_h = R_h; for the policy to deploy both are 0.

Nothing is computed again that cannot have changed: at each step those cells are planned that are in a queue, since
their counts have changed or since V_{h+1} has at a cell that was reached from them. The result is that of planning all
cells, to the last bit.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field
from kernelrl.jit.handles import hand_over
from kernelrl.planning.backward import backward, find_targets, find_values
from kernelrl.planning.interface import Planned
from kernelrl.planning.sides import DEPLOYED, clip, explores
from kernelrl.stores.counts import BLOCK, INVERSE, VISITS, WIDTH, pair_of, pool_of, total_of
from kernelrl.stores.units import after_end

__all__ = ["Cells", "cell_row", "deployed_q", "enqueue", "new_cells", "queue_all", "untried"]


class Cells(NamedTuple):
    """A plan on cells."""

    clock: Annotated[np.ndarray, Field("1", np.int64)]  # PLANS made
    Q: Annotated[np.ndarray, Field("H X A", infinite=True)]
    V: Annotated[np.ndarray, Field("H+1 X", least="Least", most="Most")]
    N: Annotated[np.ndarray, Field("pools X A", least=0)]  # visits in the last plan
    # first block of the cells from which a cell was reached, or -1; the blocks are the store's
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
    """Q_h (H,) of a pair never tried. Nothing is known of it, so it is B_h(0), but no less than the cap."""
    return np.maximum(bonus.cap[:-1], bonus.root + bonus.share)


def queue_all(plan, counts):
    """Have the next plan compute every visited cell."""
    for h in range(len(plan.length)):
        pool = min(h, len(plan.N) - 1)
        cells = counts.cells[pool, : counts.visited[pool]]
        plan.queue[h, : cells.size] = cells
        plan.queued[h] = False
        plan.queued[h, cells] = True
        plan.length[h] = cells.size


@inner
def enqueue(queued, queue, n, x):
    """Put cell `x` into the queue of length `n` unless it is there; return the new length."""
    queue[n] = x  # without a branch, since that could not be foreseen
    n += not queued[x]
    queued[x] = True
    return n


@inner
def enqueue_list(counts, queued, queue, n, b):
    """The same with all cells in the blocks from `b` on."""
    while b >= 0:
        for j in range(BLOCK):
            n = enqueue(queued, queue, n, counts.successor[b, j])
        b = np.int64(counts.following[b])
    return n


@inner
def cell_row(side, settings, counts, p, h, V, q, minimum):
    """Q_h of the pairs p, p+1, … of one cell into `q` (A,), for V_{h+1} (X,); return the largest.

    With `minimum` the q of a pair that was tried only falls: what it is before the call bounds it.
    """
    bonus = settings.bonus
    share, after = bonus.share[h], after_end(settings.units, settings.horizon, h)
    best = 0.0
    for a in range(q.size):
        pair = counts.pairs[p + a]
        if pair[VISITS] == 0.0:
            q[a] = max(bonus.cap[h], bonus.root + share) if explores(side) else 0.0
        else:
            target = total_of(counts, settings.units, p + a, after, V) * pair[INVERSE]
            if explores(side):
                target += pair[WIDTH] + share * pair[INVERSE]
            q[a] = min(q[a], target) if minimum else target
        best = max(best, q[a])
    return best


@find_targets.implement(Cells)
def cell_targets(plan, settings, store, side, h):
    pool, minimum = pool_of(settings, h), settings.minimum and explores(side)
    for i in range(plan.length[h]):
        x = np.int64(plan.queue[h, i])
        p = pair_of(store, settings.actions, pool, x, 0)
        cell_row(side, settings, store, p, h, plan.V[h + 1], plan.Q[h, x], minimum)
        if pool == h:  # once for each pool
            for a in range(settings.actions):
                plan.N[pool, x, a] = store.pairs[p + a, VISITS]


@find_values.implement(Cells)
def cell_values(plan, settings, store, side, h):
    R = np.float64(settings.horizon - h)
    for i in range(plan.length[h]):
        x = np.int64(plan.queue[h, i])
        plan.queued[h, x] = False
        best = 0.0
        for a in range(settings.actions):
            best = max(best, plan.Q[h, x, a])
        value = clip(side, best, R)
        if value != plan.V[h, x]:
            plan.V[h, x] = value
            if h > 0:
                b, n = np.int64(plan.origins[pool_of(settings, h - 1), x]), plan.length[h - 1]
                plan.length[h - 1] = enqueue_list(store, plan.queued[h - 1], plan.queue[h - 1], n, b)
    plan.length[h] = 0


@compiled
def plan_cells(planned, side):
    """Plan what is in the queue."""
    backward(planned.plan, planned.settings, planned.store, side)


def deployed_q(settings, counts):
    """Q (H, X, A) of the policy to deploy."""
    pools, X = counts.cells.shape
    nothing = np.zeros(settings.horizon + 1)
    plan = new_cells(settings.horizon, X, settings.actions, pools, nothing[:-1], nothing)
    queue_all(plan, counts)
    plan_cells(hand_over(Planned(plan, settings, counts)), DEPLOYED)
    return plan.Q
