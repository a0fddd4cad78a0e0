"""Greedy-UCBVI on a grid (Efroni et al. 2019): UCBVI with one step of planning at each visited cell.

With V_h = cap_h at first, at the cell x of each visited state of step h

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a))              from the data before this transition
    a          = argmax Q_h(x, ·)
    V_h(x)     ← min(V_h(x), max_a Q_h(x, a))

which is real-time dynamic programming. A pair never tried has Q_h = max(cap_h, B_h(0)). Read-outs are computed from the
current data; `values` is the stored V_h. With a mask V_h(x) is the maximum over the actions allowed at the centre of x.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import CountingAgent, GridAgent
from kernelrl.arguments import flag
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    choose,
    grow,
    has_room,
    observe,
    pick,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.geometry.grid import cell_of
from kernelrl.geometry.masks import largest_in_row, restricts
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field
from kernelrl.jit.windows import LANES, window_targets
from kernelrl.planning.cells import write_constants
from kernelrl.planning.sides import UPPER
from kernelrl.stores.counts import (
    LENGTH,
    START,
    VISITS,
    Counts,
    CountSettings,
    groups_of,
    lane_of,
    list_of,
    new_counts,
    with_pads,
)
from kernelrl.stores.interface import add, grown_for, has_room_for, pool, samples_in
from kernelrl.stores.units import after_end

__all__ = ["GreedyUCBVI", "GreedyUCBVIModel"]

CELL, STEP, SEEN = range(3)  # of `memo`


class GreedyUCBVIModel(NamedTuple):
    """The state of Greedy-UCBVI."""

    settings: CountSettings
    store: Counts
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    V: Annotated[np.ndarray, Field("H+1 X+4", least="Least", most="Most")]  # cells, termination, zeros
    q: Annotated[np.ndarray, Field("Padded", scratch=True)]  # Q of each action
    constants: Annotated[np.ndarray, Field("1 2 4", scratch=True)]  # of a list (see `kernelrl.planning.cells`)
    # CELL and STEP of the last choice, number of transitions SEEN then
    memo: Annotated[np.ndarray, Field("3", np.int64, scratch=True, fill=-1)]
    best: Annotated[np.ndarray, Field("1", scratch=True)]  # the largest Q then


@has_room.implement(GreedyUCBVIModel)
def has_room_greedy_ucbvi(model):
    return has_room_for(model.store, model.settings, model.settings.horizon)


@grow.implement_plain(GreedyUCBVIModel)
def grow_greedy_ucbvi(model):
    return model._replace(store=grown_for(model.store, model.settings, model.settings.horizon))


@rescaled.implement_plain(GreedyUCBVIModel)
def rescale_greedy_ucbvi(model, settings, keep):
    cap = settings.bonus.cap[:, None]
    model.memo[:] = -1
    V = model.V.copy()
    V[:, : settings.grid.cells] = cap - keep * (cap - V[:, : settings.grid.cells])
    return model._replace(settings=settings, V=V)


@inner
def q_at_cell(model, x, h):
    """Q_h(x, ·) into `model.q`; return the largest, of those that a mask allows at the centre of the cell."""
    settings, counts, bonus, q = model.settings, model.store, model.settings.bonus, model.q
    V, share = model.V[h + 1], bonus.share[h]
    V[settings.grid.cells] = after_end(settings.units, settings.horizon, h)
    never, best = max(bonus.cap[h], bonus.root + share), 0.0
    first = list_of(counts, settings.actions, pool(settings, h), x)
    for a in range(settings.actions):
        q[a] = never
    for g in range(q.size // LANES):
        write_constants(UPPER, settings, counts, first + g, model.constants, 0)
        start = np.int64(counts.lists[START, first + g])
        end = start + np.int64(counts.lists[LENGTH, first + g])
        found = window_targets(counts.window, counts.times, start, end, V, model.constants, 0, share, q, g)
        best = max(best, found)
    return largest_in_row(settings.allowed[x], q) if restricts(settings.mask) else best


@choose.implement(GreedyUCBVIModel, inline=True)
def choose_greedy_ucbvi(model, state, h):
    x = cell_of(model.settings.grid, state)
    model.best[0] = q_at_cell(model, x, h)
    model.memo[CELL], model.memo[STEP], model.memo[SEEN] = x, h, samples_in(model.store)
    return pick(model.settings.mask, state, model.q[: model.settings.actions], model.stream)


@observe.implement(GreedyUCBVIModel, inline=True)
def observe_greedy_ucbvi(model, state, action, reward, next_state, h, terminated):
    settings, memo, counts = model.settings, model.memo, model.store
    x, y = cell_of(settings.grid, state), cell_of(settings.grid, next_state)
    known = memo[CELL] == x and memo[STEP] == h and memo[SEEN] == samples_in(counts)
    if not known:  # `choose` has not computed it
        model.best[0] = q_at_cell(model, x, h)
    model.V[h, x] = min(model.V[h, x], model.best[0])
    add(counts, settings, x, action, reward, y, h, terminated)


@read_q.implement(GreedyUCBVIModel)
def read_q_greedy_ucbvi(model, state, h, out):
    q_at_cell(model, cell_of(model.settings.grid, state), h)
    for a in range(out.size):
        out[a] = model.q[a]


@read_values.implement(GreedyUCBVIModel)
def read_values_greedy_ucbvi(model, state, h):
    return model.V[h, cell_of(model.settings.grid, state)]


@read_counts.implement(GreedyUCBVIModel)
def read_counts_greedy_ucbvi(model, state, h, out):
    x, where, counts = cell_of(model.settings.grid, state), pool(model.settings, h), model.store
    for a in range(out.size):
        i, lane = lane_of(counts, out.size, where, x, a)
        out[a] = counts.pairs[i, VISITS, lane]


@read_bonuses.implement(GreedyUCBVIModel)
def read_bonuses_greedy_ucbvi(model, state, h, out):
    read_counts(model, state, h, out)
    for a in range(out.size):
        out[a] = value(model.settings.bonus, h, out[a], 0.0, 0.0)


class GreedyUCBVI(CountingAgent):
    """Greedy-UCBVI (Efroni et al. 2019) on a uniform grid: UCBVI with one step of planning at each visited cell.

    The arguments are those of `UCBVI` except `replan` and `minimum`.
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "stationary")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        stationary: bool = True, bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05,
        total_episodes: int | None = None, mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes, mask)
        self.stationary = flag("stationary", stationary)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Empty counts and values at the cap."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        bonus = self._counted(horizon, grid.cells, actions)
        settings = CountSettings(
            horizon, actions, self.stationary, 0, 1.0, False, self.rewards.units, grid, bonus,
            *self._masks(spaces, grid),
        )  # fmt: skip
        store = new_counts(1 if self.stationary else horizon, grid.cells, actions, horizon)
        V = with_pads(np.repeat(bonus.cap[:, None], grid.cells, axis=1))
        q, constants = np.zeros(groups_of(actions) * LANES), np.zeros((1, 2, LANES))
        memo = np.full(3, -1, np.int64)
        return GreedyUCBVIModel(settings, store, stream, V, q, constants, memo, np.zeros(1))
