"""The command line: `kernelrl run`, `report`, `learn`, `list`, `solve`, `theory`; one file per command."""

from kernelrl.cli.main import app, main

__all__ = ["app", "main"]
