"""From a store to the numbers of a report.

A store is what `kernelrl.experiments.open_store` returns, with `experiment` (a dict) and `runs()`, each run with
`label`, `seed`, `episodes`, `finished`, `path`, `history()`, `agent()` and `snapshots()`. A run that cannot be read is
left out with a note that says why; the others are reported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gymnasium as gym
import numpy as np

from kernelrl.envs.motion import Motion
from kernelrl.envs.optimal import OptimalValues, motion_of, solve
from kernelrl.envs.outcomes import Outcomes, OutcomeValues
from kernelrl.envs.sampled import SampledValues
from kernelrl.reporting.certified import Intervals
from kernelrl.reporting.learnt import make_from_table, reading
from kernelrl.reporting.maps import Maps, Plane, plane_of
from kernelrl.reporting.statistics import (
    Floats,
    exponent_with_interval,
    holm,
    mean_with_interval,
    paired_p_value,
    regret,
)

__all__ = ["MEASURES", "Comparison", "Curves", "Measure", "Summary", "summarize"]

LEVEL = 0.05

# The columns of the table: name → whether it needs V*.
MEASURES = {
    "total reward": False,
    "regret": True,
    "fraction of ceiling": True,
    "value of deployed policy": False,
    "seconds per 1,000 episodes": False,
}
COMPARED = ("total reward", "value of deployed policy")


@dataclass(frozen=True)
class Curves:
    """The runs of one label, cut to the episodes that all of its seeds have."""

    label: str
    seeds: tuple[int, ...]
    returns: Floats  # (n, K)
    seconds: Floats  # (n, K) learning time so far
    runs: tuple[Any, ...]
    place: int  # of the label in the experiment, which determines its colour
    below: Floats | None = None  # (n,) share of visited states with V^k_h < V*_h; None if not monitored
    shortfalls: Floats | None = None  # (n,) largest V*_h - V^k_h
    longest: frozenset[int] = frozenset()  # the number of steps of each seed's longest episode

    @property
    def episodes(self) -> int:
        """K."""
        return int(self.returns.shape[1])


@dataclass(frozen=True)
class Measure:
    """One number of a label: its mean over seeds and Student's 95 % interval of it, NaN where there is none."""

    values: Floats  # (n,) by seed
    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Floats, least: float = -np.inf, most: float = np.inf) -> Measure:
        """The measure of these values, which lie from `least` to `most`; runs without a value are left out."""
        known = values[~np.isnan(values)]
        if not known.size:
            return cls(values, np.nan, np.nan, np.nan)
        mean, low, high = (float(part[0]) for part in mean_with_interval(known[:, None]))
        return cls(values, mean, float(np.maximum(low, least)), float(np.minimum(high, most)))


@dataclass(frozen=True)
class Comparison:
    """Two labels by one measure, on the seeds that both have."""

    measure: str
    first: str
    second: str
    seeds: int
    difference: float
    """Mean of first - second."""
    p_value: float
    """Corrected by Holm's method for all comparisons of the report; NaN if there are fewer than two seeds."""

    @property
    def beyond_noise(self) -> bool:
        """Whether the difference is significant, at the level of 5 % for the whole report."""
        return self.p_value < LEVEL


@dataclass(frozen=True)
class Summary:
    """All numbers of a report."""

    experiment: dict[str, Any]
    env: gym.Env[Any, Any] | None
    motion: Motion | Outcomes | None
    optimal: OptimalValues | OutcomeValues | None
    no_optimal: str
    """A sentence that says why there is no V*."""
    curves: list[Curves]
    measures: dict[str, dict[str, Measure]]
    """By label and name of the measure."""
    exponents: dict[str, tuple[float, float, float]]
    """By label: the mean over seeds of the exponents fitted to the regret, and its interval; empty without V*."""
    comparisons: list[Comparison]
    plane: Plane | None
    maps: list[Maps]
    notes: list[str] = field(default_factory=list)
    certified: dict[str, Intervals | str] = field(default_factory=dict)
    """By label: bounds on V* of one of its runs, or why there are none; empty if no model is declared."""

    @property
    def environment(self) -> str:
        """Gymnasium's name of the environment."""
        return str(self.experiment["environment"]["id"])


def summarize(
    store: Any, say: Callable[[str], None] = lambda text: None, maps: bool = False, order: Sequence[str] = ()
) -> Summary:
    """Read a store, its `maps` only if asked to, and compute the summary; `say` takes messages about what is done.

    `order` has all labels that share colours with these, by default those of the store.
    """
    experiment = store.experiment
    notes: list[str] = []
    say("Reading the runs")
    order = order or [agent["label"] for agent in experiment["agents"]]
    curves = read_curves(store.runs(), order, notes)
    if not curves:
        raise ValueError(
            "path: there is no run with an episode to report yet; `kernelrl run` first"
            + "".join(f"\n{note}" for note in notes)
        )
    env = environment_of(experiment["environment"], notes)
    motion = None if env is None else motion_of(env)
    plane = plane_of(env, motion) if maps else None
    labels = [(c.label, c.runs) for c in curves]
    with reading(labels, experiment["environment"], env, plane, say, experiment.get("model")) as finish:
        say("Computing optimal values")
        optimal, why = optimal_values(env, curves)
        learnt = finish()
    notes += itertools.chain(*(part.notes for part in learnt))
    measures = {c.label: measures_of(c, optimal, part.values) for c, part in zip(curves, learnt, strict=True)}
    exponents = {}
    if optimal is not None:
        exponents = {c.label: exponent_with_interval(regret(c.returns, optimal.start_value)) for c in curves}
    read = [part.maps for part in learnt if part.maps is not None]
    comparisons = compare(curves, measures)
    return Summary(
        experiment, env, motion, optimal, why, curves, measures, exponents, comparisons, plane, read, notes,
        {c.label: part.certified for c, part in zip(curves, learnt, strict=True) if part.certified is not None},
    )  # fmt: skip


def read_curves(runs: list[Any], order: Sequence[str], notes: list[str]) -> list[Curves]:
    """The runs by label, in the experiment's order."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    for run in runs:
        try:
            history = run.history()
            if len(history):
                found.setdefault(run.label, []).append((run, history))
            if not run.finished:
                notes.append(f"{run.label}, seed {run.seed} is not finished: {len(history):,} episodes so far.")
        except Exception as error:  # a damaged file must not hide the other runs
            notes.append(f"{run.label}, seed {run.seed} cannot be read and is left out: {error}")
    curves = []
    for label, pairs in found.items():
        K = min(len(history) for _, history in pairs)
        if any(len(history) > K for _, history in pairs):
            notes.append(f"{label}: its seeds have different numbers of episodes; the first {K:,} are reported.")
        returns, seconds = (
            np.array([h[name].to_numpy()[:K] for _, h in pairs], float) for name in ("return", "seconds")
        )
        members = tuple(run for run, _ in pairs)
        optimism = read_optimism([history[:K] for _, history in pairs])
        seeds, longest = tuple(run.seed for run in members), frozenset(int(h["steps"].max()) for _, h in pairs)
        curves.append(Curves(label, seeds, returns, seconds, members, order.index(label), *optimism, longest))
    return curves


def read_optimism(histories: list[Any]) -> tuple[Floats | None, Floats | None]:
    """The share of visited states where values were below V*, and the largest shortfall, (n,) each, if monitored."""
    if not all("below" in history.columns for history in histories):
        return None, None
    shares = [history["below"].sum() / history["steps"].sum() for history in histories]
    return np.array(shares, float), np.array([history["shortfall"].max() for history in histories], float)


def environment_of(table: dict[str, Any], notes: list[str]) -> gym.Env[Any, Any] | None:
    """The environment of the experiment, or None with a note."""
    try:
        return make_from_table(table)
    except ValueError as error:
        notes.append(f"The environment cannot be made here: {error}")
        return None


def optimal_values(
    env: gym.Env[Any, Any] | None, curves: list[Curves]
) -> tuple[OptimalValues | OutcomeValues | None, str]:
    """V*, or None and a sentence that says why."""
    if env is None:
        return None, "The environment cannot be made here, so its optimal value is not known."
    if motion_of(env) is None:
        return None, "The optimal value of this environment is not known: it is computed only for kernelrl's own."
    optimal = solve(env)
    assert not isinstance(optimal, SampledValues)  # which are of environments without a motion
    steps = frozenset[int]().union(*(c.longest for c in curves))
    if steps != {optimal.horizon}:
        return None, (
            f"The optimal value is known for episodes of {optimal.horizon} steps, and agents of this experiment "
            f"played {', '.join(map(str, sorted(steps)))}."
        )
    return optimal, ""


def measures_of(c: Curves, optimal: OptimalValues | OutcomeValues | None, deployed: Floats) -> dict[str, Measure]:
    """The row of a label."""
    totals, K = c.returns.sum(axis=1), c.episodes
    rows = {"total reward": totals}
    if optimal is not None:
        ceiling = K * optimal.start_value
        rows |= {"regret": ceiling - totals, "fraction of ceiling": totals / ceiling}
    rows |= {"value of deployed policy": deployed, "seconds per 1,000 episodes": 1000 * c.seconds[:, -1] / K}
    least = {"seconds per 1,000 episodes": 0.0}
    return {name: Measure.of(values, least.get(name, -np.inf)) for name, values in rows.items()}


def compare(curves: list[Curves], measures: dict[str, dict[str, Measure]]) -> list[Comparison]:
    """All pairs of labels by each compared measure, on common seeds and equal numbers of episodes."""
    found, p_values = [], []
    for measure in COMPARED:
        for one, other in itertools.combinations(curves, 2):
            seeds = [seed for seed in one.seeds if seed in other.seeds]
            K = min(one.episodes, other.episodes)
            pair = []
            for c in (one, other):
                values = (
                    c.returns[:, :K].sum(axis=1) if measure == "total reward" else measures[c.label][measure].values
                )
                pair.append(np.array([values[c.seeds.index(seed)] for seed in seeds]))
            known = ~np.isnan(pair[0] + pair[1])
            first, second = pair[0][known], pair[1][known]
            p_values.append(paired_p_value(first, second))
            difference = float((first - second).mean()) if first.size else np.nan
            found.append((measure, one.label, other.label, int(first.size), difference))
    corrected = holm(np.array(p_values))
    return [Comparison(*entries, float(p)) for entries, p in zip(found, corrected, strict=True)]
