"""Bandwidths of their own for each representative u and action a (`krl.schedules.Local`).

    σ(u, a) = max(σ_min, σ_0·(1 + C_0(u, a))^-exponent),   C_0(u, a) = Σ_s g(ρ(u, x_s)/σ_0) over ρ ≤ 3σ_0 and a_s = a

C_0 is the mean over the steps, if each has its own data. With by="state" it is the smallest of all actions. σ(u, a) is
looked at before the first episode and whenever the number of episodes has grown by a fifth, rounded down;
representatives that are new since then have σ_0. A state that is no representative of the last plan has the σ of the
data in it.

When σ(u, a) is looked at, only the 150 nearest representatives of u, and those as near as the last of them, keep a
weight; so it stays until the next time, except that new ones have theirs.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import distances, tried, weights
from naive.kernel_ucbvi import NaiveKernelUCBVI

NEIGHBOURS = 150


class NaiveLocal:
    """The table of σ(u, a)."""

    def __init__(self, A, start, minimum, exponent, by, g, rho, representatives):
        self.A, self.start, self.minimum, self.exponent, self.by = A, start, minimum, exponent, by
        self.g, self.rho, self.representatives = g, rho, representatives
        self.table: dict[bytes, np.ndarray] = {}
        self.reach: dict[bytes, float] = {}  # how far a neighbour may be, of those in the table
        self.due = 0

    def from_data(self, states, pools) -> np.ndarray:
        """σ(x, a) from the samples of all steps, (n, A)."""
        C = np.zeros((len(states), self.A))
        for pool in pools:
            w = weights(states, pool, lambda x: np.full((len(x), self.A), self.start), self.g, self.rho)
            C += w @ tried(self.A, pool) / len(pools)
        if self.by == "state":
            C = np.repeat(C.min(axis=1, keepdims=True), self.A, axis=1)
        return np.maximum(self.minimum, self.start * (1.0 + C) ** -self.exponent)

    def renew(self, pools) -> None:
        """The table from the samples of all steps."""
        states = np.array(self.representatives.states)
        self.table = dict(zip((x.tobytes() for x in states), self.from_data(states, pools), strict=True))
        rho = np.sort(distances(states, states, self.rho), axis=1)
        far = np.full(len(states), np.inf) if len(states) <= NEIGHBOURS else rho[:, NEIGHBOURS - 1]
        self.reach = dict(zip(self.table, far * (1 + 1e-12), strict=True))

    def left_out(self, states, x) -> np.ndarray:
        """Which samples at `x` (m, d) are of no neighbours of the states, (n, m)."""
        reach = np.array([self.reach.get(u.tobytes(), np.inf) for u in np.asarray(states, dtype=float)])
        if np.isinf(reach).all():
            return np.zeros((len(states), len(x)), dtype=bool)
        old = np.array([y.tobytes() in self.table for y in x], dtype=bool)
        return old & (distances(states, x, self.rho) > reach[:, None])

    def at(self, states, pools, planned) -> np.ndarray:
        """σ(x, a) of each state, (n, A), when the last plan was from `pools`, with so many representatives."""
        known = {x.tobytes() for x in self.representatives.states[:planned]}
        states = np.asarray(states, dtype=float)
        elsewhere = np.array([x.tobytes() not in known for x in states], dtype=bool)
        widths = np.empty((len(states), self.A))
        if elsewhere.any():
            widths[elsewhere] = self.from_data(states[elsewhere], pools)
        for i in np.flatnonzero(~elsewhere):
            widths[i] = self.table.get(states[i].tobytes(), self.start)
        return widths


class Sigma:
    """Bandwidths as a function of states, and which samples weigh nothing."""

    def __init__(self, widths, left_out):
        self.widths, self.left_out = widths, left_out

    def __call__(self, states) -> np.ndarray:
        return self.widths(states)


class Bandwidths:
    """Naive algorithms with these bandwidths: `before` is one behind representatives, and so is `deployed`."""

    def __init__(self, local, before, deployed):
        self.local, self.before, self.deployed = local, before, deployed
        for one in (before, deployed):
            one.naive.kernel["sigma"] = self.of(one)
        if isinstance(before.naive, NaiveKernelUCBVI):
            before.naive.doubled_kernel = {**before.naive.kernel, "sigma": self.of_the_latest()}
        self.episodes = 0

    def of(self, one):
        """The bandwidths in one of them."""
        naive = one.naive

        def sigma(states):
            pools = naive.pools if isinstance(naive, NaiveKernelUCBVI) else self.all_pools()
            pools = pools[:1] if naive.data.stationary else pools
            return self.local.at(states, pools, one.planned)

        return Sigma(sigma, self.local.left_out)

    def of_the_latest(self):
        """Those of representatives, which may be newer than the last plan."""
        return Sigma(lambda states: self.local.at(states, self.all_pools(), None), self.local.left_out)

    def all_pools(self):
        """All samples, by step."""
        data, H = self.deployed.naive.data, self.deployed.naive.H
        return [data.pool(h) for h in range(1 if data.stationary else H)]

    def begin_episode(self) -> None:
        """Renew the table if that is due, before the algorithm's own `begin_episode`."""
        k, naive, states = self.episodes, self.before.naive, self.local.representatives.states
        self.episodes = k + 1
        if k < self.local.due:
            return
        self.local.due = max(k + 1, k + k // 5)
        self.local.renew(self.all_pools())
        if isinstance(naive, NaiveKernelUCBVI):
            naive.due = k  # a plan is made at once
        elif states:
            plan = self.full_plan(naive)
            naive.begin_again(states, [plan.values(np.array(states), h) for h in range(naive.H)])

    def full_plan(self, greedy) -> NaiveKernelUCBVI:
        """Kernel-UCBVI's plan of the same data."""
        g, rho = greedy.kernel["g"], greedy.kernel["rho"]
        plan = NaiveKernelUCBVI(
            greedy.H, greedy.A, self.of(self.before), greedy.beta, g, rho, greedy.L, greedy.data.stationary, "episode",
            greedy.bonus_scale, greedy.bonus, greedy.nothing,
        )  # fmt: skip
        plan.data, plan.by_step = greedy.data, greedy.by_step
        plan.begin_episode()
        return plan
