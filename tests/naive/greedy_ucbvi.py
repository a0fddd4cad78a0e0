"""Greedy-UCBVI (Efroni et al. 2019).

V_h ← min(V_h, max_a r̂ + P̂V_{h+1} + B_h) at the visited state, from the data before its sample.
"""

from __future__ import annotations

import numpy as np

from naive.masks import best
from naive.tabular_ucbvi import Transitions, deployed_q


class NaiveGreedyUCBVI:
    """Read-outs are those of the current data."""

    def __init__(self, H, A, optimism, stationary=True, nothing=0.0, mask=None):
        self.mask = mask
        self.H, self.A, self.optimism = H, A, optimism
        self.data = Transitions(H, A, stationary, nothing)
        self.V: dict = {}  # (h, x) → V_h(x)

    def begin_episode(self) -> None:
        pass

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        self.V[h, x] = min(self.value(x, h), best(self.q_values(x, h), self.mask, x))
        self.data.log.append((x, a, r, y, h, terminated))

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`."""
        self.data.rescale(old, new)
        self.V = {(h, x): old.value(v, h, new) for (h, x), v in self.V.items()}

    def q_values(self, x, h) -> np.ndarray:
        q = []
        for a, n in enumerate(self.counts(x, h)):
            if n == 0:
                q.append(self.optimism.untried(h))
            else:
                estimate = self.data.estimate(x, a, h, lambda y: self.value(y, h + 1))
                q.append(estimate + self.optimism.bonus_at(h, n))
        return np.array(q)

    def value(self, x, h) -> float:
        return self.V.get((h, x), self.optimism.cap(h))

    def counts(self, x, h) -> np.ndarray:
        return np.array([len(self.data.of(x, a, h)) for a in range(self.A)])

    def bonuses(self, x, h) -> np.ndarray:
        return np.array([self.optimism.bonus_at(h, n) for n in self.counts(x, h)])

    def deployed(self, x, h) -> np.ndarray:
        return deployed_q(self.data, x, h, self.mask)
