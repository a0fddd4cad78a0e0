"""`kernelrl explain`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelrl.cli.options import AgentFile, Json, Trust, find_modules_here

__all__ = ["explain"]


def explain(
    agent: AgentFile,
    state: Annotated[str, typer.Option(help="The state, as 0.1,0.2.")],
    step: Annotated[int, typer.Option(help="The step, from 0.")] = 0,
    nearest: Annotated[int, typer.Option(help="How many of the nearest samples are listed.")] = 8,
    figure: Annotated[Path | None, typer.Option(help="Also draw it, into a file such as why.png.")] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Say why a saved agent plays what it plays in a state."""
    from kernelrl.loading import load

    find_modules_here()
    loaded = load(agent, trust=trust)
    try:
        found = loaded.explain(read_state(state, loaded), step, nearest=nearest)
    except (TypeError, RuntimeError) as error:
        raise ValueError(str(error)) from error
    if figure is not None:
        found.figure().savefig(figure, dpi=150)
    print(jsonlib.dumps(found.as_dict()) if json else found)


def read_state(text: str, agent: Any) -> Any:
    """The option --state, in the shape of a state."""
    import numpy as np

    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--state {text}: give the numbers of a state, as 0.1,0.2") from None
    agent.check_started()
    spaces = agent.spaces
    if len(numbers) != spaces.dimensions:
        raise ValueError(f"--state {text}: states have {spaces.dimensions} numbers, got {len(numbers)}")
    return np.array(numbers).reshape(spaces.shape)
