"""Where an experiment's results are stored, and how they are read.

    DIR/experiment.json                       the experiment, its sweeps expanded
    DIR/runs/LABEL/seed-S/history.parquet     one row per episode: episode, return, steps, seconds, value;
                                              for monitored runs also below, shortfall
    DIR/runs/LABEL/seed-S/transitions.parquet with `transitions = true`: one row per step (see `transitions`)
    DIR/runs/LABEL/seed-S/run.json            configuration, versions, machine
    DIR/runs/LABEL/seed-S/agent.krl           the latest checkpoint
    DIR/runs/LABEL/seed-S/agent-EPISODE.krl   the agent after that many episodes, for the first seed

An experiment over several problems has DIR/runs/PROBLEM/LABEL/seed-S in place of DIR/runs/LABEL/seed-S. How its reader
tells problems apart is explained in `problems`.

The agent's file determines how far a run is, since a run continues from it. A checkpoint writes the history first, then
snapshots, then run.json, and the agent last, each by renaming; the others are on disk before the agent's file gets its
name. If it is killed at any point, the history has at least the episodes of the agent's file; later ones are dropped
when it is read. Before the first checkpoint there is no agent's file; a run without one has learnt nothing, and begins
again with the experiment's current settings.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelrl.agents.files import write_json
from kernelrl.experiments.files import (
    AGENT,
    COLUMNS,
    EXPERIMENT,
    EXPERIMENT_SHAPE,
    FORMAT,
    FORMAT_SEVERAL,
    HISTORY,
    RUN,
    RUN_SHAPE,
    SEVERAL_SHAPE,
    StoreError,
    check_shape,
    empty_history,
    make_folder,
    read_history,
    read_json,
    safe_name,
    write_history,
)
from kernelrl.experiments.problems import Problem, problems_of
from kernelrl.imports import no_such

if TYPE_CHECKING:
    import polars

__all__ = [
    "AGENT", "EXPERIMENT", "FORMAT", "FORMAT_SEVERAL", "HISTORY", "RUN", "OneProblem", "Run", "Store", "StoreError",
    "empty_history", "is_free", "load", "make_folder", "open_store", "read_history", "read_json", "run_key",
    "safe_name", "write_history",
]  # fmt: skip

# --------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Run:
    """One agent with one seed, finished or not."""

    label: str
    seed: int
    path: Path
    """The run's folder."""
    planned: int = field(repr=False)
    """The number of episodes that the experiment asks for."""
    problem: str = ""
    """The label of its problem; with one `[environment]` the id of that."""
    several: bool = field(default=False, repr=False)
    """Whether the experiment has several problems."""
    planned_steps: int | None = field(default=None, repr=False)
    """The number of steps that the experiment asks for, in place of episodes."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Label and seed; with several problems that of the problem first."""
        return run_key(self)

    @property
    def has_checkpoint(self) -> bool:
        """Whether anything learnt is stored; before the first checkpoint there may be a folder without an agent."""
        return (self.path / AGENT).exists()

    @property
    def record(self) -> dict[str, Any]:
        """All of run.json."""
        content = read_json(self.path / RUN)
        check_shape(content, RUN_SHAPE, self.path / RUN)
        return content

    @property
    def config(self) -> dict[str, Any]:
        """What was run: agent, hyper_parameters, environment, monitor."""
        return dict(self.record["configuration"])

    @property
    def episodes(self) -> int:
        """How many episodes are stored."""
        from kernelrl.agents import storage

        file = self.path / AGENT
        if not self.has_checkpoint:
            return 0
        try:
            return int(storage.read_header(file)["started"]["episodes"])
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(str(error) if str(file) in str(error) else f"{file} is damaged: {error}") from error

    @property
    def finished(self) -> bool:
        """Whether all episodes, or steps, that the experiment asks for are stored."""
        if not self.has_checkpoint:
            return False
        episodes = min(self.episodes, self._recorded())
        if self.planned_steps is None:
            return episodes >= self.planned
        return self._reaches(read_history(self.path / HISTORY, episodes))

    def _recorded(self) -> int:
        """How many episodes run.json says there are, which may be other than the agent's where a run was killed."""
        return int(self.record["episodes"])

    def _reaches(self, history: polars.DataFrame) -> bool:
        """Whether a history has all that the experiment asks for."""
        if self.planned_steps is None:
            return len(history) >= self.planned
        return int(history["steps"].sum()) >= self.planned_steps

    def history(self) -> polars.DataFrame:
        """Episode, return, steps, seconds and value of every stored episode; below and shortfall if monitored."""
        return read_history(self.path / HISTORY, self.episodes)

    def history_and_end(self) -> tuple[polars.DataFrame, bool]:
        """`history()` and `finished`, for which each file is read once."""
        history = self.history()
        if not self.has_checkpoint:
            return history, False
        return history, self._reaches(history[: self._recorded()])

    def transitions(self) -> polars.DataFrame:
        """Every stored transition of an agent with `transitions = true`, a table for `Agent.learn_from`."""
        from kernelrl.experiments.transitions import TRANSITIONS, read_transitions

        return read_transitions(self.path / TRANSITIONS, self.history())

    def size(self) -> int:
        """How many bytes the data of the last checkpoint's agent take in memory."""
        from kernelrl.agents.archive import open_archive

        with open_archive(self.path / AGENT) as archive:
            return sum(array.nbytes for array in archive.outlines().values())

    def agent(self) -> Any:
        """The agent of the last checkpoint: a `kernelrl.Agent`, or a `Peer` for one of another library."""
        from kernelrl.experiments.objects import agent_class
        from kernelrl.loading import load as load_agent
        from kernelrl.peers.library import is_peer
        from kernelrl.peers.peer import load as load_peer

        name = self.config["agent"]
        if not is_peer(name):
            agent_class(name)  # imports it, which registers a user's own class
        try:
            if is_peer(name):
                return load_peer(self.path / AGENT, trust=True)
            return load_agent(self.path / AGENT, trust=True)  # the experiment names the functions in it
        except (ValueError, FileNotFoundError) as error:
            raise StoreError(str(error)) from error

    def snapshots(self) -> list[tuple[int, Path]]:
        """Files of earlier states of the agent, each with its number of episodes."""
        found = [(re.fullmatch(r"agent-(\d+)\.krl", path.name), path) for path in self.path.glob("agent-*.krl")]
        episodes = self.episodes
        return sorted((int(match[1]), path) for match, path in found if match and int(match[1]) <= episodes)


def run_key(run: Any) -> tuple[Any, ...]:
    """What names a run, or the job of one, within its experiment."""
    return (run.problem, run.label, run.seed) if run.several else (run.label, run.seed)


@dataclass(frozen=True)
class Store:
    """The folder of an experiment."""

    path: Path

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """The experiment: name, episodes, seeds, environment or environments, and agents."""
        file = self.path / EXPERIMENT
        content = read_json(file, FORMAT_SEVERAL)
        shape = SEVERAL_SHAPE if content["format"] == FORMAT_SEVERAL else EXPERIMENT_SHAPE
        check_shape(content, {"experiment": shape}, file)
        return dict(content["experiment"])

    @property
    def several(self) -> bool:
        """Whether the experiment has `[[environments]]`."""
        return "environments" in self.experiment

    @cached_property
    def problems(self) -> list[Problem]:
        """The problems, in the order of the file; one, if there is one `[environment]`."""
        return problems_of(self.experiment)

    def problem(self, label: str) -> Problem:
        """The problem of that label."""
        found = next((problem for problem in self.problems if problem.label == label), None)
        if found is None:
            raise ValueError("problem: " + no_such("problem", label, [problem.label for problem in self.problems]))
        return found

    def run(self, label: str, seed: int, problem: str | None = None) -> Run:
        """One of the experiment's runs, begun or not; `problem` is needed if there are several."""
        if problem is None and len(self.problems) > 1:
            raise ValueError(f"problem must be given, since {self.path} has several")
        where = self.problems[0] if problem is None else self.problem(problem)
        return next(self._of_label(where, label, [seed]))

    def _of_label(self, where: Problem, label: str, seeds: list[int]) -> Iterator[Run]:
        folders = [where.label, label] if self.several else [label]
        path = self.path.joinpath("runs", *map(safe_name, folders))
        for seed in seeds:
            yield Run(label, seed, path / f"seed-{seed}", where.episodes, where.label, self.several, where.steps)

    def planned(self) -> Iterator[Run]:
        """All runs of the experiment, begun or not, in its order; one at a time, since there may be many."""
        for problem in self.problems:
            for agent in self.experiment["agents"]:
                if not self.several or problem.label in agent["on"]:
                    yield from self._of_label(problem, agent["label"], self.experiment["seeds"])

    def begun(self) -> Iterator[Run]:
        """The runs that have a checkpoint, one at a time."""
        return (run for run in self.planned() if run.has_checkpoint)

    def runs(self) -> list[Run]:
        """The runs that have begun, in the experiment's order; their files are read only when needed."""
        return [run for run in self.planned() if any((run.path / name).exists() for name in (AGENT, RUN, HISTORY))]

    def only(self, problem: str) -> OneProblem:
        """The store as if that problem's environment were the experiment's only one."""
        return OneProblem(self.path, self, self.problem(problem))

    def write(self, experiment: dict[str, Any]) -> None:
        """Make this the store of `experiment`, or of its extension."""
        from kernelrl import __version__

        write_json(
            self.path / EXPERIMENT,
            {
                "format": FORMAT_SEVERAL if "environments" in experiment else FORMAT,
                "kernelrl": __version__,
                "experiment": experiment,
            },
        )
        self.__dict__.pop("experiment", None)
        self.__dict__.pop("problems", None)


@dataclass(frozen=True)
class OneProblem:
    """What a store has of one problem, in the form of a store with one environment."""

    path: Path
    """The folder of the whole store."""
    whole: Store
    problem: Problem

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """The experiment with `environment`, the problem's `episodes` (or `steps`) and the agents that run on it."""
        whole, label = self.whole.experiment, self.problem.label
        if not self.whole.several:
            return whole
        agents = [
            {
                **{key: value for key, value in agent.items() if key not in ("on", "at")},
                **agent.get("at", {}).get(label, {}),
            }
            for agent in whole["agents"]
            if label in agent["on"]
        ]
        limit = {"episodes": self.problem.episodes} | ({"steps": self.problem.steps} if self.problem.steps else {})
        rest = {"environment": self.problem.environment, "agents": agents}
        return {"name": whole["name"], **limit, "seeds": whole["seeds"], **rest}

    def runs(self) -> list[Run]:
        """The problem's runs that have begun."""
        return [run for run in self.whole.runs() if run.problem == self.problem.label]


def open_store(path: str | Path) -> Store:
    """The store in folder `path`."""
    store = Store(Path(path))
    if not (store.path / EXPERIMENT).is_file():
        what = "there is no such folder" if not store.path.exists() else f"it has no {EXPERIMENT}"
        makes = f"; `kernelrl run NAME --out {shlex.quote(str(path))}` makes one" if is_free(store.path) else ""
        raise StoreError(f"{path} is not a store of an experiment: {what}{makes}")
    _ = store.experiment  # raises an error if it is damaged or of another version
    return store


def is_free(path: Path) -> bool:
    """Whether an experiment can be stored in the folder `path`: it has no runs of an unknown experiment."""
    return not path.exists() or (path.is_dir() and not (path / "runs").exists())


def load(path: str | Path) -> polars.DataFrame:
    """All runs in one table: problem, label, seed, episode, return, steps, seconds, value.

    If a run was monitored, there are also below and shortfall, which are null for the others.
    A run that cannot be read is an error that names its file; `open_store(path).runs()` gives the others.
    """
    import polars

    def names(problem: str, label: str, seed: int) -> list[polars.Expr]:
        texts = [polars.lit(problem).alias("problem"), polars.lit(label).alias("label")]
        return [*texts, polars.lit(seed, polars.Int64).alias("seed")]

    tables = [
        run.history().select(*names(run.problem, run.label, run.seed), polars.all()) for run in open_store(path).runs()
    ]
    empty = empty_history().select(*names("", "", 0), *COLUMNS)
    return polars.concat([empty.clear(), *tables], how="diagonal")
