"""The work on one run: learn in pieces of a second, report, store checkpoints, go on where the last one ended.

A run is the same numbers whoever does it: `fit` in pieces equals one `fit`, also across saving and loading, so a run
that was stopped or killed anywhere and continued from its checkpoint ends as one that was not.
"""

from __future__ import annotations

import os
import platform
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import polars

from kernelrl import __version__
from kernelrl.agents.base import Agent
from kernelrl.agents.files import write_json
from kernelrl.envs.wrapping import compiled_dynamics
from kernelrl.experiments.config import AgentEntry, Environment
from kernelrl.experiments.objects import build_agent, build_environment, configuration, optimal_values
from kernelrl.experiments.store import (
    AGENT,
    FORMAT,
    HISTORY,
    RUN,
    StoreError,
    empty_history,
    read_history,
    read_json,
    write_history,
)
from kernelrl.loading import load as load_agent

__all__ = ["Job", "compile_key", "learn", "snapshot_episodes", "warm"]

PIECE_SECONDS = 1.0  # how long a piece of learning takes, and so how soon a worker can be stopped
RECENT = 100  # episodes whose mean return is shown
SNAPSHOTS = (0.01, 0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Job:
    """One run to be brought to `episodes`; everything in it can be JSON."""

    label: str
    seed: int
    episodes: int
    agent: dict[str, Any]
    environment: dict[str, Any]
    path: str
    snapshots: list[int]
    checkpoint_seconds: float

    @property
    def name(self) -> str:
        """What to call it on the screen."""
        return f"{self.label}, seed {self.seed}"


def snapshot_episodes(episodes: int) -> list[int]:
    """After how many episodes the agent of the first seed is kept."""
    return sorted({max(1, round(share * episodes)) for share in SNAPSHOTS})


def learn(job: Job, folder: Path, stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Bring the run in `folder` to the job's number of episodes; yield what happens.

    Events have a "kind": "progress" (episode, mean), "checkpoint" (files, in the order of writing), and at the end
    "finished" or, if `stopped` said so or Ctrl-C came, "stopped".
    """
    entry, environment = AgentEntry(**job.agent), Environment(**job.environment)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the experiment was planned
        agent, history = resume(job, entry, folder)
        env = build_environment(environment)
        warm(entry, environment)
        agent.get_ready(env, job.seed)
        monitor = optimal_values(agent, entry, env)
        stored = read_json(folder / RUN)["episodes"]  # less than the agent has if it was killed between the two
        piece, saved = 1, time.monotonic()
        yield progress(agent, history)
        interrupted = False
        while agent.episodes < job.episodes and not (interrupted or stopped()):
            goal = min(episode for episode in (*job.snapshots, job.episodes) if episode > agent.episodes)
            part = agent.fit(env, min(piece, goal - agent.episodes), seed=job.seed, progress=False, monitor=monitor)
            history.extend(rows(part, history))
            interrupted = part.interrupted
            seconds = min(PIECE_SECONDS, job.checkpoint_seconds)
            piece = max(1, min(4 * piece, int(len(part) * seconds / max(part.seconds, 1e-9))))
            if agent.episodes == goal or time.monotonic() - saved >= job.checkpoint_seconds:
                yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder)
                stored, saved = agent.episodes, time.monotonic()
            yield progress(agent, history)
        if stored < agent.episodes:
            yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder)
        env.close()
    yield {"kind": "finished" if agent.episodes >= job.episodes else "stopped"}


def resume(job: Job, entry: AgentEntry, folder: Path) -> tuple[Agent, polars.DataFrame]:
    """The agent and the history of the last checkpoint, or new ones."""
    for left in folder.glob(".*.part"):  # of a process that was killed while writing
        left.unlink()
    agent = build_agent(entry)
    if not (folder / AGENT).exists():
        return agent, empty_history(entry.monitor)
    agent = load_agent(folder / AGENT, trust=True)  # whose functions the experiment names
    if agent.seed != job.seed:
        raise StoreError(f"{folder / AGENT} is of seed {agent.seed}, which is not this run's")
    return agent, read_history(folder / HISTORY, agent.episodes)


def rows(part: Any, history: polars.DataFrame) -> polars.DataFrame:
    """The episodes of one call of `fit` as rows that follow on `history`."""
    before = float(history["seconds"][-1]) if len(history) else 0.0
    n = len(part)
    columns = {
        "episode": part.first_episode + np.arange(n, dtype=np.int64),
        "return": part.returns,
        "steps": part.lengths,
        "seconds": before + part.seconds * np.arange(1, n + 1) / max(n, 1),
        "value": part.optimistic_values,
    }
    if part.optimism is not None:
        columns["below"], columns["shortfall"] = part.optimism.by_episode(part.first_episode, n)
    return polars.DataFrame(columns, schema=history.schema)


def progress(agent: Agent, history: polars.DataFrame) -> dict[str, Any]:
    """How far it is."""
    recent = history["return"].tail(RECENT)
    return {"kind": "progress", "episode": agent.episodes, "mean": recent.mean() if len(recent) else None}


def checkpoint(
    job: Job, configured: dict[str, Any], agent: Agent, history: polars.DataFrame, folder: Path
) -> dict[str, Any]:
    """Store agent and history, in the order that makes every moment in between a whole checkpoint (see `store`)."""
    write_history(folder / HISTORY, history)
    files = [HISTORY]
    if agent.episodes in job.snapshots:
        files.append(f"agent-{agent.episodes}.krl")
    files.append(AGENT)
    for name in files[1:]:
        agent.save(folder / name)
    write_json(folder / RUN, record(job, configured, agent.episodes, float(history["seconds"][-1])))
    return {"kind": "checkpoint", "episode": agent.episodes, "files": [*files, RUN]}


def record(job: Job, configured: dict[str, Any], episodes: int, seconds: float) -> dict[str, Any]:
    """The content of run.json."""
    packages = ("gymnasium", "numba", "numpy", "polars")
    return {
        "format": FORMAT,
        "label": job.label,
        "seed": job.seed,
        "configuration": configured,
        "episodes": episodes,
        "finished": episodes >= job.episodes,
        "seconds": seconds,
        "versions": {
            "kernelrl": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in packages},
        },
        "machine": {
            "host": socket.gethostname(),
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        },
    }


# ----------------------------------------------------------------------------------------------------- compiled code

WARMED: set[Any] = set()  # in this process


def compile_key(agent: Agent, entry: AgentEntry, env: gym.Env[Any, Any]) -> Any:
    """What decides which machine code a started agent needs."""
    return numba.typeof(agent.model), type(compiled_dynamics(env)), entry.monitor


def warm(entry: AgentEntry, environment: Environment) -> None:
    """Have all that an agent needs compiled or fetched from the cache, by one that is thrown away.

    The read-outs and the policy to deploy are among it: reports need them, and what they share with learning has been
    compiled in this process.
    """
    agent, env = build_agent(entry), build_environment(environment)
    agent.get_ready(env, 0)
    key = compile_key(agent, entry, env)
    if key not in WARMED:
        x = env.observation_space.sample()
        if compiled_dynamics(env) is not None:
            agent.fit(env, 1, progress=False, driver="python" if entry.monitor else "auto")
        else:  # not an episode of someone else's environment, which may take long or mean something
            agent.begin_episode()
            agent.observe(x, agent.choose(x, 0), 0.0, x, 0)
            agent.end_episode()
        agent.values([x], 0)
        agent.act(x, 0)
        WARMED.add(key)
    env.close()
