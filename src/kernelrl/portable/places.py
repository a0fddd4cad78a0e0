"""The parts that portable policies of kernel agents share, as C: embeddings, distances, weights, cells.

The functions are those of `kernelrl.geometry.metrics`, `kernels` and `buckets`, in the same order of operations, so
that equal states have equal distances on both sides. The exponential is that of `kernels.exp_negative`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.geometry import kernels
from kernelrl.geometry.buckets import AXIS, CELLS, ORIGIN, PER_WIDTH
from kernelrl.portable.translate import literal

__all__ = ["Places", "Weights", "cell_code", "grid_numbers"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Places:
    """How states are embedded and compared."""

    scale: Floats
    """(d,) what coordinates are multiplied by."""
    step_scale: float
    """The step times this is one more coordinate, unless it is 0."""
    p: float
    """The norm; not used where there is a function."""
    fold: str = ""
    """C function `@fold(state, out)`, or none."""
    distance: str = ""
    """C function `@distance(x, y)`, or none."""

    @property
    def size(self) -> int:
        """The number of coordinates of an embedded state."""
        return len(self.scale) + (self.step_scale > 0.0)

    def numbers(self) -> dict[str, Any]:
        """For JSON."""
        norm = "inf" if math.isinf(self.p) else self.p
        return {
            "step_scale": self.step_scale, "p": norm, "fold": self.fold.replace("@", "") or None,
            "distance": self.distance.replace("@", "") or None,
        }  # fmt: skip

    def c_code(self) -> str:
        """`@place` embeds a state; `@square` is ρ² between a stored place and another one."""
        d, source = len(self.scale), "x" if self.fold else "state"
        lines = ["    @fold(state, x);"] if self.fold else []
        lines += [f"    for (j = 0; j < {d}; j++)", f"        x[j] = {source}[j] * @scale[j];"]
        last = f"    x[{d}] = (REAL)step * {literal(self.step_scale)};" if self.step_scale > 0 else "    (void)step;"
        return (
            self.fold
            + self.distance
            + "static inline void @place(const REAL *state, int step, REAL *x)\n{\n    int j;\n"
            + "\n".join([*lines, last])
            + f"\n}}\n\nstatic inline REAL @square(const REAL *v, const REAL *x)\n{{\n{self._square()}}}\n"
        )

    def gap_code(self) -> str:
        """`@gap` is a lower bound of ρ² between a box and a place; nothing where distances are a user's function."""
        if self.distance:
            return ""
        n, largest = self.size, "total = e > total ? e : total;"
        step, result = ("total += e * e;", "total") if self.p <= 2.0 else (largest, "total * total")
        return f"""\
static inline REAL @gap(const REAL *box, const REAL *x)
{{
    REAL total = 0;
    int j;
    for (j = 0; j < {n}; j++) {{
        REAL below = box[j] - x[j], above = x[j] - box[{n} + j], e = below > above ? below : above;
        e = e > 0 ? e : 0;
        {step}
    }}
    return {result};
}}

"""

    def _square(self) -> str:
        n = self.size
        if self.distance:
            return "    REAL rho = @distance(x, v);\n    return rho * rho;\n"
        if self.p == 2.0 and n == 2:
            return "    REAL e = v[0] - x[0], f = v[1] - x[1];\n    return e * e + f * f;\n"
        begin = f"    REAL total = 0;\n    int j;\n    for (j = 0; j < {n}; j++) {{\n        REAL e = v[j] - x[j];\n"
        absolute = "e < 0 ? -e : e"
        if self.p == 2.0:
            return f"{begin}        total += e * e;\n    }}\n    return total;\n"
        if self.p == 1.0:
            return f"{begin}        total += {absolute};\n    }}\n    return total * total;\n"
        if math.isinf(self.p):
            inside = f"        e = {absolute};\n        total = e > total ? e : total;\n"
            return f"{begin}{inside}    }}\n    return total * total;\n"
        inside = f"        total += CALL(pow)({absolute}, {literal(self.p)});\n"
        return f"{begin}{inside}    }}\n    return CALL(pow)(total, {literal(2.0 / self.p)});\n"


@dataclass(frozen=True, eq=False)
class Weights:
    """A kernel of this package, by the code of `kernelrl.geometry.kernels`."""

    name: str
    power: float

    def numbers(self) -> dict[str, Any]:
        """For JSON."""
        return {"kernel": self.name, "power": self.power}

    def c_code(self) -> str:
        """`@weight`, a function of z²."""
        body = {
            "gaussian": "    return @exp(-0.5LIT * z2);\n",
            "exponential-power": f"    return @exp(-0.5LIT * CALL(pow)(z2, {literal(0.5 * self.power)}));\n",
            "compact": "    REAL u = 1.0LIT - z2 / 25.0LIT;\n    return u > 0 ? u * u * u : 0;\n",
            "uniform": "    return z2 <= 1 ? 1 : 0;\n",
            "triangular": "    return z2 < 1 ? 1 - CALL(sqrt)(z2) : 0;\n",
            "epanechnikov": "    return z2 < 1 ? 1 - z2 : 0;\n",
            "quartic": "    REAL u = 1 - z2;\n    return z2 < 1 ? u * u : 0;\n",
            "triweight": "    REAL u = 1 - z2;\n    return z2 < 1 ? u * u * u : 0;\n",
            "tricube": "    REAL v = 1 - z2 * CALL(sqrt)(z2);\n    return z2 < 1 ? v * v * v : 0;\n",
            "cosine": f"    return z2 < 1 ? CALL(cos)({literal(0.5 * math.pi)} * CALL(sqrt)(z2)) : 0;\n",
        }[self.name]
        exponential = EXPONENTIAL if "@exp" in body else ""
        return f"{exponential}static inline REAL @weight(REAL z2)\n{{\n{body}}}\n"


COEFFICIENTS = (  # those in `kernels.exp_negative`
    2.5114870232064345e-08, 2.763264069051338e-07, 2.7557224956072986e-06, 2.4801485479175668e-05,
    0.00019841269909219884, 0.0013888888952318084, 0.008333333333309526, 0.04166666666648808, 0.16666666666666702,
    0.5000000000000019, 1.0, 1.0,
)  # fmt: skip


def polynomial() -> str:
    """C: the polynomial of `exp_negative`."""
    first, *others = COEFFICIENTS
    return f"    p = {first!r};\n" + "".join(f"    p = p * f + {c!r};\n" for c in others)


EXPONENTIAL = f"""\
/* The exponential of x <= 0 with a relative error below 1e-15, so that no library is needed. */
static inline REAL @exp(REAL x)
{{
    double z = x < {kernels.SMALLEST!r} ? {kernels.SMALLEST!r} : (double)x, n, f, p;
    int64_t whole = (int64_t)(z * {kernels.LOG2E!r} - 0.5);
    uint64_t bits = (uint64_t)(whole + 1023) << 52;
    double power;
    n = (double)whole;
    f = (z - n * {kernels.LN2_HIGH!r}) - n * {kernels.LN2_LOW!r};
{polynomial()}\
    memcpy(&power, &bits, sizeof power);
    return (REAL)(p * power);
}}

"""


def grid_numbers(grid: Floats) -> dict[str, Any]:
    """The cells of `kernelrl.geometry.buckets`, for JSON."""
    return {
        "axis": grid[AXIS].astype(int).tolist(), "origin": grid[ORIGIN].tolist(),
        "per_width": grid[PER_WIDTH].tolist(), "cells": grid[CELLS].astype(int).tolist(),
    }  # fmt: skip


def cell_code(grid: Floats) -> str:
    """C: `@cell_0` and `@cell_1`, the cell of a coordinate on each of two axes; NaN is in the first."""
    parts = []
    for i in range(2):
        origin, per_width, cells = literal(grid[ORIGIN, i]), literal(grid[PER_WIDTH, i]), int(grid[CELLS, i])
        parts.append(f"""\
static inline int @cell_{i}(REAL coordinate)
{{
    REAL place = (coordinate - {origin}) * {per_width};
    if (!(place > 0))
        return 0;
    return place >= {cells - 1} ? {cells - 1} : (int)place;
}}

""")
    return "".join(parts)
