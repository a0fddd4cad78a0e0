"""Problems that end, for the solver of optimal values: motions, and the same for `naive.optimal.EndingValues`."""

from __future__ import annotations

import numpy as np

from kernelrl.envs.motion import Motion
from naive.optimal import EndingValues

MOVES = 0.05 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
ZERO = lambda x, a: np.zeros(len(x))  # noqa: E731


def motion(moves, noise, ends, reward, after=None, at_end=None, starts=None):
    """A problem on [0, 1]^d, d and the actions being those of `moves` (A, d)."""
    moves = np.asarray(moves, float)
    d = moves.shape[1]
    return Motion(
        low=np.zeros((1, d)),
        high=np.ones((1, d)),
        noise=np.full(d, noise),
        actions=tuple(map(str, range(len(moves)))),
        room=lambda x: np.zeros(len(x), np.int64),
        move=lambda x, a: x + moves[a],
        reward=reward,
        starts=np.full((1, d), 0.1) if starts is None else starts,
        ends=ends,
        reward_after=after,
        reward_at_end=at_end,
    )


def naive(horizon, cells, moves, noise, ends, reward, after=None, at_end=None, starts=None):
    """The same by the naive method."""
    return EndingValues(horizon, moves, noise, ends, reward, after or ZERO, at_end or ZERO, cells)


def puddle_world():
    """PuddleWorld with independent noise, starts on a grid: the cost is that of the next state, the end is free."""
    middles = (np.arange(100) + 0.5) / 100
    starts = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    starts = starts[starts.sum(axis=1) < 1.9]
    return {
        "moves": MOVES,
        "noise": 0.01,
        "ends": lambda y: y[:, 0] + y[:, 1] > 1.9,
        "reward": ZERO,
        "after": lambda y, a: -1.0 - puddle_cost(y),
        "starts": starts,
    }


def puddle_cost(y):
    """400·(0.1 - distance) around each of two segments, the larger of the two."""
    across = np.hypot(np.maximum(0.0, np.maximum(0.1 - y[:, 0], y[:, 0] - 0.45)), y[:, 1] - 0.75)
    upright = np.hypot(y[:, 0] - 0.45, np.maximum(0.0, np.maximum(0.4 - y[:, 1], y[:, 1] - 0.8)))
    return 400.0 * np.maximum(0.0, 0.1 - np.minimum(across, upright))
