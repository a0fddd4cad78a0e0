"""What several commands share."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AgentFile", "EnvId", "Json", "Trust", "find_modules_here"]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
EnvId = Annotated[
    str,
    typer.Argument(metavar="ENV", help="An environment's id, such as kernelrl/TwinRooms-v0; module:id; module:Class."),
]


AgentFile = Annotated[Path, typer.Argument(metavar="AGENT", help="A saved agent, such as agent.krl.")]
Trust = Annotated[bool, typer.Option("--trust", help="Import functions and classes that the agent's file names.")]


def find_modules_here() -> None:
    """Let environments and agents be named by modules of the current folder, as `run` does for those beside its file.

    They come last, so that they do not hide installed modules.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
