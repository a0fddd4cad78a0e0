"""Checks of user-defined bonuses, kernels and metrics when an agent starts; an error names what is missing.

A part of a user's own is tried by itself before an agent is compiled with it: numba's error about a whole agent says
hardly anything about the line that it is due to.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kernelrl.bonuses.interface import before_data, check_before_data, count, value
from kernelrl.envs.compiled import reason
from kernelrl.geometry.kernels import weight
from kernelrl.geometry.metrics import embed, gap_squared, squared_distances
from kernelrl.jit.compile import Verb, name_of
from kernelrl.jit.fields import declared
from kernelrl.jit.numba_private import NumbaError

__all__ = ["check_bonus_form", "check_kernel_form", "check_space"]


def check_bonus_form(bonus: Any, made: Any, beta: float, horizon: int) -> None:
    """Raise an error unless `made`, what `bonus.compiled` has returned, is a bonus before any data."""
    where = f"bonus: {type(bonus).__name__}.compiled"
    check_form(where, made, value, "bonuses")
    check_before_data(made)
    for h, C in ((0, beta), (0, 1.0), (horizon - 1, beta), (horizon - 1, 1.0)):
        B = attempt("bonus", value, made, h, C, 0.0, 0.0)
        if B is not None and math.isnan(B):
            raise ValueError(f"bonus: value of {name_of(type(made))} is not a number at step {h} and count {C:g}")
    attempt("bonus", count, before_data(made), 0)
    if count.is_compiled_for(type(made)) and not has_declared(made):
        raise ValueError(
            f"bonus: count of {name_of(type(made))} is implemented, but no array of it is declared, so what it counts "
            "would not be saved; declare the array: Annotated[NDArray[np.int64], krl.Field(…)]"
        )


def has_declared(part: Any) -> bool:
    """Whether a NamedTuple, or one inside it, has a declared array."""
    for name, field in declared(type(part)).items():
        inside = getattr(part, name)
        if field is not None or (hasattr(inside, "_fields") and has_declared(inside)):
            return True
    return False


def check_kernel_form(kernel: Any, made: Any) -> None:
    """Raise an error unless `made`, what `kernel.compiled` has returned, is a kernel."""
    check_form(f"kernel: {type(kernel).__name__}.compiled", made, weight, "kernels")
    w = attempt("kernel", weight, made, 0.0)
    if w is not None and not 0.0 <= w <= 1.0:
        raise ValueError(f"kernel: weight of {name_of(type(made))} must be in [0, 1], and at distance 0 it is {w}")


def check_space(metric: Any, space: Any, d: int) -> None:
    """Raise an error unless `space`, what `metric.space` has returned, has distances of states of `d` coordinates."""
    check_form(f"metric: {type(metric).__name__}.space", space, squared_distances, "metrics")
    attempt("metric", embed, space, np.zeros(d), np.zeros(d))
    attempt("metric", squared_distances, space, np.zeros((1, d, 1)), 0, 1, 1, np.zeros(d), np.zeros(1))
    attempt("metric", gap_squared, space, np.zeros((2, 1, d)), 0, np.zeros(d))


def check_form(where: str, part: Any, verb: Verb, module: str) -> None:
    """Raise TypeError unless `part` is a NamedTuple for which the verb is implemented."""
    is_tuple, cls = isinstance(part, tuple) and hasattr(part, "_fields"), type(part)
    if is_tuple and verb.is_compiled_for(cls):
        return
    name = name_of(cls) if is_tuple else "…"
    raise TypeError(
        f"{where} must return a NamedTuple for which {verb.__name__} is implemented, by a function with "
        f"@krl.{module}.{verb.__name__}.implement({name}) above it; got {part!r:.200}"
    )


def attempt(argument: str, verb: Verb, part: Any, *arguments: Any) -> Any:
    """What the verb returns for a part of a user's own; None for one of the package, which is not tried."""
    cls = type(part)
    if cls.__module__.partition(".")[0] == "kernelrl" or not verb.is_compiled_for(cls):
        return None
    try:
        return verb(part, *arguments)
    except NumbaError as error:
        raise TypeError(f"{argument}: {verb.__name__} of {name_of(cls)} cannot be compiled: {reason(error)}") from error
