"""The deployed policy: backward induction Q_h = r̂ + P̂V_{h+1}, V_h = max_a Q_h, from all data.

The paper's optimistic equation without the bonus and without interpolation, so that an action never tried near a state
is worth as little as there can be. After a termination each step left is worth `nothing`.
"""

from __future__ import annotations

import numpy as np

from naive.estimates import Data, next_values, rewards_of_step, smoothed
from naive.masks import best


class NaiveDeployed:
    def __init__(self, H, A, sigma, beta, g, rho, stationary=True, nothing=0.0):
        self.H, self.A, self.nothing = H, A, nothing
        self.mask = None  # which actions are allowed in a state
        self.by_step = False  # rewards depend on the step, though the data are pooled
        self.kernel = {"sigma": sigma, "beta": beta, "g": g, "rho": rho}
        self.data = Data(H, stationary)

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        self.data.add(x, a, r, y, h, terminated)

    def q_values(self, states, h) -> np.ndarray:
        """Q_h, (n, A); V_{h+1} at the next states of the step's samples comes from the same function one step later."""
        pool = self.data.pool(h)
        V_next = np.zeros(len(pool.a))
        if h + 1 < self.H and len(pool.a) > 0:
            V_next = next_values(pool, lambda states: self.values(states, h + 1))
            V_next = np.where(pool.terminated, self.nothing * (self.H - h - 1), V_next)
        r_hat = smoothed(states, self.A, pool, pool.r, **self.kernel)
        if self.by_step:
            r_hat = rewards_of_step(states, self.A, pool, h, self.nothing, **self.kernel)
        return r_hat + smoothed(states, self.A, pool, V_next, **self.kernel)

    def values(self, states, h) -> np.ndarray:
        """V_h, (n,)."""
        return np.array([best(q, self.mask, x) for q, x in zip(self.q_values(states, h), states, strict=True)])

    def act(self, state, h) -> int:
        return int(self.q_values([state], h)[0].argmax())  # argmax: the lowest index among ties
