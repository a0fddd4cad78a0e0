"""`CompiledEnv`: a Gymnasium environment around compiled dynamics, this package's or a user's own.

The dynamics are a NamedTuple of numbers and arrays with an implementation of two verbs (see `kernelrl.envs.interface`):

    reset(env, seed, stream, state)                   writes a start state
    advance(env, stream, state, action, next_state)   writes the next state, returns (reward, terminated, truncated)

An agent's `fit` runs them inside one compiled loop. `CompiledEnv.reset` and `step` call the same functions from Python,
so both give the same episodes to the last bit. An episode is a function of its seed and its actions.
"""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.interface import advance, reset
from kernelrl.jit.compile import distinguish, name_of
from kernelrl.jit.numba_private import NumbaError
from kernelrl.jit.stream import new_stream, seed_stream

__all__ = ["CompiledEnv"]

Floats = NDArray[np.float64]
NUMBERS = (bool, int, float, np.number, np.bool_)
NO_ARRAYS = "it makes an array, which compiled code may not: write one entry after the other, such as next_state[0] = …"


class CompiledEnv(gym.Env[Any, Any]):
    """A Gymnasium environment with compiled dynamics; a subclass passes them and the spaces to the constructor.

    Args:
        dynamics: a NamedTuple of numbers and arrays, with an implementation of `krl.envs.reset` and `krl.envs.advance`.
            Numbers of fields declared as `float` become floats.
        observation_space: a Box of shape (d,) and dtype float64, or a Discrete space, whose states are state[0].
        action_space: Discrete, whose actions the dynamics count from 0, wherever it starts; or a bounded Box of shape
            (1,), whose number they take as a float.

    If a subclass overrides `reset` or `step`, its methods are used, so it runs in Python only.
    """

    action_space: gym.spaces.Discrete | gym.spaces.Box
    action_names: ClassVar[tuple[str, ...]] = ()
    """Names of the actions, for messages."""

    def __init__(
        self, dynamics: Any, *, observation_space: gym.Space[Any], action_space: gym.spaces.Discrete | gym.spaces.Box
    ) -> None:  # fmt: skip
        check_verbs(dynamics)
        check_spaces(observation_space, action_space)
        self.dynamics = with_floats(dynamics)
        self.observation_space, self.action_space = observation_space, action_space
        self._stream = new_stream(0)
        self._state: Floats | None = None
        self._tried: Any = None  # the dynamics that were found to work

    @property
    def state(self) -> Floats:
        """(d,) the state of the running episode; set it to continue from another state."""
        if self._state is None:
            raise gym.error.ResetNeeded("There is no episode yet: call reset() before step() or render().")
        return self._state.copy()

    @state.setter
    def state(self, state: Any) -> None:
        wanted, given = self._new_state(), np.array(state, np.float64)
        if given.shape != wanted.shape:
            raise ValueError(f"state must have shape {wanted.shape}, got shape {given.shape}")
        self._state = given

    @property
    def lipschitz_constants(self) -> tuple[float, float] | None:
        """(λ_r, λ_p) of rewards and of transitions (1-Wasserstein) in ρ_X + ρ_A; None if there are none, or unknown."""
        return None

    def lipschitz(self, horizon: int) -> Floats | None:
        """(H,) constants L_h of the optimal Q-functions, steps from 0: L_h = λ_r + λ_p·L_{h+1}, or better ones.

        None where `lipschitz_constants` are.
        """
        if self.lipschitz_constants is None:
            return None
        reward, transition = self.lipschitz_constants
        L = np.zeros(horizon + 1)
        for h in range(horizon - 1, -1, -1):
            L[h] = reward + transition * L[h + 1]
        return L[:-1]

    masks_actions: bool | None = None
    """A subclass with an `info` that never has an `action_mask` says False, so that it runs as compiled code."""

    def info(self) -> dict[str, Any]:
        """The `info` that `reset` and `step` return; a subclass may add to it."""
        return {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start an episode; without a seed, the next one of the sequence that the last seed began."""
        super().reset(seed=seed)
        self.try_dynamics()
        number = (int(self.np_random.integers(2**31)) if seed is None else int(seed)) % 2**63  # an int64
        state = self._new_state()
        seed_stream(self._stream, number)
        reset(self.dynamics, number, self._stream, state)
        self._state = state
        return self._observation(), self.info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        number = self._number(action)
        state, next_state = self.state, self._new_state()
        reward, terminated, truncated = advance(self.dynamics, self._stream, state, number, next_state)
        self._state = next_state
        return self._observation(), float(reward), bool(terminated), bool(truncated), self.info()

    def try_dynamics(self) -> None:
        """Try the verbs once: if one does not compile, raise a TypeError that says where. Later calls cost nothing."""
        if self._tried is self.dynamics:
            return
        name = name_of(type(self.dynamics))
        stream, state, next_state = new_stream(0), self._new_state(), self._new_state()
        try:
            reset(self.dynamics, 0, stream, state)
        except NumbaError as error:
            raise TypeError(f"reset of {name} cannot be compiled: {reason(error)}") from error
        first = 0 if isinstance(self.action_space, gym.spaces.Discrete) else float(self.action_space.low[0])
        try:
            given = advance(self.dynamics, stream, state, first, next_state)
        except NumbaError as error:
            raise TypeError(f"advance of {name} cannot be compiled: {reason(error)}") from error
        if not (isinstance(given, tuple) and len(given) == 3 and all(isinstance(part, NUMBERS) for part in given)):
            raise TypeError(f"advance of {name} must return (reward, terminated, truncated), got {given!r}")
        self._tried = self.dynamics

    def _new_state(self) -> Floats:
        space = self.observation_space
        return np.zeros(space.shape if isinstance(space, gym.spaces.Box) else 1)

    def _observation(self) -> Any:
        state = self.state
        if isinstance(self.observation_space, gym.spaces.Box):
            return state
        return int(state[0]) if state[0].is_integer() else float(state[0])

    def _number(self, action: Any) -> int | float:
        """The action as the dynamics take it, or an error that says which actions there are."""
        space = self.action_space
        if isinstance(space, gym.spaces.Discrete):
            if space.contains(action):
                return int(action) - int(space.start)
            raise ValueError(f"action must be {self._actions(space)}; got {action!r}.")
        try:
            given = np.asarray(action, np.float64)
        except (TypeError, ValueError):
            given = np.full(1, np.nan)
        if given.shape == (1,) and space.low[0] <= given[0] <= space.high[0]:
            return float(given[0])
        raise ValueError(
            f"action must be an array of shape (1,) with a number from {space.low[0]:g} to {space.high[0]:g}; got "
            f"{action!r}."
        )

    def _actions(self, space: gym.spaces.Discrete) -> str:
        first = int(space.start)
        if not self.action_names:
            return f"one of {first} … {first + int(space.n) - 1}"
        *others, last = [f"{first + i} ({name})" for i, name in enumerate(self.action_names)]
        return f"{', '.join(others)} or {last}"


def check_verbs(dynamics: Any) -> None:
    """Reject dynamics that are not a NamedTuple of numbers and arrays, or lack a verb."""
    cls = type(dynamics)
    if not (isinstance(dynamics, tuple) and hasattr(cls, "_fields")):
        raise TypeError(
            "dynamics must be a NamedTuple of the numbers and arrays that reset and advance need, such as "
            f"Tank(inflow=0.1), got {dynamics!r}"
        )
    called = name_of(cls)
    check_fields(dynamics, called)
    for name, verb, arguments, result in (
        ("reset", reset, "env, seed, stream, state", "write the start into state[0], …"),
        ("advance", advance, "env, stream, state, action, next_state",
         "write next_state[0], … and return reward, terminated, truncated"),
    ):  # fmt: skip
        if not verb.is_compiled_for(cls):
            raise TypeError(
                f"{called} lacks the verb {name}: put @krl.envs.{name}.implement({called}) above a "
                f"function ({arguments}) that should {result}"
            )


def check_fields(values: Any, name: str) -> None:
    """Reject fields that compiled code cannot take: only numbers, arrays of numbers and NamedTuples of them work."""
    distinguish(type(values))
    for field, value in zip(values._fields, values, strict=True):
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            check_fields(value, f"{name}.{field}")
        elif not isinstance(value, NUMBERS) and not (isinstance(value, np.ndarray) and value.dtype.kind in "biuf"):
            raise TypeError(
                f"dynamics: {name}.{field} must be a number or a NumPy array of numbers, which is what compiled code "
                f"can take, got {value!r:.60}"
            )


def with_floats(dynamics: Any) -> Any:
    """The dynamics with floats in fields declared as float: an int there would be compiled for separately."""
    kinds = {name: getattr(kind, "__forward_arg__", kind) for name, kind in type(dynamics).__annotations__.items()}
    numbers = {name: value for name, value in dynamics._asdict().items() if kinds.get(name) in (float, "float")}
    return dynamics._replace(**{name: float(value) for name, value in numbers.items() if np.ndim(value) == 0})


def check_spaces(observation_space: gym.Space[Any], action_space: Any) -> None:
    """Reject spaces that compiled code does not support."""
    box = isinstance(observation_space, gym.spaces.Box)
    if not box and not isinstance(observation_space, gym.spaces.Discrete):
        raise TypeError(f"observation_space must be a Box or a Discrete space, got {observation_space}")
    if box and (len(observation_space.shape or ()) != 1 or observation_space.dtype != np.float64):
        raise ValueError(
            f"observation_space must be a Box of shape (d,) with dtype=np.float64, as compiled states are, got "
            f"{observation_space}"
        )
    one_number = isinstance(action_space, gym.spaces.Box) and action_space.shape == (1,) and action_space.is_bounded()
    if not isinstance(action_space, gym.spaces.Discrete) and not one_number:
        raise TypeError(f"action_space must be Discrete, or a bounded Box of shape (1,), got {action_space}")


def reason(error: Exception) -> str:
    """The gist of numba's error, in one line."""
    text = str(error)
    if "NRT required" in text:
        return NO_ARRAYS
    lines = [line.strip() for line in text.splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("Failed in nopython", "During:", "- Resolution"))
    ]
    place = [line.rstrip(":") for line in lines if line.startswith("File ")]
    return " ".join([*telling[:1], *(f"({line})" for line in place[-1:])]) or type(error).__name__
