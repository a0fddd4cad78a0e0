"""Kernel-UCBVI and Greedy-Kernel-UCBVI on representative states as the authors' program runs them.

For every representative u, sums of weights, rewards and next states are updated when a sample arrives, and so u sees
no sample that came before it. The bonus is s/√C + (1+β)·H/C, or H while no sample of the action was seen; values are
capped at H at every step; a state far from all representatives reads as the nearest one, and when there are `limit` of
them, it is merged into it. The lowest of the best actions is taken; Q is 0 where there is no plan yet.
"""

from __future__ import annotations

import numpy as np


class NaiveAsRun:
    def __init__(self, H, A, sigma, beta, g, rho, merge, limit, bonus_scale, greedy=False):
        # Rewards are those of the range (0, 1), so that nothing is worth 0 after a termination.
        self.H, self.A, self.sigma, self.beta, self.g, self.rho = H, A, sigma, beta, g, rho
        self.merge, self.limit, self.scale, self.greedy = merge, limit, bonus_scale, greedy
        self.states: list[np.ndarray] = []
        self.weight = np.zeros((limit, A))
        self.reward = np.zeros((limit, A))
        self.next = np.zeros((limit, A, limit))
        self.seen = np.zeros((limit, A), dtype=bool)
        self.Q = np.zeros((H, limit, A))
        self.V = np.full((H + 1, limit), float(H))
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
        for h in reversed(range(self.H)):
            for u in range(len(self.states)):
                self.Q[h, u] = self.q(u, h)
                self.V[h, u] = min(self.H, self.Q[h, u].max())

    def q(self, u, h):
        T = self.reward[u] + self.next[u] @ self.V[h + 1]
        C = self.beta + self.weight[u]
        return T / C + np.where(self.seen[u], self.scale / np.sqrt(C) + (1 + self.beta) * self.H / C, self.H)

    def choose(self, x, h):
        if not self.states:
            return 0
        u, _ = self.nearest(x)
        return int((self.q(u, h) if self.greedy else self.Q[h, u]).argmax())

    def observe(self, x, a, r, y, h, terminated=False):
        u = self.visit(x)
        if self.greedy:
            self.V[h, u] = min(self.V[h, u], self.q(u, h).max())
        v = self.visit(y)
        w = self.g(self.rho(self.states[u][None], np.array(self.states))[0] / self.sigma)
        for i in range(len(self.states)):
            self.weight[i, a] += w[i]
            self.reward[i, a] += w[i] * r
            if not terminated:
                self.next[i, a, v] += w[i]
            self.seen[i, a] = True
