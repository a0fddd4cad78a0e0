"""Pending visits of several rigs, for Kernel-UCBVI with a Gaussian kernel and the simplified bonus, from all samples.

C_h(x, a)  = β + Σ w,   w = exp(-ρ²/2σ²) for samples of the same action (and step, if data are kept per step)
Q_h(x, a)  = Σ w·(r + V_{h+1}(y)) / C + B_h(C),   B_h(C) = s·(1/√C + (H-h)/C),   V_h = min(H-h, max_a Q_h)
Q'_h(x, a) = Σ w·(r + V_{h+1}(y)) / C + B_h(C + Σ w of the pending pairs)
"""

import numpy as np


class NaiveRigs:
    def __init__(self, sigma, beta, scale, horizon, actions, pooled):
        self.sigma, self.beta, self.scale = sigma, beta, scale
        self.H, self.A, self.pooled = horizon, actions, pooled
        self.samples = []  # (x, a, r, y, h)

    def tell(self, x, a, r, y, h):
        self.samples.append((np.array(x), a, r, np.array(y), h))

    def weight(self, x, a, h, x2, a2, h2):
        if a != a2 or (h != h2 and not self.pooled):
            return 0.0
        return float(np.exp(-np.sum((x - x2) ** 2) / (2 * self.sigma**2)))

    def bonus(self, h, C):
        return self.scale * (1 / np.sqrt(C) + (self.H - h) / C)

    def value(self, y, h):
        return 0.0 if h == self.H else min(self.H - h, max(self.q(y, a, h)[0] for a in range(self.A)))

    def q(self, x, a, h, pending=()):
        """Q_h(x, a) with the pending pairs as visits, and their weight."""
        C, T = self.beta, 0.0
        for x2, a2, r, y, h2 in self.samples:
            w = self.weight(x, a, h, x2, a2, h2)
            if w > 0.0:
                C += w
                T += w * (r + self.value_at_sample(y, h + 1))
        n = sum(self.weight(x, a, h, x2, a2, h2) for x2, a2, h2 in pending)
        return T / C + self.bonus(h, C + n), n

    def value_at_sample(self, y, h):
        key = (len(self.samples), y.tobytes(), h)
        if getattr(self, "known", {}).get("n") != len(self.samples):
            self.known = {"n": len(self.samples)}
        if key not in self.known:
            self.known[key] = self.value(y, h)
        return self.known[key]

    def values_with(self, pending, x, h):
        """(A,) Q', and the weights of pending pairs with the number of those that are (x, a, h) itself."""
        found = [self.q(x, a, h, pending) for a in range(self.A)]
        same = [sum(a2 == a and h2 == h and np.array_equal(x2, x) for x2, a2, h2 in pending) for a in range(self.A)]
        return np.array([q for q, _ in found]), (np.array([n for _, n in found]), np.array(same))
