"""The hyper-parameters of a peer: the keyword arguments of its constructor, and two of our own.

    horizon       H, the number of steps of an episode; default: the environment's time limit
    time_aware    whether observations contain the time h/H; default: true

Tables of an experiment's file become arguments by these rules:

    "none", "inf", "-inf"                   None and the infinities
    a list, such as train_freq = [1, "episode"]     a tuple
    {net_arch = [64, 64]}                   a dict
    {name = "module:Class", sigma = 0.1}    an object: the class, called with the other keys; lists are arrays
    activation_fn = "torch.nn:ReLU"         something imported, where the key ends with _class or _fn, or is policy
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from kernelrl.imports import imported, no_such

__all__ = ["OWN", "arguments", "check_names", "imports", "settings"]

OWN: dict[str, Any] = {"horizon": None, "time_aware": True}
OTHER_DEFAULTS = {
    "policy": "MlpPolicy",
    "device": "cpu",
}  # one core for each run, and the same numbers on every machine
NOT_GIVEN = {
    "env": "the experiment names the environment",
    "seed": "the experiment lists the seeds",
}
WORDS = {"none": None, "inf": float("inf"), "-inf": float("-inf")}


def defaults(cls: type[Any]) -> dict[str, Any]:
    """The names of all hyper-parameters with their defaults."""
    parameters = inspect.signature(cls).parameters
    given = {name: p.default for name, p in parameters.items() if name not in NOT_GIVEN and not name.startswith("_")}
    return {**OWN, **given, **{name: value for name, value in OTHER_DEFAULTS.items() if name in given}}


def check_names(cls: type[Any], given: Mapping[str, Any]) -> None:
    """Raise ValueError for a name that is not a hyper-parameter."""
    allowed = defaults(cls)
    for name in given:
        if name in NOT_GIVEN:
            raise ValueError(f"{name}: {NOT_GIVEN[name]}; leave it out")
        if name not in allowed:
            raise ValueError(no_such("hyper-parameter", name, allowed))


def settings(cls: type[Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """All hyper-parameters as JSON: those given, as they were given, and the defaults."""
    return {name: plain(value) for name, value in {**defaults(cls), **given}.items()}


def plain(value: Any) -> Any:
    """A default as JSON."""
    if value is None:
        return "none"
    try:
        return json.loads(json.dumps(value))
    except TypeError:  # an object: it is shown, and never read
        return str(value)


# ------------------------------------------------------------------------------------------------------------ decoding


def arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """The constructor's arguments of the hyper-parameters given, without our own."""
    found = {name: decoded(name, value) for name, value in given.items() if name not in OWN}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in found.items()}


def decoded(name: str, value: Any) -> Any:
    """One value of a table."""
    if isinstance(value, str):
        return imported(value) if is_import(name, value) else WORDS.get(value, value)
    if isinstance(value, list):
        return [decoded(name, item) for item in value]
    if not isinstance(value, dict):
        return value
    inside = {key: decoded(key, item) for key, item in value.items() if not is_object(value) or key != "name"}
    if not is_object(value):
        return inside
    made = {key: np.array(item) if isinstance(item, list) else item for key, item in inside.items()}
    try:
        return imported(value["name"])(**made)
    except (TypeError, AssertionError) as error:
        raise ValueError(f"{name}: {value['name']} cannot be made with {inside}: {error}") from error


def is_object(value: dict[str, Any]) -> bool:
    """Whether a table describes an object."""
    return isinstance(value.get("name"), str) and ":" in value["name"]


def is_import(name: str, value: str) -> bool:
    """Whether a text names something to import."""
    return ":" in value and (name == "policy" or name.endswith(("_class", "_fn")))


def imports(name: str, value: Any) -> Iterator[str]:
    """The paths that `decoded` would import."""
    if isinstance(value, str) and is_import(name, value):
        yield value
    elif isinstance(value, dict):
        if is_object(value):
            yield value["name"]
        for key, item in value.items():
            yield from imports(key, item)
    elif isinstance(value, list):
        for item in value:
            yield from imports(name, item)
