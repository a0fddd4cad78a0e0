"""What is seen on standard error while an experiment runs: live bars on a terminal, sparse lines elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any

from kernelrl.experiments.learning import Job

__all__ = ["Display"]

LINE_SECONDS = 30.0  # between two lines about a run where there is no terminal


class Display:
    """Bars of the runs under way and one of all episodes, or lines."""

    def __init__(self, jobs: list[Job], done: dict[str, int]) -> None:
        self._done = done
        self._total, self._live, self._tasks = sum(job.episodes for job in jobs), None, dict[str, Any]()
        self._said: dict[str, float] = {}
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._live = progress.Progress(
                progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
                progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[mean]}"),
                progress.TimeRemainingColumn(), console=Console(stderr=True),
            )  # fmt: skip
            self._all = self._live.add_task("all", total=self._total, completed=sum(done.values()), mean="")

    def __enter__(self) -> Display:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """A line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=sys.stderr, flush=True)

    def update(self, job: Job, episode: int, mean: float | None) -> None:
        """A run is at `episode`, and this is the mean return of its last episodes."""
        self._done[job.name] = episode
        shown = "" if mean is None else f"mean return {mean:.3g}"
        if self._live is not None:
            if job.name not in self._tasks:
                self._tasks[job.name] = self._live.add_task(job.name, total=job.episodes, completed=episode, mean=shown)
            self._live.update(self._tasks[job.name], completed=episode, mean=shown)
            self._live.update(self._all, completed=sum(self._done.values()))
        elif time.monotonic() - self._said.setdefault(job.name, time.monotonic()) >= LINE_SECONDS:
            self._said[job.name] = time.monotonic()
            self.say(f"{job.name}: episode {episode} of {job.episodes}, {shown}")

    def end(self, job: Job, text: str) -> None:
        """A run is no longer under way."""
        if self._live is not None and job.name in self._tasks:
            self._live.remove_task(self._tasks.pop(job.name))
        self.say(f"{job.name}: {text}")
