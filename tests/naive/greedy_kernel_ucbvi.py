"""Greedy-Kernel-UCBVI (appendix "Efficient implementation" of the paper), with the main text's cap.

V_h^1 = R_h. At the visited state x_h^k: Q̃_h(x_h^k,a) = r̂ + P̂V_{h+1} + B_h for every a, Ṽ = min(R_h, max_a Q̃_h), and
V_h(x) = min(V_h(x), Ṽ + L_h·ρ_X(x, x_h^k)) from then on. After a termination each step left is worth `nothing`.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import Data, counts, distances, next_values, rewards_of_step, simplified_bonus, smoothed, spread
from naive.masks import best


class NaiveGreedyKernelUCBVI:
    """Every read-out is that of the current data; V_h is kept as the list of all targets so far."""

    def __init__(self, H, A, sigma, beta, g, rho, L=None, stationary=True, bonus_scale=1.0, bonus=None, nothing=0.0):
        self.H, self.A, self.L = H, A, L
        self.kernel = {"sigma": sigma, "g": g, "rho": rho}
        self.beta, self.bonus_scale = beta, bonus_scale
        self.nothing = nothing
        self.mask = None  # which actions are allowed in a state
        self.between = None  # a `Between` where L holds for actions, too
        self.by_step = False  # rewards depend on the step, though the data are pooled
        self.bonus = bonus  # None: simplified; else a `TheoryBonus`
        self.data = Data(H, stationary)
        self.visited: list[list[np.ndarray]] = [[] for _ in range(H)]
        self.visited_targets: list[list[float]] = [[] for _ in range(H)]

    def begin_episode(self) -> None:
        pass

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        q = self.q_values([x], h)[0]  # from the data before this sample
        target = min(self.H - h, best(q, self.mask, x) if self.between is None else self.between.highest(q, self.L[h]))
        self.visited[h].append(np.array(x, dtype=float))
        self.visited_targets[h].append(target)
        self.data.add(x, a, r, y, h, terminated)

    def begin_again(self, states, values) -> None:
        """From now on V_h (H, n) at these states (n, d), and what follows from it elsewhere."""
        self.visited = [list(states) for _ in range(self.H)]
        self.visited_targets = [list(values[h]) for h in range(self.H)]

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`."""
        self.nothing = new.nothing
        self.data.rescale(old, new)
        self.visited_targets = [[old.value(v, h, new) for v in step] for h, step in enumerate(self.visited_targets)]

    def counts(self, states, h) -> np.ndarray:
        return counts(states, self.A, self.data.pool(h), beta=self.beta, **self.kernel)

    def bonuses(self, states, h) -> np.ndarray:
        if self.bonus is not None:
            pool = self.data.pool(h)
            sums = spread(states, self.A, pool, **self.kernel)
            return self.bonus_scale * self.bonus(h, len(pool.x), self.counts(states, h), *sums)
        return simplified_bonus(self.counts(states, h), self.H - h, self.bonus_scale)

    def q_values(self, states, h) -> np.ndarray:
        """Q̃_h at the states themselves, (n, A), each action bounded by the others where L holds between them."""
        q = self.targets(states, h)
        return q if self.between is None else np.stack([self.between.spread(each, self.L[h]) for each in q])

    def targets(self, states, h) -> np.ndarray:
        """Q̃_h at the states themselves, (n, A)."""
        pool = self.data.pool(h)
        V_next = next_values(pool, lambda states: self.values(states, h + 1))
        V_next = np.where(pool.terminated, self.nothing * (self.H - h - 1), V_next)
        r_hat = smoothed(states, self.A, pool, pool.r, beta=self.beta, **self.kernel)
        if self.by_step:
            r_hat = rewards_of_step(states, self.A, pool, h, self.nothing, beta=self.beta, **self.kernel)
        PV = smoothed(states, self.A, pool, V_next, beta=self.beta, **self.kernel)
        return r_hat + PV + self.bonuses(states, h)

    def values(self, states, h) -> np.ndarray:
        """V_h, (n,)."""
        if h == self.H:
            return np.zeros(len(states))
        rho = distances(states, np.array(self.visited[h]), self.kernel["rho"])  # (n, m)
        # Without interpolation (L is None) a target is worth something at its own state only.
        rise = self.L[h] * rho if self.L is not None else np.where(rho == 0, 0.0, np.inf)
        return (np.array(self.visited_targets[h]) + rise).min(axis=1, initial=self.H - h)
