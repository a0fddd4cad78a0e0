"""Whether rewards, or the motion, depend on the step of the episode: pooled data cannot represent that.

The reward of each transition (or a coordinate of its displacement) is predicted by the mean of the K nearest
transitions with the same action: once among those of any step, once among those of the same step. With the squared
errors e_i and e'_i of these predictions, the step is said to matter where

    mean(e') < SHARE·mean(e)   and   mean(e - e') > SURE·std(e - e')/√n   and   mean(e) > NOISE·variance

and where e is more than rounding. Those of the same step are farther away, so they predict better only if the step
matters, or if it tells something that distances hide: where one coordinate is a clock, say, and the others are noise,
those of the same step agree in the clock. So e is measured with distances in other sets of coordinates, too, the clock
alone among them, and the step matters only if it does against each: what the state tells is not left to the step.

States differ by a tiny random number from what they are. Else all transitions from the same state would be predicted by
the same three others, and what these have in common by chance would look certain.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.stores.log import Log
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TO

__all__ = ["MOTION", "NOT", "REWARDS", "dependence", "labelled", "nearest"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
NOT, REWARDS, MOTION = "nothing", "rewards", "motion"
K, POOL = 3, 4000
SHARE, SURE, NOISE = 0.85, 4.0, 0.01
LEAST_PROBES, LEAST_EPISODES = 50, 10
ROUNDING = 3e-7  # of the largest number: states may come in single precision
STILL = 1e-3  # of a scale: a displacement as small as this is none
JITTER = 1e-6  # of a scale
OF_ACTIONS = 0.1  # of the width of an axis of actions is the scale there
PAIRS, HIGH = 6, 8  # up to how many coordinates there are sets of two; from how many on there are fewer transitions


def dependence(log: Log, scale: Floats, horizon: int, net: Any = None) -> str:
    """What depends on the step, as far as the data tell; `net` is that of a continuous action space."""
    n = int(log.number[LOGGED])
    if n < max(LEAST_PROBES, LEAST_EPISODES * horizon):
        return NOT
    rng = np.random.default_rng(n)  # the data determine it, so it is the same in all runs
    some = rng.permutation(n)[: POOL * HIGH // max(HIGH, len(scale))]
    x, y, r = log.states[FROM, some], log.states[TO, some], log.reward[some]
    states = (x - x.mean(axis=0)) / scale + JITTER * rng.standard_normal(x.shape)
    least = np.append(ROUNDING * np.abs(r).max(), np.maximum(STILL, ROUNDING * np.abs(x).max(axis=0) / scale))
    targets = np.column_stack([r, (y - x) / scale])
    actions, places = labelled(log.labels[ACTION, some], net)
    matters = step_matters(states, log.labels[STEP, some], actions, targets, least, places)
    if matters[1:].any():
        return MOTION
    return REWARDS if matters[0] else NOT


def labelled(actions: Whole, net: Any) -> tuple[Whole, Floats]:
    """Labels (n,) that must agree, and coordinates (n, k) that must be near: continuous actions are coordinates."""
    if net is None:
        return actions, np.zeros((len(actions), 0))
    width = net.high - net.low
    places = (net.points - net.low) / (OF_ACTIONS * np.where(width > 0.0, width, 1.0))
    return np.zeros_like(actions), places[actions]


def step_matters(
    states: Floats, steps: Whole, actions: Whole, targets: Floats, least: Floats, places: Floats
) -> npt.NDArray[np.bool_]:
    """For each column of `targets` (n, m), whether the step explains what the states (n, d) leave open.

    States must differ from each other. Errors below `least` (m,) do not count. `actions` (n,) are compared by number,
    `places` (n, k) by distance.
    """
    same = nearest(np.hstack([states, places]), actions, steps)
    known = ((steps[same] == steps[:, None]) & (actions[same] == actions[:, None])).all(axis=1)
    matters = np.full(targets.shape[1], np.count_nonzero(known) >= LEAST_PROBES)
    least_squares = np.maximum(NOISE * targets.var(axis=0), least**2)
    for coordinates in sets(states.shape[1]):
        if not matters.any():
            break
        among = nearest(np.hstack([states[:, coordinates], places]), actions)
        errors, own = (((targets[near] - targets[:, None]).mean(axis=1) ** 2)[known] for near in (among, same))
        gain = errors - own
        sure = gain.mean(axis=0) > SURE * gain.std(axis=0) / np.sqrt(len(gain))
        matters &= sure & (own.mean(axis=0) < SHARE * errors.mean(axis=0)) & (errors.mean(axis=0) > least_squares)
    return matters


def sets(d: int) -> Iterator[list[int]]:
    """Sets of the coordinates 0 to d-1: all, each alone, all but one, and each two if they are not too many."""
    sizes = [d, 1, d - 1] + [2] * (d <= PAIRS)
    for size in sorted({size for size in sizes if size > 0}, key=sizes.index):
        yield from map(list, itertools.combinations(range(d), size))


def nearest(states: Floats, *labels: Whole) -> Whole:
    """(n, K) for each state the others that are nearest, of those with the same labels if there are enough."""
    from scipy.spatial import KDTree  # takes long to import

    far = 10.0 * (1.0 + np.ptp(states, axis=0).sum())  # as coordinates, labels that differ are so far apart
    places = np.column_stack([states, *(far * label for label in labels)])
    found: Whole = KDTree(places).query(places, K + 1)[1][:, 1:]
    return found
