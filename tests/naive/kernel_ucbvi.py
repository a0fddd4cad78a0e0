"""Kernel-UCBVI (algorithms "KernelUCBVI" and "optimisticQ" of the paper), replanned from scratch every time.

Q̃_h(x,a) = r̂ + P̂V_{h+1} + B_h,  Q_h(x,a) = min_s [Q̃_h(x_s,a_s) + L_h·ρ((x,a),(x_s,a_s))],
V_h = min(R_h, max_a Q_h),  V_H = 0. Without interpolation (L is None) Q_h = Q̃_h.
It plans before each episode ("episode"), also after each step ("step"), when the count of a pair has doubled
("doubling"), or, with a number f, before an episode when their number has grown to f times that at the last plan,
rounded down; "auto" is 1.005.
After a termination each of the H-h-1 steps left is worth `nothing`, which is what a reward of 0 is mapped to.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import Data, counts, distances, next_values, rewards_of_step, simplified_bonus, smoothed, spread
from naive.masks import best


class NaiveKernelUCBVI:
    """Every read-out is that of the last plan."""

    def __init__(
        self, H, A, sigma, beta, g, rho, L=None, stationary=True, replan="episode", bonus_scale=1.0, bonus=None,
        nothing=0.0,
    ):  # fmt: skip
        assert replan in ("episode", "step", "doubling", "auto") or replan > 1
        self.H, self.A, self.L = H, A, L
        self.kernel = {"sigma": sigma, "g": g, "rho": rho}
        self.doubled_kernel = self.kernel  # in which counts are to double
        self.beta, self.replan, self.bonus_scale = beta, replan, bonus_scale
        self.nothing = nothing
        self.mask = None  # which actions are allowed in a state
        self.between = None  # a `Between` where L holds for actions, too
        self.by_step = False  # rewards depend on the step, though the data are pooled
        self.bonus = bonus  # None: simplified; else a `TheoryBonus`
        self.data = Data(H, stationary)
        self.episodes = 0
        self.due = 0  # the number of episodes before which the next plan is made
        self.plans = 0
        self.next_values = [np.zeros(0)] * H  # [h]: V_{h+1}(y_s) of the samples of pools[h]
        self.sample_targets = [np.zeros(0)] * H  # [h]: Q̃_h(x_s, a_s) of those samples
        self._plan()  # with no data: what is known before the first episode

    def begin_episode(self) -> None:
        if self.episodes >= self.due:
            self._plan()
            self.due = self._next_due()
        self.episodes += 1

    def _next_due(self) -> float:
        if self.replan in ("episode", "step"):
            return self.episodes + 1
        if self.replan == "doubling":
            return np.inf
        factor = 1.005 if self.replan == "auto" else self.replan
        return max(self.episodes + 1, int(round(factor * self.episodes, 9)))

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        self.data.add(x, a, r, y, h, terminated)
        if self.replan == "step" or (self.replan == "doubling" and self._doubled(x, a, h)):
            self._plan()

    def _doubled(self, x, a, h) -> bool:
        now, before = (
            counts([x], self.A, pool, beta=self.beta, **self.doubled_kernel)[0, a]
            for pool in (self.data.pool(h), self.pools[h])
        )
        return now >= 2 * before

    def _plan(self) -> None:
        """Fix the data; the backward induction over them waits until something is read."""
        self.plans += 1
        self.pools = [self.data.pool(h) for h in range(self.H)]
        self.planned_down_to = self.H

    def _plan_down_to(self, h: int) -> None:
        while self.planned_down_to > h:
            self.planned_down_to -= 1
            self._plan_step(self.planned_down_to)

    def _plan_step(self, h: int) -> None:
        pool = self.pools[h]
        V_next = next_values(pool, lambda states: self.values(states, h + 1))
        self.next_values[h] = np.where(pool.terminated, self.nothing * (self.H - h - 1), V_next)
        if self.L is not None:
            self.sample_targets[h] = self.targets(pool.x, h)[np.arange(len(pool.a)), pool.a]

    def counts(self, states, h) -> np.ndarray:
        return counts(states, self.A, self.pools[h], beta=self.beta, **self.kernel)

    def bonuses(self, states, h) -> np.ndarray:
        if self.bonus is not None:
            pool = self.pools[h]
            sums = spread(states, self.A, pool, **self.kernel)
            return self.bonus_scale * self.bonus(h, len(pool.x), self.counts(states, h), *sums)
        return simplified_bonus(self.counts(states, h), self.H - h, self.bonus_scale)

    def targets(self, states, h) -> np.ndarray:
        """Q̃_h, (n, A)."""
        self._plan_down_to(h)
        pool = self.pools[h]
        r_hat = smoothed(states, self.A, pool, pool.r, beta=self.beta, **self.kernel)
        if self.by_step:
            r_hat = rewards_of_step(states, self.A, pool, h, self.nothing, beta=self.beta, **self.kernel)
        PV = smoothed(states, self.A, pool, self.next_values[h], beta=self.beta, **self.kernel)
        return r_hat + PV + self.bonuses(states, h)

    def q_values(self, states, h) -> np.ndarray:
        """Q_h, (n, A): +∞ for an action with no sample to interpolate from."""
        self._plan_down_to(h)
        if self.L is None:
            return self.targets(states, h)
        pool = self.pools[h]
        upper = self.sample_targets[h] + self.L[h] * distances(states, pool.x, self.kernel["rho"])  # (n, m)
        if self.between is not None:
            apart = self.L[h] * self.between.rho(self.between.points)  # (A, A)
            return np.stack([(upper + apart[a, pool.a]).min(axis=1, initial=np.inf) for a in range(self.A)], axis=1)
        return np.stack(
            [np.where(pool.a == a, upper, np.inf).min(axis=1, initial=np.inf) for a in range(self.A)], axis=1
        )

    def values(self, states, h) -> np.ndarray:
        """V_h, (n,)."""
        if h == self.H or len(states) == 0:
            return np.zeros(len(states))
        q = self.q_values(states, h)
        if self.mask is not None:
            return np.minimum(self.H - h, [best(each, self.mask, x) for each, x in zip(q, states, strict=True)])
        highest = q.max(axis=1) if self.between is None else [self.between.highest(each, self.L[h]) for each in q]
        return np.minimum(self.H - h, highest)
