"""Displacement certificates in plain loops over steps, cells, actions and samples, from the theorem of docs/theory.md.

A room is (low, high, counts), a cell the tuple of its whole numbers, a sample a `Sample`. Rewards are in [0, 1], steps
count from 0 here, so that R = H - 1 - h.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np

J = 200
LAMBDAS = [0.75 * 2.0 ** (-j / 2) for j in range(24)]


class Sample(NamedTuple):
    room: int
    x: tuple[float, ...]
    a: int
    y: tuple[float, ...]
    r: float


def side(room):
    low, high, counts = room
    return [(b - a) / n for a, b, n in zip(low, high, counts, strict=True)]


def is_censored(sample, rooms, slack):
    low, high, _ = rooms[sample.room]
    return any(y <= a + s or y >= b - s for y, a, b, s in zip(sample.y, low, high, slack, strict=True))


def keep(samples, rooms, slack, warm):
    """κ: one sample after the other, from what was seen before."""
    kept, seen = [], {}
    for sample in samples:
        low, high, _ = rooms[sample.room]
        earlier = seen.setdefault(sample.a, [])
        fits = len(earlier) >= warm
        if fits:
            for j in range(len(low)):
                least, most = min(D[j] for D in earlier), max(D[j] for D in earlier)
                half = 0.5 * (most - least)
                fits &= sample.x[j] + least - half > low[j] + slack[j]
                fits &= sample.x[j] + most + half < high[j] - slack[j]
        kept.append(bool(fits))
        if not is_censored(sample, rooms, slack):
            earlier.append(tuple(y - x for x, y in zip(sample.x, sample.y, strict=True)))
    return kept


def bonus(squares, n, R, statements, delta):
    """B: the smallest over j."""
    found = []
    for j, lam in enumerate(LAMBDAS):
        ell = math.log(statements * (J + 1) * (j + 1) * (j + 2) / delta)
        psi = -math.log1p(-lam) - lam
        found.append((ell + psi * squares / R**2) / lam)
    return R / n * min(found)


def met(room, cell, D, widened, span):
    """The cells that c + D can meet."""
    _, _, counts = room
    axes = []
    for c, d, s, n, w in zip(cell, D, side(room), counts, widened, strict=True):
        i = math.floor(d / s)
        axes.append({min(max(c + i + e, 0), n - 1) for e in range(-w, span + w)})
    return list(itertools.product(*axes))


def blocks_of(rooms, most, variation):
    """(room, first cell, one past the last cell) of each block."""
    found = []
    for i, (low, high, counts) in enumerate(rooms):
        each = max(1, min(most, math.ceil(variation * math.dist(low, high) / min(side(rooms[i])))))
        cuts = [sorted({round(k * n / min(each, n)) for k in range(min(each, n) + 1)}) for n in counts]
        for ks in itertools.product(*(range(len(axis) - 1) for axis in cuts)):
            found.append(
                (i, [c[k] for c, k in zip(cuts, ks, strict=True)], [c[k + 1] for c, k in zip(cuts, ks, strict=True)])
            )
    return found


def farthest(rooms, b, c):
    """The largest distance of a point of one block from a point of another."""
    total = 0.0
    for j in range(len(rooms[0][0])):
        ends = []
        for i, first, last in (b, c):
            low, s = rooms[i][0][j], side(rooms[i])[j]
            ends.append((low + s * first[j], low + s * last[j]))
        total += max(ends[0][1] - ends[1][0], ends[1][1] - ends[0][0]) ** 2
    return math.sqrt(total)


def block_at(rooms, blocks, i, cell):
    return next(
        k for k, (room, first, last) in enumerate(blocks)
        if room == i and all(f <= c < t for c, f, t in zip(cell, first, last, strict=True))
    )  # fmt: skip


def cell_of(room, x):
    low, _, counts = room
    return tuple(
        min(max(math.floor((v - a) / s), 0), n - 1) for v, a, s, n in zip(x, low, side(room), counts, strict=True)
    )


def plan(
    rooms, H, A, samples, slack, r_low, r_high, delta, *, warm, slope=None, variation=0.0, each=1, span=2, scale=1.0
):
    """L and U, as dictionaries of (h, room, cell); r_low and r_high are functions of (room, cell, a)."""
    kept = keep(samples, rooms, slack, warm)
    blocks = blocks_of(rooms, each, variation)
    apart = [[farthest(rooms, b, c) for c in blocks] for b in blocks]
    radii = [math.inf]
    if variation > 0:
        radii = [max(apart[k][k] for k in range(len(blocks))) * (1 + 1e-9)]
        while radii[-1] < max(map(max, apart)):
            radii.append(2 * radii[-1])
    number = sum(math.prod(counts) for _, _, counts in rooms)
    statements = 2 * H * A * number * len(radii)
    L, U = {}, {}
    for h in range(H - 1, -1, -1):
        R = H - 1 - h
        for i, room in enumerate(rooms):
            for cell in itertools.product(*map(range, room[2])):
                low, high = [], []
                for a in range(A):
                    below, above = 0.0, float(R)
                    for radius in radii if R else ():
                        k = block_at(rooms, blocks, i, cell)
                        near = [apart[k][block_at(rooms, blocks, s.room, cell_of(rooms[s.room], s.x))] for s in samples]
                        counts = [
                            ok and s.a == a and far <= radius for s, ok, far in zip(samples, kept, near, strict=True)
                        ]
                        own = list(itertools.compress(samples, counts))
                        w = [0] * len(slack)
                        if variation > 0:
                            far = variation * (radius + 2 * math.hypot(*slack))
                            w = [min(n, math.ceil(far / s)) for n, s in zip(room[2], side(room), strict=True)]
                        args = (rooms, h, i, cell, own, slack, U, L, R, w, span, statements, delta, slope, scale)
                        above = min(above, one_side(*args, upward=True))
                        below = max(below, one_side(*args, upward=False))
                    low.append(r_low(i, cell, a) + below)
                    high.append(r_high(i, cell, a) + above)
                L[h, i, cell], U[h, i, cell] = max(0.0, *low), min(R + 1.0, max(high))
    return L, U


def one_side(rooms, h, i, cell, own, slack, U, L, R, w, span, statements, delta, slope, scale, upward):
    """The bound on E V*_{h+1} of one side."""
    n = len(own)
    if n == 0:
        return float(R) if upward else 0.0
    pick = max if upward else min
    u, v, known = [], [], []
    for s in own:
        if is_censored(s, rooms, slack):
            u.append(float(R))
            v.append(0.0)
        else:
            D = [y - x for x, y in zip(s.x, s.y, strict=True)]
            known.append(D)
            cells = met(rooms[i], cell, D, w, span)
            u.append(pick(U[h + 1, i, c] for c in cells))
            v.append(pick(L[h + 1, i, c] for c in cells))
    m = [(p + q) / 2 for p, q in zip(u, v, strict=True)]
    g = [(p - q) / 2 for p, q in zip(u, v, strict=True)]
    mean = sum(m) / n
    squares = (
        math.sqrt(sum((value - mean) ** 2 for value in m) + n * (R / (2 * J)) ** 2)
        + math.sqrt(sum(value * value for value in g))
    ) ** 2
    if slope is not None:
        spread = float(((np.array(known) - np.mean(known, axis=0)) ** 2).sum()) if known else 0.0
        moved = (slope * R) ** 2 * spread + (n - len(known)) * R**2
        squares = min(squares, (math.sqrt(moved) + math.sqrt(n) * R / (2 * J)) ** 2)
    B = scale * bonus(squares, n, R, statements, delta)
    return sum(u) / n + B if upward else sum(v) / n - B


def envelope(room, samples, slope, beyond, parts):
    """Bounds on a deterministic reward over the cells of a room, as dictionaries of the cell; from all samples."""
    low, high = {}, {}
    s = [v / parts for v in side(room)]
    half = 0.5 * math.hypot(*s)
    for cell in itertools.product(*map(range, room[2])):
        lows, highs = [], []
        for part in itertools.product(range(parts), repeat=len(cell)):
            centre = [a + v * (c * parts + p + 0.5) for a, v, c, p in zip(room[0], s, cell, part, strict=True)]
            away = [math.dist(centre, sample.x) + half + beyond for sample in samples]
            lows.append(max([0.0] + [q.r - slope * d for q, d in zip(samples, away, strict=True)]))
            highs.append(min([1.0] + [q.r + slope * d for q, d in zip(samples, away, strict=True)]))
        low[cell], high[cell] = min(lows), max(highs)
    return low, high


def noisy(room, states, rewards, slope, reaches, delta):
    """Bounds on a random reward of the state over the cells of the only room, as dictionaries of the cell."""
    cells = list(itertools.product(*map(range, room[2])))
    statements = 2 * len(cells) * len(reaches)
    low, high = dict.fromkeys(cells, 0.0), dict.fromkeys(cells, 1.0)
    for cell, reach in itertools.product(cells, reaches):
        own, far = [], []
        for x, r in zip(states, rewards, strict=True):
            apart = [abs(p - q) for p, q in zip(cell, cell_of(room, x), strict=True)]
            if max(apart) <= reach:
                own.append(r)
                far.append(math.hypot(*((p + 1) * s for p, s in zip(apart, side(room), strict=True))))
        if own:
            n, mean = len(own), sum(own) / len(own)
            squares = sum((r - mean) ** 2 for r in own) + n * (1 / (2 * J)) ** 2
            margin = bonus(squares, n, 1, statements, delta) + slope * sum(far) / n
            low[cell], high[cell] = max(low[cell], mean - margin), min(high[cell], mean + margin)
    return low, high
