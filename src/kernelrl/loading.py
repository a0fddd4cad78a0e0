"""Agents out of files, of whichever class they are."""

from __future__ import annotations

import os
from typing import Any

from kernelrl.agents import public, storage
from kernelrl.agents.archive import ArgumentError, Refused, open_archive
from kernelrl.agents.base import Agent
from kernelrl.agents.registry import AGENTS
from kernelrl.agents.restoring import restore
from kernelrl.algorithms import adaptive_ql, greedy_ucbvi, opt_ql, random_agent, ucbvi

__all__ = ["load"]

EVERY_AGENT = public, adaptive_ql, greedy_ucbvi, opt_ql, random_agent, ucbvi  # imported so that AGENTS knows them
KEYS = {"format": int, "version": str, "agent": str, "hyper_parameters": dict}


def load(path: str | os.PathLike[str], *, trust: bool = False, **functions: Any) -> Agent:
    """The agent that `save` wrote to `path`.

    The file is checked as a whole: an agent comes out of it that works, or a ValueError that names the file and says
    what is wrong. No code of the file's is run. Hyper-parameters that are functions of the user's own, such as a
    metric, must be given again, `kernelrl.load(path, metric=…)`; or `trust=True` allows to import them by the names
    that stand in the file.
    """
    with open_archive(path) as archive:
        header = archive.header
        check_keys(header)
        name, stored = header["agent"], header["hyper_parameters"]
        if name not in AGENTS:
            raise Refused(f"holds an agent of class {name!r}, which this version of kernelrl does not have")
        cls = AGENTS[name]
        check_functions(path, cls, stored, functions)
        same_keys("hyper_parameters", stored, cls.hyper_parameters)
        agent = cls(
            **{
                key: functions[key] if key in functions else storage.decode(item, key, trust)
                for key, item in stored.items()
            }
        )
        if "started" in header:
            restore(agent, header["started"], archive)
        else:
            archive.check_names([])
    return agent


def check_keys(header: dict[str, Any]) -> None:
    """Raise ValueError unless the header has its keys, and what they lead to is of the right type."""
    same_keys("the header", header, (*KEYS, *(["started"] if "started" in header else [])))
    for key, kind in {**KEYS, "started": dict}.items():
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
    """Raise TypeError unless the functions that were given are of hyper-parameters that were functions."""
    for key in functions:
        if key not in cls.hyper_parameters:
            raise ArgumentError(f"{key} is not a hyper-parameter of {cls.__name__}")
        if not storage.holds_function(stored.get(key)):
            raise ArgumentError(
                f"{key} was saved with the agent in {path} and cannot be changed on loading; leave it out"
            )
