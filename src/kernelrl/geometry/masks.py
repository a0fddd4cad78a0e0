"""Action masks that are functions of the state: which actions are allowed, for choosing and for planning.

    mask(state, action) → bool,   V_h(x) = max {Q_h(x, a) : mask(x, a)}

The function is the user's own, compiled by numba. In compiled code a mask is a NamedTuple with the verbs below:
`Everything` where there is none, so that nothing is compiled for it, else a class made for the function. Everything
that uses such a class is compiled once more, and again when the function has changed, as for a metric of a user's own.

Where V_h is kept for a whole cell, its centre decides (`allowed`, a table). A centre need not be a state that occurs:
if nothing is allowed there, all actions count. Where an action is to be taken and none is allowed, that is an error.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from kernelrl.geometry.metrics import LpSpace, require_compiled
from kernelrl.jit.compile import compiled, generic, inner
from kernelrl.jit.handles import hand_over

__all__ = [
    "EVERYTHING",
    "NOTHING_ALLOWED",
    "Everything",
    "allowed_at_place",
    "allowed_table",
    "allows",
    "check_function",
    "drop_at_place",
    "drop_forbidden",
    "first_allowed",
    "largest_allowed",
    "largest_in_row",
    "mask_of",
    "restricts",
    "state_of",
]


NOTHING_ALLOWED = "mask allows no action in a state; at least one must be allowed in every state"
SLACK = 1e-12  # relative, of a whole number that was scaled


class Everything(NamedTuple):
    """No mask."""

    nothing: float


EVERYTHING = Everything(0.0)


@generic
def restricts(mask: Any) -> Any:
    """Whether there is a mask."""
    return True


@generic(required=True)
def allows(mask: Any, state: Any, action: Any) -> Any:
    """Whether `action`, from 0, is allowed in the raw `state` (d,)."""


@restricts.implement(Everything, inline=True)
def never_restricts(mask):
    return False


@allows.implement(Everything, inline=True)
def always_allows(mask, state, action):
    return True


@functools.cache
def class_of_function(function: Callable[..., Any]) -> type[Any]:
    """A class of masks for the compiled `function(state, action)`."""

    class FunctionMask(NamedTuple):
        nothing: float

        def __reduce__(self):
            return mask_of_function, (function,)

    @allows.implement(FunctionMask)
    def allows_function(mask, state, action):
        return bool(function(state, np.int64(action)))

    return FunctionMask


def mask_of_function(function: Callable[..., Any]) -> Any:
    """The mask of a function, for pickled agents."""
    return class_of_function(function)(0.0)


def check_function(mask: Any) -> Any:
    """The argument `mask` of an agent, or an error that names it."""
    if mask is not None:
        require_compiled("mask", mask, "mask(state, action) that returns True or False")
    return mask


def mask_of(function: Any, dimensions: int) -> Any:
    """The compiled form of a mask for states (d,)."""
    if function is None:
        return EVERYTHING
    function(np.zeros(dimensions), np.int64(0))  # compiled by itself first, it may allocate
    return mask_of_function(function)


@compiled
def fill_table(mask, states, table):
    """Write whether each action is allowed at each of `states` (n, d) into `table` (n, A)."""
    for i in range(table.shape[0]):
        for a in range(table.shape[1]):
            table[i, a] = allows(mask, states[i], a)


def allowed_table(mask: Any, states: Any, actions: int) -> Any:
    """(n, A) whether each action is allowed at each of `states` (n, d)."""
    table = np.zeros((len(states), actions), np.bool_)
    fill_table(hand_over(mask), np.ascontiguousarray(states, np.float64), table)
    return table


@inner
def largest_allowed(mask, state, q):
    """The largest of `q` (A,) among the actions that are allowed; of all if none is."""
    best, any_best = -math.inf, q[0]
    for a in range(q.size):
        any_best = max(any_best, q[a])
        if allows(mask, state, a):
            best = max(best, q[a])
    return any_best if best == -math.inf else best


@inner
def largest_in_row(allowed, q):
    """The same for a row of a table of booleans (A,); `q` may be longer."""
    best, any_best = -math.inf, q[0]
    for a in range(allowed.size):
        any_best = max(any_best, q[a])
        if allowed[a]:
            best = max(best, q[a])
    return any_best if best == -math.inf else best


# ------------------------------------------------------------------------------------- states that have been embedded


@generic
def state_of(space: Any, u: Any, out: Any) -> Any:
    """Write the raw state of an embedding `u`, of which further coordinates are left out, into `out` (d,)."""
    for j in range(out.size):
        out[j] = u[j]


@state_of.implement(LpSpace)
def state_of_lp(space, u, out):
    for j in range(out.size):
        x = u[j] / space.inverse_scale[j]
        whole = np.rint(x)
        # States are often whole numbers, and a mask may cut off what scaling there and back has left.
        out[j] = whole if abs(x - whole) <= SLACK * max(1.0, abs(x)) else x


@inner
def allowed_at_place(settings, u, a):
    """Whether the action is allowed at an embedded state; `settings` has `space`, `mask` and `raw` (d,), scratch."""
    state_of(settings.space, u, settings.raw)
    return allows(settings.mask, settings.raw, a)


@inner
def drop_forbidden(mask, state, q):
    """Write -∞ into `q` (A,) where an action is not allowed in a raw state, unless none is."""
    number = 0
    for a in range(q.size):
        number += allows(mask, state, a)
    if number > 0:
        for a in range(q.size):
            if not allows(mask, state, a):
                q[a] = -math.inf


@inner
def drop_at_place(settings, u, q):
    """The same for an embedded state."""
    state_of(settings.space, u, settings.raw)
    drop_forbidden(settings.mask, settings.raw, q)


@inner
def first_allowed(mask, state, q):
    """The first index of the largest entry of `q` (A,) among the actions that are allowed."""
    best = -1
    for a in range(q.size):
        if allows(mask, state, a) and (best < 0 or q[a] > q[best]):
            best = a
    if best < 0:
        raise ValueError(NOTHING_ALLOWED)
    return best
