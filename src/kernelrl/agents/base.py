"""`Agent`: the Python class behind every agent.

It holds the hyper-parameters, checks arguments, and calls the compiled functions of its algorithm (see
`kernelrl.episodes.verbs`). Its parts are in other files:

    hooks         what subclasses give or change, and what their methods can use
    spaces        states, actions and steps, and their checks
    reward_range  the range of rewards and its units
    fitting       what `fit` does around the episode loop;  recovery: back to the last whole episode
    episode       the open episode of an agent that is driven by hand;  rigs: several of them
    logged        what `learn_from` does with the rows of a table
    evaluation    plays the policy to deploy;  exporting: writes it as C or JSON
    explaining    why an action is played;  evidence: the data of kernel agents behind it
    certificates  bounds on V* from a declared model;  stopping: when bounds are tight enough for `fit`
    forecasting   simulates what more episodes would be worth
    saving, restoring            agents in files;  classes: their classes by name
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Self

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.advice import Evaluated
from kernelrl.agents.callbacks import Callbacks
from kernelrl.agents.checks import as_environment, flag, flag_or_none, whole_number
from kernelrl.agents.classes import register
from kernelrl.agents.episode import Episode, Running, Snapshot, leave_unused
from kernelrl.agents.evaluation import Evaluation, evaluate
from kernelrl.agents.explaining import Explanation, explain
from kernelrl.agents.exporting import Exported, export
from kernelrl.agents.fitting import budget_of, fit
from kernelrl.agents.forecasting import Forecast, forecast
from kernelrl.agents.history import History
from kernelrl.agents.hooks import Hooks, tells_policy
from kernelrl.agents.logged import learn_from
from kernelrl.agents.masking import allowed_at, choose_at, try_mask
from kernelrl.agents.predicting import predict
from kernelrl.agents.recovery import Recovery
from kernelrl.agents.restoring import read_range
from kernelrl.agents.reward_range import RewardRange, check_range
from kernelrl.agents.rigs import OpenEpisode, Rigs, open_episode
from kernelrl.agents.saving import save
from kernelrl.agents.spaces import Spaces
from kernelrl.agents.stopping import gap_of
from kernelrl.envs.wrapping import time_limit
from kernelrl.episodes import verbs
from kernelrl.episodes.checks import as_flag, as_reward
from kernelrl.episodes.masked import choose_allowed
from kernelrl.episodes.policy import Policy, new_policy
from kernelrl.jit.owning import owned
from kernelrl.jit.stream import new_stream

if TYPE_CHECKING:
    from kernelrl.agents.certificates import Certificate

__all__ = ["Agent"]

Floats = npt.NDArray[np.float64]


class Agent(Hooks):
    """What all agents can do. Use a subclass, such as `kernelrl.KernelUCBVI`, or write one (docs/extending.md).

    A subclass's constructor takes hyper-parameters by name, stores each as an attribute of that name, and passes
    `horizon` and `reward_range` to `super().__init__`. The class must have

        hyper_parameters    the names of the constructor's arguments, for `repr`, `save` and `load`
        new_model           makes the algorithm's NamedTuple, for which the verbs of `kernelrl.verbs` are implemented

    and may override the defaults of

        takes_discrete      whether states may be those of a Discrete space
        deployed_q          the values that the policy to deploy maximises, or
        deployed_actions    its actions themselves, with deployed_among for its actions under masks
        policy_rule         the same for `policy`, that is, for compiled code
        policy_form         the same for `export`, that is, as tables
        deployed_worth      its values in the environment's units, for `explain`, and explained_bonuses, evidence_at,
                            explained_notes, tried, plays_at_random
        before_episodes     changes of the model between episodes
        check_episodes      rejects more episodes than the algorithm is made for
        needs_step          whether rows of a table need their step;  check_rows rejects tables
        before_rows, between_rows, after_rows      changes of the model around the rows of a table
        rescaled            the model in other units of reward
        keeps_promises      whether a reward outside a range given by the user is an error
        to_store            the state that is not in the model, for files
        capture, reinstate  copies of the state, for going back to the last whole episode
        kept_transitions    the transitions so far, for `forecast`
        check_gap, gap      certificates, for `fit(…, until_gap=…)`

    Its methods can use `check_started`, `read`, `in_own_units` and, once the agent has been started,

        model       the algorithm's NamedTuple; None before
        spaces      a `Spaces`: low, high (d,), actions, horizon, …, and checks of states, actions and steps
        rewards     the current `RewardRange`: low, high, width, and units, by which the algorithm maps rewards
        outside     the lowest and the highest reward of the running episode outside that range, or None
        free_steps  how many steps of the running episode, from the first on, had a reward of 0 and no termination
        episodes    how many episodes have been played
        seed        the seed of its random numbers and its episodes
        env_id      the id of the environment that it learnt in last, and action_names, if known; not saved
        stored      for an agent loaded from a file, the file's state, including what `to_store` gave; else {}
    """

    def __init_subclass__(cls, abstract: bool = False) -> None:
        """Register the class for `load`, unless it is `abstract`, that is, only a base of other classes."""
        if not abstract:
            register(cls)

    def __init__(self, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto") -> None:
        self.horizon = None if horizon is None else whole_number("horizon", horizon, 1)
        self._reward_range = check_range(reward_range)
        self._warned_of_range = False
        self.rewards = RewardRange.of(self._reward_range)
        self.outside: tuple[float, float] | None = None
        self.free_steps = 0
        self.recovery: Recovery | None = None  # what `fit` keeps for its next call
        self.running: Running | None = None  # the open episode of a loop of one's own
        self.rigs: Rigs | None = None  # several open episodes, each with a handle of its own
        self.numbers = 0  # above the numbers of all episodes that had handles, except abandoned ones
        self.only_looked_at = False  # while a callback of `fit` runs
        self.model: Any = None
        self._handed_over: tuple[Any, Any] = None, None
        self.seed = 0
        self.episodes = 0
        self.stored: dict[str, Any] = {}
        self.evaluated: list[Evaluated] = []  # what `evaluate` found so far
        self.env_id: str | None = None
        self.action_names: tuple[str, ...] = ()

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The agent as in the paper's text or as in its analysis: see `kernelrl.agents.presets`."""
        from kernelrl.agents import presets

        return cls(**{**presets.options(cls.__name__, name), **changes})

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.hyper_parameters)
        return f"{type(self).__name__}({settings})"

    # ---------------------------------------------------------------------------------------- settings, units of reward

    @property
    def reward_range(self) -> tuple[float, float] | str:
        """The range of rewards as given by the user: "auto", or a pair (lowest, highest).

        It cannot be changed once the agent has been started. `settings_used()["reward_range"]` is the current range.
        """
        return self._reward_range

    @reward_range.setter
    def reward_range(self, given: tuple[float, float] | str) -> None:
        if self.model is not None:
            raise AttributeError(
                "reward_range cannot be changed once the agent has been started: it widens by itself when a reward "
                "lies outside; make a new agent to begin with another"
            )
        self._reward_range = check_range(given)

    def settings_used(self) -> dict[str, Any]:
        """The hyper-parameters in use: those given, and those that the agent chose or changed itself."""
        self.check_started()
        used = {name: getattr(self, name) for name in self.hyper_parameters}
        return used | {"horizon": self.spaces.horizon, "reward_range": (self.rewards.low, self.rewards.high)}

    def widen(self, lowest: float, highest: float) -> None:
        """Widen the range to include these rewards, and convert everything learnt to the new units."""
        before = self.rewards
        self.rewards, keep = before.widened(lowest, highest)
        if self.rewards != before:
            self.model = self.rescaled(keep)
        if before.given and not self._warned_of_range:  # last, since warnings may be turned into errors
            self._warned_of_range = True
            before.warn(lowest, highest, stacklevel=4)

    # ------------------------------------------------------------------------------------------------ driving by hand

    def start(
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int, seed: int | None = None
    ) -> None:
        """Prepare for episodes of `horizon` steps in these spaces; `fit` does this itself."""
        if self.model is not None:
            raise RuntimeError("this agent has been started already: make a new one to begin again")
        spaces = Spaces.of(observation_space, action_space, horizon, self.takes_discrete, self._bins())
        if self.horizon is not None and spaces.horizon != self.horizon:
            raise ValueError(f"horizon: the agent was made for {self.horizon} steps, got {spaces.horizon}")
        seed = whole_number("seed", secrets.randbits(32) if seed is None else seed, 0)
        if seed >= 2**63:
            raise ValueError(f"seed must be below 2**63, got {seed}")
        strict = self.keeps_promises()
        if "reward_range" in self.stored:
            self.rewards = read_range(self.stored["reward_range"], self._reward_range, strict)
        else:
            self.rewards = RewardRange.of(self._reward_range, strict)
        if self.mask is not None:
            try_mask(self.mask, spaces)
        model = self.new_model(spaces, new_stream(seed))
        self._check_model(model)
        self.spaces, self.seed = spaces, seed
        self.model = model  # last: an agent that could not be started is unchanged

    def _bins(self) -> Any:
        """`action_bins`, or how many there were where the agent comes from a file."""
        net = self.stored.get("action_net")
        return self.action_bins if net is None else tuple(max(2, n) for n in net["bins"])

    def get_ready(self, env: gym.Env[Any, Any], seed: int | None = None) -> None:
        """Start for `env`, or check that `env` and `seed` are those the agent was started with."""
        if self.model is None:
            horizon = self.horizon or time_limit(env)
            if horizon is None:
                raise ValueError(
                    "horizon: the environment has no time limit, so the number of steps must be given: "
                    f"{type(self).__name__}(horizon=…), or gymnasium.wrappers.TimeLimit(env, steps)"
                )
            self.start(env.observation_space, env.action_space, horizon, seed)
            self._note(env)
            return
        if seed is not None and seed != self.seed:
            raise ValueError(
                f"seed: this agent goes on with seed {self.seed}, got {seed}; leave seed out, or make a new agent"
            )
        self.spaces.check_same(env)
        self._note(env)

    def _note(self, env: gym.Env[Any, Any]) -> None:
        """Remember what the environment and its actions are called."""
        names = getattr(env.unwrapped, "action_names", ())
        self.env_id = None if env.spec is None else env.spec.id
        self.action_names = tuple(map(str, names)) if len(names) == self.spaces.actions else ()

    @property
    def episode(self) -> Episode | None:
        """The open episode of a loop of one's own: its step, state and chosen action; None if there is none."""
        return None if self.running is None else self.running.shown(self)

    def begin_episode(self) -> None:
        """Begin an episode. One that is still open is left behind: what was told stays learnt but is not counted."""
        self.check_started()
        self._check_may_learn("begin_episode")
        self._check_alone("begin_episode")
        self.check_episodes(1)
        rigs = self.rigs  # their episodes share one snapshot
        before = rigs.before if rigs is not None and rigs.acting else Snapshot.of(self)
        self.recovery = None
        if rigs is None or not rigs.open:  # else settings change when one of the others ends
            self.before_episodes(1)
        self.free_steps = 0
        verbs.begin_episode(self.handle())
        self.running = Running(before)

    def choose(self, state: npt.ArrayLike, step: int, mask: npt.ArrayLike | None = None) -> Any:
        """The action of the learning policy in `state` at `step` (from 0): an int, or an array like the Box's.

        With a `mask` (A,), True for each allowed action, it is the best of those that the agent's own mask allows,
        too. In an open episode, asking again for the same state, step and mask gives the same action until its result
        is told by `observe`.
        """
        self.check_started()
        self._check_alone("choose")
        spaces, running = self.spaces, self.running
        x, h = spaces.check_state("state", state), spaces.check_step(step)
        allowed = None if mask is None else allowed_at(self, x[None], spaces.check_mask(mask)[None])[0]
        action = None if running is None else running.chosen(x, h, allowed)
        if action is None:
            action = choose_at(self, x, h) if allowed is None else choose_allowed(self.handle(), x, h, allowed)
            if running is not None:
                running.choose(x, h, allowed, action)
        return spaces.action(action)

    def observe(
        self, state: npt.ArrayLike, action: Any, reward: float, next_state: npt.ArrayLike, step: int,
        terminated: bool = False,
    ) -> None:  # fmt: skip
        """Learn from one transition; `terminated` means that nothing can be collected after it.

        A continuous action counts as the nearest one in the net (`action_net`), from which `choose` takes its own.
        """
        model, spaces = self.check_started(), self.spaces
        x = spaces.check_state("state", state)
        h = spaces.check_step(step)
        a = spaces.check_action(action)
        y, r, ends = self.check_result(reward, next_state, terminated)
        self._check_may_learn("observe")
        self._check_alone("observe")
        if not self.rewards.holds(r):
            low, high = self.outside or (r, r)
            self.outside = min(low, r), max(high, r)
        self.recovery = None
        self.free_steps += self.free_steps == h and r == 0.0 and not ends
        if not verbs.has_room(self.handle()):
            self.model = verbs.grow(model)
        verbs.observe(self.handle(), x, a, r, y, h, ends)
        if self.running is not None:
            self.running.observe(y, h, ends, spaces.horizon)

    def check_result(self, reward: Any, next_state: npt.ArrayLike, terminated: Any) -> tuple[Floats, float, bool]:
        """The next state (d,), the reward and the flag of a transition, or an error that names what is wrong."""
        y = self.spaces.check_state("next_state", next_state)
        r, ends = as_reward(reward), as_flag(terminated, "terminated")
        if ends and not self.rewards.holds_zero:
            raise self.rewards.end_error()
        if self.rewards.strict and not self.rewards.holds(r):
            raise self.rewards.outside_error(r)
        return y, r, ends

    def end_episode(self) -> None:
        """End the open episode."""
        self.check_started()
        self._check_alone("end_episode")
        if self.running is None:
            raise RuntimeError("end_episode: no episode is open; begin_episode() opens one")
        verbs.end_episode(self.handle())
        self.recovery = self.running = None
        self.episodes += 1
        if self.free_steps == self.spaces.horizon and self.rewards.hoped_for > 0.0:
            self.outside = 0.0, self.rewards.hoped_for
        self.free_steps = 0
        if self.outside is not None:
            outside, self.outside = self.outside, None
            self.widen(*outside)

    def abandon_episode(self) -> None:
        """Make the agent what it was before the open episode: the episode has never begun, and nothing was learnt."""
        self.check_started()
        self._check_alone("abandon_episode")
        if self.running is None:
            raise RuntimeError("abandon_episode: no episode is open, so there is nothing to abandon")
        self.running.before.put_back(self)
        self.running = None

    def open_episode(self) -> OpenEpisode:
        """Open one of several episodes at once, for several devices; it has `choose`, `observe`, `end` and `abandon`.

        Actions of other open episodes whose results are not known yet count as visits (docs/own_loop.md).
        """
        self.check_started()
        self._check_may_learn("open_episode")
        leave_unused(self, "open_episode")
        return open_episode(self)

    @property
    def open_episodes(self) -> tuple[int, ...]:
        """The numbers of the episodes that `open_episode` opened and that have not ended."""
        return () if self.rigs is None else tuple(self.rigs.open)

    def open_episode_number(self, number: int) -> OpenEpisode:
        """The open episode of that number, for instance after loading."""
        if self.rigs is None or number not in self.rigs.open:
            raise ValueError(f"number must be one of the open episodes {list(self.open_episodes)}, got {number!r}")
        return OpenEpisode(self, self.rigs.open[number])

    def _check_may_learn(self, what: str) -> None:
        """Raise RuntimeError if the call comes from a callback of `fit`."""
        if self.only_looked_at:
            raise RuntimeError(
                f"{what}: a callback must not let the agent learn; use a copy, such as copy.deepcopy(agent), or do it "
                "after fit"
            )

    def _check_alone(self, what: str) -> None:
        """Raise RuntimeError if episodes with handles are open, unless the call comes from one of them."""
        if self.rigs is not None and not self.rigs.acting:
            raise RuntimeError(
                f"{what}: episodes {list(self.open_episodes)} are open, each with a handle of its own "
                "(open_episode_number gives it); use these, or end or abandon them first"
            )

    # ------------------------------------------------------------------------------------------- fitting and evaluating

    def fit(
        self, env: gym.Env[Any, Any] | str, episodes: int | None = None, *, steps: int | None = None,
        seed: int | None = None, driver: str = "auto",
        progress: bool | None = None, until_gap: float | None = None, model: Any = None, delta: float | None = None,
        cell: float | None = None, refine: bool = False, monitor: Any = None, transitions: bool = False,
        callback: Any = None, every: int = 100,
    ) -> History:  # fmt: skip
        """Play `episodes` episodes in `env`, an environment or its id, and learn; call it again to continue.

        With `steps` in place of `episodes`, the call ends with the episode in which that number of steps is reached.

        `driver` is "compiled" (a `krl.envs.CompiledEnv`, in no wrappers but those that `gym.make` adds), "python" (any
        environment) or "auto".
        `progress` shows a bar on standard error; None shows it only on a terminal. Ctrl-C ends the call after the
        running episode and keeps everything learnt; a second Ctrl-C raises KeyboardInterrupt at once.

        `until_gap` ends the call when `certificate` is tighter than that at the start states of the last 32 episodes
        (checked from episode 16 on, each time their number has grown by an eighth). With a declared `model` it is the
        gap of `certify(model, delta, cell, refine=refine)`, by default 0.05, 0.005 and False, which every agent has:
        checked from episode 64 on, each time their number has grown by a quarter, and at the end, since each check
        takes a plan. The last certificate is `history.certificate` (docs/certificates.md). `monitor`, a function
        (states, step) → V*_h such as `krl.envs.solve(env).values`, compares values with optimal ones at every visited
        state: `history.optimism`. It needs the Python driver. `transitions` records every transition as a row of
        `history.transitions`, a polars frame that `learn_from` takes.

        `callback`, a function or a list of them, is called as callback(agent, history) after every `every` episodes of
        the agent and at the end; one that returns False ends the call. `krl.callbacks` has ready ones
        (docs/callbacks.md).

        If the environment raises an exception or returns invalid values, the agent is as it was before that episode,
        and the exception has the history of the episodes before it: `error.history`. After an exception in a callback
        all episodes are kept, and it has their history, too.
        """
        budget, callbacks = budget_of(episodes, steps), Callbacks(callback, every)
        progress = flag_or_none("progress", progress)
        self._check_may_learn("fit")
        self._check_alone("fit")
        leave_unused(self, "fit")
        self.check_episodes(budget.episodes or 0)  # those of a number of steps are checked as they come
        until = gap_of(self, until_gap, model, delta, cell, refine)
        transitions = flag("transitions", transitions)
        world = as_environment(env)
        return fit(self, world, budget, seed, driver, progress, until, monitor, transitions, callbacks)

    def learn_from(
        self, table: Any, *, env: gym.Env[Any, Any] | str | None = None, seed: int | None = None,
        ignore: Iterable[str] = (), progress: bool | None = None,
    ) -> int:  # fmt: skip
        """Learn from logged transitions, the rows of a table; return how many were taken in (docs/logged_data.md).

        The result is that of `observe` for each row, in order, without plans in between; automatic settings are then
        looked at once, and one plan is made. Rows count as samples, not as episodes. If a row is bad, the error names
        its number, and nothing is taken in. Ctrl-C stops after some of the rows, keeps those and plans.

        Args:
            table: a polars or pandas frame, a mapping of arrays, a Parquet or CSV file, a Minari dataset or
                "minari:ID". Its columns are `state_0` …, `action` (or `action_0` …), `reward`, `next_state_0` …,
                `terminated`, and `step`, which agents that pool their data over steps do not need; `episode` and
                `truncated` are allowed.
            env: an environment or its id, to start an agent that has not been started; its episodes are not played.
            seed: that of the agent's random numbers and episodes, if it is started here.
            ignore: names of other columns that the table may have.
            progress: shows a bar on standard error; None shows it only on a terminal.
        """
        self._check_may_learn("learn_from")
        self._check_alone("learn_from")
        leave_unused(self, "learn_from")
        progress = flag_or_none("progress", progress)
        return learn_from(self, table, env, seed, ignore, progress)

    def evaluate(
        self, env: gym.Env[Any, Any] | str, episodes: int = 1000, seed: int = 0, *, delta: float = 0.05
    ) -> Evaluation:
        """The value of the policy to deploy, with intervals, from `episodes` episodes; the agent does not change.

        An interval covers the value with probability 1-`delta` (`Evaluation` states the assumptions of each).
        The same seed gives every agent the same episodes; they differ from those of a `fit` with that seed.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        return evaluate(self, as_environment(env), episodes, seed, delta)

    def certify(
        self, model: Any, delta: float = 0.05, cell: float = 0.005, *, transitions: Any = None, refine: bool = False,
        reward_range: tuple[float, float] | None = None, progress: bool | None = None,
    ) -> Certificate:  # fmt: skip
        """Bounds on V* at all states and steps from the transitions so far and a declared model (docs/certificates.md).

        Agents with automatic settings keep their transitions; those of others are recorded by
        `fit(…, transitions=True)` and given as `transitions`.

        Args:
            model: what is declared about the system, a `krl.models.Displacement` or `krl.models.Exogenous`.
            delta: all bounds hold together with probability 1-`delta`, if what is declared is true.
            cell: the side of cells; smaller ones give tighter bounds, and take more time and memory.
            transitions: all transitions in order of time, as `krl.certify` takes them; None takes those that the agent
                has kept.
            refine: also plan bounds between the corners of cells, and take the better ones (see `krl.certify`).
            reward_range: the lowest and the highest reward that can be, as for `krl.certify`; None: that of the agent,
                if it was given.
            progress: shows a bar on standard error; None shows it only on a terminal.
        """
        from kernelrl.agents.certificates import certify_agent

        return certify_agent(self, model, delta, cell, reward_range, progress, refine, transitions)

    def forecast(
        self, episodes: Sequence[int] = (50, 100, 200), *, transitions: Any = None, resamples: int = 10,
        evaluations: int = 100, seed: int = 0, progress: bool | None = None,
    ) -> Forecast:  # fmt: skip
        """What more episodes would be worth: simulated values of the policy to deploy (docs/forecast.md).

        Copies of the agent go on in environments made of the transitions so far. The agent does not change, and the
        environment is not needed. What the data have not seen is not in the forecast.

        Args:
            episodes: after how many more episodes; their value now is always the first.
            transitions: all transitions so far, as `learn_from` takes them; None takes those that the agent has kept,
                which agents with automatic settings do.
            resamples: of the episodes so far, with an environment for each.
            evaluations: episodes that each policy is evaluated on.
            seed: of the simulations.
            progress: shows a bar on standard error; None shows it only on a terminal.
        """
        return forecast(self, episodes, transitions, resamples, evaluations, seed, progress)

    # ---------------------------------------------------------------------------------------------------- reading out

    def act(self, state: npt.ArrayLike, step: int, mask: npt.ArrayLike | None = None) -> Any:
        """The action of the policy to deploy, in `state` at `step` (from 0): an int, or an array like the Box's.

        With a `mask` (A,), True for each allowed action, it is the best of those.
        """
        self.check_started()
        spaces = self.spaces
        x, h = spaces.check_state("state", state), spaces.check_step(step)
        if mask is not None:
            allowed = allowed_at(self, x[None], spaces.check_mask(mask)[None])
            return spaces.action(int(self.deployed_among(x[None], h, allowed)[0]))
        return spaces.action(int(self.deployed_actions(x[None], h)[0]))

    def policy(self) -> Policy:
        """The policy to deploy as it is now, as an object that compiled code can call, too: `policy(state, step)`.

        It returns the number of an action, for a Box the row of `policy.actions`. It is a copy: what the agent learns
        afterwards does not change it. States are moved into the box of states, and steps are at most the last.
        """
        cls, model = type(self), self.check_started()
        reads_q = cls.policy_rule is Agent.policy_rule
        if not tells_policy(cls, "policy_rule") or (reads_q and not verbs.read_q.is_compiled_for(type(model))):
            raise TypeError(
                f"policy: compiled code does not know the policy to deploy of {cls.__name__}; write a method "
                "policy_rule(), as docs/extending.md shows"
            )
        made: Policy = new_policy(self.policy_rule(), self.spaces)
        return made

    def explain(self, state: npt.ArrayLike, step: int, *, nearest: int = 8) -> Explanation:
        """Why the agent plays what it plays in `state` at `step`: for each action the estimate, the bonus, the count.

        `nearest` is how many of the nearest samples or representatives are listed. `print` the result, or take its
        `as_dict()` or, for states of one or two dimensions, its `figure()` (docs/explain.md).
        """
        return explain(self, state, step, nearest)

    def export(
        self, path: str | os.PathLike[str], *, name: str = "kernelrl", precision: str = "double",
        steps: Iterable[int] | int | None = None, labels: Iterable[str] | None = None, environment: str | None = None,
        max_bytes: int | None = 8 * 2**20, map_code: str | None = None, write: bool = True,
    ) -> Exported:  # fmt: skip
        """Write the policy to deploy as tables: C99 without dependencies ("policy.h"), or JSON ("policy.json").

        In C, `kernelrl_act(state, step)` returns what `act` returns; for a Box of actions it writes the action into a
        third argument (docs/export.md). The result says how much memory the tables take.

        Args:
            path: the file, which ends with .h or .json.
            name: what all names in the C file begin with.
            precision: the numbers in C are "double", as in this library, or "float", which takes half of the memory;
                then actions may differ where two are almost equally good.
            steps: the steps whose tables are written, or how many of the first; others play the last one before them.
            labels: what the actions are called, for the head of the file; None: as the environment calls them.
            environment: its name, for the head of the file; None: the id of the one that was learnt in.
            max_bytes: the most that tables may take; None: no limit.
            map_code: C statements for the function of a metric, where it cannot be translated.
            write: False only returns what would be written.
        """
        return export(self, path, name, precision, steps, labels, environment, max_bytes, map_code, write)

    def predict(
        self, observation: npt.ArrayLike, state: Any = None, episode_start: npt.ArrayLike | None = None,
        deterministic: bool = True, *, action_masks: npt.ArrayLike | None = None,
    ) -> tuple[Any, Any]:  # fmt: skip
        """Actions and the steps of the next call, as Stable-Baselines3 asks for them.

        Args:
            observation: one state, or a batch of them (n, …).
            state: the step of each, from 0, as returned by the last call; None: 0. From the horizon on the policy is
                that of the last step.
            episode_start: (n,) True where an episode begins, so that its step is 0.
            deterministic: the policy to deploy; False is the learning policy, which may draw from the agent's stream.
            action_masks: (A,) or (n, A), True for each allowed action.
        """
        return predict(self, observation, state, episode_start, deterministic, action_masks)

    @property
    def action_net(self) -> Floats:
        """(A, d_A) the actions that the columns of `q_values`, `counts` and `bonuses` belong to."""
        self.check_started()
        spaces = self.spaces
        if spaces.net is not None:
            return spaces.net.points.copy()
        return spaces.first_action + np.arange(spaces.actions, dtype=np.float64)[:, None]

    def q_values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) optimistic Q_h at `states` (n, d), as the agent uses it to choose."""
        values: Floats = self.in_own_units(self.read(verbs.READ_Q, states, step), step)
        return values

    def values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n,) optimistic V_h at `states` (n, d)."""
        values: Floats = self.in_own_units(self.read(verbs.READ_VALUES, states, step)[:, 0], step)
        return values

    def _check_model(self, model: Any) -> None:
        verbs.check_model(model)
        greedy = all(getattr(type(self), name) is getattr(Agent, name) for name in ("deployed_actions", "deployed_q"))
        if greedy and not verbs.read_q.is_implemented(type(model)):
            raise TypeError(
                f"{type(model).__name__} does not implement read_q, which the policy to deploy maximises: write a "
                f"function for @krl.verbs.read_q.implement({type(model).__name__}), or {type(self).__name__}."
                "deployed_actions"
            )

    # --------------------------------------------------------------------------------------------------------- saving

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole agent to one file, which `kernelrl.load` reads."""
        save(self, path)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """With arrays of its own (see `kernelrl.jit.owning`)."""
        self.__dict__.update(owned(state))

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: everything except the copy for recovery, memory addresses and that a callback runs."""
        return self.__dict__ | {"recovery": None, "only_looked_at": False, "_handed_over": (None, None)}
