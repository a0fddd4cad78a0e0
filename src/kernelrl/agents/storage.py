"""The arrays of an agent's state, as they are saved; hyper-parameters are the business of `kernelrl.agents.codec`."""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelrl.agents.archive import FORMAT, open_archive, write_file
from kernelrl.jit import fields

__all__ = [
    "FORMAT",
    "arrays_of",
    "copied",
    "read_header",
    "with_arrays",
    "write_file",
]


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of an agent's file."""
    with open_archive(path) as archive:
        return archive.header


# --------------------------------------------------------------------------------------------------------------- arrays


def arrays_of(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The saved arrays of a NamedTuple and of those inside it, by their dotted names.

    In settings these are the declared ones; elsewhere all except scratch (see `kernelrl.jit.fields`).
    """
    declared = fields.declared(type(model))
    for name, value in model._asdict().items():
        field = declared[name]
        if field is not None and field.scratch:
            continue
        if hasattr(value, "_fields"):
            yield from arrays_of(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray) and (field is not None or not in_settings(prefix)):
            yield prefix + name, fields.without_scratch(value, field)


def in_settings(prefix: str) -> bool:
    """Whether names with that prefix are hyper-parameters."""
    return "settings" in prefix.split(".")


def with_arrays(model: Any, arrays: dict[str, Any], prefix: str = "") -> Any:
    """The same NamedTuple with these arrays, by the names that `arrays_of` gives."""
    new = {}
    for name, value in model._asdict().items():
        if prefix + name in arrays:
            new[name] = arrays[prefix + name]
        elif hasattr(value, "_fields"):
            new[name] = with_arrays(value, arrays, f"{prefix}{name}.")
    return model._replace(**new)


def copied(model: Any, prefix: str = "") -> Any:
    """The same NamedTuple with copies of all arrays that data change, including scratch."""
    new, declared = {}, fields.declared(type(model))
    for name, value in model._asdict().items():
        if hasattr(value, "_fields"):
            new[name] = copied(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray) and (declared[name] is not None or not in_settings(prefix)):
            new[name] = value.copy()
    return model._replace(**new)
