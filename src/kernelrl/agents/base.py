"""`Agent`: the Python class behind every agent.

It holds the hyper-parameters, checks what comes in, and hands on to the compiled functions of its algorithm (see
`kernelrl.episodes.verbs`). A subclass supplies its hyper-parameters and `_new_model`.
"""

from __future__ import annotations

import os
import secrets
import warnings
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.archive import Archive
from kernelrl.agents.evaluation import Evaluation, evaluate
from kernelrl.agents.fitting import fit
from kernelrl.agents.history import History
from kernelrl.agents.recovery import Recovery
from kernelrl.agents.restoring import check_plausible, read_beyond, read_range, read_started
from kernelrl.agents.reward_range import RewardRange, as_flag, as_reward, check_range
from kernelrl.envs.making import make_environment
from kernelrl.episodes import verbs as interface
from kernelrl.episodes.adapter import time_limit
from kernelrl.jit import fields
from kernelrl.jit.stream import new_stream
from kernelrl.stores.units import Units, units_of

__all__ = ["AGENTS", "Agent"]

AGENTS: dict[str, type[Agent]] = {}
Floats = npt.NDArray[np.float64]
NARROWEST, FARTHEST = 1e-100, 1e290  # an axis that is narrower cannot be divided, nor one that ends farther away


class Agent:
    """What all agents can do. Make one of a subclass, such as `kernelrl.KernelUCBVI`."""

    _hyper_parameters: ClassVar[tuple[str, ...]]
    _takes_discrete: ClassVar[bool] = False  # whether states may be those of a Discrete space

    def __init_subclass__(cls) -> None:
        """Make the class known to `load`."""
        AGENTS[cls.__name__] = cls

    def __init__(self, horizon: int | None, reward_range: tuple[float, float] | str) -> None:
        if horizon is not None:
            horizon = whole_number("horizon", horizon, 1)
        self.horizon = horizon
        self._reward_range = check_range(reward_range)
        self._beyond: tuple[float, float] | None = None  # rewards of the running episode outside the range
        self._warned_of_range = False
        self._range = RewardRange.of(self._reward_range)
        self._recovery: Recovery | None = None
        self._model: Any = None
        self._discrete = False
        self._seed = 0
        self._episodes = 0
        self._stored: dict[str, Any] = {}

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The agent as in the text, as the authors ran it or as analysed: see `kernelrl.agents.presets`."""
        from kernelrl.agents import presets

        return cls(**{**presets.options(cls.__name__, name), **changes})

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._hyper_parameters)
        return f"{type(self).__name__}({settings})"

    # ------------------------------------------------------------------------------------------- what subclasses give

    def _new_model(self, low: Floats, high: Floats, actions: int, horizon: int, stream: Any) -> Any:
        """The algorithm's NamedTuple before any data, for states in the box [low, high] (d,).

        If `self._discrete`, the states are the whole numbers from low[0] to high[0].
        """
        raise NotImplementedError

    def _deployed_action(self, state: Floats, step: int) -> int:
        """The deployed policy's action, counted from 0."""
        raise NotImplementedError

    def _deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) the same at `states` (n, d)."""
        return np.array([self._deployed_action(x, step) for x in states], np.int64)

    def _before_episodes(self, count: int) -> int:
        """Adapt the model before the next episode; return how many of `count` can be played until this is due again."""
        return count

    def _to_store(self) -> dict[str, Any]:
        """What `save` writes of the state besides the model's arrays, as JSON; `_stored` has it in `_new_model`."""
        return {}

    def _keeps_promises(self) -> bool:
        """Whether guarantees rest on the range of rewards, so that one outside is an error."""
        return False

    # -------------------------------------------------------------------------------------------------- units of reward

    @property
    def reward_range(self) -> tuple[float, float] | str:
        """The range of rewards as it was given: "auto", or a pair (lowest, highest).

        It cannot be changed once the agent has been started. `settings_used()["reward_range"]` is the range in force.
        """
        return self._reward_range

    @reward_range.setter
    def reward_range(self, given: tuple[float, float] | str) -> None:
        if self._model is not None:
            raise AttributeError(
                "reward_range cannot be changed once the agent has been started: it widens by itself when a reward "
                "lies outside; make a new agent to begin with another"
            )
        self._reward_range = check_range(given)

    def settings_used(self) -> dict[str, Any]:
        """The hyper-parameters in force: what was given, and what the agent chose or had to change by itself."""
        self._started()
        used = {name: getattr(self, name) for name in self._hyper_parameters}
        return used | {"horizon": self._steps, "reward_range": (self._range.low, self._range.high)}

    @property
    def _units(self) -> Units:
        """The mapping of rewards to [0, 1]."""
        units: Units = units_of(self._range.low, self._range.high, self._range.empty)
        return units

    def _in_own_units(self, values: Any, step: int) -> Any:
        """Values of `step` in the environment's units."""
        return values * self._range.width + self._range.low * (self._steps - step)

    def _limits(self) -> Floats:
        """What the episode loop must know of the range of rewards (see `kernelrl.episodes.loop`)."""
        return np.array([*self._range.limits, self._range.strict, self._range.holds_zero], np.float64)

    def _finite_box(self) -> Floats:
        """(2, d) the lowest and the highest state, as finite numbers."""
        return np.clip([self._low, self._high], -1e300, 1e300)

    def _widen(self, lowest: float, highest: float) -> None:
        """Take rewards into the range that lie outside, and put everything that was learnt into the new units."""
        before = self._range
        self._range, keep = before.widened(lowest, highest)
        if self._range != before:
            self._model = self._rescaled(keep)
        if before.given and not self._warned_of_range:  # last, since a warning may be made an error
            self._warned_of_range = True
            reward = lowest if lowest < before.low else highest
            warnings.warn(
                f"reward_range: the reward {reward} is outside {(before.low, before.high)}; the range was widened and "
                "all data kept",
                UserWarning,
                stacklevel=4,
            )

    def _rescaled(self, keep: float) -> Any:
        """The model in the units of the range in force (see `interface.rescaled`)."""
        settings = getattr(self._model, "settings", None)
        if settings is not None:
            settings = settings._replace(units=self._units)
        return interface.rescaled(self._model, settings, keep)

    # ------------------------------------------------------------------------------------------------ driving by hand

    @property
    def episodes(self) -> int:
        """Number of episodes played so far."""
        return self._episodes

    def start(
        self, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int, seed: int | None = None
    ) -> None:
        """Get ready for episodes of `horizon` steps in these spaces; `fit` does this by itself."""
        if self._model is not None:
            raise RuntimeError("this agent has been started already: make a new one to begin afresh")
        discrete = isinstance(observation_space, gym.spaces.Discrete) and self._takes_discrete
        if not (discrete or isinstance(observation_space, gym.spaces.Box)):
            other = " or a Discrete space" if self._takes_discrete else ""
            raise TypeError(f"observation_space must be a gymnasium Box of states{other}, got {observation_space}")
        if not isinstance(action_space, gym.spaces.Discrete):
            raise TypeError(
                f"action_space must be gymnasium's Discrete, got {action_space}; discretise others with a wrapper"
            )
        if isinstance(observation_space, gym.spaces.Box):
            check_box(observation_space)
        horizon = whole_number("horizon", horizon, 1)
        if self.horizon is not None and horizon != self.horizon:
            raise ValueError(f"horizon: the agent was made for {self.horizon} steps, got {horizon}")
        if seed is None:
            seed = secrets.randbits(32)
        seed = whole_number("seed", seed, 0)
        if seed >= 2**63:
            raise ValueError(f"seed must be below 2**63, got {seed}")
        low, high, shape = bounds_of(observation_space)
        actions = int(action_space.n)
        self._discrete = discrete
        self._range = self._stored_range() or RewardRange.of(self._reward_range, self._keeps_promises())
        model = self._new_model(low, high, actions, horizon, new_stream(seed))
        self._shape, self._low, self._high = shape, low, high
        # float32 rounding of a bound is not an escape from the box
        self._slack = np.where(
            np.isfinite(low) & np.isfinite(high) & (not discrete), 2.0 * spacing32(np.maximum(abs(low), abs(high))), 0
        )
        self._slack = np.nan_to_num(self._slack)
        self._actions, self._first_action = actions, int(action_space.start)
        self._steps = horizon
        self._seed = seed
        self._model = model  # last: an agent that could not be started is as it was

    def begin_episode(self) -> None:
        """Begin an episode."""
        self._started()
        self._recovery = None
        self._check_episodes(1)
        self._before_episodes(1)
        interface.begin_episode(self._model)

    def choose(self, state: npt.ArrayLike, step: int) -> int:
        """The action that the learning policy takes in `state` at `step` (from 0)."""
        model = self._started()
        return (
            int(interface.choose(model, self._check_state("state", state), self._check_step(step))) + self._first_action
        )

    def observe(
        self, state: npt.ArrayLike, action: int, reward: float, next_state: npt.ArrayLike, step: int,
        terminated: bool = False,
    ) -> None:  # fmt: skip
        """Take in one transition; `terminated` means that nothing can be collected after it."""
        model = self._started()
        x = self._check_state("state", state)
        y = self._check_state("next_state", next_state)
        h = self._check_step(step)
        a = self._check_action(action)
        r = as_reward(reward)
        ends = as_flag(terminated, "terminated")
        if ends and not self._range.holds_zero:
            raise self._end_error()
        if not self._range.holds(r):
            if self._range.strict:
                raise self._range_error(r)
            low, high = self._beyond or (r, r)
            self._beyond = min(low, r), max(high, r)
        self._recovery = None
        if not interface.has_room(model):
            model = self._model = interface.grow(model)
        interface.observe(model, x, a, r, y, h, ends)

    def end_episode(self) -> None:
        """End an episode."""
        interface.end_episode(self._started())
        self._recovery = None
        self._episodes += 1
        if self._beyond is not None:
            beyond, self._beyond = self._beyond, None
            self._widen(*beyond)

    # -------------------------------------------------------------------------------------------------------- fitting

    def fit(
        self, env: gym.Env[Any, Any] | str, episodes: int, *, seed: int | None = None, driver: str = "auto",
        progress: bool | None = None, until_gap: float | None = None, monitor: Any = None,
    ) -> History:  # fmt: skip
        """Play `episodes` episodes in `env`, an environment or the id of one, and learn; call it again to go on.

        `driver` is "compiled" (a `krl.envs.CompiledEnv`, not wrapped), "python" (any environment) or "auto".
        `progress` shows a bar on standard error; None does so on a terminal. Ctrl-C ends the call after the running
        episode, with all that was collected; a second Ctrl-C raises KeyboardInterrupt at once.

        `until_gap` ends the call when `certificate` is tighter than that at the start states of the last 32 episodes
        (looked at from episode 16 on, each time there are an eighth more). `monitor`, a function (states, step) → V*_h
        such as `krl.envs.solve(env).values`, compares values with optimal ones at every visited state:
        `history.optimism`. It needs the Python driver.

        If the environment raises an exception or returns nonsense, the agent is as it was before that episode, and the
        exception has the history of the episodes before it: `error.history`.
        """
        episodes = whole_number("episodes", episodes, 0)
        self._check_episodes(episodes)
        if until_gap is not None:
            self._check_gap(until_gap)
        world = made(env)
        return fit(
            self, world, episodes, driver, progress, until_gap, monitor, lambda: self._get_ready(world, seed)
        )  # fmt: skip

    def _check_episodes(self, more: int) -> None:
        """Refuse more episodes than the hyper-parameters are made for."""

    def _check_gap(self, until_gap: Any) -> None:
        """Refuse `until_gap` where there are no certificates."""
        raise ValueError(
            f"until_gap: {type(self).__name__} gives no certificates; a kernel agent with the bonus Joint does"
        )

    def _gap(self) -> float:
        """The largest gap between certified bounds at recent start states."""
        raise NotImplementedError

    def _get_ready(self, env: gym.Env[Any, Any], seed: int | None) -> None:
        """Start, or check that `env` and `seed` go on where the last call ended."""
        if self._model is None:
            horizon = self.horizon or time_limit(env)
            if horizon is None:
                raise ValueError(
                    "horizon: the environment has no time limit, so the number of steps must be given: "
                    f"{type(self).__name__}(horizon=…)"
                )
            self.start(env.observation_space, env.action_space, horizon, seed)
            return
        if seed is not None and seed != self._seed:
            raise ValueError(
                f"seed: this agent goes on with seed {self._seed}, got {seed}; leave seed out, or make a new agent"
            )
        space, actions = env.observation_space, env.action_space
        same_kind = isinstance(space, gym.spaces.Discrete if self._discrete else gym.spaces.Box)
        low, high, shape = bounds_of(space) if same_kind else (self._low, self._high, None)
        if not (shape == self._shape and np.array_equal(low, self._low) and np.array_equal(high, self._high)):
            raise ValueError(f"env: its states are {space}, which is not what this agent was started with")
        if not (isinstance(actions, gym.spaces.Discrete) and (int(actions.n), int(actions.start)) == (
            self._actions, self._first_action
        )):  # fmt: skip
            raise ValueError(f"env: its actions are {actions}, which is not what this agent was started with")

    def evaluate(
        self, env: gym.Env[Any, Any] | str, episodes: int = 1000, seed: int = 0, *, delta: float = 0.05
    ) -> Evaluation:
        """The value of the policy to deploy, with intervals, from `episodes` episodes that teach the agent nothing.

        An interval covers the value with probability 1-`delta` (see `Evaluation` for which one needs what).
        The same seed gives the same episodes to every agent; none of them are those of a `fit` with that seed.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        return evaluate(self, made(env), episodes, seed, delta)

    # ---------------------------------------------------------------------------------------------------- reading out

    def act(self, state: npt.ArrayLike, step: int) -> int:
        """The action of the policy to deploy, in `state` at `step` (from 0)."""
        self._started()
        return self._deployed_action(self._check_state("state", state), self._check_step(step)) + self._first_action

    def q_values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) optimistic Q_h at `states` (n, d), as the agent uses it to choose."""
        values: Floats = self._in_own_units(self._read(interface.READ_Q, states, step), step)
        return values

    def values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n,) optimistic V_h at `states` (n, d)."""
        values: Floats = self._in_own_units(self._read(interface.READ_VALUES, states, step)[:, 0], step)
        return values

    def _read_bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) bonuses at `states` (n, d) in the environment's units."""
        bonuses: Floats = self._read(interface.READ_BONUSES, states, step) * self._range.width
        return bonuses

    def _read(self, verb: int, states: npt.ArrayLike, step: int) -> Floats:
        model, h = self._started(), self._check_step(step)
        return self._read_model(model, verb, self._check_states(states), h)

    def _read_model(self, model: Any, verb: int, states: Floats, step: int) -> Floats:
        """What the verb reads at `states` (n, d) that have been checked: (n, A), or (n, 1) for values."""
        out = np.zeros((len(states), 1 if verb == interface.READ_VALUES else self._actions))
        interface.read_rows(model, verb, states, step, out)
        return out

    # ------------------------------------------------------------------------------------------------ saving, loading

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the agent to one file, from which `kernelrl.load` restores all of it."""
        from kernelrl import __version__

        header: dict[str, Any] = {
            "version": __version__,
            "agent": type(self).__name__,
            "hyper_parameters": {name: storage.encode(getattr(self, name)) for name in self._hyper_parameters},
        }
        if self._model is not None:
            header["started"] = self._started_as_json()
        storage.write_file(path, header, dict(storage.arrays_of(self._model)) if self._model is not None else {})

    def _started_as_json(self) -> dict[str, Any]:
        """All of the state but the model's arrays, as `save` writes it."""
        return {
            "low": [str(bound) for bound in self._low], "high": [str(bound) for bound in self._high],
            "shape": list(self._shape), "discrete": self._discrete, "actions": self._actions,
            "first_action": self._first_action, "horizon": self._steps, "seed": self._seed,
            "episodes": self._episodes,
            "reward_range": [self._range.low, self._range.high, self._range.empty], "beyond": self._beyond,
            **self._to_store(),
        }  # fmt: skip

    def _restore(self, started: dict[str, Any], archive: Archive) -> None:
        """Take up the state that `save` wrote; raise ValueError if it is not such a state."""
        arguments = read_started(started)
        outlines = archive.outlines()
        check_plausible(started, outlines)
        self._stored = started
        self.start(*arguments)
        new = self._model
        self._model = None  # until it is sure that there is one
        self._check_keys(started, self._started_as_json())
        self._beyond = read_beyond(started["beyond"])
        sizes = {"H": self._steps, "A": self._actions, **self._extremes()}
        archive.check_names([name for name, _ in storage.arrays_of(new)])
        fields.check_shapes(storage.with_arrays(new, outlines), new, **sizes)
        model = storage.with_arrays(new, {name: archive.read(name) for name in outlines})
        fields.check(model, new, **sizes)
        self._model = fields.completed(model, new, **sizes)
        self._episodes = started["episodes"]

    def _stored_range(self) -> RewardRange | None:
        """The range in force when the agent was saved, if it comes out of a file."""
        if "reward_range" not in self._stored:
            return None
        return read_range(self._stored["reward_range"], self._reward_range, self._keeps_promises())

    def _extremes(self) -> dict[str, float]:
        """The lowest and the highest reward there may be among the data, and the same of values in mapped units."""
        floor, ceiling = self._range.limits
        low, high = self._beyond or (0.0, 0.0)
        low, high = min(low, floor), max(high, ceiling)
        steps, width = self._steps + 1, self._range.width
        least, most = min(0.0, (low - self._range.low) / width), max(1.0, (high - self._range.low) / width)
        return {"Lowest": low, "Highest": high, "Least": steps * least - 1.0, "Most": steps * most}

    # ----------------------------------------------------------------------------------------------- going back in time

    def _capture(self) -> dict[str, Any]:
        """Copies of all that episodes change (see `kernelrl.agents.recovery`)."""
        return {"_model": storage.copied(self._model), "_episodes": self._episodes, "_range": self._range}

    def _reinstate(self, captured: dict[str, Any]) -> None:
        """Be again as when `captured` was made."""
        for name, value in captured.items():
            setattr(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: not the copy for going back."""
        return self.__dict__ | {"_recovery": None}

    def _check_keys(self, found: dict[str, Any], expected: dict[str, Any]) -> None:
        """Raise ValueError unless what is stored has the keys that this agent stores."""
        for key in sorted(found.keys() ^ expected.keys()):
            raise ValueError(f"started has {'no ' if key in expected else ''}{key}")

    # ------------------------------------------------------------------------------------------------------- checking

    def _started(self) -> Any:
        if self._model is None:
            raise RuntimeError("this agent has not been started: call fit(env, …) or start(…) first")
        return self._model

    def _check_step(self, step: int) -> int:
        h = as_whole(step)
        if h is None or not 0 <= h < self._steps:
            raise ValueError(f"step must be one of 0 … {self._steps - 1}, got {step!r}")
        return h

    def _check_action(self, action: int) -> int:
        """The action counted from 0."""
        a = as_whole(action)
        first, last = self._first_action, self._first_action + self._actions - 1
        if a is None or not first <= a <= last:
            raise ValueError(f"action must be one of {first} … {last}, got {action!r}")
        return a - first

    def _range_error(self, reward: float) -> ValueError:
        """The error for a reward outside a range that is a promise."""
        return ValueError(
            f"reward: {reward!r} is outside reward_range={(self._range.low, self._range.high)}, on which the bonus's "
            "guarantees rest; make the agent with reward_range=(lowest, highest) such that every reward lies inside"
        )

    def _end_error(self) -> ValueError:
        """The error for a termination where 0 lies outside the range."""
        return ValueError(
            f"reward_range: {(self._range.low, self._range.high)} excludes 0, but the environment has terminated, and "
            "then every step left brings 0; make the agent with a range that includes 0"
        )

    def _state_error(self, name: str, state: Floats) -> ValueError:
        """The error for a state that is no number or outside the box."""
        try:
            self._check_states(state[None], name)
        except ValueError as error:
            return error
        return ValueError(f"{name} must lie in the box from {self._low} to {self._high}, got {state}")

    def _check_state(self, name: str, state: npt.ArrayLike) -> Floats:
        """The state as float64 (d,), clipped by float32's rounding at most."""
        try:
            x = np.asarray(state, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be an array of numbers of shape {self._shape}, got {state!r}") from None
        if x.shape != self._shape:
            raise ValueError(f"{name} must have shape {self._shape}, got shape {x.shape}")
        checked: Floats = self._check_states(x[None], name)[0]
        return checked

    def _check_states(self, states: npt.ArrayLike, name: str = "states") -> Floats:
        """States (n, …) as float64 (n, d)."""
        try:
            x = np.asarray(states, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be an array of numbers, one state a row, got {states!r}") from None
        if x.shape[1:] != self._shape or x.ndim == 0:
            raise ValueError(
                f"{name} must have shape ({', '.join(map(str, ('n', *self._shape)))}), got shape {x.shape}"
            )
        x = np.ascontiguousarray(x.reshape(len(x), self._low.size))
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, got {x[~np.isfinite(x).all(axis=1)][0]}")
        if self._discrete and not ((x >= self._low) & (x <= self._high) & (x == np.floor(x))).all():
            raise ValueError(f"{name} must be among {self._low[0]:.0f} … {self._high[0]:.0f}, got {states!r}")
        outside = (x < self._low - self._slack) | (x > self._high + self._slack)
        if outside.any():
            raise ValueError(
                f"{name} must lie in the box from {self._low} to {self._high}, got {x[outside.any(axis=1)][0]}"
            )
        return np.clip(x, self._low, self._high)


def bounds_of(space: Any) -> tuple[Floats, Floats, tuple[int, ...]]:
    """The lowest and the highest state, both (d,), and the shape of a state; one of a Discrete space is a number."""
    if isinstance(space, gym.spaces.Discrete):
        first, last = float(space.start), float(space.start + space.n - 1)
        return np.array([first]), np.array([last]), ()
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    return low, high, space.shape


def check_box(space: gym.spaces.Box) -> None:
    """Refuse a Box that no agent can work in."""
    if space.low.size == 0:
        raise ValueError(f"observation_space: states must have at least one coordinate, got {space}")
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = ~(low <= high) | (low == np.inf) | (high == -np.inf)
        narrow = (high > low) & (high - low < NARROWEST)
    if wrong.any():
        raise ValueError(f"observation_space: axis {int(np.argmax(wrong))} holds no number, got {space}")
    far = np.isfinite(low) & (abs(low) > FARTHEST) | np.isfinite(high) & (abs(high) > FARTHEST)
    if far.any():
        j = int(np.argmax(far))
        raise ValueError(
            f"observation_space: axis {j} reaches from {low[j]:g} to {high[j]:g}; give bounds below {FARTHEST:g}, or "
            "infinite ones"
        )
    if narrow.any():
        j = int(np.argmax(narrow))
        raise ValueError(
            f"observation_space: axis {j} is only {high[j] - low[j]:g} wide, which cannot be divided; rescale it with "
            "gymnasium.wrappers.RescaleObservation"
        )


def made(env: gym.Env[Any, Any] | str) -> gym.Env[Any, Any]:
    """An environment from itself or from its id."""
    if isinstance(env, str):
        try:
            return make_environment(env)
        except ValueError as error:
            raise ValueError(f"env: {error}") from error
    if isinstance(env, gym.vector.VectorEnv):
        raise TypeError(f"env: agents learn from one environment at a time; make it with gymnasium.make, got {env}")
    if not isinstance(env, gym.Env):
        raise TypeError(f"env must be a Gymnasium environment or the id of one, got {env!r}")
    return env


def as_whole(value: Any) -> int | None:
    """`value` as an int if it is a whole number, else None."""
    try:
        number = int(value)
        return number if number == value else None
    except (TypeError, ValueError, OverflowError):
        return None


def whole_number(name: str, value: Any, least: int) -> int:
    """`value` as an int, or an error that names it."""
    number = as_whole(value)
    if number is None or number < least or isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return number


def spacing32(values: Floats) -> Floats:
    """The distance between neighbouring float32 numbers at `values`."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.spacing(np.clip(finite, 1e-30, 1e38).astype(np.float32)).astype(np.float64)
