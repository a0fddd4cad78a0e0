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
from pathlib import Path
from typing import Any

from kernelrl import console
from kernelrl.experiments.config import ExperimentError, read_experiment
from kernelrl.experiments.engine import Engine, Task
from kernelrl.experiments.learning import Job
from kernelrl.experiments.local import LocalEngine
from kernelrl.experiments.lock import FolderLock
from kernelrl.experiments.plan import Plan, Result, extend, plan_jobs
from kernelrl.experiments.store import AGENT, Store, make_folder, safe_name

__all__ = ["CHECKPOINT_SECONDS", "Result", "run"]

CHECKPOINT_SECONDS = 20.0
RETRIES = 2  # how often a failed run is tried again without a new checkpoint in between


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
    different = list({plan.kinds[job.problem, job.label]: job for job in reversed(jobs)}.values())
    done = {job.name: 0 for job in jobs}
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

    `kinds` names the machine code that each problem and label need, if it is not compiled yet: the first task of a kind
    compiles it, and the others of that kind wait until it has begun to learn.
    """

    def __init__(
        self,
        engine: Engine,
        display: console.Runs,
        stopping: Stopping,
        result: Result,
        kinds: dict[tuple[str, str], Any] | None = None,
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
        being_compiled = {self._kind(task) for task in self._running} - self._compiled
        return next((task for task in self._waiting if self._kind(task) not in being_compiled), None)

    def _kind(self, task: Task) -> Any:
        return self._kinds.get((task.job.problem, task.job.label))

    def _take(self, task: Task | None, kind: str, data: dict[str, Any]) -> None:
        if kind == "message":
            self._display.say(data["text"])
        if task is None or task not in self._running:
            return
        if kind == "progress":
            self._compiled.add(self._kind(task))
            self._display.update(task.job, data["done"], data["mean"])
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
            stored = Path(task.job.path, AGENT).exists()
            then = "going on from the last checkpoint" if stored else "nothing is stored yet, beginning again"
            self._display.say(f"{task.job.name}: {why}; {then}")
            self._waiting.appendleft(task)
        else:
            self._result.failed[task.job.key] = f"{why}\n{trace}".strip()
            self._display.end(task.job, f"failed {self._attempts[task]} times: {why}\n{trace}".rstrip())
