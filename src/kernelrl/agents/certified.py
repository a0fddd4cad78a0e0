"""Certificates: bounds on the optimal values, from a bonus with a guarantee (see `kernelrl.agents.guarantees`)."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Agent
from kernelrl.agents.checks import as_environment, positive, whole_number
from kernelrl.agents.evaluation import PolicyGap, policy_gap
from kernelrl.agents.guarantees import Bounds, check_certificate, check_order
from kernelrl.bonuses.smoothed import Bonus
from kernelrl.episodes import verbs
from kernelrl.geometry.metrics import embed
from kernelrl.planning.interface import Planned
from kernelrl.planning.passing import PLAN_ERROR
from kernelrl.stores.interface import has_ended, samples_in, start_states

__all__ = ["CertifiedAgent"]


class CertifiedAgent(Agent, abstract=True):
    """An agent with bounds on the optimal values, if its bonus has a guarantee."""

    bonus: Any

    @property
    def bonus_in_use(self) -> Bonus:
        """The bonus that was given, or the one chosen for "auto"."""
        raise NotImplementedError

    bonus_scale: float
    lipschitz: Any
    _certified: tuple[int, Bounds] | None = None

    def planned_together(self) -> tuple[Planned, Planned]:
        """Lower and upper bounds from all data."""
        raise NotImplementedError

    def reinstate(self, captured: dict[str, Any]) -> None:
        """Also drop the bounds."""
        super().reinstate(captured)
        self._certified = None

    def certificate(self, state: npt.ArrayLike) -> tuple[float, float]:
        """(lower, upper) bounds on V*_1 at `state`, from all data.

        They bound the value of the best policy. They do not bound the value of the policy that this agent deploys,
        which may be below `lower`: `evaluate` estimates it, and `policy_gap` bounds its distance from the best.

        With the bonus `krl.bonuses.Joint(delta)` all bounds of a run, at all states and times, hold together with
        probability 1-δ, provided that the Lipschitz constants are right and, where data are pooled over the steps, that
        the environment does not change with the step. (`Full` is also valid, but so large that the bounds are 0 and H.)
        The bounds are computed at the first call and kept until data change.
        """
        self.check_started()
        check_certificate("certificate", self.bonus_in_use, self.bonus_scale, self.lipschitz)
        x = self.spaces.check_state("state", state)
        bounds, u = self.certified_bounds(), np.zeros(x.size)
        embed(self.model.settings.space, x, u)
        lower, upper = bounds.at(u)
        # The agent's own plan is also an upper bound, up to changes that it has not passed on.
        planned = verbs.read_values(self.handle(), x, 0) + PLAN_ERROR
        upper = float(min(upper, planned))
        check_order(lower, upper, PLAN_ERROR)
        return self.in_own_units(lower, 0), self.in_own_units(upper, 0)

    def policy_gap(
        self, env: gym.Env[Any, Any] | str, episodes: int = 1000, delta: float = 0.05, seed: int = 0
    ) -> PolicyGap:
        """An upper bound on the mean over start states of V*_1(x_1) - V^π(x_1), where π is the policy to deploy.

        It plays `episodes` episodes of π in `env` without learning, and compares each episode's return G with the
        certified upper bound V↑_1 at its start (see `certificate`). Two things must hold:

        - the certificate: V↑_1 ≥ V*_1 everywhere. Over the randomness of learning this has probability 1-δ', where δ'
          is the `delta` of the agent's bonus, under the assumptions named at `certificate`;
        - the sampling: whatever was learnt, with probability 1-`delta` over the episodes played here the mean of
          V↑_1(x_1) - V^π(x_1) lies in `interval`, with half of `delta` for each side.

        So `bound` holds with probability at least 1-δ'-`delta`/2, and the whole result with at least 1-δ'-`delta`.
        The environment must draw its episodes independently. This is for one call: for m calls to hold together, give
        each `delta`/m.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        self.check_started()
        check_certificate("policy_gap", self.bonus_in_use, self.bonus_scale, self.lipschitz)
        assert isinstance(self.reward_range, tuple)  # bonuses with a guarantee have no other
        world, upper = as_environment(env), lambda state: self.certificate(state)[1]
        return policy_gap(self, world, episodes, seed, delta, upper, self.reward_range)

    def certified_bounds(self) -> Bounds:
        """Lower and upper bounds on the optimal values, planned from all data; kept until data change."""
        if isinstance(self.lipschitz, tuple) and has_ended(self.model.store):
            raise ValueError(
                "lipschitz: episodes have terminated, so Q* may jump where they end and L_h does not follow "
                f"from (λ_r, λ_p) = {self.lipschitz}; make the agent with L_h themselves, as a number or an array"
            )
        number = int(samples_in(self.model.store))
        if self._certified is None or self._certified[0] != number:
            self._certified = number, Bounds(*self.planned_together())
        return self._certified[1]

    def check_episodes(self, more: int) -> None:
        """Raise ValueError for more episodes than the bonus is valid for."""
        most = self.bonus_in_use.episodes
        if most is not None and self.episodes + more > most:
            raise ValueError(
                f"episodes: the bonus {self.bonus} holds for {most} episodes, and {self.episodes} have been played; "
                "make the agent with more, or with episodes=None for any number"
            )

    def check_rows(self) -> None:
        """Raise ValueError if the bonus is valid for a number of episodes: rows of a table are no episodes."""
        if self.bonus_in_use.episodes is not None:
            raise ValueError(
                f"table: the bonus {self.bonus} holds for {self.bonus_in_use.episodes} episodes, and rows of a table "
                "come without episodes; make the agent with episodes=None in the bonus, which holds for any number"
            )

    def check_gap(self, until_gap: Any) -> None:
        """Raise ValueError for `until_gap` if there are no certificates."""
        positive("until_gap", until_gap)
        check_certificate("until_gap", self.bonus_in_use, self.bonus_scale, self.lipschitz)

    def gap(self) -> float:
        """The largest gap between certified bounds at recent start states, in the environment's units."""
        starts, slack = start_states(self.model.store), PLAN_ERROR
        return self.certified_bounds().widest(starts, slack) * self.rewards.width
