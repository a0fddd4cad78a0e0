"""OptQL (Jin et al. 2018), as its sum rather than its recursion.

With learning rates α_i = (H+1)/(H+i), after n visits of a pair with targets G_1 … G_n its value is
Σ_i α_n^i·G_i with α_n^i = α_i·Π_{j>i}(1-α_j); α_1 = 1, so the value before the first visit has no weight.
"""

from __future__ import annotations

import numpy as np

from naive.masks import best


def mixture(H, targets) -> float:
    """Σ_i α_n^i·G_i."""
    alpha = [(H + 1) / (H + i) for i in range(1, len(targets) + 1)]
    return sum(alpha[i] * np.prod([1 - b for b in alpha[i + 1 :]]) * G for i, G in enumerate(targets))


class NaiveOptQL:
    def __init__(self, H, A, optimism, bonus_place="target", nothing=0.0, mask=None):
        self.mask = mask
        self.nothing = nothing
        self.H, self.A, self.optimism, self.after = H, A, optimism, bonus_place == "after"
        self.targets: dict = {}  # (h, x, a) → the targets so far

    def begin_episode(self) -> None:
        pass

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        G = r + (self.nothing * (self.H - h - 1) if terminated else self.value(y, h + 1))
        seen = self.targets.setdefault((h, x, a), [])
        seen.append(G if self.after else G + self.optimism.bonus_at(h, len(seen) + 1))

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`; weights of targets sum to 1."""
        self.nothing = new.nothing
        for (h, _, _), seen in self.targets.items():
            seen[:] = [old.q_value(G, h, new) for G in seen]

    def q_values(self, x, h) -> np.ndarray:
        q = []
        for a in range(self.A):
            seen = self.targets.get((h, x, a), [])
            q.append(mixture(self.H, seen) if seen else self.optimism.cap(h))
            if seen and self.after:
                q[-1] += self.optimism.bonus_at(h, len(seen))
        return np.array(q)

    def value(self, x, h) -> float:
        return 0.0 if h == self.H else min(self.optimism.cap(h), best(self.q_values(x, h), self.mask, x))

    def counts(self, x, h) -> np.ndarray:
        return np.array([len(self.targets.get((h, x, a), [])) for a in range(self.A)])

    def bonuses(self, x, h) -> np.ndarray:
        return np.array([self.optimism.bonus_at(h, n) for n in self.counts(x, h)])

    def deployed(self, x, h) -> np.ndarray:
        return self.q_values(x, h)
