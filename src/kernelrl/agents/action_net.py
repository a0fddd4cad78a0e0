"""The net of a continuous action space: the finite number of its actions that an agent plays.

A Box of actions with finite bounds is divided into `action_bins` equally spaced values along each axis, its ends among
them. Inside an agent an action is its number in the net, 0 … A-1. What users and environments see is an array of the
Box's shape and type.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.checks import as_array, as_whole, is_auto

__all__ = ["LIMIT", "RELATED", "ActionNet", "check_bins"]

Floats = npt.NDArray[np.float64]
MOST, FEWEST, ALL_STEPS = 63, 9, 1000  # "auto": as many actions as steps in ALL_STEPS, at most MOST, at least FEWEST
LIMIT = 100_000  # actions
RELATED = 3000  # actions of an automatic net at most: weights between them are a matrix
FARTHEST = 1e290
SLACK = 1e-6  # of the width, by which an action may lie outside the box: rounding to float32


def check_bins(given: Any) -> Any:
    """The argument `action_bins` as "auto", an int or a tuple, or an error that names it."""
    if is_auto(given):
        return "auto"
    one = as_whole(given) if not isinstance(given, list | tuple | np.ndarray) else None
    each = [as_whole(n) for n in given] if isinstance(given, list | tuple | np.ndarray) else [one]
    if not each or any(n is None or n < 2 for n in each):
        raise ValueError(
            'action_bins must be a whole number of at least 2, several of them, one for each axis, or "auto"; got '
            f"{given!r}"
        )
    return one if one is not None else tuple(each)


def automatic_bins(axes: int, horizon: int) -> int:
    """An odd number for each axis, so that the middle is among them. A plan's cost grows with actions and steps."""
    actions = min(MOST, max(FEWEST, ALL_STEPS // horizon))
    n = int(actions ** (1.0 / axes) + 1e-9)
    n = max(3, n - 1 + n % 2)
    return n if n**axes <= RELATED else 2


@dataclass(frozen=True, eq=False)
class ActionNet:
    """The net of a Box."""

    low: Floats
    """(d_A,) the lowest action, and"""
    high: Floats
    """the highest."""
    shape: tuple[int, ...]
    """The shape of an action in the environment."""
    dtype: str
    """Its type."""
    bins: tuple[int, ...]
    """(d_A,) the number of values along each axis."""

    @classmethod
    def of(cls, space: gym.spaces.Box, bins: Any, horizon: int) -> ActionNet:
        """The net of `space` for the argument `action_bins`, or an error that says what is not supported.

        An agent may also give a function of the number of axes.
        """
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
        if space.dtype.kind != "f" or not low.size:
            raise TypeError(f"action_space must be a Box of floats, or Discrete, got {space}")
        bad = ~((abs(low) <= FARTHEST) & (abs(high) <= FARTHEST) & (low <= high))
        if bad.any():
            j = int(np.argmax(bad))
            raise ValueError(
                f"action_space: axis {j} reaches from {low[j]:g} to {high[j]:g}, and an agent needs finite bounds; "
                "wrap the environment in gymnasium.wrappers.TransformAction(env, lambda action: action, "
                "gymnasium.spaces.Box(lowest, highest))"
            )
        chosen = callable(bins) or is_auto(check_bins(bins))
        if chosen:
            axes = max(1, int((high > low).sum()))
            bins = bins(low.size) if callable(bins) else automatic_bins(axes, horizon)
        bins = check_bins(bins)
        each = bins if isinstance(bins, tuple) else (bins,) * low.size
        if len(each) != low.size:
            raise ValueError(f"action_bins: {len(each)} numbers were given for {low.size} axes of actions: {bins}")
        each = tuple(n if high[j] > low[j] else 1 for j, n in enumerate(each))
        if math.prod(each) > LIMIT:
            what = "action_space: with so many axes" if chosen else "action_bins:"
            remedy = "wrap the environment so that it has fewer axes of actions" if chosen else "give fewer"
            raise ValueError(
                f"{what} {' × '.join(map(str, each))} are {math.prod(each):,} actions, more than {LIMIT:,}; {remedy}"
            )
        net = cls(low, high, tuple(space.shape), space.dtype.name, each)
        if space.dtype.name not in ("float16", "float32", "float64") or len(np.unique(net.points, axis=0)) < net.size:
            raise ValueError(
                f"action_space: {space} has fewer than {' × '.join(map(str, each))} different actions of its type; "
                "give fewer action_bins, or rescale it with gymnasium.wrappers.RescaleAction"
            )
        return net

    @property
    def size(self) -> int:
        """A, the number of actions."""
        return math.prod(self.bins)

    @property
    def space(self) -> gym.spaces.Box:
        """The Box itself."""
        low, high = (bound.reshape(self.shape).astype(self.dtype) for bound in (self.low, self.high))
        return gym.spaces.Box(low, high, dtype=np.dtype(self.dtype).type)

    @cached_property
    def points(self) -> Floats:
        """(A, d_A) the actions, rounded to the Box's type, the last axis fastest."""
        points: Floats = self._actions.reshape(self.size, -1).astype(np.float64)
        return points

    @cached_property
    def _actions(self) -> Any:
        """(A, …) the actions as the environment takes them."""
        axes = [np.linspace(a, b, n) if n > 1 else [a] for a, b, n in zip(self.low, self.high, self.bins, strict=True)]
        points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
        points = np.clip(points.astype(self.dtype), self.low.astype(self.dtype), self.high.astype(self.dtype))
        return points.reshape(-1, *self.shape)

    def action(self, number: int) -> Any:
        """The action of that number."""
        return np.array(self._actions[number])

    def number(self, action: Any) -> int:
        """The number of the nearest action of the net, or an error if `action` is not one of the Box."""
        a = as_array("action", action, self.shape).reshape(-1)
        if not self.inside(a).all():
            raise ValueError(f"action must lie in the box from {self.low} to {self.high}, got {action!r}")
        return int(self.numbers(a))

    def inside(self, actions: Floats) -> npt.NDArray[np.bool_]:
        """(…, d_A) for each axis of `actions` (…, d_A), whether it lies in the Box; False for NaN."""
        slack = SLACK * np.maximum(self.high - self.low, np.maximum(abs(self.low), abs(self.high)))
        found: npt.NDArray[np.bool_] = (actions >= self.low - slack) & (actions <= self.high + slack)
        return found

    def numbers(self, actions: Floats) -> npt.NDArray[np.int64]:
        """(…) the number of the nearest action of the net for each of `actions` (…, d_A) of the Box."""
        width, bins = self.high - self.low, np.array(self.bins)
        places = np.rint((actions - self.low) / np.where(width > 0.0, width, 1.0) * (bins - 1)).astype(np.int64)
        axes = np.moveaxis(np.clip(places, 0, bins - 1), -1, 0)
        return np.asarray(np.ravel_multi_index(tuple(axes), self.bins), np.int64)

    def same(self, space: Any) -> bool:
        """Whether it is the net of `space`."""
        if not isinstance(space, gym.spaces.Box) or (tuple(space.shape), space.dtype.name) != (self.shape, self.dtype):
            return False
        low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
        return np.array_equal(low, self.low) and np.array_equal(high, self.high)

    def to_store(self) -> dict[str, Any]:
        """What `read_net` reads, as JSON."""
        return {
            "low": self.low.tolist(), "high": self.high.tolist(), "shape": list(self.shape), "dtype": self.dtype,
            "bins": list(self.bins),
        }  # fmt: skip
