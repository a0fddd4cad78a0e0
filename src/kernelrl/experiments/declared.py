"""Declared models in files: how a system moves, for certificates (docs/certificates.md).

    kind = "displacement"                                            # the class: krl.models.Displacement
    rooms = [[[0.0, 0.0], [0.95, 1.0]], [[1.05, 0.0], [2.0, 1.0]]]   # its arguments, with pairs as lists
    variation = 0.0
    reward = "deterministic"                                         # or "noisy", or "module:function"
    reward_lipschitz = 10.0
    reward_of = "state"

    reward_range = [0.0, 1.0]     # the lowest and the highest reward that can be; not needed with a function
    delta = 0.05                  # optional, as arguments of `krl.certify`
    cell = 0.005
    refine = true

`kind = "exogenous"` is krl.models.Exogenous, whose functions are texts "module:function".

An experiment may have the same keys in a table `[model]`; a name, `model = "twin-rooms"`, is that of a file.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernelrl import models
from kernelrl.experiments.config import explain, read_toml
from kernelrl.experiments.entries import ExperimentError, ModelEntry
from kernelrl.imports import imported, no_such

__all__ = ["Declared", "declared", "model_files", "read_model"]

KINDS: dict[str, Any] = {"displacement": models.Displacement, "exogenous": models.Exogenous}
CATALOGUE = Path(models.__file__).parent / "catalogue"


@dataclass(frozen=True)
class Declared:
    """A model and how to certify with it."""

    model: Any
    reward_range: tuple[float, float] | None = None
    delta: float | None = None
    cell: float | None = None
    refine: bool = False


def model_files() -> dict[str, Path]:
    """The models that come with the package, by name."""
    return {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"))}


def read_model(source: str | Path) -> Declared:
    """The model of that name in the package or in that file; it may name functions of modules beside it."""
    path, content = read_table(source)
    try:
        entry = ModelEntry.model_validate(content)
    except ValidationError as error:
        lines = [explain(ModelEntry, problem, content) for problem in error.errors()]
        raise ExperimentError("\n".join(f"{path}: {line}" for line in lines)) from error
    return declared(entry, str(path))


def read_table(source: str | Path) -> tuple[Path, dict[str, Any]]:
    """The path and the content of a model; modules beside its file are found from now on."""
    path, content = read_toml(source, model_files(), "model")
    if path not in model_files().values() and str(path.resolve().parent) not in sys.path:
        sys.path.append(str(path.resolve().parent))
    return path, content


def declared(entry: ModelEntry, source: str) -> Declared:
    """The model of a table; an error begins with `source` and names the key."""
    try:
        if entry.kind not in KINDS:
            raise ValueError("kind: " + no_such("kind of model", entry.kind, KINDS))
        made = KINDS[entry.kind](**dict(arguments_of(entry)))
        if entry.refine:
            from kernelrl.certifying.refined import check_refined

            check_refined(made)
    except (TypeError, ValueError) as error:
        raise ExperimentError(f"{source}: {error}") from error
    pair = None if entry.reward_range is None else (entry.reward_range[0], entry.reward_range[1])
    return Declared(made, pair, entry.delta, entry.cell, bool(entry.refine))


def arguments_of(entry: ModelEntry) -> Iterator[tuple[str, Any]]:
    """The arguments of the class; texts "module:function" are functions where the class takes these."""
    fields = {field.name: field for field in dataclasses.fields(KINDS[entry.kind])}
    missing = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    if missing := [name for name in missing if name not in entry.others]:
        raise ValueError(f'{missing[0]} is missing; a model of kind "{entry.kind}" needs {", ".join(missing)}')
    for key, value in entry.others.items():
        if key not in fields:
            raise ValueError(no_such("key", key, [*ModelEntry.model_fields, *fields]))
        if "Callable" in str(fields[key].type) and isinstance(value, str) and ":" in value:
            found = imported(value)
            if not callable(found):
                raise ValueError(f'{key}: "{value}" is not a function')
            yield key, found
        elif str(fields[key].type).startswith("Callable"):
            raise ValueError(f'{key}: it must be a function, as a text "module:function"; got {value!r}')
        else:
            yield key, value
