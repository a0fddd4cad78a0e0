"""UCBVI on a grid (Azar, Osband and Munos 2017): optimistic planning on the counts of transitions between cells.

Backwards in h, with V_H = 0, at every cell x visited so far

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a)),   V_h(x) = min(cap_h, max_a Q_h(x, a))

A pair never tried has Q_h = max(cap_h, B_h(0)), and a cell never visited V_h = cap_h (see `core.optimism` for caps and
bonuses). The plan is made in `begin_episode` from all data before it ("episode"), also after each transition ("step"),
or only when the visits of the pair just observed have reached twice what they were in the last plan ("doubling"; so on
a pair's first visit). Choices and read-outs, counts included, are those of the last plan.

With `minimum`, as the paper's algorithm 2 has it, the Q_h of a pair that was tried is at most that of the plan before:

    Q_h(x, a) ← min(Q_h(x, a), r̂(x, a) + P̂V_{h+1}(x, a) + B_h(n(x, a)))

where "before" a pair's first plan is the value of a pair never tried. The paper takes Q_h no higher than the cap, too;
here only V_h is capped. That gives the same V_h, and among actions at the cap, which the paper leaves open, it chooses
the one of the highest Q_h.

Nothing is computed again that cannot have changed: a plan takes up, at each step, the cells whose counts have changed
since the last plan and the cells from which a cell was reached whose V_{h+1} has changed. The result is that of a full
plan, to the last bit. This holds with `minimum`, too: at any other cell r̂ + P̂V_{h+1} + B_h is the number T that it was
when the cell was last computed, and the Q_h held since then is min(…, T), so min(Q_h, T) = Q_h. For the same reason
planning twice on the same data changes nothing.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import CountingAgent, GridAgent
from kernelrl.arguments import flag, one_of
from kernelrl.bonuses.counted import Optimism, bonus_at
from kernelrl.episodes.verbs import (
    begin_episode,
    choose,
    grow,
    has_room,
    largest,
    observe,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.geometry.grid import Grid, cell_of
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, check_lists, checks, require
from kernelrl.planning.replan import DOUBLING, EACH_EPISODE, EACH_STEP, REPLAN
from kernelrl.stores.counts import (
    BLOCK,
    VISITS,
    Counts,
    add_transition,
    blocks_left,
    grow_counts,
    new_counts,
    pair_of,
    tally,
    targets,
    untried,
)
from kernelrl.stores.units import Units

__all__ = ["UCBVI", "CountSettings", "GridUCBVI", "new_ucbvi", "pool_of", "queue_all"]


class CountSettings(NamedTuple):
    """The hyper-parameters of the algorithms that count; made by their `new_…` only."""

    horizon: int  # H
    actions: int  # A
    stationary: bool
    replan: int
    minimum: bool
    units: Units
    grid: Grid
    optimism: Optimism


class GridUCBVI(NamedTuple):
    """The state of UCBVI."""

    settings: CountSettings
    counts: Counts
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    Q: Annotated[np.ndarray, Field("H X A", infinite=True)]
    V: Annotated[np.ndarray, Field("H+1 X", least="Least", most="Most")]
    N: Annotated[np.ndarray, Field("pools X A", least=0)]  # visits in the last plan
    plans: Annotated[np.ndarray, Field("1", np.int64)]  # number of plans
    # first block of the cells from which a cell was reached, or -1
    origins: Annotated[np.ndarray, Field("pools X", np.int32, index="counts.blocks", none=True)]
    queued: Annotated[np.ndarray, Field("H X", np.bool_)]  # whether a cell is in the queue
    queue: Annotated[np.ndarray, Field("H X+1", np.uint32, index="X")]  # cells to compute again; the last is scratch
    length: Annotated[np.ndarray, Field("H", np.int64, most="X")]  # how many


@checks(GridUCBVI)
def check_ucbvi(where, model):
    """Chains of blocks that end, and queues of the cells that are marked as queued, each once."""
    counts = model.counts
    first = np.concatenate([counts.first, model.origins.reshape(-1)])
    check_lists(f"{where}counts.following", first, counts.following[: counts.number[0]])
    for h, n in enumerate(model.length):
        same = np.array_equal(np.sort(model.queue[h, :n]), np.flatnonzero(model.queued[h]))
        require(same, f"{where}queue", "it is not the cells that are marked as queued")


def new_ucbvi(horizon, actions, stationary, replan, minimum, units, grid, optimism, stream):
    """The state before any data."""
    settings = CountSettings(horizon, actions, stationary, replan, minimum, units, grid, optimism)
    X, pools = grid.cells, 1 if stationary else horizon
    Q = np.empty((horizon, X, actions))
    Q[:] = untried(optimism)[:, None, None]
    V = np.repeat(optimism.cap[:, None], X, axis=1)
    return GridUCBVI(
        settings, new_counts(pools, X, actions, 4 * horizon), stream, Q, V, np.zeros((pools, X, actions)),
        np.zeros(1, np.int64), np.full((pools, X), -1, np.int32),
        np.zeros((horizon, X), np.bool_), np.zeros((horizon, X + 1), np.uint32), np.zeros(horizon, np.int64),
    )  # fmt: skip


@has_room.implement(GridUCBVI)
def has_room_ucbvi(model):
    # A transition takes a block for its successor and one for the way back, at most.
    return blocks_left(model.counts) >= 2 * model.settings.horizon


@grow.implement_plain(GridUCBVI)
def grow_ucbvi(model):
    return model._replace(counts=grow_counts(model.counts))


def queue_all(model):
    """Have the next plan compute every visited cell."""
    counts, pools = model.counts, model.N.shape[0]
    for h in range(model.settings.horizon):
        pool = min(h, pools - 1)
        cells = counts.cells[pool, : counts.visited[pool]]
        model.queue[h, : cells.size] = cells
        model.queued[h] = False
        model.queued[h, cells] = True
        model.length[h] = cells.size


@rescaled.implement_plain(GridUCBVI)
def rescale_ucbvi(model, settings, keep):
    model = model._replace(settings=settings)
    if settings.minimum:  # what bounds the next plan; a pair not tried in the last one has the same Q in all units
        cap = settings.optimism.cap[:-1, None, None]
        model.Q[:] = np.where(model.N > 0, cap - keep * (cap - model.Q), model.Q)
    queue_all(model)
    plans, model.plans[0] = int(model.plans[0]), 0  # so that this plans, whatever `replan` says
    begin_episode(model)
    model.plans[0] = plans + 1
    return model


@inner
def pool_of(settings, h):
    """The pool of data that step `h` uses."""
    return 0 if settings.stationary else h


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
def plan_step(model, h):
    """Q_h and V_h at the cells in the queue."""
    settings, counts, pool = model.settings, model.counts, pool_of(model.settings, h)
    for i in range(model.length[h]):
        x = np.int64(model.queue[h, i])
        model.queued[h, x] = False
        p = pair_of(counts, settings.actions, pool, x, 0)
        V, Q = model.V[h + 1], model.Q[h, x]
        best = targets(counts, settings.units, settings.optimism, p, h, V, Q, settings.minimum)
        value = min(settings.optimism.cap[h], best)
        if value != model.V[h, x]:
            model.V[h, x] = value
            if h > 0:
                b = np.int64(model.origins[pool_of(settings, h - 1), x])
                n = model.length[h - 1]
                model.length[h - 1] = enqueue_list(counts, model.queued[h - 1], model.queue[h - 1], n, b)
        if pool == h:  # once for each pool
            for a in range(settings.actions):
                model.N[pool, x, a] = counts.pairs[p + a, VISITS]
    model.length[h] = 0


@inner
def plan(model):
    """Plan on all data."""
    for h in range(model.settings.horizon - 1, -1, -1):
        plan_step(model, h)
    model.plans[0] += 1


@begin_episode.implement(GridUCBVI)
def begin_ucbvi(model):
    if model.settings.replan != DOUBLING or model.plans[0] == 0:
        plan(model)


@choose.implement(GridUCBVI, inline=True)
def choose_ucbvi(model, state, h):
    return pick_largest(model.Q[h, cell_of(model.settings.grid, state)], model.stream)


@observe.implement(GridUCBVI)
def observe_ucbvi(model, state, action, reward, next_state, h, terminated):
    settings, counts = model.settings, model.counts
    x, y, pool = cell_of(settings.grid, state), cell_of(settings.grid, next_state), pool_of(settings, h)
    if add_transition(counts, settings.actions, settings.optimism.root, pool, x, action, reward, y, terminated):
        tally(counts, model.origins[pool], y, x)
    first, last = (0, settings.horizon) if settings.stationary else (h, h + 1)
    for step in range(first, last):
        model.length[step] = enqueue(model.queued[step], model.queue[step], model.length[step], x)
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


class UCBVI(CountingAgent):
    """UCBVI (Azar et al. 2017) on a uniform grid: optimistic planning on counts.

    Args:
        bins: number of cells along each axis of the box of states, or a sequence with one for each; left out for a
            Discrete space.
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        stationary: pool the data of all steps.
        replan: "episode", "step" or "doubling".
        minimum: the Q of a pair that was tried never rises: each plan takes the minimum with the plan before, as the
            paper's algorithm 2 does.
        bonus: "simplified", s·(1/√N + R_h/N) with N = max(1, visits), where R_h is the number of steps left;
            "hoeffding", that of UCBVI-CH, s·7·H·log(5·X·A·T/δ)/√N with T = total_episodes·H.
        bonus_scale: the factor s.
        delta: δ, the probability of failure in the Hoeffding bonus.
        total_episodes: the number of episodes to be played, for the Hoeffding bonus only.
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "stationary", "replan", "minimum")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        stationary: bool = True, replan: str = "episode", minimum: bool = False, bonus: str = "simplified",
        bonus_scale: float = 1.0, delta: float = 0.05, total_episodes: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes)
        self.stationary = flag("stationary", stationary)
        self.replan = one_of("replan", replan, REPLAN)
        self.minimum = flag("minimum", minimum)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Tables of nothing but optimism."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        optimism = self._optimism(horizon, grid.cells, actions)
        replan = REPLAN.index(self.replan)
        return new_ucbvi(
            horizon, actions, self.stationary, replan, self.minimum, self.rewards.units, grid, optimism, stream
        )
