"""How much neighbouring pairs differ in what follows: the bonus of short episodes with continuous actions follows it.

With a target for each transition, its reward plus the value of its next state,

    G_i = r_i + V_2(y_i)      V_2 of the last plan, at the second step; 0 before the first plan and after a termination
    S²  = the mean of (G_i - the mean of G at the three nearest pairs)²      over pairs (x, a) that differ
    σ²  = the intercept of the line of (G_i - G_j)²/2 on the squared distance of i and j, by least squares over the
          three nearest j of each i; neither it nor the slope is below 0

in units of the range of rewards. S is what a mean over neighbours can be wrong by, and σ the part of it that is noise:
what is left of the difference between two pairs as they come closer. Then

    the bonus is Simplified(root, COUNT) with root = ROOT·(S/USUAL)², at most MOST_ROOT
    the samples of all other pairs count for a pair at most as m = FEWEST + (OTHERS - FEWEST)·min(1, σ/S) of its own

Where targets hardly differ, one visit tells of all the pairs around, and there is little to find. Without noise a pair
knows its own value after a few visits, while its neighbours' data have a bias; with noise, it needs them.

Distances are between states divided by their scales and actions divided by a tenth of their axes, as in
`kernelrl.agents.dependence`. Of more than POOL transitions some are taken.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents.action_kernel import OTHERS
from kernelrl.agents.dependence import JITTER, labelled, nearest
from kernelrl.stores.log import Log
from kernelrl.stores.samples import ACTION, FROM, LOGGED

__all__ = ["COUNT", "Exploring", "exploring", "some_rows"]

Floats = npt.NDArray[np.float64]
Whole = npt.NDArray[np.int64]
ROOT, USUAL, MOST_ROOT = 0.02, 0.15, 0.04
COUNT = 0.01
FEWEST = 5.0
POOL = 4000
LEAST_PAIRS = 5  # with fewer nothing is known
SAME = 1e-6  # pairs as near as this are one


class Exploring(NamedTuple):
    """What was chosen."""

    root: float = ROOT
    others: float = OTHERS  # m


def some_rows(log: Log) -> Whole:
    """Which transitions are looked at: all, in some order, or POOL of them."""
    n = int(log.number[LOGGED])
    return np.random.default_rng(n).permutation(n)[:POOL]  # the data determine it, so it is the same in all runs


def exploring(log: Log, rows: Whole, targets: Floats, scale: Floats, net: Any, width: float) -> Exploring:
    """Root and m for these rows (n,) of the log with their targets (n,); `width` is that of the range of rewards."""
    states, (_, actions) = log.states[FROM, rows], labelled(log.labels[ACTION, rows], net)
    found = roughness(np.hstack([(states - states.mean(axis=0)) / scale, actions]), targets)
    if found is None:
        return Exploring()
    rough, noise = found
    share = min(1.0, noise / rough) if rough > 0.0 else 0.0
    return Exploring(min(MOST_ROOT, ROOT * (rough / width / USUAL) ** 2), FEWEST + (OTHERS - FEWEST) * share)


def roughness(pairs: Floats, G: Floats) -> tuple[float, float] | None:
    """S and σ of targets G (n,) at pairs (n, d), in the units of G; None if there are hardly any pairs."""
    _, first = np.unique(np.round(pairs / SAME), axis=0, return_index=True)
    if len(first) < LEAST_PAIRS:
        return None
    pairs = pairs + JITTER * np.random.default_rng(len(pairs)).standard_normal(pairs.shape)
    one = np.zeros(len(pairs), np.int64)
    around = first[nearest(pairs[first], one[first])]
    rough = float(np.sqrt(np.mean((G[first] - G[around].mean(axis=1)) ** 2)))
    near = nearest(pairs, one)
    squares = ((pairs[near] - pairs[:, None]) ** 2).sum(axis=2).ravel()
    return rough, math.sqrt(intercept(squares, ((G[near] - G[:, None]) ** 2).ravel() / 2.0))


def intercept(x: Floats, y: Floats) -> float:
    """That of the line through points (x, y) by least squares; neither it nor the slope is below 0."""
    centred = x - x.mean()
    spread = float((centred**2).sum())
    slope = max(0.0, float((centred * y).sum()) / spread) if spread > 0.0 else 0.0
    return max(0.0, float(y.mean()) - slope * float(x.mean()))
