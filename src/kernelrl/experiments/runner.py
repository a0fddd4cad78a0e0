"""Running an experiment: plan, compile once, distribute the runs, restart failed ones, report the result.

If the experiment was run in the same folder before and ended in any way, this continues from its checkpoints.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from kernelrl import console
from kernelrl.experiments.config import ExperimentError, read_experiment
from kernelrl.experiments.driver import Driver, Stopping
from kernelrl.experiments.engine import Engine
from kernelrl.experiments.learning import Job
from kernelrl.experiments.local import LocalEngine
from kernelrl.experiments.lock import FolderLock
from kernelrl.experiments.plan import Plan, Result, extend, plan_jobs
from kernelrl.experiments.store import Store, make_folder, safe_name
from kernelrl.experiments.waiting import Waiting

__all__ = ["CHECKPOINT_SECONDS", "Result", "run"]

CHECKPOINT_SECONDS = 20.0


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
            jobs = plan_jobs(store, experiment, checkpoint_seconds, result)
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
    engine = RayEngine(workers, jobs, address)
    try:
        yield engine
    finally:
        engine.close()


def drive(engine: Engine, jobs: Sequence[Job], plan: Plan, result: Result) -> None:
    """Finish all jobs, whatever happens to the workers."""
    waiting = Waiting(jobs, lambda job: plan.kinds[job.problem, job.label])
    different = [job for kind, job in waiting.first_of_each().items() if kind is not None]
    with Stopping() as stopping, console.Runs(sum(job.goal for job in jobs)) as display:
        driver = Driver(engine, display, stopping, result)
        try:
            if warm_tasks := engine.warm_tasks(different):
                agents = ", ".join(sorted({job.agent["agent"] for job in different}))
                display.say(f"Preparing compiled code for {agents} …")
                driver.drain(Waiting.of(warm_tasks))
                waiting = Waiting(jobs)
            driver.drain(waiting)
        except KeyboardInterrupt:
            result.interrupted = True
        result.interrupted |= stopping.asked
