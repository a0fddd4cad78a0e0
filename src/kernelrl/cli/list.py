"""`kernelrl list`."""

from __future__ import annotations

import json as jsonlib

from kernelrl.cli.options import Json

__all__ = ["list_all"]


def list_all(json: Json = False) -> None:
    """Show the catalogue of experiments, agents, environments, kernels and metrics."""
    from kernelrl.experiments.config import catalogue
    from kernelrl.experiments.objects import listing

    first_lines = {name: path.read_text().partition("\n")[0].lstrip("# ") for name, path in catalogue().items()}
    everything = {"experiments": first_lines, **listing()}
    if json:
        print(jsonlib.dumps(everything, ensure_ascii=False))
        return
    for kind, entries in everything.items():
        print(f"{kind}:")
        for name, text in entries.items():
            print(f"  {name:23} {text}")
