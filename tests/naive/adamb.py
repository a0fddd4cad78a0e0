"""AdaMB (Sinclair et al. 2020): lists of balls that keep all their transitions, and a table of values for each step.

A transition has the cell, of the depth of the ball that it was seen in, that its next state lies in: the corner of the
cell and its side. Cells, and the states of balls, are written as (corner, side), the corner as a tuple.
"""

from __future__ import annotations

import itertools

import numpy as np

from naive.adaptive_ql import Ball, NaiveAdaptiveQL, NaiveJointAdaptiveQL
from naive.grid import Optimism
from naive.masks import best


class DataBall(Ball):
    """A ball with its transitions (reward, cell of the next state), the cell "ended" after a termination."""

    def __init__(self, corner, side, q, data):
        super().__init__(corner, side, q, len(data))
        self.data = data

    def children(self):
        halves = itertools.product([0, self.side / 2], repeat=len(self.corner))
        return [DataBall(self.corner + np.array(half), self.side / 2, self.q, list(self.data)) for half in halves]

    def states(self, d):
        """S(B)."""
        return tuple(self.corner[:d].tolist()), self.side


def root(H, scale):
    """The bonus scale/√n."""
    return Optimism(H, "hoeffding", scale, width=1.0)


def holds(cell, u) -> bool:
    return Ball(np.array(cell[0]), cell[1], 0, 0).holds(u)


def inside(cell, other) -> bool:
    """Whether `other` contains `cell`; of two cells that have a point in common one contains the other."""
    return cell[1] <= other[1] and all(v <= u < v + other[1] for u, v in zip(cell[0], other[0], strict=True))


def overlap(cell, other) -> float:
    """The volume of what two cells have in common."""
    volume = 1.0
    for u, v in zip(cell[0], other[0], strict=True):
        volume *= max(0.0, min(u + cell[1], v + other[1]) - max(u, v))
    return volume


def distance(cell, other) -> float:
    """Between the centres."""
    return max(abs(u + cell[1] / 2 - v - other[1] / 2) for u, v in zip(cell[0], other[0], strict=True))


class AdaMB:
    """What differs from adaptive Q-learning; L is None if there is none."""

    def begin(self, gamma, lipschitz, width=1.0):
        self.d, self.gamma, self.lipschitz = len(self.low), gamma, lipschitz
        self.L = None if lipschitz is None else lipschitz / width
        self.balls = {
            key: [DataBall(ball.corner, ball.side, ball.q, []) for ball in balls] for key, balls in self.balls.items()
        }
        whole = (0.0,) * self.d, 1.0
        self.V = [{whole: self.optimism.cap(h)} for h in range(self.H)]
        self.extended = [dict(values) for values in self.V]
        return self

    def of_step(self, h):
        return [ball for (step, _), balls in self.balls.items() if step == h for ball in balls]

    def cell_of(self, y, side):
        """The cell with that side that contains a state."""
        u = (np.asarray(y) - self.low) * self.inverse
        number = np.minimum(np.floor(u / side), 1 / side - 1)
        return tuple((number * side).tolist()), side

    def observe(self, x, a, r, y, h, terminated=False) -> None:
        ball = self.ball(x, h, a)
        ball.data.append((r, "ended" if terminated else self.cell_of(y, ball.side)))
        ball.n += 1
        depth = -np.log2(ball.side)
        if ball.n >= 2 ** (self.gamma * depth) and ball.side > 2.0**-self.finest:
            self.balls[self.tree(h, a)].remove(ball)
            self.balls[self.tree(h, a)] += ball.children()
            self.divide(h)

    def divide(self, h):
        """S(P_h) again; smaller cells have the values of those they lie in."""
        cells = {ball.states(self.d) for ball in self.of_step(h)}
        smallest = [
            cell for cell in cells if not any(other != cell and inside(other, cell) for other in cells)
        ]  # fmt: skip
        for values in (self.V, self.extended):
            values[h] = {
                cell: next(value for other, value in values[h].items() if inside(cell, other)) for cell in smallest
            }

    def after(self, cell, h):
        """The value at step h of a cell that was reached: the mean of Ṽ over it."""
        if cell == "ended":
            return self.nothing * (self.H - h)
        if h == self.H:
            return 0.0
        return sum(overlap(cell, other) * value for other, value in self.extended[h].items()) / cell[1] ** self.d

    def margin(self, ball, h):
        return self.optimism.bonus_at(h, ball.n) + (0.0 if self.L is None else self.L * ball.side)

    def end_episode(self) -> None:
        for h in reversed(range(self.H)):
            balls = self.of_step(h)
            worth = {cell: self.after(cell, h + 1) for ball in balls for _, cell in ball.data}
            for ball in balls:
                if ball.n:
                    ball.q = np.mean([r + worth[cell] for r, cell in ball.data]) + self.margin(ball, h)
            for cell in self.V[h]:
                self.V[h][cell] = min(self.V[h][cell], self.top(cell, h))
            self.extended[h] = dict(self.V[h])
            if self.L is not None:
                for cell in self.V[h]:
                    self.extended[h][cell] = min(
                        value + self.L * distance(cell, other) for other, value in self.V[h].items()
                    )

    def top(self, cell, h) -> float:
        """The largest Q_h of the balls that contain a cell, of those actions that are allowed at its centre."""
        q = [
            max(ball.q for ball in balls if inside(cell, ball.states(self.d)))
            for (step, _), balls in self.balls.items() if step == h
        ]  # fmt: skip
        return best(q, self.mask, self.low + (np.array(cell[0]) + cell[1] / 2) / self.inverse)

    def rescale(self, old, new) -> None:
        self.nothing = new.nothing
        self.L = None if self.lipschitz is None else self.lipschitz / new.width
        for h in range(self.H):
            for ball in self.of_step(h):
                ball.data = [(old.reward(r, new), cell) for r, cell in ball.data]
            self.V[h] = {cell: old.value(value, h, new) for cell, value in self.V[h].items()}
        self.end_episode()

    def value(self, x, h) -> float:
        u = (np.asarray(x) - self.low) * self.inverse
        return 0.0 if h == self.H else next(value for cell, value in self.extended[h].items() if holds(cell, u))

    def bonuses(self, x, h) -> np.ndarray:
        return np.array([self.margin(self.ball(x, h, a), h) for a in range(self.A)])


class NaiveAdaMB(AdaMB, NaiveAdaptiveQL):
    """With Discrete actions."""


class NaiveJointAdaMB(AdaMB, NaiveJointAdaptiveQL):
    """With continuous actions."""
