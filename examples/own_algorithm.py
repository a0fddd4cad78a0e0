"""An algorithm of one's own: optimistic Q-learning on a grid (after Even-Dar and Mansour 2001), without a bonus.

States are divided into cells. With R_h = H - h, the most that the steps left can bring when rewards are mapped to
[0, 1], and n visits of cell x and action a at step h so far, this one included,

    Q_h(x, a) = R_h at first,   Q_h(x, a) ← (1-α)·Q_h(x, a) + α·(r + V_{h+1}(y)),   α = (1+n)^-rate

    V_h(x) = min(R_h, max_a Q_h(x, a)),   V_H = 0

    python examples/own_algorithm.py
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

import kernelrl as krl
from kernelrl import grid, units, verbs

Floats = NDArray[np.float64]


class Settings(NamedTuple):
    """What does not change with the data, but for the units of reward."""

    horizon: int
    rate: float
    units: units.Units
    grid: grid.Grid


class Table(NamedTuple):
    """The state of the algorithm."""

    settings: Settings
    stream: Annotated[NDArray[np.uint64], krl.Field("4", np.uint64)]
    N: Annotated[Floats, krl.Field("H X A", least=0)]  # visits
    Q: Annotated[Floats, krl.Field("H X A")]


@verbs.choose.implement(Table)
def choose(model: Table, state: Floats, h: int) -> int:
    return int(verbs.pick_largest(model.Q[h, grid.cell_of(model.settings.grid, state)], model.stream))


@verbs.observe.implement(Table)
def observe(
    model: Table, state: Floats, action: int, reward: float, next_state: Floats, h: int, terminated: bool
) -> None:
    settings, H = model.settings, model.settings.horizon
    x, target = grid.cell_of(settings.grid, state), units.mapped(settings.units, reward)
    if terminated:
        target += units.after_end(settings.units, H, h)
    elif h + 1 < H:
        target += verbs.read_values(model, next_state, h + 1)
    model.N[h, x, action] += 1.0
    alpha = (1.0 + model.N[h, x, action]) ** -settings.rate
    model.Q[h, x, action] += alpha * (target - model.Q[h, x, action])


@verbs.read_q.implement(Table)
def read_q(model: Table, state: Floats, h: int, out: Floats) -> None:
    x = grid.cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.Q[h, x, a]


@verbs.read_values.implement(Table)
def read_values(model: Table, state: Floats, h: int) -> float:
    best = verbs.largest(model.Q[h, grid.cell_of(model.settings.grid, state)])
    return float(min(model.settings.horizon - h, best))


@verbs.read_counts.implement(Table)
def read_counts(model: Table, state: Floats, h: int, out: Floats) -> None:
    x = grid.cell_of(model.settings.grid, state)
    for a in range(out.size):
        out[a] = model.N[h, x, a]


@verbs.rescaled.implement_plain(Table)
def rescaled(model: Table, settings: Settings, keep: float) -> Table:
    cap = np.arange(settings.horizon, 0, -1.0)[:, None, None]
    return model._replace(settings=settings, Q=cap - keep * (cap - model.Q))


class OptimisticQLearning(krl.Agent):
    """Optimistic Q-learning on a grid of `bins` cells along each axis, with the learning rate (1+n)^-`rate`."""

    hyper_parameters = ("bins", "rate", "horizon", "reward_range")

    def __init__(
        self, *, bins: int = 10, rate: float = 0.7, horizon: int | None = None,
        reward_range: tuple[float, float] | str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        self.bins, self.rate = grid.check_bins(bins), float(rate)

    def new_model(self, spaces: krl.Spaces, stream: NDArray[np.uint64]) -> Table:
        """The table before any data."""
        cells = grid.box_grid(self.bins, spaces.low, spaces.high)
        shape = (spaces.horizon, cells.cells, spaces.actions)
        Q = np.zeros(shape) + np.arange(spaces.horizon, 0, -1.0)[:, None, None]
        return Table(Settings(spaces.horizon, self.rate, self.rewards.units, cells), stream, np.zeros(shape), Q)

    def policy_form(self, map_code: str | None = None) -> krl.portable.Form:
        """The policy as a table, for `export`."""
        return krl.portable.grid_table(self.model.settings.grid, self.model.Q)

    def counts(self, states: ArrayLike, step: int) -> Any:
        """(n, A) visits of the cells that hold `states` (n, d)."""
        return self.read(verbs.READ_COUNTS, states, step)


def main() -> None:
    for agent in (OptimisticQLearning(), krl.OptQL(bins=10)):
        history = agent.fit("kernelrl/Ramp-v0", 2_000, seed=0)
        deployed = agent.evaluate("kernelrl/Ramp-v0", 1_000).mean
        print(f"{type(agent).__name__:20} {history.returns.mean():.4f} while learning, {deployed:.4f} afterwards")


if __name__ == "__main__":
    main()
