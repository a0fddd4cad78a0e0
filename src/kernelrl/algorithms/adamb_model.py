"""The data of AdaMB (`kernelrl.algorithms.adamb`): balls, the cells of states reached from them, and their values.

A transition is kept by the ball that it was seen in, as a count of the cell of the ball's own depth that it led to: one
of a list of `entries`. Children of a ball have the sums of its data, but not its entries: what an ancestor knows of
transitions, they know through it. The cells of a step are a tree (`kernelrl.geometry.dyadic`). Its leaves are S(P_h);
deeper cells are there if they were reached.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.algorithms.balls import (
    ENOUGH,
    VALUE,
    check_balls,
    children_of,
    implement_shared_verbs,
    scratch_arrays,
    shape_of_box,
)
from kernelrl.bonuses.counted import Counted
from kernelrl.episodes.verbs import grow, has_room
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.dyadic import (
    CellTrees,
    add_parts,
    cell_at,
    grown_trees,
    half_at,
    new_trees,
    parts_of,
    steps_of,
)
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, check_lists, checks, completes, require
from kernelrl.stores.units import Units

__all__ = [
    "ENDED", "EXTENDED", "KEPT", "LOWEST", "MEAN", "REWARD", "TOP", "AdaMBModel", "add_transition", "new_adamb",
    "split",
]  # fmt: skip

REWARD, ENDED = range(3, 5)  # of `balls`, besides those of `kernelrl.algorithms.balls`
KEPT, EXTENDED = range(2)  # of `values`
TOP, LOWEST, MEAN = range(3)  # of `work`


class AdaMBSettings(NamedTuple):
    """The hyper-parameters of AdaMB; made by `new_adamb` only."""

    horizon: int  # H
    actions: int  # A
    units: Units
    trees: int  # partitions of a step: one for each action, or one of the joint box
    axes: int  # of actions in the joint box, d_A; 0 for Discrete actions
    finest: int  # depth beyond which balls do not split
    low: np.ndarray  # (d,)
    inverse: np.ndarray  # (d,) 1/width of the box; 0 where it has none
    bonus: Counted
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)
    lipschitz: float  # L in the environment's units; -1 if there is none
    exponent: float  # γ


@implement_shared_verbs
class AdaMBModel(NamedTuple):
    """The state of AdaMB: trees of balls, trees of cells of states, and how often which cell was reached from a ball.

    All arrays of scratch but `total` and `work` can be told from the trees.
    """

    settings: AdaMBSettings
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # number of the first of the 2^d children, or -1; d is that of the joint box
    child: Annotated[np.ndarray, Field("balls", np.int32, index="balls", none=True, fill=-1)]
    # VALUE Q, VISITS, ENOUGH: visits at which it splits; of all visits, also inherited: sum of REWARDs, how many ENDED
    balls: Annotated[np.ndarray, Field("balls 5")]
    used: Annotated[np.ndarray, Field("1", np.int64, counts="balls")]
    cell: Annotated[np.ndarray, Field("balls", np.int32, scratch=True)]  # S(B)
    following: Annotated[np.ndarray, Field("balls", np.int32, scratch=True, fill=-1)]  # next ball of the same step
    last: Annotated[np.ndarray, Field("H", np.int64, scratch=True)]  # of each step
    deepest: Annotated[np.ndarray, Field("1", np.int64, scratch=True)]  # depth of the deepest ball
    total: Annotated[np.ndarray, Field("balls", scratch=True)]  # Σ Ṽ over the transitions of a ball's ancestors
    # transitions of each ball itself: lists of the cells reached
    first: Annotated[np.ndarray, Field("balls", np.int32, index="entries", none=True, fill=-1)]
    reached: Annotated[np.ndarray, Field("entries", np.int32, index="Cells")]
    times: Annotated[np.ndarray, Field("entries", least=0)]
    after: Annotated[np.ndarray, Field("entries", np.int32, index="entries", none=True, fill=-1)]
    entries: Annotated[np.ndarray, Field("1", np.int64, counts="entries")]
    states: CellTrees
    values: Annotated[np.ndarray, Field("Cells 2", most="Most")]  # KEPT V, EXTENDED Ṽ; below leaves those of the leaf
    work: Annotated[np.ndarray, Field("Cells 3", scratch=True)]  # of a sweep: TOP Q, LOWEST V inside, MEAN of Ṽ
    stale: Annotated[np.ndarray, Field("1", np.int64)]  # 1 if there are data that values do not know
    buffer: Annotated[np.ndarray, Field("2 d", np.int64, scratch=True)]  # digits of the state HERE and of the NEXT one
    scratch: Annotated[np.ndarray, Field("A", scratch=True)]  # Q of each action
    stack: Annotated[np.ndarray, Field("any 2", np.int64, scratch=True)]  # balls to be looked at: number and depth
    search: Annotated[np.ndarray, Field("any", np.int64, scratch=True)]  # cells to be looked at
    centre: Annotated[np.ndarray, Field("any", scratch=True)]  # of a cell, for a mask


def new_adamb(horizon, actions, axes, units, low, high, bonus, mask, lipschitz, exponent, stream):
    """The state before any data, for states in the box [low, high] (d,); Discrete actions have 0 `axes`."""
    trees, *box = shape_of_box(low, high, axes, actions)
    lipschitz = -1.0 if lipschitz is None else lipschitz
    settings = AdaMBSettings(horizon, actions, units, trees, axes, *box, bonus, mask, lipschitz, float(exponent))
    roots = horizon * trees
    room, few = roots + 4 * horizon * children_of(settings), 8 * horizon
    check_memory((room, 8))
    balls = np.zeros((room, 5))
    balls[:roots, VALUE] = np.repeat(bonus.cap[:-1], trees)
    balls[:roots, ENOUGH] = 1.0
    states = new_trees(horizon, low.size)
    values = np.zeros((states.child.size, 2))
    values[:horizon] = bonus.cap[:-1, None]
    none = np.full(room, -1, np.int32)
    model = AdaMBModel(
        settings, stream, none, balls, np.array([roots]), np.zeros(room, np.int32), none.copy(),
        np.zeros(horizon, np.int64), np.zeros(1, np.int64), np.zeros(room), none.copy(), np.zeros(few, np.int32),
        np.zeros(few), np.full(few, -1, np.int32), np.zeros(1, np.int64), states, values,
        np.zeros((len(values), 3)), np.zeros(1, np.int64), *scratch_arrays(settings),
        np.zeros(settings.finest * parts_of(states) + 1, np.int64), np.zeros(low.size),
    )  # fmt: skip
    return complete_adamb(model)


def cells_of_balls(model):
    """(used,) S(B) of each ball, or ValueError if a ball that was split has states that are not divided."""
    settings, states = model.settings, model.states
    used, children = int(model.used[0]), children_of(settings)
    cell = np.zeros(used, np.int64)
    cell[: settings.horizon * settings.trees] = np.repeat(np.arange(settings.horizon), settings.trees)
    for ball in np.flatnonzero(model.child[:used] >= 0):  # children have higher numbers than their parents
        first = int(model.child[ball])
        require(states.divided[cell[ball]], "states.divided", f"ball {ball} is split, and its states are not")
        cell[first : first + children] = states.child[cell[ball]] + (np.arange(children) >> settings.axes)
    return cell


@checks(AdaMBModel)
def check_adamb(where, model):
    """Balls form trees that go with the trees of cells; a transition is in one list of the step before its cell's."""
    check_balls(where, model, model.settings.exponent)
    cells_of_balls(model)
    used, n = int(model.used[0]), int(model.entries[0])
    check_lists(f"{where}after", model.first[:used], model.after[:n])
    require((model.balls[:used, ENDED] >= 0.0).all(), f"{where}balls", "a number of terminations is negative")


@completes(AdaMBModel)
def complete_adamb(model):
    """States of balls and lists of the balls of each step, from the trees."""
    settings, used = model.settings, int(model.used[0])
    model.cell[:used] = cells_of_balls(model)
    model.deepest[0] = model.states.depth[model.cell[:used]].max()
    roots = np.repeat(np.arange(settings.horizon), settings.trees)
    steps = steps_of(model.child, used, roots, children_of(settings))
    for h in range(settings.horizon):
        (own,) = np.nonzero(steps == h)
        model.following[own[:-1]] = own[1:]
        model.last[h] = own[-1]
    return model


@inner
def cells_needed(model):
    """How many cells one more episode may add: at each step down to the depth of a ball, and one that is divided."""
    return model.settings.horizon * (model.deepest[0] + 1) * parts_of(model.states)


@has_room.implement(AdaMBModel)
def has_room_adamb(model):
    H, states = model.settings.horizon, model.states
    balls = model.child.size - model.used[0] >= H * children_of(model.settings)
    cells = states.child.size - states.used[0] >= cells_needed(model)
    return balls and cells and model.times.size - model.entries[0] >= H


@grow.implement_plain(AdaMBModel)
def grow_adamb(model):
    room, entries, H = more(model.child.size), more(model.times.size), model.settings.horizon
    states = grown_trees(model.states, H * (int(model.deepest[0]) + 1) * parts_of(model.states))
    return model._replace(
        child=lengthen(model.child, room, 0, -1), balls=lengthen(model.balls, room, 0),
        cell=lengthen(model.cell, room, 0), following=lengthen(model.following, room, 0, -1),
        total=lengthen(model.total, room, 0), first=lengthen(model.first, room, 0, -1),
        reached=lengthen(model.reached, entries, 0), times=lengthen(model.times, entries, 0),
        after=lengthen(model.after, entries, 0, -1), states=states,
        values=lengthen(model.values, states.child.size, 0), work=lengthen(model.work, states.child.size, 0),
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- taking in data


@inner
def add_cells(model, h, cell):
    """Give a cell of step `h` its parts, with the same values; return the number of the first."""
    first = add_parts(model.states, h, cell)
    for i in range(first, first + parts_of(model.states)):
        model.values[i, KEPT], model.values[i, EXTENDED] = model.values[cell, KEPT], model.values[cell, EXTENDED]
    return first


@inner
def add_transition(model, h, ball, place):
    """Count a transition of a ball of step `h` to a located state, in the cell of the ball's depth that contains it."""
    depth, d = model.states.depth[model.cell[ball]], model.settings.low.size
    cell, k = cell_at(model.states, h + 1, place, depth)
    while k < depth:
        cell = add_cells(model, h + 1, cell) + half_at(place, d, k)
        k += 1
    e = np.int64(model.first[ball])
    while e >= 0 and model.reached[e] != cell:
        e = np.int64(model.after[e])
    if e < 0:
        e = model.entries[0]
        model.entries[0] = e + 1
        model.reached[e], model.times[e], model.after[e] = cell, 0.0, model.first[ball]
        model.first[ball] = e
    model.times[e] += 1.0


@inner
def split(model, h, ball):
    """Split a ball of step `h`, and divide its states; its children inherit all its data."""
    settings, states, balls = model.settings, model.states, model.balls
    cell, first, children = np.int64(model.cell[ball]), model.used[0], children_of(settings)
    part = np.int64(states.child[cell])
    if part < 0:
        part = add_cells(model, h, cell)
    states.divided[cell] = True
    enough = 2.0 ** (settings.exponent * states.depth[part])  # not a product, which rounds more than once
    for i in range(children):
        new = first + i
        for j in range(balls.shape[1]):
            balls[new, j] = balls[ball, j]
        balls[new, ENOUGH] = enough
        model.cell[new] = part + (i >> settings.axes)
        model.following[model.last[h]] = new
        model.last[h] = new
    model.child[ball] = first
    model.used[0] = first + children
    model.deepest[0] = max(model.deepest[0], states.depth[part])
