"""Where episodes end early: declared boxes of states, after arriving in which nothing is collected any more.

At an absorbing state with m steps left V* is 0 in the environment's units, m·z in mapped ones, z = (0 - low)/(high -
low) for rewards from low to high. A cell of which every point is absorbing has these bounds; one of which some points
may be has bounds that hold for both kinds. Points within the rounding ε of the border of a box may be of either kind,
except where that is the border of the state space.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.cells import Room
from kernelrl.models.boxes import Bounds

__all__ = ["Absorbing", "absorbing_cells", "check_endings"]

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Boxes = tuple[Bounds, ...]


@dataclass(frozen=True, eq=False)
class Absorbing:
    """The cells of one room."""

    inside: Flags  # (…) all points are absorbing
    partly: Flags  # (…) some may be
    zero: float  # z

    def apply(self, lower: Floats, upper: Floats, left: int) -> None:
        """Put the bounds (…) of states with `left` steps left right, in place."""
        value = self.zero * left
        lower[self.partly] = np.minimum(lower[self.partly], value)
        upper[self.partly] = np.maximum(upper[self.partly], value)
        lower[self.inside], upper[self.inside] = value, value


def absorbing_cells(room: Room, boxes: Boxes, slack: Floats, zero: float) -> Absorbing:
    """Which cells of a room are absorbing; `slack` (d,) is how far points of cells may be outside them."""
    centres = room.centres()
    low, high = centres - 0.5 * room.side - slack, centres + 0.5 * room.side + slack
    inside, partly = np.zeros(room.counts, np.bool_), np.zeros(room.counts, np.bool_)
    for a, b in boxes:
        first = np.where(np.array(a) <= room.low, -np.inf, a)  # beyond the border there are no states
        last = np.where(np.array(b) >= room.high, np.inf, b)
        inside |= ((low > first) & (high < last)).all(axis=-1)
        partly |= ((high >= first) & (low <= last)).all(axis=-1)
    return Absorbing(inside, partly & ~inside, zero)


def check_endings(boxes: Boxes | None, next_states: Floats, terminated: Flags, slack: Floats) -> None:
    """Raise ValueError for the first row that ends where nothing is declared, or does not where something is."""
    if boxes is None:
        if terminated.any():
            raise ValueError(
                f"terminated: row {int(np.argmax(terminated))} (the first is 0) ends its episode, and the declaration "
                "does not say where episodes end: give the model absorbing=[(low, high), …]"
            )
        return
    if {len(a) for a, _ in boxes} != {next_states.shape[1]}:
        raise ValueError(f"absorbing: states have {next_states.shape[1]} coordinates, and a box has another number")
    surely, perhaps = np.zeros(len(next_states), np.bool_), np.zeros(len(next_states), np.bool_)
    for a, b in boxes:
        surely |= ((next_states > a + slack) & (next_states < b - slack)).all(axis=1)
        perhaps |= ((next_states >= a - slack) & (next_states <= b + slack)).all(axis=1)
    for wrong, what in (
        (terminated & ~perhaps, "ends its episode at {}, outside the boxes declared as absorbing"),
        (surely & ~terminated, "arrives at {}, inside a box declared as absorbing, and does not end its episode"),
    ):
        if wrong.any():
            row = int(np.argmax(wrong))
            raise ValueError(f"absorbing: row {row} (the first is 0) {what.format(next_states[row])}")
