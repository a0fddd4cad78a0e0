"""A test of a declared `Exogenous`: whether noise differs between regions more than chance allows, and rewards.

As for displacements (`declaration`), with regions of three kinds: boxes of states, of actions (if the noise has one law
for all), and steps. The functions φ are the same soft steps, of the coordinates of the noise.

Rewards r_s have the declared mean given (x_s, a_s, ξ_s), so ½ + (r_s - r(x_s,a_s,ξ_s))/2 (mapped units) has the mean ½
in every region; where the noise is not known, it counts as ½. Its intervals are by the empirical Bernstein bonus, which
is small where rewards hardly differ from what was declared. Each of the two tests has half of the level.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.common_mean import FUNCTIONS, Found, compare, mean_intervals, soft_steps
from kernelrl.certifying.declaration import DIVISIONS, LEVEL, NARROWEST, Declaration
from kernelrl.certifying.recovered import Recovered, declared_rewards
from kernelrl.certifying.samples import WARM
from kernelrl.models.exogenous import ACTION, Exogenous

__all__ = ["check_noise"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]


def check_noise(
    model: Exogenous, samples: Recovered, low: Floats, high: Floats, actions: int, horizon: int,
    reward_range: tuple[float, float],
) -> Declaration:  # fmt: skip
    """The test, for samples in a state space from `low` to `high`."""
    names, labels = regions(model, samples, low, high, actions, horizon)
    groups = range(actions) if model.noise_of == ACTION else (None,)
    m = samples.noise.shape[1]
    log_terms = math.log(2.0 * len(names) * len(groups) * m * FUNCTIONS / (0.5 * LEVEL))
    worst, looked = check_rewards(model, samples, names, labels, reward_range), 0
    for a in groups:
        mine = np.ones(samples.number, np.bool_) if a is None else samples.actions == a
        first = np.flatnonzero(mine & ~samples.censored)[:WARM]
        own = np.flatnonzero(samples.kept & mine)
        own = own[own > first[-1]] if len(first) == WARM else own[:0]
        looked += len(own)
        for j in range(m if len(own) else 0):
            width = NARROWEST * float(model.noise[1][j] - model.noise[0][j])
            for name, phi in soft_steps(samples.noise[first, j], np.nan_to_num(samples.noise[own, j]), width):
                ends = mean_intervals(phi, samples.censored[own], labels[:, own], len(names), log_terms)
                what = f"the noise{'' if a is None else f' of action {a}'} is, on axis {j}, {name}"
                found = compare(*ends, 0.0, what, names)
                worst = max(worst, found, key=lambda one: one.apart)
    return Declaration(worst.apart == 0.0, LEVEL, looked, worst.reason if worst.apart > 0.0 else "")


def check_rewards(
    model: Exogenous, samples: Recovered, names: list[str], labels: Whole, reward_range: tuple[float, float]
) -> Found:
    """Whether rewards have the declared mean."""
    known = ~samples.censored if model.with_noise else np.ones(samples.number, np.bool_)
    declared = declared_rewards(model, samples, known)
    phi = np.full(samples.number, 0.5)
    phi[known] += 0.5 * (samples.rewards[known] - declared) / (reward_range[1] - reward_range[0])
    bonus = Bonus.of(2.0 * len(names), 0.5 * LEVEL)
    low, high = intervals(phi.clip(0.0, 1.0), labels, len(names), bonus)
    off = np.maximum(low - 0.5, 0.5 - high)
    where = int(np.argmax(off))
    return Found(max(0.0, float(off[where])), f"the mean reward is not the declared one in {names[where]}")


def intervals(phi: Floats, labels: Whole, regions: int, bonus: Bonus) -> tuple[Floats, Floats]:
    """(m,) the ends of the interval of the mean of φ in each region; `labels` (k, n) are the regions of each sample."""
    low, high = np.zeros(regions), np.ones(regions)
    for label in labels:
        n, total, squares = (np.bincount(label, w, regions) for w in (np.ones(len(phi)), phi, phi * phi))
        some = n > 0
        count = np.where(some, n, 1.0)
        spread = np.maximum(squares - total * total / count, 0.0) + 1e-9 * count
        margin = bonus(spread + count * (0.5 / GRID) ** 2, 1.0, 1.0) / count + 1e-9
        np.minimum(high, np.where(some, total / count + margin, 1.0), out=high)
        np.maximum(low, np.where(some, total / count - margin, 0.0), out=low)
    return low, high


def regions(
    model: Exogenous, samples: Recovered, low: Floats, high: Floats, actions: int, horizon: int
) -> tuple[list[str], Whole]:
    """The names of all regions, and (rows, n) the region of each sample in each division."""
    names: list[str] = []
    labels = []
    for parts in DIVISIONS:
        side, shape = (high - low) / parts, (parts,) * low.size
        places = np.clip(np.floor((samples.states - low) / side), 0, parts - 1).astype(np.int64)
        labels.append(len(names) + np.ravel_multi_index(tuple(places.T), shape))
        for corner in np.ndindex(*shape):
            start, end = (np.round(low + side * np.add(corner, e), 6).tolist() for e in (0, 1))
            names.append(f"the box of states from {start} to {end}")
    for parts in (2, 4, 8) if model.noise_of != ACTION and actions > 1 else ():
        labels.append(len(names) + samples.actions * parts // actions)
        names += [f"part {i + 1} of {parts} of the actions" for i in range(parts)]
    labels.append(len(names) + samples.steps)
    names += [f"step {h}" for h in range(horizon)]
    return names, np.array(labels)
