"""The agent's own mask, a function of the state, together with masks that calls and environments give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.episodes import verbs
from kernelrl.geometry.axioms import some_states
from kernelrl.geometry.masks import NOTHING_ALLOWED, allowed_table

if TYPE_CHECKING:
    from kernelrl.agents.hooks import Hooks
    from kernelrl.agents.spaces import Spaces

__all__ = ["allowed_at", "check_given", "choose_at", "name_state", "try_mask"]

Allowed = npt.NDArray[np.bool_]
TRIED = 64  # states at most of a Discrete space for which a mask is tried when an agent starts


def allowed_at(agent: Hooks, states: npt.NDArray[np.float64], given: Allowed | None = None) -> Allowed:
    """(n, A) the actions that the agent's mask and the one `given` (n, A), if any, both allow at `states` (n, d)."""
    allowed: Allowed = np.ones((len(states), agent.spaces.actions), np.bool_)
    if given is not None:
        allowed &= given
    if agent.mask is not None:
        allowed &= allowed_table(agent.compiled_mask(agent.spaces), states, agent.spaces.actions)
    empty = np.flatnonzero(~allowed.any(axis=1))
    if empty.size:
        why = "allows no action" if given is None else "and the mask given together allow no action"
        raise ValueError(f"mask: the agent's mask {why} in state {states[empty[0]]}; at least one must be allowed")
    return allowed


def check_given(agent: Hooks, mask: Any, name: str, state: npt.NDArray[np.float64]) -> Allowed:
    """(A,) the actions that a mask of that name and the agent's own allow at a state (d,)."""
    allowed: Allowed = allowed_at(agent, state[None], agent.spaces.check_mask(mask, name)[None])[0]
    return allowed


def choose_at(agent: Hooks, x: npt.NDArray[np.float64], h: int) -> int:
    """The action of the learning policy at a state (d,) that was checked, or an error that names the state."""
    try:
        return int(verbs.choose(agent.handle(), x, h))
    except ValueError as error:
        name_state(agent, error, x)
        raise


def name_state(agent: Hooks, error: ValueError, *states: npt.NDArray[np.float64]) -> None:
    """Raise an error that names the first of `states` in which nothing is allowed, if `error` says that there is one.

    Compiled code cannot say where it was.
    """
    if str(error) == NOTHING_ALLOWED:
        allowed_at(agent, np.array(states))


def try_mask(function: Any, spaces: Spaces) -> None:
    """Raise an error unless the function takes states of the spaces and actions and returns truth values."""
    if spaces.net is not None:
        raise ValueError("mask: masks are for Discrete actions, and these are a Box; leave mask out")
    if spaces.discrete:
        states = np.linspace(spaces.low[0], spaces.high[0], TRIED).round()[:, None]
    else:
        states = some_states(spaces.low, spaces.high)
    for x in states:
        for a in range(spaces.actions):
            found = function(np.array(x, np.float64), np.int64(a))
            if not (isinstance(found, bool | np.bool_) or (isinstance(found, int | np.integer) and found in (0, 1))):
                raise TypeError(
                    f"mask must return True or False, got {found!r} for the state {x} and the action {a} (actions "
                    "count from 0)"
                )
