"""The classes of agents by name; `kernelrl.load` finds them here."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import kernelrl

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["AGENTS", "register"]

AGENTS: dict[str, type[Agent]] = {}
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def register(cls: type[Agent]) -> None:
    """Register a class; raise TypeError if its name is taken or its agents could not be loaded from a file."""
    name, known = cls.__name__, AGENTS.get(cls.__name__)
    ours = name in kernelrl.__all__ and not cls.__module__.startswith("kernelrl.")
    if ours or (known is not None and file_of(known) != file_of(cls)):
        other = "kernelrl" if known is None else known.__module__
        raise TypeError(
            f"{other} has an agent {name} already, and files name agents by their class; choose another name"
        )
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    names = [parameter.name for parameter in parameters]
    if not any(parameter.kind in VARIABLE for parameter in parameters) and set(names) != set(cls.hyper_parameters):
        raise TypeError(
            f"{name}.hyper_parameters must name the arguments of {name}, {names}, got {cls.hyper_parameters}"
        )
    AGENTS[name] = cls


def file_of(cls: type[Agent]) -> str:
    """The file of a class: a script may run as __main__ and be imported as a module, and a cell may run again."""
    return getattr(sys.modules.get(cls.__module__), "__file__", None) or cls.__module__
