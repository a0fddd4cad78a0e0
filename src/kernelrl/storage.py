"""Saving and loading agents: one zip file of NumPy arrays and a JSON header, written atomically, no pickle.

The header holds the class, its hyper-parameters, the spaces, the seed and the number of episodes; the arrays are the
algorithm's state, random stream included. Functions of the user's are stored by their import path, `module:name`.
"""

import importlib
import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from kernelrl import schedules
from kernelrl.core import bonuses, kernels, metrics
from kernelrl.files import replacing

__all__ = [
    "FORMAT",
    "arrays_of",
    "copied",
    "decode",
    "encode",
    "holds_function",
    "read_file",
    "with_arrays",
    "write_file",
]

FORMAT = 1
HEADER = "kernelrl.json"
CHANGING = ("progress",)  # arrays of settings that change as data come


def changing(settings: Any) -> Iterator[str]:
    """The fields of the settings that are part of the state."""
    return (field for field in CHANGING if hasattr(settings, field))


def arrays_of(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The arrays of a NamedTuple and of those inside it, by their dotted names; of settings only those that change."""
    for name, value in zip(model._fields, model, strict=True):
        if isinstance(value, np.ndarray):
            yield prefix + name, value
        elif name == "settings":
            yield from ((f"{prefix}{name}.{field}", getattr(value, field)) for field in changing(value))
        elif hasattr(value, "_fields"):
            yield from arrays_of(value, f"{prefix}{name}.")


def with_arrays(model: Any, arrays: dict[str, Any], prefix: str = "") -> Any:
    """The same NamedTuple with its arrays replaced; a KeyError or ValueError if they don't fit."""
    new = {}
    for name, value in zip(model._fields, model, strict=True):
        if isinstance(value, np.ndarray):
            array = arrays[prefix + name]
            if array.dtype != value.dtype or array.ndim != value.ndim:
                raise ValueError(f"array {prefix + name} has type {array.dtype} and {array.ndim} axes")
            new[name] = np.ascontiguousarray(array)
        elif name == "settings":
            new[name] = value._replace(**{field: arrays[f"{prefix}{name}.{field}"] for field in changing(value)})
        elif hasattr(value, "_fields"):
            new[name] = with_arrays(value, arrays, f"{prefix}{name}.")
    return model._replace(**new)


def copied(model: Any) -> Any:
    """The same NamedTuple with copies of its arrays."""
    return with_arrays(model, {name: array.copy() for name, array in arrays_of(model)})


def function_path(function: Any) -> str:
    """`module:name` of a function of the user's."""
    plain = getattr(function, "py_func", function)
    return f"{plain.__module__}:{plain.__qualname__}"


def import_function(path: str, argument: str, use: str) -> Any:
    """The function that `function_path` named; the error says how to supply it otherwise."""
    module, _, name = path.partition(":")
    try:
        if module == "__main__":
            raise ImportError("functions of a script cannot be imported by name")
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"{argument}: the agent was saved with the function {path}, which cannot be imported ({error}); "
            f"supply it: krl.load(path, {use})"
        ) from error


def encode(value: Any) -> Any:
    """A hyper-parameter as JSON."""
    if isinstance(value, kernels.Kernel):
        return {"kind": "kernel", "name": value.name, "power": value.power}
    if isinstance(value, metrics.Lp):
        scale = list(value.scale) if isinstance(value.scale, tuple) else value.scale
        return {"kind": "lp", "p": "inf" if math.isinf(value.p) else value.p, "scale": scale}
    if isinstance(value, metrics.Folded):
        return {
            "kind": "folded",
            "map": function_path(value.map),
            "metric": encode(value.metric),
            "defect": value.defect,
        }
    if isinstance(value, metrics.Custom):
        return {"kind": "custom", "function": function_path(value.function)}
    if isinstance(value, bonuses.Simplified | bonuses.Full | bonuses.Joint):
        return {"kind": "bonus", "name": type(value).__name__, **vars(value)}
    if isinstance(value, schedules.Power):
        return {"kind": "power", **vars(value)}
    if callable(value):
        return {"kind": "function", "function": function_path(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return {"kind": "tuple", "items": [encode(item) for item in value]}
    return value


def decode(value: Any) -> Any:
    """A hyper-parameter from JSON."""
    if not isinstance(value, dict):
        return value
    kind = value["kind"]
    if kind == "kernel":
        if value["name"] == "exponential-power":
            return kernels.ExponentialPower(value["power"])
        return kernels.resolve_kernel(value["name"])
    if kind == "lp":
        return metrics.Lp(float(value["p"]), value["scale"])
    if kind == "folded":
        function = import_function(value["map"], "metric", "metric=…")
        return metrics.Folded(function, decode(value["metric"]), value["defect"])
    if kind == "custom":
        return metrics.Custom(import_function(value["function"], "metric", "metric=…"))
    if kind == "bonus":
        options = {key: item for key, item in value.items() if key not in ("kind", "name")}
        return getattr(bonuses, value["name"])(**options)
    if kind == "power":
        return schedules.Power(value["start"], value["minimum"], value["exponent"])
    if kind == "function":
        return import_function(value["function"], "bandwidth", "bandwidth=…")
    if kind == "tuple":
        return tuple(decode(item) for item in value["items"])
    raise ValueError(f"unknown kind of value {kind!r}")


def holds_function(value: Any) -> bool:
    """Whether `encode` wrote a function of the user's there."""
    return isinstance(value, dict) and value.get("kind") in ("custom", "folded", "function")


def write_file(path: str | os.PathLike[str], header: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Write header and arrays to `path` so that at any moment the old file or the new one is there whole."""
    with replacing(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr(HEADER, json.dumps({"format": FORMAT, **header}))
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)


class UnreadableFileError(ValueError):
    """A file that is whole, but not for us."""


def read_file(path: str | os.PathLike[str], header_only: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a file written by `write_file`; no arrays if `header_only`."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"path: there is no file {path}")
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as archive:
                header = read_header(archive, path)
                arrays = {
                    name.removesuffix(".npy"): np.lib.format.read_array(
                        io.BytesIO(archive.read(name)), allow_pickle=False
                    )
                    for name in archive.namelist()
                    if name.endswith(".npy") and not header_only
                }
        except UnreadableFileError:
            raise
        except Exception as error:  # damage makes zipfile, zlib, json and NumPy raise errors of many kinds
            raise ValueError(
                f"path: {path} is not a saved kernelrl agent, or it is damaged or cut short ({error})"
            ) from error
    return header, arrays


def read_header(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    """The header, if this version can read the file."""
    if HEADER not in archive.namelist():
        raise UnreadableFileError(f"path: {path} is a zip file, but not a saved kernelrl agent")
    header: dict[str, Any] = json.loads(archive.read(HEADER))
    if header["format"] > FORMAT:
        raise UnreadableFileError(
            f"path: {path} was saved by a newer version of kernelrl ({header.get('version')}, format "
            f"{header['format']}); this version reads up to format {FORMAT}: upgrade kernelrl"
        )
    return header
