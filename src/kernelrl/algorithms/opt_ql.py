"""OptQL on a grid (Jin, Allen-Zhu, Bubeck and Jordan 2018): Q-learning with a bonus, one table per step.

Q_h = cap_h at first. After a transition from cell x to cell y by action a at step h, with n visits of (h, x, a) so far,
including this one, and the learning rate α = (H+1)/(H+n),

    Q_h(x, a) ← (1-α)·Q_h(x, a) + α·[r + V_{h+1}(y) + B_h(n)],   V_h(x) = min(cap_h, max_a Q_h(x, a)),   V_H = 0

or, with the bonus after the update,

    E_h(x, a) ← (1-α)·E_h(x, a) + α·[r + V_{h+1}(y)],   Q_h(x, a) = E_h(x, a) + B_h(n)

The first visit has α = 1, so the initial E does not matter. With a mask the maximum in V_h is over the actions that are
allowed in the state itself.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import GridAgent
from kernelrl.arguments import one_of
from kernelrl.bonuses.counted import Counted, width_of_optql
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    choose,
    observe,
    pick,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
    value_of,
)
from kernelrl.geometry.grid import Grid, cell_of
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field
from kernelrl.portable.forms import Form, grid_table
from kernelrl.stores.units import Units, after_end, learnt

__all__ = ["OptQL", "OptQLModel", "kept", "new_opt_ql"]


class OptQLSettings(NamedTuple):
    """The hyper-parameters of OptQL; made by `new_opt_ql` only."""

    horizon: int  # H
    after: bool  # the bonus comes after the update
    units: Units
    grid: Grid
    bonus: Counted
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)


class OptQLModel(NamedTuple):
    """The state of OptQL."""

    settings: OptQLSettings
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    N: Annotated[np.ndarray, Field("H X A", least=0)]  # visits
    Q: Annotated[np.ndarray, Field("H X A")]
    E: Annotated[np.ndarray, Field("steps cells actions")]  # Q without the bonus; empty if the bonus is in the target


def new_opt_ql(horizon, actions, after, units, grid, bonus, mask, stream):
    """The state before any data."""
    settings = OptQLSettings(horizon, after, units, grid, bonus, mask)
    shape = (horizon, grid.cells, actions)
    Q = np.empty(shape)
    Q[:] = bonus.cap[:-1, None, None]
    return OptQLModel(settings, stream, np.zeros(shape), Q, np.zeros(shape if after else (0, 0, 0)))


def kept(old, new, keep):
    """`keep`, or 1 if everything learnt so far is right for any range [0, x] (see `kernelrl.stores.units`)."""
    return 1.0 if old.empty and new.low == 0.0 else keep


@rescaled.implement_plain(OptQLModel)
def rescale_opt_ql(model, settings, keep):
    keep = kept(model.settings.units, settings.units, keep)
    cap = settings.bonus.cap[:-1, None, None]
    if not settings.after:
        return model._replace(settings=settings, Q=cap - keep * (cap - model.Q))
    E = cap - keep * (cap - model.E)
    N, bonus = np.maximum(model.N, 1.0), settings.bonus
    B = bonus.root / np.sqrt(N) + bonus.share[:, None, None] / N
    return model._replace(settings=settings, E=E, Q=np.where(model.N > 0.0, E + B, model.Q))


@inner
def value_at(model, state, h):
    """V_h in a state."""
    q = model.Q[h, cell_of(model.settings.grid, state)]
    return min(model.settings.bonus.cap[h], value_of(model.settings.mask, state, q))


@choose.implement(OptQLModel, inline=True)
def choose_opt_ql(model, state, h):
    return pick(model.settings.mask, state, model.Q[h, cell_of(model.settings.grid, state)], model.stream)


@observe.implement(OptQLModel, inline=True)
def observe_opt_ql(model, state, action, reward, next_state, h, terminated):
    settings = model.settings
    x, H = cell_of(settings.grid, state), settings.horizon
    G = learnt(settings.units, reward)
    if terminated:
        G += after_end(settings.units, H, h)
    elif h + 1 < H:
        G += value_at(model, next_state, h + 1)
    Q, N, E = model.Q[h, x], model.N[h, x], model.E
    n = N[action] + 1.0
    N[action] = n
    alpha, B = (H + 1.0) / (H + n), value(settings.bonus, h, n, 0.0, 0.0)
    if settings.after:
        E[h, x, action] = (1.0 - alpha) * E[h, x, action] + alpha * G
        Q[action] = E[h, x, action] + B
    else:
        Q[action] = (1.0 - alpha) * Q[action] + alpha * (G + B)


@read_q.implement(OptQLModel)
def read_q_opt_ql(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.Q[h, x, a]


@read_values.implement(OptQLModel)
def read_values_opt_ql(model, state, h):
    return value_at(model, state, h)


@read_counts.implement(OptQLModel)
def read_counts_opt_ql(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.N[h, x, a]


@read_bonuses.implement(OptQLModel)
def read_bonuses_opt_ql(model, state, h, out):
    x = cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = value(model.settings.bonus, h, model.N[h, x, a], 0.0, 0.0)


class OptQL(GridAgent):
    """OptQL (Jin et al. 2018) on a uniform grid: Q-learning with an exploration bonus, data per step.

    Args:
        bins: number of cells along each axis of the box of states, or a sequence with one for each; left out for a
            Discrete space.
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        bonus_place: "target", the bonus is part of what Q is moved towards; "after", it is added after the update.
        bonus: "simplified", s·(1/√n + R_h/n), where R_h is the number of steps left; "hoeffding", s·√(H³·ι/n) with
            ι = log(X·A·T/δ) and T = total_episodes·H.
        bonus_scale: the factor s; c in the paper's Hoeffding bonus.
        delta: δ, the probability of failure in the Hoeffding bonus.
        total_episodes: the number of episodes to be played, for the Hoeffding bonus only.
        mask: a compiled function (state, action) → bool, which actions are allowed in a state (docs/masks.md).
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "bonus_place")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus_place: str = "target", bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05,
        total_episodes: int | None = None, mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes, mask)
        self.bonus_place = one_of("bonus_place", bonus_place, ("target", "after"))

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_optql(horizon, cells, actions, self.total_episodes, self.delta))

    def explained_notes(self) -> list[str]:
        """What the bonus is here."""
        if self.bonus_place == "after":
            return []
        return ["the bonus is part of what Q is moved towards; the one shown is that of the next visit's target"]

    def policy_form(self, map_code: str | None = None) -> Form:
        """The best action of each cell."""
        self.require_data(int(self.model.N.sum()))
        return grid_table(self.model.settings.grid, self.model.Q)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Tables with all values at the cap."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        bonus = self._counted(horizon, grid.cells, actions)
        after = self.bonus_place == "after"
        mask = self.compiled_mask(spaces)
        return new_opt_ql(horizon, actions, after, self.rewards.units, grid, bonus, mask, stream)
