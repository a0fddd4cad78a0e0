"""`kernelrl export`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from kernelrl.cli.options import AgentFile, Json, Trust, loaded

__all__ = ["export"]


def export(
    agent: AgentFile,
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write: policy.h (C99) or policy.json.")],
    name: Annotated[str, typer.Option(help="What all names in the C file begin with.")] = "kernelrl",
    precision: Annotated[str, typer.Option(help="Numbers in C: double, or float, which takes half.")] = "double",
    steps: Annotated[
        str | None, typer.Option(help="Steps whose tables are written, as 0,10,20, or how many of the first.")
    ] = None,
    labels: Annotated[str | None, typer.Option(help="What the actions are called, as shut,half,open.")] = None,
    environment: Annotated[str | None, typer.Option(help="Name of the environment, for the head of the file.")] = None,
    max_bytes: Annotated[int, typer.Option(help="The most that tables may take; 0: no limit.")] = 8 * 2**20,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how much memory it takes; write nothing.")] = False,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Write the policy of a saved agent as tables, in C or JSON."""
    with loaded(agent, trust) as saved:
        done = saved.export(
            path, name=name, precision=precision, steps=None if steps is None else read_steps(steps),
            labels=None if labels is None else labels.split(","), environment=environment,
            max_bytes=max_bytes or None, write=not dry_run,
        )  # fmt: skip
    if json:
        said = {"path": str(path), "kind": done.kind, "description": done.description, "bytes": done.bytes}
        print(jsonlib.dumps(said | {"file_bytes": done.file_bytes, "written": not dry_run}))
    else:
        print(f"{type(saved).__name__}: {done.description}, tables of {done.bytes:,} bytes")
        print(f"{'Not written' if dry_run else 'Written'}: {path}, a file of {done.file_bytes:,} bytes")


def read_steps(text: str) -> int | list[int]:
    """The option --steps."""
    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--steps {text}: give steps as 0,10,20, or how many of the first") from None
    return numbers if "," in text else numbers[0]
