"""Checks of arguments: each returns its argument in the one form the package uses, or an error that names it."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

__all__ = [
    "as_whole", "finite", "flag", "flag_or_none", "is_auto", "one_of", "point_in", "positive", "whole_number", "within",
]  # fmt: skip


def as_finite(value: Any) -> float:
    """`value` as a float, or NaN if it is not a finite number."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan
    return number if math.isfinite(number) else math.nan


def finite(name: str, value: Any) -> float:
    """`value` as a finite float, or an error that names it."""
    number = as_finite(value)
    if math.isnan(number):
        raise ValueError(f"{name} must be a finite number, got {value!r}")
    return number


def positive(name: str, value: Any, zero: bool = False, least: float = 0.0, most: float = math.inf) -> float:
    """`value` as a finite float above 0 (with `zero`, at least 0), or an error that names it."""
    number = as_finite(value)
    if not (number > 0 or (zero and number == 0)):
        raise ValueError(f"{name} must be a finite number {'of at least' if zero else 'above'} 0, got {value!r}")
    if not least <= number <= most:
        raise ValueError(f"{name} must lie between {least} and {most}, got {value!r}")
    return number


def within(name: str, value: Any, low: float, high: float) -> float:
    """`value` as a float from `low` to `high`, or an error that names it."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) <= high:
        raise ValueError(f"{name} must be a number from {low:g} to {high:g}, got {value!r}")
    return float(value)


def point_in(name: str, value: Any, low: float, high: float) -> tuple[float, float]:
    """`value` as a pair of floats, both from `low` to `high`, or an error that names it."""
    if isinstance(value, str) or not hasattr(value, "__len__") or len(value) != 2:
        raise ValueError(f"{name} must be a pair (x, y) of numbers from {low:g} to {high:g}, got {value!r}")
    return within(f"x of {name}", value[0], low, high), within(f"y of {name}", value[1], low, high)


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


def is_auto(value: Any) -> bool:
    """Whether an argument is left to the agent."""
    return isinstance(value, str) and value == "auto"


def one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    """`value` if it is allowed, or an error that names it."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
    return value


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, or an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def flag_or_none(name: str, value: Any) -> bool | None:
    """`value` as a bool or None, or an error that names it."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True, False or None, got {value!r}")
    return None if value is None else bool(value)
