"""Stores for the tests of reports: what `kernelrl run` leaves, made quickly, and as much of its reader as they need."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import polars

import kernelrl as krl
from kernelrl.agents import codec
from kernelrl.experiments.problems import Problem
from kernelrl.experiments.store import FORMAT
from plain import plain

ENVIRONMENT = {"id": "kernelrl/TwinRooms-v0", "goal": [0.3, 0.3], "radius": 0.3}


class Leaves(NamedTuple):
    low: np.ndarray
    high: np.ndarray
    q_values: np.ndarray
    visits: np.ndarray


class Dividing(krl.RandomAgent):
    """A random agent that claims to divide the plane into strips, more of them at later steps and for later actions."""

    def partition(self, step: int, action: int) -> Leaves:
        edges = np.linspace(0, 2, step + action + 3)
        low = np.column_stack([edges[:-1], np.zeros(len(edges) - 1)])
        high = np.column_stack([edges[1:], np.ones(len(edges) - 1)])
        return Leaves(low, high, np.linspace(1, 40, len(low)), np.arange(len(low)))


@dataclass
class Run:
    label: str
    seed: int
    path: Path
    planned: int

    @property
    def config(self) -> dict[str, Any]:
        return json.loads((self.path / "run.json").read_text())["configuration"]

    @property
    def episodes(self) -> int:
        return json.loads((self.path / "run.json").read_text())["episodes"]

    @property
    def finished(self) -> bool:
        return self.episodes >= self.planned

    def history(self) -> polars.DataFrame:
        return polars.read_parquet(self.path / "history.parquet")

    def size(self) -> int:
        return (self.path / "agent.krl").stat().st_size

    def agent(self) -> krl.Agent:
        return krl.load(self.path / "agent.krl")

    def snapshots(self) -> list[tuple[int, Path]]:
        return sorted((int(path.stem.removeprefix("agent-")), path) for path in self.path.glob("agent-*.krl"))


@dataclass
class Store:
    path: Path
    several = False  # problems

    @property
    def experiment(self) -> dict[str, Any]:
        return json.loads((self.path / "experiment.json").read_text())["experiment"]

    def runs(self) -> list[Run]:
        experiment = self.experiment
        return [
            Run(agent["label"], seed, self.path / "runs" / f"label-{i}" / f"seed-{seed}", experiment["episodes"])
            for i, agent in enumerate(experiment["agents"])
            for seed in experiment["seeds"]
        ]


AGENTS = {
    "greedy": lambda: plain(krl.GreedyKernelUCBVI)(
        bandwidth=0.1, bonus_scale=0.02, representatives=None, lipschitz=10.0
    ),
    "random": lambda: krl.RandomAgent(),
    "dividing": lambda: Dividing(),
}


def make_store(
    path: Path, agents: dict[str, Any] | None = None, episodes: int = 40, seeds: tuple[int, ...] = (0, 1, 2),
    environment: dict[str, Any] | None = None, env: gym.Env | None = None, name: str = "a test",
) -> Store:  # fmt: skip
    """Run an experiment here and now; snapshots of the first seed after a tenth and after all episodes."""
    agents, environment = agents or AGENTS, environment or ENVIRONMENT
    options = {key: value for key, value in environment.items() if key != "id"}
    entries = [{"label": label, "agent": type(make()).__name__} for label, make in agents.items()]
    experiment = {
        "name": name, "episodes": episodes, "seeds": list(seeds), "environment": environment, "agents": entries,
    }  # fmt: skip
    path.mkdir(parents=True, exist_ok=True)
    (path / "experiment.json").write_text(json.dumps({"format": FORMAT, "kernelrl": "0.1.0", "experiment": experiment}))
    for run in Store(path).runs():
        run.path.mkdir(parents=True)
        agent, world = agents[run.label](), env or gym.make(environment["id"], **options)
        returns, lengths, seconds = [], [], []
        for part in (episodes // 10, episodes - episodes // 10):
            history = agent.fit(world, part, seed=run.seed)
            returns.append(history.returns)
            lengths.append(history.lengths)
            seconds.append(np.full(part, 0.001))
            if run.seed == seeds[0]:
                agent.save(run.path / f"agent-{agent.episodes}.krl")
        agent.save(run.path / "agent.krl")
        polars.DataFrame(
            {
                "episode": np.arange(episodes), "return": np.concatenate(returns), "steps": np.concatenate(lengths),
                "seconds": np.concatenate(seconds).cumsum(), "value": np.full(episodes, 20.0),
            }
        ).write_parquet(run.path / "history.parquet")  # fmt: skip
        made = codec.encode_all({name: getattr(agent, name) for name in agent.hyper_parameters})
        record = {
            "format": FORMAT, "label": run.label, "seed": run.seed, "episodes": episodes,
            "configuration": {"agent": type(agent).__name__, "hyper_parameters": made},
            "versions": {"kernelrl": "0.1.0", "numba": "0.99"}, "machine": {"system": "a machine"},
            "settings_used": codec.encode_all(agent.settings_used()),
        }  # fmt: skip
        (run.path / "run.json").write_text(json.dumps(record))
    return Store(path)


@dataclass
class SeveralStore:
    """A store of several problems, made of one store for each."""

    path: Path
    stores: dict[str, Store]
    problems: list[Problem]
    agents: list[str]
    name: str = "several & more"
    several = True

    @property
    def experiment(self) -> dict[str, Any]:
        entries = [{"label": problem.label, **problem.environment} for problem in self.problems]
        agents = [{"label": label, "agent": "RandomAgent"} for label in self.agents]
        return {"name": self.name, "episodes": 30, "seeds": [0, 1, 2], "environments": entries, "agents": agents}

    def only(self, label: str) -> Store:
        return self.stores[label]


def make_several(path: Path, agents: dict[str, Any], labels: dict[str, dict[str, Any]], **options: Any) -> SeveralStore:
    """A store with one problem for each of `labels`: what `Problem` takes, and `agents`, those that run on it."""
    stores, problems = {}, []
    for number, (label, table) in enumerate(labels.items()):
        table = dict(table)
        here = {name: agents[name] for name in table.pop("agents", agents)}
        environment, episodes = table.pop("environment", ENVIRONMENT), table.pop("episodes", 30)
        stores[label] = make_store(
            path / f"problem-{number}", here, episodes, environment=environment, name="several & more", **options
        )
        problems.append(Problem(label, environment, episodes, None, table.pop("best", None), table.pop("worst", None)))
    return SeveralStore(path, stores, problems, list(agents))
