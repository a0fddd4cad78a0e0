"""A test of the declaration: whether displacements of an action differ between regions more than chance allows.

Fix an action, an axis and a bounded function φ of the displacement. If the declaration is true, φ(D_s) has the same
mean μ given the past at every sample s that counts, wherever x_s is and at every step. So for each region, a fixed set
of states or a step, the mean of φ over its samples is within the empirical Bernstein bonus of μ, for any way of
choosing states and actions (docs/theory.md). The declaration is contradicted if no μ lies in the intervals of all
regions: the lowest upper end is below the highest lower end. All intervals hold together with probability 99 %, so that
a true declaration is contradicted with probability at most 1 %. It is no proof of the declaration: where there are few
samples, intervals are wide.

    regions   each room, divided into 1, 2^d, 4^d and 8^d boxes; and the samples of each step
    φ         ½ + (D_j - m)/s and ½ + |D_j - m|/s, cut off to [0, 1]; m is the middle and s/4 the width of the hull of
              the first `WARM` known displacements of the action, which are then left out

With λ_D > 0 means in two regions may differ by λ_D/s times their distance at most, for which the largest distance of
states is taken. A censored sample that counts may have any φ in [0, 1].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kernelrl.certifying.bernstein import GRID, Bonus
from kernelrl.certifying.samples import WARM, Samples
from kernelrl.models.displacement import Displacement

__all__ = ["LEVEL", "Declaration", "check_displacements"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
LEVEL = 0.01
DIVISIONS = (1, 2, 4, 8)
FUNCTIONS = ("mean", "spread")
FROM_WARM = 4.0  # s, in widths of the first displacements


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


@dataclass(frozen=True)
class Found:
    """The two regions that contradict each other most."""

    apart: float  # by how much the intervals are apart
    reason: str


def check_displacements(
    model: Displacement, samples: Samples, low: Floats, high: Floats, A: int, steps: Whole, horizon: int
) -> Declaration:
    """The test, for samples of A actions in a state space from `low` to `high`; `steps` (n,) are those of samples."""
    boxes, d = model.boxes(low, high), samples.states.shape[1]
    names, labels = regions_of(boxes, samples)
    labels = np.concatenate([labels, len(names) + steps[None]])
    names += [f"step {h}" for h in range(horizon)]
    bonus = Bonus.of(2.0 * len(names) * A * d * len(FUNCTIONS), LEVEL)
    widest = np.max([b for _, b in boxes], axis=0) - np.min([a for a, _ in boxes], axis=0)
    allowed = model.variation * float(np.linalg.norm(widest))
    worst, looked = Found(0.0, ""), 0
    for a in range(A):
        own = np.flatnonzero(samples.kept & (samples.actions == a))
        first = np.flatnonzero((samples.actions == a) & ~samples.censored)[:WARM]
        own = own[own > first[-1]] if len(first) == WARM else own[:0]
        looked += len(own)
        for j in range(d if len(own) else 0):
            start, end = samples.moves[first, j].min(), samples.moves[first, j].max()
            scale = FROM_WARM * max(end - start, 1e-9 * float(widest[j]))
            moved = (samples.moves[own, j] - 0.5 * (start + end)) / scale
            for name, phi in zip(FUNCTIONS, (moved, np.abs(moved)), strict=True):
                low_ends, high_ends = intervals(
                    np.clip(0.5 + phi, 0.0, 1.0), samples.censored[own], labels[:, own], len(names), bonus
                )
                found = compare(
                    low_ends,
                    high_ends,
                    allowed / scale,
                    f"the {name} of displacements by action {a} on axis {j}",
                    names,
                )
                worst = max(worst, found, key=lambda one: one.apart)
    return Declaration(bool(worst.apart == 0.0), LEVEL, looked, worst.reason)


def compare(low: Floats, high: Floats, allowed: float, what: str, names: list[str]) -> Found:
    """Whether one μ lies in all intervals [low, high] (m,), up to what is allowed."""
    lowest, highest = int(np.argmin(high)), int(np.argmax(low))
    apart = float(low[highest] - high[lowest]) - allowed
    return Found(max(0.0, apart), f"{what} is not the same in {names[highest]} and in {names[lowest]}")


def intervals(
    phi: Floats, censored: npt.NDArray[np.bool_], labels: Whole, regions: int, bonus: Bonus
) -> tuple[Floats, Floats]:
    """(m,) the ends of the interval of μ in each region; `labels` (k, n) are the regions of each sample."""
    low, high = np.zeros(regions), np.ones(regions)
    least, most = np.where(censored, 0.0, phi), np.where(censored, 1.0, phi)
    for label in labels:
        weights = np.ones(len(phi)), censored, least, most, np.where(censored, 0.25, phi * phi)
        n, lost, below, above, squares = (np.bincount(label, w, regions) for w in weights)
        some = n > 0
        count = np.where(some, n, 1.0)
        middle = 0.5 * (below + above)
        spread = np.maximum(squares - middle * middle / count, 0.0) + 1e-9 * count
        v = (np.sqrt(spread + count * (0.5 / GRID) ** 2) + np.sqrt(0.25 * lost)) ** 2
        margin = bonus(v, 1.0, 1.0) / count + 1e-9
        np.minimum(high, np.where(some, above / count + margin, 1.0), out=high)
        np.maximum(low, np.where(some, below / count - margin, 0.0), out=low)
    return low, high


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
