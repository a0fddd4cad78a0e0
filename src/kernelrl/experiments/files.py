"""The files of a store: JSON files, histories as Parquet, folders; what is damaged is an error that names the file."""

from __future__ import annotations

import functools
import hashlib
import io
import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelrl.agents.files import replacing, sync_folder
from kernelrl.imports import one_line

if TYPE_CHECKING:
    import polars

__all__ = [
    "AGENT", "COLUMNS", "EXPERIMENT", "EXPERIMENT_SHAPE", "FORMAT", "FORMAT_SEVERAL", "HISTORY", "RUN", "RUN_SHAPE",
    "SEVERAL_SHAPE", "StoreError", "check_shape", "empty_history", "make_folder", "read_history", "read_json",
    "safe_name", "write_history",
]  # fmt: skip

FORMAT = 3
FORMAT_SEVERAL = 4  # of experiment.json with several problems, which earlier versions cannot read
EARLIER = {1: "stored values in other units", 2: "wrote hyper-parameters in another form"}
EXPERIMENT, HISTORY, RUN, AGENT = "experiment.json", "history.parquet", "run.json", "agent.krl"
COLUMNS = ("episode", "return", "steps", "seconds", "value")
MONITORED = ("below", "shortfall")

# The least that the JSON files must contain: a type, a table of keys, or a list of something.
EXPERIMENT_SHAPE = {
    "name": str, "episodes": int, "seeds": [int], "environment": {"id": str}, "agents": [{"label": str, "agent": str}],
}  # fmt: skip
SEVERAL_SHAPE = {
    "name": str, "episodes": int, "seeds": [int], "environments": [{"label": str, "id": str}],
    "agents": [{"label": str, "agent": str, "on": [str]}],
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
    missing = list(itertools.takewhile(lambda folder: not folder.exists(), (path, *path.parents)))
    path.mkdir(parents=True, exist_ok=True)
    for folder in missing:
        sync_folder(folder.parent)


def read_json(path: Path, newest: int = FORMAT) -> dict[str, Any]:
    """A JSON file of the store, if this version can read it: of formats from FORMAT to `newest`."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"{path} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged or not a file of kernelrl: {one_line(error)}") from error
    check_shape(content, {"format": int}, path)
    version = content["format"]
    if version > newest:
        raise StoreError(
            f"{path} was written by a newer version of kernelrl (format {version}, this version reads {newest}): "
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


@functools.cache
def kinds_of_columns(monitor: bool) -> dict[str, Any]:
    """The columns of a history and their types."""
    import polars

    kinds = [polars.Int64(), polars.Float64(), polars.Int64(), polars.Float64(), polars.Float64()]
    found = dict(zip(COLUMNS, kinds, strict=True))
    if monitor:
        found |= dict(zip(MONITORED, [polars.Int64(), polars.Float64()], strict=True))
    return found


def empty_history(monitor: bool = False) -> polars.DataFrame:
    """A history without episodes."""
    import polars

    return polars.DataFrame(schema=kinds_of_columns(monitor))


def write_history(path: Path, history: polars.DataFrame, sync_name: bool = True) -> None:
    """Write a history as Parquet; for `sync_name` see `replacing`."""
    content = io.BytesIO()  # polars starts a writer of its own for files, which costs more than writing a short one
    history.write_parquet(content)
    with replacing(path, sync_name) as file:
        file.write(content.getbuffer())


def read_history(path: Path, episodes: int) -> polars.DataFrame:
    """The first `episodes` rows of a history."""
    import polars

    if not path.exists():
        if episodes == 0:
            return empty_history()
        raise StoreError(f"{path} is missing, and the agent beside it has played {episodes} episodes")
    try:
        history = polars.read_parquet(path.read_bytes(), use_pyarrow=False)
        kinds = kinds_of_columns(monitor=any(name in history.columns for name in MONITORED))
        if list(history.schema.items()) != list(kinds.items()):
            history = history.select(polars.col(name).cast(kind) for name, kind in kinds.items())
    except Exception as error:  # damage makes polars raise errors of many kinds
        raise StoreError(f"{path} is damaged or cut short: {one_line(error)}") from error
    history = history.head(episodes)
    if empty := [name for name in history.columns if history[name].null_count()]:
        raise StoreError(f"{path} is damaged: a value is missing (null) in column {empty[0]}")
    if not np.array_equal(history["episode"].to_numpy(), np.arange(episodes)):
        raise StoreError(f"{path} is damaged: it does not hold episodes 0 to {episodes - 1} in order")
    return history
