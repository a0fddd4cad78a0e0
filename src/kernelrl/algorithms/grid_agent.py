"""What the baselines share: they count in the cells of a grid or of an adaptive partition."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Agent, Floats
from kernelrl.agents.spaces import Spaces
from kernelrl.arguments import one_of, positive, whole_number
from kernelrl.bonuses.counted import BONUSES, Counted, has_width, new_counted, width_of_ucbvi
from kernelrl.episodes import verbs
from kernelrl.geometry.grid import Grid, box_grid, cell_of, centres, check_bins, check_size, discrete_grid
from kernelrl.geometry.masks import allowed_table, check_function
from kernelrl.jit.handles import hand_over
from kernelrl.planning.cells import DeployedCells, deployed_q
from kernelrl.portable.forms import Form, grid_table
from kernelrl.stores.interface import samples_in

__all__ = ["Baseline", "CountingAgent", "GridAgent"]


class Baseline(Agent, abstract=True):
    """What all baselines share: the bonus, the caps, and the read-outs that need them."""

    hyper_parameters: ClassVar[tuple[str, ...]] = (
        "horizon", "reward_range", "bonus", "bonus_scale", "delta", "total_episodes", "mask",
    )  # fmt: skip

    def __init__(
        self, horizon: int | None, reward_range: tuple[float, float] | str, bonus: str, bonus_scale: float,
        delta: float, total_episodes: int | None, mask: Any,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        self.mask = check_function(mask)
        self.bonus = one_of("bonus", bonus, BONUSES)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.delta = positive("delta", delta)
        if self.delta >= 1:
            raise ValueError(f"delta must be a probability of failure between 0 and 1, such as 0.05; got {delta!r}")
        self.total_episodes = None if total_episodes is None else whole_number("total_episodes", total_episodes, 1)
        if has_width(bonus) and total_episodes is None:
            raise ValueError(
                'total_episodes: bonus="hoeffding" depends on how many episodes will be played; give total_episodes=…'
            )

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        """The factor w of 1/√N in the Hoeffding bonus (see `kernelrl.bonuses.counted`)."""
        raise NotImplementedError

    def _counted(self, horizon: int, cells: int, actions: int) -> Counted:
        width = self._hoeffding_width(horizon, cells, actions) if has_width(self.bonus) else 0.0
        bonus: Counted = new_counted(horizon, self.bonus, self.bonus_scale, width)
        return bonus

    def counts(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) visits of the cells that hold `states` (n, d)."""
        return self.read(verbs.READ_COUNTS, states, step)

    def bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) exploration bonuses B_h at `states` (n, d)."""
        bonuses: Floats = self.read(verbs.READ_BONUSES, states, step) * self.rewards.width
        return bonuses


class GridAgent(Baseline, abstract=True):
    """A baseline on a uniform grid, or directly on the states of a Discrete space."""

    takes_discrete = True
    hyper_parameters = ("bins", *Baseline.hyper_parameters)

    def __init__(self, bins: Any, *shared: Any) -> None:
        super().__init__(*shared)
        self.bins = check_bins(bins)

    def evidence_at(self, state: Floats, step: int, most: int) -> dict[str, Any] | None:
        """The cell of the state."""
        grid: Any = self.model.settings.grid
        place = np.clip(((state - grid.low) * grid.inverse).astype(np.int64), 0, grid.bins - 1)
        width = np.where(grid.inverse > 0.0, 1.0 / np.where(grid.inverse > 0.0, grid.inverse, 1.0), 0.0)
        low = grid.low + place * width
        if self.spaces.discrete:
            text = f"state {low[0]:.0f}, one of {grid.cells:,}"
        else:
            text = f"cell from {np.round(low, 6)} to {np.round(low + width, 6)}, one of {grid.cells:,}"
        boxes = [{"low": low.tolist(), "high": (low + width).tolist()}]
        return {"kind": "cells", "number": grid.cells, "text": text, "boxes": boxes}

    def _masks(self, spaces: Spaces, grid: Grid) -> tuple[Any, npt.NDArray[np.bool_]]:
        """The compiled mask, and which actions it allows at the centres of cells (X, A)."""
        mask = self.compiled_mask(spaces)
        if self.mask is None:
            return mask, np.zeros((0, 0), np.bool_)
        return mask, allowed_table(mask, centres(grid, spaces.discrete), spaces.actions)

    def _grid(self, spaces: Spaces) -> Grid:
        if spaces.discrete and self.bins is not None:
            raise ValueError(f"bins: the states are those of a Discrete space already; leave bins out, got {self.bins}")
        if not spaces.discrete and self.bins is None:
            raise ValueError(f"bins: a Box of states must be divided into cells; give {type(self).__name__}(bins=…)")
        grid: Grid = (
            discrete_grid(spaces.low, spaces.high) if spaces.discrete else box_grid(self.bins, spaces.low, spaces.high)
        )
        check_size(grid.cells, spaces.actions, spaces.horizon)
        return grid


class CountingAgent(GridAgent, abstract=True):
    """A grid agent that keeps counts of transitions: it deploys the best policy of the estimated environment."""

    _deployed: tuple[int, Floats] | None = None  # for how much data, and Q
    _grid_handle: Any = None

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_ucbvi(horizon, cells, actions, self.total_episodes, self.delta))

    def deployed_q(self, states: Floats, step: int) -> Floats:
        """(n, A) Q_h of the best policy of the estimated environment, without bonus."""
        if self._grid_handle is None:
            self._grid_handle = hand_over(self.model.settings.grid)
        cells = [int(cell_of(self._grid_handle, x)) for x in states]
        q: Floats = self._deployed_table()[step, cells]
        return q

    def policy_rule(self) -> Any:
        """Its values at all cells."""
        return DeployedCells(self.model.settings.grid, self._deployed_table(), self.model.settings.mask)

    def policy_form(self, map_code: str | None = None) -> Form:
        """The best action of each cell."""
        self.require_data(int(samples_in(self.model.store)))
        return grid_table(self.model.settings.grid, self._deployed_table())

    def _deployed_table(self) -> Floats:
        """(H, X, A) Q of the deployed policy, planned again when there are new data."""
        counts = self.model.store
        number = int(samples_in(counts))
        if self._deployed is None or self._deployed[0] != number:
            self._deployed = number, deployed_q(self.model.settings, counts)
        return self._deployed[1]
