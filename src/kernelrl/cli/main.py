"""The command line as a whole.

The result of a command goes to standard output, as one JSON object with `--json`; progress and errors go to standard
error. The exit status is 0 for success, 1 if a run failed, 2 if the request cannot be carried out and 130 after Ctrl-C.
Each command imports only the modules that it needs, so that all start quickly.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from kernelrl.cli.certify import certify
from kernelrl.cli.explain import explain
from kernelrl.cli.export import export
from kernelrl.cli.learn import learn
from kernelrl.cli.list import list_all
from kernelrl.cli.report import report
from kernelrl.cli.run import run
from kernelrl.cli.solve import solve
from kernelrl.cli.theory import theory

__all__ = ["app", "main"]

app = typer.Typer(
    name="kernelrl",
    help="Sample-efficient exploration in continuous state spaces by optimistic kernel-based reinforcement learning.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
app.command()(run)
app.command()(report)
app.command()(learn)
app.command()(export)
app.command()(explain)
app.command()(certify)
app.command("list")(list_all)
app.command()(solve)
app.command()(theory)


def main() -> None:
    """Run the command line."""
    try:
        app()
    except (ValueError, OSError, ImportError) as error:  # from this package or a disk; they say what is wrong
        print(f"kernelrl: {error}", file=sys.stderr)
        if "--json" in sys.argv:
            print(json.dumps({"error": str(error)}))
        sys.exit(2)


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of the command itself."""
    if version:
        from kernelrl import __version__

        print(__version__)
        raise typer.Exit
