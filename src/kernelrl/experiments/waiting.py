"""The tasks of an experiment that wait for their turn, in order.

There may be many more of them than are under way at a time, so a task is made when its turn comes; until then it is the
position of its job. Those that need the same machine code stand in one line, since all but the first of them wait while
that is being compiled.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

from kernelrl.experiments.engine import Task
from kernelrl.experiments.learning import Job

__all__ = ["Waiting"]


class Waiting:
    """Tasks for `jobs`; `kind_of` names the machine code that a job needs, if it is not compiled yet."""

    def __init__(self, jobs: Sequence[Job], kind_of: Callable[[Job], Any] = lambda job: None) -> None:
        self._jobs, self.kind_of = jobs, kind_of
        self._again: deque[Task] = deque()
        lines: dict[Any, array[int]] = {}
        for i, job in enumerate(jobs):
            lines.setdefault(kind_of(job), array("q")).append(i)
        self._lines: dict[Any, Iterator[int]] = {kind: iter(line) for kind, line in lines.items()}
        self._heads = {kind: next(line) for kind, line in self._lines.items()}
        self._left = len(jobs)

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Self:
        """Tasks that have been made."""
        waiting = cls(())
        for task in reversed(tasks):
            waiting.put_back(task)
        return waiting

    def __len__(self) -> int:
        return self._left + len(self._again)

    def first_of_each(self) -> dict[Any, Job]:
        """The first job of each kind."""
        return {kind: self._jobs[i] for kind, i in self._heads.items()}

    def put_back(self, task: Task) -> None:
        """Let a task be the next one."""
        self._again.appendleft(task)

    def take(self, being_compiled: set[Any]) -> Task | None:
        """The first task that does not need what is `being_compiled`."""
        for task in self._again:
            if self.kind_of(task.job) not in being_compiled:
                self._again.remove(task)
                return task
        free = [(i, kind) for kind, i in self._heads.items() if kind not in being_compiled]
        return self._made(min(free, key=lambda entry: entry[0])[1]) if free else None

    def take_like(self, task: Task) -> Task | None:
        """The next task of its line, if it is a run of the same agent on the same problem that was not tried before."""
        kind = self.kind_of(task.job)
        if self._again or kind not in self._heads:
            return None
        job = self._jobs[self._heads[kind]]
        return self._made(kind) if (job.problem, job.label) == (task.job.problem, task.job.label) else None

    def _made(self, kind: Any) -> Task:
        task = Task(self._jobs[self._heads.pop(kind)])
        if (following := next(self._lines[kind], None)) is not None:
            self._heads[kind] = following
        self._left -= 1
        return task
