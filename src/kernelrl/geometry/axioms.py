"""Whether a function is a metric, as far as a few states can tell."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Bounds", "Floats", "check_axioms", "check_least", "some_states"]

Floats = npt.NDArray[np.float64]
Bounds = Floats | Sequence[float]  # (d,)


def some_states(low: Bounds, high: Bounds, number: int = 24) -> Floats:
    """States all over the box (number, d), its corners among them; the same every time."""
    rng = np.random.default_rng(0)
    low, high = np.asarray(low, float), np.asarray(high, float)
    start = np.where(np.isfinite(low), low, np.where(np.isfinite(high), high - 1.0, -1.0))
    end = np.where(np.isfinite(high), high, np.maximum(start, 0.0) + 1.0)
    share = rng.random((number, low.size))
    share[0], share[1] = 0.0, 1.0
    return start * (1.0 - share) + end * share


def check_least(states: Floats, between: Floats, least: Floats, what: str) -> None:
    """Refuse squared distances (n, n) below what is `least`."""
    if (between < least * (1.0 - 1e-9)).any():
        i, j = np.argwhere(between < least * (1.0 - 1e-9))[0]
        raise ValueError(
            f"metric: the distance from {states[i]} to {states[j]} is {np.sqrt(between[i, j])}, but {what} "
            f"({np.sqrt(least[i, j])})"
        )


def check_axioms(states: Floats, between: Floats) -> None:
    """Reject distances (n, n) between states (n, d) that violate the pseudometric axioms."""
    close = 1e-9 * np.nanmax(abs(between), initial=1e-300)
    for wrong, what in (
        (~np.isfinite(between), "is no finite number"),
        (between < 0.0, "is negative"),
        (abs(between - between.T) > close, "is not symmetric"),
        (np.eye(len(states)) * between > close, "of a state to itself is not 0"),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0]
            there, back = between[i, j], between[j, i]
            raise ValueError(
                f"metric: the distance {what}: {there} from {states[i]} to {states[j]}, {back} the other way"
            )
    detour = (between[:, :, None] + between[None, :, :]).min(axis=1)  # over the state in the middle
    if (between > detour + close).any():
        i, j = np.argwhere(between > detour + close)[0]
        raise ValueError(
            f"metric: from {states[i]} to {states[j]} the distance is {between[i, j]}, but {detour[i, j]} by "
            "way of another state; the triangle inequality must hold"
        )
