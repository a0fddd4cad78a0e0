"""Where an experiment's results are stored, and how they are read.

    DIR/experiment.json                       the experiment, its sweeps expanded
    DIR/runs/LABEL/seed-S/history.parquet     one row per episode: episode, return, steps, seconds, value;
                                              for monitored runs also below, shortfall
    DIR/runs/LABEL/seed-S/run.json            configuration, versions, machine
    DIR/runs/LABEL/seed-S/agent.krl           the latest checkpoint
    DIR/runs/LABEL/seed-S/agent-EPISODE.krl   the agent after that many episodes, for the first seed

The agent's file determines how far a run is, since a run continues from it. A checkpoint writes the history first, then
snapshots, then the agent, then run.json, each by renaming. If it is killed at any point, the history has at least the
episodes of the agent's file; later ones are dropped when it is read. Before the first checkpoint there is no agent's
file; a run without one has learnt nothing, and begins again with the experiment's current settings.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelrl.agents.files import replacing, sync_folder, write_json
from kernelrl.imports import one_line

if TYPE_CHECKING:
    import polars

__all__ = [
    "FORMAT", "Run", "Store", "StoreError", "empty_history", "is_free", "load", "make_folder", "open_store",
    "read_json", "safe_name", "write_history",
]  # fmt: skip

FORMAT = 3
EARLIER = {1: "stored values in other units", 2: "wrote hyper-parameters in another form"}
EXPERIMENT, HISTORY, RUN, AGENT = "experiment.json", "history.parquet", "run.json", "agent.krl"
COLUMNS = ("episode", "return", "steps", "seconds", "value")
MONITORED = ("below", "shortfall")

# The least that the JSON files must contain: a type, a table of keys, or a list of something.
EXPERIMENT_SHAPE = {
    "name": str, "episodes": int, "seeds": [int], "environment": {"id": str}, "agents": [{"label": str, "agent": str}],
}  # fmt: skip
RUN_SHAPE = {"configuration": {"agent": str, "hyper_parameters": dict, "environment": {"id": str}}, "episodes": int}
WORDS = {str: "a text", int: "a whole number", dict: "a table"}


class StoreError(ValueError):
    """A store, or a file of it, that cannot be read; the message names the file."""


def safe_name(label: str) -> str:
    """`label` as the name of a folder: itself if that is safe, else its safe characters and a hash of the whole."""
    plain = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9 ._=+,()-]{0,79}", label) and label[-1] not in ". "
    if plain and not re.search(r"-[0-9a-f]{8}$", label):
        return label
    remains = re.sub(r"[^A-Za-z0-9._=+-]+", "_", label).strip("._-")[:60]
    return f"{remains or 'run'}-{hashlib.sha256(label.encode()).hexdigest()[:8]}"


def make_folder(path: Path) -> None:
    """Make a folder and those above it, synced to disk."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file of the store, if this version can read it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged or not a file of kernelrl: {one_line(error)}") from error
    check_shape(content, {"format": int}, path)
    version = content["format"]
    if version > FORMAT:
        raise StoreError(
            f"{path} was written by a newer version of kernelrl (format {version}, this version reads {FORMAT}): "
            "upgrade kernelrl"
        )
    if version < FORMAT:
        raise StoreError(
            f"{path} was written by an older version of kernelrl (format {version}, this version reads {FORMAT}), "
            f"which {EARLIER.get(version, 'is not known')}: run the experiment again into another folder"
        )
    return dict(content)


def check_shape(content: Any, shape: Any, path: Path, place: str = "the content") -> None:
    """Raise StoreError unless the `content` of a JSON file has the `shape` (see `EXPERIMENT_SHAPE`)."""
    kind: Any = shape if isinstance(shape, type) else type(shape)
    if not isinstance(content, kind) or isinstance(content, bool):
        word = WORDS.get(kind, "a list")
        raise StoreError(f"{path} is damaged: {place} must be {word}, and is {shortened(content)}")
    if isinstance(shape, dict):
        for key, inner in shape.items():
            check_shape(content.get(key), inner, path, key if place == "the content" else f"{place}.{key}")
    elif isinstance(shape, list):
        for i, item in enumerate(content):
            check_shape(item, shape[0], path, f"{place}[{i}]")


def shortened(value: Any) -> str:
    """A value in few characters."""
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}…"


# ------------------------------------------------------------------------------------------------------------ history


def empty_history(monitor: bool = False) -> polars.DataFrame:
    """A history without episodes."""
    import polars

    kinds = [polars.Int64, polars.Float64, polars.Int64, polars.Float64, polars.Float64]
    schema = dict(zip(COLUMNS, kinds, strict=True))
    if monitor:
        schema |= dict(zip(MONITORED, [polars.Int64, polars.Float64], strict=True))
    return polars.DataFrame(schema=schema)


def write_history(path: Path, history: polars.DataFrame) -> None:
    """Write a history as Parquet."""
    with replacing(path) as file:
        history.write_parquet(file)


def read_history(path: Path, episodes: int) -> polars.DataFrame:
    """The first `episodes` rows of a history."""
    import polars

    if not path.exists():
        if episodes == 0:
            return empty_history()
        raise StoreError(f"{path} is missing, and the agent beside it has played {episodes} episodes")
    try:
        history = polars.read_parquet(path, use_pyarrow=False)
        schema = empty_history(monitor=any(name in history.columns for name in MONITORED)).schema
        history = history.select(polars.col(name).cast(kind) for name, kind in schema.items())
    except Exception as error:  # damage makes polars raise errors of many kinds
        raise StoreError(f"{path} is damaged or cut short: {one_line(error)}") from error
    history = history.head(episodes)
    if empty := [name for name in history.columns if history[name].null_count()]:
        raise StoreError(f"{path} is damaged: a value is missing (null) in column {empty[0]}")
    if not history["episode"].equals(polars.Series("episode", range(episodes), polars.Int64)):
        raise StoreError(f"{path} is damaged: it does not hold episodes 0 to {episodes - 1} in order")
    return history


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

    @property
    def has_checkpoint(self) -> bool:
        """Whether anything learnt is stored; before the first checkpoint the folder may contain only run.json."""
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
        """Whether all episodes that the experiment asks for are stored, and run.json says so."""
        return min(self.episodes, int(self.record["episodes"])) >= self.planned

    def history(self) -> polars.DataFrame:
        """Episode, return, steps, seconds and value of every stored episode; below and shortfall if monitored."""
        return read_history(self.path / HISTORY, self.episodes)

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


@dataclass(frozen=True)
class Store:
    """The folder of an experiment."""

    path: Path

    @cached_property
    def experiment(self) -> dict[str, Any]:
        """The experiment: name, episodes, seeds, environment and agents."""
        content = read_json(self.path / EXPERIMENT)
        check_shape(content, {"experiment": EXPERIMENT_SHAPE}, self.path / EXPERIMENT)
        return dict(content["experiment"])

    def run(self, label: str, seed: int) -> Run:
        """One of the experiment's runs, begun or not."""
        return Run(label, seed, self.path / "runs" / safe_name(label) / f"seed-{seed}", self.experiment["episodes"])

    def runs(self) -> list[Run]:
        """The runs that have begun, in the experiment's order; their files are read only when needed."""
        every = [self.run(agent["label"], s) for agent in self.experiment["agents"] for s in self.experiment["seeds"]]
        return [run for run in every if any((run.path / name).exists() for name in (RUN, HISTORY, AGENT))]

    def write(self, experiment: dict[str, Any]) -> None:
        """Make this the store of `experiment`, or of its extension."""
        from kernelrl import __version__

        write_json(
            self.path / EXPERIMENT, {"format": FORMAT, "kernelrl": __version__, "experiment": experiment}
        )  # fmt: skip
        self.__dict__.pop("experiment", None)


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
    """All runs in one table: label, seed, episode, return, steps, seconds, value.

    If a run was monitored, there are also below and shortfall, which are null for the others.
    A run that cannot be read is an error that names its file; `open_store(path).runs()` gives the others.
    """
    import polars

    tables = []
    for run in open_store(path).runs():
        first = [polars.lit(run.label).alias("label"), polars.lit(run.seed, polars.Int64).alias("seed")]
        tables.append(run.history().select(*first, polars.all()))
    empty = empty_history().select(
        polars.lit("").alias("label"), polars.lit(0, polars.Int64).alias("seed"), *COLUMNS
    )  # fmt: skip
    return polars.concat([empty.clear(), *tables], how="diagonal")
