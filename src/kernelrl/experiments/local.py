"""The local engine: worker processes on this machine, each of which does one batch of jobs after the other."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections import deque
from typing import Any

from kernelrl.experiments.engine import Event, Task
from kernelrl.experiments.learning import Job

__all__ = ["LocalEngine"]

# A worker uses one thread: the other cores are for other workers.
SINGLE = ("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Worker:
    """A process and the tasks it has."""

    def __init__(self, inherited: int, inbox: queue.Queue[tuple[Worker, dict[str, Any]]]) -> None:
        self.batch: list[Task] = []
        self.left: list[Task] = []  # of the batch: that which it works on first
        self.learning = False  # before, it only compiles and has nothing to store
        self.dismissed = False
        self.last_words: deque[str] = deque(maxlen=30)
        self._inbox = inbox
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "kernelrl.experiments.worker"],  # -P: not from the current folder
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8",
            errors="replace", env={**os.environ, "PYTHONPATH": python_path(), **dict.fromkeys(SINGLE, "1")},
            pass_fds=(inherited,), process_group=0,  # only the parent gets Ctrl-C
        )  # fmt: skip
        self._errors = threading.Thread(target=self._read_errors, daemon=True)
        self._errors.start()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self._inbox.put((self, json.loads(line)))
        self.process.wait()
        self._errors.join(1.0)
        self._inbox.put((self, {"kind": "died"}))

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as lines:
            for line in lines:
                self.last_words.append(line)
                self._inbox.put((self, {"kind": "message", "text": line.rstrip()}))

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; if the worker has died, its end is reported anyway."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def finish(self) -> None:
        """End the process: without a task by closing its input, otherwise at once."""
        assert self.process.stdin is not None
        if self.left:
            self.process.kill()
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> str:
        """How the process ended."""
        code = self.process.returncode
        if code < 0:
            return f"the worker was killed by {signal.Signals(-code).name}"
        return f"the worker ended with status {code}"


def ends_of(worker: Worker) -> list[Event]:
    """What the end of a process means for its tasks: only the first of them had begun."""
    if worker.dismissed:
        return [Event(task, "stopped") for task in worker.left]
    message = {"why": worker.end(), "trace": "".join(worker.last_words)}
    return [Event(task, "returned" if i else "died", {} if i else message) for i, task in enumerate(worker.left)]


def python_path() -> str:
    """The import path of this process, for workers."""
    return os.pathsep.join(path for path in sys.path if path and os.path.isdir(path))


class LocalEngine:
    """Worker processes, started when needed; they inherit the file descriptor that holds the folder's lock."""

    def __init__(self, workers: int, inherited: int) -> None:
        self.slots = workers
        self._ready: deque[Event] = deque()
        self._inherited = inherited
        self._workers: list[Worker] = []
        self._inbox: queue.Queue[tuple[Worker, dict[str, Any]]] = queue.Queue()

    def warm_tasks(self, jobs: list[Job]) -> list[Task]:
        """No tasks: all workers share one cache, so the first run of each kind compiles for the others."""
        return []

    def submit(self, batch: list[Task]) -> None:
        """Give the batch to an idle worker or to a new one."""
        worker = next((worker for worker in self._workers if not worker.left), None)
        if worker is None:
            worker = Worker(self._inherited, self._inbox)
            self._workers.append(worker)
        worker.batch, worker.left, worker.learning = batch, list(batch), False
        jobs = [dataclasses.asdict(task.job) for task in batch]
        worker.send({"kind": "learn", "jobs": jobs, "sys_path": sys.path})

    def next_event(self, timeout: float) -> Event | None:
        """The next message of a worker, or its death."""
        if self._ready:
            return self._ready.popleft()
        try:
            worker, message = self._inbox.get(timeout=timeout)
        except queue.Empty:
            return None
        kind = message.pop("kind")
        if kind == "died":
            self._workers.remove(worker)
            worker.finish()
            self._ready.extend(ends_of(worker))
            return self._ready.popleft() if self._ready else None
        if kind == "message":
            return Event(None, kind, message)
        task = worker.batch[message.pop("run")]
        worker.learning |= kind == "progress"
        if kind in ("finished", "stopped", "failed"):
            worker.left.remove(task)
        return Event(task, kind, message)

    def stop(self) -> None:
        """Ask all workers to store what they have and end their jobs; one that only compiles has nothing to store."""
        for worker in self._workers:
            if worker.left and not worker.learning:
                worker.dismissed = True
                worker.process.kill()
            worker.send({"kind": "stop"})

    def close(self) -> None:
        """End the workers: those without a job normally, the others at once."""
        for worker in self._workers:
            worker.finish()
        for worker in self._workers:
            try:
                worker.process.wait(10)
            except subprocess.TimeoutExpired:
                worker.process.kill()
                worker.process.wait()
