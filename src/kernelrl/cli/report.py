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
    overview: Annotated[
        bool, typer.Option("--overview", help="Of several problems only the overview, without a page for each.")
    ] = False,
    json: Json = False,
) -> None:
    """Write a report of an experiment: one HTML page, and the figures; of several problems also a page for each."""
    from kernelrl.reporting import write_report

    find_modules_here()
    written = write_report(folder, out, overview=overview)
    print(jsonlib.dumps({"report": str(written)}) if json else f"Written: {written}")
