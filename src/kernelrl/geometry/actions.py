"""How actions lie to each other, for bounds between them (`kernelrl.planning.between_actions`)."""

from typing import NamedTuple

import numpy as np

__all__ = ["CENTRE", "HALF", "Among", "Apart", "Interval", "Region", "region_of"]

MOST_CELLS = 500  # besides those of the net, that a search for the largest value looks at
CENTRE, HALF = range(2)  # of a cell


class Apart(NamedTuple):
    """A bound of one action says nothing of others: the defaults below."""


class Among(NamedTuple):
    """A finite number of actions."""

    distances: np.ndarray  # (A, A) ρ_A


class Interval(NamedTuple):
    """An interval of actions, with its net in ascending order."""

    distances: np.ndarray  # (A, A) ρ_A


class Region(NamedTuple):
    """A box of actions with a metric ‖·‖_p."""

    distances: np.ndarray  # (A, A) ρ_A
    p: float
    points: np.ndarray  # (A, d) the net in coordinates in which ρ_A is the p-norm
    cells: np.ndarray  # (cells, 2, d) CENTRE and HALF the widths of the cells between the net's actions
    queue: np.ndarray  # (cells + MOST_CELLS, 2, d) scratch
    bounds: np.ndarray  # (cells + MOST_CELLS,) scratch


def region_of(distances, p, axes):
    """The region whose net has these coordinates along each axis, a list of ascending arrays, the last one fastest."""
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    middles = [0.5 * (axis[1:] + axis[:-1]) if len(axis) > 1 else axis for axis in axes]
    halves = [0.5 * np.diff(axis) if len(axis) > 1 else np.zeros(1) for axis in axes]
    cells = [np.stack(np.meshgrid(*part, indexing="ij"), axis=-1).reshape(-1, len(axes)) for part in (middles, halves)]
    room = len(cells[0]) + MOST_CELLS
    queue, bounds = np.zeros((room, 2, len(axes))), np.zeros(room)
    return Region(distances, float(p), points, np.stack(cells, axis=1), queue, bounds)
