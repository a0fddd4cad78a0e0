"""A walk on a lattice, whose cells are points, with its exact V*: nothing hides in the width of cells.

Points 0 … n-1 on each axis; action a moves by `moves[a]` and by -1, 0 or 1 on each axis with probabilities ¼, ½, ¼, and
the result is clipped. The reward is that of the point.
"""

from __future__ import annotations

import itertools

import numpy as np

STEPS = ((-1, 0.25), (0, 0.5), (1, 0.25))


def optimal_values(rewards, moves, horizon):
    """V* (H, …), by dynamic programming over all outcomes."""
    shape, V = rewards.shape, np.zeros((horizon + 1, *rewards.shape))
    outcomes = [
        ([s for s, _ in noise], float(np.prod([p for _, p in noise])))
        for noise in itertools.product(STEPS, repeat=len(shape))
    ]
    for h in range(horizon - 1, -1, -1):
        Q = []
        for move in moves:
            expected = np.zeros(shape)
            for noise, p in outcomes:
                axes = [np.clip(np.arange(n) + m + e, 0, n - 1) for n, m, e in zip(shape, move, noise, strict=True)]
                expected += p * V[h + 1][np.ix_(*axes)]
            Q.append(rewards + expected)
        V[h] = np.max(Q, axis=0)
    return V[:horizon]


def draws(rng, moves, n):
    """(A, n, d) displacements of each action."""
    moves = np.asarray(moves)
    noise = rng.choice([s for s, _ in STEPS], p=[p for _, p in STEPS], size=(len(moves), n, moves.shape[1]))
    return moves[:, None] + noise
