"""What planning asks of an exploration bonus, and the bonuses of this package as compiled code has them.

A bonus is a NamedTuple with the verbs below. B_h is a function of the generalized count C = β + Σw and, for a bonus
that `needs_moments`, of Σwρ and Σw² (0 where they are not kept):

    value        B_h: what is added to r̂ + P̂V to be optimistic
    lower_value  B'_h: what is subtracted for a lower bound; B_h unless said otherwise
    own_value    B_h of the j-th of several bandwidths, and own_lower_value B'_h; the same for all unless said otherwise
    add_values   r̂ + P̂V + B_h at many pairs at once
    is_simplified  whether B_h = by_root/√C + by_count/C, with `factors` (by_root, by_count) of step h
    count        a sample has come

What `count` changes are arrays that are declared (`Annotated[np.ndarray, Field(…)]`) and 0 before any data. They are
saved with an agent; `before_data` and `with_data_of` take them back to 0 and to another bonus.

All bonuses of this package share one class, `CodedBonus`, and are told apart by a code, in this file and nowhere else:
machine code made for one serves them all. A bonus of a user's own is a class of its own (docs/extending.md).

    SIMPLIFIED        B = s·(root/√C + count·R_h/C),   R_h = H-h the largest value left at step h
    FULL              B = s·(c0 + c1/√C + c2/C)
    JOINT             B = s·(c0 + (c1·√C + c2 + L_h·Σwρ)/C)
    SELF_NORMALISED   the same with √(β+Σw²) for √C

The coefficients c of the last three depend on the number of samples through its epoch, ⌊log2(1+n)⌋:
`kernelrl.theory.bonuses` makes a table of them, and `progress` says which row is in force. With several bandwidths
their tables stand side by side. B' lacks the term c2/C, since estimates are shrunk towards 0.

c1 is for values anywhere in [0, R_h]. Certificates know a smaller range, and set the part of R_h that it is
(`set_range`); for learning it is 1.
"""

import math
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.jit.compile import generic, in_both, name_of
from kernelrl.jit.fields import Field, Rows, checks, declared, require
from kernelrl.jit.rows import scale_rows

__all__ = [
    "EPOCH",
    "FULL",
    "JOINT",
    "SELF_NORMALISED",
    "SIMPLIFIED",
    "CodedBonus",
    "add_values",
    "before_data",
    "check_before_data",
    "count",
    "factors",
    "is_simplified",
    "lower_value",
    "new_coded",
    "own_lower_value",
    "own_value",
    "set_range",
    "value",
    "with_data_of",
    "with_ranges",
]

SIMPLIFIED, FULL, JOINT, SELF_NORMALISED = range(4)
SAMPLES, EPOCH = range(2)


@generic(required=True)
def value(bonus: Any, h: int, C: float, D: float, W2: float) -> Any:
    """B_h at generalized count `C`; `D` is Σwρ and `W2` is Σw²."""


@generic
def lower_value(bonus: Any, h: int, C: float, D: float, W2: float) -> Any:
    """B'_h."""
    return value(bonus, h, C, D, W2)


@generic
def own_value(bonus: Any, j: int, h: int, C: float, D: float, W2: float) -> Any:
    """B_h of an estimate with the j-th of several bandwidths."""
    return value(bonus, h, C, D, W2)


@generic
def own_lower_value(bonus: Any, j: int, h: int, C: float, D: float, W2: float) -> Any:
    """B'_h of an estimate with the j-th of several bandwidths."""
    return lower_value(bonus, h, C, D, W2)


@generic
def is_simplified(bonus: Any) -> Any:
    """Whether B_h = by_root/√C + by_count/C with the `factors` of the bonus."""
    return False


@generic
def factors(bonus: Any, h: int) -> Any:
    """The factors of 1/√C and of 1/C in B_h, if it is simplified."""
    return 0.0, 0.0


@generic
def count(bonus: Any, h: int) -> Any:
    """Count a sample of step `h`; return whether that has changed B."""
    return False


@in_both
def add_each_value(bonus: Any, h: int, T: Any, C: Any, moments: Any, Q: Any, rows: Any) -> Any:
    """`add_values` entry by entry, for any bonus."""
    kept = moments.shape[0] > 0
    for u in rows:
        for c in range(Q.shape[1]):
            D, W2 = (moments[0, u, c], moments[1, u, c]) if kept else (0.0, 0.0)
            Q[u, c] = T[u, c] / C[u, c] + value(bonus, h, C[u, c], D, W2)


@generic
def add_values(bonus: Any, h: int, T: Any, C: Any, inverse: Any, moments: Any, Q: Any, rows: Any) -> Any:
    """Q = T/C + B_h in some `rows` (n,) of (U, columns); `inverse` (2, U, columns) is 1/C and 1/√C.

    `moments` (2, U, columns) has Σwρ and Σw², or no rows. With several bandwidths they take turns in the rows.
    """
    add_each_value(bonus, h, T, C, moments, Q, rows)


class CodedBonus(NamedTuple):
    """A bonus of this package; made by `new_coded` only."""

    code: int
    scale: float  # s
    per_root: float  # factors of 1/√C and of R_h/C in the simplified bonus
    per_count: float
    beta: float
    horizon: int  # H
    stationary: bool
    lipschitz: np.ndarray  # (H,) L_h
    bandwidths: int  # M: how many the table is for
    table: np.ndarray  # (epochs, M·H, 3) coefficients, or nothing
    ranges: np.ndarray  # (H,) part of R_h in which r + V_{h+1} lies; the factor of c1 in JOINT and SELF_NORMALISED
    # number of samples of each step's pool, and the epoch that its bonus is in; the one array here that data change
    progress: Annotated[np.ndarray, Rows(Field("H"), Field("H"))]


@checks(CodedBonus)
def check_coded(where, bonus):
    """Each step's bonus is in the epoch that its number of samples says."""
    samples, epoch = bonus.progress
    expected = np.minimum(np.frexp(samples + 1.0)[1] - 1, max(bonus.table.shape[0], 1) - 1)
    require(np.array_equal(epoch, expected), f"{where}progress", "an epoch is not that of its number of samples")


def new_coded(code, scale, problem, root=0.0, count=0.0, table=None):
    """The bonus before any data; `problem` has `beta`, `horizon`, `stationary` and `lipschitz` (H,)."""
    table = np.zeros((0, 0, 3)) if table is None else table
    progress = np.zeros((2, problem.horizon), np.int64)
    return CodedBonus(
        code, float(scale), float(root), float(count), float(problem.beta), problem.horizon, bool(problem.stationary),
        problem.lipschitz, max(1, table.shape[1] // problem.horizon), table,
        np.ones(problem.horizon), progress,
    )  # fmt: skip


@is_simplified.implement(CodedBonus)
def coded_is_simplified(bonus):
    return bonus.code == SIMPLIFIED


@factors.implement(CodedBonus)
def coded_factors(bonus, h):
    return bonus.scale * bonus.per_root, bonus.scale * bonus.per_count * np.float64(bonus.horizon - h)


@value.implement(CodedBonus)
def coded_value(bonus, h, C, D, W2):
    return own_value(bonus, 0, h, C, D, W2)


@lower_value.implement(CodedBonus)
def coded_lower_value(bonus, h, C, D, W2):
    return own_lower_value(bonus, 0, h, C, D, W2)


@own_value.implement(CodedBonus)
def coded_own_value(bonus, j, h, C, D, W2):
    if bonus.code == SIMPLIFIED:
        by_root, by_count = factors(bonus, h)
        return by_root / math.sqrt(C) + by_count / C
    c = bonus.table[bonus.progress[EPOCH, h], j * bonus.horizon + h]
    if bonus.code == FULL:
        return bonus.scale * (c[0] + (c[1] * math.sqrt(C) + c[2]) / C)
    return own_lower_value(bonus, j, h, C, D, W2) + bonus.scale * c[2] / C


@own_lower_value.implement(CodedBonus)
def coded_own_lower_value(bonus, j, h, C, D, W2):
    if bonus.code == SIMPLIFIED:
        by_root, _ = factors(bonus, h)
        return by_root / math.sqrt(C)
    c = bonus.table[bonus.progress[EPOCH, h], j * bonus.horizon + h]
    if bonus.code == FULL:  # it has the bias in the table
        return bonus.scale * (c[0] + c[1] * math.sqrt(C) / C)
    root = math.sqrt(bonus.beta + W2) if bonus.code == SELF_NORMALISED else math.sqrt(C)
    return bonus.scale * (c[0] + (bonus.ranges[h] * c[1] * root + bonus.lipschitz[h] * D) / C)


@add_values.implement(CodedBonus)
def coded_add_values(bonus, h, T, C, inverse, moments, Q, rows):
    if bonus.code == SIMPLIFIED:
        by_root, by_count = factors(bonus, h)
        scale_rows(T, inverse, rows, by_root, by_count, Q)
        return
    if bonus.bandwidths == 1:
        add_each_value(bonus, h, T, C, moments, Q, rows)
        return
    kept = moments.shape[0] > 0
    for u in rows:
        for c in range(Q.shape[1]):
            D, W2 = (moments[0, u, c], moments[1, u, c]) if kept else (0.0, 0.0)
            Q[u, c] = T[u, c] / C[u, c] + own_value(bonus, u % bonus.bandwidths, h, C[u, c], D, W2)


@count.implement(CodedBonus)
def coded_count(bonus, h):
    if bonus.table.shape[0] == 0:  # nothing depends on how many there are
        return False
    progress, changed = bonus.progress, False
    first, last = (0, bonus.horizon - 1) if bonus.stationary else (h, h)
    for level in range(first, last + 1):
        k = progress[SAMPLES, level] + 2  # one more sample, and k is one more than there are
        progress[SAMPLES, level] = k - 1
        if k & (k - 1) == 0 and progress[EPOCH, level] + 1 < bonus.table.shape[0]:
            progress[EPOCH, level] += 1
            changed = True
    return changed


# ------------------------------------------------------------------------------------------ for any bonus, plain Python


def before_data(bonus: Any) -> Any:
    """The bonus as it is before any sample."""
    return with_counts(bonus, bonus, np.zeros_like)


def with_data_of(bonus: Any, before: Any) -> Any:
    """The bonus with what `before` has counted."""
    return with_counts(bonus, before, lambda counts: counts)


def with_ranges(bonus: Any) -> Any:
    """The bonus with ranges of its own, for `set_range`; None if it knows of no ranges."""
    if not isinstance(bonus, CodedBonus) or bonus.code not in (JOINT, SELF_NORMALISED):
        return None
    return bonus._replace(ranges=np.ones(bonus.horizon))


def set_range(bonus: Any, h: int, width: float) -> None:
    """r + V_{h+1} lies in an interval of that width; R_h is one, too."""
    bonus.ranges[h] = min(1.0, width / (bonus.horizon - h))


def check_before_data(bonus: Any) -> None:
    """Raise ValueError unless a bonus before any sample has nothing but 0 in its declared arrays."""
    for name, field in declared(type(bonus)).items():
        part = getattr(bonus, name)
        if hasattr(part, "_fields"):
            check_before_data(part)
        elif field is not None and part.any():
            raise ValueError(
                f"bonus: {name_of(type(bonus))}.{name} is declared, so it is what samples change, and must hold "
                f"nothing but 0 before any data; got {part!r:.200}"
            )


def with_counts(bonus: Any, source: Any, change: Callable[[Any], Any]) -> Any:
    """The bonus with changed copies of the declared arrays of `source`, also in NamedTuples inside it."""
    new = {}
    for name, field in declared(type(bonus)).items():
        part = getattr(source, name)
        if hasattr(part, "_fields"):
            new[name] = with_counts(getattr(bonus, name), part, change)
        elif field is not None:
            new[name] = change(part)
    return bonus._replace(**new)
