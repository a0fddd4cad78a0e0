"""Several bandwidths at once (`krl.schedules.Bandwidths`): M estimates of each pair, one for each bandwidth.

With q_j = r̂_j + P̂_jV_{h+1} and B_j from the j-th bandwidth, σ_1 > … > σ_M, and from the j-th bonus,

    Q̃_h = min_j [q_j + B_j]
    without a bonus: q_j where B_j is smallest, clipped to [q_j - B_j, q_j + B_j] for j = 1 … M in turn
    from below: max_j [q_j - B'_j]

The count and the bonus of a pair are those of the smallest B_j (of equals, that of the widest). C of a pair has doubled
if one of them has.
"""

from __future__ import annotations

import numpy as np

from naive.deployed import NaiveDeployed
from naive.estimates import counts, next_values, smoothed, spread
from naive.greedy_kernel_ucbvi import NaiveGreedyKernelUCBVI
from naive.kernel_ucbvi import NaiveKernelUCBVI


class Estimate:
    """One bandwidth σ and its bonus."""

    def __init__(self, sigma, beta, g, rho, A, scale, bonus):
        self.kernel, self.beta, self.A = {"sigma": sigma, "g": g, "rho": rho}, beta, A
        self.scale, self.bonus = scale, bonus

    def counts(self, states, pool) -> np.ndarray:
        return counts(states, self.A, pool, beta=self.beta, **self.kernel)

    def bonuses(self, states, pool, h) -> np.ndarray:
        sums = spread(states, self.A, pool, **self.kernel)
        return self.scale * self.bonus(h, len(pool.x), self.counts(states, pool), *sums)

    def mean(self, states, pool, V_next) -> np.ndarray:
        """r̂ + P̂V, (n, A)."""
        return smoothed(states, self.A, pool, pool.r + V_next, beta=self.beta, **self.kernel)


def estimates(sigmas, beta, g, rho, A, scale, bonuses) -> list[Estimate]:
    """From the widest to the narrowest; `bonuses` has one for each."""
    found = [Estimate(sigma, beta, g, rho, A, scale, bonus) for sigma, bonus in zip(sigmas, bonuses, strict=True)]
    return sorted(found, key=lambda one: -one.kernel["sigma"])


def of_smallest_bonus(each, bonuses) -> np.ndarray:
    """From (M, n, A) those with the smallest bonus, (n, A)."""
    return np.take_along_axis(np.array(each), np.array(bonuses).argmin(axis=0)[None], axis=0)[0]


class Several:
    """What the algorithms have in common; `estimates` are theirs, and `current(h)` the samples of a step."""

    def all_bonuses(self, states, h) -> list[np.ndarray]:
        return [one.bonuses(states, self.current(h), h) for one in self.estimates]

    def counts(self, states, h) -> np.ndarray:
        each = [one.counts(states, self.current(h)) for one in self.estimates]
        return of_smallest_bonus(each, self.all_bonuses(states, h))

    def bonuses(self, states, h) -> np.ndarray:
        return np.min(self.all_bonuses(states, h), axis=0)

    def lowest(self, states, h, V_next) -> np.ndarray:
        """min_j [q_j + B_j]."""
        q = [one.mean(states, self.current(h), V_next) for one in self.estimates]
        return np.min([mean + B for mean, B in zip(q, self.all_bonuses(states, h), strict=True)], axis=0)


class SeveralKernelUCBVI(Several, NaiveKernelUCBVI):
    def __init__(self, H, A, estimates, L, stationary, replan, nothing):
        self.estimates = estimates
        first = estimates[0]
        super().__init__(
            H, A, beta=first.beta, L=L, stationary=stationary, replan=replan, nothing=nothing, **first.kernel
        )

    def current(self, h):
        return self.pools[h]

    def targets(self, states, h) -> np.ndarray:
        self._plan_down_to(h)
        return self.lowest(states, h, self.next_values[h])

    def _doubled(self, x, a, h) -> bool:
        return any(
            one.counts([x], self.data.pool(h))[0, a] >= 2 * one.counts([x], self.pools[h])[0, a]
            for one in self.estimates
        )


class SeveralGreedyKernelUCBVI(Several, NaiveGreedyKernelUCBVI):
    def __init__(self, H, A, estimates, L, stationary, nothing):
        self.estimates = estimates
        first = estimates[0]
        super().__init__(H, A, beta=first.beta, L=L, stationary=stationary, nothing=nothing, **first.kernel)

    def current(self, h):
        return self.data.pool(h)

    def targets(self, states, h) -> np.ndarray:
        pool = self.data.pool(h)
        V_next = next_values(pool, lambda states: self.values(states, h + 1))
        V_next = np.where(pool.terminated, self.nothing * (self.H - h - 1), V_next)
        return self.lowest(states, h, V_next)


class SeveralDeployed(Several, NaiveDeployed):
    def __init__(self, H, A, estimates, stationary, nothing):
        self.estimates = estimates
        first = estimates[0]
        super().__init__(H, A, beta=first.beta, stationary=stationary, nothing=nothing, **first.kernel)

    def current(self, h):
        return self.data.pool(h)

    def q_values(self, states, h) -> np.ndarray:
        pool = self.data.pool(h)
        V_next = np.zeros(len(pool.a))
        if h + 1 < self.H and len(pool.a) > 0:
            V_next = next_values(pool, lambda states: self.q_values(states, h + 1).max(axis=1))
            V_next = np.where(pool.terminated, self.nothing * (self.H - h - 1), V_next)
        q, B = [one.mean(states, pool, V_next) for one in self.estimates], self.all_bonuses(states, h)
        best = of_smallest_bonus(q, B)
        for mean, bonus in zip(q, B, strict=True):
            best = np.minimum(np.maximum(best, mean - bonus), mean + bonus)
        return best
