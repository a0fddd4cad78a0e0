"""Transitions of TwinRooms, or of copies of it that move otherwise somewhere, by a walker that heads for the goal."""

from __future__ import annotations

import numpy as np

ROOMS = [((0.0, 0.0), (0.95, 1.0)), ((1.05, 0.0), (2.0, 1.0))]
LOW, HIGH = (np.array([room[end] for room in ROOMS]) for end in (0, 1))
GOALS = np.array([[0.8, 0.8], [1.8, 0.8]])
MOVES = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1], [0.0, -0.1]])
H = 20


def goal_reward(x, action=0):
    """The reward of TwinRooms."""
    room = (x[:, 0] >= 1.0).astype(int)
    return np.maximum(0.0, 1.0 - np.linalg.norm(x - GOALS[room], axis=1) / 0.1)


def table(rng, episodes, factor=lambda x: np.ones(len(x)), noisy=False, random=0.4):
    """Logged transitions, episode by episode; `factor` of the states is how far moves go there."""
    room = rng.integers(2, size=episodes)
    x = np.column_stack([0.1 + room, np.full(episodes, 0.1)])
    columns = {name: [] for name in ("state", "action", "reward", "next_state")}
    for _ in range(H):
        away = GOALS[room] - x
        axis = np.argmax(np.abs(away) + 0.02 * rng.random(x.shape), axis=1)
        ahead = 2 * axis + (away[np.arange(episodes), axis] < 0)
        a = np.where(rng.random(episodes) < random, rng.integers(4, size=episodes), ahead)
        y = x + MOVES[a] * factor(x)[:, None] + 0.01 * rng.normal(size=x.shape)
        y = np.clip(y, LOW[room], HIGH[room])
        r = goal_reward(x)
        for name, value in zip(columns, (x, a, (rng.random(episodes) < r) * 1.0 if noisy else r, y), strict=True):
            columns[name].append(value)
        x = y
    found = {name: np.swapaxes(np.array(parts), 0, 1) for name, parts in columns.items()}
    found = {name: v.reshape(-1, *v.shape[2:]) for name, v in found.items()}
    return {**found, "step": np.tile(np.arange(H), episodes), "terminated": 0}


def halved(x):
    """Moves that go half as far in one region, a quarter of the first room."""
    return np.where((x[:, 0] > 0.45) & (x[:, 0] < 0.95) & (x[:, 1] < 0.5), 0.5, 1.0)
