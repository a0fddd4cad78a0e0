"""Optimal values by the simplest dynamic programming.

TwinRooms: linear interpolation, every pair of nodes. Problems that end: every cell a state. Finite problems: loops.
"""

import itertools

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.interpolate import RegularGridInterpolator
from scipy.special import ndtr


def optimal_values(horizon, move, noise, radius, goal, wall=0.1, cells=40, nodes=12):
    """For each room a list of H functions of states (n, 2), V_0 … V_{H-1}."""
    moves = move * np.array([[1, 0], [-1, 0], [0, 1], [0, -1]])
    t, w = hermegauss(nodes)
    w = w / w.sum()
    rooms = []
    for room, (left, right) in enumerate([(0.0, 1 - wall / 2), (1 + wall / 2, 2.0)]):
        axes = np.linspace(left, right, cells + 1), np.linspace(0, 1, cells + 1)
        x = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        reward = np.maximum(0, 1 - np.linalg.norm(x - [goal[0] + room, goal[1]], axis=1) / radius)
        V, functions = np.zeros(len(x)), []
        for _ in range(horizon):
            following = RegularGridInterpolator(axes, V.reshape(cells + 1, cells + 1))
            Q = np.zeros((len(x), 4))
            for a in range(4):
                for t1, w1 in zip(t, w, strict=True):
                    for t2, w2 in zip(t, w, strict=True):
                        y = x + moves[a] + noise * np.array([t1, t2])
                        y = np.clip(y, [left, 0], [right, 1])
                        Q[:, a] += w1 * w2 * following(y)
            V = reward + Q.max(axis=1)
            functions.append(RegularGridInterpolator(axes, V.reshape(cells + 1, cells + 1)))
        rooms.append(functions[::-1])
    return rooms


class EndingValues:
    """Optimal values on [0, 1]^d of a problem that ends on arrival at the states for which `ends` is true.

    y = clip(x + move + ε). Each axis is cut into cells, all of a cell counting as its middle, and has a state at either
    wall. `ends` of a cell is the share of 6^d points of it. Rewards are `reward` (x, a) and, at the next state,
    `after` where the episode goes on and `at_end` where it ends.
    """

    def __init__(self, horizon, moves, noise, ends, reward, after, at_end, cells):
        self.moves, self.noise, self.cells, self.reward = np.asarray(moves), noise, cells, reward
        d = self.moves.shape[1]
        axis = np.concatenate([[0.0], (np.arange(cells) + 0.5) / cells, [1.0]])
        width = np.concatenate([[0.0], np.full(cells, 1 / cells), [0.0]])
        states = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
        widths = np.stack(np.meshgrid(*[width] * d, indexing="ij"), axis=-1).reshape(-1, d)
        parts = (np.arange(6) + 0.5) / 6 - 0.5
        self.on_grid = [[self.chances(axis + m) for m in move] for move in self.moves]
        ended = np.mean([ends(states + np.array(part) * widths) for part in itertools.product(parts, repeat=d)], axis=0)
        self.arrivals = [None] * horizon  # for each action, what a state that is reached is worth
        V = np.zeros(len(states))
        for h in range(horizon - 1, -1, -1):
            self.arrivals[h] = [
                ((1 - ended) * (after(states, a) + V) + ended * at_end(states, a)).reshape((cells + 2,) * d)
                for a in range(len(moves))
            ]
            V = self.q_values_on_grid(states, h).max(axis=1)

    def chances(self, z):
        """(n, cells+2) the chances that z + ε, clipped, is in each cell or at a wall."""
        edges = np.linspace(0, 1, self.cells + 1)
        below = ndtr((edges - z[:, None]) / self.noise)
        return np.column_stack([below[:, 0], np.diff(below, axis=1), 1 - below[:, -1]])

    def q_values_on_grid(self, states, h):
        Q = []
        for a, move in enumerate(self.moves):
            expected = self.arrivals[h][a]
            for j in range(len(move)):
                expected = np.moveaxis(np.tensordot(self.on_grid[a][j], expected, (1, j)), 0, j)
            Q.append(self.reward(states, a) + expected.ravel())
        return np.stack(Q, axis=1)

    def q_values(self, x, h):
        """(n, A) at live states x (n, d)."""
        Q = np.zeros((len(x), len(self.moves)))
        for a, move in enumerate(self.moves):
            for i in range(len(x)):
                expected = self.arrivals[h][a]
                for j in range(len(move)):
                    expected = np.tensordot(self.chances(x[i : i + 1, j] + move[j])[0], expected, (0, 0))
                Q[i, a] = self.reward(x[i : i + 1], a)[0] + expected
        return Q

    def values(self, x, h):
        return self.q_values(x, h).max(axis=1)


def finite_values(P, r, horizon, terminal):
    """Q (H, X, A) of a finite problem: P (H, A, X, X), r (X, A, X), terminal (X,)."""
    A, X = P.shape[1:3]
    Q, V = np.zeros((horizon, X, A)), np.zeros((horizon + 1, X))
    for h in reversed(range(horizon)):
        for x in range(X):
            if terminal[x]:
                continue
            for a in range(A):
                for y in range(X):
                    Q[h, x, a] += P[h, a, x, y] * (r[x, a, y] + (0 if terminal[y] else V[h + 1, y]))
            V[h, x] = Q[h, x].max()
    return Q
