"""Noise that is recovered from transitions: which samples count, and in which bin of noise each lies.

A sample is *unknown* if nothing was recovered, or if that lies outside the box of noise. Whether a sample counts may
depend on the past and on (x_s, a_s) only. Here it counts if at least `WARM` noises were known before, and if noise at
the corners of their hull, made twice as wide and cut off at the box, could be recovered after (x_s, a_s).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.samples import WARM, earlier
from kernelrl.models.exogenous import ACTION, Exogenous

__all__ = ["Recovered", "asked", "declared_rewards", "recovered"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Recovered:
    """Transitions in order of time."""

    states: Floats  # (n, d)
    actions: Whole  # (n,) the number of each action, or of the nearest of the net
    played: Any  # (n,) or (n, k) actions as functions take them
    rewards: Floats  # (n,) in the environment's units
    steps: Whole  # (n,)
    noise: Floats  # (n, m), nan where it is not known
    kept: Flags  # (n,) κ
    censored: Flags  # (n,) unknown

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.actions)


def asked(name: str, function: Any, arguments: tuple[Any, ...], shape: tuple[int, ...], finite: bool = True) -> Floats:
    """The values of a user's function of arrays, checked."""
    if shape[0] == 0:
        return np.zeros(shape)
    given = ", ".join(str(np.shape(one)) for one in arguments)
    try:
        values = np.asarray(function(*arguments), np.float64)
    except Exception as error:
        raise ValueError(f"{name}: the function failed for arrays of shapes {given}: {error}") from error
    if values.shape != shape:
        raise ValueError(f"{name}: for arrays of shapes {given} it must return shape {shape}, got {values.shape}")
    if finite and not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values.reshape(len(values), -1)).all(axis=1)))
        raise ValueError(f"{name}: it must return finite numbers, and gives {values[row]} for "
                         + ", ".join(str(one[row]) for one in arguments))  # fmt: skip
    return values


def recovered(
    model: Exogenous, states: Floats, actions: Whole, played: Any, rewards: Floats, next_states: Floats, steps: Whole,
    within: float,
) -> Recovered:  # fmt: skip
    """What the transitions say; F at the noise recovered must be within `within` of the next state."""
    low, high = model.noise_box
    noise = asked("recover", model.recover, (states, played, next_states), (len(states), low.size), finite=False)
    inside: Flags = np.all((noise >= low) & (noise <= high), axis=1)  # False for nan
    x, a, y = states[inside], played[inside], next_states[inside]
    again = asked("function", model.function, (x, a, noise[inside]), y.shape)
    off = np.abs(again - y).max(axis=1, initial=0.0)
    if (off > within).any():
        row = int(np.flatnonzero(inside)[np.argmax(off > within)])
        raise ValueError(
            f"recover: row {row} (the first is 0) goes from {states[row]} by the action {played[row]} to "
            f"{next_states[row]}, and the function gives {again[np.argmax(off > within)]} for the noise {noise[row]} "
            "that was recovered; return nan where it is not known, or give recover_error"
        )
    groups = actions if model.noise_of == ACTION else np.zeros(len(actions), np.int64)
    kept = np.zeros(len(actions), np.bool_)
    for group in np.unique(groups):
        own = np.flatnonzero(groups == group)
        kept[own] = counted(model, states[own], played[own], noise[own], inside[own])
    return Recovered(states, actions, played, rewards, steps, noise, kept, ~inside)


def counted(model: Exogenous, states: Floats, played: Any, noise: Floats, inside: Flags) -> Flags:
    """κ (n,) of samples of one law."""
    low, high = model.noise_box
    known = inside[:, None]
    least = earlier(np.minimum.accumulate(np.where(known, noise, np.inf), axis=0), np.inf)
    most = earlier(np.maximum.accumulate(np.where(known, noise, -np.inf), axis=0), -np.inf)
    enough = earlier(np.cumsum(inside), 0) >= WARM
    x, a = states[enough], played[enough]
    half = 0.5 * (most[enough] - least[enough])
    ends = np.maximum(least[enough] - half, low), np.minimum(most[enough] + half, high)
    fits = np.ones(len(x), np.bool_)
    for corner in itertools.product((0, 1), repeat=low.size):
        z = np.stack([ends[e][:, j] for j, e in enumerate(corner)], axis=1)
        y = asked("function", model.function, (x, a, z), x.shape)
        fits &= np.isfinite(asked("recover", model.recover, (x, a, y), z.shape, finite=False)).all(axis=1)
    kept = enough.copy()
    kept[enough] = fits
    return kept


def declared_rewards(model: Exogenous, samples: Recovered, which: Flags) -> Floats:
    """The declared mean rewards of some samples, whose noise must be known if rewards depend on it."""
    arguments = samples.states[which], samples.played[which], samples.noise[which]
    return asked("reward", model.reward, arguments if model.with_noise else arguments[:2], (int(which.sum()),))
