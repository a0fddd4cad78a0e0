"""From a store with several problems to the numbers across them.

The store is what `kernelrl.experiments.open_store` returns, with `problems` and `only(label)`. What is left out, and
why, is in the notes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrl.peers.library import is_peer
from kernelrl.reporting.across.overview import Overview, Problem, Runs, overview_of

__all__ = ["Listed", "Reading", "read_store"]


@dataclass(frozen=True)
class Listed:
    """A problem of the experiment, whether or not it has results."""

    label: str
    environment: str
    """Gymnasium's id."""
    length: str
    """How many episodes or steps each run has."""
    best: float | None
    worst: float
    given: bool
    """Whether the experiment's file gives `best`; else it is V*."""
    begun: bool
    """Whether a run has an episode."""


@dataclass(frozen=True)
class Reading:
    """An experiment over several problems."""

    experiment: dict[str, Any]
    problems: list[Listed]
    overview: Overview | None
    """None until a problem with a known ceiling has a finished run."""
    notes: list[str]

    @property
    def name(self) -> str:
        """The experiment's name."""
        return str(self.experiment["name"])


def read_store(store: Any, say: Callable[[str], None] = lambda text: None) -> Reading:
    """Read the finished runs of all problems."""
    notes: list[str] = []
    listed, found = [], []
    for problem in store.problems:
        say(f"{problem.label}: reading the runs")
        runs, begun = read_runs(store.only(problem.label).runs(), problem.label, notes)
        say(f"{problem.label}: computing optimal values")
        best, given = problem.best, problem.given_best is not None
        length = f"{problem.episodes:,} episodes" if problem.steps is None else f"{problem.steps:,} steps"
        listed.append(Listed(problem.label, str(problem.environment["id"]), length, best, problem.worst, given, begun))
        if best is None:
            notes.append(
                f"{problem.label} is left out of what is said across problems. {problem.no_optimal} "
                "`best` in the experiment's file can give it."
            )
        elif not best > problem.worst:
            notes.append(
                f"{problem.label} is left out of what is said across problems: its best return, {best:.4g}, is not "
                f"above its worst, {problem.worst:.4g}. `worst` in the experiment's file can give another."
            )
        elif runs:
            found.append(Problem(problem.label, runs, best, problem.worst, problem.steps is not None))
    if not any(problem.begun for problem in listed):
        raise ValueError(
            "path: there is no run with an episode to report yet; `kernelrl run` first"
            + "".join(f"\n{note}" for note in notes)
        )
    labels = [agent["label"] for agent in store.experiment["agents"]]
    overview = overview_of(found, labels) if found else None
    return Reading(store.experiment, listed, overview, notes)


def size_of(run: Any) -> float:
    """Bytes of the data of a run's agent; NaN for one of another library, which stores its policy only."""
    return math.nan if is_peer(run.config["agent"]) else float(run.size())


def read_runs(runs: list[Any], problem: str, notes: list[str]) -> tuple[dict[str, Runs], bool]:
    """The finished runs of a problem by label, and whether any run has an episode."""
    found: dict[str, list[tuple[int, Any, float]]] = {}
    unfinished: list[str] = []
    begun = False
    for run in runs:
        try:
            history = run.history()
            begun = begun or len(history) > 0
            if not run.finished:
                unfinished.append(f"{run.label} seed {run.seed}")
            elif not np.isfinite(history["return"].to_numpy()).all():
                notes.append(f"{problem}: {run.label}, seed {run.seed} is left out: a return is not a finite number.")
            else:
                found.setdefault(run.label, []).append((run.seed, history, size_of(run)))
        except Exception as error:  # a damaged file must not hide the other runs
            notes.append(f"{problem}: {run.label}, seed {run.seed} cannot be read and is left out: {error}")
    if unfinished:
        notes.append(f"{problem}: not finished, and therefore not in this overview: {', '.join(unfinished)}.")
    by_label = {}
    for label, read in found.items():
        read.sort(key=lambda one: one[0])
        returns = tuple(history["return"].to_numpy().astype(float) for _, history, _ in read)
        seconds = np.array([history["seconds"][-1] for _, history, _ in read], float)
        lengths = tuple(history["steps"].to_numpy().astype(float) for _, history, _ in read)
        sizes = np.array([size for _, _, size in read], float)
        by_label[label] = Runs(tuple(seed for seed, _, _ in read), returns, lengths, seconds, sizes)
    return by_label, begun
