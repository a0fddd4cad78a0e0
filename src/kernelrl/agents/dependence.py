"""Whether rewards, or the motion, depend on the step of the episode: pooled data cannot represent that.

For some transitions, the reward (or a coordinate of the displacement) is predicted by the mean of the K nearest
transitions with the same action: once among those of any step, once among those of the same step. The latter are
farther away, so they predict better only if the step matters. It is said to matter where the mean squared error among
those of the same step is at most SHARE of the other, by more than SURE standard errors of the difference, and where the
error left by the state is more than NOISE of the variance.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelrl.stores.log import Log
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TO

__all__ = ["MOTION", "NOT", "REWARDS", "dependence"]

Floats = npt.NDArray[np.float64]
NOT, REWARDS, MOTION = "nothing", "rewards", "motion"
K, PROBES, POOL = 3, 400, 4000
SHARE, SURE, NOISE = 0.5, 5.0, 0.01
LEAST_PROBES, LEAST_EPISODES = 50, 10


def dependence(log: Log, scale: Floats, horizon: int) -> str:
    """What depends on the step, as far as the data tell."""
    n = int(log.number[LOGGED])
    if n < LEAST_EPISODES * horizon:
        return NOT
    some = np.random.default_rng(n).permutation(n)[:POOL]  # the data determine it, so it is the same in all runs
    states = log.states[FROM, some] / scale
    motion = (log.states[TO, some] - log.states[FROM, some]) / scale
    targets = np.column_stack([log.reward[some], motion])
    matters = step_matters(states, log.labels[STEP, some], log.labels[ACTION, some], targets)
    if matters[1:].any():
        return MOTION
    return REWARDS if matters[0] else NOT


def step_matters(
    states: Floats, steps: npt.NDArray[np.int64], actions: npt.NDArray[np.int64], targets: Floats
) -> npt.NDArray[np.bool_]:
    """For each column of `targets` (n, m), whether the step explains what the states (n, d) leave open."""
    parts = []
    for action in np.unique(actions):
        here = np.flatnonzero(actions == action)
        probes = np.flatnonzero(here < PROBES)  # within `here`; the data come in random order
        square = np.zeros((len(probes), len(here)))
        for x in states[here].T:
            square += (x[probes, None] - x) ** 2
        square[np.arange(len(probes)), probes] = np.inf
        same = np.where(steps[here[probes], None] == steps[here], square, np.inf)
        known = np.isfinite(same).sum(axis=1) >= K
        if known.any():
            nearest = [here[np.argpartition(squares[known], K, axis=1)[:, :K]] for squares in (square, same)]
            truth = targets[here[probes[known]]]
            parts.append([(targets[among].mean(axis=1) - truth) ** 2 for among in nearest])
    errors = np.concatenate(parts, axis=1) if parts else np.zeros((2, 0, targets.shape[1]))
    if errors.shape[1] < LEAST_PROBES:
        return np.zeros(targets.shape[1], bool)
    any_step, same_step = errors
    gain = any_step - same_step
    sure = gain.mean(axis=0) > SURE * gain.std(axis=0) / np.sqrt(len(gain))
    left = any_step.mean(axis=0) > NOISE * targets.var(axis=0)
    result: npt.NDArray[np.bool_] = sure & left & (same_step.mean(axis=0) < SHARE * any_step.mean(axis=0))
    return result
