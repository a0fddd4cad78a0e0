"""The states, actions and steps of one problem, and checks of those that users and environments give."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.action_net import ActionNet
from kernelrl.agents.checks import as_array, as_whole, whole_number
from kernelrl.episodes.loop import clip_into
from kernelrl.episodes.masked import as_mask

__all__ = ["Spaces"]

Floats = npt.NDArray[np.float64]
NARROWEST, FARTHEST = 1e-100, 1e290  # limits for the width of an axis and for its ends


@dataclass(frozen=True, eq=False)
class Spaces:
    """What an agent was started for: a box of states, actions (internally counted from 0), and a number of steps.

    Of a continuous action space an agent plays the actions of a net.
    """

    low: Floats
    """(d,) the lowest state; for a Discrete space (1,) the first one."""
    high: Floats
    """(d,) the highest state."""
    shape: tuple[int, ...]
    """The shape of a state in the environment."""
    discrete: bool
    """Whether the states are the whole numbers from low[0] to high[0]."""
    actions: int
    """A, how many actions there are."""
    first_action: int
    """The environment's number of the action that is 0 internally."""
    horizon: int
    """H, the number of steps of an episode."""
    net: ActionNet | None = None
    """The net of a continuous action space; None for Discrete actions."""

    @classmethod
    def of(
        cls, observation_space: gym.Space[Any], action_space: gym.Space[Any], horizon: int, takes_discrete: bool,
        bins: Any = None,
    ) -> Spaces:  # fmt: skip
        """The spaces from the arguments of `Agent.start`, or an error that says what is not supported.

        `bins` is `action_bins` of an agent that takes continuous actions; None for those that do not.
        """
        discrete = isinstance(observation_space, gym.spaces.Discrete) and takes_discrete
        if not (discrete or isinstance(observation_space, gym.spaces.Box)):
            other = " or a Discrete space" if takes_discrete else ""
            raise TypeError(
                f"observation_space must be a gymnasium Box of states{other}, got {observation_space}"
                f"{remedy(observation_space)}"
            )
        continuous = isinstance(action_space, gym.spaces.Box) and bins is not None
        if not (continuous or isinstance(action_space, gym.spaces.Discrete)):
            other = "" if bins is None else " or a Box"
            raise TypeError(
                f"action_space must be gymnasium's Discrete{other}, got {action_space}; discretise others with a "
                "wrapper, gymnasium.wrappers.TransformAction(env, function, gymnasium.spaces.Discrete(number))"
            )
        if isinstance(observation_space, gym.spaces.Box):
            check_box(observation_space)
        horizon = whole_number("horizon", horizon, 1)
        low, high, shape = bounds_of(observation_space)
        if isinstance(action_space, gym.spaces.Box):
            net = ActionNet.of(action_space, bins, horizon)
            return cls(low, high, shape, discrete, net.size, 0, horizon, net)
        assert isinstance(action_space, gym.spaces.Discrete)
        return cls(low, high, shape, discrete, int(action_space.n), int(action_space.start), horizon)

    @cached_property
    def slack(self) -> Floats:
        """(d,) how far a state may lie outside the box: the rounding of its bounds to float32."""
        rounded = np.isfinite(self.low) & np.isfinite(self.high) & (not self.discrete)
        widest = np.maximum(abs(self.low), abs(self.high))
        return np.nan_to_num(np.where(rounded, 2.0 * spacing32(widest), 0))

    @cached_property
    def bounds(self) -> Floats:
        """(3, d) the lowest and the highest state, and how far one may lie outside."""
        return np.array([self.low, self.high, self.slack])

    @property
    def dimensions(self) -> int:
        """d, the number of coordinates of a state."""
        return int(self.low.size)

    def finite_box(self) -> Floats:
        """(2, d) the lowest and the highest state, as finite numbers."""
        return np.clip([self.low, self.high], -1e300, 1e300)

    def check_same(self, env: gym.Env[Any, Any]) -> None:
        """Raise ValueError unless these are the spaces of `env`."""
        space, actions = env.observation_space, env.action_space
        same_kind = isinstance(space, gym.spaces.Discrete if self.discrete else gym.spaces.Box)
        low, high, shape = bounds_of(space) if same_kind else (self.low, self.high, None)
        if not (shape == self.shape and np.array_equal(low, self.low) and np.array_equal(high, self.high)):
            raise ValueError(f"env: its states are {space}, which is not what this agent was started with")
        mine = self.actions, self.first_action
        if self.net is not None:
            same = self.net.same(actions)
        else:
            same = isinstance(actions, gym.spaces.Discrete) and (int(actions.n), int(actions.start)) == mine
        if not same:
            raise ValueError(f"env: its actions are {actions}, which is not what this agent was started with")

    def check_step(self, step: int) -> int:
        """The step, from 0, as an int."""
        h = as_whole(step)
        if h is None or not 0 <= h < self.horizon:
            raise ValueError(f"step must be one of 0 … {self.horizon - 1}, got {step!r}")
        return h

    def action(self, number: int) -> Any:
        """The action with that number, as the environment takes it."""
        return self.net.action(number) if self.net is not None else number + self.first_action

    def as_given(self, state: Floats) -> Any:
        """A state (d,) as users give it: an int, or an array of the shape of an observation."""
        return int(state[0]) if self.discrete else state.reshape(self.shape).copy()

    def check_action(self, action: Any) -> int:
        """The number of the action, from 0; for a continuous one, that of the nearest in the net."""
        if self.net is not None:
            return self.net.number(action)
        a = as_whole(action)
        first, last = self.first_action, self.first_action + self.actions - 1
        if a is None or not first <= a <= last:
            raise ValueError(f"action must be one of {first} … {last}, got {action!r}")
        return a - first

    def check_mask(self, mask: Any, name: str = "mask", rows: int | None = None) -> npt.NDArray[np.bool_]:
        """A mask (A,) of the actions, or one for each of so many `rows` (n, A), as booleans."""
        if self.net is not None:
            raise ValueError(
                f"{name}: masks are for Discrete actions, and these are a Box; a mask would have to follow the net of "
                "actions, which environments do not know. Make the actions Discrete with "
                "gymnasium.wrappers.TransformAction(env, function, gymnasium.spaces.Discrete(number))"
            )
        return as_mask(mask, self.actions, name, rows)

    def check_state(self, name: str, state: npt.ArrayLike) -> Floats:
        """The state as float64 (d,), clipped by at most the rounding to float32."""
        x = as_array(name, state, self.shape)
        if not self.discrete:
            inside = np.empty(self.low.size)
            if clip_into(x.reshape(-1), self.bounds, inside):
                return inside
        checked: Floats = self.check_states(x[None], name)[0]
        return checked

    def check_states(self, states: npt.ArrayLike, name: str = "states") -> Floats:
        """States (n, …) as float64 (n, d)."""
        try:
            x = np.asarray(states, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"{name} must be an array of numbers, one state per row, got {states!r}") from None
        if x.shape[1:] != self.shape or x.ndim == 0:
            raise ValueError(f"{name} must have shape ({', '.join(map(str, ('n', *self.shape)))}), got shape {x.shape}")
        x = np.ascontiguousarray(x.reshape(len(x), self.low.size))
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, got {x[~np.isfinite(x).all(axis=1)][0]}")
        if self.discrete and not ((x >= self.low) & (x <= self.high) & (x == np.floor(x))).all():
            raise ValueError(f"{name} must be among {self.low[0]:.0f} … {self.high[0]:.0f}, got {states!r}")
        outside = (x < self.low - self.slack) | (x > self.high + self.slack)
        if outside.any():
            raise ValueError(
                f"{name} must lie in the box from {self.low} to {self.high}, got {x[outside.any(axis=1)][0]}"
            )
        return np.clip(x, self.low, self.high)

    def state_error(self, name: str, state: Floats) -> ValueError:
        """The error for a state that is not a number or is outside the box."""
        try:
            self.check_states(state.reshape(1, *self.shape), name)
        except ValueError as error:
            return error
        return ValueError(f"{name} must lie in the box from {self.low} to {self.high}, got {state}")


def bounds_of(space: Any) -> tuple[Floats, Floats, tuple[int, ...]]:
    """The lowest and the highest state, both (d,), and the shape of a state, () for a Discrete space."""
    if isinstance(space, gym.spaces.Discrete):
        first, last = float(space.start), float(space.start + space.n - 1)
        return np.array([first]), np.array([last]), ()
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    return low, high, space.shape


def remedy(space: Any) -> str:
    """What helps with states of another kind: a wrapper or an agent."""
    if isinstance(space, gym.spaces.Discrete):
        return (
            "; krl.UCBVI, krl.GreedyUCBVI and krl.OptQL take it as it is, and gymnasium.wrappers.TransformObservation("
            "env, function, box) can describe states by numbers"
        )
    if isinstance(space, gym.spaces.Dict | gym.spaces.Tuple | gym.spaces.MultiDiscrete | gym.spaces.MultiBinary):
        return "; gymnasium.wrappers.FlattenObservation(env) makes it a Box"
    return "; gymnasium.wrappers.TransformObservation(env, function, box) can describe states by numbers"


def check_box(space: gym.spaces.Box) -> None:
    """Reject a Box that no agent supports."""
    if space.dtype == np.uint8 and len(space.shape) > 1:
        raise ValueError(
            f"observation_space: states of shape {space.shape} and type uint8 are images, and agents need a few "
            "numbers; gymnasium.wrappers.TransformObservation(env, function, box) can compute them from an image"
        )
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


def spacing32(values: Floats) -> Floats:
    """The distance between neighbouring float32 numbers at `values`."""
    finite = np.where(np.isfinite(values), values, 0.0)
    return np.spacing(np.clip(finite, 1e-30, 1e38).astype(np.float32)).astype(np.float64)
