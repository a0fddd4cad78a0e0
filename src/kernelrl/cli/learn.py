"""`kernelrl learn`."""

from __future__ import annotations

import json as jsonlib
import os
import time
import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelrl.cli.options import Json, check_folder, find_modules_here

__all__ = ["learn"]


def learn(
    table: Annotated[
        str, typer.Argument(metavar="TABLE", help="Logged transitions: a Parquet or CSV file, or minari:ID.")
    ],
    env: Annotated[
        str, typer.Option(help="The environment they are from, which is not played: its id; module:id; module:Class.")
    ],
    out: Annotated[
        Path, typer.Option(help="File for the agent, such as agent.krl; only that of an agent is replaced.")
    ],
    agent: Annotated[str, typer.Option(help="Name of an agent, or module:Class of your own.")] = "KernelUCBVI",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A hyper-parameter, as in an experiment's file; repeatable."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN", help="A column of the table that is not used; repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the agent's random numbers, for learning on.")] = 0,
    json: Json = False,
) -> None:
    """Make an agent from logged transitions, and save it."""
    from kernelrl.agents import codec
    from kernelrl.experiments.config import AgentEntry
    from kernelrl.experiments.objects import build_agent

    find_modules_here()
    check_out(out, table)
    made = build_agent(AgentEntry.model_validate({**read_settings(settings or []), "label": agent, "agent": agent}))
    began = time.perf_counter()
    try:
        rows = made.learn_from(table, env=env, seed=seed, ignore=ignore or [])
    except TypeError as error:  # the agent and the environment do not fit together
        raise ValueError(str(error)) from error
    seconds = time.perf_counter() - began
    made.save(out)
    used = codec.encode_all(made.settings_used())
    if json:
        said = {"agent": agent, "environment": env, "rows": rows, "seconds": seconds, "path": str(out)}
        print(jsonlib.dumps(said | {"settings_used": used}))
    else:
        print(f"{agent} has learnt from {rows:,} transitions in {seconds:.1f} s: {codec.describe(used, digits=4)}")
        print(f"Written: {out}; kernelrl.load reads it")


def check_out(out: Path, table: str) -> None:
    """Reject a file for the agent that cannot be written, or that holds anything but an agent."""
    from kernelrl.agents.archive import is_agent

    check_folder("--out", out)
    if out.is_dir():
        raise ValueError(f"--out: {out} is a folder; give a file in it, such as {out / 'agent.krl'}")
    if not out.exists():
        return
    if os.path.exists(table) and out.samefile(table):
        raise ValueError(f"--out: {out} is the table itself; give another file, such as agent.krl")
    if not is_agent(out):
        raise ValueError(f"--out: {out} exists and is no saved agent; remove it, or give another file")


def read_settings(given: list[str]) -> dict[str, Any]:
    """Hyper-parameters from NAME=VALUE, where the value is written as in TOML; a text may go without quotes."""
    settings: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        name = name.strip()
        if not equals or not name or name in settings:
            raise ValueError(f"--set {text}: give each hyper-parameter once, as NAME=VALUE, such as bandwidth=0.1")
        try:
            settings[name] = tomllib.loads(f"value = {value}")["value"]
        except tomllib.TOMLDecodeError:
            settings[name] = value.strip()
    if wrong := [name for name in settings if name in ("label", "agent", "sweep", "on", "not_on", "at")]:
        raise ValueError(f"--set {wrong[0]}: this is not a hyper-parameter")
    return settings
