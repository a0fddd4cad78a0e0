"""UCBVI on a grid (Azar, Osband and Munos 2017): optimistic planning on the counts of transitions between cells.

Backwards in h, with V_H = 0, at every cell x visited so far

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a)),   V_h(x) = min(cap_h, max_a Q_h(x, a))

A pair never tried has Q_h = max(cap_h, B_h(0)), and a cell never visited V_h = cap_h (see `kernelrl.bonuses.counted`
for caps and bonuses). Plans are made in `begin_episode` from all data ("episode", or when the number of episodes has
grown by a factor), also after each transition ("step"), or only when the visits of the pair just observed are at least
twice those in the last plan ("doubling"; this includes a pair's first visit). Choices and read-outs, including counts,
are those of the last plan.

With `minimum`, as in the paper's algorithm 2, the Q_h of a pair that was tried is at most its Q_h in the plan before:

    Q_h(x, a) ← min(Q_h(x, a), r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a)))

where before its first plan a pair has the value of a pair never tried. The paper also caps Q_h; here only V_h is
capped. This gives the same V_h; among actions at the cap, where the paper leaves the choice open, the one with the
highest Q_h is chosen.

Planning twice on the same data changes nothing, with `minimum` neither: min(min(Q_h, T), T) = min(Q_h, T).
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import CountingAgent, GridAgent
from kernelrl.arguments import flag
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    begin_episode,
    catch_up,
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
    value_of,
)
from kernelrl.geometry.grid import cell_of
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, Rows
from kernelrl.planning.backward import backward
from kernelrl.planning.cells import Cells, new_cells, untried
from kernelrl.planning.interface import PLANS
from kernelrl.planning.replan import (
    BEGUN,
    DOUBLING,
    EACH_EPISODE,
    EACH_STEP,
    begins_with_plan,
    check_replan,
    replan_code,
)
from kernelrl.planning.sides import UPPER
from kernelrl.stores.counts import VISITS, Counts, CountSettings, lane_of, new_counts
from kernelrl.stores.interface import add, grown_for, has_room_for, pool

__all__ = ["UCBVI", "UCBVIModel"]


class UCBVIModel(NamedTuple):
    """The state of UCBVI."""

    settings: CountSettings
    store: Counts
    plan: Cells
    begun: Annotated[np.ndarray, Rows(Field(""), Field(""))]  # BEGUN: number of episodes; DUE: that of the next plan
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream


@has_room.implement(UCBVIModel)
def has_room_ucbvi(model):
    return has_room_for(model.store, model.settings, model.settings.horizon)


@grow.implement_plain(UCBVIModel)
def grow_ucbvi(model):
    return model._replace(store=grown_for(model.store, model.settings, model.settings.horizon))


@rescaled.implement_plain(UCBVIModel)
def rescale_ucbvi(model, settings, keep):
    model, plan = model._replace(settings=settings), model.plan
    if settings.minimum:  # Q bounds the next plan; pairs not tried in the last plan have the same Q in all units
        cap = settings.bonus.cap[:-1, None, None]
        tried = plan.N.reshape(-1, *plan.Q.shape[1:]) > 0
        plan.Q[:] = np.where(tried, cap - keep * (cap - plan.Q), plan.Q)
    plan.ready[:] = False
    catch_up(model)
    return model


@catch_up.implement_plain(UCBVIModel)
def plan_ucbvi_now(model):
    clock = model.plan.clock
    plans, clock[PLANS] = int(clock[PLANS]), 0  # so that this plans, whatever `replan` says
    begin_episode(model)
    model.begun[BEGUN] -= 1  # it is no episode
    clock[PLANS] = plans + 1


@inner
def plan_now(model):
    """Plan on all data."""
    backward(model.plan, model.settings, model.store, UPPER)
    model.plan.clock[PLANS] += 1


@begin_episode.implement(UCBVIModel)
def begin_ucbvi(model):
    if begins_with_plan(model.settings, model.begun, model.plan.clock[PLANS]):
        plan_now(model)


@choose.implement(UCBVIModel, inline=True)
def choose_ucbvi(model, state, h):
    q = model.plan.Q[h, cell_of(model.settings.grid, state)]
    return pick(model.settings.mask, state, q[: model.settings.actions], model.stream)


@observe.implement(UCBVIModel)
def observe_ucbvi(model, state, action, reward, next_state, h, terminated):
    settings, counts, plan = model.settings, model.store, model.plan
    x, y = cell_of(settings.grid, state), cell_of(settings.grid, next_state)
    add(counts, settings, x, action, reward, y, h, terminated)
    i, lane = lane_of(counts, settings.actions, pool(settings, h), x, action)
    doubled = settings.replan == DOUBLING and counts.pairs[i, VISITS, lane] >= 2.0 * plan.N[i, lane]
    if doubled or settings.replan == EACH_STEP:
        plan_now(model)


@read_q.implement(UCBVIModel)
def read_q_ucbvi(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.plan.Q[h, x, a]


@read_values.implement(UCBVIModel)
def read_values_ucbvi(model, state, h):
    q = model.plan.Q[h, cell_of(model.settings.grid, state)]
    return min(model.settings.bonus.cap[h], value_of(model.settings.mask, state, q[: model.settings.actions]))


@read_counts.implement(UCBVIModel)
def read_counts_ucbvi(model, state, h, out):
    x, where = cell_of(model.settings.grid, state), pool(model.settings, h)
    for a in range(out.size):
        i, lane = lane_of(model.store, out.size, where, x, a)
        out[a] = model.plan.N[i, lane]


@read_bonuses.implement(UCBVIModel)
def read_bonuses_ucbvi(model, state, h, out):
    read_counts(model, state, h, out)
    for a in range(out.size):
        out[a] = value(model.settings.bonus, h, out[a], 0.0, 0.0)


class UCBVI(CountingAgent):
    """UCBVI (Azar et al. 2017) on a uniform grid: optimistic planning on counts.

    Args:
        bins: number of cells along each axis of the box of states, or a sequence with one for each; left out for a
            Discrete space.
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        stationary: pool the data of all steps.
        replan: "episode", "step", "doubling", or the factor by which the number of episodes grows from plan to plan;
            "auto" is 1.005, which plans before each of the first 400 episodes.
        minimum: the Q of a pair that was tried never rises: each plan takes the minimum with the plan before, as in
            the paper's algorithm 2.
        bonus: "simplified", s·(1/√N + R_h/N) with N = max(1, visits), where R_h is the number of steps left;
            "hoeffding", that of UCBVI-CH, s·7·H·log(5·X·A·T/δ)/√N with T = total_episodes·H.
        bonus_scale: the factor s.
        delta: δ, the probability of failure in the Hoeffding bonus.
        total_episodes: the number of episodes to be played, for the Hoeffding bonus only.
        mask: a compiled function (state, action) → bool, which actions are allowed in a state (docs/masks.md).
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "stationary", "replan", "minimum")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        stationary: bool = True, replan: str | float = "episode", minimum: bool = False, bonus: str = "simplified",
        bonus_scale: float = 1.0, delta: float = 0.05, total_episodes: int | None = None, mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes, mask)
        self.stationary = flag("stationary", stationary)
        self.replan = check_replan(replan)
        self.minimum = flag("minimum", minimum)

    def needs_step(self) -> bool:
        """Whether counts are kept per step."""
        return not self.stationary

    def before_rows(self) -> None:
        """No plans."""
        self._replan(EACH_EPISODE)

    def after_rows(self) -> None:
        """Plan, and again when `replan` says so."""
        self._replan(replan_code(self.replan)[0])
        super().after_rows()

    def _replan(self, code: int) -> None:
        self.model = self.model._replace(settings=self.model.settings._replace(replan=code))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Empty counts and an optimistic plan."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        bonus, pools = self._counted(horizon, grid.cells, actions), 1 if self.stationary else horizon
        settings = CountSettings(
            horizon, actions, self.stationary, *replan_code(self.replan), self.minimum, self.rewards.units, grid, bonus,
            *self._masks(spaces, grid),
        )  # fmt: skip
        plan = new_cells(horizon, grid.cells, actions, pools, untried(bonus), bonus.cap)
        store = new_counts(pools, grid.cells, actions, horizon)
        return UCBVIModel(settings, store, plan, np.zeros(2, np.int64), stream)
