"""Optimal values of environments with a `Motion`, by dynamic programming on a grid; `solve` also takes others.

With Z_h the expected value of moving to z, before noise and clipping,

    Z_h(z)   = E[V_h(clip(z + ε))]                              noise: one axis after the other
    Q_h(x,a) = r(x, a) + Z_{h+1}(m(x, a)),   V_h(x) = max_a Q_h(x, a),   Z_H = 0

V_h is stored on a grid of each room and interpolated by cubic splines. The expectation is Gauss–Hermite quadrature of
the clipped function: a node beyond a wall reads the value at the wall. Z_h is smooth and practically constant farther
than `MARGIN` standard deviations behind a wall, so its grid ends there; only Z_h is kept, since r and m are known
exactly.

Where episodes end on arrival at a set of states, and rewards may depend on the state y = clip(m(x, a) + ε) reached,

    Q_h(x,a) = r(x, a) + E[1(y live)·(r_after(y, a) + V_{h+1}(y)) + 1(y ended)·r_end(y, a)]

V_h is also computed at ended states, as if an episode could continue from there. So it does not jump at the boundary of
the set, and splines can interpolate it; Z_h is E[V_h(y)] minus E[V_h(y)·1(y ended)], by the quadrature of `endings`.
This needs noise: without it V* itself jumps, at states from which the end is just reached. If a motion has `project` or
`shared_noise`, the expectation is that of `expectations`.

The number of cells grows by half, and the number of nodes with it, until no value V_h at a point of the coarser grid
changes by more than the tolerance. The error falls with the square of the cell width, so the remaining error is about
0.8 of that change, and less at the start.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.interpolate import BSpline, make_interp_spline
from scipy.ndimage import map_coordinates, spline_filter
from scipy.special import roots_hermitenorm

from kernelrl.envs import endings, expectations
from kernelrl.envs.motion import Motion
from kernelrl.envs.outcomes import Outcomes, OutcomeValues, refine_outcomes
from kernelrl.envs.sampled import SampledValues, solve_by_drawing
from kernelrl.envs.wrapping import compiled_dynamics, is_shipped, time_limit
from kernelrl.jit.compile import cache_dir

__all__ = ["OptimalValues", "motion_of", "solve"]

Floats = NDArray[np.float64]
FEWEST_CELLS = 128  # along each axis of a room at first; a power of two, so that it can often grow by half
MOST_POINTS = 2_000_000  # of the grid of one room
MARGIN = 7.0
SOLVED: dict[str, OptimalValues | OutcomeValues] = {}


@dataclass(frozen=True)
class OptimalValues:
    """The optimal values of an environment with its time limit; steps count from 0."""

    horizon: int
    """H, the number of steps of an episode."""
    tolerance: float
    """The tolerance that was asked for."""
    change: float
    """The largest change of any value in the last refinement of the grid."""
    cells: int
    """Cells along each axis of a room's grid."""
    start_value: float
    """V*_0, the mean over the start states."""
    motion: Motion = field(repr=False)
    coefficients: NDArray[np.float32] = field(repr=False)
    """(rooms, H-1, …) spline coefficients of Z_1 … Z_{H-1} on each room's grid."""
    arrivals: NDArray[np.float32] | None = field(default=None, repr=False)
    """(rooms, A, …) those of the expected reward that depends on the next state, or None."""

    @property
    def starts(self) -> Floats:
        """(s, d) where an episode may start, all equally likely."""
        return self.motion.starts

    def q_values(self, states: ArrayLike, step: int) -> Floats:
        """(n, A) Q*_h at `states` (n, d); 0 at those where the episode is over."""
        x, motion = self._check(states), self.motion
        if not 0 <= step < self.horizon or step != int(step):
            raise ValueError(f"step must be one of 0 … {self.horizon - 1}, got {step!r}")
        rooms = motion.room(x)
        Q = np.empty((len(x), len(motion.actions)))
        for a in range(Q.shape[1]):
            Q[:, a] = motion.reward(x, a)
            aims = motion.move(x, a)
            for room in np.unique(rooms):
                inside = rooms == room
                places = StateGrid.of(motion, room, self.cells).places(aims[inside])
                if self.arrivals is not None:
                    Q[inside, a] += read(self.arrivals[room, a], places)
                if step + 1 < self.horizon:
                    Q[inside, a] += read(self.coefficients[room, int(step)], places)
        if motion.ends is not None:
            Q[motion.ends(x)] = 0.0
        return Q

    def values(self, states: ArrayLike, step: int) -> Floats:
        """(n,) V*_h at `states` (n, d)."""
        best: Floats = self.q_values(states, step).max(axis=1)
        return best

    def actions(self, states: ArrayLike, step: int) -> NDArray[np.int64]:
        """(n,) an optimal action at `states` (n, d); the lowest if several are equal."""
        best: NDArray[np.int64] = self.q_values(states, step).argmax(axis=1)
        return best

    def _check(self, states: ArrayLike) -> Floats:
        x = np.asarray(states, np.float64)
        d = self.motion.low.shape[1]
        if x.ndim != 2 or x.shape[1] != d or not np.isfinite(x).all():
            raise ValueError(f"states must be finite numbers of shape (n, {d}), got an array of shape {x.shape}")
        return x


@dataclass(frozen=True)
class StateGrid:
    """The grids of V and of Z in one room, `n` cells along each axis of the room."""

    low: Floats  # (d,)
    cell: Floats  # (d,)
    n: int
    margin: NDArray[np.int64]  # (d,) cells of the grid of Z behind each wall

    @classmethod
    def of(cls, motion: Motion, room: int, n: int) -> StateGrid:
        """The grids for `n` cells."""
        low = motion.low[room]
        cell = (motion.high[room] - low) / n
        # All rooms' grids have the same shape, so the smallest cells determine the margin.
        smallest = ((motion.high - motion.low) / n).min(axis=0)
        return cls(low, cell, n, np.ceil(MARGIN * motion.noise / smallest).astype(np.int64) + 1)

    def points(self) -> Floats:
        """The points of V's grid, ((n+1)^d, d)."""
        axes = [self.low[j] + self.cell[j] * np.arange(self.n + 1) for j in range(self.low.size)]
        return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, self.low.size)

    def places(self, aims: Floats) -> Floats:
        """Where states (n, d) lie on Z's grid, in cells, (d, n)."""
        place = (aims - self.low) / self.cell + self.margin
        return np.clip(place, 0.0, self.n + 2 * self.margin).T

    def wide(self, axis: int) -> Floats:
        """Z's grid along an axis, in cells from the lower wall."""
        return np.arange(-self.margin[axis], self.n + self.margin[axis] + 1.0)

    def smoothing(self, axis: int, noise: float, nodes: int) -> Floats:
        """The matrix from V along an axis to E[V(clip(z + ε))] at Z's grid, (n + 2·margin + 1, n + 1)."""
        own, wide = np.arange(self.n + 1.0), self.wide(axis)
        basis = make_interp_spline(own, np.eye(self.n + 1), k=3)
        t, w = roots_hermitenorm(nodes)
        matrix = np.zeros((wide.size, own.size))
        for q in range(nodes):
            matrix += w[q] / w.sum() * basis(np.clip(wide + noise / self.cell[axis] * t[q], 0.0, self.n))
        return matrix


def read(coefficients: Any, places: Floats) -> Floats:
    """The spline at `places` (d, n)."""
    found: Floats = map_coordinates(coefficients, places, np.float64, order=3, mode="mirror", prefilter=False)
    return found


def reader(places: Floats, shape: tuple[int, ...], cells: NDArray[np.int64]) -> Callable[[Any], Floats]:
    """A function that reads a spline at `places` (d, n), one for each point of a grid of this shape.

    The spline has `cells` (d,) cells. Often each axis moves by itself: coordinate j of a place depends on that of the
    point alone. Then one axis is read after the other, by a sparse matrix: several times faster.
    """
    d = len(shape)
    grid = places.reshape(d, *shape)
    axes = [grid[j][tuple(slice(None) if i == j else 0 for i in range(d))] for j in range(d)]
    apart = np.stack(np.meshgrid(*axes, indexing="ij"))
    if not np.array_equal(apart, grid):
        return lambda coefficients: read(coefficients, places)
    # A cubic spline on whole numbers; by "mirror" there is one more coefficient beyond each end.
    knots = [np.arange(-3.0, n + 4.0) for n in cells]
    matrices = [BSpline.design_matrix(axes[j], knots[j], 3) for j in range(d)]

    def read_axes(coefficients: Any) -> Floats:
        found: Floats = np.pad(coefficients.astype(np.float64), 1, mode="reflect")
        for matrix in matrices:  # the first axis becomes the last: after all of them they are in order again
            found = np.moveaxis((matrix @ found.reshape(len(found), -1)).reshape(-1, *found.shape[1:]), 0, -1)
        return found.reshape(-1)

    return read_axes


@dataclass(frozen=True)
class Smoothing:
    """V on a room's grid → E[V(clip(z + ε))] at Z's, where no episode ends."""

    matrices: list[Floats]

    def live(self, V: Floats) -> Floats:
        """The expectation of V (n+1, …)."""
        for j, matrix in enumerate(self.matrices):
            V = endings.along(matrix, V, j)
        return V


def expectation(motion: Motion, room: int, grid: StateGrid) -> Any:
    """The expectation over next states: an object with `live` and, where episodes end, `ended`."""
    axes = range(motion.noise.size)
    if motion.project is not None:
        return expectations.Projected.of(motion, grid)
    if motion.shared_noise:
        return expectations.AlongLine.of(motion, grid)
    if motion.ends is None:
        return Smoothing([grid.smoothing(j, motion.noise[j], grid.n // 4) for j in axes])
    wide = [grid.wide(j) for j in axes]
    return endings.expectation(motion.ends, motion.low[room], motion.high[room], grid.n, motion.noise, wide)


def arrival_rewards(motion: Motion, expect: Any, x: Floats, shape: tuple[int, ...]) -> NDArray[np.float32] | None:
    """(A, …) spline coefficients of the expected rewards that depend on the next state; x are the grid's points."""
    after, at_end = motion.reward_after, motion.reward_at_end
    if after is None and at_end is None:
        return None
    found = []
    for a in range(len(motion.actions)):
        expected = 0.0 if after is None else expect.live(after(x, a).reshape(shape))
        if at_end is not None:
            expected = expected + expect.ended(at_end(x, a).reshape(shape))
        found.append(spline_filter(expected, order=3, mode="mirror"))
    return np.array(found, np.float32)


def solve_room(motion: Motion, room: int, n: int, horizon: int) -> tuple[Floats, NDArray[np.float32], Any]:
    """V_0 … V_{H-1} (H, (n+1)^d) on the grid, and what is kept: `coefficients` and `arrivals` of `OptimalValues`."""
    grid, d = StateGrid.of(motion, room, n), motion.noise.size
    x, shape = grid.points(), (n + 1,) * d
    expect = expectation(motion, room, grid)
    cells = n + 2 * grid.margin
    reads = [reader(grid.places(motion.move(x, a)), shape, cells) for a in range(len(motion.actions))]
    rewards = [motion.reward(x, a) for a in range(len(motion.actions))]
    arrivals = arrival_rewards(motion, expect, x, shape)
    if arrivals is not None:
        rewards = [r + read_at(c) for r, c, read_at in zip(rewards, arrivals, reads, strict=True)]
    V = np.empty((horizon, len(x)))
    V[-1] = np.max(rewards, axis=0)
    Z = np.empty((horizon - 1, *(cells + 1)), np.float32)
    for h in range(horizon - 2, -1, -1):
        Z[h] = spline_filter(expect.live(V[h + 1].reshape(shape)), order=3, mode="mirror")
        V[h] = np.max([r + read_at(Z[h]) for r, read_at in zip(rewards, reads, strict=True)], axis=0)
    return V, Z, arrivals


def refine(motion: Motion, horizon: int, tolerance: float) -> OptimalValues:
    """Solve on finer and finer grids until the change is below the tolerance."""
    rooms, d = motion.low.shape
    n, coarser = first_cells(motion), None
    change = np.inf
    while (n + 1) ** d <= MOST_POINTS and (coarser is None or 2 * n == 3 * (coarser.shape[-1] - 1)):
        solved = [solve_room(motion, room, n, horizon) for room in range(rooms)]
        values = np.array([V for V, _, _ in solved]).reshape(rooms, horizon, *(n + 1,) * d)
        if coarser is not None:
            # Every second point of the coarser grid is every third of the finer one.
            thirds = (slice(None), slice(None), *(slice(None, None, 3),) * d)
            halves = (slice(None), slice(None), *(slice(None, None, 2),) * d)
            change = float(abs(values[thirds] - coarser[halves]).max())
        if change <= tolerance:
            coefficients = np.array([Z for _, Z, _ in solved])
            arrivals = None if solved[0][2] is None else np.array([R for _, _, R in solved])
            found = OptimalValues(horizon, tolerance, change, n, np.nan, motion, coefficients, arrivals)
            return replace(found, start_value=float(found.values(motion.starts, 0).mean()))
        coarser, n = values, n + n // 2
    raise RuntimeError(
        f"tolerance: {tolerance:g} was not reached; with {MOST_POINTS:,} points per room the values still change by "
        f"{change:.2g}. Ask for a larger tolerance."
    )


def first_cells(motion: Motion) -> int:
    """The number of cells at first; where episodes end, cells are at most twice as long as the noise."""
    n, d = FEWEST_CELLS, motion.noise.size
    if motion.project is not None and (motion.ends is not None or motion.shared_noise or len(motion.low) > 1):
        raise ValueError("motion: `project` is for one room, without `ends` and without shared_noise")
    if motion.reward_at_end is not None and motion.ends is None:
        raise ValueError("motion: reward_at_end needs `ends`, which says where episodes end")
    if motion.ends is None:
        return n
    if d not in endings.DEPTH:
        raise ValueError(f"motion: problems with `ends` are solved in 1 or 2 dimensions, not in {d}")
    ended = np.asarray(motion.ends(motion.starts))
    if ended.dtype != np.bool_ or ended.shape != (len(motion.starts),):
        raise ValueError(
            f"motion: `ends` must give True or False for each of n states (n, {d}); for {len(motion.starts)} start "
            f"states it gave an array of shape {ended.shape} and type {ended.dtype}"
        )
    widest = (motion.high - motion.low).max(axis=0)
    while (widest > 2 * n * motion.noise).any():
        n += n // 2
        if n % 2 or (n + n // 2 + 1) ** d > MOST_POINTS:
            raise ValueError(
                f"motion: with noise {motion.noise} and rooms of size {widest}, V* jumps, or nearly so, at states from "
                "which an end is just reached, and no grid can represent it; more noise is needed in every coordinate"
            )
    return n


def motion_of(env: gym.Env[Any, Any]) -> Motion | Outcomes | None:
    """The description of `env` if it is compiled, has one, and no wrapper could change it; else None."""
    if compiled_dynamics(env) is None or not hasattr(env.unwrapped, "motion"):
        return None
    motion: Motion | Outcomes = env.unwrapped.motion()
    return motion


def solve(env: gym.Env[Any, Any], tolerance: float | None = None) -> OptimalValues | OutcomeValues | SampledValues:
    """The optimal values of an environment; those of this package's environments are cached on disk.

    `tolerance` bounds the change of every value, at every step, in the last refinement of the grid. None: that of the
    environment's motion, 0.001 for most.

    Where an environment declares no motion, its values are estimated from next states that are drawn (see
    `kernelrl.envs.sampled`). Then `tolerance` is half of the width of the `interval` of the value at the start; None:
    whatever a fixed number of draws gives, which takes up to a minute, and a few for an environment in Python.
    """
    if tolerance is not None and (
        isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not 0 < tolerance < np.inf
    ):
        raise ValueError(f"tolerance must be a number above 0, such as 0.001, or None, got {tolerance!r}")
    motion = motion_of(env)
    horizon = time_limit(env)
    if horizon is None:
        raise ValueError(
            "env: it has no time limit; register it with max_episode_steps and make it by gymnasium.make, or wrap it "
            "in Gymnasium's TimeLimit"
        )
    if motion is None:
        return solve_by_drawing(env, horizon, None if tolerance is None else float(tolerance))
    accuracy = float(motion.tolerance if tolerance is None else tolerance)
    if not is_shipped(env):  # not cached, because it is not known what its functions depend on
        return refine_any(motion, horizon, accuracy)
    key = key_of(env, horizon, accuracy)
    if key not in SOLVED:
        file = cache_dir().parent / "optimal" / f"{key}.npz"
        found = load(file, motion, horizon, accuracy)
        if found is None:
            found = refine_any(motion, horizon, accuracy)
            keep(file, found)
        SOLVED[key] = found
    return SOLVED[key]


def refine_any(motion: Motion | Outcomes, horizon: int, tolerance: float) -> OptimalValues | OutcomeValues:
    """The values for a description of either kind."""
    if isinstance(motion, Outcomes):
        return refine_outcomes(motion, horizon, tolerance)
    return refine(motion, horizon, tolerance)


def key_of(env: gym.Env[Any, Any], horizon: int, tolerance: float) -> str:
    """The cache key: a digest of the environment's parameters and of the code that uses them."""
    digest = hashlib.sha256(repr((env.unwrapped.dynamics, horizon, float(tolerance))).encode())  # type: ignore[attr-defined]
    for part in (type(env.unwrapped), solve, endings.expectation, expectations.Projected, refine_outcomes):
        digest.update(Path(inspect.getfile(part)).read_bytes())
    return digest.hexdigest()[:24]


def keep(file: Path, found: OptimalValues | OutcomeValues) -> None:
    """Write to the cache: the whole file or none. If the cache is not writable, nothing is written."""
    temporary = file.with_name(f".{file.name}.{os.getpid()}.part")
    numbers = np.array([found.change, found.cells, found.start_value])
    arrays: dict[str, Any] = {}
    if isinstance(found, OutcomeValues):
        arrays["table"] = found.table
    else:
        arrays["coefficients"] = found.coefficients
    if isinstance(found, OptimalValues) and found.arrivals is not None:
        arrays["arrivals"] = found.arrivals
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as stream:
                np.savez(stream, numbers=numbers, **arrays)
            os.replace(temporary, file)
        finally:
            temporary.unlink(missing_ok=True)


def load(file: Path, motion: Motion | Outcomes, horizon: int, tolerance: float) -> OptimalValues | OutcomeValues | None:
    """Read from the cache; None if the file is missing or damaged."""
    try:
        with open(file, "rb") as stream, np.load(stream, allow_pickle=False) as archive:
            change, cells, start = archive["numbers"]
            if isinstance(motion, Outcomes):
                table = archive["table"]
                return OutcomeValues(horizon, tolerance, float(change), int(cells), float(start), motion, table)
            Z = archive["coefficients"]
            R = archive["arrivals"] if "arrivals" in archive else None
    except Exception:  # damage makes zipfile and NumPy raise errors of many kinds; it is computed again
        return None
    return OptimalValues(horizon, float(tolerance), float(change), int(cells), float(start), motion, Z, R)
