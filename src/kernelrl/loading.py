"""Agents out of files, of whichever class they are."""

from __future__ import annotations

import os
from typing import Any

from kernelrl import agents, grid_agents, storage
from kernelrl.agent import AGENTS, Agent

__all__ = ["load"]

EVERY_AGENT = agents, grid_agents  # imported so that AGENTS knows them


def load(path: str | os.PathLike[str], **functions: Any) -> Agent:
    """The agent that `save` wrote to `path`.

    Hyper-parameters that are functions of the user's own and cannot be imported, such as a metric defined in a script,
    must be given again: `kernelrl.load(path, metric=…)`.
    """
    header, arrays = storage.read_file(path)
    name, stored = header.get("agent"), header.get("hyper_parameters", {})
    if name not in AGENTS:
        raise ValueError(f"path: {path} holds an agent of class {name!r}, which this version of kernelrl does not have")
    cls = AGENTS[name]
    for key in functions:
        if key not in cls._hyper_parameters:
            raise TypeError(f"{key} is not a hyper-parameter of {name}")
        if not storage.holds_function(stored.get(key)):
            raise TypeError(f"{key} was saved with the agent in {path} and cannot be changed on loading; leave it out")
    agent = cls(**{key: functions[key] if key in functions else storage.decode(stored[key]) for key in stored})
    if "started" in header:
        try:
            agent._restore(header["started"], arrays)
        except KeyError as error:
            raise ValueError(f"path: {path} is damaged: {error} is missing") from error
        except ValueError as error:
            raise ValueError(f"path: {path} is damaged: {error}") from error
    return agent
