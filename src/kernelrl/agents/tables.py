"""Tables of logged transitions in any of the forms that users have them: one array for each column.

A table is a polars or pandas frame, anything else that hands out Arrow data, a mapping of arrays, a Parquet or CSV
file, or a Minari dataset (`kernelrl.agents.minari_data`). `kernelrl.agents.rows` says what the columns mean and checks
what they hold; here values are only brought into one form. Columns that are not used are not looked at, whatever they
hold: those that the user ignores, those of `NOT_USED`, and those whose names are not known. In a mapping or a frame a
column may hold arrays of several numbers, (n, k) or (n, …), and a mapping may have one value for all rows. Rows are
counted from 0.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents import minari_data
from kernelrl.imports import one_line

__all__ = ["Columns", "Table", "bad_value", "listed", "read_table"]

Columns = dict[str, npt.NDArray[Any]]
USED = re.compile(r"(state|next_state|action)(_\d+)?|reward|terminated|step")
NOT_USED = ("episode", "truncated")  # known and allowed
FORMS = (
    "a polars or pandas frame, a mapping of arrays, the path of a Parquet or CSV file, or a Minari dataset (an object, "
    'or "minari:ID")'
)
WANTED = "must be an array or a list with a value for each row, or one number for all rows"
KINDS = {".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV"}


class Table(NamedTuple):
    """The columns of a table that may be used, and the names of all."""

    columns: Columns  # each (n,) or (n, …)
    names: list[str]  # of all columns
    ignored: list[str]  # those that the user does not want
    episode: Any = None  # the column of that name as it was given, if there is one that is not ignored

    def unknown(self) -> list[str]:
        """The columns that are neither used nor known nor ignored."""
        return [name for name in self.names if name not in (*self.columns, *self.ignored, *NOT_USED)]


def read_table(table: Any, ignore: Iterable[str] = ()) -> Table:
    """The columns of a table by name; an error names the column and the row."""
    ignored = names_of(ignore)
    raw = raw_columns(table)
    names = list(raw)
    for name in ignored:
        if name not in raw:
            raise ValueError(f'ignore: there is no column "{name}"; the table has {listed(names)}')
    used = [name for name in names if USED.fullmatch(name) and name not in ignored]
    columns = same_length({name: column_of(name, raw[name]) for name in used})
    return Table(columns, names, ignored, raw["episode"] if "episode" in raw and "episode" not in ignored else None)


def names_of(ignore: Any) -> list[str]:
    """The names of the columns to ignore: those given, or the only one."""
    if isinstance(ignore, str):
        return [ignore]
    if not isinstance(ignore, Iterable):
        raise TypeError(f'ignore must be names of columns, such as ["weather", "operator"]; got {ignore!r:.60}')
    return [str(name) for name in ignore]


def raw_columns(table: Any) -> dict[str, Any]:
    """The columns of a table by name, as they are."""
    if isinstance(table, str) and table.startswith(minari_data.PREFIX):
        table = minari_data.load(table.removeprefix(minari_data.PREFIX))
    if isinstance(table, str | os.PathLike):
        table = read_file(Path(table))
    if minari_data.is_dataset(table):
        return dict(minari_data.columns_of(table))
    if isinstance(table, Mapping):
        distinct([str(name) for name in table])
        return {str(name): values for name, values in table.items()}
    if module_of(table) == "pandas" and hasattr(table, "columns"):
        distinct([str(name) for name in table.columns])
        return {str(name): table[name] for name in table.columns}
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
    if kind == "CSV":
        check_separator(path)
    try:
        if kind == "CSV":
            return with_numbers(polars.read_csv(path, infer_schema_length=None))
        return polars.read_parquet(path, use_pyarrow=False)
    except Exception as error:  # damage makes polars raise errors of many kinds
        raise ValueError(f"table: {path} cannot be read as {kind}: {one_line(error)}") from error


def with_numbers(frame: Any) -> Any:
    """The frame of a CSV file without spaces around names, and with numbers where polars has found texts.

    It takes neither "nan", as Python writes it, nor " 0.5" for a number.
    """
    import polars

    found = []
    for column in frame.rename(str.strip).iter_columns():
        if column.dtype == polars.String:
            numbers = column.str.strip_chars().cast(polars.Float64, strict=False)
            column = numbers if numbers.null_count() == column.null_count() else column
        found.append(column)
    return polars.DataFrame(found)


def check_separator(path: Path) -> None:
    """Reject a CSV file whose names are separated by semicolons or tabs: its numbers may have decimal commas, too."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            names = file.readline(100_000)
    except OSError:  # reading it will say so
        return
    for separator, called in ((";", "semicolons"), ("\t", "tabs")):
        if separator in names and "," not in names:
            raise ValueError(
                f"table: {path} has {called} between its columns; read it with polars.read_csv(path, "
                f"separator={separator!r}), which also has decimal_comma=True, and give the frame"
            )


def from_polars(table: Any) -> dict[str, Any]:
    """The columns of a polars frame, or of Arrow data, as polars has them."""
    import polars

    frame = table.collect() if isinstance(table, polars.LazyFrame) else table
    frame = frame if isinstance(frame, polars.DataFrame) else polars.DataFrame(frame)
    return {name: frame[name] for name in frame.columns}


def column_of(name: str, values: Any) -> npt.NDArray[Any]:
    """A column as numbers, booleans or texts; anything else is an error that names the first row with it."""
    check_gaps(name, values)
    try:
        column = np.asarray(values.to_numpy() if is_series(values) else values)
    except Exception as error:  # of the user's class, or of NumPy
        if isinstance(values, list | tuple):
            check_even(name, values)
        raise ValueError(f"table: column {name} {WANTED}; got {kind_of(values)}: {one_line(error)}") from error
    if column.ndim == 0 and column.dtype.kind not in "biufU":
        raise ValueError(f"table: column {name} {WANTED}; got {kind_of(values)}")
    if column.dtype.kind in "biufU" or column.size == 0:
        return column if column.size else np.zeros(column.shape)
    if column.dtype.kind == "O":
        return from_objects(name, column)
    raise ValueError(f"table: column {name} must hold numbers, and its type is {column.dtype}")


def is_series(values: Any) -> bool:
    """Whether this is a column of a polars or pandas frame."""
    return module_of(values) in ("polars", "pandas") and hasattr(values, "to_numpy")


def check_gaps(name: str, values: Any) -> None:
    """Reject a column of polars or a masked array in which values are missing."""
    if module_of(values) == "polars" and is_series(values):
        gaps, said = values.is_null().to_numpy() if values.null_count() else (), "missing (null)"
    else:
        gaps, said = np.ma.getmaskarray(values) if np.ma.isMaskedArray(values) else (), "missing (masked)"
    if np.any(gaps):
        row = int(np.argwhere(np.atleast_1d(gaps))[0, 0])
        raise bad_value(row, name, said, "every row needs a value: leave this one out")


def kind_of(values: Any) -> str:
    """What was given instead of a column."""
    return "None" if values is None else f"an object of type {type(values).__name__}"


def check_even(name: str, rows: Any) -> None:
    """Reject a column whose rows are arrays of different shapes."""
    shapes = [shape_of(row) for row in rows]
    for i, shape in enumerate(shapes):
        if shape is None:
            raise bad_value(i, name, f"{rows[i]!r:.60}", "it must be a number or a list of numbers")
        if shape != shapes[0]:
            n = math.prod(shapes[0] or ())
            raise bad_value(i, name, f"{rows[i]!r:.60}", f"every row must have as many numbers as row 0, which has {n}")


def shape_of(row: Any) -> tuple[int, ...] | None:
    """The shape of an array or a list; None if its own rows differ in length."""
    try:
        return tuple(np.shape(row))
    except ValueError:
        return None


def from_objects(name: str, column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A column of Python objects as an array of the numbers, or of the texts, that they are."""
    flat = column.reshape(-1)
    if len(flat) and all(isinstance(value, str) for value in flat):
        return column.astype(str)
    for i, value in enumerate(flat):
        if isinstance(value, np.ndarray | list | tuple) and column.ndim == 1:
            check_even(name, flat)
            return column_of(name, np.stack([np.asarray(row) for row in flat]))
        if not isinstance(value, bool | int | float | Decimal | np.number | np.bool_):
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
    numbers = [float(value) if isinstance(value, Decimal) else value for value in flat.tolist()]
    return np.array(numbers, None if len(flat) else np.float64).reshape(column.shape)


def same_length(columns: Columns) -> Columns:
    """The columns of a mapping, all of the same length; one value stands for all rows."""
    lengths = {name: len(column) for name, column in columns.items() if column.ndim}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"table: columns must have the same number of rows, got {said}")
    if columns and not lengths:
        raise ValueError(
            f"table: {listed(columns)} have one value each; at least one column must be an array, with a value for "
            "each row"
        )
    n = next(iter(lengths.values()), 0)
    if columns and n == 0:
        raise ValueError("table: it has no rows; at least one is needed")
    return {name: column if column.ndim else np.full(n, column) for name, column in columns.items()}


def bad_value(row: int, name: str, given: str, wanted: str) -> ValueError:
    """The error for a value that cannot be: where it is, what it is and what it must be."""
    return ValueError(f"table: row {row} (the first is 0), column {name}: the value is {given}; {wanted}")


def listed(names: Iterable[str]) -> str:
    """Names in quotes."""
    return ", ".join(f'"{name}"' for name in names) or "no columns"
