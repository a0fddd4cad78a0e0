"""A range of rewards where none was given and rewards are deterministic: they bound themselves.

A reward at x is at most min_s [r_s + λ_r|x - x_s|] and at least max_s [r_s - λ_r|x - x_s|], over the samples of the
same room (and action). So all rewards lie between a = the lowest and b = the highest of these bounds, for certain. But
[a, b] depends on the data, and the bonus needs a range that does not. Therefore the range is one of a family that is
fixed before the data,

    [i·W_k/8, i·W_k/8 + W_k],    W_k = D·2^{k/2},    D = λ_r·(the largest diagonal of a room),    i, k whole numbers,

namely the narrowest that contains [a, b]. Each has the share 1/(2(|k+4|+1)(|k+4|+2)) · 1/(2(|i|+1)(|i|+2)) of δ: the
largest is that of D/4, since rewards hardly ever change by λ_r all along a room. The shares add up to 9/16 at most, so
the bounds of all ranges of the family that contain every reward hold together with probability 1-δ.
k is at least -16. If it is larger, the width is at most 8/7·√2 times b - a.

A range that is known is better: it is narrower where few states were visited, and has all of δ.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import divide, rounding
from kernelrl.certifying.rewards import of_action, open_envelope
from kernelrl.certifying.samples import observed
from kernelrl.models.displacement import STATE, Displacement

__all__ = ["NARROWEST", "USUAL", "bounds_of_rewards", "fixed_range"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
CELLS = 100  # along the diagonal of a room, for bounds on rewards
NARROWEST = -16  # k: W is D/256
USUAL = -4  # the k with the largest share


def bounds_of_rewards(
    model: Displacement, low: Floats, high: Floats, states: Floats, actions: Whole, rewards: Floats,
    next_states: Floats, A: int, horizon: int,
) -> tuple[float, float]:  # fmt: skip
    """[a, b], infinite where an action was never tried in a room and rewards may depend on it."""
    boxes = model.boxes(low, high)
    cells = divide(boxes, diagonal(boxes) / CELLS, rounding(boxes, states, next_states))
    samples = observed(cells, states, actions, rewards, next_states, A)
    numbers: list[int | None] = [None] if model.reward_of == STATE else list(range(A))
    least, most = math.inf, -math.inf
    for i, room in enumerate(cells.rooms):
        for action in numbers:
            own = (samples.rooms == i) & of_action(samples, action)
            below, above = open_envelope(room, samples, own, model.slope, cells.widest(horizon))
            least, most = min(least, float(below.min())), max(most, float(above.max()))
    return least, most


def diagonal(boxes: tuple[tuple[Floats, Floats], ...]) -> float:
    """The largest of all rooms."""
    return max(float(np.linalg.norm(high - low)) for low, high in boxes)


def fixed_range(
    model: Displacement, low: Floats, high: Floats, least: float, most: float
) -> tuple[tuple[float, float], float]:
    """The narrowest range of the family that contains [`least`, `most`], and its share of δ."""
    unit = model.slope * diagonal(model.boxes(low, high)) or 1.0
    k = NARROWEST
    while True:
        width = unit * 2.0 ** (0.5 * k)
        i = math.floor(8.0 * least / width)
        i -= i * width / 8.0 > least  # where the quotient was rounded
        start = i * width / 8.0
        if start <= least and most <= start + width:
            return (start, start + width), share(k - USUAL) * share(i)
        k += 1


def share(number: int) -> float:
    """Shares of all whole numbers; they add up to 3/4."""
    return 1.0 / (2.0 * (abs(number) + 1) * (abs(number) + 2))
