"""The plan for exogenous noise: bounds L_h(c) ≤ V*_h(x) ≤ U_h(c) for all x of a cell c (docs/exogenous.md).

With S(c,k,b) the cells that F can reach from the cell c by the actions near a_k and noise of the bin b,

    û_s = min(R, r↑ + max_S U_{h+1}),   l̂_s = min(R, r↑ + max_S L_{h+1})      for the bin of sample s; unknown: R and 0
    U_h(c) = max_k min(R, (1/n)Σû_s + B(V̂, n))

and L_h(c) alike with minima. The samples of a bin count together, so the cost is one of cells × actions × bins,
whatever the number of samples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.absorbing import Absorbing
from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.cells import Room
from kernelrl.certifying.images import Ranges
from kernelrl.certifying.recovered import asked
from kernelrl.models.exogenous import Exogenous

__all__ = ["AT_ONCE", "Counts", "Known", "Margins", "backward"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
AT_ONCE = 400_000  # triples of a cell, an action and a bin
KEPT = 4_000_000  # if there are no more in all, F is evaluated once and not at every step: 130 MB
ROUNDED = 2.0**-52


class Margins(NamedTuple):
    """How far F and the reward (mapped) can be from their values at centres; upward and downward."""

    move: tuple[float, float]
    reward: tuple[float, float]


class Counts(NamedTuple):
    """The samples that count for an action."""

    bins: Floats  # (M, m) the centres of bins that have samples
    number: Floats  # (M,) how many
    unknown: float

    @property
    def n(self) -> float:
        """All."""
        return float(self.number.sum()) + self.unknown


@dataclass(frozen=True, eq=False)
class Known:
    """What is known without the law of the noise."""

    model: Exogenous
    room: Room
    actions: Any  # (K,) or (K, k) those of the net, as functions take them
    low: float  # rewards are mapped from [low, low + width]
    width: float
    margins: Margins
    absorbing: Absorbing | None = None

    def rewards(self, arguments: tuple[Any, ...]) -> Floats:
        """(n,) mapped."""
        found = asked("reward", self.model.reward, arguments, (len(arguments[0]),))
        return (found - self.low) / self.width


def backward(
    known: Known, counts: list[Counts], horizon: int, bonus: Bonus, *, scale: float = 1.0,
    tick: Callable[[int], Any] = lambda done: None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Bounds (H, …) for all steps and cells.

    `counts` are for each action, or one for all. `scale` makes the bonus smaller, for tests of its validity; only 1 is
    certified. `tick` is called with the number of steps done.
    """
    shape, with_noise = known.room.counts, known.model.with_noise
    lower, upper = np.zeros((horizon + 1, *shape)), np.zeros((horizon + 1, *shape))
    sides = Ranges(known.room, known.margins.move[0]), Ranges(known.room, known.margins.move[1])
    triples = known.room.number * len(known.actions) * max(len(count.number) for count in counts)
    kept = list(pieces_of(known, counts, sides)) if triples <= KEPT else None
    for h in range(horizon - 1, -1, -1):
        R = float(horizon - h if with_noise else horizon - 1 - h)
        after = [
            (of.table(upper[h + 1], best), of.table(lower[h + 1], best))
            for of, best in zip(sides, (np.maximum, np.minimum), strict=True)
        ]
        low, high = np.zeros(known.room.number), np.zeros(known.room.number)
        for piece in kept or pieces_of(known, counts, sides):
            for found, out in zip(bounds_of(piece, after, R, bonus, scale), (high, low), strict=True):
                best = found.reshape(-1, piece.cells.stop - piece.cells.start).max(axis=0)
                np.maximum(out[piece.cells], best, out=out[piece.cells])
        outward = 8.0 * ROUNDED * (horizon - h)
        lower[h] = np.maximum(0.0, low - outward).reshape(shape)
        upper[h] = np.minimum(float(horizon - h), high + outward).reshape(shape)
        if known.absorbing is not None:
            known.absorbing.apply(lower[h], upper[h], horizon - h)
        tick(horizon - h)
    return lower[:horizon], upper[:horizon]


class Piece(NamedTuple):
    """Some cells and actions, P pairs of them with the cells running faster, and all bins."""

    cells: slice
    counts: Counts
    places: tuple[Whole, Whole]  # (P, M) in the tables, upward and downward
    rewards: tuple[Floats, Floats]  # r↑ and r↓: (P, M), or (P, 1) if they do not depend on the noise
    with_noise: bool


def pieces_of(known: Known, counts: list[Counts], sides: tuple[Ranges, Ranges]) -> Iterator[Piece]:
    """All pieces, of about AT_ONCE numbers or less."""
    centres, K = known.room.centres().reshape(known.room.number, -1), len(known.actions)
    for k, count in enumerate(counts):
        actions = known.actions if len(counts) == 1 else known.actions[k : k + 1]
        each = max(1, AT_ONCE // max(1, len(count.number)))
        together = min(K, max(1, each // len(centres)))
        for a in range(0, len(actions), together):
            for first in range(0, len(centres), each):
                part = slice(first, min(first + each, len(centres)))
                yield piece_of(known, count, sides, part, centres[part], actions[a : a + together])


def piece_of(
    known: Known, count: Counts, sides: tuple[Ranges, Ranges], part: slice, cells: Floats, actions: Any
) -> Piece:
    """F and rewards at all cells, actions and bins."""
    model, M = known.model, len(count.number)
    x, a = np.tile(cells, (len(actions), 1)), np.repeat(actions, len(cells), axis=0)
    triples = np.repeat(x, M, axis=0), np.repeat(a, M, axis=0), np.tile(count.bins, (len(x), 1))
    y = asked("function", model.function, triples, triples[0].shape)
    r = known.rewards(triples if model.with_noise else (x, a)).reshape(len(x), -1)
    up, down = known.margins.reward
    upward, downward = (of.places(y).reshape(len(x), M) for of in sides)
    return Piece(
        part, count, (upward, downward), (np.clip(r + up, 0.0, 1.0), np.clip(r - down, 0.0, 1.0)), model.with_noise
    )


def bounds_of(
    piece: Piece, after: list[tuple[Floats, Floats]], R: float, bonus: Bonus, scale: float
) -> tuple[Floats, Floats]:
    """(P,) upper and lower bounds on what is collected from the cell on, by that action first."""
    found = []
    for sign, places, rewards, tables in zip((1.0, -1.0), piece.places, piece.rewards, after, strict=True):
        mean = np.full(len(places), R if sign > 0.0 else 0.0)
        if piece.counts.n > 0.0 and R > 0.0:
            inside = rewards if piece.with_noise else 0.0
            above, below = (np.minimum(R, table[places] + inside) for table in tables)
            mean, margin = estimate(above, below, piece.counts, R, bonus, sign > 0.0)
            mean += sign * (scale * margin + (len(piece.counts.number) + 8) * ROUNDED * R)
        mean = mean.clip(0.0, R)
        found.append(mean if piece.with_noise else mean + rewards[:, 0])
    return found[0], found[1]


def estimate(
    above: Floats, below: Floats, counts: Counts, R: float, bonus: Bonus, upward: bool
) -> tuple[Floats, Floats]:
    """(cells,) the mean of û (or l̂) over samples, and B."""
    n, lost, weights = counts.n, counts.unknown, counts.number / counts.n
    share = lost / n
    mean = (above if upward else below) @ weights + (share * R if upward else 0.0)
    middle, half = 0.5 * (above + below), 0.5 * (above - below)
    centre = middle @ weights + share * 0.5 * R
    middle -= centre[:, None]
    spread = (middle * middle) @ weights + share * (0.5 * R - centre) ** 2
    wide = (half * half) @ weights + share * (0.5 * R) ** 2
    rounded = 4.0 * (len(counts.number) + 8) * ROUNDED  # relative; and `centre` is rounded, too
    spread = spread * (1.0 + rounded) + (0.5 * R / GRID) ** 2 + rounded * R * R / GRID
    squares = n * (np.sqrt(spread) + np.sqrt(wide * (1.0 + rounded))) ** 2
    return mean, bonus(squares, n, R)
