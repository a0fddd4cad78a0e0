"""The Ray engine: every run is a task of a Ray cluster.

Nodes need not share a file system. A task learns in its own folder and streams its events back, checkpoints as the
bytes of their files; only the driver writes the store. If a task is lost with its worker or node, the driver sends the
last checkpoint to a new one.
"""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
import tempfile
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
from kernelrl.experiments.learning import Job, learn, warm
from kernelrl.experiments.store import AGENT, HISTORY, RUN
from kernelrl.experiments.transitions import TRANSITIONS

__all__ = ["RayEngine"]


def perform(job: dict[str, Any], warm_only: bool, files: dict[str, bytes], sys_path: list[str]) -> Iterator[Any]:
    """What a task does: it continues the job from the checkpoint in `files`."""
    sys.path += [path for path in sys_path if path not in sys.path]
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


class RayEngine:
    """Tasks on the cluster at `address`, or on one started on this machine."""

    def __init__(self, slots: int, address: str | None) -> None:
        self.slots = slots
        self._ours = not ray.is_initialized()
        if self._ours:
            connect(address)
        # Ray must not retry by itself: it would use the checkpoint with which the task began.
        self._remote = ray.remote(num_cpus=1, max_retries=0)(perform)
        self._under_way: deque[tuple[Any, Task]] = deque()
        self._nodes: dict[Task, str] = {}
        self._stopping = False

    def warm_tasks(self, jobs: list[Job]) -> list[Task]:
        """One task per kind and node, since each node has its own cache."""
        nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU", 0) >= 1]
        self._nodes = {Task(job, warm=True): node for node in nodes for job in jobs}
        return list(self._nodes)

    def submit(self, task: Task) -> None:
        """Send the task, with the last checkpoint of its run."""
        files = {}
        if not task.warm:
            folder = Path(task.job.path)
            names = [name for name in (HISTORY, TRANSITIONS, AGENT, RUN) if (folder / name).exists()]
            files = {name: (folder / name).read_bytes() for name in names}
        remote = self._remote
        if task in self._nodes:
            remote = remote.options(scheduling_strategy=NodeAffinitySchedulingStrategy(self._nodes[task], soft=True))
        stream = remote.remote(dataclasses.asdict(task.job), task.warm, files, sys.path)
        self._under_way.append((stream, task))

    def next_event(self, timeout: float) -> Event | None:
        """The next event of a task, or its loss."""
        ready, _ = ray.wait([stream for stream, _ in self._under_way], timeout=timeout)
        if not ready:
            return None
        position = next(i for i, (stream, _) in enumerate(self._under_way) if stream is ready[0])
        self._under_way.rotate(-position)
        stream, task = self._under_way.popleft()
        try:
            data = ray.get(next(stream))
        except (ray.exceptions.RayError, StopIteration) as error:
            kind = "stopped" if self._stopping else "died"
            return Event(task, kind, {"why": f"its task was lost: {type(error).__name__}", "trace": str(error)})
        kind = data.pop("kind")
        if kind == "checkpoint":
            try:
                for name, content in data.pop("files").items():
                    with replacing(Path(task.job.path, name)) as file:
                        file.write(content)
            except OSError as error:
                ray.cancel(stream, force=True)
                return Event(task, "failed", {"why": f"OSError: {error}", "trace": traceback.format_exc()})
        if kind not in ("finished", "stopped", "failed"):
            self._under_way.append((stream, task))  # at the end, so that all tasks have their turn
        return Event(task, kind, data)

    def stop(self) -> None:
        """Cancel the tasks; what they learnt since their last checkpoint is lost."""
        self._stopping = True
        for stream, _ in self._under_way:
            ray.cancel(stream, force=True)

    def close(self) -> None:
        """Leave the cluster."""
        for stream, _ in self._under_way:
            ray.cancel(stream, force=True)
        if self._ours:
            ray.shutdown()
