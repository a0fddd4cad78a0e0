"""UCBVI on a grid (Azar, Osband and Munos 2017): optimistic planning on the counts of transitions between cells.

Backwards in h, with V_H = 0, at every cell x visited so far

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a)),   V_h(x) = min(cap_h, max_a Q_h(x, a))

A pair never tried has Q_h = max(cap_h, B_h(0)), and a cell never visited V_h = cap_h (see `core.optimism` for caps and
bonuses). The plan is made in `begin_episode` from all data before it ("episode"), also after each transition ("step"),
or only when the visits of the pair just observed have reached twice what they were in the last plan ("doubling"; so on
a pair's first visit). Choices and read-outs, counts included, are those of the last plan.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.algorithms.interface import (
    begin_episode,
    choose,
    end_episode,
    grow,
    has_room,
    largest,
    observe,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
)
from kernelrl.core.compile import inner
from kernelrl.core.counts import (
    VISITS,
    Counts,
    add_transition,
    blocks_left,
    grow_counts,
    new_counts,
    pair_of,
    target,
)
from kernelrl.core.grid import Grid, cell_of
from kernelrl.core.optimism import Optimism, bonus_at

__all__ = ["CountSettings", "GridUCBVI", "new_ucbvi", "untried"]

EACH_EPISODE, EACH_STEP, DOUBLING = range(3)


class CountSettings(NamedTuple):
    """The hyper-parameters of the algorithms that count; made by their `new_…` only."""

    horizon: int  # H
    actions: int  # A
    stationary: bool
    replan: int
    grid: Grid
    optimism: Optimism


class GridUCBVI(NamedTuple):
    """The state of UCBVI."""

    settings: CountSettings
    counts: Counts
    stream: np.ndarray  # (4,) the agent's own random stream
    Q: np.ndarray  # (H, X, A)
    V: np.ndarray  # (H+1, X)
    N: np.ndarray  # (pools, X, A) visits in the last plan
    plans: np.ndarray  # (1,) number of plans


def untried(optimism):
    """Q_h of a pair never tried, (H,)."""
    return np.maximum(optimism.cap[:-1], np.minimum(optimism.limit, optimism.root + optimism.share))


def new_ucbvi(horizon, actions, stationary, replan, grid, optimism, stream):
    """The state before any data."""
    settings = CountSettings(int(horizon), int(actions), bool(stationary), int(replan), grid, optimism)
    X, pools = grid.cells, 1 if stationary else horizon
    Q = np.empty((horizon, X, actions))
    Q[:] = untried(optimism)[:, None, None]
    V = np.repeat(optimism.cap[:, None], X, axis=1)
    return GridUCBVI(
        settings, new_counts(pools, X, actions, 4 * horizon), stream, Q, V, np.zeros((pools, X, actions)),
        np.zeros(1, np.int64),
    )  # fmt: skip


@has_room.implement(GridUCBVI)
def has_room_ucbvi(model):
    return blocks_left(model.counts) >= model.settings.horizon


@grow.implement_plain(GridUCBVI)
def grow_ucbvi(model):
    return model._replace(counts=grow_counts(model.counts))


@inner
def pool_of(settings, h):
    """The pool of data that step `h` uses."""
    return 0 if settings.stationary else h


@inner
def plan_step(counts, optimism, actions, pool, h, Q, V, following):
    """Q_h into Q (X, A) and V_h into V (X,) from V_{h+1}, `following` (X,), at the cells visited."""
    cap = optimism.cap[h]
    for i in range(counts.visited[pool]):
        x = np.int64(counts.cells[pool, i])
        p = pair_of(counts, actions, pool, x, 0)
        best = 0.0
        for a in range(actions):
            q = target(counts, optimism, p + a, h, following)
            Q[x, a] = q
            best = max(best, q)
        V[x] = min(cap, best)


@inner
def plan(model):
    """Plan on all data."""
    settings, counts = model.settings, model.counts
    for h in range(settings.horizon - 1, -1, -1):
        pool = pool_of(settings, h)
        plan_step(counts, settings.optimism, settings.actions, pool, h, model.Q[h], model.V[h], model.V[h + 1])
    for pool in range(model.N.shape[0]):
        for i in range(counts.visited[pool]):
            x = np.int64(counts.cells[pool, i])
            for a in range(settings.actions):
                model.N[pool, x, a] = counts.pairs[pair_of(counts, settings.actions, pool, x, a), VISITS]
    model.plans[0] += 1


@begin_episode.implement(GridUCBVI)
def begin_ucbvi(model):
    if model.settings.replan != DOUBLING or model.plans[0] == 0:
        plan(model)


@end_episode.implement(GridUCBVI)
def end_ucbvi(model):
    return None


@choose.implement(GridUCBVI)
def choose_ucbvi(model, state, h):
    return pick_largest(model.Q[h, cell_of(model.settings.grid, state)], model.stream)


@observe.implement(GridUCBVI)
def observe_ucbvi(model, state, action, reward, next_state, h, terminated):
    settings, counts = model.settings, model.counts
    x, y, pool = cell_of(settings.grid, state), cell_of(settings.grid, next_state), pool_of(settings, h)
    add_transition(counts, settings.actions, settings.optimism.root, pool, x, action, reward, y, terminated)
    if settings.replan == EACH_EPISODE:
        return
    n = counts.pairs[pair_of(counts, settings.actions, pool, x, action), VISITS]
    if settings.replan == EACH_STEP or n >= 2.0 * model.N[pool, x, action]:
        plan(model)


@read_q.implement(GridUCBVI)
def read_q_ucbvi(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.Q[h, x, a]


@read_values.implement(GridUCBVI)
def read_values_ucbvi(model, state, h):
    q = model.Q[h, cell_of(model.settings.grid, state)]
    return min(model.settings.optimism.cap[h], largest(q))


@read_counts.implement(GridUCBVI)
def read_counts_ucbvi(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.N[pool_of(model.settings, h), x, a]


@read_bonuses.implement(GridUCBVI)
def read_bonuses_ucbvi(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = bonus_at(model.settings.optimism, h, model.N[pool_of(model.settings, h), x, a])
