"""Optimal values of TwinRooms by the simplest dynamic programming: linear interpolation, every pair of nodes."""

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from scipy.interpolate import RegularGridInterpolator


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
