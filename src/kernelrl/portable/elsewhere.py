"""Values at a state that no representative stands for, as C: estimates from all representatives.

    C(x, a) = β + Σ_v w(x, v)·N(v, a),   T_h(x, a) = Σ_v w(x, v)·W_h(v, a),   Q_h(x, a) = T_h/C

as in `kernelrl.stores.merged`, `estimates_elsewhere`. With several bandwidths at once Q_h is one of all of theirs
(`kernelrl.planning.sides`); where bandwidths are local, x has one of its own for each action.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.representatives import CUT
from kernelrl.portable.forms import Table
from kernelrl.portable.places import Weights
from kernelrl.portable.translate import literal

__all__ = ["Estimates", "LocalBandwidths"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LocalBandwidths:
    """What the bandwidths of a state are made of, and the rewards of steps where these matter."""

    inverse_sigma2: float
    least_sigma: float
    exponent: float
    by_state: bool
    others: float
    """What other pairs count at most; infinite: no limit."""
    mean_counts: Floats
    """(U, A) counts, their mean over pools."""
    steps: Floats
    """(2, rows, U, A) visits of each step and their mapped rewards, or no rows."""
    usual: Floats
    """(rows,) the mean mapped reward of each step times what it counts."""
    usual_share: float
    """As how many visits the mean reward of a step counts."""

    def at_steps(self, steps: list[int]) -> Self:
        """The same for some steps."""
        return replace(self, steps=self.steps[:, steps], usual=self.usual[steps]) if self.usual.size else self


@dataclass(frozen=True, eq=False)
class Estimates:
    """Estimates from all representatives."""

    weights: Weights
    beta: float
    inverse_sigma2: Floats
    """(M,) of each bandwidth, the widest first."""
    reach: Floats
    """(M,) beyond which weights are 0."""
    W: Floats
    """(rows, U, A)"""
    N: Floats
    """(1 or rows, U, A)"""
    bonus: Floats
    """(rows, M, 3) coefficients of the bonuses that choose between several bandwidths, or no rows."""
    full: bool
    """Whether these are those of the bonus Full: c0 + (c1·√C + c2)/C; else c1/√C + c2/C."""
    local: LocalBandwidths | None = None

    def at_steps(self, steps: list[int]) -> Self:
        """The same for some steps."""
        N = self.N if len(self.N) == 1 else self.N[steps]
        bonus = self.bonus[steps] if len(self.bonus) else self.bonus
        local = None if self.local is None else self.local.at_steps(steps)
        return replace(self, W=self.W[steps], N=N, bonus=bonus, local=local)

    def tables(self) -> dict[str, Table]:
        """Its arrays by name."""
        found = {"sums": self.W, "counts": self.N}
        if self.local is None:
            found |= {"inverse_sigma2": self.inverse_sigma2, "reach_squared": self.reach**2}
        elif len(self.N) > 1:
            found["mean_counts"] = self.local.mean_counts
        if len(self.bonus):
            found["bonus"] = self.bonus
        if self.local is not None and self.local.usual.size:
            found |= {"visits_of_step": self.local.steps[0], "rewards_of_step": self.local.steps[1]}
            found["usual_reward"] = self.local.usual
        return found

    def numbers(self) -> dict[str, Any]:
        """Its other parts by name."""
        found: dict[str, Any] = {"beta": self.beta, **self.weights.numbers()}
        if len(self.bonus):
            found["bonus_form"] = "full" if self.full else "simplified"
        if self.local is not None:
            own = self.local
            found["local"] = {
                "inverse_sigma2": own.inverse_sigma2, "least_sigma": own.least_sigma, "exponent": own.exponent,
                "by_state": own.by_state, "others": None if math.isinf(own.others) else own.others, "cut": CUT,
                "usual_share": own.usual_share,
            }  # fmt: skip
        return found

    def c_code(self, places: int) -> str:
        """`@estimate` writes Q of all actions at a place."""
        code = self._local_code(places) if self.local is not None else self._code(places)
        return self.weights.c_code() + "\n" + code

    def _code(self, places: int) -> str:
        M, (_, U, A) = len(self.inverse_sigma2), self.W.shape
        pool = "0" if len(self.N) == 1 else "row"
        bonus = "@count_bonus(row, j, C)"
        one = f"""\
    for (a = 0; a < {A}; a++)
        q[a] = total[a] / count[a];
"""
        several = f"""\
    for (a = 0; a < {A}; a++) {{
        REAL best = 0, least = 0, C, B, estimate;
        for (j = 0; j < {M}; j++) {{
            C = count[j * {A} + a];
            B = {bonus};
            if (j == 0 || B < least) {{
                best = total[j * {A} + a] / C;
                least = B;
            }}
        }}
        for (j = 0; j < {M}; j++) {{
            C = count[j * {A} + a];
            B = {bonus};
            estimate = total[j * {A} + a] / C;
            best = best > estimate - B ? best : estimate - B;
            best = best < estimate + B ? best : estimate + B;
        }}
        q[a] = best;
    }}
"""
        return f"""\
{self._bonus_code(M) if M > 1 else ""}\
static inline void @estimate(const REAL *x, int row, REAL *q)
{{
    REAL count[{M * A}], total[{M * A}];
    int v, j, a;
    for (a = 0; a < {M * A}; a++) {{
        count[a] = {literal(self.beta)};
        total[a] = 0;
    }}
    for (v = 0; v < {U}; v++) {{
        REAL square = @square(@points + (size_t)v * {places}u, x);
        for (j = 0; j < {M}; j++)
            if (square <= @reach_squared[j]) {{
                REAL w = @weight(square * @inverse_sigma2[j]);
                for (a = 0; a < {A}; a++) {{
                    count[j * {A} + a] += w * @counts[((size_t){pool} * {U}u + (size_t)v) * {A}u + (size_t)a];
                    total[j * {A} + a] += w * @sums[((size_t)row * {U}u + (size_t)v) * {A}u + (size_t)a];
                }}
            }}
    }}
{several if M > 1 else one}\
}}

"""

    def _bonus_code(self, M: int) -> str:
        form = "c[0] + (c[1] * CALL(sqrt)(C) + c[2]) / C" if self.full else "c[1] / CALL(sqrt)(C) + c[2] / C"
        return f"""\
static inline REAL @count_bonus(int row, int j, REAL C)
{{
    const REAL *c = @bonus + ((size_t)row * {M}u + (size_t)j) * 3u;
    return {form};
}}

"""

    def _local_code(self, places: int) -> str:
        own, (_, U, A) = self.local, self.W.shape
        assert own is not None
        pool, mean = ("0", "counts") if len(self.N) == 1 else ("row", "mean_counts")
        entry = f"((size_t)row * {U}u + (size_t)v) * {A}u + (size_t)a"
        least = f"""\
    for (a = 1; a < {A}; a++)
        scale[0] = scale[a] < scale[0] ? scale[a] : scale[0];
    for (a = 1; a < {A}; a++)
        scale[a] = scale[0];
"""
        limited = f"""\
    for (a = 0; a < {A}; a++) {{
        if (count[a] - {literal(self.beta)} > {literal(own.others)}) {{
            total[a] *= {literal(own.others)} / (count[a] - {literal(self.beta)});
            count[a] = {literal(self.beta + own.others)};
        }}
    }}
"""
        rewards = f"""\
    for (a = 0; a < {A}; a++) {{
        REAL got = 0, tried = 0;
        for (v = 0; v < {U}; v++) {{
            REAL w = @local_weight(@square(@points + (size_t)v * {places}u, x) * scale[a]);
            got += w * @rewards_of_step[{entry}];
            tried += w * @visits_of_step[{entry}];
        }}
        total[a] += count[a] * (@usual_reward[row] * (count[a] - {literal(self.beta)}) / count[a] + got)
            / ({literal(own.usual_share)} + tried);
    }}
"""
        return f"""\
static inline REAL @local_weight(REAL z2)
{{
    return z2 <= {literal(CUT * CUT)} ? @weight(z2) : 0;
}}

static inline void @estimate(const REAL *x, int row, REAL *q)
{{
    REAL count[{A}], total[{A}], scale[{A}];
    int v, a;
    for (a = 0; a < {A}; a++) {{
        count[a] = {literal(self.beta)};
        total[a] = scale[a] = 0;
    }}
    for (v = 0; v < {U}; v++) {{
        REAL z2 = @square(@points + (size_t)v * {places}u, x) * {literal(own.inverse_sigma2)};
        if (z2 <= {literal(CUT * CUT)}) {{
            REAL w = @weight(z2);
            for (a = 0; a < {A}; a++)
                scale[a] += w * @{mean}[(size_t)v * {A}u + (size_t)a];
        }}
    }}
{least if own.by_state else ""}\
    for (a = 0; a < {A}; a++) {{
        REAL narrowed = {literal(own.inverse_sigma2)} * CALL(pow)(1 + scale[a], {literal(2.0 * own.exponent)});
        REAL most = {literal(1.0 / (own.least_sigma * own.least_sigma))};
        scale[a] = narrowed < most ? narrowed : most;
    }}
    for (v = 0; v < {U}; v++) {{
        REAL square = @square(@points + (size_t)v * {places}u, x);
        if (square * {literal(own.inverse_sigma2)} <= {literal(CUT * CUT)})
            for (a = 0; a < {A}; a++) {{
                REAL w = @local_weight(square * scale[a]);
                count[a] += w * @counts[((size_t){pool} * {U}u + (size_t)v) * {A}u + (size_t)a];
                total[a] += w * @sums[{entry}];
            }}
    }}
{limited if math.isfinite(own.others) else ""}{rewards if own.usual.size else ""}\
    for (a = 0; a < {A}; a++)
        q[a] = total[a] / count[a];
}}

"""
