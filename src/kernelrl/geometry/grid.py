"""A uniform grid over a box of states: the cell I(x) of a state, a number from 0 to X-1.

    I(x)_j = min(⌊bins_j·(x_j - low_j)/(high_j - low_j)⌋, bins_j - 1)

so a cell includes its lower faces, and the last cell of an axis also its upper face. Cells are numbered with the last
axis running fastest. A Discrete space of n states is a grid with one axis and cells of width 1.
"""

from typing import Any, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import available_memory
from kernelrl.jit.compile import compiled

__all__ = ["Grid", "box_grid", "cell_of", "centres", "check_bins", "check_bounded", "check_size", "discrete_grid"]

BYTES = 40  # roughly, what an agent stores per step, cell and action


class Grid(NamedTuple):
    """Where the cells are."""

    low: np.ndarray  # (d,)
    inverse: np.ndarray  # (d,) 1/width of a cell; 0 where the box itself has no width
    bins: np.ndarray  # (d,)
    cells: int  # X


@compiled
def cell_of(grid: Any, state: Any) -> Any:
    """I(state), for a state (d,) of the box."""
    low, inverse, bins, cell = grid.low, grid.inverse, grid.bins, 0
    for j in range(state.size):
        i = np.int64((state[j] - low[j]) * inverse[j])
        cell = cell * bins[j] + min(i, bins[j] - 1)
    return cell


def centres(grid: Grid, discrete: bool) -> np.ndarray:
    """(X, d) the centre of each cell; of a Discrete space the state itself."""
    places = np.stack(np.unravel_index(np.arange(grid.cells), tuple(grid.bins.tolist())), axis=1).astype(np.float64)
    wide, half = grid.inverse > 0.0, 0.0 if discrete else 0.5
    return np.where(wide, grid.low + (places + half) / np.where(wide, grid.inverse, 1.0), grid.low)


def check_bins(bins: Any) -> int | tuple[int, ...] | None:
    """`bins` as an int or a tuple of ints, or None, or an error that names it."""
    if bins is None:
        return None
    form = "bins must be a whole number of at least 1, or one for each dimension of the state"
    numbers = np.asarray(bins)
    if numbers.ndim > 1 or numbers.size == 0 or numbers.dtype.kind not in "iuf":
        raise ValueError(f"{form}; got {bins!r}")
    if not (np.isfinite(numbers) & (numbers >= 1) & (numbers < 2**53) & (numbers == np.floor(numbers))).all():
        raise ValueError(f"{form}; got {bins!r}")
    return int(numbers) if numbers.ndim == 0 else tuple(int(n) for n in numbers)


def check_bounded(low: np.ndarray, high: np.ndarray, what: str) -> None:
    """Raise ValueError unless the box [low, high] (d,) is bounded, so that it can be divided."""
    with np.errstate(over="ignore"):
        bounded = np.isfinite(low) & np.isfinite(high) & np.isfinite(high - low)
    if not bounded.all():
        raise ValueError(
            f"observation_space: {what} divides a bounded box, but the states are unbounded in dimension "
            f"{int(np.flatnonzero(~bounded)[0])} (from {low} to {high}); wrap the environment so that its states are "
            "rescaled or clipped to a bounded box, with gymnasium.wrappers.TransformObservation or "
            "gymnasium.wrappers.RescaleObservation"
        )


def check_size(cells: int, actions: int, horizon: int) -> None:
    """Raise MemoryError if tables of steps · cells · actions do not fit into memory."""
    asked, available = BYTES * cells * actions * horizon, available_memory()
    if asked > available:
        raise MemoryError(
            f"bins: {cells:.3g} cells times {actions} actions times {horizon} steps take about {asked:.2g} bytes, and "
            f"{available:.2g} bytes are available; take fewer bins"
        )


def box_grid(bins: int | tuple[int, ...] | None, low: np.ndarray, high: np.ndarray) -> Grid:
    """`bins` cells (an int or one for each axis) over the box [low, high] (d,)."""
    if isinstance(bins, tuple) and len(bins) != low.size:
        raise ValueError(f"bins: states have {low.size} dimensions, got {len(bins)} numbers: {bins}")
    check_bounded(low, high, "a grid")
    each = np.array(bins if isinstance(bins, tuple) else (bins,) * low.size, np.int64)
    width = high - low
    inverse = np.where(width > 0, each / np.where(width > 0, width, 1.0), 0.0)
    return Grid(low.copy(), inverse, each, int(np.prod(each.astype(object))))


def discrete_grid(low: np.ndarray, high: np.ndarray) -> Grid:
    """The states low, low+1 … high, each of them (1,), as cells."""
    n = int(high[0] - low[0]) + 1
    return Grid(low.copy(), np.ones(1), np.array([n], np.int64), n)
