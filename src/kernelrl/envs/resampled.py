"""An environment made of transitions: what happened near a state happens there again.

At state x, action a, one of the NEAREST transitions (x_i, a, r_i, y_i) of that action is drawn. The step then gives

    r_i   and   x + (y_i - x_i),   coordinate by coordinate, inside the box of the states

and terminates where that transition did. A value of a coordinate that ends WALL or more transitions is taken for a
wall: there the coordinate becomes that of y_i. Distances are Euclidean, each coordinate divided by its standard
deviation; with continuous actions, those of the actions' coordinates are added.

A value that no transition passes or touches, in one coordinate, divides the states, as the wall between two rooms does.
The parts are regions, and an episode stays in the region in which it starts: only transitions of that region are drawn,
and states stay in its box. Where an action was never taken in a region, its transitions of all actions are used.

An episode starts where one of the transitions' episodes did.
"""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

__all__ = ["Resampled"]

Floats = npt.NDArray[np.float64]
NEAREST = 3
WALL = 5


class Resampled(gym.Env[Any, Any]):
    """See the module's docstring.

    Args:
        space: the space of states, a Box of shape `shape`.
        actions: the space of actions, and `numbers`, the actions (n,) or (n, d_A) that were taken.
        states, rewards, next_states, terminated: the transitions, (n, d), (n,), (n, d) and (n,).
        starts: states (m, d) in which episodes began.
        horizon: the largest number of steps.
        seed: of the draws, besides that of each reset.
    """

    def __init__(
        self, space: gym.spaces.Box, actions: gym.Space[Any], numbers: npt.NDArray[Any], states: Floats,
        rewards: Floats, next_states: Floats, terminated: npt.NDArray[np.bool_], starts: Floats, horizon: int,
        seed: int,
    ) -> None:  # fmt: skip
        from scipy.spatial import KDTree

        self.observation_space, self.action_space = space, actions
        self._states, self._rewards, self._next, self._ends = states, rewards, next_states, terminated
        self._starts, self._horizon, self._seed = starts, horizon, seed
        self._walls = walls_of(next_states)
        self._scale = scale_of(states)
        self._discrete = isinstance(actions, gym.spaces.Discrete)
        self._regions, region = regions_of(states, next_states, starts)
        places = states / self._scale
        if not self._discrete:
            taken = numbers.reshape(len(states), -1).astype(float)
            self._action_scale = scale_of(taken)
            places = np.hstack([places, taken / self._action_scale])
        labels = numbers.tolist() if self._discrete else [None] * len(states)
        rows: dict[Any, list[int]] = {}
        for i, (k, a) in enumerate(zip(region[: len(states)].tolist(), labels, strict=True)):
            rows.setdefault((k, None), []).append(i)
            if a is not None:
                rows.setdefault((k, a), []).append(i)
        self._trees = {key: (np.array(own), KDTree(places[own])) for key, own in rows.items()}
        self._start_regions = region[len(states) :]
        self._rng = np.random.default_rng(seed)
        self._x, self._region, self._step = starts[0], int(self._start_regions[0]), 0

    def _observation(self) -> npt.NDArray[Any]:
        space = self.observation_space
        assert isinstance(space, gym.spaces.Box)
        observation: npt.NDArray[Any] = self._x.reshape(space.shape).astype(space.dtype)
        return observation

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin where one of the transitions' episodes began."""
        super().reset(seed=seed)
        if seed is not None:
            self._rng = np.random.default_rng([self._seed, seed])
        which = self._rng.integers(len(self._starts))
        self._x, self._region, self._step = self._starts[which], int(self._start_regions[which]), 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """What happened after one of the nearest transitions of that action."""
        place = self._x / self._scale
        rows, tree = self._trees[self._region, None]
        if self._discrete:
            rows, tree = self._trees.get((self._region, int(action)), (rows, tree))
        else:
            place = np.concatenate([place, np.asarray(action, float).reshape(-1) / self._action_scale])
        near = np.atleast_1d(tree.query(place, min(NEAREST, len(rows)))[1])
        i = rows[near[self._rng.integers(len(near))]]
        moved = np.where(self._walls[i], self._next[i], self._x + self._next[i] - self._states[i])
        low, high = self._regions[self._region]
        self._x, self._step = np.clip(moved, low, high), self._step + 1
        ended = bool(self._ends[i])
        return self._observation(), float(self._rewards[i]), ended, not ended and self._step >= self._horizon, {}


def scale_of(values: Floats) -> Floats:
    """(d,) the standard deviation of each column, or 1 where that is 0."""
    spread = values.std(axis=0)
    return np.where(spread > 0.0, spread, 1.0)


def walls_of(next_states: Floats) -> npt.NDArray[np.bool_]:
    """(n, d) which coordinates of the next states are those of WALL transitions or more."""
    walls = np.zeros(next_states.shape, np.bool_)
    for j in range(next_states.shape[1]):
        _, which, times = np.unique(next_states[:, j], return_inverse=True, return_counts=True)
        walls[:, j] = times[which] >= WALL
    return walls


def regions_of(
    states: Floats, next_states: Floats, starts: Floats
) -> tuple[Floats, npt.NDArray[np.int64]]:  # fmt: skip
    """The boxes (k, 2, d) of the regions, and the region of each transition and of each start (n + m,)."""
    n, d = states.shape
    low, high = np.minimum(states, next_states), np.maximum(states, next_states)
    parts = np.zeros((n + len(starts), d), np.int64)
    for j in range(d):
        order = np.argsort(low[:, j], kind="stable")
        farthest = np.maximum.accumulate(high[order, j])
        ends = farthest[:-1][low[order[1:], j] > farthest[:-1]]  # of each part but the last
        parts[:, j] = np.searchsorted(ends, np.concatenate([states[:, j], starts[:, j]]), side="left")
    _, region = np.unique(parts, axis=0, return_inverse=True)
    region = region.reshape(-1)
    boxes = [(low[region[:n] == k].min(axis=0), high[region[:n] == k].max(axis=0)) for k in range(region.max() + 1)]
    return np.array(boxes), region
