"""Bounds on mean rewards over cells, where rewards are random: empirical Bernstein on blocks of cells.

For a block of cells around c, fixed before the data, let n of the samples' states lie in it. Given the past and x_s the
reward r_s ∈ [0, 1] has the mean r(x_s, a_s), and whether x_s lies in the block is known before r_s. So

    r(x, a) ≤ (1/n)Σ r_s + B(V̂, n) + λ_r·(1/n)Σ|x - x_s|,         V̂ = Σ(r_s - r̄)² + n·(1/2J)²,

and the same on the other side, where |x - x_s| is at most the distance of two cells' farthest points. There are several
sizes of blocks, and the best bound is taken; m counts two sides, cells, sizes and, if rewards depend on them, actions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.cells import Cells, Room
from kernelrl.certifying.plan import RewardBounds
from kernelrl.certifying.rewards import of_action
from kernelrl.certifying.samples import Samples

__all__ = ["REACHES", "noisy_rewards"]

Floats = npt.NDArray[np.float64]
REACHES = {
    1: (0, 1, 2, 3, 4, 6, 8, 12, 24, 48),
    2: (0, 1, 2, 3, 4, 6, 8, 12),
    3: (0, 1, 2, 3),
}  # for each number of axes: cells on each side of c


def noisy_rewards(
    cells: Cells, samples: Samples, slope: float, actions: list[int | None], delta: float, beyond: float
) -> RewardBounds:
    """Bounds that hold together with probability 1-δ."""
    sizes = len(REACHES[len(cells.rooms[0].counts)])
    bonus = Bonus.of(2.0 * cells.number * sizes * len(actions), delta)
    lower, upper = [], []
    for i, room in enumerate(cells.rooms):
        sides = [
            over_blocks(room, samples, (samples.rooms == i) & of_action(samples, action), slope, bonus, beyond)
            for action in actions
        ]
        lower.append(np.stack([low for low, _ in sides]))
        upper.append(np.stack([high for _, high in sides]))
    return RewardBounds(tuple(lower), tuple(upper))


def over_blocks(
    room: Room, samples: Samples, own: Any, slope: float, bonus: Bonus, beyond: float
) -> tuple[Floats, Floats]:
    """The bounds over the cells of a room from the samples `own`."""
    low, high = np.zeros(room.counts), np.ones(room.counts)
    code = np.ravel_multi_index(tuple(room.index(samples.states[own]).T), room.counts)
    r = samples.rewards[own].clip(0.0, 1.0)
    weights = np.ones(len(r)), r, r * r
    fields: Any = np.stack([np.bincount(code, w, room.number).reshape(room.counts) for w in weights])
    for reach in REACHES[len(room.counts)]:
        n, total, squares, distance = in_blocks(room, fields, reach, beyond)
        some = n > 0
        count = np.where(some, n, 1.0)
        spread = np.maximum(squares * (1.0 + 1e-9) - total * total / count, 0.0) + count * (0.5 / GRID) ** 2
        margin = bonus(spread, 1.0, 1.0) / count + slope * distance / count + 1e-9
        np.minimum(high, np.where(some, total / count + margin, 1.0), out=high)
        np.maximum(low, np.where(some, total / count - margin, 0.0), out=low)
    if (low > high).any():
        at = room.centres()[np.unravel_index(int(np.argmax(low - high)), low.shape)]
        raise ValueError(
            f"reward_lipschitz: near {at} mean rewards differ by more than it allows, so that it is too small, or an "
            "event of probability delta has happened; give a larger one"
        )
    return low, high


def in_blocks(room: Room, fields: Floats, reach: int, beyond: float) -> tuple[Floats, Floats, Floats, Floats]:
    """Number, sum and squares of rewards in the block of each cell, and Σ of the largest distances |x - x_s|."""
    width = [(0, 0)] + [(reach, reach)] * len(room.counts)
    padded = np.pad(fields, width)
    summed, distance = np.zeros_like(fields), np.zeros(room.counts)
    for shift in np.ndindex(*([2 * reach + 1] * len(room.counts))):
        part = padded[(slice(None), *(slice(s, s + n) for s, n in zip(shift, room.counts, strict=True)))]
        away = (np.abs(np.array(shift) - reach) + 1) * room.side  # of any point of one cell from any of the other
        summed += part
        distance += part[0] * (float(np.linalg.norm(away)) + beyond)
    return summed[0], summed[1], summed[2], distance
