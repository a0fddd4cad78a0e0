"""What the naive baselines share: the cell of a state, caps and bonuses."""

from __future__ import annotations

import math

import numpy as np


def cell(x, low, high, bins) -> tuple[int, ...]:
    """The cell of a state, as one index an axis."""
    u = (np.asarray(x, float) - low) * (np.asarray(bins) / (np.asarray(high) - low))
    return tuple(int(min(math.floor(u_j), n - 1)) for u_j, n in zip(u, bins, strict=True))


class Optimism:
    """cap_h and B_h(n), by the names of the public options."""

    def __init__(self, H, bonus="simplified", scale=1.0, width=0.0):
        self.H, self.bonus, self.scale, self.width = H, bonus, scale, width

    def cap(self, h) -> float:
        return float(self.H - h)

    def bonus_at(self, h, n) -> float:
        N = max(1, n)
        if self.bonus == "hoeffding":
            return self.scale * self.width / math.sqrt(N)
        return self.scale * (1 / math.sqrt(N) + self.cap(h) / N)

    def untried(self, h) -> float:
        return max(self.cap(h), self.bonus_at(h, 0))
