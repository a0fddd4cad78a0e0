"""The command line: `kernelrl run`, `report`, `list`, `solve`, `theory`.

What a command has to say goes to standard output, as one JSON object with `--json`; progress and errors go to standard
error. The exit status is 0 if all is well, 1 if a run failed, 2 if what was asked for makes no sense and 130 after
Ctrl-C. Modules are imported by the command that needs them, so that none waits for the others'.
"""

from __future__ import annotations

import importlib
import json as jsonlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kernelrl.experiments import Result

__all__ = ["app", "main"]

app = typer.Typer(
    name="kernelrl",
    help="Sample-efficient exploration in continuous state spaces by optimistic kernel-based reinforcement learning.",
    no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
EnvId = Annotated[
    str,
    typer.Argument(metavar="ENV", help="An environment's id, such as kernelrl/TwinRooms-v0; module:id; module:Class."),
]


def main() -> None:
    """Run the command line."""
    try:
        app()
    except (ValueError, OSError) as error:  # of this package's own making, or of a disk: they say what is wrong
        print(f"kernelrl: {error}", file=sys.stderr)
        if "--json" in sys.argv:
            print(jsonlib.dumps({"error": str(error)}))
        sys.exit(2)


@app.callback(invoke_without_command=True)
def options(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """Options of the command itself."""
    if version:
        from kernelrl import __version__

        print(__version__)
        raise typer.Exit


@app.command()
def run(
    experiment: Annotated[str, typer.Argument(metavar="NAME_OR_FILE", help="Of the catalogue, or a TOML file.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the results; results/NAME unless given.")] = None,
    episodes: Annotated[int | None, typer.Option(help="Instead of the experiment's own number.")] = None,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds, instead of the experiment's own.")] = None,
    workers: Annotated[int | None, typer.Option(help="Runs at a time; as many as cores unless given.")] = None,
    engine: Annotated[str, typer.Option(help="local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Of the Ray cluster, with --engine ray.")] = None,
    checkpoint: Annotated[float, typer.Option(help="Seconds of learning between checkpoints.")] = 20.0,
    json: Json = False,
) -> None:
    """Run an experiment, or what is left of it."""
    from kernelrl.experiments.runner import run as run_experiment

    result = run_experiment(
        experiment, out, episodes=episodes, seeds=seeds, workers=workers, engine=engine, address=address,
        checkpoint_seconds=checkpoint,
    )  # fmt: skip
    summary = summarise(result)
    if json:
        print(jsonlib.dumps(summary))
    else:
        given: dict[str, Any] = {"episodes": episodes, "seeds": seeds, "workers": workers, "address": address}
        given["engine"] = None if engine == "local" else engine
        given["checkpoint"] = None if checkpoint == 20.0 else checkpoint
        options = [f"--{name}={value}" for name, value in given.items() if value is not None]
        show(summary, result, shlex.join(["kernelrl", "run", experiment, "--out", str(result.store.path), *options]))
    if not result.finished:
        raise typer.Exit(130 if result.interrupted else 1)


def find_modules_here() -> None:
    """Let environments and agents be named by modules of the current folder, as `run` does with those beside its file.

    They come last, so that nothing that lies here takes the place of an installed module.
    """
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


def summarise(result: Result) -> dict[str, Any]:
    """What became of every run."""
    experiment, runs = result.store.experiment, []
    for agent in experiment["agents"]:
        for seed in experiment["seeds"]:
            found = result.store.run(agent["label"], seed)
            row: dict[str, Any] = {"label": found.label, "seed": seed, "path": str(found.path)}
            try:
                history = found.history()
                row |= {"episodes": len(history), "finished": found.finished, "total_return": history["return"].sum()}
                row["seconds"] = history["seconds"][-1] if len(history) else 0.0
            except ValueError as error:
                row |= {"episodes": 0, "finished": False, "error": str(error)}
            if (agent["label"], seed) in result.failed:
                row["error"] = result.failed[agent["label"], seed]
            runs.append(row)
    return {
        "experiment": experiment["name"], "path": str(result.store.path), "episodes": experiment["episodes"],
        "finished": result.finished, "interrupted": result.interrupted, "failed": len(result.failed), "runs": runs,
    }  # fmt: skip


def show(summary: dict[str, Any], result: Result, again: str) -> None:
    """The summary for people."""
    by_label: dict[str, list[dict[str, Any]]] = {}
    for row in summary["runs"]:
        by_label.setdefault(row["label"], []).append(row)
    width = max(map(len, by_label))
    for label, rows in by_label.items():
        whole = [row for row in rows if row["finished"]]
        text = f"{label:{width}}  {len(whole)} of {len(rows)} runs finished"
        if whole:
            mean = sum(row["total_return"] for row in whole) / len(whole)
            seconds = sum(row["seconds"] for row in whole) / len(whole)
            text += f", total reward {mean:.6g} on average, {seconds:.3g} s of learning each"
        print(text)
    for line in advice(summary, result, again):
        print(line, file=sys.stderr)
    if result.finished:
        print(f"Stored in {summary['path']}; kernelrl report {shlex.quote(summary['path'])} draws it")


def advice(summary: dict[str, Any], result: Result, again: str) -> list[str]:
    """What to do about runs that are not finished; `again` is the command that was given."""
    unreadable: list[str] = []
    begun: list[str] = []
    nothing: list[str] = []
    for row in summary["runs"]:
        key = (row["label"], row["seed"])
        if key in result.failed:
            kind = unreadable if key in result.unreadable else begun if row["episodes"] else nothing
            kind.append(f"{row['label']} seed {row['seed']}")
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


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of an experiment's results.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; DIR/report unless given.")] = None,
    json: Json = False,
) -> None:
    """Write a report of an experiment: one HTML page, and the figures."""
    find_modules_here()
    written = importlib.import_module("kernelrl.reporting").write_report(folder, out)
    print(jsonlib.dumps({"report": str(written)}) if json else f"Written: {written}")


@app.command("list")
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


@app.command()
def solve(
    env: EnvId,
    tolerance: Annotated[float, typer.Option(help="Accuracy of the values.")] = 1e-3,
    json: Json = False,
) -> None:
    """Compute the optimal values of an environment."""
    find_modules_here()
    importlib.import_module("kernelrl.envs.optimal").solve_command(env, tolerance, json)


@app.command()
def theory(
    env: EnvId,
    episodes: Annotated[int, typer.Option(help="Number of episodes K.")] = 50_000,
    delta: Annotated[float, typer.Option(help="Probability δ with which the guarantees may fail.")] = 0.05,
    bandwidth: Annotated[float | None, typer.Option(help="σ; diameter·K^(-1/(2d+1)) unless given.")] = None,
    regularization: Annotated[float, typer.Option(help="β.")] = 0.01,
    kernel: Annotated[str, typer.Option(help="gaussian or compact.")] = "gaussian",
    lipschitz: Annotated[
        tuple[float, float] | None, typer.Option(help="λ_r and λ_p; those of our own environments are known.")
    ] = None,
    stationary: Annotated[bool, typer.Option("--stationary/--per-step", help="Pool the data of all steps.")] = True,
    json: Json = False,
) -> None:
    """Show what the theory says about an environment."""
    find_modules_here()
    importlib.import_module("kernelrl.theory").command(
        env, episodes=episodes, json=json, delta=delta, bandwidth=bandwidth, regularization=regularization,
        kernel=kernel, stationary=stationary, lipschitz=lipschitz,
    )  # fmt: skip
