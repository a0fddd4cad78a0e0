"""The plan on cells: bounds L_h(c) ≤ V*_h(x) ≤ U_h(c) for all x of a cell c, by backward induction.

For V on cells, (V⊕i)(c) is the largest and (V⊖i)(c) the smallest value on the cells that c + D can meet if D lies in
the cell i of displacements: clip(c + i + e), e ∈ {0, 1}^d, and w cells more on each side where cells are widened by w.
With the n samples that count for c and the action a, and R = H - h, the largest V*_{h+1} can be (steps from 1, rewards
in [0, 1]):

    û_s = U_{h+1}⊕i_s(c),   l̂_s = L_{h+1}⊕i_s(c)      (censored: R and 0)
    m_s = (û_s + l̂_s)/2,    g_s = (û_s - l̂_s)/2
    √V̂  = √(Σ(m_s - m̄)² + n·(R/2J)²) + √(Σg_s²)
    U_h(c) = min(R + 1, max_a [r↑(c, a) + min(R, (1/n)Σû_s + B(V̂, n))])

and L_h(c) = max_a [r↓(c, a) + max(0, (1/n)Σ l̂_s - B)], with ⊖ in place of ⊕. Where λ_D = 0 and rewards are
λ_r-Lipschitz, V*_{h+1} is λ_r·R-Lipschitz, so that V̂ can also be (√((λ_rR)²Σ|D_s - D̄|² + R²·#censored) + √n·R/2J)².
The proof is in docs/theory.md.

`span` is how many cells a moved cell meets on each axis: 2, or 1 on a lattice, whose cells are points.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.pools import Piece, Pool
from kernelrl.certifying.sums import Sums

__all__ = ["RewardBounds", "Values", "backward"]

Floats = npt.NDArray[np.float64]
Ends = tuple[tuple[int, ...], tuple[int, ...]]
OUTWARD = 1e-12  # for the rounding of everything but sums, as a share of the largest value


@dataclass(frozen=True, eq=False)
class RewardBounds:
    """Bounds on the mean rewards over the cells of each room, in [0, 1]."""

    lower: tuple[Floats, ...]  # for each room (A or 1, …)
    upper: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class Values:
    """Bounds on V*, in mapped units."""

    lower: tuple[Floats, ...]  # for each room (H, …)
    upper: tuple[Floats, ...]


def backward(
    pieces: tuple[Piece, ...], rewards: RewardBounds, horizon: int, bonus: Bonus, *, slope: float | None = None,
    span: int = 2, scale: float = 1.0, tick: Callable[[int], Any] = lambda done: None,
) -> Values:  # fmt: skip
    """Bounds for all steps and cells.

    `slope` is λ_r in mapped units, None without the second form of V̂. `scale` makes the bonus smaller, for tests of
    its validity; only 1 is certified. `tick` is called with the number of steps done.
    """
    rooms = [r.shape[1:] for r in rewards.upper]
    lower, upper = ([np.zeros((horizon, *shape)) for shape in rooms] for _ in range(2))
    sums = [sums_of(piece) for piece in pieces] if len(pieces) == len(rooms) else []  # spectra of many would not fit
    ends = [ends_of(pieces, i, len(shape)) for i, shape in enumerate(rooms)]
    for h in range(horizon - 1, -1, -1):
        R, after = float(horizon - 1 - h), min(h + 1, horizon - 1)
        read = [Reading(upper[i][after], lower[i][after], R, ends[i], span) for i in range(len(rooms))]
        for k, piece in enumerate(pieces):
            i, box = piece.room, piece.box
            r_low, r_high = rewards.lower[i][(slice(None), *box)], rewards.upper[i][(slice(None), *box)]
            if R == 0.0:
                low, high = r_low.max(axis=0), r_high.max(axis=0)
            else:
                known = sums[k] if sums else sums_of(piece)
                q = best_of(piece, known, read[i], bonus, slope, scale)
                low, high = (r_low + q[0]).max(axis=0), (r_high + q[1]).max(axis=0)
            outward = OUTWARD * (R + 1.0)
            lower[i][h][box] = np.maximum(0.0, low - outward)
            upper[i][h][box] = np.minimum(R + 1.0, high + outward)
        tick(horizon - h)
    return Values(tuple(lower), tuple(upper))


def sums_of(piece: Piece) -> list[list[Sums | None]]:
    """What sums up fields, for each radius and action."""
    return [[None if p.offsets is None else Sums(p.offsets, piece.shape) for p in pools] for pools in piece.pools]


def best_of(
    piece: Piece, sums: list[list[Sums | None]], read: Reading, bonus: Bonus, slope: float | None, scale: float
) -> tuple[Floats, Floats]:
    """Bounds (A, …) on E V*_{h+1} after each action: the best of all radii."""
    low = np.zeros((len(sums[0]), *piece.shape))
    high = np.full(low.shape, read.R)
    for widened, pools, known in zip(piece.widened, piece.pools, sums, strict=True):
        for upward, out in ((True, high), (False, low)):
            fields = read.fields(widened, upward)
            for a, (pool, summed) in enumerate(zip(pools, known, strict=True)):
                if pool.n > 0:
                    mean, margin = estimate(pool, summed, fields, piece, bonus, slope)
                    if upward:
                        np.minimum(out[a], mean + scale * margin, out=out[a])
                    else:
                        np.maximum(out[a], mean - scale * margin, out=out[a])
    return low, high


class Reading:
    """The values of one room at the next step, as pieces read them; fields are made once."""

    def __init__(self, above: Floats, below: Floats, R: float, ends: Ends, span: int) -> None:
        """`ends` are the lowest and the highest displacement that is read."""
        self.above, self.below, self.R, self.ends, self.span = above, below, R, ends, span
        self.kept: dict[tuple[tuple[int, ...], bool], Fields] = {}

    def fields(self, widened: tuple[int, ...], upward: bool) -> Fields:
        """Those of one side, with cells widened by so much."""
        key = widened, upward
        if key not in self.kept:
            grown = [grow(v, np.maximum if upward else np.minimum, widened, self.ends, self.span)
                     for v in (self.above, self.below)]  # fmt: skip
            self.kept[key] = Fields.of(grown[0], grown[1], self.R, upward, self.ends[0])
        return self.kept[key]


@dataclass(frozen=True, eq=False)
class Fields:
    """The fields û (or l̂), m, m² and g² of one side: a displacement by i from the cell c reads them at c + i."""

    stacked: Floats  # (4, …)
    origin: tuple[int, ...]  # the cell that comes first
    unknown: Floats  # (4,) what censored samples count
    R: float
    upward: bool

    @classmethod
    def of(cls, above: Floats, below: Floats, R: float, upward: bool, origin: tuple[int, ...]) -> Fields:
        """From upper and lower bounds on what is read."""
        middle, half = 0.5 * (above + below), 0.5 * np.maximum(above - below, 0.0)
        stacked = np.stack([above if upward else below, middle, middle * middle, half * half])
        unknown = np.array([R if upward else 0.0, 0.5 * R, 0.25 * R * R, 0.25 * R * R])
        return cls(stacked, origin, unknown, R, upward)

    def read(self, start: Any, needed: tuple[int, ...]) -> Floats:
        """(4, …) a box of the fields that begins at the cell `start`."""
        first = np.subtract(start, self.origin)
        return self.stacked[(slice(None), *(slice(f, f + m) for f, m in zip(first, needed, strict=True)))]


def grow(values: Floats, side: Any, widened: tuple[int, ...], ends: Ends, span: int) -> Floats:
    """The largest (smallest) value on the cells k-w … k+span-1+w, for each k that is read; clipped onto the border."""
    for axis, (n, w, low, high) in enumerate(zip(values.shape, widened, *ends, strict=True)):
        places = np.arange(low, n + high)
        found = np.take(values, np.clip(places - w, 0, n - 1), axis=axis)
        for e in range(-w + 1, span + w):
            found = side(found, np.take(values, np.clip(places + e, 0, n - 1), axis=axis))
        values = found
    return values


def ends_of(pieces: tuple[Piece, ...], room: int, d: int) -> Ends:
    """The lowest and the highest displacement, on each axis, that counts in a room."""
    pools = [pool for piece in pieces if piece.room == room for pools in piece.pools for pool in pools]
    offsets = [pool.offsets for pool in pools if pool.offsets is not None]
    low = np.min([o.least for o in offsets], axis=0) if offsets else np.zeros(d, np.int64)
    high = np.max([o.most for o in offsets], axis=0) if offsets else np.zeros(d, np.int64)
    return tuple(low.tolist()), tuple(high.tolist())


def estimate(
    pool: Pool, summed: Sums | None, fields: Fields, piece: Piece, bonus: Bonus, slope: float | None
) -> tuple[Floats, Floats]:
    """The mean of û (or l̂) over the samples, rounded outward, and the bonus B."""
    n, lost, R = pool.n, pool.lost, fields.R
    total = lost * fields.unknown.reshape(-1, *([1] * len(piece.shape)))
    error = np.zeros(4)
    if summed is not None:
        found, error = summed(fields.read(np.add(piece.start, summed.low), summed.needed))
        total = total + found
    else:
        total = np.broadcast_to(total, (4, *piece.shape))
    inner = np.maximum(np.abs(total[1]) - error[1], 0.0)
    spread = np.maximum(total[2] * (1.0 + 1e-14) + error[2] - inner * inner / n, 0.0)
    squares = (np.sqrt(spread + n * (0.5 * R / GRID) ** 2) + np.sqrt(np.maximum(total[3], 0.0) + error[3])) ** 2
    if slope is not None:
        moved = (slope * R) ** 2 * pool.spread + lost * R * R
        squares = np.minimum(squares, (np.sqrt(moved) + np.sqrt(n) * 0.5 * R / GRID) ** 2)
    mean = (total[0] + (error[0] if fields.upward else -error[0])) / n
    return mean, bonus(squares, n, R)
