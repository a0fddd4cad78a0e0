"""`kernelrl list`."""

from __future__ import annotations

import json as jsonlib

from kernelrl.cli.options import Json

__all__ = ["list_all"]


def list_all(json: Json = False) -> None:
    """Show the catalogue of experiments, declared models, agents, environments, kernels and metrics."""
    from kernelrl.experiments.config import catalogue
    from kernelrl.experiments.declared import model_files
    from kernelrl.experiments.objects import listing

    files = {"experiments": catalogue(), "models": model_files()}
    first_lines = {
        kind: {name: path.read_text().partition("\n")[0].lstrip("# ") for name, path in named.items()}
        for kind, named in files.items()
    }
    everything = {**first_lines, **listing()}
    if json:
        print(jsonlib.dumps(everything, ensure_ascii=False))
        return
    for kind, entries in everything.items():
        print(f"{kind}:")
        for name, text in entries.items():
            print(f"  {name:23} {text}")
