"""The work on one run: learn in pieces of a second, report, store checkpoints, continue from the last one.

`fit` in pieces equals one `fit`, also across saving and loading. So a run that was stopped or killed at any point and
continued from its checkpoint gives the same numbers as one that was not.
"""

from __future__ import annotations

import contextlib
import functools
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

from kernelrl import __version__
from kernelrl.agents import codec
from kernelrl.agents.base import Agent
from kernelrl.agents.files import sync_folder, write_json
from kernelrl.envs.wrapping import compiled_dynamics
from kernelrl.experiments.config import AgentEntry, Environment
from kernelrl.experiments.growing import GrowingHistory
from kernelrl.experiments.objects import build_agent, build_environment, build_peer, configuration, optimal_values
from kernelrl.experiments.store import (
    AGENT,
    FORMAT,
    HISTORY,
    RUN,
    StoreError,
    empty_history,
    make_folder,
    read_history,
    read_json,
    run_key,
    write_history,
)
from kernelrl.experiments.transitions import TRANSITIONS, Recorded
from kernelrl.loading import load as load_agent
from kernelrl.peers import library
from kernelrl.peers.peer import Peer
from kernelrl.peers.training import Training

__all__ = ["Job", "compile_key", "learn", "snapshot_marks", "tidy", "warm"]

PIECE_SECONDS = 1.0  # how long a piece of learning takes, and so how soon a worker can be stopped
SHOWN_SECONDS = 0.1  # least time between two events about progress
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

    def done(self, history: GrowingHistory) -> int:
        """How many of them a history has."""
        return history.episodes if self.steps is None else history.steps

    def done_before_last(self, history: GrowingHistory) -> int:
        """How many of them a history has without its last episode."""
        return history.episodes - 1 if self.steps is None else history.steps_before_last


def snapshot_marks(goal: int) -> list[int]:
    """After how many episodes, or steps, the agent of the first seed is kept."""
    return sorted({max(1, round(share * goal)) for share in SNAPSHOTS})


def learn(job: Job, folder: Path, stopped: Callable[[], bool]) -> Iterator[dict[str, Any]]:
    """Continue the run in `folder` to the job's number of episodes, or steps; yield events.

    Events have a "kind": "progress" (done: episodes or steps, mean), "checkpoint" (files, in the order of
    writing), and at the end "finished" (done, seconds) or, if `stopped` said so or Ctrl-C came, "stopped".
    """
    entry, environment, began = AgentEntry(**job.agent), Environment(**job.environment), time.monotonic()
    if library.is_peer(entry.agent):
        yield from learn_peer(job, entry, environment, folder, stopped)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they were shown when the experiment was planned
        agent, history, stored = resume(job, entry, folder)
        recorded = Recorded(folder, history.table()) if entry.transitions else None
        env = build_environment(environment)
        agent.get_ready(env, job.seed)
        if compile_key(agent, entry, env) not in WARMED:
            warm(entry, environment)
        monitor = optimal_values(agent, entry, env)
        piece, saved, done = 1, time.monotonic(), job.done(history)
        shown, interrupted = saved, False
        yield progress(job, history)
        while done < job.goal and not (interrupted or stopped()):
            mark = min(mark for mark in (*job.snapshots, job.goal) if mark > done)
            part = agent.fit(
                env, min(piece, episodes_to(mark - done, job, agent)), seed=job.seed, progress=False, monitor=monitor,
                transitions=entry.transitions,
            )  # fmt: skip
            history.add(part)
            if recorded is not None:
                recorded.add(part.transitions)
            interrupted, done = part.interrupted, job.done(history)
            seconds = min(PIECE_SECONDS, job.checkpoint_seconds)
            piece = max(1, min(4 * piece, int(len(part) * seconds / max(part.seconds, 1e-9))))
            if done >= mark or time.monotonic() - saved >= job.checkpoint_seconds:
                yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder, recorded)
                stored, saved = agent.episodes, time.monotonic()
            if time.monotonic() - shown >= SHOWN_SECONDS:
                yield progress(job, history)
                shown = time.monotonic()
        if stored < agent.episodes:
            yield checkpoint(job, configuration(agent, entry, environment), agent, history, folder, recorded)
        env.close()
    kind, seconds = "finished" if done >= job.goal else "stopped", time.monotonic() - began
    yield {"kind": kind, "done": done, "seconds": seconds}


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
        peer, history, env = build_peer(entry), GrowingHistory(empty_history()), build_environment(environment)
        episodes = job.episodes if job.steps is None else None
        with contextlib.closing(Training(peer, env, job.seed, episodes, job.steps)) as training:
            yield progress(job, history)
            while job.done(history) < job.goal and not stopped():
                history.add(training.play(PIECE_SECONDS))
                yield progress(job, history)
        env.close()
    if job.done(history) >= job.goal:
        if (folder / AGENT).exists():  # of a shorter run: no file of the two may be of another run
            (folder / AGENT).unlink()
            sync_folder(folder)
        whole = replace(job, snapshots=[])  # maps, for which they are, need optimistic values
        yield checkpoint(whole, configuration(peer, entry, environment), peer, history, folder)
    done = job.done(history)
    yield {"kind": "finished" if done >= job.goal else "stopped", "done": done}


def tidy(folder: Path) -> None:
    """Make the run's folder if there is none, and remove what a process left that was killed while writing.

    Without an agent's file that is everything: files of a first checkpoint, perhaps with other settings.
    """
    make_folder(folder)
    left = list(folder.glob(".*.part"))
    if not (folder / AGENT).exists():
        left += [folder / RUN, folder / HISTORY, folder / TRANSITIONS, *folder.glob("agent-*.krl")]
    for path in left:
        path.unlink(missing_ok=True)


def resume(job: Job, entry: AgentEntry, folder: Path) -> tuple[Agent, GrowingHistory, int]:
    """Agent and history of the last checkpoint, or new ones, and how many episodes run.json and the agent both have."""
    tidy(folder)
    if not (folder / AGENT).exists():
        return build_agent(entry), GrowingHistory(empty_history(entry.monitor)), 0
    build_agent(entry)  # imports a user's own class
    agent = load_agent(folder / AGENT, trust=True)  # the experiment names the functions in it
    if agent.seed != job.seed:
        raise StoreError(f"{folder / AGENT} has seed {agent.seed}, which is not this run's")
    recorded = int(read_json(folder / RUN)["episodes"])
    return agent, GrowingHistory(read_history(folder / HISTORY, agent.episodes)), min(recorded, agent.episodes)


def progress(job: Job, history: GrowingHistory) -> dict[str, Any]:
    """The event that says how far the run is."""
    return {"kind": "progress", "done": job.done(history), "mean": history.mean}


def checkpoint(
    job: Job, configured: dict[str, Any], agent: Agent | Peer, history: GrowingHistory, folder: Path,
    recorded: Recorded | None = None,
) -> dict[str, Any]:  # fmt: skip
    """Store agent and history, in an order that leaves a valid checkpoint at every moment (see `store`)."""
    done = job.done(history)
    write_history(folder / HISTORY, history.table(), sync_name=False)
    files = [HISTORY] if recorded is None else [HISTORY, recorded.write()]
    if job.done_before_last(history) < max((mark for mark in job.snapshots if mark <= done), default=0):
        files.append(f"agent-{agent.episodes}.krl")
        agent.save(folder / files[-1])
    content = record(job, configured, agent.episodes, history.seconds, done >= job.goal)
    write_json(folder / RUN, content | {"settings_used": codec.encode_all(agent.settings_used())})
    agent.save(folder / AGENT)
    return {"kind": "checkpoint", "episode": agent.episodes, "files": [*files, RUN, AGENT]}


def record(job: Job, configured: dict[str, Any], episodes: int, seconds: float, finished: bool) -> dict[str, Any]:
    """The content of run.json."""
    return {
        "format": FORMAT,
        **({"problem": job.problem} if job.several else {}),
        "label": job.label,
        "seed": job.seed,
        "configuration": configured,
        "episodes": episodes,
        "finished": finished,
        "seconds": seconds,
        "versions": {**versions(), **(library.versions() if library.is_peer(job.agent["agent"]) else {})},
        "machine": machine(),
    }


@functools.cache  # reading them takes longer than a short run
def versions() -> dict[str, str]:
    """The versions of what results depend on."""
    packages = ("gymnasium", "numba", "numpy", "polars")
    found = {name: metadata.version(name) for name in packages}
    return {"kernelrl": __version__, "python": platform.python_version(), **found}


@functools.cache
def machine() -> dict[str, Any]:
    """The machine of this process."""
    return {
        "host": socket.gethostname(),
        "system": platform.platform(),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
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
