"""Plans on representative states as portable policies: the reading of `kernelrl.planning.smoothed`.

    nearest   the action of the representative within the merge distance m
    blend     the best of Σ_u λ_u·Q_h(u, ·) over the representatives within BLEND·m, λ = (1 - ρ/(BLEND·m))²/Σ
    otherwise the action of the nearest one, or of an estimate from all (`kernelrl.portable.elsewhere`)

Representatives are found through a grid of cells on two axes: those of cell c are order[start[c]] to
order[start[c+1]-1]. A state outside the grid belongs to its outermost cells. The library goes through them in another
order, so sums may differ in their last digits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.buckets import AXIS, CELLS
from kernelrl.geometry.representatives import BLEND, WIDER
from kernelrl.portable.elsewhere import Estimates
from kernelrl.portable.forms import Form, Table, smallest_type
from kernelrl.portable.places import Places, cell_code, grid_numbers
from kernelrl.portable.translate import literal

__all__ = ["RepresentativeStates"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RepresentativeStates(Form):
    """A plan on representative states."""

    places: Places
    points: Floats
    """(U, places) the representatives."""
    merge: float
    """m."""
    grid: Floats
    """(4, 2) the grid of cells."""
    start: npt.NDArray[np.int64]
    """(cells + 1,)"""
    order: npt.NDArray[np.int64]
    """(U,)"""
    Q: Floats
    """(rows, U, A)"""
    blend: bool
    """Whether values are blended."""
    elsewhere: Estimates | None
    """What is done where no representative is near; None: the nearest one counts."""
    kind: ClassVar[str] = "representatives"

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        elsewhere = None if self.elsewhere is None else self.elsewhere.at_steps(steps)
        return replace(self, Q=self.Q[steps], elsewhere=elsewhere)

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        values: dict[str, Table] = {"values": self.Q} if self.blend else {"best": smallest_type(self.Q.argmax(axis=2))}
        index = {"start": smallest_type(self.start), "order": smallest_type(self.order)}
        elsewhere = {} if self.elsewhere is None else self.elsewhere.tables()
        return {"scale": self.places.scale, "points": self.points, **index, **values, **elsewhere}

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        estimates = None if self.elsewhere is None else self.elsewhere.numbers()
        return {
            "places": self.places.numbers(), "merge": self.merge, "grid": grid_numbers(self.grid),
            "reading": "blend" if self.blend else "nearest", "blend": BLEND if self.blend else None,
            "elsewhere": "nearest" if estimates is None else "estimate", "estimates": estimates,
        }  # fmt: skip

    def described(self) -> str:
        """What it is."""
        what = "values blended between" if self.blend else "one action for each step and each of"
        return f"{what} {len(self.points):,} representative states"

    def smaller(self) -> str:
        """What would make its tables smaller."""
        nearest = 'an agent with reading="nearest", whose tables hold actions and not values, or ' if self.blend else ""
        return f"{nearest}one with fewer representatives (max_representatives=…)"

    def c_code(self) -> str:
        """The C functions."""
        n, (_, U, A) = self.places.size, self.Q.shape
        parts = [self.places.c_code(), cell_code(self.grid)]
        if self.elsewhere is not None:
            parts.append(self.elsewhere.c_code(n))
        parts.append(first_largest(A) if self.blend or self.elsewhere is not None else "")
        parts.append(self._blend_code() if self.blend else self._find_code())
        if self.elsewhere is None:
            parts.append(self._nearest_code())
        return "\n".join([*filter(None, parts), self._number_code(n, U, A)])

    def _cells(self, radius: float) -> str:
        """C: the cells within `radius`; `i`, `j` run over them."""
        one, two = (int(axis) for axis in self.grid[AXIS])
        return f"""\
    int left = @cell_0(x[{one}] - {literal(radius)}), right = @cell_0(x[{one}] + {literal(radius)});
    int bottom = @cell_1(x[{two}] - {literal(radius)}), top = @cell_1(x[{two}] + {literal(radius)});
"""

    def _find_code(self) -> str:
        """C: the nearest representative within the merge distance, the earliest of equally near ones, or -1."""
        n, across = self.places.size, int(self.grid[CELLS, 1])
        return f"""\
static inline int32_t @find(const REAL *x)
{{
    REAL best = {literal(self.merge * self.merge)};
    int32_t found = -1;
    int i, j;
{self._cells(self.merge * WIDER)}\
    for (i = left; i <= right; i++)
        for (j = bottom; j <= top; j++) {{
            size_t k, cell = (size_t)i * {across}u + (size_t)j;
            for (k = @start[cell]; k < @start[cell + 1]; k++) {{
                int32_t v = (int32_t)@order[k];
                REAL square = @square(@points + (size_t)v * {n}u, x);
                if (square < best || (square == best && (found < 0 || v < found))) {{
                    best = square;
                    found = v;
                }}
            }}
        }}
    return found;
}}
"""

    def _nearest_code(self) -> str:
        """C: the nearest representative at any distance."""
        n, U = self.places.size, len(self.points)
        return f"""\
/* Far from all representatives: they are looked at one by one. */
static inline int32_t @nearest(const REAL *x)
{{
    REAL best = 0;
    int32_t v, found = -1;
    for (v = 0; v < {U}; v++) {{
        REAL square = @square(@points + (size_t)v * {n}u, x);
        if (found < 0 || square < best) {{
            best = square;
            found = v;
        }}
    }}
    return found;
}}
"""

    def _blend_code(self) -> str:
        """C: one pass over the representatives around a state, which sums shares, or adds values times shares."""
        n, (_, U, A), radius = self.places.size, self.Q.shape, BLEND * self.merge
        across, bound = int(self.grid[CELLS, 1]), radius * radius
        return f"""\
/* total = 0: returns the sum of shares around x; else adds values, times shares divided by total, to q. */
static inline REAL @blend(const REAL *x, int row, REAL total, REAL *q)
{{
    REAL sum = 0;
    int i, j, a;
{self._cells(radius * WIDER)}\
    for (i = left; i <= right; i++)
        for (j = bottom; j <= top; j++) {{
            size_t k, cell = (size_t)i * {across}u + (size_t)j;
            for (k = @start[cell]; k < @start[cell + 1]; k++) {{
                size_t v = @order[k];
                REAL share, square = @square(@points + v * {n}u, x);
                if (!(square < {literal(bound)}))
                    continue;
                share = 1 - CALL(sqrt)(square) / {literal(radius)};
                share *= share;
                sum += share;
                if (total > 0)
                    for (a = 0; a < {A}; a++)
                        q[a] += share / total * @values[((size_t)row * {U}u + v) * {A}u + (size_t)a];
            }}
        }}
    return sum;
}}
"""

    def _number_code(self, n: int, U: int, A: int) -> str:
        """C: the action's number."""
        lines = [
            "static inline int @number(const REAL *state, int row, int step)", "{", f"    REAL x[{n}];",
        ]  # fmt: skip
        if self.blend or self.elsewhere is not None:
            lines.append(f"    REAL q[{A}];")
        if self.blend:
            lines += ["    REAL total;", "    int a;", "    @place(state, step, x);"]
            lines += [f"    for (a = 0; a < {A}; a++)", "        q[a] = 0;"]
            lines += ["    total = @blend(x, row, 0, q);", "    if (total > 0)", "        @blend(x, row, total, q);"]
            if self.elsewhere is None:
                row = f"@values[((size_t)row * {U}u + (size_t)v) * {A}u + (size_t)a]"
                lines += ["    else {", "        int32_t v = @nearest(x);", f"        for (a = 0; a < {A}; a++)"]
                lines += [f"            q[a] = {row};", "    }"]
            else:
                lines += ["    else", "        @estimate(x, row, q);"]
            lines.append("    return @first_largest(q);")
        else:
            lines += ["    int32_t v;", "    @place(state, step, x);", "    v = @find(x);", "    if (v < 0)"]
            if self.elsewhere is None:
                lines.append("        v = @nearest(x);")
            else:
                lines[-1] += " {"
                lines += ["        @estimate(x, row, q);", "        return @first_largest(q);", "    }"]
            lines.append(f"    return @best[(size_t)row * {U}u + (size_t)v];")
        return "\n".join([*lines, "}", ""])


def first_largest(A: int) -> str:
    """C: the first index of the largest of A numbers."""
    return f"""\
static inline int @first_largest(const REAL *q)
{{
    int a, best = 0;
    for (a = 1; a < {A}; a++)
        best = q[a] > q[best] ? a : best;
    return best;
}}
"""
