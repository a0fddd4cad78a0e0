"""The baselines: agents that count in the cells of a grid, or of a partition that adapts itself."""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Agent, Floats
from kernelrl.agents.checks import flag, one_of, positive, whole_number
from kernelrl.agents.kernel import REPLAN
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.adaptive_ql import VALUE, VISITS, leaves, new_adaptive_ql
from kernelrl.algorithms.greedy_ucbvi import new_greedy_ucbvi
from kernelrl.algorithms.opt_ql import new_opt_ql
from kernelrl.algorithms.ucbvi import new_ucbvi
from kernelrl.bonuses.counted import (
    BONUSES,
    Optimism,
    new_optimism,
    width_of_adaptive,
    width_of_optql,
    width_of_ucbvi,
)
from kernelrl.episodes import verbs as interface
from kernelrl.geometry.grid import Grid, box_grid, cell_of, check_bins, check_bounded, check_size, discrete_grid
from kernelrl.stores.counts import plan_without_bonus

__all__ = ["UCBVI", "AdaptiveQL", "GreedyUCBVI", "OptQL", "Partition"]

MOST_DIMENSIONS = 12  # a ball splits into 2^d


class Baseline(Agent, abstract=True):
    """What all baselines share: the bonus, the caps, and the read-outs that need them."""

    hyper_parameters: ClassVar[tuple[str, ...]] = (
        "horizon", "reward_range", "bonus", "bonus_scale", "delta", "total_episodes",
    )  # fmt: skip

    def __init__(
        self, horizon: int | None, reward_range: tuple[float, float] | str, bonus: str, bonus_scale: float,
        delta: float, total_episodes: int | None,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        self.bonus = one_of("bonus", bonus, BONUSES)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.delta = positive("delta", delta)
        if self.delta >= 1:
            raise ValueError(f"delta must be a probability of failure between 0 and 1, such as 0.05; got {delta!r}")
        self.total_episodes = None if total_episodes is None else whole_number("total_episodes", total_episodes, 1)
        if bonus == "hoeffding" and total_episodes is None:
            raise ValueError(
                'total_episodes: bonus="hoeffding" depends on how many episodes will be played; give total_episodes=…'
            )

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        """The factor w of 1/√N in the Hoeffding bonus (see `core.optimism`)."""
        raise NotImplementedError

    def _optimism(self, horizon: int, cells: int, actions: int) -> Optimism:
        width = self._hoeffding_width(horizon, cells, actions) if self.bonus == "hoeffding" else 0.0
        optimism: Optimism = new_optimism(horizon, self.bonus, self.bonus_scale, width)
        return optimism

    def counts(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) visits of the cells that hold `states` (n, d)."""
        return self.read(interface.READ_COUNTS, states, step)

    def bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) exploration bonuses B_h at `states` (n, d)."""
        bonuses: Floats = self.read(interface.READ_BONUSES, states, step) * self.rewards.width
        return bonuses


class GridAgent(Baseline, abstract=True):
    """A baseline on a uniform grid, or on the states of a Discrete space as they are."""

    takes_discrete = True
    hyper_parameters = ("bins", *Baseline.hyper_parameters)

    def __init__(self, bins: Any, *shared: Any) -> None:
        super().__init__(*shared)
        self.bins = check_bins(bins)

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

    _deployed: tuple[int, Floats] | None = None

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_ucbvi(horizon, cells, actions, self.total_episodes, self.delta))

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) actions of the best policy of the estimated environment, without bonus."""
        counts, V, settings = self.model.counts, self.model.V, self.model.settings
        number = int(counts.number[1])
        if self._deployed is None or self._deployed[0] != number:
            Q = np.zeros((self.spaces.horizon, V.shape[1], self.spaces.actions))
            plan_without_bonus(counts, settings.units, np.zeros_like(V), Q)
            self._deployed = number, Q
        cells = [int(cell_of(settings.grid, x)) for x in states]
        return np.asarray(self._deployed[1][step, cells].argmax(axis=1), np.int64)


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


class GreedyUCBVI(CountingAgent):
    """Greedy-UCBVI (Efroni et al. 2019) on a uniform grid: UCBVI with one step of planning at each visited cell.

    The arguments are those of `UCBVI` except `replan` and `minimum`.
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "stationary")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        stationary: bool = True, bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05,
        total_episodes: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes)
        self.stationary = flag("stationary", stationary)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Tables of nothing but optimism."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        optimism = self._optimism(horizon, grid.cells, actions)
        return new_greedy_ucbvi(horizon, actions, self.stationary, self.rewards.units, grid, optimism, stream)


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
    """

    hyper_parameters = (*GridAgent.hyper_parameters, "bonus_place")

    def __init__(
        self, *, bins: Any = None, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus_place: str = "target", bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05,
        total_episodes: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(bins, horizon, reward_range, bonus, bonus_scale, delta, total_episodes)
        self.bonus_place = one_of("bonus_place", bonus_place, ("target", "after"))

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_optql(horizon, cells, actions, self.total_episodes, self.delta))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Tables of nothing but optimism."""
        grid, horizon, actions = self._grid(spaces), spaces.horizon, spaces.actions
        optimism = self._optimism(horizon, grid.cells, actions)
        after = self.bonus_place == "after"
        return new_opt_ql(horizon, actions, after, self.rewards.units, grid, optimism, stream)


class Partition(NamedTuple):
    """The balls that the box of states is divided into, for one step and action."""

    low: Floats
    """(n, d) lower corners."""
    high: Floats
    """(n, d) upper corners."""
    q_values: Floats
    """(n,) Q_h of each ball."""
    visits: Floats
    """(n,) visits of each ball, those of the balls it came from included."""


class AdaptiveQL(Baseline):
    """Adaptive Q-learning (Sinclair et al. 2019): Q-learning on a partition that is finer where there are more visits.

    There is one partition of the box of states for each step and action. A ball of depth k, of radius 2^-k in units of
    the box, splits when it has 4^k visits.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        bonus: "simplified", s·(1/√n + R_h/n), where R_h is the number of steps left; "hoeffding",
            s·(2·√(H³·log(4·H·K/δ)) + 4·L)/√n with K = total_episodes and L = lipschitz.
        bonus_scale: the factor s.
        delta: δ, the probability of failure in the Hoeffding bonus.
        total_episodes: the number of episodes to be played, for the Hoeffding bonus only.
        lipschitz: L, by how much Q can differ across the box, for the Hoeffding bonus only.
    """

    hyper_parameters = (*Baseline.hyper_parameters, "lipschitz")

    def __init__(
        self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05, total_episodes: int | None = None,
        lipschitz: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range, bonus, bonus_scale, delta, total_episodes)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz, zero=True)
        if bonus == "hoeffding" and lipschitz is None:
            raise ValueError('lipschitz: bonus="hoeffding" depends on the Lipschitz constant of Q; give lipschitz=…')

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_adaptive(horizon, self.total_episodes, self.delta, self.lipschitz, 1.0))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """One ball for each step and action."""
        low, high, horizon, actions = spaces.low, spaces.high, spaces.horizon, spaces.actions
        check_bounded(low, high, "AdaptiveQL")
        if low.size > MOST_DIMENSIONS:
            raise ValueError(
                f"observation_space: a ball splits into 2^d, so states may have {MOST_DIMENSIONS} dimensions at most; "
                f"got {low.size}"
            )
        optimism = self._optimism(horizon, 1, actions)
        return new_adaptive_ql(horizon, actions, self.rewards.units, low, high, optimism, stream)

    def partition(self, step: int, action: int) -> Partition:
        """The balls of a step (from 0) and an action, for plotting."""
        model, spaces = self.check_started(), self.spaces
        h, a = spaces.check_step(step), spaces.check_action(action)
        corners, sides, numbers = leaves(model, h * spaces.actions + a)
        width = spaces.high - spaces.low
        low = spaces.low + width * corners
        high = spaces.low + width * (corners + sides[:, None])
        values = self.in_own_units(model.balls[numbers, VALUE], h)
        return Partition(low, high, values, model.balls[numbers, VISITS])
