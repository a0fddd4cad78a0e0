"""Plans on the cells of a grid: UCBVI's own plan, and the deployed policy of all agents that keep counts.

At every cell x visited so far, with the counts of `kernelrl.stores.counts`,

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) (+ B_h(n(x, a))),   V_h(x) = min(R_h, max_a Q_h(x, a))

With a mask the maximum is over the actions that it allows at the centre of x; Q_h is computed for all, since other
states of the cell may allow them.

A pair never tried has Q_h = max(R_h, B_h(0)), and a cell never visited V_h = R_h; for the deployed policy both are 0.

A plan computes all visited cells, four actions at a time (`kernelrl.jit.windows`). What is the same for all steps is
computed first: 1/n, the scale of sums over successors, and the base, r̂ and the bonus's root/√n.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.geometry.grid import Grid, cell_of
from kernelrl.geometry.masks import first_allowed, largest_in_row, restricts
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field
from kernelrl.jit.handles import hand_over
from kernelrl.jit.policy_verb import deployed_action
from kernelrl.jit.windows import LANES, window_targets
from kernelrl.planning.backward import backward, find_targets, find_values
from kernelrl.planning.interface import Planned
from kernelrl.planning.sides import DEPLOYED, clip, explores
from kernelrl.stores.counts import (
    BONUS_ROOT,
    INVERSE,
    LENGTH,
    REWARD,
    START,
    VISITS,
    groups_of,
    list_of,
    with_pads,
)
from kernelrl.stores.interface import pool
from kernelrl.stores.units import after_end, mapped_sum

__all__ = ["Cells", "DeployedCells", "deployed_q", "new_cells", "untried", "write_constants"]

SCALE, BASE = range(2)  # of a list's constants
FIRST, END, PLACE, CELL = range(4)  # of a list's span: its rows, where its q is in Q_h, and its cell


class Cells(NamedTuple):
    """A plan on cells."""

    clock: Annotated[np.ndarray, Field("1", np.int64)]  # PLANS made
    Q: Annotated[np.ndarray, Field("H X Padded", infinite=True)]  # 0 where a group has fewer than LANES actions
    V: Annotated[np.ndarray, Field("H+1 X+4", least="Least", most="Most")]  # cells, termination, zeros
    N: Annotated[np.ndarray, Field("Lists 4", least=0)]  # visits in the last plan
    # What a plan reads again at each step, in the order in which the cells of a pool were first visited:
    constants: Annotated[np.ndarray, Field("Lists 2 4", scratch=True)]  # SCALE and BASE of each pair
    spans: Annotated[np.ndarray, Field("Lists 4", np.uint32, scratch=True)]  # FIRST, END, PLACE, CELL of each list
    before: Annotated[np.ndarray, Field("X Padded", scratch=True)]  # Q_h in the plan before, for `minimum`
    ready: Annotated[np.ndarray, Field("pools", np.bool_, scratch=True)]  # whether the above are those of the last plan


def new_cells(horizon, X, actions, pools, Q, V):
    """No plan yet: Q_h (H,) of a pair never tried and V_h (H+1,) of a cell never visited."""
    groups = groups_of(actions)
    q = np.zeros((horizon, X, groups * LANES))
    q[:, :, :actions] = Q[:, None, None]
    return Cells(
        np.zeros(1, np.int64), q, with_pads(np.repeat(V[:, None], X, axis=1)),
        np.zeros((pools * X * groups, LANES)), np.zeros((pools * X * groups, 2, LANES)),
        np.zeros((pools * X * groups, 4), np.uint32), np.zeros((X, groups * LANES)), np.zeros(pools, np.bool_),
    )  # fmt: skip


def untried(bonus):
    """Q_h (H,) of a pair never tried: B_h(0), but at least the cap."""
    return np.maximum(bonus.cap[:-1], bonus.root + bonus.share)


@inner(inline=True)
def write_constants(side, settings, counts, i, constants, c):
    """Write what is the same for all steps for the pairs of list `i` into constants[c]."""
    pairs, units = counts.pairs, settings.units
    for lane in range(LANES):
        inverse = pairs[i, INVERSE, lane]
        base = mapped_sum(units, pairs[i, REWARD, lane], pairs[i, VISITS, lane]) * inverse
        constants[c, SCALE, lane] = inverse
        constants[c, BASE, lane] = base + (pairs[i, BONUS_ROOT, lane] if explores(side) else 0.0)


@inner
def begin_pool(plan, settings, store, side, where):
    """Prepare the cells of a pool for planning: those with new data, or all of them in the first plan."""
    groups, ready = (settings.actions + LANES - 1) // LANES, plan.ready[where]
    plan.ready[where] = True
    for k in range(store.visited[where]):
        x = np.int64(store.cells[where, k])
        i, c = list_of(store, settings.actions, where, x), list_of(store, settings.actions, where, k)
        for g in range(groups):
            same = ready
            for lane in range(LANES):
                same &= plan.N[i + g, lane] == store.pairs[i + g, VISITS, lane]
            if not same:
                prepare_list(plan, settings, store, side, i + g, c + g, x, x * groups + g)


@inner
def prepare_list(plan, settings, store, side, i, c, x, place):
    """Write what a plan reads of list `i` at each step."""
    lists, spans = store.lists, plan.spans
    write_constants(side, settings, store, i, plan.constants, c)
    spans[c, FIRST], spans[c, END], spans[c, PLACE] = lists[START, i], lists[START, i] + lists[LENGTH, i], place
    spans[c, CELL] = x
    for lane in range(LANES):
        plan.N[i, lane] = store.pairs[i, VISITS, lane]


@find_targets.implement(Cells)
def cell_targets(plan, settings, store, side, h):
    where, minimum = pool(settings, h), settings.minimum and explores(side)
    if where == h or h == settings.horizon - 1:  # once per pool
        begin_pool(plan, settings, store, side, where)
    plan.V[h + 1, store.cells.shape[1]] = after_end(settings.units, settings.horizon, h)
    if minimum:
        note_before(plan, settings, store, h, where)
    sweep(plan, settings, store, side, h, where)
    if minimum:
        keep_lower(plan, settings, store, side, h, where)
    if restricts(settings.mask):
        restrict_values(plan, settings, store, side, h, where)


@inner
def sweep(plan, settings, store, side, h, where):
    """Q_h and V_h at all visited cells."""
    window, times, spans, constants = store.window, store.times, plan.spans, plan.constants
    V, q, values, R = plan.V[h + 1], plan.Q[h], plan.V[h], np.float64(settings.horizon - h)
    share, groups = settings.bonus.share[h] if explores(side) else 0.0, (settings.actions + LANES - 1) // LANES
    first = list_of(store, settings.actions, where, 0)
    best, left = 0.0, groups
    for entry in range(first, first + store.visited[where] * groups):  # one loop is faster than two, one in the other
        c = np.uint64(entry)  # an unsigned index needs no check for being negative: 10 % of the time
        start, end, place = np.int64(spans[c, FIRST]), np.int64(spans[c, END]), np.int64(spans[c, PLACE])
        found = window_targets(window, times, start, end, V, constants, c, share, q, place)
        best = found if found > best else best
        left -= 1
        if left == 0:
            values[spans[c, CELL]] = clip(side, best, R)
            best, left = 0.0, groups


@inner
def note_before(plan, settings, store, h, where):
    """Copy Q_h."""
    for k in range(store.visited[where]):
        x = np.int64(store.cells[where, k])
        for a in range(settings.actions):
            plan.before[x, a] = plan.Q[h, x, a]


@inner
def keep_lower(plan, settings, store, side, h, where):
    """Lower Q_h to what it was in the plan before, and V_h with it."""
    before, Q, R = plan.before, plan.Q[h], np.float64(settings.horizon - h)
    for k in range(store.visited[where]):
        x, best = np.int64(store.cells[where, k]), 0.0
        for a in range(settings.actions):
            Q[x, a] = min(before[x, a], Q[x, a])
            best = max(best, Q[x, a])
        plan.V[h, x] = clip(side, best, R)


@inner
def restrict_values(plan, settings, store, side, h, where):
    """V_h from the actions that are allowed."""
    for k in range(store.visited[where]):
        x = np.int64(store.cells[where, k])
        plan.V[h, x] = clip(side, largest_in_row(settings.allowed[x], plan.Q[h, x]), np.float64(settings.horizon - h))


@find_values.implement(Cells)
def cell_values(plan, settings, store, side, h):
    """V_h is found with Q_h."""


@compiled
def plan_cells(planned, side):
    """Plan all visited cells."""
    backward(planned.plan, planned.settings, planned.store, side)


class DeployedCells(NamedTuple):
    """Values at cells, whose policy is deployed."""

    grid: Grid
    Q: np.ndarray  # (H, X, A)
    mask: Any


@deployed_action.implement(DeployedCells)
def best_at_cell(rule, state, h, q):
    return first_allowed(rule.mask, state, rule.Q[h, cell_of(rule.grid, state)])


def deployed_q(settings, counts):
    """Q (H, X, A) of the deployed policy."""
    pools, X = counts.cells.shape
    nothing = np.zeros(settings.horizon + 1)
    plan = new_cells(settings.horizon, X, settings.actions, pools, nothing[:-1], nothing)
    plan_cells(hand_over(Planned(plan, settings, counts)), DEPLOYED)
    return np.ascontiguousarray(plan.Q[:, :, : settings.actions])
