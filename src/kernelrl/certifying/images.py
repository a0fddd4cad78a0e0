"""The largest and the smallest value over the cells that a box of states meets, for many boxes of the same size.

A box y ± w meets the cells from ⌊(y-w-low)/η⌋ to ⌊(y+w-low)/η⌋ on each axis: q+1 or q+2 of them, q = ⌊2w/η⌋. So values
over all such ranges are tabulated once, and a box is one look-up: its first cell, and which of the two lengths, on each
axis. Cells outside the room count as those at its border.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Room

__all__ = ["Ranges"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranges:
    """Boxes of half side w in a room."""

    room: Room
    w: float

    def half(self, axis: int) -> float:
        """The half side on an axis: one as wide as the room is as good as any that is wider."""
        return min(self.w, float(self.room.high[axis] - self.room.low[axis]))

    @property
    def shorter(self) -> tuple[int, ...]:
        """q+1 for each axis."""
        return tuple(math.floor(2.0 * self.half(j) / side) + 1 for j, side in enumerate(self.room.side.tolist()))

    def places(self, centres: Floats) -> Whole:
        """(n,) where in a table the boxes around `centres` (n, d) are."""
        code = np.zeros(len(centres), np.int64)
        for j, (count, q) in enumerate(zip(self.room.counts, self.shorter, strict=True)):
            low, high, side, half = self.room.low[j], self.room.high[j], self.room.side[j], self.half(j)
            beyond = half + side if half == self.w else 0.0  # boxes farther away meet the room nowhere
            near = np.clip(centres[:, j], low - beyond, high + beyond) - low
            first = np.floor((near - half) / side).astype(np.int64)
            longer = np.floor((near + half) / side).astype(np.int64) - first >= q
            np.clip(first, -q, count - 1, out=first)
            code = code * (2 * (count + q)) + 2 * (first + q) + longer
        return code

    def table(self, values: Floats, side: Any) -> Floats:
        """What `places` point at: the largest (np.maximum) or smallest (np.minimum) value over each range."""
        for axis, (n, q) in enumerate(zip(self.room.counts, self.shorter, strict=True)):
            firsts = np.arange(-q, n)
            found = np.take(values, np.clip(firsts, 0, n - 1), axis=axis)
            for e in range(1, q):
                found = side(found, np.take(values, np.clip(firsts + e, 0, n - 1), axis=axis))
            longer = side(found, np.take(values, np.clip(firsts + q, 0, n - 1), axis=axis))
            both = np.stack([found, longer], axis=axis + 1)
            values = both.reshape(*found.shape[:axis], 2 * (n + q), *found.shape[axis + 1 :])
        return np.ascontiguousarray(values).reshape(-1)
