"""The Ray engine: every batch of runs is a task of a Ray cluster.

Nodes need not share a file system. A task learns in its own folder and streams its events back, checkpoints as the
bytes of their files; only the driver writes the store. If a task is lost with its worker or node, the driver sends the
last checkpoint to a new one.

Each item of a stream costs Ray more than a run of a few milliseconds, so events are sent together. What is held back
was learnt within SEND_SECONDS, which is the most that a loss costs besides the learning since the last checkpoint.
"""

from __future__ import annotations

import dataclasses
import math
import os
import socket
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from kernelrl.agents.files import replacing
from kernelrl.experiments.config import AgentEntry, Environment, ExperimentError
from kernelrl.experiments.engine import Event, Task
from kernelrl.experiments.learning import Job, learn, tidy, warm
from kernelrl.experiments.store import AGENT, HISTORY, RUN, make_folder
from kernelrl.experiments.transitions import TRANSITIONS

__all__ = ["RayEngine"]


SEND_SECONDS = 0.2
LEAST_SLOTS = 16  # so that a cluster which grows with what is asked of it begins to
SLOTS_SECONDS = 5.0  # how often the size of the cluster is looked up


def perform(
    jobs: list[dict[str, Any]], warm_only: bool, stored: list[dict[str, bytes]], sys_path: list[str]
) -> Iterator[list[dict[str, Any]]]:
    """What a task does: it continues each job from its checkpoint in `stored`; `run` is its place in the batch."""
    sys.path += [path for path in sys_path if path not in sys.path]
    held: list[dict[str, Any]] = []
    sent = time.monotonic()
    for i, (job, files) in enumerate(zip(jobs, stored, strict=True)):
        for event in perform_one(job, warm_only, files):
            held.append({"run": i, **event})
            if time.monotonic() - sent >= SEND_SECONDS:
                yield held
                held, sent = [], time.monotonic()
    if held:
        yield held


def perform_one(job: dict[str, Any], warm_only: bool, files: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """The events of one job."""
    try:
        task = Job(**job)
        if warm_only:
            warm(AgentEntry(**task.agent), Environment(**task.environment))
            yield {"kind": "finished"}
            return
        with tempfile.TemporaryDirectory(prefix="kernelrl-") as folder:
            for name, content in files.items():
                Path(folder, name).write_bytes(content)
            for event in learn(task, Path(folder), lambda: False):
                if event["kind"] == "checkpoint":
                    event["files"] = {name: Path(folder, name).read_bytes() for name in event["files"]}
                yield event
    except Exception as error:
        yield {"kind": "failed", "why": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}


def connect(address: str | None) -> None:
    """Join the cluster at `address`, or start one on this machine."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        if address is not None and address != "auto":
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit() or "/" in host:
                raise ValueError('it must be HOST:PORT of the cluster\'s head, or "auto" on one of its nodes')
            socket.create_connection((host, int(port)), timeout=10).close()  # Ray itself would try for minutes
        ray.init(address=address, log_to_driver=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise ExperimentError(f"address: there is no Ray cluster at {address!r}: {error}") from error


class Stream:
    """A Ray task, the tasks of its batch, and those of them that have not ended, that which it works on first."""

    def __init__(self, events: Any, batch: list[Task]) -> None:
        self.events, self.batch, self.left = events, batch, list(batch)


class RayEngine:
    """Tasks on the cluster at `address`, or on one started on this machine."""

    def __init__(self, workers: int | None, jobs: int, address: str | None) -> None:
        self._workers, self._jobs = workers, jobs
        self._ours = not ray.is_initialized()
        if self._ours:
            connect(address)
        # Ray must not retry by itself: it would use the checkpoint with which the task began.
        self._remote = ray.remote(num_cpus=1, max_retries=0)(perform)
        self._streams: deque[Stream] = deque()
        self._ready: deque[Event] = deque()
        self._nodes: dict[Task, str] = {}
        self._stopping = False
        self._slots, self._looked_up = 0, -math.inf

    @property
    def slots(self) -> int:
        """As many as asked for, or two for each processor of the cluster, which may grow: none waits for the driver."""
        if self._workers is not None:
            return min(self._workers, self._jobs)
        if time.monotonic() - self._looked_up >= SLOTS_SECONDS:
            processors = int(ray.cluster_resources().get("CPU", 0))
            self._slots, self._looked_up = min(max(2 * processors, LEAST_SLOTS), self._jobs), time.monotonic()
        return self._slots

    def warm_tasks(self, jobs: list[Job]) -> list[Task]:
        """One task per kind and node, since each node has its own cache."""
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        self._nodes = {Task(job, warm=True): node for node in nodes for job in jobs}
        return list(self._nodes)

    def submit(self, batch: list[Task]) -> None:
        """Send the batch, with the last checkpoints of its runs."""
        first, stored = batch[0], []
        for task in batch:
            folder = Path(task.job.path)
            if not task.warm and folder.exists():
                tidy(folder)
            names = () if task.warm else (HISTORY, TRANSITIONS, AGENT, RUN)
            files = [path for name in names if (path := folder / name).exists()]
            stored.append({path.name: path.read_bytes() for path in files})
        remote = self._remote
        if first in self._nodes:
            remote = remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(self._nodes[first], soft=True))
        events = remote.remote([dataclasses.asdict(task.job) for task in batch], first.warm, stored, sys.path)
        self._streams.append(Stream(events, batch))

    def next_event(self, timeout: float) -> Event | None:
        """The next event of a task, or its loss."""
        if not self._ready:
            self._receive(timeout)
        return self._ready.popleft() if self._ready else None

    def _receive(self, timeout: float) -> None:
        """Take the next item of a stream, which has some events, or its loss."""
        ready, _ = ray.wait([stream.events for stream in self._streams], timeout=timeout)
        if not ready:
            return
        position = next(i for i, stream in enumerate(self._streams) if stream.events is ready[0])
        self._streams.rotate(-position)
        stream = self._streams.popleft()
        try:
            for data in ray.get(next(stream.events)):
                self._take(stream, data)
        except OSError as error:  # while writing the store
            ray.cancel(stream.events, force=True)
            self._give_up(stream, "failed", {"why": f"OSError: {error}", "trace": traceback.format_exc()})
        except (ray.exceptions.RayError, StopIteration) as error:
            why = {"why": f"its task was lost: {type(error).__name__}", "trace": str(error)}
            self._give_up(stream, "stopped" if self._stopping else "died", why)
        if stream.left:
            self._streams.append(stream)  # at the end, so that all tasks have their turn

    def _take(self, stream: Stream, data: dict[str, Any]) -> None:
        task, kind = stream.batch[data.pop("run")], data.pop("kind")
        if kind == "checkpoint":
            folder = Path(task.job.path)
            make_folder(folder)
            for name, content in data.pop("files").items():  # the agent's file last, and no name before the others'
                with replacing(folder / name, sync_name=name != HISTORY) as file:
                    file.write(content)
        if kind in ("finished", "stopped", "failed"):
            stream.left.remove(task)
        self._ready.append(Event(task, kind, data))

    def _give_up(self, stream: Stream, kind: str, why: dict[str, Any]) -> None:
        """End the task that the stream works on in that way; the others of its batch have not begun, or not arrived."""
        for i, task in enumerate(stream.left):
            returned = i > 0 and not self._stopping
            self._ready.append(Event(task, "returned" if returned else kind, {} if returned else why))
        stream.left.clear()

    def stop(self) -> None:
        """Cancel the tasks; what they learnt since their last checkpoint is lost."""
        self._stopping = True
        for stream in self._streams:
            ray.cancel(stream.events, force=True)

    def close(self) -> None:
        """Leave the cluster."""
        for stream in self._streams:
            ray.cancel(stream.events, force=True)
        if self._ours:
            ray.shutdown()
