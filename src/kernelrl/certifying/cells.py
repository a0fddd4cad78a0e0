"""Rooms divided into cells: closed boxes of equal sides, fixed before the data, on which bounds are constant.

The sides must divide the widths of a room, so on each axis a side is width / ⌈width / cell⌉, at most the one asked for.

Rounding. Computed places of cells, states and displacements are off by at most ε on each axis (`rounding`). So bounds
of step h (from 1) are those over the cell made wider by h·ε on each side: a displacement moves the cell of step h into
the cells of step h+1, whatever the rounding. Only bounds on rewards have to know of it, since they must hold on the
widest cells (docs/theory.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

__all__ = ["Cells", "Room", "divide", "rounding"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
NEARLY = 1e-6  # a width that is this share of a cell above a multiple of the cell counts as that multiple


@dataclass(frozen=True, eq=False)
class Room:
    """A box and how it is divided."""

    low: Floats  # (d,)
    high: Floats  # (d,)
    counts: tuple[int, ...]  # cells on each axis

    @cached_property
    def side(self) -> Floats:
        """(d,) the sides of a cell."""
        sides: Floats = (self.high - self.low) / np.array(self.counts)
        return sides

    @property
    def number(self) -> int:
        """How many cells there are."""
        return math.prod(self.counts)

    @property
    def half_diagonal(self) -> float:
        """The largest distance of a point of a cell from its centre."""
        return 0.5 * float(np.linalg.norm(self.side))

    def index(self, states: Floats) -> Whole:
        """(n, d) the cell of each state (n, d) of this room."""
        places = np.floor((states - self.low) / self.side).astype(np.int64)
        return np.clip(places, 0, np.array(self.counts) - 1)

    def centres(self, parts: int = 1) -> Floats:
        """(…, d) the centres of cells, or of the `parts`^d boxes that each cell is divided into."""
        numbers = [np.arange(n * parts) + 0.5 for n in self.counts]
        axes = [low + k * side / parts for low, k, side in zip(self.low, numbers, self.side, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


@dataclass(frozen=True, eq=False)
class Cells:
    """All rooms."""

    rooms: tuple[Room, ...]
    slack: Floats  # (d,) ε, how far computed places may be off

    @property
    def number(self) -> int:
        """N, how many cells there are."""
        return sum(room.number for room in self.rooms)

    @property
    def sides(self) -> tuple[tuple[float, ...], ...]:
        """The sides that were taken, for each room."""
        return tuple(tuple(room.side.tolist()) for room in self.rooms)

    def room_of(self, states: Floats) -> Whole:
        """(n,) the number of the room that each state (n, d) is in, up to ε; -1 for none."""
        found = np.full(len(states), -1)
        for i, room in enumerate(self.rooms):
            inside = ((states >= room.low - self.slack) & (states <= room.high + self.slack)).all(axis=1)
            found[inside] = i
        return found

    def widest(self, horizon: int) -> float:
        """How far points of the widest cells may be outside their cell."""
        return (horizon + 1) * float(np.linalg.norm(self.slack))


def divide(boxes: tuple[tuple[Floats, Floats], ...], cell: float, slack: Floats) -> Cells:
    """The rooms, divided into cells of at most that side."""
    rooms = []
    for low, high in boxes:
        counts = tuple(max(1, math.ceil(width / cell - NEARLY)) for width in (high - low).tolist())
        rooms.append(Room(low, high, counts))
    return Cells(tuple(rooms), slack)


def rounding(boxes: tuple[tuple[Floats, Floats], ...], states: Floats, next_states: Floats) -> Floats:
    """(d,) ε: the rounding of states, displacements and cells, for states of single or of double precision."""
    low, high = np.min([low for low, _ in boxes], axis=0), np.max([high for _, high in boxes], axis=0)
    both = (states, next_states)
    single = all(np.array_equal(x, x.astype(np.float32)) for x in both) if len(states) else False
    widest = np.maximum(abs(low), abs(high))
    step = np.spacing(widest.astype(np.float32)).astype(np.float64) if single else np.spacing(widest)
    return np.asarray(4.0 * step + 16.0 * np.spacing(widest))
