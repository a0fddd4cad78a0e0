"""Plans on all samples as portable policies (`kernelrl.planning.full`).

    Q_h(x, a) = Σ_s w(x, x_s)·G_h(s) / (β + Σ_s w(x, x_s))      over the samples of action a (and of step h, per step)

Samples are sorted by list (pool and action) and by cell of a grid on two axes: those of list l and cell c are
start[l·cells + c] … start[l·cells + c + 1] - 1. A weight that could not change a count in double precision is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.buckets import AXIS, CELLS, ORIGIN, PER_WIDTH, new_grid
from kernelrl.portable.forms import Form, Table, smallest_type
from kernelrl.portable.places import Places, Weights, cell_code, grid_numbers
from kernelrl.portable.representatives import first_largest
from kernelrl.portable.translate import literal

__all__ = ["AllSamples"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
IN_A_CELL = 4  # samples of a list, at least, in the mean


@dataclass(frozen=True, eq=False)
class AllSamples(Form):
    """A plan on all samples."""

    places: Places
    weights: Weights
    beta: float
    inverse_sigma2: float
    reach: float
    bounded: bool
    """Whether the metric allows a grid."""
    points: Floats
    """(N, places)"""
    G: Floats
    """(rows, N) r + V(y) of each sample: one row for each step if data are pooled, else one row."""
    pool: Integers
    """(N,) the pool of each sample: its step, or 0 where data are pooled."""
    action: Integers
    """(N,)"""
    actions: int
    pools: tuple[int, ...]
    """The pools that are kept: the steps, or 0."""
    kind: ClassVar[str] = "samples"

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        if self.pools == (0,) and len(self.G) > 1:
            return replace(self, G=self.G[steps])
        return replace(self, pools=tuple(self.pools[h] for h in steps))

    @property
    def pooled(self) -> bool:
        """Whether all steps share the samples."""
        return self.pools == (0,)

    def sorted(self) -> tuple[Floats, Integers, Integers]:
        """(grid, start, which): the cells, where each begins, and the samples in order."""
        kept = np.flatnonzero(np.isin(self.pool, self.pools))
        points, lists = self.points[kept], len(self.pools) * self.actions
        place = np.searchsorted(np.array(self.pools), self.pool[kept])
        which = place * self.actions + self.action[kept]
        low, high = points.min(axis=0), points.max(axis=0)
        cell = self.reach / 1.5 if self.bounded else np.inf
        grid = new_grid(low, high, cell)
        while grid[CELLS].prod() > max(1.0, len(kept) / lists / IN_A_CELL):
            cell *= 1.5
            grid = new_grid(low, high, cell)
        at = [(points[:, int(grid[AXIS, i])] - grid[ORIGIN, i]) * grid[PER_WIDTH, i] for i in range(2)]
        one, two = (np.clip(at[i], 0.0, grid[CELLS, i] - 1.0).astype(np.int64) for i in range(2))
        number = int(grid[CELLS].prod())
        key = which * number + one * int(grid[CELLS, 1]) + two
        order = np.argsort(key, kind="stable")
        start = np.searchsorted(key[order], np.arange(lists * number + 1))
        return grid, start, kept[order]

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        _, start, which = self.sorted()
        return {
            "scale": self.places.scale, "points": self.points[which], "start": smallest_type(start),
            "targets": self.G[:, which],
        }  # fmt: skip

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        grid, _, _ = self.sorted()
        return {
            "places": self.places.numbers(), **self.weights.numbers(), "beta": self.beta, "pooled": self.pooled,
            "inverse_sigma2": self.inverse_sigma2, "reach": self.reach, "grid": grid_numbers(grid),
        }  # fmt: skip

    def described(self) -> str:
        """What it is."""
        return f"weighted sums over {np.isin(self.pool, self.pools).sum():,} samples"

    def smaller(self) -> str:
        """What would make its tables smaller."""
        return "an agent on representative states (representatives=…), which are fewer than samples"

    def c_code(self) -> str:
        """The C functions."""
        grid, _, which = self.sorted()
        n, A, cells, across = self.places.size, self.actions, int(grid[CELLS].prod()), int(grid[CELLS, 1])
        one, two = (int(axis) for axis in grid[AXIS])
        pool = "0" if self.pooled else "(size_t)row"
        target = f"@targets[(size_t)row * {len(which)}u + k]" if self.pooled else "@targets[k]"
        return f"""\
{self.places.c_code()}
{self.weights.c_code()}
{cell_code(grid)}\
{first_largest(A)}
static inline int @number(const REAL *state, int row, int step)
{{
    REAL x[{n}], q[{A}];
    int i, j, a, left, right, bottom, top;
    (void)row;
    @place(state, step, x);
    left = @cell_0(x[{one}] - {literal(self.reach)});
    right = @cell_0(x[{one}] + {literal(self.reach)});
    bottom = @cell_1(x[{two}] - {literal(self.reach)});
    top = @cell_1(x[{two}] + {literal(self.reach)});
    for (a = 0; a < {A}; a++) {{
        REAL count = 0, total = 0;
        for (i = left; i <= right; i++)
            for (j = bottom; j <= top; j++) {{
                size_t cell = ({pool} * {A}u + (size_t)a) * {cells}u + (size_t)i * {across}u + (size_t)j;
                size_t k;
                for (k = @start[cell]; k < @start[cell + 1]; k++) {{
                    REAL square = @square(@points + k * {n}u, x);
                    if (square <= {literal(self.reach * self.reach)}) {{
                        REAL w = @weight(square * {literal(self.inverse_sigma2)});
                        count += w;
                        total += w * {target};
                    }}
                }}
            }}
        q[a] = total / ({literal(self.beta)} + count);
    }}
    return @first_largest(q);
}}
"""
