"""`Agent`: the Python class behind every agent.

It holds the hyper-parameters, checks what comes in, and hands on to the compiled functions of its algorithm (see
`kernelrl.algorithms.interface`). A subclass supplies its hyper-parameters and `_new_model`.
"""

from __future__ import annotations

import math
import os
import secrets
import time
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl import storage
from kernelrl.algorithms import interface
from kernelrl.archive import Archive
from kernelrl.core import fields
from kernelrl.core.stream import new_stream
from kernelrl.envs.adapter import GymEnvironment, compiled_dynamics, compiled_horizon, time_limit
from kernelrl.evaluation import Evaluation, evaluate
from kernelrl.guarantees import next_check
from kernelrl.history import History
from kernelrl.monitor import Monitor, Watched
from kernelrl.progress import Interrupts, Progress
from kernelrl.restoring import check_plausible, read_started
from kernelrl.rollout import SLACK, run_compiled, run_episodes

__all__ = ["AGENTS", "Agent"]

AGENTS: dict[str, type[Agent]] = {}
Floats = npt.NDArray[np.float64]
BLOCK_SECONDS = 0.1  # how long compiled code runs before Python looks at Ctrl-C and the progress bar


class Agent:
    """What all agents can do. Make one of a subclass, such as `kernelrl.KernelUCBVI`."""

    _hyper_parameters: ClassVar[tuple[str, ...]]
    _takes_discrete: ClassVar[bool] = False  # whether states may be those of a Discrete space

    def __init_subclass__(cls) -> None:
        """Make the class known to `load`."""
        AGENTS[cls.__name__] = cls

    def __init__(self, horizon: int | None, reward_range: tuple[float, float]) -> None:
        if horizon is not None:
            horizon = whole_number("horizon", horizon, 1)
        try:
            low, high = (float(bound) for bound in reward_range)
        except (TypeError, ValueError):
            raise ValueError(f"reward_range must be a pair (lowest, highest), got {reward_range!r}") from None
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"reward_range must be two finite numbers, the lower one first, got {reward_range!r}")
        self.horizon = horizon
        self.reward_range = (low, high)
        self._model: Any = None
        self._discrete = False
        self._seed = 0
        self._episodes = 0
        self._stored: dict[str, Any] = {}

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The agent as in the text, as the authors ran it or as analysed: see `kernelrl.presets`."""
        from kernelrl import presets

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
        r = self._check_reward(reward)
        if not interface.has_room(model):
            model = self._model = interface.grow(model)
        interface.observe(model, x, a, r, y, h, bool(terminated))

    def end_episode(self) -> None:
        """End an episode."""
        interface.end_episode(self._started())
        self._episodes += 1

    # -------------------------------------------------------------------------------------------------------- fitting

    def fit(
        self, env: gym.Env[Any, Any], episodes: int, *, seed: int | None = None, driver: str = "auto",
        progress: bool | None = None, until_gap: float | None = None, monitor: Any = None,
    ) -> History:  # fmt: skip
        """Play `episodes` episodes in `env` and learn from them; call it again to go on.

        `driver` is "compiled" (environments of this package, not wrapped), "python" (any environment) or "auto".
        `progress` shows a bar on standard error; None does so on a terminal. Ctrl-C ends the call after the running
        episode, with all that was collected; a second Ctrl-C raises KeyboardInterrupt at once.

        `until_gap` ends the call when `certificate` is tighter than that at the start states of the last 32 episodes
        (looked at from episode 16 on, each time there are an eighth more). `monitor`, a function (states, step) → V*_h
        such as `krl.envs.solve(env).values`, compares values with optimal ones at every visited state:
        `history.optimism`. It needs the Python driver.
        """
        episodes = whole_number("episodes", episodes, 0)
        self._check_episodes(episodes)
        if until_gap is not None:
            self._check_gap(until_gap)
        watch = None if monitor is None else Monitor(monitor, self._episodes)
        if watch is not None and driver == "compiled":
            raise ValueError('monitor: looking at each choice needs the Python driver; leave driver="compiled" out')
        dynamics = self._dynamics(env, driver if watch is None else "python")
        self._get_ready(env, seed)
        returns, lengths, values = np.zeros(episodes), np.zeros(episodes, np.int64), np.zeros(episodes)
        bad = np.zeros(2)
        x, y, stream = np.zeros(self._low.size), np.zeros(self._low.size), np.zeros(4, np.uint64)
        low, high = self.reward_range
        if dynamics is None:
            run, horizon = run_episodes, self._steps
            world: Any = GymEnvironment(env, self._check_state, self._first_action)
        else:
            run, horizon, world = run_compiled, compiled_horizon(env, self._steps), dynamics
        first, done, block, began, gap = self._episodes, 0, 1, time.perf_counter(), math.inf
        with Interrupts() as interrupts, Progress(progress, type(self).__name__, episodes, returns) as bar:
            while done < episodes and not interrupts.asked and (until_gap is None or gap > until_gap):
                due = next_check(self._episodes) - self._episodes if until_gap is not None else block
                count = self._before_episodes(min(block, due, episodes - done))
                while not interface.has_room(self._model):
                    self._model = interface.grow(self._model)
                before = time.perf_counter()
                played = run(
                    self._model if watch is None else Watched(self._model, watch),
                    world, stream, x, y, self._seed, self._episodes, count,
                    horizon, low, 1.0 / (high - low), returns[done:], lengths[done:], values[done:], bad,
                )  # fmt: skip
                self._episodes += played
                done += played
                if bad[0]:
                    self._check_reward(float(bad[1]))
                if dynamics is not None:
                    block = next_block(block, time.perf_counter() - before)
                if until_gap is not None and played == due:
                    gap = self._gap()
                bar.update(done)
        seconds = time.perf_counter() - began
        return History(
            first, returns[:done].copy(), lengths[:done].copy(), values[:done].copy(), seconds,
            interrupted=done < episodes and interrupts.asked,
            gap=None if math.isinf(gap) else gap, optimism=None if watch is None else watch.result(),
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

    def _dynamics(self, env: gym.Env[Any, Any], driver: str) -> Any:
        """The compiled dynamics to use, or None for the Python driver."""
        if driver not in ("auto", "python", "compiled"):
            raise ValueError(f'driver must be "auto", "python" or "compiled", got {driver!r}')
        dynamics = None if driver == "python" else compiled_dynamics(env)
        if driver == "compiled" and dynamics is None:
            raise ValueError(
                "driver: only environments of this package, wrapped in nothing but Gymnasium's TimeLimit, "
                f'OrderEnforcing and PassiveEnvChecker, run compiled; {env} needs driver="python"'
            )
        return dynamics

    def evaluate(self, env: gym.Env[Any, Any], episodes: int = 1000, seed: int = 0) -> Evaluation:
        """The value of the policy to deploy, with an interval, from `episodes` episodes that teach the agent nothing.

        The same seed gives the same episodes to every agent; none of them are those of a `fit` with that seed.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        self._started()
        self._get_ready(env, None)
        world = compiled_dynamics(env)  # the same episodes without Gymnasium's wrappers, which cost more than the rest
        if world is None:
            return evaluate(
                self, GymEnvironment(env, self._check_state, self._first_action), self._steps, episodes, seed
            )
        return evaluate(self, world, compiled_horizon(env, self._steps), episodes, seed)

    # ---------------------------------------------------------------------------------------------------- reading out

    def act(self, state: npt.ArrayLike, step: int) -> int:
        """The action of the policy to deploy, in `state` at `step` (from 0)."""
        self._started()
        return self._deployed_action(self._check_state("state", state), self._check_step(step)) + self._first_action

    def q_values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) optimistic Q_h at `states` (n, d), as the agent uses it to choose."""
        return self._read(interface.READ_Q, states, step)

    def values(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n,) optimistic V_h at `states` (n, d)."""
        return self._read(interface.READ_VALUES, states, step)[:, 0]

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
            **self._to_store(),
        }  # fmt: skip

    def _restore(self, started: dict[str, Any], archive: Archive) -> None:
        """Take up the state that `save` wrote; raise ValueError if it is not such a state."""
        arguments = read_started(started)
        outlines = archive.outlines()
        check_plausible(started, outlines)
        self._stored = started
        self.start(*arguments)
        new, sizes = self._model, {"H": self._steps, "A": self._actions, "Lowest": 0, "Highest": 1}
        self._model = None  # until it is sure that there is one
        self._check_keys(started, self._started_as_json())
        archive.check_names([name for name, _ in storage.arrays_of(new)])
        fields.check_shapes(storage.with_arrays(new, outlines), new, **sizes)
        model = storage.with_arrays(new, {name: archive.read(name) for name in outlines})
        fields.check(model, new, **sizes)
        self._model = fields.completed(model, new, **sizes)
        self._episodes = started["episodes"]

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

    def _check_reward(self, reward: float) -> float:
        """The reward mapped to [0, 1]."""
        low, high = self.reward_range
        try:
            mapped = (float(reward) - low) * (1.0 / (high - low))
        except (TypeError, ValueError):
            raise TypeError(f"reward must be a number, got {reward!r}") from None
        if not -SLACK <= mapped <= 1.0 + SLACK:
            raise ValueError(
                f"reward: {reward!r} is outside reward_range={self.reward_range}; make the agent with "
                "reward_range=(lowest, highest) such that every reward of the environment lies inside"
            )
        return min(max(mapped, 0.0), 1.0)

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


def next_block(block: int, seconds: float) -> int:
    """How many episodes to run next so that it takes about BLOCK_SECONDS."""
    return max(1, min(4 * block, int(block * BLOCK_SECONDS / max(seconds, 1e-9))))
