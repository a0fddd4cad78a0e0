"""Bounds on mean rewards that are multilinear between nodes (docs/displacement.md); both hold for certain.

    function        I[r] ± the largest difference r - I[r] over a cell, from a fine lattice in each cell. Between its
                    points r changes by λ_r·(half of a diagonal), and I[r] by at most half of Σ_k max|Δ_k r| / parts.
    deterministic   the cone r_s + λ_r|x - x_s| of one sample for each cell. It is convex, so the interpolation of its
                    values at the corners is above it; r_s - λ_r|x - x_s| is concave, and its interpolation below it.

On each cell the constants 1 and 0 may serve instead.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Room
from kernelrl.certifying.nodes import ROUNDING, at_corners, highest_below, lowest_above
from kernelrl.certifying.rewards import NEAREST, evaluated, parts_of, thinned

__all__ = ["cone_nodes", "function_nodes", "node_places"]

Floats = npt.NDArray[np.float64]


def node_places(room: Room) -> Floats:
    """(…, d) where the nodes are."""
    axes = [low + np.arange(n + 1) * side for low, n, side in zip(room.low, room.counts, room.side, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


def function_nodes(
    room: Room, function: Any, action: int | None, slope: float, low: float, width: float, beyond: float
) -> tuple[Floats, Floats]:
    """(lower, upper) at nodes for a function (states, action) → rewards; `slope` is λ_r in mapped units.

    Computed places may be off by `beyond`.
    """
    nodes, d = node_places(room), len(room.counts)
    r = evaluated(function, nodes, action, low, width)
    parts = parts_of(room, slope)
    first, boxes = nodes[at_corners(nodes.shape[:-1])[0]], at_corners(r.shape)
    over, under = np.zeros(room.counts), np.zeros(room.counts)
    for place in itertools.product((np.arange(parts) + 0.5) / parts, repeat=d):
        inside = np.zeros(room.counts)
        for corner, box in zip(itertools.product((0, 1), repeat=d), boxes, strict=True):
            inside += math.prod(p if e else 1.0 - p for p, e in zip(place, corner, strict=True)) * r[box]
        difference = evaluated(function, first + np.array(place) * room.side, action, low, width) - inside
        over, under = np.maximum(over, difference), np.maximum(under, -difference)
    between = slope * room.half_diagonal / parts * (1.0 + 1e-9) + steepest(r) / (2.0 * parts)
    between += 2.0 * slope * beyond + ROUNDING
    return cut(r, over + between, under + between)


def steepest(nodes: Floats) -> Floats:
    """Σ_k of the largest |Δ_k| along the edges of each cell."""
    total = np.zeros([n - 1 for n in nodes.shape])
    for k in range(nodes.ndim):
        edges = np.abs(np.diff(nodes, axis=k))
        others = [j for j in range(nodes.ndim) if j != k]
        for j in others:
            first, second = [slice(None)] * nodes.ndim, [slice(None)] * nodes.ndim
            first[j], second[j] = slice(None, -1), slice(1, None)
            edges = np.maximum(edges[tuple(first)], edges[tuple(second)])
        total += edges
    return total


def cut(r: Floats, over: Floats, under: Floats) -> tuple[Floats, Floats]:
    """Numbers at nodes for I[r] - under and I[r] + over on cells, or for 0 and 1."""
    nothing = np.zeros(r.shape), np.zeros(over.shape)
    return highest_below([nothing, (r, under)]), lowest_above(r, over, 1.0)


def cone_nodes(room: Room, states: Floats, rewards: Floats, slope: float, beyond: float) -> tuple[Floats, Floats]:
    """(lower, upper) at nodes from deterministic rewards (n,) at states (n, d); states may be off by `beyond`."""
    from scipy.spatial import cKDTree

    nodes, centres = node_places(room), room.centres()
    shape, d = nodes.shape[:-1], nodes.shape[-1]
    if len(states) == 0:
        return np.zeros(shape), np.ones(shape)
    states, rewards = thinned(room, states, rewards)
    k = min(NEAREST, len(states))
    distance, which = (z.reshape(-1, k) for z in cKDTree(states).query(centres.reshape(-1, d), k=k))
    row, margin = np.arange(len(which)), slope * beyond + ROUNDING
    high = which[row, (rewards[which] + slope * distance).argmin(axis=1)].reshape(room.counts)
    low = which[row, (rewards[which] - slope * distance).argmax(axis=1)].reshape(room.counts)

    def cones(chosen: Any, sign: float) -> list[Floats]:
        """The cone that each cell has chosen, at each of its corners."""
        places = [nodes[box] for box in at_corners(shape)]
        return [rewards[chosen] + sign * (slope * np.linalg.norm(x - states[chosen], axis=-1) + margin) for x in places]

    above, below = cones(high, 1.0), cones(low, -1.0)
    upper, lower = np.full(shape, -math.inf), np.full(shape, math.inf)
    full, empty = np.mean(above, axis=0) > 1.0, np.mean(below, axis=0) < 0.0
    for box, a, b in zip(at_corners(shape), above, below, strict=True):
        upper[box] = np.maximum(upper[box], np.where(full, 1.0, a))
        lower[box] = np.minimum(lower[box], np.where(empty, 0.0, b))
    return lower, upper
