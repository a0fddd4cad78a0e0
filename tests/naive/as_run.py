"""Kernel-UCBVI and Greedy-Kernel-UCBVI on representative states as the authors' program runs them.

For every representative u, sums of weights, rewards and next states are updated when a sample arrives, and so u sees
no sample that came before it. The bonus is s/√C + (1+β)·H/C, or H while no sample of the action was seen; values are
capped at H at every step; a state far from all representatives reads as the nearest one, and when there are `limit` of
them, it is merged into it.
"""

from __future__ import annotations

import numpy as np


class NaiveAsRun:
    def __init__(self, H, A, sigma, beta, g, rho, merge, limit, bonus_scale, stationary=True, greedy=False):
        # Rewards are those of the range (0, 1), so that nothing is worth 0 after a termination.
        self.H, self.A, self.sigma, self.beta, self.g, self.rho = H, A, sigma, beta, g, rho
        self.merge, self.limit, self.scale, self.stationary, self.greedy = merge, limit, bonus_scale, stationary, greedy
        self.states: list[np.ndarray] = []
        most = limit + 1
        pools = 1 if stationary else H
        self.weight = np.zeros((pools, most, A))
        self.reward = np.zeros((pools, most, A))
        self.next = np.zeros((pools, most, A, most))
        self.seen = np.zeros((pools, most, A), dtype=bool)
        self.V = np.full((H + 1, most), float(H))
        self.V[H] = 0

    def nearest(self, x):
        distances = self.rho(np.asarray(x, dtype=float)[None], np.array(self.states))[0]
        return int(distances.argmin()), distances.min()

    def visit(self, x):
        if self.states:
            u, distance = self.nearest(x)
            if distance <= self.merge or len(self.states) == self.limit:
                return u
        self.states.append(np.array(x, dtype=float))
        return len(self.states) - 1

    def begin_episode(self):
        if self.greedy:
            return
        U = len(self.states)
        for h in reversed(range(self.H)):
            for u in range(U):
                self.V[h, u] = min(self.H, self.q(u, h).max())

    def q(self, u, h):
        p = 0 if self.stationary else h
        T = self.reward[p, u] + self.next[p, u] @ self.V[h + 1]
        return T / (self.beta + self.weight[p, u]) + self.bonus(u, h)

    def bonus(self, u, h):
        p = 0 if self.stationary else h
        C = self.beta + self.weight[p, u]
        return np.where(self.seen[p, u], self.scale / np.sqrt(C) + (1 + self.beta) * self.H / C, self.H)

    def observe(self, x, a, r, y, h, terminated=False):
        p = 0 if self.stationary else h
        u = self.visit(x)
        if self.greedy:
            self.V[h, u] = min(self.V[h, u], self.q(u, h).max())
        v = self.visit(y)
        w = self.g(self.rho(self.states[u][None], np.array(self.states))[0] / self.sigma)
        for i in range(len(self.states)):
            self.weight[p, i, a] += w[i]
            self.reward[p, i, a] += w[i] * r
            if not terminated:
                self.next[p, i, a, v] += w[i]
            self.seen[p, i, a] = True

    def q_values(self, states, h):
        return np.array([self.q(self.nearest(x)[0], h) for x in states])

    def values(self, states, h):
        return np.array([self.V[h, self.nearest(x)[0]] for x in states])

    def counts(self, states, h):
        p = 0 if self.stationary else h
        return np.array([self.beta + self.weight[p, self.nearest(x)[0]] for x in states])

    def bonuses(self, states, h):
        return np.array([self.bonus(self.nearest(x)[0], h) for x in states])
