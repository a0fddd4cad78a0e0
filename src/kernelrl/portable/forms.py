"""What a portable policy is made of: a `Form`, that is, tables, numbers, and the C code that looks an action up.

A form has one row of tables for each step that is kept. `c_code` returns C functions in which `@` stands for the prefix
of all names, REAL for the type of numbers, CALL(sqrt) for the function of math.h for that type, and LIT, after a
number, for what marks a literal of that type. The last of the functions is

    static inline int @number(const REAL *x, int row, int step)

It takes a state inside the box and returns the number of the action, from 0. Ties go to the lowest number, as in `act`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

__all__ = ["Form", "GridTable", "grid_table", "smallest_type"]

Floats = npt.NDArray[np.float64]
Table = npt.NDArray[Any]


def smallest_type(numbers: npt.ArrayLike) -> Table:
    """Whole numbers from 0 on in the smallest type that holds them."""
    given = np.asarray(numbers)
    most = int(given.max(initial=0))
    return given.astype(np.uint8 if most < 2**8 else np.uint16 if most < 2**16 else np.uint32)


class Form:
    """One kind of portable policy."""

    kind: ClassVar[str]
    """Its name in JSON files."""

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        raise NotImplementedError

    def tables(self) -> dict[str, Table]:
        """Its arrays by name: the same in C and in JSON."""
        raise NotImplementedError

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name, for JSON."""
        return {}

    def described(self) -> str:
        """What it is, in a few words, for the head of a file."""
        raise NotImplementedError

    def smaller(self) -> str:
        """What would make its tables smaller."""
        raise NotImplementedError

    def c_code(self) -> str:
        """The C functions."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class GridTable(Form):
    """One action for each step and cell of a uniform grid (see `kernelrl.geometry.grid`)."""

    low: Floats
    """(d,) where the grid begins."""
    inverse: Floats
    """(d,) 1/width of a cell."""
    bins: npt.NDArray[np.int64]
    """(d,) how many cells there are along each axis, the last one running fastest."""
    actions: npt.NDArray[np.int64]
    """(H, X) the number, from 0, of the action of each step and cell."""
    kind: ClassVar[str] = "grid"

    def __post_init__(self) -> None:
        cells = math.prod(np.asarray(self.bins).tolist())
        if np.ndim(self.actions) != 2 or np.shape(self.actions)[1] != cells:
            raise ValueError(
                f"actions must have shape (steps, cells), here (…, {cells}), got shape {np.shape(self.actions)}"
            )

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        return replace(self, actions=self.actions[steps])

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        return {
            "origin": np.asarray(self.low, np.float64), "per_width": np.asarray(self.inverse, np.float64),
            "bins": np.asarray(self.bins, np.int32), "best": smallest_type(self.actions),
        }  # fmt: skip

    def described(self) -> str:
        """What it is."""
        return f"one action for each of {self.actions.shape[1]:,} cells of a grid"

    def smaller(self) -> str:
        """What would make its tables smaller."""
        return "an agent with fewer bins"

    def c_code(self) -> str:
        """The C functions."""
        return f"""\
static inline int @number(const REAL *x, int row, int step)
{{
    size_t cell = 0;
    int j;
    (void)step;
    for (j = 0; j < {len(self.low)}; j++) {{
        int32_t i = (int32_t)((x[j] - @origin[j]) * @per_width[j]);
        if (i >= @bins[j])
            i = @bins[j] - 1;
        cell = cell * (size_t)@bins[j] + (size_t)i;
    }}
    return @best[(size_t)row * {self.actions.shape[1]}u + cell];
}}
"""


def grid_table(grid: Any, q: npt.ArrayLike) -> GridTable:
    """The table of the first of the best actions of each cell, from values `q` (H, X, A) in the cells of a `grid`."""
    values = np.asarray(q)
    return GridTable(grid.low, grid.inverse, grid.bins, values.argmax(axis=2))
