"""What an engine is: something that works on jobs and tells what happens.

An engine only moves jobs and events. What to do when a run fails is decided in one place for all engines (see
`runner`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from kernelrl.experiments.learning import Job

__all__ = ["Engine", "Event", "Task"]


@dataclass(frozen=True, eq=False)
class Task:
    """A job to learn, or only to compile for (`warm`)."""

    job: Job
    warm: bool = False


@dataclass(frozen=True)
class Event:
    """What happened to a task.

    `kind` is "progress" (episode, mean), "checkpoint", "message" (text); or an end: "finished", "stopped", "failed"
    (why, trace: an exception) or "died" (why, trace: the process is gone).
    """

    task: Task | None
    kind: str
    data: dict[str, Any] = field(default_factory=dict)


class Engine(Protocol):
    """Works on tasks."""

    slots: int
    """How many tasks may be under way at once."""

    def warm_tasks(self, jobs: list[Job]) -> list[Task]:
        """What to do before anything else, so that nothing is compiled twice; `jobs` are one of each kind.

        Where this is nothing, the first run of each kind compiles, and the others of that kind begin after it.
        """

    def submit(self, task: Task) -> None:
        """Begin a task."""

    def next_event(self, timeout: float) -> Event | None:
        """The next thing that happens, or None if nothing does for `timeout` seconds."""

    def stop(self) -> None:
        """Ask all tasks to store what they have and end."""

    def close(self) -> None:
        """End at once whatever is still under way."""
