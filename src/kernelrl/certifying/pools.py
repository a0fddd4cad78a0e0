"""How samples are counted for each piece of a room.

With the same law of displacements everywhere, a room is one piece, and every sample counts for it alike. If the law may
change with the state (λ_D > 0), rooms are divided into blocks. For a block b and a radius ρ those samples count whose
block b' has no point farther than ρ from a point of b: weights 0 and 1 that are functions of x_s. Displacements there
can differ by λ_D·ρ, which is covered by cells that are wider by ⌈λ_Dρ/η⌉ on each side. There are several radii, fixed
before the data, and the best bound is taken; each is one more statement that must hold.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Cells, Room
from kernelrl.certifying.samples import Samples
from kernelrl.certifying.sums import Offsets

__all__ = ["Piece", "Pool", "bytes_of_pieces", "pieces_of", "places_of"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
BLOCKS = {1: 64, 2: 8, 3: 4}  # the most on each axis of a room, for each number of axes


@dataclass(frozen=True, eq=False)
class Pool:
    """The samples of one action that count for a piece."""

    n: float
    lost: float  # how many of them are censored
    offsets: Offsets | None  # of the others; None if there are none
    spread: float  # Σ|D_s - D̄|² of the others


@dataclass(frozen=True, eq=False)
class Piece:
    """A box of cells of a room, and what counts for it."""

    room: int
    start: tuple[int, ...]
    shape: tuple[int, ...]
    widened: tuple[tuple[int, ...], ...]  # for each radius: by how many cells on each axis
    pools: tuple[tuple[Pool, ...], ...]  # for each radius and action

    @property
    def box(self) -> tuple[slice, ...]:
        """Where its cells are in the room."""
        return tuple(slice(s, s + m) for s, m in zip(self.start, self.shape, strict=True))


def places_of(room: Room, moves: Floats) -> Whole:
    """(n, d) displacements in whole cells, i = ⌊D/η⌋; farther than a room is wide makes no difference."""
    most = np.array(room.counts)
    places = np.floor(np.clip(moves / room.side, -(most + 1.0), most + 1.0)).astype(np.int64)
    return np.clip(places, -most, most - 1)


def pieces_of(cells: Cells, samples: Samples, actions: int, variation: float, horizon: int = 1) -> tuple[Piece, ...]:
    """All pieces of all rooms, for plans of so many steps."""
    blocks, apart, radii = divided(cells, variation)
    source = block_of(cells, blocks, samples)
    made = []
    for i, room in enumerate(cells.rooms):
        reach = [spread_over(variation, radius + cells.widest(horizon), room) for radius in radii]
        off = 2.0 * float(np.linalg.norm(cells.slack))
        tables = [Table.of(room, samples, source, a, off) for a in range(actions)]
        for k, block in enumerate(blocks):
            if block.room == i:
                pools = tuple(tuple(table.pool(apart[k] <= radius) for table in tables) for radius in radii)
                made.append(Piece(i, block.start, block.shape, tuple(reach), pools))
    return tuple(made)


def divided(cells: Cells, variation: float) -> tuple[list[Block], Floats, tuple[float, ...]]:
    """The blocks of all rooms, the largest distance of points of each two, and the radii."""
    d = len(cells.rooms[0].counts)
    blocks = [
        Block(i, start, shape)
        for i, room in enumerate(cells.rooms)
        for start, shape in boxes(room, blocks_on(room, variation, BLOCKS[d]))
    ]
    boxed = [cells.rooms[block.room] for block in blocks]
    low = np.array([room.low + room.side * b.start for room, b in zip(boxed, blocks, strict=True)])
    high = np.array([room.low + room.side * np.add(b.start, b.shape) for room, b in zip(boxed, blocks, strict=True)])
    apart = np.linalg.norm(np.maximum(high[:, None] - low[None], high[None] - low[:, None]), axis=2)  # farthest points
    return blocks, apart, (math.inf,) if variation == 0.0 else levels(apart)


def bytes_of_pieces(cells: Cells, samples: Samples, actions: int, variation: float) -> float:
    """About what several pieces and radii add to the memory of a plan: the pools, and the fields that they read."""
    blocks, apart, radii = divided(cells, variation)
    if len(radii) == 1:
        return 0.0
    source, near, fields = block_of(cells, blocks, samples), 0.0, np.zeros(len(cells.rooms))
    for a in range(actions):
        own = samples.kept & (samples.actions == a) & ~samples.censored
        if not own.any():
            continue
        number = np.bincount(source[own], minlength=len(blocks)).astype(np.float64)
        places = [places_of(room, samples.moves[own]) for room in cells.rooms]
        spans = [p.max(axis=0) - p.min(axis=0) + 1 for p in places]
        most = np.array([math.prod(spans[block.room].tolist()) for block in blocks], np.float64)
        near += sum(float(np.minimum((apart <= radius) @ number, most).sum()) for radius in radii)
        grown = [np.prod(np.add(room.counts, span)) for room, span in zip(cells.rooms, spans, strict=True)]
        fields = np.maximum(fields, grown)
    return float(8.0 * ((samples.states.shape[1] + 1.0) * near + 8.0 * len(radii) * fields.sum()))


@dataclass(frozen=True)
class Block:
    """A box of cells of a room."""

    room: int
    start: tuple[int, ...]
    shape: tuple[int, ...]


def blocks_on(room: Room, variation: float, most: int) -> int:
    """How many blocks there are on an axis: λ_D·(the diagonal of a block) is about a cell, if they are not many."""
    cells = variation * float(np.linalg.norm(room.high - room.low)) / float(room.side.min())
    return max(1, min(most, math.ceil(cells)))


def boxes(room: Room, each: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Where the blocks of a room start, in cells, and how large they are, at most `each` on an axis."""
    cuts = [np.unique(np.linspace(0, n, min(each, n) + 1).round().astype(int)) for n in room.counts]
    starts = itertools.product(*(axis[:-1].tolist() for axis in cuts))
    shapes = itertools.product(*(np.diff(axis).tolist() for axis in cuts))
    return list(zip(starts, shapes, strict=True))


def levels(apart: Floats) -> tuple[float, ...]:
    """The radii: that of the largest block, doubled until all blocks are within it."""
    radius, most = float(apart.diagonal().max()) * (1.0 + 1e-9), float(apart.max())
    found = [radius]
    while found[-1] < most:
        found.append(2.0 * found[-1])
    return tuple(found)


def spread_over(variation: float, radius: float, room: Room) -> tuple[int, ...]:
    """⌈λ_D·ρ/η⌉ on each axis."""
    if variation == 0.0:
        return (0,) * len(room.counts)
    farthest = variation * radius
    return tuple(min(n, math.ceil(farthest / side)) for n, side in zip(room.counts, room.side, strict=True))


def block_of(cells: Cells, blocks: list[Block], samples: Samples) -> Whole:
    """(n,) the number of the block that each sample's state is in."""
    found = np.zeros(samples.number, np.int64)
    for i, room in enumerate(cells.rooms):
        own = samples.rooms == i
        numbers = np.zeros(room.counts, np.int64)
        for k, block in enumerate(blocks):
            if block.room == i:
                numbers[tuple(slice(s, s + m) for s, m in zip(block.start, block.shape, strict=True))] = k
        found[own] = numbers[tuple(room.index(samples.states[own]).T)]
    return found


@dataclass(frozen=True, eq=False)
class Table:
    """The samples of an action that count, by block and displacement in cells of one room."""

    number: Whole  # (B,) of each block, censored ones included
    lost: Whole  # (B,)
    totals: Floats  # (B, d + 2) number, sum and sum of squares of known displacements
    low: Whole  # (d,)
    shape: tuple[int, ...]  # of the box of displacements that begins at low
    entries: tuple[Whole, Whole, Floats]  # block, place in the box, count
    off: float  # how far |D_s - D̄| may be off by rounding

    @classmethod
    def of(cls, room: Room, samples: Samples, source: Whole, a: int, off: float) -> Table:
        """The table of action a."""
        B, d = int(source.max(initial=0)) + 1, len(room.counts)
        own = samples.kept & (samples.actions == a)
        known = own & ~samples.censored
        moves, places, block = samples.moves[known], places_of(room, samples.moves[known]), source[known]
        low = places.min(axis=0) if len(places) else np.zeros(d, np.int64)
        shape = tuple((places.max(axis=0) - low + 1).tolist()) if len(places) else (1,) * d
        code = np.ravel_multi_index(tuple((places - low).T), shape)
        pairs, counts = np.unique(block * math.prod(shape) + code, return_counts=True)
        entries = pairs // math.prod(shape), pairs % math.prod(shape), counts.astype(np.float64)
        parts = [np.ones(len(moves)), *moves.T, (moves * moves).sum(axis=1)]
        totals: Any = np.stack([np.bincount(block, part, B) for part in parts], axis=1)
        number = np.bincount(source[own], minlength=B)
        return cls(number, number - np.bincount(block, minlength=B), totals, low, shape, entries, off)

    def pool(self, near: npt.NDArray[np.bool_]) -> Pool:
        """The samples of the blocks that are `near`."""
        near = near[: len(self.number)]
        n, lost = float(self.number[near].sum()), float(self.lost[near].sum())
        block, code, counts = self.entries
        chosen = near[block]
        if not chosen.any():
            return Pool(n, lost, None, 0.0)
        found: Any = np.bincount(code[chosen], counts[chosen])
        seen = np.flatnonzero(found)
        places = np.stack(np.unravel_index(seen, self.shape), axis=1) + self.low
        total = self.totals[near].sum(axis=0)
        spread = float(total[-1] - (total[1:-1] ** 2).sum() / total[0])
        slack = 8.0 * (n + 4.0) * 2.0**-53 * float(total[-1])  # of rounding: sums of n numbers, one after the other
        spread = (math.sqrt(max(0.0, spread) + slack) + math.sqrt(float(total[0])) * self.off) ** 2
        return Pool(n, lost, Offsets(places, found[seen]), spread)
