"""Bounds between actions: q(a) = min_j [q_j + L·ρ_A(a, a_j)], and its largest value over an interval of actions."""

from __future__ import annotations

import numpy as np


class Between:
    """Actions at `points` (A, d), with ρ_A = ‖·‖_p; with `all_between` those between them count, too."""

    def __init__(self, points, p=2.0, all_between=False):
        self.points, self.p, self.all_between = np.asarray(points, float), p, all_between

    def rho(self, actions) -> np.ndarray:
        """(n, A) distances from `actions` (n, d)."""
        return np.linalg.norm(np.asarray(actions)[:, None] - self.points[None], self.p, axis=2)

    def at(self, actions, q, L) -> np.ndarray:
        """q(a) at `actions` (n, d), (n,)."""
        return (q + L * self.rho(actions)).min(axis=1)

    def spread(self, q, L) -> np.ndarray:
        """q(a) at the points themselves, (A,)."""
        return self.at(self.points, q, L)

    def highest(self, q, L) -> float:
        """The largest q(a); in one dimension it is where two cones meet, or at an end."""
        if not self.all_between or not np.isfinite(q).any() or L == 0.0:
            return float(self.spread(q, L).max())
        points, q = self.points[np.isfinite(q), 0], q[np.isfinite(q)]
        meet = 0.5 * (np.add.outer(points, points) + np.subtract.outer(q, q).T / L).ravel()  # rising, then falling
        meet = meet[(meet >= self.points.min()) & (meet <= self.points.max())]
        actions = np.concatenate([meet, self.points[:, 0]])
        return float((q + L * abs(actions[:, None] - points)).min(axis=1).max())

    def highest_on_grid(self, q, L, steps) -> float:
        """The largest q(a) on a grid with so many values along each axis: a lower bound in any dimension."""
        axes = [np.linspace(*limits, steps) for limits in zip(self.points.min(0), self.points.max(0), strict=True)]
        grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, self.points.shape[1])
        return float(max(self.at(part, q, L).max() for part in np.array_split(grid, 20)))
