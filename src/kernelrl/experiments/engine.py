"""The interface of an engine: it works on jobs and reports what happens.

An engine only moves jobs and events. `driver` decides what to do when a run fails, for all engines.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from kernelrl.experiments.learning import Job

__all__ = ["Engine", "Event", "Task"]


@dataclass(frozen=True, eq=False)
class Task:
    """A job: to learn, or only to compile its code (`warm`)."""

    job: Job
    warm: bool = False


@dataclass(frozen=True)
class Event:
    """What happened to a task.

    `kind` is "progress" (done, mean), "checkpoint", "message" (text); or an end: "finished" (done, seconds), "stopped",
    "failed" (why, trace: an exception), "died" (why, trace: the process is gone) or "returned" (it had not begun when
    the process was gone).
    """

    task: Task | None
    kind: str
    data: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Works on tasks."""

    @property
    def slots(self) -> int:
        """How many batches of tasks may be under way at the same time."""

    def warm_tasks(self, jobs: list[Job]) -> list[Task]:
        """Tasks to do first, so that nothing is compiled twice; `jobs` has one of each kind.

        If there are none, the first run of each kind compiles, and the others of that kind begin after it.
        """

    def submit(self, batch: list[Task]) -> None:
        """Begin tasks, which one process does one after the other."""

    def next_event(self, timeout: float) -> Event | None:
        """The next event, or None if there is none for `timeout` seconds."""

    def stop(self) -> None:
        """Ask all tasks to store what they have and end."""

    def close(self) -> None:
        """End all running tasks at once."""
