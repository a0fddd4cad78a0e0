"""`kernelrl explain`."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelrl.cli.options import AgentFile, Json, Trust, check_folder, loaded, numbers_of

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent
    from kernelrl.agents.explaining import Explanation

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
    if figure is not None:
        check_folder("--figure", figure)
    with loaded(agent, trust) as saved:
        found = saved.explain(read_state(state, saved), step, nearest=nearest)
    if figure is not None:
        draw(found, figure)
    print(jsonlib.dumps(found.as_dict()) if json else found)


def draw(found: Explanation, file: Path) -> None:
    """The option --figure."""
    try:
        found.figure().savefig(file, dpi=150)
    except (ValueError, OSError) as error:  # more than two dimensions, an ending that matplotlib does not know, a disk
        raise ValueError(f"--figure {file}: {error}") from error


def read_state(text: str, agent: Agent) -> Any:
    """The option --state, in the shape of a state."""
    import numpy as np

    agent.check_started()
    spaces = agent.spaces
    return np.array(numbers_of(text, spaces.dimensions)).reshape(spaces.shape)
