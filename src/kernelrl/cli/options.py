"""What several commands share."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["AgentFile", "EnvId", "Json", "Trust", "check_folder", "find_modules_here", "loaded", "numbers_of"]

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


@contextlib.contextmanager
def loaded(file: Path, trust: bool) -> Iterator[Agent]:
    """The agent in a file. What it cannot do, asked for within this block, is an error of the request: a ValueError."""
    from kernelrl.loading import load

    find_modules_here()
    agent = load(file, trust=trust)
    try:
        yield agent
    except (TypeError, RuntimeError) as error:
        raise ValueError(str(error)) from error


def numbers_of(text: str, dimensions: int) -> list[float]:
    """The option --state: the numbers of a state."""
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--state {text}: give the numbers of a state, as 0.1,0.2") from None
    if len(numbers) != dimensions:
        raise ValueError(f"--state {text}: states have {dimensions} numbers, got {len(numbers)}")
    return numbers


def check_folder(option: str, file: Path) -> None:
    """Raise ValueError if the folder of a file that an option names does not exist."""
    if not file.parent.is_dir():
        raise ValueError(f"{option}: there is no folder {file.parent}")
