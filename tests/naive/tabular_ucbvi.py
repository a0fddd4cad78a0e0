"""UCBVI (Azar et al. 2017) from a plain list of transitions, planned in full each time.

States are hashable: cells of a grid, or the states of a Discrete space. After a termination each step left is worth
`nothing`, which is what a reward of 0 is mapped to. With `minimum` no Q of a pair that was tried is higher than in the
plan before (algorithm 2). `mask` says which actions are allowed in a state; values are maxima over these.
"""

from __future__ import annotations

import numpy as np

from naive.masks import best


class Transitions:
    """All transitions, by pool of data."""

    def __init__(self, H, A, stationary, nothing=0.0):
        self.H, self.A, self.stationary, self.nothing = H, A, stationary, nothing
        self.log: list[tuple] = []  # (x, a, r, y, h, terminated)

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`."""
        self.nothing = new.nothing
        self.log = [(x, a, old.reward(r, new), y, h, end) for x, a, r, y, h, end in self.log]

    def pool(self, h) -> list[tuple]:
        return [t for t in self.log if self.stationary or t[4] == h]

    def of(self, x, a, h) -> list[tuple]:
        return [t for t in self.pool(h) if t[0] == x and t[1] == a]

    def estimate(self, x, a, h, V) -> float:
        """r̂ + P̂V where V(y) is the value at the next step, for a pair that was tried."""
        seen, end = self.of(x, a, h), self.nothing * (self.H - h - 1)
        return float(np.mean([r + (end if terminated else V(y)) for _, _, r, y, _, terminated in seen]))

    def states(self) -> list:
        return sorted({s for t in self.log for s in (t[0], t[3])})


class NaiveUCBVI:
    """Read-outs are those of the last plan."""

    def __init__(self, H, A, optimism, stationary=True, replan="episode", nothing=0.0, minimum=False, mask=None):
        self.mask = mask
        self.H, self.A, self.optimism, self.replan = H, A, optimism, replan
        self.minimum = minimum
        self.data = Transitions(H, A, stationary, nothing)
        self.Q: dict = {}  # (h, x) → (A,)
        self.N: dict = {}  # (h, x) → (A,)
        self.planned = False
        self.begun, self.due = 0, 0

    def begin_episode(self) -> None:
        k, self.begun = self.begun, self.begun + 1
        waits = self.replan == "doubling" or (not isinstance(self.replan, str) and k < self.due)
        if not self.planned or not waits:
            self.plan()
            if not isinstance(self.replan, str):  # after k episodes: when they are k·factor, but one more at least
                self.due = k + max(1, int(k * (self.replan - 1) + 1e-9))

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        self.data.log.append((x, a, r, y, h, terminated))
        doubled = len(self.data.of(x, a, h)) >= 2 * self.counts(x, h)[a]
        if self.replan == "step" or (self.replan == "doubling" and doubled):
            self.plan()

    def plan(self) -> None:
        before, self.planned, self.Q, self.N = self.Q, True, {}, {}
        for h in reversed(range(self.H)):
            for x in self.data.states():
                n = np.array([len(self.data.of(x, a, h)) for a in range(self.A)])
                self.N[h, x] = n
                self.Q[h, x] = np.array([self.target(x, a, h, n[a]) for a in range(self.A)])
                if self.minimum:
                    self.Q[h, x] = np.minimum(self.Q[h, x], before.get((h, x), self.optimism.untried(h)))

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`; it plans at once."""
        self.data.rescale(old, new)
        for (h, x), q in self.Q.items():
            self.Q[h, x] = np.where(self.N[h, x] > 0, old.value(q, h, new), q)
        self.plan()

    def target(self, x, a, h, n) -> float:
        if n == 0:
            return self.optimism.untried(h)
        return self.data.estimate(x, a, h, lambda y: self.value(y, h + 1)) + self.optimism.bonus_at(h, n)

    def q_values(self, x, h) -> np.ndarray:
        return self.Q.get((h, x), np.full(self.A, self.optimism.untried(h)))

    def value(self, x, h) -> float:
        return 0.0 if h == self.H else min(self.optimism.cap(h), best(self.q_values(x, h), self.mask, x))

    def counts(self, x, h) -> np.ndarray:
        return self.N.get((h, x), np.zeros(self.A))

    def bonuses(self, x, h) -> np.ndarray:
        return np.array([self.optimism.bonus_at(h, n) for n in self.counts(x, h)])

    def deployed(self, x, h) -> np.ndarray:
        return deployed_q(self.data, x, h, self.mask)


def deployed_q(data, x, h, mask=None) -> np.ndarray:
    """Q_h of the policy to deploy: planned on all data without bonus, an untried pair counting 0."""
    V = [{} for _ in range(data.H + 1)]  # V[h][x]
    states = data.states()
    for step in reversed(range(data.H)):
        V[step] = {s: best(_greedy(data, s, step, V[step + 1]), mask, s) for s in states}
    return _greedy(data, x, h, V[h + 1])


def _greedy(data, x, h, following) -> np.ndarray:
    tried = [bool(data.of(x, a, h)) for a in range(data.A)]
    V = lambda y: following.get(y, 0.0)  # noqa: E731
    return np.array([data.estimate(x, a, h, V) if tried[a] else 0.0 for a in range(data.A)])
