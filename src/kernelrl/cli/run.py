"""`kernelrl run`."""

from __future__ import annotations

import itertools
import json as jsonlib
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelrl.cli.options import Json
from kernelrl.imports import require

if TYPE_CHECKING:
    from kernelrl.experiments import Result

__all__ = ["run"]


def run(
    experiment: Annotated[
        str, typer.Argument(metavar="NAME_OR_FILE", help="An experiment of the catalogue, or a TOML file.")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder of the results; default results/NAME.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Number of episodes, instead of the experiment's own.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, instead of the experiment's own.")] = None,
    workers: Annotated[int | None, typer.Option(help="Runs at the same time; default: as many as cores.")] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Address of the Ray cluster, with --engine ray.")] = None,
    checkpoint: Annotated[float, typer.Option(help="Seconds of learning between checkpoints.")] = 20.0,
    report: Annotated[bool, typer.Option("--report", help="Write the report when all runs are finished.")] = False,
    json: Json = False,
) -> None:
    """Run an experiment, or continue it."""
    from kernelrl.experiments.runner import run as run_experiment

    if report:
        require("--report", "matplotlib", "plotly")  # not after hours of learning

    result = run_experiment(
        experiment, out, episodes=episodes, seeds=seeds, workers=workers, engine=engine, address=address,
        checkpoint_seconds=checkpoint,
    )  # fmt: skip
    summary = summarise(result)
    if report and result.finished:
        from kernelrl.reporting import report_of

        summary["report"] = str(report_of(result.store, result.store.path / "report"))
    if json:
        print_json(summary, rows_of(result))
    else:
        given: dict[str, Any] = {"episodes": episodes, "seeds": seeds, "workers": workers, "address": address}
        given["engine"] = None if engine == "local" else engine
        given["checkpoint"] = None if checkpoint == 20.0 else checkpoint
        options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        options += ["--report"] if report else []
        show(summary, result, shlex.join(["kernelrl", "run", experiment, "--out", str(result.store.path), *options]))
    if not result.finished:
        raise typer.Exit(130 if result.interrupted else 1)


def summarise(result: Result) -> dict[str, Any]:
    """The result without that of each run."""
    experiment = result.store.experiment
    return {
        "experiment": experiment["name"], "path": str(result.store.path), "episodes": experiment["episodes"],
        "finished": result.finished, "interrupted": result.interrupted, "failed": len(result.failed),
    }  # fmt: skip


def rows_of(result: Result) -> Iterator[dict[str, Any]]:
    """The result of every run, one at a time, since there may be many."""
    for found in result.store.planned():
        row: dict[str, Any] = {
            "problem": found.problem, "label": found.label, "seed": found.seed, "path": str(found.path),
        }  # fmt: skip
        try:
            history, finished = found.history_and_end()
            row |= {"episodes": len(history), "finished": finished, "total_return": history["return"].sum()}
            row["seconds"] = history["seconds"][-1] if len(history) else 0.0
        except ValueError as error:
            row |= {"episodes": 0, "finished": False, "error": str(error)}
        if found.key in result.failed:
            row["error"] = result.failed[found.key]
        yield row


def print_json(summary: dict[str, Any], rows: Iterator[dict[str, Any]]) -> None:
    """Print one JSON object: the summary, and `runs` with a row for each run."""
    print(jsonlib.dumps(summary)[:-1], end=', "runs": [')
    for i, row in enumerate(rows):
        print(", " * (i > 0), jsonlib.dumps(row), sep="", end="")
    print("]}")


def show(summary: dict[str, Any], result: Result, again: str) -> None:
    """The summary for people."""
    several, before = result.store.several, None
    width = max(len(agent["label"]) for agent in result.store.experiment["agents"])
    for (problem, label), rows in itertools.groupby(rows_of(result), lambda row: (row["problem"], row["label"])):
        if several and problem != before:
            print(f"{problem}:")
            before = problem
        print(f"{'  ' * several}{label:{width}}  {results_of(rows)}")
    for line in advice(result, again):
        print(line, file=sys.stderr)
    if "report" in summary:
        print(f"Stored in {summary['path']}\nWritten: {summary['report']}")
    elif result.finished:
        print(f"Stored in {summary['path']}; kernelrl report {shlex.quote(summary['path'])} draws it")


def results_of(rows: Iterator[dict[str, Any]]) -> str:
    """The runs of one label on one problem."""
    runs = finished = 0
    total = seconds = 0.0
    for row in rows:
        runs += 1
        if row["finished"]:
            finished, total, seconds = finished + 1, total + row["total_return"], seconds + row["seconds"]
    text = f"{finished} of {runs} runs finished"
    if not finished:
        return text
    means = total / finished, seconds / finished
    return f"{text}, total reward {means[0]:.6g} on average, {means[1]:.3g} s of learning each"


def advice(result: Result, again: str) -> list[str]:
    """What to do about runs that are not finished; `again` is the command that was given."""
    unreadable: list[str] = []
    begun: list[str] = []
    nothing: list[str] = []
    for run in result.store.planned():
        if run.key in result.failed:
            kind = unreadable if run.key in result.unreadable else begun if run.has_checkpoint else nothing
            kind.append(f"{' '.join(run.key[:-1])} seed {run.seed}")
    lines = []
    if unreadable:
        lines.append(f"Damaged: {', '.join(unreadable)}. Remove the folders named above; they are then learnt again.")
    if begun:
        lines.append(
            f"Failed: {', '.join(begun)}. Once the cause is removed, they go on from their last checkpoints; "
            "hyper-parameters cannot be changed under the same label."
        )
    if nothing:
        lines.append(
            f"Failed before anything was stored: {', '.join(nothing)}. Correct the experiment or the code; these runs "
            "then begin again."
        )
    if result.interrupted:
        lines.append("Interrupted.")
    return [*lines, f"To go on: {again}"] if lines else []
