"""The numbers of an experiment over several problems, from the returns of its finished runs.

A run's score is the fraction of the ceiling that it collected while it learnt, (mean return - worst)/(best - worst)
over all of its episodes. Only finished runs count, so that all agents had the same number of episodes, or of steps
where a problem ends by steps. Then each run has its own number of episodes, and an episode counts by its steps. A
problem whose best return is not known has no fractions and is not among these. An agent without runs on a problem is
compared with others on the problems that both have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernelrl.reporting.across.statistics import (
    Estimate,
    Pair,
    curve_of_means,
    episodes_until,
    exchange_p_value,
    improvement,
    interquartile_mean,
    optimality_gap,
    profile,
    reached,
)  # fmt: skip
from kernelrl.reporting.statistics import Floats, holm, paired_p_value, smoothed
from kernelrl.reporting.summary import LEVEL, Measure

__all__ = ["REACH", "Cell", "Improvement", "Overview", "Problem", "Runs", "overview_of", "window_of"]

REACH = 0.9
"""The fraction of the ceiling that sample efficiency asks for."""
STEP = 0.01  # of the thresholds of profiles
SHARES = np.linspace(0.02, 1.0, 50)  # of a problem's episodes
PLACES = 150  # of the curves against episodes


@dataclass(frozen=True)
class Runs:
    """The finished runs of one agent on one problem."""

    seeds: tuple[int, ...]
    returns: tuple[Floats, ...]
    """(K_i,) of each seed."""
    lengths: tuple[Floats, ...]
    """(K_i,) steps of the episodes of each seed."""
    seconds: Floats
    """(n,) of learning in all."""
    sizes: Floats
    """(n,) bytes of the agents' data at the end."""


@dataclass(frozen=True)
class Problem:
    """One problem: its finished runs by label, and what the worst and the best policy collect in an episode."""

    label: str
    runs: dict[str, Runs]
    best: float
    worst: float = 0.0
    by_steps: bool = False
    """Whether runs have a number of steps, and not of episodes."""

    def __post_init__(self) -> None:
        """Check the ceiling."""
        if not (math.isfinite(self.best) and math.isfinite(self.worst) and self.best > self.worst):
            raise ValueError(
                f"best: of problem {self.label} it must be a number above worst = {self.worst:g}, and is {self.best:g}"
            )

    def fractions(self, label: str) -> list[Floats]:
        """The fraction of the ceiling in every episode, (K_i,) of each seed."""
        return [np.asarray((returns - self.worst) / (self.best - self.worst)) for returns in self.runs[label].returns]

    def scores(self, label: str) -> Floats:
        """The fraction of the ceiling over all episodes, or over all steps, (n,) by seed."""
        if not self.by_steps:
            return np.array([fractions.mean() for fractions in self.fractions(label)])
        weighted = zip(self.fractions(label), self.runs[label].lengths, strict=True)
        return np.array([np.average(fractions, weights=lengths) for fractions, lengths in weighted])

    @property
    def window(self) -> int:
        """How many episodes a mean of recent returns has."""
        return window_of(min(returns.size for runs in self.runs.values() for returns in runs.returns))

    @property
    def episodes(self) -> int:
        """The most episodes of a run."""
        return max(returns.size for runs in self.runs.values() for returns in runs.returns)


class Cell(NamedTuple):
    """One agent on one problem."""

    score: Measure
    """Fraction of the ceiling: by seed, the mean, and Student's interval of it."""
    place: str
    """"best" has the highest mean; "close" is not significantly worse; "worse" is; "" if it cannot be told."""
    until: Floats
    """(n,) episodes needed to reach `REACH`, infinite where it was not reached."""
    seconds: float
    """Of learning for 1,000 episodes, mean over seeds."""
    megabytes: float
    """Of the agent's data at the end, the most of all seeds."""


class Improvement(NamedTuple):
    """The probability that one agent's run is better than another's."""

    probability: Estimate
    problems: int
    """How many problems both have."""
    decided: bool
    """Whether the interval excludes 1/2, and chance alone is as far from 1/2 in less than 5 % of cases."""


@dataclass(frozen=True)
class Overview:
    """All numbers across problems; tables by label are in the experiment's order."""

    labels: list[str]
    problems: list[Problem]
    cells: dict[tuple[str, str], Cell]
    """By problem and label; an agent without finished runs on a problem has none."""
    means: dict[str, Estimate]
    """Interquartile means."""
    alike: dict[str, Estimate]
    """Of agents that do not have all problems: the interquartile mean of the reference on those that both have."""
    gaps: dict[str, Estimate]
    """Optimality gaps."""
    thresholds: Floats
    profiles: dict[str, Estimate]
    shares: Floats
    learning: dict[str, Estimate]
    """The interquartile mean of recent fractions after each of `shares` of the episodes."""
    episodes: Floats
    reached: dict[str, Estimate]
    """The share of runs that reached `REACH` within each of `episodes`."""
    improvements: dict[tuple[str, str], Improvement]
    """By a pair of labels: the probability that the first is better. Pairs without a common problem are left out."""

    @property
    def reference(self) -> str:
        """The agent that others are compared with: the first of the experiment."""
        return self.labels[0]

    def problems_of(self, label: str) -> list[Problem]:
        """The problems on which an agent has finished runs."""
        return [problem for problem in self.problems if label in problem.runs]

    @property
    def everywhere(self) -> list[str]:
        """The agents that have finished runs on every problem."""
        return [label for label in self.labels if len(self.problems_of(label)) == len(self.problems)]

    @property
    def least_seeds(self) -> int:
        """The smallest number of runs of an agent on a problem."""
        return min(cell.score.values.size for cell in self.cells.values())


def window_of(episodes: int) -> int:
    """How many episodes a mean of recent returns has: a fiftieth, but at least 20, or a fifth where they are few."""
    return max(1, episodes // 50, min(20, episodes // 5))


def overview_of(problems: Sequence[Problem], labels: Sequence[str]) -> Overview:
    """All numbers across `problems`; `labels` is the order of the agents, of which those without runs are left out."""
    problems = [problem for problem in problems if problem.runs]
    labels = [label for label in labels if any(label in problem.runs for problem in problems)]
    if not problems:
        raise ValueError("problems: there must be one with a finished run and a known best return, and there is none")
    scores = {label: [p.scores(label) for p in problems if label in p.runs] for label in labels}
    highest = max(float(values.max()) for parts in scores.values() for values in parts)
    top = max(1.0, math.ceil(20 * highest) / 20)
    thresholds = np.linspace(0.0, top, round(top / STEP) + 1)
    cells = cells_of(problems, labels)
    longest = max(problem.episodes for problem in problems)
    until = {label: [cells[p.label, label].until for p in problems if label in p.runs] for label in labels}
    soonest = min(float(values.min()) for parts in until.values() for values in parts)
    begin = max(1.0, min(soonest / 2, longest / 20))  # more than a power of ten
    episodes = np.unique(np.geomspace(begin, longest, PLACES).round())
    return Overview(
        labels, problems, cells,
        means={label: interquartile_mean(scores[label]) for label in labels},
        alike=on_the_same_problems(problems, labels),
        gaps={label: optimality_gap(scores[label]) for label in labels},
        thresholds=thresholds,
        profiles={label: profile(scores[label], thresholds) for label in labels},
        shares=SHARES,
        learning={label: curve_of_means(recent_fractions(problems, label)) for label in labels},
        episodes=episodes,
        reached={label: reached(until[label], episodes) for label in labels},
        improvements=improvements_of(problems, labels),
    )  # fmt: skip


def on_the_same_problems(problems: Sequence[Problem], labels: Sequence[str]) -> dict[str, Estimate]:
    """The interquartile mean of the first agent on the problems of each agent that does not have all."""
    found = {}
    for label in labels[1:]:
        here = [p for p in problems if label in p.runs]
        scores = [p.scores(labels[0]) for p in here if labels[0] in p.runs]
        if len(scores) == len(here) < len(problems):
            found[label] = interquartile_mean(scores)
    return found


def recent_fractions(problems: Sequence[Problem], label: str) -> list[Floats]:
    """The mean of recent fractions after each of `SHARES` of a run's episodes, (n_p, T) of each problem."""
    curves = []
    for problem in problems:
        if label in problem.runs:
            recent = [smoothed(run[None], problem.window)[0] for run in problem.fractions(label)]
            curves.append(np.array([run[np.ceil(SHARES * run.size).astype(np.int64) - 1] for run in recent]))
    return curves


def cells_of(problems: Sequence[Problem], labels: Sequence[str]) -> dict[tuple[str, str], Cell]:
    """Every agent on every problem that it has runs of."""
    scores = {(p.label, label): Measure.of(p.scores(label)) for p in problems for label in labels if label in p.runs}
    places = places_of(problems, scores)
    cells = {}
    for p in problems:
        for label in (label for label in labels if label in p.runs):
            fractions = p.fractions(label)
            until = [episodes_until(run[None], REACH, p.window)[0] for run in fractions]
            seconds = 1000 * p.runs[label].seconds / [run.size for run in fractions]
            key = p.label, label
            most = float(p.runs[label].sizes.max()) / 1e6
            cells[key] = Cell(scores[key], places[key], np.array(until), float(seconds.mean()), most)
    return cells


def places_of(problems: Sequence[Problem], scores: dict[tuple[str, str], Measure]) -> dict[tuple[str, str], str]:
    """Which agents are the best on each problem, and which are not significantly worse.

    The others are compared with the best on their common seeds by `paired_p_value`; Holm's method corrects for all
    comparisons of the table.
    """
    places, compared, p_values = {}, [], []
    for problem in problems:
        labels = [label for where, label in scores if where == problem.label]
        best = max(labels, key=lambda label: scores[problem.label, label].mean)
        places[problem.label, best] = "best"
        for label in labels:
            if label != best:
                compared.append((problem.label, label))
                p_values.append(paired_p_value(*common(problem, best, label)))
    for where, p in zip(compared, holm(np.array(p_values, float)), strict=True):
        places[where] = "" if np.isnan(p) else "worse" if p < LEVEL else "close"
    return places


def common(problem: Problem, first: str, second: str) -> Pair:
    """The scores of two agents on the seeds that both have."""
    one, other = problem.runs[first].seeds, problem.runs[second].seeds
    seeds = [seed for seed in one if seed in other]
    pair = []
    for label, order in ((first, one), (second, other)):
        pair.append(problem.scores(label)[[order.index(seed) for seed in seeds]])
    return pair[0], pair[1]


def improvements_of(problems: Sequence[Problem], labels: Sequence[str]) -> dict[tuple[str, str], Improvement]:
    """All pairs of agents, on the problems and seeds that both have."""
    found = {}
    for first in labels:
        for second in labels:
            both = [p for p in problems if first in p.runs and second in p.runs] if first != second else []
            pairs = [pair for pair in (common(p, first, second) for p in both) if pair[0].size]
            if pairs:
                estimate = improvement(pairs)
                apart = bool(estimate.low > 0.5 or estimate.high < 0.5)
                decided = apart and exchange_p_value(pairs) < LEVEL
                found[first, second] = Improvement(estimate, len(pairs), decided)
    return found
