"""Running an experiment: plan, compile once, distribute the runs, restart failed ones, report the result.

If the experiment was run in the same folder before and ended in any way, this continues from its checkpoints.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import types
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelrl import console
from kernelrl.agents.files import write_json
from kernelrl.experiments.config import Experiment, ExperimentError, read_experiment
from kernelrl.experiments.engine import Engine, Task
from kernelrl.experiments.learning import Job, compile_key, record, snapshot_episodes
from kernelrl.experiments.local import LocalEngine
from kernelrl.experiments.lock import FolderLock
from kernelrl.experiments.objects import build_any, build_environment, configuration, optimal_values
from kernelrl.experiments.store import (
    AGENT,
    EXPERIMENT,
    HISTORY,
    RUN,
    Run,
    Store,
    StoreError,
    is_free,
    make_folder,
    safe_name,
)
from kernelrl.peers.library import is_peer

__all__ = ["CHECKPOINT_SECONDS", "Result", "run"]

CHECKPOINT_SECONDS = 20.0
RETRIES = 2  # how often a failed run is tried again without a new checkpoint in between


@dataclass
class Result:
    """How an experiment ended."""

    store: Store
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    """Label and seed of the runs that failed, with the traceback."""
    unreadable: set[tuple[str, int]] = field(default_factory=set)
    """Those of them that were not tried, because their files are damaged."""
    interrupted: bool = False

    @property
    def finished(self) -> bool:
        """Whether every run has all its episodes."""
        return not self.failed and not self.interrupted


def run(
    source: str | Path, out: str | Path | None = None, *, episodes: int | None = None, seeds: int | None = None,
    workers: int | None = None, engine: str = "local", address: str | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> Result:  # fmt: skip
    """Run the experiment of that name or file, or the rest of it, into the folder `out` (default results/NAME)."""
    if workers is not None and workers < 1:
        raise ExperimentError(f"workers must be at least 1, got {workers}")
    if engine not in ("local", "ray"):
        raise ExperimentError(f'engine must be "local" or "ray", got {engine!r}')
    if address is not None and engine != "ray":
        raise ExperimentError("address is that of a Ray cluster: it needs the ray engine")
    beside = str(Path(source).resolve().parent)  # agents, maps and environments may be in modules beside the file
    if Path(source).is_file() and beside not in sys.path:
        sys.path.append(beside)
    experiment = read_experiment(source, episodes, seeds)
    plan = Plan.of(experiment)
    store = Store(Path(out) if out is not None else Path("results") / safe_name(experiment.name))
    with contextlib.ExitStack() as stack:
        try:
            make_folder(store.path)
            lock = stack.enter_context(FolderLock(store.path))
            extend(store, experiment, plan)
            result = Result(store)
            jobs = plan_jobs(store, experiment, plan, checkpoint_seconds, result)
        except OSError as error:
            raise ExperimentError(f"{store.path}: cannot be written: {error}") from error
        if jobs:
            start = local_engine if engine == "local" else ray_engine
            drive(stack.enter_context(start(workers, len(jobs), lock, address)), jobs, plan, result)
    return result


# ---------------------------------------------------------------------------------------------------------- planning


@dataclass
class Plan:
    """For each label its configuration and the kind of machine code it needs."""

    configurations: dict[str, dict[str, Any]]
    kinds: dict[str, Any]

    @classmethod
    def of(cls, experiment: Experiment) -> Plan:
        """Make and start every agent, so that mistakes show before anything runs."""
        env = build_environment(experiment.environment)
        configurations, kinds = {}, {}
        for entry in experiment.agents:
            agent = build_any(entry)
            try:
                agent.get_ready(env, 0)
            except (TypeError, ValueError) as error:
                raise ExperimentError(f'agents "{entry.label}": {error}') from error
            optimal_values(agent, entry, env)  # computed once and cached on disk for the workers
            configurations[entry.label] = configuration(agent, entry, experiment.environment)
            kinds[entry.label] = compile_key(agent, entry, env)
        env.close()
        return cls(configurations, kinds)


def extend(store: Store, experiment: Experiment, plan: Plan) -> None:
    """Make `store` the store of `experiment`, which may extend the experiment in it but not contradict it.

    Only runs with a checkpoint count: a run that ended before its first checkpoint can still be changed.
    """
    new = experiment.to_json()
    if (store.path / EXPERIMENT).exists():
        begun = [run for run in store.runs() if run.has_checkpoint]
        if begun:
            same_experiment(store, new, begun)
        for run in begun:
            same_configuration(run, plan.configurations[run.label])
        if store.experiment == new:
            return
    elif not is_free(store.path):
        raise ExperimentError(
            f"{store.path} holds runs, but no {EXPERIMENT} that says of which experiment; choose another folder with "
            "--out"
        )
    store.write(new)


def same_experiment(store: Store, new: dict[str, Any], begun: list[Run]) -> None:
    """Reject an experiment that does not extend the one to which the runs `begun` belong."""
    old = store.experiment
    where, other = f"{store.path} holds another experiment", "choose another folder with --out"
    if old["name"] != new["name"]:
        raise ExperimentError(f'{where}, "{old["name"]}", not "{new["name"]}"; {other}')
    if old["environment"] != new["environment"]:
        raise ExperimentError(
            f"{where}: its environment is {old['environment']}, not {new['environment']}; {other}"
        )  # fmt: skip
    shrunk = f"{store.path}: an experiment can be extended, not shortened"
    if new["episodes"] < old["episodes"]:
        raise ExperimentError(f"{shrunk}: it has {old['episodes']} episodes, not {new['episodes']}; {other}")
    labels = {entry["label"] for entry in new["agents"]}
    for run in begun:
        no_more = "which the experiment no longer has; add it again, remove"
        if run.label not in labels:
            folder = run.path.parent
            raise ExperimentError(f'{shrunk}: it has an agent "{run.label}", {no_more} {folder}, or {other}')
        if run.seed not in new["seeds"]:
            folders = store.path / "runs" / "*" / run.path.name
            raise ExperimentError(f"{shrunk}: it has seed {run.seed}, {no_more} {folders}, or {other}")


def same_configuration(begun: Run, configured: dict[str, Any]) -> None:
    """Reject a run that would continue with other hyper-parameters."""
    try:
        old = begun.config
    except StoreError:
        return  # `plan_jobs` reports the run as failed
    if old["agent"] != configured["agent"]:
        changes = [f"agent was {old['agent']} and is {configured['agent']}"]
    else:
        was, now = old["hyper_parameters"], configured["hyper_parameters"]
        changes = [
            f"{name} was {was.get(name)!r} and is {now.get(name)!r}"
            for name in sorted(was.keys() | now.keys())
            if was.get(name) != now.get(name)
        ]
    if old.get("monitor", False) != configured["monitor"]:
        changes.append(f"monitor was {old.get('monitor', False)} and is {configured['monitor']}")
    if changes:
        raise ExperimentError(
            f'agents "{begun.label}": {"; ".join(changes)} now, but {begun.path.parent} has results under that label; '
            "add the changed agent beside this one under its own label, remove that folder to learn it again, or "
            "choose another folder with --out"
        )


def plan_jobs(store: Store, experiment: Experiment, plan: Plan, checkpoint_seconds: float, result: Result) -> list[Job]:
    """The unfinished runs, the first seed of every agent first; runs that cannot be read count as failed."""
    jobs = []
    environment = {"id": experiment.environment.id, **experiment.environment.others}
    for seed in experiment.seeds:
        for entry in experiment.agents:
            begun = store.run(entry.label, seed)
            snapshots = snapshot_episodes(experiment.episodes) if seed == experiment.seeds[0] else []
            job = Job(
                entry.label, seed, experiment.episodes, agent_table(entry), environment, str(begun.path), snapshots,
                checkpoint_seconds,
            )  # fmt: skip
            try:
                if begun.has_checkpoint:
                    _ = begun.config
                else:
                    begin(begun, record(job, plan.configurations[entry.label], 0, 0.0))
                if not begun.finished:
                    begun.history()
                    jobs.append(job)
            except StoreError as error:
                result.failed[entry.label, seed] = f"{error}; remove {begun.path} to begin this run again"
                result.unreadable.add((entry.label, seed))
                console.say(f"{job.name}: {result.failed[entry.label, seed]}")
    return jobs


def begin(run: Run, content: dict[str, Any]) -> None:
    """Reset the folder of a run without a checkpoint to its state before the first episode."""
    make_folder(run.path)
    for left in (run.path / HISTORY, *run.path.glob("agent-*.krl")):
        left.unlink(missing_ok=True)
    write_json(run.path / RUN, content)


def agent_table(entry: Any) -> dict[str, Any]:
    """An agent's entry as JSON."""
    table = {"label": entry.label, "agent": entry.agent, "monitor": entry.monitor, **entry.others}
    return table if entry.preset is None else {**table, "preset": entry.preset}


# ----------------------------------------------------------------------------------------------------------- driving


@contextlib.contextmanager
def local_engine(workers: int | None, jobs: int, lock: FolderLock, address: str | None) -> Iterator[Engine]:
    """Worker processes on this machine, by default as many as cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    engine = LocalEngine(min(workers or cores, jobs), lock.handle)
    try:
        yield engine
    finally:
        engine.close()


@contextlib.contextmanager
def ray_engine(workers: int | None, jobs: int, lock: FolderLock, address: str | None) -> Iterator[Engine]:
    """Tasks of a Ray cluster."""
    try:
        from kernelrl.experiments.ray_engine import RayEngine
    except ImportError as error:
        raise ExperimentError(f"the ray engine needs Ray: pip install 'kernelrl[ray]' ({error})") from error
    engine = RayEngine(min(workers or jobs, jobs), address)
    try:
        yield engine
    finally:
        engine.close()


class Stopping:
    """Within this context the first Ctrl-C or SIGTERM sets `asked`, the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stopping:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def drive(engine: Engine, jobs: list[Job], plan: Plan, result: Result) -> None:
    """Finish all jobs, whatever happens to the workers."""
    compiled = [job for job in reversed(jobs) if plan.kinds[job.label] is not None]
    different = list({plan.kinds[job.label]: job for job in compiled}.values())
    done = {f"{job.label}, seed {job.seed}": 0 for job in jobs}
    kinds = plan.kinds
    with Stopping() as stopping, console.Runs(jobs, done) as display:
        try:
            if warm_tasks := engine.warm_tasks(different):
                agents = ", ".join(sorted({job.agent["agent"] for job in different}))
                display.say(f"Preparing compiled code for {agents} …")
                Driver(engine, display, stopping, result).drain(warm_tasks)
                kinds = {}
            Driver(engine, display, stopping, result, kinds).drain([Task(job) for job in jobs])
        except KeyboardInterrupt:
            result.interrupted = True
        result.interrupted |= stopping.asked


class Driver:
    """Runs a list of tasks on an engine.

    `kinds` names the machine code that each label needs, if it is not compiled yet: the first task of a kind compiles
    it, and the others of that kind wait until it has begun to learn.
    """

    def __init__(
        self,
        engine: Engine,
        display: console.Runs,
        stopping: Stopping,
        result: Result,
        kinds: dict[str, Any] | None = None,
    ) -> None:
        self._engine, self._display, self._stopping, self._result = engine, display, stopping, result
        self._kinds = kinds or {}
        self._compiled: set[Any] = {None}
        self._waiting: deque[Task] = deque()
        self._running: set[Task] = set()
        self._attempts: dict[Task, int] = {}

    def drain(self, tasks: list[Task]) -> None:
        """Work until all tasks have ended."""
        self._waiting.extend(tasks)
        told = False
        while self._running or (self._waiting and not self._stopping.asked):
            if self._stopping.asked and not told:
                self._display.say("Stopping: the runs store what they have (Ctrl-C again to stop at once) …")
                self._engine.stop()
                told = True
            while len(self._running) < self._engine.slots and not self._stopping.asked:
                task = self._next()
                if task is None:
                    break
                self._waiting.remove(task)
                self._running.add(task)
                self._engine.submit(task)
            event = self._engine.next_event(0.2)
            if event is not None:
                self._take(event.task, event.kind, event.data)

    def _next(self) -> Task | None:
        """The first task that waits for nothing."""
        being_compiled = {self._kinds.get(task.job.label) for task in self._running} - self._compiled
        return next((task for task in self._waiting if self._kinds.get(task.job.label) not in being_compiled), None)

    def _take(self, task: Task | None, kind: str, data: dict[str, Any]) -> None:
        if kind == "message":
            self._display.say(data["text"])
        if task is None or task not in self._running:
            return
        if kind == "progress":
            self._compiled.add(self._kinds.get(task.job.label))
            self._display.update(task.job, data["episode"], data["mean"])
        elif kind == "checkpoint":
            self._attempts[task] = 0
        elif kind in ("finished", "stopped"):
            self._running.remove(task)
            if not task.warm:
                self._display.end(task.job, kind)
        elif kind in ("failed", "died"):
            self._running.remove(task)
            if not task.warm:  # an error while compiling shows again in the run itself
                self._failed(task, data["why"], data["trace"])

    def _failed(self, task: Task, why: str, trace: str) -> None:
        self._attempts[task] = self._attempts.get(task, 0) + 1
        if self._attempts[task] <= RETRIES:
            stored = Path(task.job.path, AGENT).exists() and not is_peer(task.job.agent["agent"])
            then = "going on from the last checkpoint" if stored else "nothing is stored yet, beginning again"
            self._display.say(f"{task.job.name}: {why}; {then}")
            self._waiting.appendleft(task)
        else:
            self._result.failed[task.job.label, task.job.seed] = f"{why}\n{trace}".strip()
            self._display.end(task.job, f"failed {self._attempts[task]} times: {why}\n{trace}".rstrip())
