"""A system with exogenous noise: y = F(x, a, ξ), F known, the law of ξ unknown, and ξ computable from (x, a, y).

The law of ξ is the same in all states and at all steps, and for all actions or for each (docs/exogenous.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.arguments import one_of, positive
from kernelrl.models.boxes import check_axes, checked_box, checked_boxes

__all__ = ["ACTION", "ALL", "NOISE", "Exogenous"]

Floats = npt.NDArray[np.float64]
ALL, ACTION = "all", "action"
NOISE, STATE_ACTION = "noise", "state-action"


@dataclass(frozen=True)
class Exogenous:
    """The declaration y = F(x, a, ξ), with the same law of ξ wherever an action is played.

    Functions take and return arrays with one row for each transition. Actions are (n, k) for a Box, and whole numbers
    (n,) for a Discrete space. All differences are the largest over coordinates.
    """

    function: Callable[..., Any]
    """F, of states (n, d), actions, noise (n, m) → next states (n, d)."""
    recover: Callable[..., Any]
    """States, actions, next states → noise (n, m); rows with nan say that it is not known."""
    reward: Callable[..., Any]
    """States, actions, noise → the mean rewards given these (n,); states and actions only, with "state-action"."""
    noise: Any
    """The box (low, high) in which noise is told apart. Noise outside it is allowed, and counts as not known."""
    lipschitz: Any
    """Numbers Λ_x, Λ_a and Λ_ξ with |F(x,a,ξ) - F(x',a',ξ')| ≤ Λ_x|x - x'| + Λ_a|a - a'| + Λ_ξ|ξ - ξ'| for ξ, ξ' in the
    box."""
    reward_lipschitz: Any
    """Numbers λ_x, λ_a and λ_ξ, the same for the mean reward, in the environment's units."""
    noise_of: str = ALL
    """Whether the noise has one law for "all" actions or one for each "action" of a Discrete space."""
    reward_of: str = NOISE
    """Whether rewards depend on the "noise" or on "state-action" only."""
    recover_error: float = 0.0
    """How far recovered noise may be off, beyond rounding."""
    noise_cell: float | None = None
    """The side of bins of noise. None is that of cells."""
    action_cell: float | None = None
    """The distance of neighbouring actions of the net. None is the side of cells."""
    absorbing: Any = None
    """Boxes (low, high). An episode ends where it arrives in one of them, and nowhere else. With None it never does."""

    def __post_init__(self) -> None:
        """Check what was given."""
        for name in ("function", "recover", "reward"):
            if not callable(getattr(self, name)):
                raise ValueError(f"{name} must be a function of arrays, got {getattr(self, name)!r}")
        object.__setattr__(self, "noise", checked_box("noise", self.noise))
        for name in ("lipschitz", "reward_lipschitz"):
            object.__setattr__(self, name, checked_slopes(name, getattr(self, name)))
        one_of("noise_of", self.noise_of, (ALL, ACTION))
        one_of("reward_of", self.reward_of, (NOISE, STATE_ACTION))
        object.__setattr__(self, "recover_error", positive("recover_error", self.recover_error, zero=True))
        for name in ("noise_cell", "action_cell"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.absorbing is not None:
            object.__setattr__(self, "absorbing", checked_boxes("absorbing", self.absorbing))

    @property
    def noise_box(self) -> tuple[Floats, Floats]:
        """The lowest and the highest noise (m,)."""
        low, high = self.noise
        return np.array(low), np.array(high)

    @property
    def with_noise(self) -> bool:
        """Whether rewards depend on the noise."""
        return self.reward_of == NOISE

    def box(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """The state space, or an error if it cannot be divided into cells."""
        check_axes("model", low.size)
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError(
                f"model: the state space from {low} to {high} must be bounded, and wider than 0 on every axis; "
                "gymnasium.wrappers.TransformObservation(env, function, box) can give it other bounds"
            )
        return low, high


def checked_slopes(name: str, given: Any) -> tuple[float, float, float]:
    """Three numbers."""
    try:
        x, a, noise = given
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be three numbers, for the state, the action and the noise, such as (0, 1, 1); got {given!r}"
        ) from None
    return (
        positive(f"{name} of the state", x, zero=True), positive(f"{name} of the action", a, zero=True),
        positive(f"{name} of the noise", noise, zero=True),
    )  # fmt: skip
