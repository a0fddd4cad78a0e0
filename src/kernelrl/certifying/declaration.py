"""A test of the declaration: whether displacements of an action differ between regions more than chance allows.

Fix an action, an axis and a function φ ∈ [0, 1] of the displacement. If the declaration is true, φ(D_s) has the same
mean given the past at every sample s that counts, wherever x_s is and at every step. So for each region, a fixed set of
states or a step, there is an interval that the mean is in, for any way of choosing states and actions
(`kernelrl.certifying.common_mean`). The declaration is contradicted if the intervals of two regions have no number in
common. All hold together with probability 99 %, so that a true declaration is contradicted with probability at most
1 %. It is no proof of the declaration: where there are few samples, intervals are wide.

    regions   each room, divided into 1, 2^d, 4^d and 8^d boxes; and the samples of each step
    φ         soft steps on the scale of the first `WARM` known displacements of the action, which are then left out

With λ_D > 0 the means of two regions may differ by 4·λ_D/w times their distance, since φ has the slope 4/w; for it the
largest distance of states is taken, and w is large enough for that to be a quarter. A censored sample that counts may
have any φ in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.common_mean import FUNCTIONS, STEEP, Found, compare, mean_intervals, soft_steps
from kernelrl.certifying.samples import WARM, Samples
from kernelrl.models.displacement import Displacement

__all__ = ["LEVEL", "Declaration", "check_displacements"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
LEVEL = 0.01
DIVISIONS = (1, 2, 4, 8)
NARROWEST = 1e-4  # of the widths of all rooms: so wide is a hull at least, far wider than the rounding of states


@dataclass(frozen=True)
class Declaration:
    """The result of the test."""

    holds: bool
    """False if the data contradict the declaration."""
    level: float
    """The probability that a true declaration is contradicted is at most this."""
    samples: int
    """How many samples were looked at."""
    reason: str
    """What contradicts it, in words; empty if nothing does."""

    def __bool__(self) -> bool:
        return self.holds


def check_displacements(
    model: Displacement, samples: Samples, low: Floats, high: Floats, A: int, steps: Whole, horizon: int
) -> Declaration:
    """The test, for samples of A actions in a state space from `low` to `high`; `steps` (n,) are those of samples."""
    boxes, d = model.boxes(low, high), samples.states.shape[1]
    names, labels = regions_of(boxes, samples)
    labels = np.concatenate([labels, len(names) + steps[None]])
    names += [f"step {h}" for h in range(horizon)]
    log_terms = math.log(2.0 * len(names) * A * d * FUNCTIONS / LEVEL)
    widest = np.max([b for _, b in boxes], axis=0) - np.min([a for a, _ in boxes], axis=0)
    farthest = model.variation * float(np.linalg.norm(widest))  # how far means of D may be apart
    worst, looked = Found(0.0, ""), 0
    for a in range(A):
        own = np.flatnonzero(samples.kept & (samples.actions == a))
        first = np.flatnonzero((samples.actions == a) & ~samples.censored)[:WARM]
        own = own[own > first[-1]] if len(first) == WARM else own[:0]
        looked += len(own)
        for j in range(d if len(own) else 0):
            start = samples.moves[first, j]
            width = max(float(np.ptp(start)), NARROWEST * float(widest[j]), 4.0 * STEEP * farthest)
            for name, phi in soft_steps(start, samples.moves[own, j], width):
                ends = mean_intervals(phi, samples.censored[own], labels[:, own], len(names), log_terms)
                what = f"displacements by action {a} on axis {j} are {name}"
                found = compare(*ends, STEEP * farthest / width, what, names)
                worst = max(worst, found, key=lambda one: one.apart)
    return Declaration(bool(worst.apart == 0.0), LEVEL, looked, worst.reason if worst.apart > 0.0 else "")


def regions_of(boxes: tuple[tuple[Floats, Floats], ...], samples: Samples) -> tuple[list[str], Whole]:
    """The names of all regions, and (k, n) the region of each sample in each division."""
    names: list[str] = []
    labels = np.zeros((len(DIVISIONS), samples.number), np.int64)
    for row, parts in enumerate(DIVISIONS):
        for i, (low, high) in enumerate(boxes):
            own, side = samples.rooms == i, (high - low) / parts
            places = np.clip(np.floor((samples.states[own] - low) / side), 0, parts - 1).astype(np.int64)
            shape = (parts,) * low.size
            labels[row, own] = len(names) + np.ravel_multi_index(tuple(places.T), shape)
            for k in range(math.prod(shape)):
                corner = low + side * np.array(np.unravel_index(k, shape))
                names.append(f"the box from {np.round(corner, 6).tolist()} to {np.round(corner + side, 6).tolist()}")
    return names, labels
