"""Boxes that users declare, and which state spaces can be divided into cells."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["Bounds", "check_axes", "checked_box", "checked_boxes"]

Bounds = tuple[tuple[float, ...], tuple[float, ...]]
MOST_AXES = 3


def check_axes(name: str, number: int) -> None:
    """Raise ValueError, which begins with `name`, for states of so many coordinates that there are too many cells."""
    if not 1 <= number <= MOST_AXES:
        raise ValueError(
            f"{name}: cells are for states of 1 to {MOST_AXES} coordinates, and these have {number}; the number of "
            "cells would be too large"
        )


def checked_box(name: str, given: Any) -> Bounds:
    """(low, high) as tuples of numbers."""
    try:
        low, high = (np.atleast_1d(np.array(bound, np.float64)).reshape(-1) for bound in given)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be (low, high), numbers or one number for each axis; got {given!r}") from None
    if low.shape != high.shape or not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
        raise ValueError(f"{name} must be (low, high) with finite low < high on every axis; got {given!r}")
    return tuple(low.tolist()), tuple(high.tolist())


def checked_boxes(name: str, given: Any, or_else: str = "") -> tuple[Bounds, ...]:
    """A list of boxes; `or_else` says what may be given in its place."""
    if isinstance(given, str) or not isinstance(given, list | tuple) or len(given) == 0:
        raise ValueError(
            f"{name} must be a list of boxes (low, high), such as [((0, 0), (0.95, 1)), ((1.05, 0), (2, 1))]{or_else}; "
            f"got {given!r}"
        )
    return tuple(checked_box(f"{name}: box {i}", box) for i, box in enumerate(given))
