"""Bandwidths of their own for each representative u and action a (`krl.schedules.Local`).

    σ(u, a) = max(σ_min, σ_0·(1 + C_0(u, a))^-exponent),   C_0(u, a) = Σ_s g(ρ(u, x_s)/σ_0) over ρ ≤ 3σ_0 and a_s = a

Where actions are related, C_0(u, a) = Σ_s g(ρ(u, x_s)/σ_0)·K_A(a_s, a) over all actions, without a limit on others.

C_0 is the mean over the steps, if each has its own data. With by="state" it is the smallest of all actions. σ(u, a) is
looked at before the first episode and whenever the number of episodes has grown by a fifth, rounded down;
representatives that are new since then have σ_0. A state that is no representative of the last plan has the σ of the
data in it.

Each representative u has a list of neighbours, all others weigh nothing for it. When u is new, and when σ(u, a) is
looked at, these are the 150 nearest within 3·max_a σ(u, a), u among them, and those as near as the last of them.
Representatives within that distance that are found later join the list until it has 256.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import distances, pair_weights
from naive.kernel_ucbvi import NaiveKernelUCBVI

NEIGHBOURS, LONGEST, CUT = 150, 256, 3.0


class NaiveLocal:
    """The table of σ(u, a)."""

    def __init__(self, A, start, minimum, exponent, by, g, rho, representatives):
        self.A, self.start, self.minimum, self.exponent, self.by = A, start, minimum, exponent, by
        self.g, self.rho, self.representatives = g, rho, representatives
        self.related = None  # weights between actions
        self.table: dict[bytes, np.ndarray] = {}
        self.lists: list[list[int]] = []  # the neighbours of each representative
        self.due = 0

    def from_data(self, states, pools) -> np.ndarray:
        """σ(x, a) from the samples of all steps, (n, A)."""
        C = np.zeros((len(states), self.A))
        related = None if self.related is None else self.related._replace(most=np.inf)
        for pool in pools:
            start = Sigma(lambda x: np.full((len(x), self.A), self.start))
            C += pair_weights(states, self.A, pool, start, self.g, self.rho, related).sum(axis=1) / len(pools)
        if self.by == "state":
            C = np.repeat(C.min(axis=1, keepdims=True), self.A, axis=1)
        return np.maximum(self.minimum, self.start * (1.0 + C) ** -self.exponent)

    def renew(self, pools) -> None:
        """The table from the samples of all steps."""
        states = np.array(self.representatives.states)
        self.table = dict(zip((x.tobytes() for x in states), self.from_data(states, pools), strict=True))
        self.lists = []
        self.lists = [self.nearest(u, len(states)) for u in range(len(states))]

    def reach(self, u) -> float:
        """How far a neighbour of representative `u` may be."""
        return CUT * np.max(self.table.get(self.representatives.states[u].tobytes(), self.start))

    def nearest(self, u, number) -> list[int]:
        """The list of `u` among the first `number` representatives."""
        states = np.array(self.representatives.states[:number])
        rho = distances(states[u : u + 1], states, self.rho)[0]
        far = min(self.reach(u), np.inf if number <= NEIGHBOURS else np.sort(rho)[NEIGHBOURS - 1])
        return [int(v) for v in np.flatnonzero(rho <= far * (1 + 1e-12))][:LONGEST]

    def meet(self) -> None:
        """Lists of the representatives that are new, and these in the lists of others."""
        states = self.representatives.states
        for new in range(len(self.lists), len(states)):
            rho = distances(np.array(states[: new + 1]), np.array(states[new : new + 1]), self.rho)
            for u, neighbours in enumerate(self.lists):
                if rho[u, 0] <= self.reach(u) * (1 + 1e-12) and len(neighbours) < LONGEST:
                    neighbours.append(new)
            self.lists.append(self.nearest(new, new + 1))

    def left_out(self, states, x, planned=None) -> np.ndarray:
        """Which samples at `x` (m, d) are of no neighbours of the states, (n, m).

        Only the `planned` first representatives have lists; at any other state all samples count.
        """
        self.meet()
        out = np.zeros((len(states), len(x)), dtype=bool)
        if all(len(neighbours) == len(self.lists) for neighbours in self.lists):
            return out
        number = {y.tobytes(): i for i, y in enumerate(self.representatives.states)}
        which = np.array([number[y.tobytes()] for y in x], dtype=int)
        for i, u in enumerate(np.asarray(states, dtype=float)):
            if number.get(u.tobytes(), np.inf) < (len(number) if planned is None else planned):
                stranger = np.ones(len(number), dtype=bool)
                stranger[self.lists[number[u.tobytes()]]] = False
                out[i] = stranger[which]
        return out

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

    def __init__(self, widths, left_out=None):
        self.widths = widths
        if left_out is not None:
            self.left_out = left_out

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

        return Sigma(sigma, lambda states, x: self.local.left_out(states, x, one.planned))

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
        plan.data, plan.by_step, plan.between = greedy.data, greedy.by_step, greedy.between
        plan.kernel["related"] = greedy.kernel.get("related")
        plan.begin_episode()
        return plan
