"""Plans on all samples as portable policies (`kernelrl.planning.full`).

    Q_h(x, a) = Σ_s w(x, x_s)·G_h(s) / (β + Σ_s w(x, x_s))      over the samples of action a (and of step h, per step)

Samples of one list (pool and action) are in chunks of at most 64 that lie close together, each with a box around it.
Chunks whose box is beyond the reach of a weight are left out, as in the library: they could not change a count.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from kernelrl.portable.forms import Form, Table, smallest_type
from kernelrl.portable.places import Places, Weights
from kernelrl.portable.representatives import first_largest
from kernelrl.portable.translate import literal

__all__ = ["AllSamples"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class AllSamples(Form):
    """A plan on all samples."""

    places: Places
    weights: Weights
    beta: float
    inverse_sigma2: float
    reach: float
    boxes: Floats
    """(chunks, 2, places) the lowest and the highest coordinates in each chunk."""
    ends: Integers
    """(chunks + 1,) where the samples of each chunk begin."""
    lists: Integers
    """(pools·A + 1,) where the chunks of each list begin."""
    points: Floats
    """(N, places)"""
    G: Floats
    """(rows, N) r + V(y) of each sample: one row for each step if data are pooled, else one row."""
    actions: int
    pooled: bool
    """Whether all steps share the samples."""
    kind: ClassVar[str] = "samples"

    def at_steps(self, steps: list[int]) -> Self:
        """The form with the tables of these steps only."""
        if self.pooled:
            return replace(self, G=self.G[steps])
        of_list = [h * self.actions + a for h in steps for a in range(self.actions)]
        chunks = np.concatenate([np.arange(self.lists[i], self.lists[i + 1]) for i in of_list])
        kept = [np.arange(self.ends[c], self.ends[c + 1]) for c in chunks]
        which = np.concatenate([*kept, np.zeros(0, np.int64)]).astype(np.int64)
        return replace(
            self, boxes=self.boxes[chunks], ends=np.cumsum([0, *map(len, kept)]),
            lists=np.cumsum([0, *(self.lists[i + 1] - self.lists[i] for i in of_list)]), points=self.points[which],
            G=self.G[:, which],
        )  # fmt: skip

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        return {
            "scale": self.places.scale, "points": self.points, "boxes": self.boxes, "ends": smallest_type(self.ends),
            "lists": smallest_type(self.lists), "targets": self.G,
        }  # fmt: skip

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        return {
            "places": self.places.numbers(), **self.weights.numbers(), "beta": self.beta, "pooled": self.pooled,
            "inverse_sigma2": self.inverse_sigma2, "reach": self.reach,
        }  # fmt: skip

    def described(self) -> str:
        """What it is."""
        return f"weighted sums over {len(self.points):,} samples"

    def smaller(self) -> str:
        """What would make its tables smaller."""
        return "an agent on representative states (representatives=…), which are fewer than samples"

    def c_code(self) -> str:
        """The C functions."""
        n, A, reach = self.places.size, self.actions, literal(self.reach * self.reach)
        pool = "0" if self.pooled else "row"
        target = f"@targets[(size_t)row * {len(self.points)}u + k]" if self.pooled else "@targets[k]"
        near = f"            if (!(@gap(@boxes + (size_t)c * {2 * n}u, x) <= {reach}))\n                continue;\n"
        return f"""\
{self.places.c_code()}
{self.places.gap_code()}{self.weights.c_code()}
{first_largest(A)}
static inline int @number(const REAL *state, int row, int step)
{{
    REAL x[{n}], q[{A}];
    int a;
    (void)row;
    @place(state, step, x);
    for (a = 0; a < {A}; a++) {{
        REAL count = 0, total = 0;
        uint32_t c;
        for (c = @lists[{pool} * {A} + a]; c < @lists[{pool} * {A} + a + 1]; c++) {{
            size_t k;
{near if self.places.gap_code() else ""}\
            for (k = @ends[c]; k < @ends[c + 1]; k++) {{
                REAL w = @weight(@square(@points + k * {n}u, x) * {literal(self.inverse_sigma2)});
                count += w;
                total += w * {target};
            }}
        }}
        q[a] = total / ({literal(self.beta)} + count);
    }}
    return @first_largest(q);
}}
"""
