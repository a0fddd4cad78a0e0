"""Sums of Gaussian weights over many points of the plane, in a time that does not grow with their number.

A Gaussian weight is a sum over the nodes v of a grid of width δ, on each axis

    exp(-(x-y)²/2σ²) ≈ c²·Σ_v exp(-(x-v)²/σ²)·exp(-(v-y)²/σ²),       c² = (δ/σ)·√(2/π)

which is the trapezoid rule for an integral of a Gaussian. Its relative error is 2·exp(-π²σ²/2δ²), so with δ = 3σ/8 two
axes have 2.3e-15. Each point y_s of value G_s is added once, to the nodes around it, and Σ_s w_s·G_s at any x is read
from the nodes around x:

    N(v) = Σ_s G_s·c·exp(-(v-y_s)²/σ²),       Σ_s w_s·G_s = Σ_v c·exp(-(x-v)²/σ²)·N(v)

Only the SPAN × SPAN nodes around a point are used, those within 6.75σ on each axis. What is missing for a pair x, y is
at most exp(-6.75²)·√2 for each of the four truncations, together less than MISSED.

There are several lists of points (see `buckets`), and each has several layers, sums of different values of its points.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import check_memory
from kernelrl.geometry.kernels import exp_negative, is_gaussian
from kernelrl.geometry.metrics import is_plane
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, checks, require
from kernelrl.jit.patches import SPAN, add_patch, read_patch

__all__ = [
    "MISSED",
    "Nodes",
    "add_at_nodes",
    "aim",
    "has_nodes",
    "new_nodes",
    "no_nodes",
    "nodes_fit",
    "read_at_nodes",
    "suit_nodes",
]

DENSITY = 0.375  # δ/σ
MISSED = 1e-19
MOST_BYTES = 2**28
LOW, INVERSE = 0, 2  # of `frame`: the lowest corner of the box, and 1/δ (0 without nodes)
FACTOR = math.sqrt(DENSITY * math.sqrt(2.0 / math.pi))  # c


class Nodes(NamedTuple):
    """Sums at nodes."""

    frame: Annotated[np.ndarray, Field("3")]
    sums: Annotated[np.ndarray, Field("any any any any")]  # (lists, layers, nodes along y, nodes along x)
    weights: Annotated[np.ndarray, Field("2 36", scratch=True)]  # of the nodes around a point, along y and along x


@checks(Nodes)
def check_nodes(where, nodes):
    """There are nodes for a whole patch, or none at all."""
    enough = nodes.sums.shape[2] >= SPAN and nodes.sums.shape[3] >= SPAN
    fits = enough and nodes.frame[INVERSE] > 0.0 if nodes.sums.size else nodes.sums.shape == (0, 0, 0, 0)
    require(fits, f"{where}sums", f"its shape is {nodes.sums.shape}, which is no grid of nodes")


def no_nodes():
    """An object without nodes."""
    return Nodes(np.zeros(3), np.zeros((0, 0, 0, 0)), np.zeros((2, SPAN)))


def shape_of_nodes(low, high, sigma, lists, layers):
    """The shape of `sums` for points in the box [low, high] (2,)."""
    along = [int(min((b - a) / (DENSITY * sigma), 1e9)) + SPAN for a, b in zip(low, high, strict=True)]
    return lists, layers, along[1], along[0]


def nodes_fit(low, high, sigma, lists, layers):
    """Whether the box [low, high] is a bounded part of the plane, and sums at its nodes take at most MOST_BYTES."""
    bounded = len(low) == 2 and np.isfinite(low).all() and np.isfinite(high).all()
    return bool(bounded) and 8 * math.prod(shape_of_nodes(low, high, sigma, lists, layers)) <= MOST_BYTES


def suit_nodes(settings, low, high, lists, layers):
    """Whether weights are Gaussian and the box [low, high] of embedded states is one that has nodes (`nodes_fit`).

    `settings` has `space`, `kernel` and `inverse_sigma2`, 1/σ².
    """
    if len(low) != 2 or not is_plane(settings.space, low) or not is_gaussian(settings.kernel):
        return False
    return nodes_fit(low, high, settings.inverse_sigma2**-0.5, lists, layers)


def new_nodes(low, high, sigma, lists, layers):
    """Sums without any points, for points in the box [low, high] (2,)."""
    shape = shape_of_nodes(low, high, sigma, lists, layers)
    check_memory(shape)
    frame = np.array([low[0], low[1], 1.0 / (DENSITY * sigma)])
    return Nodes(frame, np.zeros(shape), np.zeros((2, SPAN)))


@inner
def has_nodes(nodes):
    """Whether there are any."""
    return nodes.sums.size > 0


@inner(fastmath={"contract"})
def weigh_nodes(place, weights):
    """Write c·exp(-(x-v)²/σ²) at the nodes around a coordinate, `place` nodes from the first that is used inside."""
    for k in range(SPAN):
        d = DENSITY * (place + (SPAN // 2 - 1) - k)
        weights[k] = FACTOR * exp_negative(-d * d)


@inner
def aim(nodes, x, y):
    """Prepare adding or reading at the point (x, y); return where its nodes begin in a layer, -1 if it is outside."""
    frame, sums = nodes.frame, nodes.sums
    across, up = (x - frame[LOW]) * frame[INVERSE], (y - frame[LOW + 1]) * frame[INVERSE]
    columns, rows = sums.shape[3] - SPAN + 1, sums.shape[2] - SPAN + 1
    if not (0.0 <= across < columns and 0.0 <= up < rows):
        return -1
    column, row = np.int64(across), np.int64(up)
    weigh_nodes(up - row, nodes.weights[0])
    weigh_nodes(across - column, nodes.weights[1])
    return row * sums.shape[3] + column


@inner
def start_of(nodes, which, layer):
    """Where a layer of list `which` begins."""
    sums = nodes.sums
    return (which * sums.shape[1] + layer) * (sums.shape[2] * sums.shape[3])


@inner
def add_at_nodes(nodes, which, layer, place, amount):
    """Add a point of value `amount` to a layer; `place` is that of `aim`."""
    add_patch(nodes.sums, start_of(nodes, which, layer) + place, nodes.sums.shape[3], amount, nodes.weights)


@inner
def read_at_nodes(nodes, which, layer, place):
    """Σ w·value over all points of a layer; `place` is that of `aim`."""
    return read_patch(nodes.sums, start_of(nodes, which, layer) + place, nodes.sums.shape[3], nodes.weights)
