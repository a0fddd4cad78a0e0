"""The transitions of runs whose agent has `transitions = true`, as Parquet beside the history.

Like the history the file is written before the agent's file, and the agent's file determines how far a run is. So it
has at least the transitions of the agent's episodes; later ones are dropped when it is read, and it is written as a
whole. Transitions of a run that was stopped or killed are thus complete and without doubles.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelrl.agents.files import replacing
from kernelrl.experiments.files import StoreError
from kernelrl.imports import one_line

if TYPE_CHECKING:
    import polars

__all__ = ["TRANSITIONS", "Recorded", "read_transitions"]

TRANSITIONS = "transitions.parquet"
COUNTED = ("episode", "step")


class Recorded:
    """The transitions of a run so far."""

    def __init__(self, path: Path, history: polars.DataFrame) -> None:
        """Those of the last checkpoint in the folder `path`, which are those of `history`."""
        self._path = path / TRANSITIONS
        self._parts = [read_transitions(path / TRANSITIONS, history)] if len(history) else []

    def add(self, part: Any) -> None:
        """Add those of one call of `fit`."""
        self._parts.append(part)

    def write(self) -> str:
        """Write all to the file; return its name."""
        import polars

        self._parts = [polars.concat(self._parts)]
        with replacing(self._path) as file:
            self._parts[0].write_parquet(file)
        return TRANSITIONS


def read_transitions(path: Path, history: polars.DataFrame) -> polars.DataFrame:
    """The transitions of the episodes of `history`, one row for each step."""
    import polars

    if not path.exists():
        raise StoreError(
            f"{path} is missing: the run's agent has no `transitions = true`, or the file was removed after "
            f"{len(history)} episodes"
        )
    try:
        found = polars.read_parquet(path, use_pyarrow=False)
        found = found.filter(polars.col("episode") < len(history))
        counted = found.select(polars.col(name).cast(polars.Int64) for name in COUNTED)
    except Exception as error:  # damage makes polars raise errors of many kinds
        raise StoreError(f"{path} is damaged or cut short: {one_line(error)}") from error
    if empty := [name for name in found.columns if found[name].null_count()]:
        raise StoreError(f"{path} is damaged: a value is missing (null) in column {empty[0]}")
    steps = history["steps"].to_numpy()
    ranges = history.select(polars.int_ranges(0, "steps").alias("step"), "episode").explode("step")
    if len(found) != steps.sum() or not counted.equals(ranges.select(*COUNTED)):
        raise StoreError(f"{path} is damaged: it does not hold every step of episodes 0 to {len(history) - 1} in order")
    return found
