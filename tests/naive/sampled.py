"""Optimal values from draws, in plain NumPy: loops over points, actions and draws, and SciPy's linear interpolation."""

import numpy as np
from scipy.interpolate import RegularGridInterpolator
from scipy.special import ndtri


def values_from_draws(draw, axes, actions, horizon, count):
    """V_0 … V_{H-1} (H, …) on the grid of `axes`.

    `draw(x, a, q)` is the q-th draw at a point x and action a: next state, reward, and whether the episode goes on. It
    is asked for all points in the order of the grid, for each all actions, and for each of these all draws.
    """
    shape = tuple(len(axis) for axis in axes)
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    table = np.zeros((horizon + 1, *shape))
    for h in range(horizon - 1, -1, -1):
        following = RegularGridInterpolator(axes, table[h + 1])
        Q = np.zeros((len(points), len(actions)))
        for i, x in enumerate(points):
            for j, a in enumerate(actions):
                for q in range(count):
                    y, reward, going = draw(x, a, q)
                    Q[i, j] += (reward + (following(y)[0] if going else 0.0)) / count
        table[h] = Q.max(axis=1).reshape(shape)
    return table[:-1]


def tank_values(inflow, outflow, noise, goal, horizon, cells=1500, nodes=801):
    """V_0 on a fine grid of [0, 1] of examples/tank.py, the noise being one of many equally likely numbers."""
    x = np.linspace(0, 1, cells + 1)
    eps = noise * ndtri((np.arange(nodes) + 0.5) / nodes)
    V = np.zeros(cells + 1)
    for _ in range(horizon):
        Q = []
        for a in range(3):
            level = (x + 0.5 * a * inflow - outflow * np.sqrt(x))[:, None] + eps
            y = np.clip(level, 0, 1)
            Q.append(np.where(level > 1, -1.0, 1 - 2 * abs(y - goal) + np.interp(y, x, V)).mean(axis=1))
        V = np.max(Q, axis=0)
    return x, V
