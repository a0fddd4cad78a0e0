"""Action masks: of the actions that a mask allows, the learning policy takes the best.

    a = argmax {Q_h(x, b) : mask[b]},   ties broken by the agent's stream, as without a mask

Q_h is that of the verb `read_q`, so any algorithm with this read-out can be masked; compiled code knows nothing of it.
These masks restrict what is chosen, not what is planned: values still count on every action. An agent's own mask, a
function of the state, restricts both (`kernelrl.geometry.masks`); where both are there, both must allow an action.

`Masked` is a model for the episode loop in Python. It asks the environment's adapter for the mask before each choice;
while there is none, it does what the model itself does, by the same calls.
"""
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernelrl.episodes.verbs import (
    begin_episode,
    choose,
    end_episode,
    has_room,
    observe,
    read_q,
    read_values,
)
from kernelrl.jit.handles import model_of
from kernelrl.jit.stream import index_below

__all__ = ["FROM_INFO", "Masked", "as_mask", "choose_allowed"]

FROM_INFO = 'the environment\'s info["action_mask"]'
Mask = NDArray[np.bool_]


def as_mask(mask: Any, actions: int, name: str = "mask", rows: int | None = None) -> Mask:
    """A mask (A,), or one for each of so many `rows` (n, A), as booleans, or an error that names it."""
    shape = (actions,) if rows is None else (rows, actions)
    kinds = "booleans, or whole numbers 0 and 1"
    try:
        given = np.asarray(mask)
    except ValueError:
        raise ValueError(f"{name} must have shape {shape}, one entry for each action, got {mask!r:.60}") from None
    if given.dtype.kind not in "biu":
        raise TypeError(f"{name} must hold {kinds}, True or 1 for an action that is allowed; got {given.dtype}")
    if given.shape != shape:
        raise ValueError(
            f"{name} must have shape {shape}, one entry for each action, got shape {given.shape}; where a wrapper "
            "changes the actions, it must change the mask, too"
        )
    if given.dtype.kind != "b" and not ((given == 0) | (given == 1)).all():
        raise ValueError(f"{name} must hold {kinds}, True or 1 for an action that is allowed; got {mask!r:.60}")
    allowed = given.astype(np.bool_)
    empty = np.flatnonzero(~allowed.reshape(-1, actions).any(axis=1))
    if empty.size:
        where = name if rows is None else f"{name}: row {empty[0]} (the first is 0)"
        raise ValueError(f"{where} allows no action; at least one must be True")
    return allowed


def choose_allowed(model: Any, state: Any, h: int, allowed: Mask) -> int:
    """The action of the learning policy among those that are `allowed` (A,), not all of which are forbidden."""
    q = np.empty(allowed.size)
    read_q(model, state, h, q)
    if np.isnan(q).any():
        raise TypeError(
            f"{type(model_of(model)).__name__} does not implement read_q, by which masked actions are chosen: write a "
            "function for @krl.verbs.read_q.implement(…)"
        )
    best = np.flatnonzero(allowed & (q == q[allowed].max()))
    stream = getattr(model_of(model), "stream", None)
    if best.size == 1 or stream is None:
        return int(best[0])
    return int(best[index_below(stream, best.size)])


class Masked(NamedTuple):
    """A model that chooses among the actions that the environment allows."""

    model: Any
    check: Any
    """(mask, name, state) → booleans (A,), or an error."""
    mask: list[Any]
    """One entry: what the environment gave as mask of its present state, or None."""

    @property
    def unmasked(self) -> Any:
        """The model itself if there is no mask now, else None."""
        return self.model if self.mask[0] is None else None


@has_room.implement_plain(Masked)
def has_room_masked(masked: Masked) -> Any:
    """Ask the algorithm."""
    return has_room(masked.model)


@begin_episode.implement_plain(Masked)
def begin_masked(masked: Masked) -> None:
    """Pass it on."""
    begin_episode(masked.model)


@choose.implement_plain(Masked)
def choose_masked(masked: Masked, state: Any, h: int) -> Any:
    """The algorithm's choice, among the allowed actions if there is a mask."""
    (mask,) = masked.mask
    if mask is None:
        return choose(masked.model, state, h)
    return choose_allowed(masked.model, state, h, masked.check(mask, FROM_INFO, state))


@observe.implement_plain(Masked)
def observe_masked(
    masked: Masked, state: Any, action: int, reward: float, next_state: Any, h: int, terminated: bool
) -> None:
    """Pass it on."""
    observe(masked.model, state, action, reward, next_state, h, terminated)


@read_values.implement_plain(Masked)
def read_masked(masked: Masked, state: Any, h: int) -> Any:
    """Ask the algorithm."""
    return read_values(masked.model, state, h)


@end_episode.implement_plain(Masked)
def end_masked(masked: Masked) -> None:
    """Pass it on."""
    end_episode(masked.model)
