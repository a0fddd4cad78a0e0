"""Warnings of settings with which a kernel agent learns little, each with its remedy."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["Advice", "Evaluated", "warn_of_axes", "warn_of_loss"]

Floats = npt.NDArray[np.float64]
MANY_SAMPLES, TOO_MANY = 1000, 0.8  # from so many samples on, warn of more than TOO_MANY representatives per sample
STILL = 0.7  # warn if more than this share of all steps stay at their representative
NOTHING, ALL = 1e-6, 0.95  # warn if representatives weigh less, or more, for each other


def warn_of_axes(metric: Any, low: Floats, high: Floats) -> None:
    """Warn if the axes of a box differ much in width and the metric takes them as they are."""
    with np.errstate(over="ignore"):
        widths = high - low
    as_they_are = metric == "auto" or getattr(metric, "scale", 0) is None
    if not as_they_are or not (np.isfinite(widths) & (widths > 0)).all() or widths.max() <= 10 * widths.min():
        return
    remedy = 'metric=krl.metrics.Lp(2, scale="box") divides each by its width'
    if widths.max() > 1e30:
        remedy = "metric=krl.metrics.Lp(2, scale=[…]) divides each by a number of yours"
    warnings.warn(
        "metric: the state space's axes differ more than tenfold in width, and the metric takes them as they are; "
        f'{remedy}, and bandwidth="auto" chooses a scale for each',
        UserWarning,
        stacklevel=3,
    )


def warn_of_loss(past: list[Evaluated], env: str, episodes: int, interval: tuple[float, float]) -> None:
    """Warn if the policy is worse than after at most half as many episodes, and add this evaluation to `past`.

    `interval` is that of its mean return.
    """
    before = [one for one in past if one.env == env and 2 * one.episodes <= episodes]
    past.append(Evaluated(env, episodes, interval))
    best = max(before, key=lambda one: one.interval[0], default=None)
    if best is None or best.interval[0] <= interval[1]:
        return
    now, then = (f"{low:.4g} to {high:.4g}" for low, high in (interval, best.interval))
    warnings.warn(
        f"episodes: after {episodes} episodes the policy to deploy collects {now}, less than after {best.episodes}, "
        f"when it was {then}; save the agent before you go on (agent.save) and keep the best, or try a larger "
        "max_representatives",
        UserWarning,
        stacklevel=4,
    )


class Evaluated(NamedTuple):
    """An evaluation of the policy to deploy."""

    env: str
    episodes: int  # learnt before it
    interval: tuple[float, float]


class Advice:
    """Warnings that are given once."""

    def __init__(self) -> None:
        self._given: set[str] = set()

    def _warn(self, kind: str, text: str) -> None:
        self._given.add(kind)
        warnings.warn(text, UserWarning, stacklevel=5)

    def of_no_neighbours(self, samples: int, number: int, merge: float | None) -> None:
        """Warn if hardly any two states are near each other, so that nothing can be learnt."""
        if "neighbours" in self._given or samples < MANY_SAMPLES or number < TOO_MANY * samples:
            return
        self._warn(
            "neighbours",
            f"bandwidth: {samples} samples have made {number} representative states, so hardly any state is within "
            f"representatives={merge:g} of another, and nothing is learnt from one about the next; make bandwidth and "
            "representatives as large as a few steps of the environment, or scale the metric",
        )

    def of_limit(self, limit: int) -> None:
        """Warn if states are merged from farther away than the merge distance."""
        if "limit" in self._given:
            return
        self._warn(
            "limit",
            f"max_representatives: there are {limit} representatives, so further states are merged into the nearest "
            "one at any distance; a larger merge distance or limit avoids that",
        )

    def of_standing_still(self, samples: int, stayed: int, merge: float | None, automatic: bool) -> None:
        """Warn if most steps lead to a state with the same representative, so that actions seem to do nothing."""
        if "still" in self._given or samples < MANY_SAMPLES or stayed <= STILL * samples:
            return
        remedy = 'make it about half of one, or leave bandwidth and representatives to the agent ("auto")'
        if automatic:
            remedy = "chosen for the number of representatives that a plan can afford; a larger max_representatives "
            remedy += "makes it smaller"
        self._warn(
            "still",
            f"representatives: {stayed} of {samples} steps led to a state with the same representative, so the agent "
            f"sees little motion; representatives={merge:g} is larger than a usual step, {remedy}",
        )

    def of_dependence(self, what: str) -> None:
        """Say that rewards or the motion depend on the step of the episode."""
        if f"step, {what}" in self._given:
            return
        seen, how = "rewards seem", "each step has rewards of its own"
        if what == "motion":
            seen, how = "the motion seems", "the step becomes a coordinate of the states"
        self._warn(
            f"step, {what}",
            f"stationary: {seen} to depend on the step of the episode, so {how}; stationary=False keeps the data of "
            "each step apart, and an agent with a bandwidth of yours ignores the step",
        )

    def is_time_for(self, what: str, samples: int) -> bool:
        """Whether there are many samples for the first time; for what takes long to find out."""
        if what in self._given or samples < MANY_SAMPLES:
            return False
        self._given.add(what)
        return True

    def of_bandwidth(self, weight: float, bandwidth: float) -> None:
        """Warn if representatives weigh nothing for each other, or all the same: `weight` in the mean."""
        if NOTHING <= weight <= ALL:
            return
        what, remedy = "nothing is learnt from one state about another", "larger than the merge distance's half"
        if weight > ALL:
            what, remedy = "all states that were visited look the same", "smaller than the distances between states"
        self._warn(
            "bandwidth",
            f"bandwidth: with {bandwidth:g} a representative state weighs {weight:.2g} for another in the mean, so "
            f'{what}; make it {remedy}, or leave it to the agent (bandwidth="auto")',
        )
