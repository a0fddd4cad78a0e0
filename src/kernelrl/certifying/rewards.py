"""Bounds on mean rewards over cells, where rewards are a known function or deterministic; both hold for certain.

    function          a cell is divided into k^d boxes: the value at the centre of a box ± λ_r·(half of its diagonal)
    deterministic     r_s + λ_r|x - x_s| for a sample s is above the reward at x, and r_s - λ_r|x - x_s| below: the best
                      of samples near x. All samples of a room can be used; those far away do not help.

Rewards are mapped from their range to [0, 1]. λ_r holds inside rooms, so only samples of the same room are used.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Cells, Room
from kernelrl.certifying.plan import RewardBounds
from kernelrl.certifying.samples import Samples

__all__ = [
    "bytes_of_envelope", "check_of_state", "deterministic_rewards", "function_range", "known_rewards", "of_action",
    "open_envelope", "parts_of",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
FINE = 0.0025  # a function is evaluated so finely that λ_r·(half of a diagonal) is below this
MOST_PARTS, MOST_POINTS, AT_ONCE = 16, 20_000_000, 500_000
RANGE_POINTS = 1_000_000  # of each room, where the range of a function is looked for
CHECKED_POINTS = 1000  # of each room, at which a function is asked for all actions
NEAREST, PARTS = 8, 3


def known_rewards(
    cells: Cells, function: Any, actions: list[int | None], slope: float, low: float, width: float, beyond: float
) -> RewardBounds:
    """Those of a function (states, action) → rewards in the environment's units; `slope` is λ_r in mapped units.

    `actions` are those to ask for: [None] asks for one, where rewards are those of the state only. `beyond` is how far
    points may be outside a cell.
    """
    lower, upper = [], []
    for room in cells.rooms:
        parts = parts_of(room, slope)
        margin = slope * (room.half_diagonal / parts * (1.0 + 1e-9) + beyond)
        least, most = [], []
        for slab in slabs(room, parts):
            centres = slab.centres(parts)
            found = [evaluated(function, centres, action, low, width) for action in actions]
            least.append(np.stack([over_parts(r, slab, parts, np.min) for r in found]))
            most.append(np.stack([over_parts(r, slab, parts, np.max) for r in found]))
        lower.append((np.concatenate(least, axis=1) - margin).clip(0.0, 1.0))
        upper.append((np.concatenate(most, axis=1) + margin).clip(0.0, 1.0))
    return RewardBounds(tuple(lower), tuple(upper))


def check_of_state(cells: Cells, function: Any, actions: list[int], low: float, width: float) -> None:
    """Raise ValueError if a function that was declared to depend on the state only differs between actions."""
    for room in cells.rooms:
        each = int(CHECKED_POINTS ** (1.0 / len(room.counts)))
        places = Room(room.low, room.high, (each,) * len(room.counts)).centres().reshape(-1, len(room.counts))
        first = evaluated(function, places, actions[0], low, width)
        for action in actions[1:]:
            other = evaluated(function, places, action, low, width)
            at = int(np.argmax(np.abs(other - first)))
            if abs(other[at] - first[at]) > 1e-9:
                raise ValueError(
                    f'reward_of="state" says that rewards do not depend on the action, and at {places[at]} the '
                    f"function gives {first[at] * width + low:g} for the action {actions[0]} and "
                    f'{other[at] * width + low:g} for {action}; declare reward_of="state-action"'
                )


def parts_of(room: Room, slope: float) -> int:
    """Into how many boxes on each axis a cell is divided, for a function with that slope."""
    most = int((MOST_POINTS / room.number) ** (1.0 / len(room.counts)))
    return max(1, min(math.ceil(slope * room.half_diagonal / FINE), MOST_PARTS, most))


def slabs(room: Room, parts: int) -> list[Room]:
    """The room cut across its first axis, into slabs of about AT_ONCE boxes of cells divided by `parts`."""
    n = room.counts[0]
    rows = max(1, AT_ONCE * n // (room.number * parts ** len(room.counts)))
    found = []
    for first in range(0, n, rows):
        last, low, high = min(first + rows, n), room.low.copy(), room.high.copy()
        low[0] = room.low[0] + first * room.side[0]
        high[0] = high[0] if last == n else room.low[0] + last * room.side[0]
        found.append(Room(low, high, (last - first, *room.counts[1:])))
    return found


def bytes_of_envelope(cells: Cells) -> float:
    """About how much memory the bounds on deterministic rewards take while they are made: near samples of each box."""
    d = len(cells.rooms[0].counts)
    return float(8 * max(room.number for room in cells.rooms) * PARTS**d * NEAREST * 4)


def function_range(
    boxes: tuple[tuple[Floats, Floats], ...], function: Any, actions: list[int], slope: float
) -> tuple[float, float]:
    """Numbers that the function is nowhere below and above: its values on a fine lattice, and λ_r between."""
    each, least, most = int(RANGE_POINTS ** (1.0 / boxes[0][0].size)), math.inf, -math.inf
    for low, high in boxes:
        room = Room(low, high, (each,) * low.size)
        for action in actions:
            values = evaluated(function, room.centres(), action, 0.0, 1.0, check=False)
            margin = slope * room.half_diagonal * (1.0 + 1e-9)
            least, most = min(least, values.min() - margin), max(most, values.max() + margin)
    return (least, most) if most > least else (least, least + 1.0)


def evaluated(
    function: Any, centres: Floats, action: int | None, low: float, width: float, check: bool = True
) -> Floats:
    """The function at `centres` (…, d), mapped to [0, 1]; `check` that it is inside."""
    states = centres.reshape(-1, centres.shape[-1])
    parts = [states[i : i + AT_ONCE] for i in range(0, len(states), AT_ONCE)]
    found = []
    for part in parts:
        try:
            values = np.asarray(function(part, 0 if action is None else action), np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"reward: the function (states (n, d), action) → rewards (n,) failed: {error}") from error
        if values.shape != (len(part),) or not np.isfinite(values).all():
            raise ValueError(
                f"reward: for states of shape {part.shape} the function must return {len(part)} finite numbers, got "
                f"an array of shape {values.shape}" + ("" if np.isfinite(values).all() else " with others")
            )
        found.append((values - low) / width)
    r = np.concatenate(found)
    if check and (r.min() < -1e-9 or r.max() > 1.0 + 1e-9):
        worst = r.min() if r.min() < -1e-9 else r.max()
        raise ValueError(
            f"reward: the function gives {worst * width + low:g}, outside reward_range=({low:g}, {low + width:g})"
        )
    return r.reshape(centres.shape[:-1])


def over_parts(values: Floats, room: Room, parts: int, best: Any) -> Floats:
    """The smallest or the largest value (…) over the boxes of each cell."""
    split = [length for n in room.counts for length in (n, parts)]
    return np.asarray(best(values.reshape(split), axis=tuple(range(1, 2 * len(room.counts), 2))))


def deterministic_rewards(
    cells: Cells, samples: Samples, slope: float, actions: list[int | None], beyond: float
) -> RewardBounds:
    """Those of deterministic rewards; [None] as `actions` takes samples of all actions together."""
    lower, upper = [], []
    for i, room in enumerate(cells.rooms):
        sides = [
            envelope(room, samples, (samples.rooms == i) & of_action(samples, action), slope, beyond)
            for action in actions
        ]
        lower.append(np.stack([low for low, _ in sides]))
        upper.append(np.stack([high for _, high in sides]))
    return RewardBounds(tuple(lower), tuple(upper))


def of_action(samples: Samples, action: int | None) -> Any:
    """Which samples are of that action; None: all."""
    return np.ones(samples.number, np.bool_) if action is None else samples.actions == action


def envelope(room: Room, samples: Samples, own: Any, slope: float, beyond: float) -> tuple[Floats, Floats]:
    """The bounds over the cells of a room from the samples `own`, where rewards are in [0, 1]."""
    low, high = open_envelope(room, samples, own, slope, beyond)
    return low.clip(0.0, 1.0), high.clip(0.0, 1.0)


def open_envelope(room: Room, samples: Samples, own: Any, slope: float, beyond: float) -> tuple[Floats, Floats]:
    """The same for rewards of any range; without samples they are infinite."""
    from scipy.spatial import cKDTree

    if not own.any():
        return np.full(room.counts, -math.inf), np.full(room.counts, math.inf)
    states, rewards = thinned(room, samples.states[own], samples.rewards[own])
    centres = room.centres(PARTS)
    k = min(NEAREST, len(states))
    distance, which = cKDTree(states).query(centres.reshape(-1, centres.shape[-1]), k=k)
    distance, which = distance.reshape(-1, k), which.reshape(-1, k)
    far = (distance + room.half_diagonal / PARTS + beyond) * (1.0 + 1e-12) * slope
    high = (rewards[which] + far).min(axis=1).reshape(centres.shape[:-1])
    low = (rewards[which] - far).max(axis=1).reshape(centres.shape[:-1])
    if (low > high + 1e-9).any():
        at = centres[np.unravel_index(int(np.argmax(low - high)), low.shape)]
        raise ValueError(
            f"reward_lipschitz: near {at} rewards differ by more than it allows, so that it is too small, or rewards "
            'are not deterministic; give a larger one, or reward="noisy"'
        )
    return over_parts(low, room, PARTS, np.min), over_parts(high, room, PARTS, np.max)


def thinned(room: Room, states: Floats, rewards: Floats) -> tuple[Floats, Floats]:
    """Of the samples in each small box those with the lowest and with the highest reward: others hardly help."""
    fine = Room(room.low, room.high, tuple(n * 2 * PARTS for n in room.counts))
    code = np.ravel_multi_index(tuple(fine.index(states).T), fine.counts)
    order = np.lexsort((rewards, code))
    code = code[order]
    first = np.append(True, code[1:] != code[:-1])
    chosen = np.unique(np.concatenate([order[first], order[np.append(first[1:], True)]]))
    return states[chosen], rewards[chosen]
