"""`kernelrl solve`."""

from __future__ import annotations

import json as jsonlib
from typing import TYPE_CHECKING, Annotated, Any, TypeGuard

import typer

from kernelrl.cli.options import EnvId, Json, find_modules_here

if TYPE_CHECKING:
    from kernelrl.envs.optimal import OptimalValues
    from kernelrl.envs.outcomes import OutcomeValues
    from kernelrl.envs.sampled import SampledValues

    Values = OptimalValues | OutcomeValues | SampledValues

__all__ = ["solve"]

MOST_STARTS = 20  # that are listed; others are only part of the mean


def solve(
    env: EnvId,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="Accuracy of the values; by default 0.001, for some environments more. Of an environment without a "
            "motion: half of the width of the interval."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compute the optimal values of an environment."""
    from rich.console import Console

    find_modules_here()
    with Console(stderr=True).status(f"Computing the optimal values of {env} …"):
        found = optimal_values(env, tolerance)
    if json:
        print(jsonlib.dumps(as_json(env, found)))
    else:
        show(env, found)


def optimal_values(env_id: str, tolerance: float | None) -> Values:
    """The optimal values of the environment of that id, or a ValueError."""
    from kernelrl.envs.making import make_environment
    from kernelrl.envs.optimal import solve as solve_environment

    try:
        env = make_environment(env_id)
    except ValueError as error:
        raise ValueError(f"env: {error}") from error
    try:
        return solve_environment(env, tolerance)
    except RuntimeError as error:  # the tolerance is too small: a mistake in the request
        raise ValueError(str(error)) from error


def listed_starts(found: Values) -> Any:
    """The start states (s, d), or none if there are many."""
    return found.starts if len(found.starts) <= MOST_STARTS else found.starts[:0]


def is_sampled(found: Values) -> TypeGuard[SampledValues]:
    """Whether the values are estimates from draws."""
    from kernelrl.envs.sampled import SampledValues

    return isinstance(found, SampledValues)


def as_json(env_id: str, found: Values) -> dict[str, Any]:
    """What is printed with --json."""
    starts = listed_starts(found)
    values = found.values(starts, 0)
    drawn: dict[str, Any] = {}
    if is_sampled(found):
        names = ("interval", "played", "episodes", "draws", "sampling_error", "grid_error")
        drawn = {name: getattr(found, name) for name in names}
    return {
        "environment": env_id, "horizon": found.horizon, "start_value": found.start_value,
        "starts": [{"state": x.tolist(), "value": float(v)} for x, v in zip(starts, values, strict=True)],
        "tolerance": found.tolerance, "change": found.change, "cells": found.cells, **drawn,
    }  # fmt: skip


def show(env_id: str, found: Values) -> None:
    """Print the values for people."""
    from rich.console import Console
    from rich.table import Table

    console = Console()
    console.print(f"Optimal values of [bold]{env_id}[/], {found.horizon} steps per episode")
    table = Table()
    table.add_column("start")
    table.add_column("V*₁", justify="right")
    starts = listed_starts(found)
    for x, v in zip(starts, found.values(starts, 0), strict=True):
        table.add_row(f"({', '.join(f'{c:g}' for c in x)})", f"{v:.4f}")
    table.add_row("mean", f"{found.start_value:.4f}", style="bold")
    console.print(table)
    if is_sampled(found):
        show_errors(console, found)
        return
    console.print(
        f"No value changed by more than {found.change:.1g} (asked for: {found.tolerance:g}) when the grid was last "
        f"refined, to {found.cells} cells per axis of each room.",
        highlight=False,
    )


def show_errors(console: Any, found: SampledValues) -> None:
    """Print what is known about estimates from draws."""
    low, high = found.interval
    console.print(f"[bold]The mean is between {low:.4f} and {high:.4f}[/] (95 %).", highlight=False)
    console.print(
        f"These are estimates, since the environment declares no motion: from {found.draws} next states for each "
        f"point of a grid with {found.cells} cells per axis, each action and each step, four times over. The lower end "
        f"is what the best policy found collects in {found.episodes} episodes ({found.played:.4f}) less two standard "
        f"errors. The upper end is the grid's value and its errors: {found.sampling_error:.2g} (standard error) and "
        f"{found.grid_error:.2g} (by the change when the grid was last refined).",
        highlight=False,
    )
