"""Tables of logged transitions in any of the forms that users have them: one array for each column.

A table is a polars or pandas frame, anything else that hands out Arrow data, a mapping of arrays, a Parquet or CSV
file, or a Minari dataset (`kernelrl.agents.minari_data`). `kernelrl.agents.rows` says which columns there are and
checks what they hold; here values are only brought into one form. In a mapping or a frame a column may hold arrays of
several numbers, (n, k) or (n, …), and a mapping may have one value for all rows. Rows are counted from 0.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents import minari_data
from kernelrl.imports import one_line

__all__ = ["Columns", "bad_value", "read_table"]

Columns = dict[str, npt.NDArray[Any]]
FORMS = (
    "a polars or pandas frame, a mapping of arrays, the path of a Parquet or CSV file, or a Minari dataset (an object, "
    'or "minari:ID")'
)
KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV"}


def read_table(table: Any) -> Columns:
    """The columns of a table by name, each (n,) or (n, …); an error names the column and the row."""
    if isinstance(table, str) and table.startswith(minari_data.PREFIX):
        table = minari_data.load(table.removeprefix(minari_data.PREFIX))
    if isinstance(table, str | os.PathLike):
        table = read_file(Path(table))
    if minari_data.is_dataset(table):
        return minari_data.columns_of(table)
    if isinstance(table, Mapping):
        return same_length({str(name): column_of(str(name), values) for name, values in table.items()})
    if module_of(table) == "pandas" and hasattr(table, "columns"):
        distinct([str(name) for name in table.columns])
        return {str(name): column_of(str(name), table[name].to_numpy()) for name in table.columns}
    if module_of(table) == "polars" or hasattr(table, "__arrow_c_stream__"):
        return from_polars(table)
    raise TypeError(f"table must be {FORMS}; got {type(table).__name__}")


def module_of(table: Any) -> str:
    """The package that the class of an object comes from."""
    return type(table).__module__.partition(".")[0]


def distinct(names: list[str]) -> None:
    """Reject columns of the same name."""
    if twice := [name for i, name in enumerate(names) if name in names[:i]]:
        raise ValueError(f'table: there are two columns "{twice[0]}"')


def read_file(path: Path) -> Any:
    """The file as a polars frame; all rows of a CSV file count for the types of its columns."""
    import polars

    if path.suffix.lower() not in KINDS:
        raise ValueError(f"table: {path} must end in {', '.join(KINDS)}; or give {FORMS}")
    if not path.is_file():
        raise FileNotFoundError(f"table: there is no file {path}")
    kind = KINDS[path.suffix.lower()]
    try:
        if kind == "CSV":
            return polars.read_csv(path, infer_schema_length=None)
        return polars.read_parquet(path, use_pyarrow=False)
    except Exception as error:  # damage makes polars raise errors of many kinds
        raise ValueError(f"table: {path} cannot be read as {kind}: {one_line(error)}") from error


def from_polars(table: Any) -> Columns:
    """The columns of a polars frame, or of Arrow data."""
    import polars

    frame = table.collect() if isinstance(table, polars.LazyFrame) else table
    frame = frame if isinstance(frame, polars.DataFrame) else polars.DataFrame(frame)
    columns = {}
    for name in frame.columns:
        series = frame[name]
        if series.null_count():
            raise bad_value(int(series.is_null().arg_max() or 0), name, "missing (null)", "every row needs a value")
        columns[name] = column_of(name, series.to_numpy())
    return columns


def column_of(name: str, values: Any) -> npt.NDArray[Any]:
    """A column as numbers, booleans or texts; anything else is an error that names the first row with it."""
    try:
        column = np.asarray(values)
    except ValueError:
        raise ValueError(f"table: column {name} has rows of different lengths") from None
    if column.dtype.kind in "biufU":
        return column
    if column.dtype.kind == "O":
        return from_objects(name, column)
    raise ValueError(f"table: column {name} must hold numbers, and its type is {column.dtype}")


def from_objects(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column of Python objects as an array of the numbers, or of the texts, that they are."""
    flat = column.reshape(-1)
    if len(flat) and all(isinstance(value, str) for value in flat):
        return column.astype(str)
    for i, value in enumerate(flat):
        if isinstance(value, np.ndarray | list | tuple) and column.ndim == 1:
            return column_of(name, np.stack([np.asarray(row) for row in flat]))
        if not isinstance(value, bool | int | float | np.number | np.bool_):
            missing = value is None or type(value).__name__ in ("NAType", "NaTType")
            said = "missing" if missing else f"{value!r:.60}"
            raise bad_value(i * len(column) // flat.size, name, said, "it must be a number")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise bad_value(
                i * len(column) // flat.size,
                name,
                f"a whole number of {value.bit_length()} bits",
                "give numbers of usual size",
            )
    return np.array(flat.tolist(), None if len(flat) else np.float64).reshape(column.shape)


def same_length(columns: Columns) -> Columns:
    """The columns of a mapping, all of the same length; one value stands for all rows."""
    lengths = {name: len(column) for name, column in columns.items() if column.ndim}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"table: columns must have the same number of rows, got {said}")
    n = next(iter(lengths.values()), 0)
    return {name: column if column.ndim else np.full(n, column) for name, column in columns.items()}


def bad_value(row: int, name: str, given: str, wanted: str) -> ValueError:
    """The error for a value that cannot be: where it is, what it is and what it must be."""
    return ValueError(f"table: row {row} (the first is 0), column {name}: the value is {given}; {wanted}")
