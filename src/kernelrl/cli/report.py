"""`kernelrl report`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from kernelrl.cli.options import Json, find_modules_here

__all__ = ["report"]


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an experiment's results.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; default DIR/report.")] = None,
    json: Json = False,
) -> None:
    """Write a report of an experiment: one HTML page, and the figures."""
    from kernelrl.reporting import write_report

    find_modules_here()
    written = write_report(folder, out)
    print(jsonlib.dumps({"report": str(written)}) if json else f"Written: {written}")
