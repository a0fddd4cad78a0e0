"""Checks of rewards and flags that an environment or a user gives during an episode."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

__all__ = ["as_flag", "as_reward"]

LARGEST = 0.1 * 1e100  # a larger reward is an error: a range of rewards must have a finite width


def as_reward(reward: Any, name: str = "reward") -> float:
    """A reward as a float; NumPy scalars and arrays of size 1 are accepted."""
    if type(reward) is float and abs(reward) < LARGEST:
        return reward
    number = math.nan
    if reward is None or isinstance(reward, str | bytes):
        raise TypeError(f"{name} must be a number, got {reward!r}")
    try:
        array = np.asarray(reward)
        if array.size != 1 or array.dtype.kind not in "biuf":
            raise TypeError
        number = float(array.reshape(())[()])
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a number, got {reward!r}") from None
    if not abs(number) < LARGEST:
        raise ValueError(f"{name} must be a finite number, got {reward!r}")
    return number


def as_flag(value: Any, name: str) -> bool:
    """A flag as a bool; 0, 1, NumPy bools and arrays of size 1 are accepted."""
    if type(value) is bool:
        return value
    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "biuf" or array.reshape(())[()] not in (0, 1):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(array.reshape(())[()])
