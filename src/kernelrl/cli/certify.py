"""`kernelrl certify`."""

from __future__ import annotations

import json as jsonlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernelrl.cli.options import Json, Trust, find_modules_here, loaded, numbers_of

if TYPE_CHECKING:
    from kernelrl.agents.certificates import Certificate
    from kernelrl.certifying.declaration import Declaration
    from kernelrl.experiments.certifying import Logged
    from kernelrl.experiments.problems import Problem

__all__ = ["certify"]

MOST_STARTS = 6  # that are listed; of more only the one with the widest bounds
SAME_NOISE = "runs of one seed have the same random numbers in each episode, and are no more samples"


def certify(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|TABLE|AGENT",
            help="Folder of an experiment's results; transitions in a Parquet or CSV file or minari:ID; a saved agent.",
        ),
    ],
    model: Annotated[str, typer.Option(help="What is declared: a TOML file, or a name such as twin-rooms.")],
    delta: Annotated[float | None, typer.Option(help="Bounds hold with probability 1-delta; default 0.05.")] = None,
    cell: Annotated[float | None, typer.Option(help="The side of cells; default 0.005.")] = None,
    refine: Annotated[
        bool | None,
        typer.Option("--refine/--no-refine", help="Tighter bounds, for about twice the time; default: the model's."),
    ] = None,
    state: Annotated[
        list[str] | None, typer.Option(help="A state, as 0.1,0.2; repeatable. Default: the start states.")
    ] = None,
    step: Annotated[int, typer.Option(help="The step at which states are looked at, from 0.")] = 0,
    pool: Annotated[
        bool, typer.Option("--pool", help="Of a folder: one certificate, of one run of each seed.")
    ] = False,
    problem: Annotated[str | None, typer.Option(help="Of a folder with several problems: which one.")] = None,
    env: Annotated[
        str | None, typer.Option(help="Of a table or an agent: the environment, for its spaces and V*; not played.")
    ] = None,
    horizon: Annotated[int | None, typer.Option(help="Of a table: the number of steps of an episode.")] = None,
    actions: Annotated[int | None, typer.Option(help="Of a table without --env: how many actions there are.")] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="Of a table: a column that is not used; repeatable.")
    ] = None,
    trust: Trust = False,
    json: Json = False,
) -> None:
    """Bound the optimal values, from transitions and a declaration of how the system moves (docs/certificates.md)."""
    from kernelrl.console import Status
    from kernelrl.experiments.certifying import CELL, first
    from kernelrl.experiments.declared import read_model

    find_modules_here()
    options = Options(problem, env, horizon, actions, ignore, pool, trust)
    declared = read_model(model)
    found: list[Found] = []
    with Status() as status:
        status.say("Reading transitions")
        sources = options.read(source, declared.model, first(cell, declared.cell, CELL))
        for name, logged in sources.parts:
            status.say(f"Certifying {name}")
            began = time.perf_counter()
            try:
                made = logged.certify(declared, delta=delta, cell=cell, refine=refine, progress=False)
            except (TypeError, ValueError, MemoryError) as error:
                raise ValueError(f"{name}: {error}") from error
            found.append(Found(name, logged, made, made.check_declaration(), time.perf_counter() - began))
        status.say("Computing optimal values")
        optimal = None if sources.problem is None else sources.problem.optimal
    entries = [one.as_dict(state, step, optimal) for one in found]
    if json:
        without = [{"run": name, "reason": reason} for name, reason in sources.without]
        print(jsonlib.dumps({"source": source, "model": model, "certificates": entries, "without": without}))
    else:
        show(source, entries, sources.without)


# ------------------------------------------------------------------------------------------- where transitions are from


@dataclass(frozen=True)
class Sources:
    """Transitions by name, why some runs have none, and the problem they are from, if it is known."""

    parts: list[tuple[str, Logged]]
    problem: Problem | None
    without: list[tuple[str, str]]


@dataclass(frozen=True)
class Options:
    """What says how a source is read."""

    problem: str | None
    env: str | None
    horizon: int | None
    actions: int | None
    ignore: list[str] | None
    pool: bool
    trust: bool

    def refuse(self, names: tuple[str, ...], source: str) -> None:
        """Raise ValueError for options that say nothing here."""
        for name in names:
            if getattr(self, name):
                raise ValueError(f"--{name}: it does not apply to {source}; leave it out")

    def read(self, source: str, model: Any, cell: float) -> Sources:
        """The transitions of a folder, a saved agent or a table."""
        from kernelrl.agents.archive import is_agent

        path = Path(source)
        if path.is_dir():
            self.refuse(("env", "horizon", "actions", "ignore", "trust"), "a folder of results, which has its own")
            return self.of_folder(path)
        self.refuse(("problem", "pool"), "a single file")
        environment = None if self.env is None else problem_of(self.env)
        if path.is_file() and (path.suffix == ".krl" or is_agent(path)):
            self.refuse(("horizon", "actions", "ignore"), "a saved agent, which has its own")
            return Sources([(path.name, self.of_agent(path))], environment, [])
        self.refuse(("trust",), "a table")
        return Sources([(path.name, self.of_table(source, model, cell))], environment, [])

    def of_folder(self, path: Path) -> Sources:
        """The runs of an experiment."""
        from kernelrl.experiments.certifying import logged_in, together
        from kernelrl.experiments.store import open_store

        store = open_store(path)
        labels = [one.label for one in store.problems]
        if store.several and self.problem is None and len(labels) > 1:
            raise ValueError(f"--problem: {path} has several, and a model is of one; give one of {', '.join(labels)}")
        where = store.problem(self.problem) if self.problem is not None else store.problems[0]
        parts: list[tuple[str, Logged]] = []
        without: list[tuple[str, str]] = []
        taken: dict[int, str] = {}  # the run of each seed
        for run in store.runs():
            if run.problem == where.label:
                name = f"{run.label}, seed {run.seed}"
                if self.pool and run.seed in taken:
                    without.append((name, f"--pool has {taken[run.seed]}; {SAME_NOISE}"))
                    continue
                try:
                    parts.append((name, logged_in(run)))
                except ValueError as error:
                    without.append((name, str(error)))
                else:
                    taken[run.seed] = name
        if not parts:
            reasons = "".join(f"\n{name}: {reason}" for name, reason in without)
            raise ValueError(f"{path}: no run has transitions to certify{reasons or '; `kernelrl run` first'}")
        if self.pool:
            parts = [(f"{len(parts)} run{'s' * (len(parts) > 1)} together", together([one for _, one in parts]))]
        return Sources(parts, where, without)

    def of_agent(self, path: Path) -> Logged:
        """The transitions that a saved agent has kept."""
        from kernelrl.experiments.certifying import logged_by

        with loaded(path, self.trust) as agent:
            agent.check_started()
            try:
                return logged_by(agent)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from error

    def of_table(self, source: str, model: Any, cell: float) -> Logged:
        """The rows of a table."""
        from kernelrl.agents.certificates import read_rows
        from kernelrl.experiments.certifying import Logged

        if self.env is None and None in (self.horizon, self.actions, getattr(model, "rooms", None)):
            raise ValueError(
                "--env: give an environment's id, such as kernelrl/TwinRooms-v0, or else --horizon, --actions and a "
                "model with rooms"
            )
        try:
            rows, spaces, played = read_rows(
                source, model, self.env, self.horizon, self.actions, cell, self.ignore or ()
            )
        except TypeError as error:
            raise ValueError(str(error)) from error
        return Logged(rows, spaces, None, played)


def problem_of(env: str) -> Problem:
    """The environment of that id."""
    from kernelrl.experiments.problems import Problem

    return Problem(env, {"id": env}, 0)


# --------------------------------------------------------------------------------------------------------- what is said


@dataclass(frozen=True)
class Found:
    """One certificate."""

    name: str
    logged: Logged
    certificate: Certificate
    declaration: Declaration
    seconds: float

    def as_dict(self, given: list[str] | None, step: int, optimal: Any) -> dict[str, Any]:
        """Everything, as JSON."""
        made, H = self.certificate, self.certificate.spaces.horizon
        low, high = made.reward_range
        known = optimal if optimal is not None and optimal.horizon == H else None
        return {
            "run": self.name, "episodes": self.logged.episodes, "transitions": len(self.logged.rows.actions),
            "states": list(self.states(given, step, known)), "start_states": len(made.starts), "gap": made.gap,
            "possible": [low * (H - step), high * (H - step)], "delta": made.delta,
            "cells": [list(sides) for sides in made.cells], "refined": made.refined, "kept": made.kept.tolist(),
            "censored": made.censored.tolist(),
            "declaration": {"contradicted": not self.declaration.holds, "reason": self.declaration.reason},
            "seconds": self.seconds,
        }  # fmt: skip

    def states(self, given: list[str] | None, step: int, optimal: Any) -> Iterator[dict[str, Any]]:
        """The bounds at each state that is shown."""
        import numpy as np

        made = self.certificate
        starts = made.starts
        if given:
            starts = np.array([numbers_of(text, made.spaces.dimensions) for text in given])
        elif len(starts) > MOST_STARTS:
            lower, upper = made.at(starts, 0)
            starts = starts[np.argmax(upper - lower)][None]
        for x in starts:
            lower, upper = made.bounds(x.reshape(made.spaces.shape), step)
            value = None if optimal is None else float(optimal.values(x[None], step)[0])
            yield {
                "state": x.tolist(), "step": step, "lower": lower, "upper": upper, "gap": upper - lower,
                "optimal": value,
            }  # fmt: skip


def show(source: str, entries: list[dict[str, Any]], without: list[tuple[str, str]]) -> None:
    """Print all for people."""
    from rich.console import Console
    from rich.table import Table

    console, first = Console(highlight=False), entries[0]
    low, high = first["possible"]
    finer = ", and bounds between their corners" if first["refined"] else ""
    console.print(
        f"Bounds on the optimal values. They hold with probability {100 * (1 - first['delta']):g} % if the declaration "
        f"is true; all values lie from {low:g} to {high:g}. Cells: {sides_of(first)}{finer}."
    )
    known = any(one["optimal"] is not None for entry in entries for one in entry["states"])
    table = Table("from", "state", *(Column(name) for name in ("lower", "upper", "gap", *(["V*"] if known else []))))
    for entry in entries:
        for i, one in enumerate(entry["states"]):
            place = f"({', '.join(f'{c:g}' for c in one['state'])})"
            values = [one["lower"], one["upper"], one["gap"], *([one["optimal"]] if known else [])]
            cells = ["–" if v is None else f"{v:.3f}" for v in values]
            table.add_row(entry["run"] if i == 0 else "", place, *cells, end_section=one is entry["states"][-1])
    console.print(table)
    columns = ("episodes", "transitions", "kept", "fewest", "censored")
    counts = Table("from", *(Column(name) for name in columns))
    for entry in entries:
        numbers = (
            entry["episodes"],
            entry["transitions"],
            sum(entry["kept"]),
            min(entry["kept"]),
            sum(entry["censored"]),
        )
        counts.add_row(entry["run"], *(f"{n:,}" for n in numbers))
    console.print(counts)
    for line in remarks(entries, without):
        console.print(line, markup=False)


def Column(name: str) -> Any:  # noqa: N802
    """A column of numbers."""
    from rich.table import Column as RichColumn

    return RichColumn(name, justify="right")


def sides_of(entry: dict[str, Any]) -> str:
    """The sides of cells, each once."""
    return " and ".join(dict.fromkeys(" × ".join(f"{side:.4g}" for side in sides) for sides in entry["cells"]))


def remarks(entries: list[dict[str, Any]], without: list[tuple[str, str]]) -> Iterator[str]:
    """What else a reader must know."""
    yield (
        "Kept: samples that count, of states from which the next one says how it moved; fewest: of one action; "
        "censored: those that say nothing all the same, such as moves that ended at a wall."
    )
    if any(entry["start_states"] > MOST_STARTS for entry in entries):
        yield "There are many start states; shown is the one with the widest bounds."
    if len(entries) > 1:
        yield "Each certificate holds with that probability by itself, not all of them together."
    for entry in entries:
        if entry["declaration"]["contradicted"]:
            yield f"{entry['run']}: the data contradict the declaration: {entry['declaration']['reason']}"
        for one in entry["states"]:
            if one["optimal"] is not None and not one["lower"] <= one["optimal"] <= one["upper"]:
                yield f"{entry['run']}: V* is outside its bounds at {one['state']}; is the declaration true?"
    for reason in dict.fromkeys(reason for _, reason in without):
        yield f"Left out: {'; '.join(name for name, other in without if other == reason)}: {reason}"
