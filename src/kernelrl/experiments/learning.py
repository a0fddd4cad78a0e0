"""The work on one run: learn in pieces of a second, report, store checkpoints, continue from the last one.

`fit` in pieces equals one `fit`, also across saving and loading. So a run that was stopped or killed at any point and
continued from its checkpoint gives the same numbers as one that was not.
"""

from __future__ import annotations

import contextlib
import os
import platform
import socket
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np
import polars

from kernelrl import __version__
from kernelrl.agents import codec
from kernelrl.agents.base import Agent
from kernelrl.agents.files import write_json
from kernelrl.envs.wrapping import compiled_dynamics
from kernelrl.experiments.config import AgentEntry, Environment
from kernelrl.experiments.objects import build_agent, build_environment, build_peer, configuration, optimal_values
from kernelrl.experiments.store import (
    AGENT,
    FORMAT,
    HISTORY,
    RUN,
    StoreError,
    empty_history,
    read_history,
    read_json,
    run_key,
    write_history,
)
from kernelrl.experiments.transitions import Recorded
from kernelrl.loading import load as load_agent
from kernelrl.peers import library
from kernelrl.peers.peer import Peer
from kernelrl.peers.training import Training

__all__ = ["Job", "compile_key", "learn", "snapshot_marks", "warm"]

PIECE_SECONDS = 1.0  # how long a piece of learning takes, and so how soon a worker can be stopped
RECENT = 100  # episodes whose mean return is shown
SNAPSHOTS = (0.01, 0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Job:
    """One run that should have `episodes` episodes; it can be written as JSON."""

    label: str
    seed: int
    episodes: int
    agent: dict[str, Any]
    environment: dict[str, Any]
    path: str
    snapshots: list[int]
    checkpoint_seconds: float
    problem: str = ""
    several: bool = False
    steps: int | None = None
    """The run ends with the episode in which these steps are reached; `episodes` does not count then."""

    @property
    def key(self) -> tuple[Any, ...]:
        """Label and seed; with several problems that of the problem first."""
        return run_key(self)

    @property
    def name(self) -> str:
        """Its name on the screen."""
        return f"{', '.join(self.key[:-1])}, seed {self.seed}"

    @property
    def unit(self) -> str:
        """What is counted: "episode" or "step"; also `snapshots` are numbers of these."""
        return "episode" if self.steps is None else "step"

    @property
    def goal(self) -> int:
        """How many of them the run should have."""
        return self.episodes if self.steps is None else self.steps

    def done(self, history: polars.DataFrame) -> int:
        """How many of them a history has."""
        return len(history) if self.steps is None else int(history["steps"].sum())


def snapshot_marks(goal: int) -> list[int]:
    """After how many episodes, or steps, the agent of the first seed is kept."""
    return sorted({max(1, round(share * goal)) for share in SNAPSHOTS})


def learn(job: Job, folder: Path, stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Continue the run in `folder` to the job's number of episodes, or steps; yield events.

    Events have a "kind": "progress" (done: episodes or steps, mean), "checkpoint" (files, in the order of
    writing), and at the end "finished" or, if `stopped` said so or Ctrl-C came, "stopped".
    """
    entry, environment = AgentEntry(**job.agent), Environment(**job.environment)
    if library.is_peer(entry.agent):
        yield from learn_peer(job, entry, environment, folder, stopped)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the experiment was planned
        agent, history = resume(job, entry, folder)
        recorded = Recorded(folder, history) if entry.transitions else None
        env = build_environment(environment)
        warm(entry, environment)
        agent.get_ready(env, job.seed)
        monitor = optimal_values(agent, entry, env)
        stored = read_json(folder / RUN)[
            "episodes"
        ]  # fewer than the agent's if the run was killed between the two files
        piece, saved, done = 1, time.monotonic(), job.done(history)
        yield progress(job, history)
        interrupted = False
        while done < job.goal and not (interrupted or stopped()):
            mark = min(mark for mark in (*job.snapshots, job.goal) if mark > done)
            part = agent.fit(
                env, min(piece, episodes_to(mark - done, job, agent)), seed=job.seed, progress=False, monitor=monitor,
                transitions=entry.transitions,
            )  # fmt: skip
            history.extend(rows(part, history))
            if recorded is not None:
                recorded.add(part.transitions)
            interrupted, done = part.interrupted, job.done(history)
            seconds = min(PIECE_SECONDS, job.checkpoint_seconds)
            piece = max(1, min(4 * piece, int(len(part) * seconds / max(part.seconds, 1e-9))))
            if done >= mark or time.monotonic() - saved >= job.checkpoint_seconds:
                yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder, recorded)
                stored, saved = agent.episodes, time.monotonic()
            yield progress(job, history)
        if stored < agent.episodes:
            yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder, recorded)
        env.close()
    yield {"kind": "finished" if done >= job.goal else "stopped"}


def episodes_to(missing: int, job: Job, agent: Agent) -> int:
    """How many episodes can be played in one call without passing a mark from which `missing` are missing.

    An episode has at most H steps, so only the last one can reach a number of steps.
    """
    return missing if job.steps is None else max(1, missing // agent.spaces.horizon)


def learn_peer(
    job: Job, entry: AgentEntry, environment: Environment, folder: Path, stopped: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """Like `learn`, for an agent of another library: only a whole run is stored.

    The library cannot go on from a file as if it had not been stopped. So a run that was stopped, or that should have
    more episodes, is run again from its start, and what is stored is always the result of a run without a break.
    """
    tidy(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer, history, env = build_peer(entry), empty_history(), build_environment(environment)
        episodes = job.episodes if job.steps is None else None
        with contextlib.closing(Training(peer, env, job.seed, episodes, job.steps)) as training:
            yield progress(job, history)
            while job.done(history) < job.goal and not stopped():
                history.extend(rows(training.play(PIECE_SECONDS), history))
                yield progress(job, history)
        env.close()
    if job.done(history) >= job.goal:
        (folder / AGENT).unlink(missing_ok=True)  # of a shorter run: no file of the two may be of another run
        whole = replace(job, snapshots=[])  # maps, for which they are, need optimistic values
        yield checkpoint(whole, configuration(peer, entry, environment), peer, history, folder)
    yield {"kind": "finished" if job.done(history) >= job.goal else "stopped"}


def tidy(folder: Path) -> None:
    """Remove what a process left that was killed while writing."""
    for left in folder.glob(".*.part"):
        left.unlink()


def resume(job: Job, entry: AgentEntry, folder: Path) -> tuple[Agent, polars.DataFrame]:
    """The agent and the history of the last checkpoint, or new ones."""
    tidy(folder)
    agent = build_agent(entry)
    if not (folder / AGENT).exists():
        return agent, empty_history(entry.monitor)
    agent = load_agent(folder / AGENT, trust=True)  # the experiment names the functions in it
    if agent.seed != job.seed:
        raise StoreError(f"{folder / AGENT} has seed {agent.seed}, which is not this run's")
    return agent, read_history(folder / HISTORY, agent.episodes)


def rows(part: Any, history: polars.DataFrame) -> polars.DataFrame:
    """The episodes of one call of `fit` as rows that continue `history`."""
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


def progress(job: Job, history: polars.DataFrame) -> dict[str, Any]:
    """The event that says how far the run is."""
    recent = history["return"].tail(RECENT)
    return {"kind": "progress", "done": job.done(history), "mean": recent.mean() if len(recent) else None}


def checkpoint(
    job: Job, configured: dict[str, Any], agent: Agent | Peer, history: polars.DataFrame, folder: Path,
    recorded: Recorded | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Store agent and history, in an order that leaves a valid checkpoint at every moment (see `store`)."""
    write_history(folder / HISTORY, history)
    files = [HISTORY] if recorded is None else [HISTORY, recorded.write()]
    first = len(files)
    if job.done(history[:-1]) < max((mark for mark in job.snapshots if mark <= job.done(history)), default=0):
        files.append(f"agent-{agent.episodes}.krl")
    files.append(AGENT)
    for name in files[first:]:
        agent.save(folder / name)
    finished = job.done(history) >= job.goal
    content = record(job, configured, agent.episodes, float(history["seconds"][-1]), finished)
    write_json(folder / RUN, content | {"settings_used": codec.encode_all(agent.settings_used())})
    return {"kind": "checkpoint", "episode": agent.episodes, "files": [*files, RUN]}


def record(job: Job, configured: dict[str, Any], episodes: int, seconds: float, finished: bool) -> dict[str, Any]:
    """The content of run.json."""
    packages = ("gymnasium", "numba", "numpy", "polars")
    return {
        "format": FORMAT,
        **({"problem": job.problem} if job.several else {}),
        "label": job.label,
        "seed": job.seed,
        "configuration": configured,
        "episodes": episodes,
        "finished": finished,
        "seconds": seconds,
        "versions": {
            "kernelrl": __version__,
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in packages},
            **(library.versions() if library.is_peer(job.agent["agent"]) else {}),
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


def compile_key(agent: Agent | Peer, entry: AgentEntry, env: gym.Env[Any, Any]) -> Any:
    """A key that is equal for started agents that need the same machine code; None if they need none."""
    if isinstance(agent, Peer):
        return None
    return numba.typeof(agent.model), type(compiled_dynamics(env)), entry.monitor, entry.transitions


def warm(entry: AgentEntry, environment: Environment) -> None:
    """Compile everything that an agent needs, or load it from the cache, with an agent that is thrown away.

    This includes the read-outs and the policy to deploy, which reports need: the code that they share with learning has
    just been compiled in this process.
    """
    agent, env = build_agent(entry), build_environment(environment)
    agent.get_ready(env, 0)
    key = compile_key(agent, entry, env)
    if key not in WARMED:
        x = env.observation_space.sample()
        if compiled_dynamics(env) is not None:
            driver = "python" if entry.monitor else "auto"
            agent.fit(env, 1, progress=False, driver=driver, transitions=entry.transitions)
        else:  # no episode of a user's environment, which may take long or have effects
            agent.begin_episode()
            agent.observe(x, agent.choose(x, 0), 0.0, x, 0)
            agent.end_episode()
        agent.values([x], 0)
        agent.act(x, 0)
        WARMED.add(key)
    env.close()
