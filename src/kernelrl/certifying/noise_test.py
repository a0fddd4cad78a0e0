"""A test of a declared `Exogenous`: whether noise differs between regions more than chance allows, and rewards.

As for displacements (`declaration`), with regions of three kinds: boxes of states, of actions (if the noise has one law
for all), and steps. The functions φ of the noise are the same: its coordinates and how far they are from the middle.

    φ      ½ + (ξ_j - m)/s and ½ + |ξ_j - m|/s, cut off to [0, 1];  m is the middle and s/4 the width of the hull of the
           first `WARM` known noises, which are then left out

Rewards r_s have the declared mean given (x_s, a_s, ξ_s), so ½ + (r_s - r(x_s,a_s,ξ_s))/2 (mapped units) has the mean ½
in every region; where the noise is not known, it counts as ½. Each of the two tests has half of the level.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.declaration import (
    DIVISIONS,
    FROM_WARM,
    FUNCTIONS,
    LEVEL,
    Declaration,
    Found,
    compare,
    intervals,
)
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
    bonus = Bonus.of(2.0 * len(names) * len(groups) * m * len(FUNCTIONS), 0.5 * LEVEL)
    worst, looked = check_rewards(model, samples, names, labels, reward_range), 0
    for a in groups:
        mine = np.ones(samples.number, np.bool_) if a is None else samples.actions == a
        first = np.flatnonzero(mine & ~samples.censored)[:WARM]
        own = np.flatnonzero(samples.kept & mine)
        own = own[own > first[-1]] if len(first) == WARM else own[:0]
        looked += len(own)
        for j in range(m if len(own) else 0):
            start, end = samples.noise[first, j].min(), samples.noise[first, j].max()
            scale = FROM_WARM * max(end - start, 1e-9 * (model.noise[1][j] - model.noise[0][j]))
            moved = np.nan_to_num((samples.noise[own, j] - 0.5 * (start + end)) / scale)
            for name, phi in zip(FUNCTIONS, (moved, np.abs(moved)), strict=True):
                ends = intervals(np.clip(0.5 + phi, 0.0, 1.0), samples.censored[own], labels[:, own], len(names), bonus)
                of = "" if a is None else f" of action {a}"
                found = compare(*ends, 0.0, f"the {name} of the noise{of} on axis {j}", names)
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
    low, high = intervals(phi.clip(0.0, 1.0), np.zeros(len(phi), np.bool_), labels, len(names), bonus)
    off = np.maximum(low - 0.5, 0.5 - high)
    where = int(np.argmax(off))
    return Found(max(0.0, float(off[where])), f"the mean reward is not the declared one in {names[where]}")


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
