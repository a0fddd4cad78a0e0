"""A worker process: `python -m kernelrl.experiments.worker`.

It reads batches of jobs from standard input and writes events to standard output, one JSON object per line; `run` is
the place of an event's job in its batch. When the input ends, also because the parent was killed, it stores its run and
ends.
"""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

__all__ = ["main"]


class Parent:
    """The process at the other end of the pipes."""

    def __init__(self) -> None:
        self.stop = threading.Event()
        self.jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._out = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # what an environment prints must not mix with events
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if message["kind"] == "stop":
                self.stop.set()
            else:
                self.jobs.put(message)
        self.stop.set()
        self.jobs.put(None)

    def tell(self, event: dict[str, Any]) -> None:
        """Send an event; if the parent is gone, the worker still stores its run."""
        try:
            self._out.write(json.dumps(event) + "\n")
            self._out.flush()
        except BrokenPipeError:
            self.stop.set()


def work(i: int, given: dict[str, Any], parent: Parent) -> None:
    """Do job `i` of a batch."""
    from kernelrl.experiments.learning import Job, learn

    try:
        job = Job(**given)
        for event in learn(job, Path(job.path), parent.stop.is_set):
            parent.tell({"run": i, **event})
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        parent.tell({"run": i, "kind": "failed", "why": why, "trace": traceback.format_exc()})


def main() -> None:
    """Do jobs until there are no more."""
    parent = Parent()
    while (message := parent.jobs.get()) is not None:
        sys.path += [path for path in message["sys_path"] if path not in sys.path]
        for i, job in enumerate(message["jobs"]):
            if i and parent.stop.is_set():
                parent.tell({"run": i, "kind": "stopped"})
            else:
                work(i, job, parent)


if __name__ == "__main__":
    main()
