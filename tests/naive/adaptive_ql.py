"""Adaptive Q-learning (Sinclair et al. 2019): a list of boxes for each step and action, searched one by one.

With continuous actions there is one list for each step, of boxes of states and actions together.

Boxes are in coordinates in which the box of states is the unit box; its own radius is 1, that of a box of side s is s.
"""

from __future__ import annotations

import itertools

import numpy as np

from naive.masks import best


class Ball:
    def __init__(self, corner, side, q, n):
        self.corner, self.side, self.q, self.n = corner, side, q, n

    def holds(self, u) -> bool:
        """Lower faces belong to a ball; upper faces only where the unit box ends."""
        upper = self.corner + self.side
        return bool(((self.corner <= u) & ((u < upper) | ((u == 1) & (upper == 1)))).all())

    def children(self) -> list[Ball]:
        half = self.side / 2
        offsets = itertools.product([0, half], repeat=len(self.corner))
        return [Ball(self.corner + np.array(offset), half, self.q, self.n) for offset in offsets]


class NaiveAdaptiveQL:
    """States are points of the box [low, high]."""

    finest = np.inf  # balls of the radius 2^-finest do not split

    def __init__(self, H, A, optimism, low, high, nothing=0.0, mask=None):
        self.nothing, self.mask = nothing, mask
        self.H, self.A, self.optimism = H, A, optimism
        self.low, self.inverse = np.asarray(low), 1 / (np.asarray(high) - low)
        self.balls = {(h, a): [Ball(np.zeros(len(low)), 1.0, optimism.cap(h), 0)] for h in range(H) for a in range(A)}

    def begin_episode(self) -> None:
        pass

    def tree(self, h, a) -> tuple[int, int]:
        """Which partition a pair of step and action has."""
        return h, a

    def point(self, x, a) -> np.ndarray:
        """Where a pair of state and action lies in it."""
        return (np.asarray(x) - self.low) * self.inverse

    def ball(self, x, h, a) -> Ball:
        (ball,) = [ball for ball in self.balls[self.tree(h, a)] if ball.holds(self.point(x, a))]
        return ball

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        G = r + (self.nothing * (self.H - h - 1) if terminated else self.value(y, h + 1))
        ball = self.ball(x, h, a)
        ball.n += 1
        alpha = (self.H + 1) / (self.H + ball.n)
        ball.q = (1 - alpha) * ball.q + alpha * (G + self.optimism.bonus_at(h, ball.n))
        if ball.n >= (1 / ball.side) ** 2 and ball.side > 2.0**-self.finest:
            self.balls[self.tree(h, a)].remove(ball)
            self.balls[self.tree(h, a)] += ball.children()

    def rescale(self, old, new) -> None:
        """The range of rewards has changed, from the units `old` to `new`."""
        self.nothing = new.nothing
        for (h, _), balls in self.balls.items():
            for ball in balls:
                ball.q = old.q_value(ball.q, h, new)

    def q_values(self, x, h) -> np.ndarray:
        return np.array([self.ball(x, h, a).q for a in range(self.A)])

    def value(self, x, h) -> float:
        return 0.0 if h == self.H else min(self.optimism.cap(h), best(self.q_values(x, h), self.mask, x))

    def counts(self, x, h) -> np.ndarray:
        return np.array([self.ball(x, h, a).n for a in range(self.A)])

    def bonuses(self, x, h) -> np.ndarray:
        return np.array([self.optimism.bonus_at(h, n) for n in self.counts(x, h)])

    def deployed(self, x, h) -> np.ndarray:
        return self.q_values(x, h)


class NaiveJointAdaptiveQL(NaiveAdaptiveQL):
    """Actions are points of the unit box, (A, k); balls of the radius 2^-finest do not split."""

    def __init__(self, H, actions, finest, optimism, low, high, nothing=0.0):
        super().__init__(H, 1, optimism, low, high, nothing)
        self.actions, self.finest = actions, finest
        corner = np.zeros(len(low) + actions.shape[1])
        self.balls = {(h, 0): [Ball(corner, 1.0, optimism.cap(h), 0)] for h in range(H)}

    def tree(self, h, a) -> tuple[int, int]:
        return h, 0

    def point(self, x, a) -> np.ndarray:
        return np.concatenate([super().point(x, a), self.actions[a]])

    def relevant(self, x, h) -> list[Ball]:
        """The balls that contain the state with some action."""
        u, d = (np.asarray(x) - self.low) * self.inverse, len(self.low)
        return [ball for ball in self.balls[h, 0] if Ball(ball.corner[:d], ball.side, 0, 0).holds(u)]

    def best(self, x, h) -> list[np.ndarray]:
        """The centres, as actions, of the best balls."""
        balls, d = self.relevant(x, h), len(self.low)
        best = max(ball.q for ball in balls)
        return [ball.corner[d:] + ball.side / 2 for ball in balls if ball.q == best]

    def q_values(self, x, h) -> np.ndarray:
        return np.array([self.ball(x, h, a).q for a in range(len(self.actions))])

    def value(self, x, h) -> float:
        return 0.0 if h == self.H else min(self.optimism.cap(h), max(ball.q for ball in self.relevant(x, h)))

    def counts(self, x, h) -> np.ndarray:
        return np.array([self.ball(x, h, a).n for a in range(len(self.actions))])
