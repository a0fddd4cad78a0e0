"""A system that moves by displacements: y = Π_x(x + D), where Π_x clips onto the room that the state x is in.

The law of D depends on the action only (`variation=0`), or changes slowly with the state. The rooms are boxes; nothing
else is assumed about D: no bound, no density, no mean. Nothing is known of rewards but what is declared here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.arguments import one_of, positive
from kernelrl.models.boxes import Bounds, check_axes, checked_boxes

__all__ = ["DETERMINISTIC", "NOISY", "STATE", "Displacement"]

Floats = npt.NDArray[np.float64]
DETERMINISTIC, NOISY = "deterministic", "noisy"
STATE, STATE_ACTION = "state", "state-action"


@dataclass(frozen=True)
class Displacement:
    """The declaration y = Π_x(x + D), with the same law of D for an action wherever it is played."""

    rooms: Any = None
    """The boxes (low, high) onto which states are clipped, a list. None is the whole observation space."""
    variation: float = 0.0
    """λ_D. Displacements of one action at x and x' can be drawn together such that they differ by at most λ_D·|x - x'|
    (Euclidean). For D = m(x) + ε, ε with the same law everywhere, it is the Lipschitz constant of m."""
    reward: str | Callable[..., Any] = DETERMINISTIC
    """"deterministic", "noisy", or a function (states (n, d), action) → rewards (n,) that gives the mean reward."""
    reward_lipschitz: float | None = None
    """λ_r. Mean rewards at x and x' of one room differ by at most λ_r·|x - x'|, in the environment's units."""
    reward_of: str = STATE
    """Whether rewards depend on the "state" only, or on "state-action"."""

    def __post_init__(self) -> None:
        """Check what was given."""
        if self.rooms is not None:
            object.__setattr__(self, "rooms", checked_rooms(self.rooms))
        object.__setattr__(self, "variation", positive("variation", self.variation, zero=True))
        one_of("reward_of", self.reward_of, (STATE, STATE_ACTION))
        if not callable(self.reward) and self.reward not in (DETERMINISTIC, NOISY):
            raise ValueError(
                f'reward must be "{DETERMINISTIC}", "{NOISY}" or a function (states, action) → rewards; got '
                f"{self.reward!r}"
            )
        if self.reward_lipschitz is None:
            raise ValueError(
                "reward_lipschitz is needed: how much the mean reward changes per unit of distance, such as 10.0. "
                "Rewards are known at the states that were seen, or where a function is evaluated, and it says what "
                "they can be between these"
            )
        object.__setattr__(self, "reward_lipschitz", positive("reward_lipschitz", self.reward_lipschitz, zero=True))

    @property
    def slope(self) -> float:
        """λ_r as a number."""
        assert self.reward_lipschitz is not None  # checked when the declaration was made
        return self.reward_lipschitz

    def boxes(self, low: Floats, high: Floats) -> tuple[tuple[Floats, Floats], ...]:
        """The rooms as pairs of arrays (d,), in a state space from `low` to `high`; an error names what is wrong."""
        rooms = [(low, high)] if self.rooms is None else [(np.array(a), np.array(b)) for a, b in self.rooms]
        check_axes("rooms", low.size)
        if self.rooms is None and not (np.isfinite(low).all() and np.isfinite(high).all()):
            raise ValueError(
                f"rooms: the state space from {low} to {high} is not bounded; give rooms=[(low, high), …], the boxes "
                "onto which states are clipped"
            )
        for a, b in rooms:
            if a.size != low.size:
                raise ValueError(f"rooms: states have {low.size} coordinates, and the room from {a} to {b} {a.size}")
            if not (b > a).all():
                raise ValueError(f"rooms: a room must be wider than 0 on every axis; got the room from {a} to {b}")
        return tuple(rooms)


def checked_rooms(rooms: Any) -> tuple[Bounds, ...]:
    """The rooms as pairs of tuples of d numbers, disjoint and finite."""
    found = checked_boxes("rooms", rooms, ", or None for the whole observation space")
    for i, (low, high) in enumerate(found):
        if len(low) != len(found[0][0]):
            raise ValueError(f"rooms: all must have the same number of coordinates; box {i} is {rooms[i]!r}")
        for k, (a, b) in enumerate(found[:i]):
            if (np.less_equal(low, b) & np.less_equal(a, high)).all():
                raise ValueError(
                    f"rooms: boxes {k} and {i} touch or overlap, so that it is not clear which of them a state is in"
                )
    return found
