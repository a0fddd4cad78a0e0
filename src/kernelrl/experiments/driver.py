"""What follows from the events of an engine: which tasks begin, what is shown, and what happens when a run fails.

Short runs are sent in batches, because sending a task and taking its end cost more than a run of a few milliseconds.
The first runs of an agent on a problem go alone and show how long one takes.
"""

from __future__ import annotations

import math
import signal
import threading
import types
from pathlib import Path
from typing import Any

from kernelrl import console
from kernelrl.experiments.engine import Engine, Task
from kernelrl.experiments.plan import Result
from kernelrl.experiments.store import AGENT
from kernelrl.experiments.waiting import Waiting
from kernelrl.peers.library import is_peer

__all__ = ["Driver", "Stopping"]

RETRIES = 2  # how often a failed run is tried again without a new checkpoint in between
BATCH_SECONDS = 0.5
MOST_IN_BATCH = 100


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


class Driver:
    """Runs tasks on an engine.

    The first task of each kind of machine code compiles it; the others of that kind wait until it has begun to learn.
    """

    def __init__(self, engine: Engine, display: console.Runs, stopping: Stopping, result: Result) -> None:
        self._engine, self._display, self._stopping, self._result = engine, display, stopping, result
        self._compiled: set[Any] = {None}
        self._waiting = Waiting(())
        self._running: dict[Task, list[Task]] = {}  # each with those of its batch that have not ended
        self._batches = 0
        self._attempts: dict[Task, int] = {}
        self._seconds: dict[tuple[str, str], float] = {}  # how long the last run of an agent on a problem took

    def drain(self, waiting: Waiting) -> None:
        """Work until all tasks have ended."""
        self._waiting = waiting
        told = False
        while self._running or (self._waiting and not self._stopping.asked):
            if self._stopping.asked and not told:
                self._display.say("Stopping: the runs store what they have (Ctrl-C again to stop at once) …")
                self._engine.stop()
                told = True
            while self._batches < self._engine.slots and not self._stopping.asked:
                batch = self._next()
                if not batch:
                    break
                left = list(batch)
                self._running |= {task: left for task in batch}
                self._batches += 1
                self._engine.submit(batch)
            event = self._engine.next_event(0.2)
            if event is not None:
                self._take(event.task, event.kind, event.data)

    def _next(self) -> list[Task]:
        """The first task that waits for nothing, and others like it if they are short."""
        being_compiled = {self._kind(task) for task in self._running} - self._compiled
        task = self._waiting.take(being_compiled)
        if task is None:
            return []
        batch, seconds = [task], self._seconds.get((task.job.problem, task.job.label))
        if seconds is None or task in self._attempts:
            return batch
        share = math.ceil((1 + len(self._waiting)) / self._engine.slots)  # for the end of an experiment
        most = min(MOST_IN_BATCH, int(BATCH_SECONDS / max(seconds, 1e-9)), share)
        while len(batch) < most and (another := self._waiting.take_like(task)) is not None:
            batch.append(another)
        return batch

    def _kind(self, task: Task) -> Any:
        return self._waiting.kind_of(task.job)

    def _take(self, task: Task | None, kind: str, data: dict[str, Any]) -> None:
        if kind == "message":
            self._display.say(data["text"])
        if task is None or task not in self._running:
            return
        if kind == "progress":
            self._compiled.add(self._kind(task))
            self._display.update(task.job, data["done"], data["mean"])
        elif kind == "checkpoint":
            self._attempts.pop(task, None)
        elif kind in ("finished", "stopped"):
            self._ended(task)
            if not task.warm:
                self._seconds[task.job.problem, task.job.label] = data.get("seconds", float("inf"))
                self._display.end(task.job, kind, data.get("done"))
        elif kind == "returned":
            self._ended(task)
            self._attempts.setdefault(task, 0)  # so that it goes alone: what ended the process may do so again
            self._waiting.put_back(task)
        elif kind in ("failed", "died"):
            self._ended(task)
            if not task.warm:  # an error while compiling shows again in the run itself
                self._failed(task, data["why"], data["trace"])

    def _ended(self, task: Task) -> None:
        batch = self._running.pop(task)
        batch.remove(task)
        self._batches -= not batch

    def _failed(self, task: Task, why: str, trace: str) -> None:
        self._attempts[task] = self._attempts.get(task, 0) + 1
        if self._attempts[task] <= RETRIES:
            stored = Path(task.job.path, AGENT).exists() and not is_peer(task.job.agent["agent"])
            then = "going on from the last checkpoint" if stored else "nothing is stored yet, beginning again"
            self._display.say(f"{task.job.name}: {why}; {then}")
            self._waiting.put_back(task)
        else:
            attempts = self._attempts.pop(task)
            self._result.failed[task.job.key] = f"{why}\n{trace}".strip()
            self._display.end(task.job, f"failed {attempts} times: {why}\n{trace}".rstrip())
