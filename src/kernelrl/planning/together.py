"""Lower and upper bounds planned together, step by step, since each step knows the range that the last one left.

The martingale term of the joint bonus is proportional to half the width of an interval with all r + V*_{h+1}, and

    0 ≤ r ≤ 1,    inf V↓_{h+1} ≤ V*_{h+1} ≤ sup V↑_{h+1}    on the event on which the bounds hold at all,

so c_h = ½(1 + sup V↑_{h+1} - inf V↓_{h+1}), at most R_h/2, is enough and costs no share of δ (docs/theory.md). Also
sup V* - inf V* ≤ L_{h+1}·(the diameter of the box of states).

The supremum and the infimum are over the whole box. They are found by halving boxes: V↑_h changes by at most L_h·r
between the centre of a box and any point of it, where r is half its diagonal. Each is at most FINE·R_h off, unless more
than MOST boxes are left; it is valid in any case.

An episode that ends leaves a value of its own, which belongs to the interval, too.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.bonuses.interface import set_range
from kernelrl.planning.backward import find_targets, find_values
from kernelrl.planning.bernstein import tighten
from kernelrl.planning.reading import read_values
from kernelrl.planning.sides import LOWER, UPPER

__all__ = ["Box", "highest_over", "plan_together"]

FINE, MOST = 1e-3, 1024


class Box(NamedTuple):
    """The states over which bounds are taken: a box of embedded ones."""

    low: np.ndarray  # (d,)
    high: np.ndarray
    p: float  # the distance is that of the p-norm
    defect: float  # by how much V* may differ between states with the same embedding, in mapped units
    ends: bool  # whether episodes may terminate

    def width_of(self, lower, upper, h):
        """The width of an interval with all V*_h, in mapped units; step `h` is the one that was planned last."""
        settings = lower.settings
        R, slope = float(settings.horizon - h), float(settings.lipschitz[h])
        shape = self.low, self.high, self.p, slope, FINE * R
        highest = highest_over(lambda points: read_values(upper, UPPER, points, h), *shape, R)
        lowest = -highest_over(lambda points: -read_values(lower, LOWER, points, h), *shape, 0.0)
        if self.ends:
            after = settings.units.nothing * R
            return max(highest, after) - min(lowest, after)
        diameter = float(np.linalg.norm(self.high - self.low, self.p))
        return max(0.0, min(highest - lowest, slope * diameter + self.defect))


def highest_over(values, low, high, p, slope, fine, most):
    """An upper bound, at most `most`, of a function on the box [low, high] (d,) that is nowhere above `most`.

    `values` gives it at points (n, d). It changes by at most `slope` times the distance in the p-norm.
    """
    centres, half, best = 0.5 * (low + high)[None], 0.5 * (high - low), -np.inf
    while True:
        found = values(centres)
        best, bounds = max(best, float(found.max())), found + slope * np.linalg.norm(half, p)
        centres = centres[bounds > best + fine]
        if best >= most or len(centres) == 0 or 2 * len(centres) > MOST:
            return min(most, max(best + fine, float(bounds.max()) if len(centres) else best))
        longest = np.argmax(half)
        half[longest] *= 0.5
        shift = np.where(np.arange(len(half)) == longest, half, 0.0)
        centres = np.concatenate([centres - shift, centres + shift])


def plan_together(lower, upper, box, rules=None, merge=0.0):
    """Plan both sides; the two plans, `InSteps` or `InPieces`, share settings. `box` is None where ranges stay R_h.

    `rules` (H, M, 24, 4): those of the empirical-Bernstein form, or None. `merge`: how far samples were moved.
    """
    settings, width, following = lower.planned.settings, 0.0, 0.0
    for h in range(settings.horizon - 1, -1, -1):
        if box is not None:
            set_range(settings.bonus, h, 1.0 + width)
        for plan, side in ((lower, LOWER), (upper, UPPER)):
            find_targets(plan, settings, plan.planned.store, side, h)
        if rules is not None:
            tighten(lower, upper, h, rules[h], following * merge)
        for plan, side in ((lower, LOWER), (upper, UPPER)):
            find_values(plan, settings, plan.planned.store, side, h)
        if box is not None and h > 0:
            width = box.width_of(lower.planned, upper.planned, h)
        following = settings.lipschitz[h]
    return lower.finished(), upper.finished()
