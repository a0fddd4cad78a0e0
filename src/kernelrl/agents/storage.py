"""What is saved of an agent: hyper-parameters as JSON, and the arrays of its state (see `kernelrl.agents.archive`).

Functions of the user's are saved by their import path, `module:name`. Loading never imports them by itself, since that
runs code: the caller gives them, or says that the file is to be trusted. Functions of this package need neither.
"""

import dataclasses
import importlib
import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from kernelrl.agents import schedules
from kernelrl.agents.archive import FORMAT, Refused, open_archive, write_file
from kernelrl.bonuses import smoothed as bonuses
from kernelrl.geometry import kernels, metrics
from kernelrl.jit import fields

__all__ = [
    "FORMAT",
    "arrays_of",
    "copied",
    "decode",
    "encode",
    "holds_function",
    "read_header",
    "with_arrays",
    "write_file",
]

# Objects that are saved field by field: the kind that stands in the file, and the class.
SAVED = {
    "lp": metrics.Lp,
    "folded": metrics.Folded,
    "custom": metrics.Custom,
    "power": schedules.Power,
}
BONUSES = {cls.__name__: cls for cls in (bonuses.Simplified, bonuses.Full, bonuses.Joint)}


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The header of an agent's file."""
    with open_archive(path) as archive:
        return archive.header


# --------------------------------------------------------------------------------------------------------------- arrays


def arrays_of(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of a NamedTuple and of those inside it that are saved, by their dotted names.

    Of settings these are the ones that are declared; elsewhere all that are not scratch (see `kernelrl.jit.fields`).
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
    """The same NamedTuple with arrays put in, by the names that `arrays_of` gives them."""
    new = {}
    for name, value in model._asdict().items():
        if prefix + name in arrays:
            new[name] = arrays[prefix + name]
        elif hasattr(value, "_fields"):
            new[name] = with_arrays(value, arrays, f"{prefix}{name}.")
    return model._replace(**new)


def copied(model: Any, prefix: str = "") -> Any:
    """The same NamedTuple with copies of all arrays that change as data come, scratch included."""
    new, declared = {}, fields.declared(type(model))
    for name, value in model._asdict().items():
        if hasattr(value, "_fields"):
            new[name] = copied(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray) and (declared[name] is not None or not in_settings(prefix)):
            new[name] = value.copy()
    return model._replace(**new)


# ------------------------------------------------------------------------------------------------------------ functions


def function_path(function: Any) -> str:
    """`module:name` of a function of the user's."""
    plain = getattr(function, "py_func", function)
    if not hasattr(plain, "__qualname__"):
        raise ValueError(f"{function!r} cannot be saved, since it has no name to import it by; give a plain function")
    return f"{plain.__module__}:{plain.__qualname__}"


def import_function(path: Any, argument: str, trust: bool) -> Any:
    """The function that `function_path` named, if it is one of this package or the file is trusted."""
    if not isinstance(path, str):
        raise ValueError(f"{argument}: a function is named by module:name, got {path!r}")
    importlib.import_module("kernelrl.envs")  # which makes its folds known
    for function in metrics.SHIPPED_FOLDS:
        if function_path(function) == path:
            return function
    supply = f"krl.load(path, {argument}=…)"
    if not trust:
        raise Refused(
            f"was saved with the function {path} as {argument}, and importing it would run code; supply it: {supply}; "
            "or, if you trust the file, krl.load(path, trust=True) imports it"
        )
    module, _, name = path.partition(":")
    try:
        if module == "__main__":
            raise ImportError("functions of a script cannot be imported by name")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:  # a module may raise anything
        raise Refused(
            f"was saved with the function {path} as {argument}, which cannot be imported ({error}); supply it: {supply}"
        ) from error
    return found


# ----------------------------------------------------------------------------------------------------- hyper-parameters


def encode(value: Any) -> Any:
    """A hyper-parameter as JSON."""
    if isinstance(value, kernels.Kernel):
        saved = {"kind": "kernel", "name": value.name, "power": value.power}
        if value.name not in (*kernels.KERNELS, "exponential-power") or decode(saved) != value:
            raise ValueError(f"kernel: {value!r} cannot be saved; only the kernels of krl.kernels can")
        return saved
    for kind, cls in SAVED.items():
        if type(value) is cls:
            return {"kind": kind, **encode_fields(value)}
    if type(value) in BONUSES.values():
        return {"kind": "bonus", "name": type(value).__name__, **encode_fields(value)}
    if callable(value):
        return {"kind": "function", "function": function_path(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [encode(item) for item in value]}
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value


def encode_fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as JSON; functions by their names, tuples as lists."""
    found = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        is_object = isinstance(item, tuple(SAVED.values()))
        found[field.name] = function_path(item) if callable(item) and not is_object else encode(item)
        if isinstance(item, tuple):
            found[field.name] = [encode(part) for part in item]
    return found


def decode(value: Any, argument: str = "", trust: bool = False) -> Any:
    """A hyper-parameter from JSON; `argument` is its name, and `trust` allows to import functions."""
    if not isinstance(value, dict):
        return value
    value = dict(value)
    kind = value.pop("kind", None)
    if kind == "kernel":
        name, power = value.pop("name", None), value.pop("power", None)
        return kernels.ExponentialPower(power) if name == "exponential-power" else kernels.resolve_kernel(name)
    if kind == "bonus":
        return known(argument, BONUSES, value.pop("name", None))(**value)
    if kind == "function":
        return import_function(value.get("function"), argument, trust)
    if kind == "tuple":
        items = value.get("items")
        if not isinstance(items, list):
            raise ValueError(f"{argument}: a tuple has a list of items, got {items!r}")
        return tuple(decode(item, argument, trust) for item in items)
    cls = known(argument, SAVED, kind)
    for name in ("map", "function"):
        if name in value:
            value[name] = import_function(value[name], argument, trust)
    if cls is metrics.Lp and value.get("p") == "inf":
        value["p"] = math.inf
    return cls(**{name: decode(item, argument, trust) for name, item in value.items()})


def known(argument: str, table: dict[str, Any], name: Any) -> Any:
    """What is known under that name."""
    if not isinstance(name, str) or name not in table:
        raise ValueError(f"{argument}: there is nothing of kind {name!r}")
    return table[name]


def holds_function(value: Any) -> bool:
    """Whether `encode` wrote a function of the user's there."""
    return isinstance(value, dict) and value.get("kind") in ("custom", "folded", "function")
