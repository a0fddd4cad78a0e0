"""Expectations over next states that are not clipped coordinate by coordinate, on the grid of one room.

Two kinds of y beside y = clip(z + ε) with independent coordinates (see `optimal` and `endings`):

    y = P(z + ε)            P any projection: V(P(·)) is computed on a grid wider than that of z, and smoothed by the
                            density of ε along one axis after the other
    y = clip(z + σ·t)       one draw t ~ N(0, 1) for all coordinates: a sum over points of a line, SPACING apart

Where episodes may end, E[V(y)·1(y ended)] is a sum over LINE pieces of the line, each with the ended share of its
PARTS parts. So it errs by at most 0.4·14/(LINE·PARTS)/2, 0.0009, times the jump of the integrand. Noise along a line
does not smooth across it, so kinks of V stay, and errors fall only with the cell width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import make_interp_spline
from scipy.ndimage import map_coordinates, spline_filter
from scipy.special import roots_hermitenorm

from kernelrl.envs.endings import along
from kernelrl.envs.motion import Motion

__all__ = ["AlongLine", "Projected"]

Floats = NDArray[np.float64]
SPACING, FARTHEST = 0.25, 5.0  # of the points along a line, in standard deviations
LINE, PARTS, REACH = 400, 8, 7.0


def spline_at(V: Floats, places: Floats) -> Floats:
    """The spline through V (n+1, …) at `places` (d, n), in cells from its first point."""
    filtered = spline_filter(V, order=3, mode="mirror")
    found: Floats = map_coordinates(filtered, places, np.float64, order=3, mode="mirror", prefilter=False)
    return found


@dataclass(frozen=True)
class Projected:
    """V on a room's grid → E[V(P(z + ε))] at Z's."""

    places: Floats  # (d, points) where the projections of the wider grid's points lie on V's grid, in cells
    shape: tuple[int, ...]  # of the wider grid
    smoothings: list[Floats]  # for each axis: the wider grid → Z's

    @classmethod
    def of(cls, motion: Motion, grid: Any) -> Projected:
        """For the grids of a room, an `optimal.StateGrid`."""
        assert motion.project is not None
        d = grid.low.size
        wider = [np.arange(-2.0 * m, grid.n + 2.0 * m + 1.0) for m in grid.margin]
        cells = np.stack(np.meshgrid(*wider, indexing="ij"), axis=-1).reshape(-1, d)
        places = (motion.project(grid.low + cells * grid.cell) - grid.low) / grid.cell
        smoothings = []
        t, w = roots_hermitenorm(grid.n // 4)
        for j in range(d):
            basis = make_interp_spline(wider[j], np.eye(wider[j].size), k=3)
            at = grid.wide(j)[:, None] + motion.noise[j] / grid.cell[j] * t
            matrix = np.zeros((len(at), wider[j].size))
            for q in range(t.size):
                matrix += w[q] / w.sum() * basis(np.clip(at[:, q], wider[j][0], wider[j][-1]))
            smoothings.append(matrix)
        return cls(np.clip(places, 0.0, grid.n).T, tuple(axis.size for axis in wider), smoothings)

    def live(self, V: Floats) -> Floats:
        """The expectation of V (n+1, …)."""
        W = spline_at(V, self.places).reshape(self.shape)
        for j, matrix in enumerate(self.smoothings):
            W = along(matrix, W, j)
        return W


@dataclass(frozen=True)
class AlongLine:
    """V on a room's grid → E[V(y)·1(y live)] and E[V(y)·1(y ended)] for all z of Z's, y = clip(z + σ·t)."""

    z: Floats  # (points, d) Z's grid, in cells of V's
    shape: tuple[int, ...]
    noise: Floats  # (d,) in cells
    n: int
    near: NDArray[np.int64]  # points from which an end may be reached
    shares: Floats  # (near, LINE) the weight of each piece of the line times its ended share

    @classmethod
    def of(cls, motion: Motion, grid: Any) -> AlongLine:
        """For the grids of a room, an `optimal.StateGrid`."""
        d = grid.low.size
        wide = [grid.wide(j) for j in range(d)]
        z = np.stack(np.meshgrid(*wide, indexing="ij"), axis=-1).reshape(-1, d)
        noise = motion.noise / grid.cell
        near, shares = np.zeros(0, np.int64), np.zeros((0, LINE))
        if motion.ends is not None:

            def ended(z: Floats, t: Floats) -> NDArray[np.bool_]:  # (points, t)
                states = grid.low + np.clip(z[:, None] + t[:, None] * noise, 0.0, grid.n) * grid.cell
                return motion.ends(states.reshape(-1, d)).reshape(len(z), len(t))  # type: ignore[misc]

            near = np.flatnonzero(ended(z, np.linspace(-REACH, REACH, LINE // 10)).any(axis=1))
            t = (np.arange(LINE * PARTS) + 0.5) / (LINE * PARTS) * 2 * REACH - REACH
            density = np.exp(-0.5 * t**2)
            weights = ended(z[near], t) * (density / density.sum())
            shares = weights.reshape(len(near), LINE, PARTS).sum(axis=2)
        return cls(z, tuple(axis.size for axis in wide), noise, grid.n, near, shares)

    def live(self, V: Floats) -> Floats:
        """E[V(y)·1(y live)] for V (n+1, …): E[V(y)] minus the ended part."""
        filtered = spline_filter(V, order=3, mode="mirror")
        every = np.zeros(len(self.z))
        t = np.arange(-FARTHEST, FARTHEST + SPACING / 2, SPACING)
        w = np.exp(-0.5 * t**2)
        for q in range(t.size):
            every += w[q] / w.sum() * self._at(filtered, self.z, t[q])
        return every.reshape(self.shape) - self._ended(filtered)

    def ended(self, V: Floats) -> Floats:
        """E[V(y)·1(y ended)] for V (n+1, …)."""
        return self._ended(spline_filter(V, order=3, mode="mirror"))

    def _ended(self, filtered: Floats) -> Floats:
        total, z = np.zeros(len(self.z)), self.z[self.near]
        for q in np.flatnonzero(self.shares.any(axis=0)):
            t = (q + 0.5) / LINE * 2 * REACH - REACH
            total[self.near] += self.shares[:, q] * self._at(filtered, z, t)
        return total.reshape(self.shape)

    def _at(self, filtered: Floats, z: Floats, t: float) -> Floats:
        places = np.clip(z + self.noise * t, 0.0, self.n).T
        found: Floats = map_coordinates(filtered, places, np.float64, order=3, mode="mirror", prefilter=False)
        return found
