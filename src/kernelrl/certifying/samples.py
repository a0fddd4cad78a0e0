"""Which samples count, and what is known of their displacements.

A sample (x_s, a_s, y_s) is *censored* if y_s is on the border of its room: then D_s is not known. Otherwise D_s = y_s -
x_s. Censored samples that count make bounds wider, so samples near walls should not count. This must not depend on D_s
itself: κ_s ∈ {0, 1} is a function of the past and of (x_s, a_s). Here sample s counts if

    low_j + ε < x_sj + l_j - (u_j - l_j)/2     and     x_sj + u_j + (u_j - l_j)/2 < high_j - ε

on every axis j, where [l_j, u_j] is the hull of the earlier displacements of that action that are known: made twice as
wide, so that the next displacement is hardly ever outside; and if there are at least `WARM` of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Cells

__all__ = ["WARM", "Samples", "counted", "observed"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
WARM = 20


@dataclass(frozen=True, eq=False)
class Samples:
    """Transitions in order of time."""

    states: Floats  # (n, d)
    actions: Whole  # (n,) from 0
    rewards: Floats  # (n,) mapped to [0, 1]
    moves: Floats  # (n, d) D, where it is known
    rooms: Whole  # (n,) the room of each state
    kept: Flags  # (n,) κ
    censored: Flags  # (n,)

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.actions)


def observed(cells: Cells, states: Floats, actions: Whole, rewards: Floats, next_states: Floats, A: int) -> Samples:
    """What the transitions say; an error names the row that contradicts the declaration."""
    rooms, arrived = cells.room_of(states), cells.room_of(next_states)
    for name, x, found in (("state", states, rooms), ("next_state", next_states, arrived)):
        if (found < 0).any():
            row = int(np.argmax(found < 0))
            raise ValueError(f"rooms: {name} {x[row]} of row {row} (the first is 0) lies in none of the rooms")
    if (rooms != arrived).any():
        row = int(np.argmax(rooms != arrived))
        raise ValueError(
            f"rooms: row {row} (the first is 0) moves from {states[row]} to {next_states[row]}, from room "
            f"{rooms[row]} to room {arrived[row]}, and a state is clipped onto the room that it is in"
        )
    low, high = (np.array([getattr(room, end) for room in cells.rooms]) for end in ("low", "high"))
    low, high = low + cells.slack, high - cells.slack
    low, high = low[rooms], high[rooms]
    censored = np.asarray(((next_states <= low) | (next_states >= high)).any(axis=1))
    moves = next_states - states
    kept = counted(states, actions, moves, censored, low, high, A)
    return Samples(states, actions, rewards, moves, rooms, kept, censored)


def counted(states: Floats, actions: Whole, moves: Floats, censored: Flags, low: Floats, high: Floats, A: int) -> Flags:
    """κ (n,), from the hull of earlier displacements; `low` and `high` (n, d) are the inside of each sample's room."""
    kept = np.zeros(len(actions), np.bool_)
    for a in range(A):
        own = np.flatnonzero(actions == a)
        if len(own) == 0:
            continue
        unknown = censored[own, None]
        least = earlier(np.minimum.accumulate(np.where(unknown, np.inf, moves[own]), axis=0), np.inf)
        most = earlier(np.maximum.accumulate(np.where(unknown, -np.inf, moves[own]), axis=0), -np.inf)
        seen = earlier(np.cumsum(~unknown, axis=0), 0)[:, 0]
        with np.errstate(invalid="ignore"):
            half = 0.5 * (most - least)
            inside = (states[own] + least - half > low[own]) & (states[own] + most + half < high[own])
        kept[own] = inside.all(axis=1) & (seen >= WARM)
    return kept


def earlier(running: npt.NDArray[np.generic], first: float) -> Floats:
    """What a running value (n, …) was before each sample; `first` before the first."""
    out = np.empty(running.shape)
    out[0], out[1:] = first, running[:-1]
    return out
