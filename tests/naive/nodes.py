"""Bounds that are multilinear between nodes, one cell, node and sample at a time (docs/displacement.md).

Places are in units of the sides of cells: nodes at 0 … counts[k] on axis k. `moves[a]` (n, d) are the known
displacements of action a in these units, `lost[a]` the number of censored ones.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

J = 200
LAMBDAS = [0.75 * 2.0 ** (-j / 2) for j in range(24)]


def clip(place, counts):
    return np.clip(place, 0, counts)


def interpolated(nodes, place):
    """I[nodes] at Π(place)."""
    counts = np.array(nodes.shape) - 1
    place = clip(np.asarray(place, float), counts)
    cell = np.minimum(np.floor(place).astype(int), counts - 1)
    f, total = place - cell, 0.0
    for e in itertools.product((0, 1), repeat=nodes.ndim):
        total += math.prod(f[k] if e[k] else 1 - f[k] for k in range(nodes.ndim)) * nodes[tuple(cell + e)]
    return total


def at_node(nodes, index):
    """The number at a node, continued beyond the walls."""
    return nodes[tuple(clip(np.asarray(index), np.array(nodes.shape) - 1))]


def second_difference(nodes, index, k):
    step = np.eye(nodes.ndim, dtype=int)[k]
    return at_node(nodes, index + step) - 2 * at_node(nodes, index) + at_node(nodes, index - step)


def largest_beside(nodes, index, k, part):
    """The largest part(Δ²_k) over the nodes that differ from `index` by at most 1 on each axis but k."""
    ranges = [(0,) if j == k else (-1, 0, 1) for j in range(nodes.ndim)]
    return max(part(second_difference(nodes, index + np.array(e), k)) for e in itertools.product(*ranges))


def bend(nodes, cell, D, part, power=1):
    """[f_k(1-f_k)·max part(Δ²_k)]^power for each axis k: by how much x ↦ I[nodes](Π(x+D)) is bent over a cell."""
    i = np.floor(D).astype(int)
    f = D - i
    return [(f[k] * (1 - f[k]) * largest_beside(nodes, cell + i + 1, k, part)) ** power for k in range(nodes.ndim)]


def positive(z):
    return max(z, 0.0)


def negative(z):
    return max(-z, 0.0)


def bernstein(V, n, R, statements, delta, scale=1.0):
    best = math.inf
    for j, lam in enumerate(LAMBDAS):
        ell = math.log(statements * (J + 1) * (j + 1) * (j + 2) / delta)
        best = min(best, (ell + (-math.log(1 - lam) - lam) * V / R**2) / lam)
    return scale * best * R / n


def corners_of(cell):
    return [tuple(np.add(cell, e)) for e in itertools.product((0, 1), repeat=len(cell))]


def root_of(u, l, cell, moves, lost, R, slips):  # noqa: E741
    """√V̂ of a cell, in its first form."""
    middle, half = 0.5 * (u + l), 0.5 * (u - l)
    n = len(moves) + lost
    means, variances, gaps = [], [], []
    for node in corners_of(cell):
        m = [interpolated(middle, node + D) for D in moves] + [R / 2] * lost
        squares = [interpolated(middle**2, node + D) for D in moves] + [R * R / 4] * lost
        means.append(np.mean(m))
        variances.append(np.sum(squares) - n * np.mean(m) ** 2)
        gaps.append(sum(interpolated(half**2, node + D) for D in moves) + lost * R * R / 4)
    q = min(max(0.5 * (min(means) + max(means)), 0.0), R)
    away = max(max(means) - q, q - min(means)) + R / (2 * J)
    root = math.sqrt(max(max(variances), 0.0) + n * away**2) + math.sqrt(max(gaps)) + math.sqrt(n) * max(slips)
    both = np.zeros(u.ndim)
    for D in moves:
        a, b = (np.array(bend(z, cell, D, part)) for z, part in ((middle, abs), (half, negative)))
        both += (a + b) ** 2
    return root + np.sqrt(both).sum()


def plan(counts, moves, lost, rewards, H, statements, delta, sub, slack=0.0, slope=None, spread=None, scale=1.0):
    """(lower, upper) (H+1, nodes); `rewards` (2, A, nodes); `spread[a]` is Σ|D_s - D̄|², in the units of `slope`."""
    shape, cells = tuple(n + 1 for n in counts), list(itertools.product(*map(range, counts)))
    L, U = np.zeros((H + 1, *shape)), np.zeros((H + 1, *shape))
    for h in reversed(range(H)):
        R, u, l = float(H - 1 - h), U[h + 1], L[h + 1]  # noqa: E741
        slips = [sum(abs(np.diff(z, axis=k)).max() for k in range(z.ndim)) * (1 / sub + slack) for z in (u, l)]
        above, below = [], {cell: [[0.0] * 2 ** len(counts)] for cell in cells}  # candidates: values at the corners
        for a, D in enumerate(moves):
            n, high = len(D) + lost[a], np.full(shape, -math.inf)
            for cell in cells:
                corners = corners_of(cell)
                r_low = [rewards[0][a][node] for node in corners]
                below[cell].append(r_low)
                if R == 0 or len(D) == 0:
                    values = [R] * len(corners)
                else:
                    root = root_of(u, l, cell, D, lost[a], R, slips)
                    if slope is not None:
                        other = math.sqrt((slope * R) ** 2 * spread[a] + lost[a] * R**2) + math.sqrt(n) * R / (2 * J)
                        root = min(root, other)
                    B = bernstein(root**2, n, R, statements, delta, scale)
                    rise = B + slips[0] + sum(sum(bend(u, cell, d, negative)) for d in D) / n
                    fall = B + slips[1] + sum(sum(bend(l, cell, d, positive)) for d in D) / n
                    values = [(sum(interpolated(u, node + d) for d in D) + lost[a] * R) / n + rise for node in corners]
                    if np.mean(values) > R:
                        values = [R] * len(corners)
                    low = [sum(interpolated(l, node + d) for d in D) / n - fall for node in corners]
                    below[cell].append(list(np.add(r_low, low)))
                for node, value in zip(corners, values, strict=True):
                    high[node] = max(high[node], value)
            above.append(rewards[1][a] + high)
        best = np.max(above, axis=0)
        U[h], L[h] = -math.inf, math.inf
        for cell in cells:
            corners = corners_of(cell)
            cut = np.mean([best[node] for node in corners]) > R + 1
            chosen = max(below[cell], key=np.mean)
            for node, low in zip(corners, chosen, strict=True):
                U[h][node] = max(U[h][node], R + 1 if cut else best[node])
                L[h][node] = min(L[h][node], low)
    return L, U
