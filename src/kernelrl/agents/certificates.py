"""Certificates from a declared model: `krl.certify` for logged data, `agent.certify`, and what both return.

The lower bound is one on V*, the value of the best policy. It does not bound the value of a policy that is greedy in
it, or of any policy that an agent deploys: `policy_gap` does, by playing that policy.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.checks import as_environment, flag, flag_or_none, positive, whole_number
from kernelrl.agents.evaluation import PolicyGap, check_delta, policy_gap
from kernelrl.agents.exogenous import check_sizes, finer_net, net_bins, plan_rows
from kernelrl.agents.reward_range import RewardRange, check_range
from kernelrl.agents.rows import Rows, check_order, played_actions, rows_of
from kernelrl.agents.spaces import Spaces
from kernelrl.agents.tables import read_table
from kernelrl.certifying.declaration import Declaration, check_displacements
from kernelrl.certifying.making import Plan, Problem, Transitions, check_cells, plan_cells, range_of
from kernelrl.certifying.noise_test import check_noise
from kernelrl.certifying.recovered import Recovered
from kernelrl.certifying.refined import RefinedPlan, check_refined, plan_refined
from kernelrl.envs.wrapping import time_limit
from kernelrl.models.displacement import NOISY, Displacement
from kernelrl.models.exogenous import Exogenous

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Certificate", "certify", "certify_agent"]

Floats = npt.NDArray[np.float64]
Model = Displacement | Exogenous


@dataclass(frozen=True, eq=False)
class Certificate:
    """Bounds on the optimal values at all states and steps, which hold together with probability 1-δ.

    They hold if what the model declares is true. All values are in the environment's units.
    """

    model: Model
    """What was declared."""
    delta: float
    """δ."""
    cells: tuple[tuple[float, ...], ...]
    """The sides of cells that were taken in each room; they divide its widths."""
    reward_range: tuple[float, float]
    """The lowest and the highest reward."""
    spaces: Spaces = field(repr=False)
    plan: Plan = field(repr=False)
    starts: Floats = field(repr=False)
    """(s, d) the states in which episodes began; all states of the data, where their steps are not known."""
    steps: npt.NDArray[np.int64] = field(repr=False)
    """(n,) the step of each transition."""

    def bounds(self, state: npt.ArrayLike, step: int = 0) -> tuple[Any, Any]:
        """(lower, upper) bounds on V* at `state` and `step` (from 0); arrays (n,) for several states (n, …)."""
        h, given = self.spaces.check_step(step), np.asarray(state, np.float64)
        one = given.shape == self.spaces.shape
        lower, upper = self.at(self.spaces.check_states(given[None] if one else given, "state"), h)
        return (float(lower[0]), float(upper[0])) if one else (lower, upper)

    def at(self, states: Floats, step: int) -> tuple[Floats, Floats]:
        """The bounds at states (n, d)."""
        low, high = self.reward_range
        left = low * (self.spaces.horizon - step)
        lower, upper = self.plan.at(states, step)
        return lower * (high - low) + left, upper * (high - low) + left

    @property
    def gap(self) -> float:
        """The largest distance of the bounds at `starts`."""
        lower, upper = self.at(self.starts, 0)
        return float((upper - lower).max())

    @property
    def refined(self) -> bool:
        """Whether they are the better ones of bounds on cells and between the corners of cells (`refine=True`)."""
        return isinstance(self.plan, RefinedPlan)

    @property
    def kept(self) -> npt.NDArray[np.int64]:
        """(A,) how many samples of each action, or of those near each of the net, count; those near walls do not."""
        samples = self.plan.samples
        return np.bincount(samples.actions[samples.kept], minlength=self.spaces.actions)

    @property
    def censored(self) -> npt.NDArray[np.int64]:
        """(A,) how many of these say nothing: their displacement, or their noise, is not known."""
        samples = self.plan.samples
        return np.bincount(samples.actions[samples.kept & samples.censored], minlength=self.spaces.actions)

    def check_declaration(self) -> Declaration:
        """Whether displacements, or noise, differ between regions more than chance allows: a test at level 1 %."""
        spaces, samples = self.spaces, self.plan.samples
        given = spaces.low, spaces.high, spaces.actions
        if isinstance(samples, Recovered):
            assert isinstance(self.model, Exogenous)
            return check_noise(self.model, samples, *given, spaces.horizon, self.reward_range)
        assert isinstance(self.model, Displacement)
        return check_displacements(self.model, samples, *given, self.steps, spaces.horizon)

    def policy_gap(
        self, agent: Agent, env: gym.Env[Any, Any] | str, episodes: int = 10_000, delta: float = 0.05, seed: int = 0
    ) -> PolicyGap:
        """An upper bound on the mean over start states of V*_1(x_1) - V^π(x_1), where π is the policy of `agent`.

        It plays `episodes` episodes of the policy to deploy in `env` without learning. `bound` holds with probability
        1-δ-`delta`/2, with the certificate's δ.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        agent.check_started()
        if agent.spaces.horizon != self.spaces.horizon:
            raise ValueError(
                f"agent: its episodes have {agent.spaces.horizon} steps, and the certificate is for "
                f"{self.spaces.horizon}"
            )
        return policy_gap(
            agent, as_environment(env), episodes, seed, delta,
            lambda state: self.bounds(state)[1], self.reward_range,
        )  # fmt: skip


def certify(
    table: Any, model: Model, *, env: gym.Env[Any, Any] | str | None = None, horizon: int | None = None,
    actions: int | None = None, reward_range: tuple[float, float] | None = None, delta: float = 0.05,
    cell: float = 0.005, refine: bool = False, ignore: Iterable[str] = (), progress: bool | None = None,
) -> Certificate:  # fmt: skip
    """Bounds on the optimal values from logged transitions and a declaration of how the system moves.

    Args:
        table: the transitions in order of time, as `Agent.learn_from` takes them (docs/logged_data.md).
        model: what is declared, a `krl.models.Displacement` or `krl.models.Exogenous`.
        env: an environment or its id, for its spaces and its number of steps; no episode is played.
        horizon: the number of steps of an episode; None: the time limit of `env`.
        actions: how many actions there are, 0 … actions-1, where no `env` is given.
        reward_range: the lowest and the highest reward that can be. Noisy rewards need it. For deterministic ones it
            is found from their Lipschitz constant, and bounds are tighter where it is known; a known function has it.
        delta: all bounds hold together with probability 1-`delta`.
        cell: the side of cells; smaller ones give tighter bounds, and take more time and memory.
        refine: also plan bounds between the corners of cells, and take the better ones: tighter from some thousand
            episodes on, for about twice the time. Not with `variation` or noisy rewards.
        ignore: names of other columns that the table may have.
        progress: shows a bar on standard error; None shows it only on a terminal.
    """
    check_model(model)
    progress = flag_or_none("progress", progress)
    given = None if reward_range is None else check_pair(reward_range)
    rows, spaces, played = read_rows(table, model, env, horizon, actions, cell, ignore)
    return of_rows(rows, model, spaces, given, delta, cell, progress, refine, played)


def read_rows(
    table: Any, model: Model, env: Any, horizon: Any, actions: Any, cell: float, ignore: Iterable[str] = ()
) -> tuple[Rows, Spaces, Any]:
    """The transitions of a table, the spaces that they are in, and actions as they were; see `certify`."""
    spaces = spaces_of(model, env, horizon, actions, positive("cell", cell))
    rows, played = checked_rows(table, model, spaces, ignore)
    return rows, spaces, played


def checked_rows(table: Any, model: Model, spaces: Spaces, ignore: Iterable[str] = ()) -> tuple[Rows, Any]:
    """The transitions of a table in these spaces, and actions as they were."""
    columns = read_table(table, ignore)
    rows = rows_of(Reader(spaces, RewardRange.of("auto")), columns)
    if "step" in columns.columns and columns.episode is not None:
        check_order(columns.episode, rows, spaces.low, spaces.high)
    return rows, played_actions(columns, spaces) if isinstance(model, Exogenous) else rows.actions


def certify_agent(
    agent: Agent, model: Model, delta: float, cell: float, reward_range: tuple[float, float] | None,
    progress: bool | None, refine: bool = False, transitions: Any = None,
) -> Certificate:  # fmt: skip
    """What `agent.certify` returns."""
    check_model(model)
    agent.check_started()
    progress = flag_or_none("progress", progress)
    check_no_mask(agent)
    own = agent.reward_range
    given = check_pair(reward_range) if reward_range is not None else None if isinstance(own, str) else own
    if transitions is None:
        rows, played = agent.kept_transitions(), None
    else:
        rows, played = checked_rows(transitions, model, agent.spaces)
    if rows is None:
        raise ValueError(
            f"certify: this {type(agent).__name__} does not keep its transitions; record them by history = fit(…, "
            "transitions=True), and give them: agent.certify(model, transitions=history.transitions)"
        )
    return of_rows(rows, model, agent.spaces, given, delta, cell, progress, refine, played)


def of_rows(
    rows: Rows, model: Model, spaces: Spaces, given: tuple[float, float] | None, delta: float, cell: float,
    progress: bool | None, refine: bool = False, played: Any = None,
) -> Certificate:  # fmt: skip
    """The certificate from checked transitions; `played` are actions as they were. None: an agent's, of its net."""
    check_possible(model, spaces, given, delta, cell, refine)
    if isinstance(model, Exogenous):
        spaces, rows, played = finer_net(model, spaces, rows, cell, played)
        return made_of_noise(rows, played, model, spaces, given, delta, cell, progress)
    return made(rows, model, spaces, given, delta, cell, progress, refine)


@dataclass(frozen=True)
class Reader:
    """What reading a table must know."""

    spaces: Spaces
    rewards: RewardRange

    def needs_step(self) -> bool:
        """Whether rows need their step: the law of displacements is that of all steps."""
        return False


def check_model(model: Any) -> None:
    """Raise TypeError for anything but a declared model."""
    if not isinstance(model, Model):
        raise TypeError(
            f"model must be a declaration, krl.models.Displacement(…) or krl.models.Exogenous(…), got {model!r:.80}"
        )


def check_no_mask(agent: Agent) -> None:
    """Raise ValueError for an agent with a mask: its best value is that of the allowed actions, which may be lower."""
    if agent.mask is not None:
        raise ValueError(
            "certify: the agent has a mask, and bounds are on the best value of all actions, which may be higher than "
            "that of the allowed ones; krl.certify(history.transitions, model, env=…) bounds the former"
        )


def check_possible(
    model: Model, spaces: Spaces, given: tuple[float, float] | None, delta: float, cell: float, refine: bool = False
) -> None:
    """Refuse, before there are data, what cannot be certified, and cells that are too small."""
    check_delta(delta)
    cell = positive("cell", cell)
    if flag("refine", refine):
        check_refined(model)
    if spaces.discrete:
        raise TypeError("certify: states must be those of a Box; a Discrete space has no cells")
    if given is None and (isinstance(model, Exogenous) or model.reward == NOISY):
        raise ValueError(
            "reward_range: bounds need the lowest and the highest reward that can be, and those seen so far need not "
            "be these; give reward_range=(lowest, highest): to the agent, to krl.certify, or in the model's file"
        )
    if isinstance(model, Exogenous):
        check_sizes(model, spaces, cell)
        return
    if spaces.net is not None:
        raise TypeError(
            "certify: with displacements certificates are for Discrete actions; bounds on a net of actions are not "
            "bounds on all. krl.models.Exogenous takes continuous actions"
        )
    unit = Problem(spaces.low, spaces.high, spaces.actions, spaces.first_action, spaces.horizon, (0.0, 1.0))
    check_cells(model, unit, cell, refine)


def check_pair(given: Any) -> tuple[float, float]:
    """`reward_range` as a pair."""
    found = check_range(given)
    if isinstance(found, str):
        raise ValueError("reward_range: bounds need numbers (lowest, highest) that do not depend on the data")
    return found


def spaces_of(model: Model, env: Any, horizon: Any, actions: Any, cell: float) -> Spaces:
    """The spaces of an environment, or those of the rooms and so many actions."""
    if env is not None:
        world = as_environment(env)
        steps = time_limit(world) if horizon is None else whole_number("horizon", horizon, 1)
        if steps is None:
            raise ValueError("horizon: the environment has no time limit, so the number of steps must be given")
        if isinstance(model, Exogenous):
            bins = net_bins(model, world.action_space, cell)
            return Spaces.of(world.observation_space, world.action_space, steps, takes_discrete=False, bins=bins)
        if not isinstance(world.action_space, gym.spaces.Discrete):
            raise TypeError(
                f"env: certificates are for Discrete actions, and this has {world.action_space}: bounds on a net of "
                "actions are not those on all"
            )
        return Spaces.of(world.observation_space, world.action_space, steps, takes_discrete=False)
    if isinstance(model, Exogenous):
        raise ValueError("env: give an environment, or its id, for its states, actions and number of steps")
    if model.rooms is None or horizon is None or actions is None:
        raise ValueError(
            "env: give an environment, or its id, or else the rooms of the model, horizon=… and actions=…, the number "
            "of actions: bounds on V* must know of those that were never tried"
        )
    low = np.min([low for low, _ in model.rooms], axis=0)
    high = np.max([high for _, high in model.rooms], axis=0)
    box = gym.spaces.Box(low, high, dtype=np.float64)  # type: ignore[arg-type]
    number = whole_number("actions", actions, 1)
    return Spaces.of(box, gym.spaces.Discrete(number), whole_number("horizon", horizon, 1), takes_discrete=False)


def made(
    rows: Rows, model: Displacement, spaces: Spaces, given: tuple[float, float] | None, delta: float, cell: float,
    progress: bool | None, refine: bool = False,
) -> Certificate:  # fmt: skip
    """The certificate of displacements from checked rows."""
    if rows.terminated.any():
        raise ValueError(
            f"terminated: row {int(np.argmax(rows.terminated))} (the first is 0) ends its episode, and the declaration "
            "does not say where episodes end; krl.models.Exogenous(…, absorbing=[(low, high), …]) can"
        )
    names = [spaces.first_action + a for a in range(spaces.actions)]
    transitions = Transitions(rows.states, rows.actions, rows.rewards, rows.next_states)
    reward_range, share = range_of(model, given, spaces.low, spaces.high, names, transitions, spaces.horizon)
    if not callable(model.reward):  # a function gives mean rewards, which those of the data may be far from
        check_rewards(rows.rewards, reward_range)
    problem = Problem(spaces.low, spaces.high, spaces.actions, spaces.first_action, spaces.horizon, reward_range)
    plan = (plan_refined if refine else plan_cells)(model, problem, transitions, share * delta, cell, progress)
    starts = starts_of(rows)
    if not len(starts):
        starts = np.array([low for low, _ in model.boxes(spaces.low, spaces.high)])
    return Certificate(model, delta, plan.cells.sides, reward_range, spaces, plan, starts, rows.steps)


def made_of_noise(
    rows: Rows, played: Any, model: Exogenous, spaces: Spaces, given: tuple[float, float] | None, delta: float,
    cell: float, progress: bool | None,
) -> Certificate:  # fmt: skip
    """The certificate of a system with exogenous noise; `played` are the actions as they were."""
    assert given is not None  # checked by check_possible
    check_rewards(rows.rewards, given)
    plan = plan_rows(model, spaces, rows, played, given, delta, cell, progress)
    starts = starts_of(rows)
    starts = starts if len(starts) else spaces.low[None]
    return Certificate(model, delta, plan.cells.sides, given, spaces, plan, starts, rows.steps)


def starts_of(rows: Rows) -> Floats:
    """(s, d) the states in which episodes began; all states, where their steps are not known."""
    began = rows.steps == 0
    return np.unique(rows.states[began] if began.any() else rows.states, axis=0)


def check_rewards(rewards: Floats, reward_range: tuple[float, float]) -> None:
    """Raise ValueError for a reward outside the range."""
    floor, ceiling = RewardRange.of(reward_range).limits
    outside = (rewards < floor) | (rewards > ceiling)
    if outside.any():
        row = int(np.argmax(outside))
        raise ValueError(
            f"reward_range: row {row} (the first is 0) has the reward {rewards[row]!r}, outside {reward_range}; give a "
            "range with every reward that can be"
        )
