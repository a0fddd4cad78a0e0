"""A stock on a lattice with its exact V*: its cells are points, so that nothing hides in their width.

Stock x = 0 … 9, an order a = 0 … 2, and a demand ξ = 0 … 3 with the law `DEMAND`: y = clip(x + a - ξ, 0, 9), and the
reward ½·min(x + a, ξ)/3 + ½·(1 - a/2): sales, and the cost of orders. The demand is not known where the stock is empty
after it, nor where it is full.
"""

from __future__ import annotations

import numpy as np

N, A, H = 10, 3, 5
DEMAND = (0.35, 0.3, 0.25, 0.1)


def moved(x, a, z):
    return np.clip(np.floor(x + 0.5) + np.reshape(a, (-1, 1)) - np.floor(z + 0.5), 0.0, N - 1.0)


def recover(x, a, y):
    z = np.floor(x + 0.5) + np.reshape(a, (-1, 1)) - y
    return np.where((y > 0.0) & (y < N - 1.0), z, np.nan)


def reward(x, a, z):
    sold = np.minimum(np.floor(x + 0.5)[:, 0] + a, np.floor(z + 0.5)[:, 0])
    return 0.5 * sold / 3.0 + 0.5 * (1.0 - a / 2.0)


def optimal_values(ends=lambda y: False):
    """V* (H, N), by dynamic programming over all outcomes; where `ends(y)`, nothing comes after y."""
    V = np.zeros((H + 1, N))
    for h in range(H - 1, -1, -1):
        for x in range(N):
            Q = []
            for a in range(A):
                total = 0.0
                for z, p in enumerate(DEMAND):
                    y = min(max(x + a - z, 0), N - 1)
                    r = 0.5 * min(x + a, z) / 3.0 + 0.5 * (1.0 - a / 2.0)
                    total += p * (r + (0.0 if ends(y) else V[h + 1, y]))
                Q.append(total)
            V[h, x] = 0.0 if ends(x) else max(Q)
    return V[:H]
