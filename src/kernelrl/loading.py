"""Loading agents from files, whatever their class."""

from __future__ import annotations

import importlib
import os
from typing import Any

import kernelrl
from kernelrl.agents import codec
from kernelrl.agents.archive import ArgumentError, Refused, open_archive
from kernelrl.agents.base import Agent
from kernelrl.agents.classes import AGENTS
from kernelrl.agents.restoring import restore, restore_open
from kernelrl.agents.rig_files import restore_rigs
from kernelrl.geometry import metrics
from kernelrl.imports import import_module, imported
from kernelrl.peers.library import is_peer

__all__ = ["load"]

KEYS = {"format": int, "version": str, "agent": str, "hyper_parameters": dict}


def load(path: str | os.PathLike[str], *, trust: bool = False, **functions: Any) -> Agent:
    """The agent that `save` wrote to `path`.

    The whole file is checked: the result is an agent that works, or a ValueError that names the file and says what is
    wrong. No code from the file is run. Hyper-parameters that are a user's own functions, such as a metric, must be
    given again, `kernelrl.load(path, metric=…)`, or `trust=True` allows importing them by the names in the file.
    Classes registered with `krl.register` need neither, once their modules have been imported.
    """
    with open_archive(path) as archive:
        header = archive.header
        check_keys(header)
        name, stored = header["agent"], header["hyper_parameters"]
        if isinstance(name, str) and name in kernelrl.__all__:
            getattr(kernelrl, name)  # this imports the class
        if is_peer(name):
            raise Refused(f"holds {name}, an agent of Stable-Baselines3, which kernelrl.peers.load opens")
        if name not in AGENTS:
            raise Refused(
                f"holds an agent of class {name!r}, which is not known here; import the module that defines it"
            )
        cls = AGENTS[name]
        check_functions(path, cls, stored, functions)
        same_keys("hyper_parameters", stored, cls.hyper_parameters)
        options = {
            key: functions[key] if key in functions else codec.decode(key, item, FileImports(trust))
            for key, item in stored.items()
        }
        agent = cls(**options)
        if "started" in header:
            restore(agent, header["started"], archive)
            if "open" in header:
                restore_open(agent, cls(**options), header["open"], archive)
            if "rigs" in header:
                restore_rigs(agent, cls(**options), header["rigs"], archive)
        else:
            archive.check_names([])
    return agent


class FileImports(codec.Imports):
    """What a file may import: nothing, since that runs code, unless the user trusts the file.

    The functions of this package need no trust.
    """

    def __init__(self, trust: bool) -> None:
        self._trust = trust

    def function(self, argument: str, path: str) -> Any:
        """The function "module:function"."""
        importlib.import_module("kernelrl.envs")  # this registers its folding maps
        for function in metrics.SHIPPED_FOLDS:
            if codec.function_path(argument, function) == path:
                return function
        saved, supply = f"was saved with the function {path} as {argument}", f"krl.load(path, {argument}=…)"
        if not self._trust:
            raise Refused(
                f"{saved}, and importing it would run code; supply it: {supply}; or, if you trust the file, "
                "krl.load(path, trust=True) imports it"
            )
        try:
            if path.partition(":")[0] == "__main__":
                raise ValueError("functions of a script cannot be imported by name")
            return imported(path)
        except ValueError as error:
            why = str(error).removeprefix(f'"{path}" cannot be imported: ')
            raise Refused(f"{saved}, which cannot be imported ({why}); supply it: {supply}") from error

    def module(self, argument: str, kind: str, name: str, module: str) -> None:
        """Import the module that registers the class of that kind and name."""
        saved = f'was saved with the {kind} "{name}" as {argument}, which the module {module} registers'
        if not self._trust:
            raise Refused(
                f"{saved}, and that has not been imported; import {module} before loading; or, if you trust the file, "
                "krl.load(path, trust=True) imports it"
            )
        try:
            if module == "__main__":
                raise ValueError("the classes of a script cannot be imported by name")
            import_module(module)
        except ValueError as error:
            why = str(error).removeprefix(f'"{module}" cannot be imported: ')
            raise Refused(
                f"{saved}, and that cannot be imported ({why}); register the class before loading, or supply the "
                f"object: krl.load(path, {argument}=…)"
            ) from error


def check_keys(header: dict[str, Any]) -> None:
    """Raise ValueError unless the header has its keys with values of the right types."""
    further = [key for key in ("started", "open", "rigs") if key in header and "started" in header]
    if len(further) > 2:
        raise ValueError("the header has both open and rigs")
    same_keys("the header", header, (*KEYS, *further))
    for key, kind in {**KEYS, "started": dict, "open": dict, "rigs": dict}.items():
        if not isinstance(header.get(key, {}), kind if key in header else dict):
            raise ValueError(f"{key} in the header must be of type {kind.__name__}, got {header[key]!r}")


def same_keys(what: str, found: dict[str, Any], expected: Any) -> None:
    """Raise ValueError unless `found` has the expected keys and no others."""
    for key in expected:
        if key not in found:
            raise ValueError(f"{what} has no {key}")
    for key in found:
        if key not in expected:
            raise ValueError(f"{what} has {key}, which is not expected")


def check_functions(
    path: str | os.PathLike[str], cls: type[Agent], stored: dict[str, Any], functions: dict[str, Any]
) -> None:
    """Raise TypeError unless every function given is for a hyper-parameter that was saved as a function."""
    for key in functions:
        if key not in cls.hyper_parameters:
            raise ArgumentError(f"{key} is not a hyper-parameter of {cls.__name__}")
        if not codec.needs_code(key, stored.get(key)):
            raise ArgumentError(
                f"{key} was saved with the agent in {path} and cannot be changed on loading; leave it out"
            )
