"""Bounds that are multilinear between nodes: the finer variant of the displacement certificate (docs/displacement.md).

Nodes are the corners of the cells of a room, u and l numbers at the nodes, I[u] their multilinear interpolation, and

    L_h = I[l_h] ≤ V*_h ≤ I[u_h] = U_h       at every point of the room.

Walls are at nodes, so U_{h+1}(Π(x + D)) is the interpolation of the numbers continued beyond the walls by those at the
walls. For D = (i + f)·η with whole i and 0 ≤ f < 1, and x in a cell c, it differs from the interpolation of its own
values at the corners of c by second differences Δ²_k of u next to c + i + 1,

    U(Π(x+D)) - I[U(Π(·+D))](x)  ≤  Σ_k f_k(1-f_k)·max (-Δ²_k u)⁺.

What is concentrated are suprema (infima) of V*_{h+1}(Π(x+D)) over x in sub-cells, `SUB`^d in a cell: they enter the
logarithm only, and a slack σ = Σ_k max|Δ_k u|/SUB, by which U changes within a sub-cell.

    q↑_a(node) = (1/n)Σ_s U(Π(node+D_s)) + max over the cells around of [bend + B + σ],  or the constant R
    u_h = max_a [r↑ + q↑_a],    l_h(node) = min over the cells c around of [r↓ + q↓_a](node), a = a(c) chosen by cell
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import maximum_filter

from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.cells import Room
from kernelrl.certifying.sums import Offsets, Sums

__all__ = [
    "SUB", "Moves", "NodeBounds", "around", "at_corners", "corner_mean", "corners", "interpolate", "moves_of",
    "plan_nodes", "statements",
]  # fmt: skip

Floats = npt.NDArray[np.float64]
SUB = 256  # sub-cells of a cell on each axis
ROUNDING = 1e-10  # of all but the transforms, whose rounding is counted: 1e5 times what is left


# ------------------------------------------------------------------------------------------------------ nodes and cells


def halves(ndim: int, axis: int) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Slices of all but the last and all but the first along an axis."""
    rest = [slice(None)] * ndim
    first, second = rest.copy(), rest.copy()
    first[axis], second[axis] = slice(None, -1), slice(1, None)
    return tuple(first), tuple(second)


def corners(op: Callable[[Any, Any], Any], nodes: Any) -> Any:
    """`op` over the 2^d corners of each cell."""
    for axis in range(nodes.ndim):
        first, second = halves(nodes.ndim, axis)
        nodes = op(nodes[first], nodes[second])
    return nodes


def corner_mean(nodes: Floats) -> Floats:
    """The mean of the corners of each cell."""
    return np.asarray(corners(lambda a, b: 0.5 * (a + b), nodes))


def around(op: Callable[[Any, Any], Any], cells: Any, outside: float) -> Any:
    """`op` over the cells around each node; beyond the walls there is `outside`."""
    return corners(op, np.pad(cells, 1, constant_values=outside))


def at_corners(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
    """For each of the 2^d corners, where that corner of all cells is among the nodes."""
    return [
        tuple(slice(e, n - 1 + e) for e, n in zip(corner, shape, strict=True))
        for corner in itertools.product((0, 1), repeat=len(shape))
    ]


def interpolate(room: Room, nodes: Floats, states: Floats) -> Floats:
    """I[nodes] at states (n, d) of the room."""
    places = np.clip((states - room.low) / room.side, 0.0, np.array(room.counts, np.float64))
    cell = np.minimum(np.floor(places).astype(np.int64), np.array(room.counts) - 1)
    share, total = places - cell, np.zeros(len(states))
    for corner in itertools.product((0, 1), repeat=len(room.counts)):
        weight = np.where(np.array(corner) == 1, share, 1.0 - share).prod(axis=1)
        total += weight * nodes[tuple((cell + corner).T)]
    return total


# -------------------------------------------------------------------------------------------------------- displacements


@dataclass(frozen=True, eq=False)
class Moves:
    """The displacements of one action in a room: sums over them for all nodes at once."""

    n: float  # samples that count
    lost: float  # how many of them are censored
    values: Sums | None  # shares of the nodes around node + D
    bends: tuple[Sums, ...]  # f_k(1-f_k) at i + 1, for each axis
    squares: tuple[Sums, ...]  # (f_k(1-f_k))²
    spread: float  # Σ|D_s - D̄|² of those that are known


def moves_of(room: Room, displacements: Floats, lost: int) -> Moves:
    """`displacements` (n, d) are those that are known; `lost` is how many more count but are censored."""
    if len(displacements) == 0:
        return Moves(float(lost), float(lost), None, (), (), 0.0)
    most = np.array(room.counts) + 2  # as far as that all that is reached lies beyond a wall
    units = np.clip(displacements / room.side, -most, most)
    i = np.floor(units).astype(np.int64)
    f, d = units - i, len(room.counts)
    ends = list(itertools.product((0, 1), repeat=d))
    places = np.concatenate([i + np.array(e) for e in ends])
    shares = np.concatenate([np.where(np.array(e) == 1, f, 1.0 - f).prod(axis=1) for e in ends])
    nodes, cells = tuple(n + 1 for n in room.counts), room.counts
    bends = [f[:, k] * (1.0 - f[:, k]) for k in range(d)]
    return Moves(
        float(len(units) + lost), float(lost), Sums(counted(places, shares), nodes),
        tuple(Sums(counted(i + 1, b), cells) for b in bends),
        tuple(Sums(counted(i + 1, b * b), cells) for b in bends),
        float(((displacements - displacements.mean(axis=0)) ** 2).sum()) * (1.0 + 1e-9),
    )  # fmt: skip


def counted(places: npt.NDArray[np.int64], weights: Floats) -> Offsets:
    """The sum of weights at each different place."""
    low = places.min(axis=0)
    shape = tuple((places.max(axis=0) - low + 1).tolist())
    code = np.ravel_multi_index(tuple((places - low).T), shape)
    total: Floats = np.bincount(code, weights).astype(np.float64)
    seen = np.flatnonzero(np.bincount(code))
    return Offsets(np.stack(np.unravel_index(seen, shape), axis=1) + low, total[seen])


def statements(number_of_cells: int, d: int, horizon: int, actions: int) -> float:
    """How many statements must hold: two sides, each step, action and sub-cell."""
    return 2.0 * horizon * actions * number_of_cells * float(SUB) ** d


# ------------------------------------------------------------------------------------------------------------- fields


class Fields:
    """What the sums of one step are taken of: numbers at nodes, continued beyond the walls as far as moves reach."""

    def __init__(self, u: Floats, l: Floats, moves: Sequence[Moves]) -> None:  # noqa: E741
        """u and l are those of the next step."""
        sums = [s for m in moves for s in (m.values, *m.bends, *m.squares) if s is not None]
        self.most = max(m.n for m in moves)
        self.low = np.min([s.low for s in sums], axis=0)
        end = np.max([s.low + s.needed for s in sums], axis=0)
        d, index = u.ndim, []
        for k in range(d):
            index.append(np.clip(np.arange(self.low[k] - 2, end[k] + 2), 0, u.shape[k] - 1))
        u, l = u[np.ix_(*index)], l[np.ix_(*index)]  # noqa: E741
        middle, half = 0.5 * (u + l), 0.5 * (u - l)
        inside = (slice(None), *(slice(2, -2),) * d)
        self.values = np.stack([u, l, middle * middle, half * half])[inside]
        above, below, both = [], [], []
        for k in range(d):
            above.append(beside(np.maximum(-second_difference(u, k), 0.0), k))
            below.append(beside(np.maximum(second_difference(l, k), 0.0), k))
            bend = beside(np.abs(second_difference(middle, k)), k)
            both.append((bend + beside(np.maximum(-second_difference(half, k), 0.0), k)) ** 2)
        self.bends = [np.stack(pair)[inside] for pair in zip(above, below, strict=True)]
        self.squares = [z[None][inside] for z in both]

    def of(self, sums: Sums, fields: Floats) -> tuple[Floats, Floats]:
        """Sums of some fields, and how far they may be off."""
        start = sums.low - self.low
        box = fields[(slice(None), *(slice(s, s + n) for s, n in zip(start, sums.needed, strict=True)))]
        found, error = sums(box)
        total = sums.offsets.total  # of weights that are themselves sums of up to n rounded numbers
        return found, error + 2.0**-51 * (self.most + 16.0) * total * np.abs(box).reshape(len(box), -1).max(axis=1)


def second_difference(z: Floats, axis: int) -> Floats:
    """z(i+1) - 2z(i) + z(i-1) along an axis; 0 at the ends."""
    found = np.zeros_like(z)
    rest = [slice(None)] * z.ndim
    before, here, after = rest.copy(), rest.copy(), rest.copy()
    before[axis], here[axis], after[axis] = slice(None, -2), slice(1, -1), slice(2, None)
    found[tuple(here)] = z[tuple(after)] - 2.0 * z[tuple(here)] + z[tuple(before)]
    return found


def beside(z: Floats, axis: int) -> Floats:
    """The largest of the three neighbours on each axis but this one."""
    size = [3] * z.ndim
    size[axis] = 1
    return np.asarray(maximum_filter(z, size=size, mode="nearest"))


# --------------------------------------------------------------------------------------------------------------- plans


@dataclass(frozen=True, eq=False)
class NodeBounds:
    """u and l at the nodes of a room, (H+1, nodes); the last step's are 0."""

    room: Room
    lower: Floats
    upper: Floats

    def at(self, states: Floats, h: int) -> tuple[Floats, Floats]:
        """Bounds on V*_h (h from 0) at states (n, d), cut to [0, H-h]."""
        cap = float(len(self.lower) - 1 - h)
        lower, upper = (interpolate(self.room, z[h], states) for z in (self.lower, self.upper))
        return np.maximum(0.0, lower - ROUNDING), np.minimum(cap, upper + ROUNDING)


def plan_nodes(
    room: Room, moves: Sequence[Moves], rewards: tuple[Floats, Floats], horizon: int, bonus: Bonus, slack: Floats,
    slope: float | None = None, tick: Callable[[int], Any] = lambda done: None,
) -> NodeBounds:  # fmt: skip
    """Backward induction; `rewards` are r↓ and r↑ (A, nodes), or (1, nodes) if they do not depend on the action.

    `slack` (d,) is how far a displacement may be off because of rounding; `slope` is λ_r, if the second form of V̂ is
    to be used. `tick` is called with the number of steps done.
    """
    r_lower, r_upper = rewards
    shape = tuple(n + 1 for n in room.counts)
    lower, upper = np.zeros((horizon + 1, *shape)), np.zeros((horizon + 1, *shape))
    for h in reversed(range(horizon)):
        R = float(horizon - 1 - h)
        sides = next_values(room, moves, upper[h + 1], lower[h + 1], Step(R, bonus, slope, slack))
        above, candidates = [], [(np.zeros(shape), np.zeros(room.counts))]
        for a, (high, rise, low, fall) in enumerate(sides):
            r_up, r_low = r_upper[a % len(r_upper)], r_lower[a % len(r_lower)]
            above.append(r_up + lowest_above(high, rise, R))
            candidates += [(r_low, np.zeros(room.counts)), (r_low + low, fall)]
        upper[h] = lowest_above(np.max(above, axis=0), np.zeros(room.counts), R + 1.0) + ROUNDING
        lower[h] = highest_below(candidates) - ROUNDING
        tick(horizon - h)
    return NodeBounds(room, lower, upper)


def lowest_above(nodes: Floats, rise: Floats, constant: float) -> Floats:
    """Numbers at nodes whose interpolation is, on each cell, at least I[nodes] + rise or at least the constant."""
    cut = corner_mean(nodes) + rise > constant
    found = nodes + around(np.maximum, np.where(cut, -math.inf, rise), -math.inf)
    return np.asarray(np.maximum(found, np.where(around(np.logical_or, cut, False), constant, -math.inf)))


def highest_below(candidates: Sequence[tuple[Floats, Floats]]) -> Floats:
    """Numbers at nodes whose interpolation is, on each cell, at most I[nodes] - fall of one of the candidates."""
    places = at_corners(candidates[0][0].shape)
    best = np.full(candidates[0][1].shape, -math.inf)  # the mean over the corners of each cell, of the best so far
    values = [best.copy() for _ in places]  # its numbers at each corner
    for nodes, fall in candidates:
        mean = corner_mean(nodes) - fall
        better = mean > best
        best = np.where(better, mean, best)
        values = [np.where(better, nodes[at] - fall, v) for at, v in zip(places, values, strict=True)]
    found = np.full(candidates[0][0].shape, math.inf)
    for at, value in zip(places, values, strict=True):
        found[at] = np.minimum(found[at], value)
    return found


Side = tuple[Floats, Floats, Floats, Floats]  # numbers at nodes and rises on cells; the same below


@dataclass(frozen=True, eq=False)
class Step:
    """What is the same for all actions of a step."""

    R: float  # the largest V*_{h+1} can be
    bonus: Bonus
    slope: float | None
    slack: Floats


def next_values(room: Room, moves: Sequence[Moves], u: Floats, l: Floats, step: Step) -> list[Side]:  # noqa: E741
    """For each action, bounds on E V*_{h+1}(Π(x + D))."""
    free = np.full(u.shape, step.R), np.zeros(room.counts), np.zeros(u.shape), np.zeros(room.counts)
    if step.R == 0.0 or all(m.values is None for m in moves):
        return [free for _ in moves]
    fields = Fields(u, l, moves)
    within = 1.0 / SUB + step.slack / room.side  # how far points of a sub-cell are apart, in cells
    slips = [float(sum(np.abs(np.diff(z, axis=k)).max() * within[k] for k in range(z.ndim))) for z in (u, l)]
    return [free if m.values is None else one_action(fields, m, step, slips) for m in moves]


def one_action(fields: Fields, m: Moves, step: Step, slips: list[float]) -> Side:
    """Bounds for one action: means over samples at nodes, and for each cell its bend, bonus and slack."""
    assert m.values is not None
    (above, below, squares, gaps), off = fields.of(m.values, fields.values)
    n, R = m.n, step.R
    mean = (0.5 * (above + below) + 0.5 * m.lost * R) / n
    unsure = off[0] + off[1]
    variance = squares + off[2] + 0.25 * m.lost * R * R - n * mean * mean + (2.0 * np.abs(mean) + 1.0) * unsure
    root = centred(mean, variance, n, R, unsure / n)
    root += np.sqrt(corners(np.maximum, np.maximum(gaps + off[3], 0.0) + 0.25 * m.lost * R * R))
    root += math.sqrt(n) * max(slips)
    for sums, field in zip(m.squares, fields.squares, strict=True):
        (bend,), (error,) = fields.of(sums, field)
        root += np.sqrt(np.maximum(bend + error, 0.0))
    if step.slope is not None:
        moved = math.sqrt((step.slope * R) ** 2 * m.spread + m.lost * R * R)
        moved += math.sqrt(n) * (0.5 * R / GRID + 2.0 * step.slope * R * float(np.linalg.norm(step.slack)))
        root = np.minimum(root, moved)
    B = step.bonus(root * root, n, R)
    rise, fall = B + slips[0] + off[0] / n, B + slips[1] + off[1] / n
    for sums, field in zip(m.bends, fields.bends, strict=True):
        (up, down), error = fields.of(sums, field)
        rise += np.maximum(up + error[0], 0.0) / n
        fall += np.maximum(down + error[1], 0.0) / n
    return (above + m.lost * R) / n, rise, below / n, fall


def centred(mean: Floats, variance: Floats, n: float, R: float, unsure: float) -> Floats:
    """A bound on √Σ(m_s - q)² over each cell, for the q of the grid that is nearest to the middle of its means."""
    lowest, highest = corners(np.minimum, mean), corners(np.maximum, mean)
    q = np.clip(0.5 * (lowest + highest), 0.0, R)
    away = np.maximum(highest - q, q - lowest) + 0.5 * R / GRID + unsure
    return np.asarray(np.sqrt(np.maximum(corners(np.maximum, variance), 0.0) + n * away * away))
