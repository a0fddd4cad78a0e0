"""What users see on standard error while they wait, and how `fit` handles Ctrl-C.

The command line prints the results; everything else that is shown goes through here.
"""

from __future__ import annotations

import contextlib
import html
import importlib
import math
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np

from kernelrl.jit.code_cache import cache_of
from kernelrl.jit.numba_private import event

__all__ = ["CompileNotice", "Interrupts", "Job", "Progress", "Runs", "Status", "say", "track", "waiting"]

LINE_SECONDS = 30.0  # between two lines about a run, where there is no terminal


def say(text: str) -> None:
    """Print a line on standard error."""
    print(text, file=sys.stderr, flush=True)


class Interrupts:
    """Within this context the first Ctrl-C only sets `asked`; the second raises KeyboardInterrupt."""

    def __init__(self, ending: str = "when this episode ends") -> None:
        """`ending` says when the work will stop."""
        self.asked = False
        self._ending = ending
        self._in_main_thread = threading.current_thread() is threading.main_thread()
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if self._in_main_thread:
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._in_main_thread:  # None: a handler that was not set from Python, so it cannot be put back
            signal.signal(signal.SIGINT, signal.default_int_handler if self._before is None else self._before)

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print(f"\nStopping {self._ending} (Ctrl-C again to stop at once) …", file=sys.stderr)


class Progress:
    """A bar on standard error: episodes, mean return of the last ones, time left; or rows, without `returns`."""

    def __init__(self, show: bool | None, label: str, total: int, returns: Any = None) -> None:
        self._bar: Any = None
        self._returns = returns
        shown = show if show is not None else sys.stderr.isatty() or in_notebook()
        if shown and in_notebook():
            self._bar = NotebookBar()
            self._task = self._bar.add_task(label, total=total, mean="–" if returns is not None else "")
        elif shown:
            from rich import progress
            from rich.console import Console

            collected = [] if returns is None else [progress.TextColumn("return {task.fields[mean]}")]
            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
                *collected, progress.TimeRemainingColumn(), console=Console(stderr=True),
            )  # fmt: skip
            self._task = self._bar.add_task(label, total=total, mean="–")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int, shown: int | None = None) -> None:
        """Show that `done` episodes have been played, or rows taken in; the bar is at `shown`, if that is given."""
        if self._bar is not None and done:
            recent = [] if self._returns is None else self._returns[max(0, done - 100) : done]
            mean = f"{float(np.mean(recent)):.3g}" if len(recent) else ""
            self._bar.update(self._task, completed=done if shown is None else shown, mean=mean)

    def say(self, text: Callable[[], str]) -> None:
        """Print a line that stays below the bar, if there is a bar and something to say."""
        if self._bar is not None and (line := text()):
            self._bar.stop()
            print(line, file=sys.stderr)


def in_notebook() -> bool:
    """Whether this is a cell of a Jupyter notebook, whose output is no terminal and shows HTML."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """A bar below a notebook's cell; it has what `Progress` uses of rich's bar."""

    def __init__(self) -> None:
        self._shown: Any = None
        self._drawn, self._began = -math.inf, time.monotonic()
        self._label, self._total, self._done, self._mean = "", 0, 0, ""

    def add_task(self, label: str, total: int, mean: str) -> int:
        """Say what is counted."""
        self._label, self._total, self._mean = label, total, mean
        return 0

    def start(self) -> None:
        """Show it."""
        display = importlib.import_module("IPython.display").display
        self._began = time.monotonic()
        self._shown = display(self, display_id=True)

    def update(self, task: int, completed: int, mean: str) -> None:
        """Show that so much is done, at most five times per second."""
        self._done, self._mean = completed, mean
        if self._shown is not None and time.monotonic() - self._drawn >= 0.2:
            self._drawn = time.monotonic()
            self._shown.update(self)

    def stop(self) -> None:
        """Show where it ended."""
        if self._shown is not None:
            self._shown.update(self)
            self._shown = None

    def __repr__(self) -> str:
        left = (time.monotonic() - self._began) * (self._total - self._done) / max(self._done, 1)
        collected = f", return {self._mean}" if self._mean else ""
        when = f", {left:.0f} s left" if 0 < self._done < self._total else ""
        return f"{self._label}: {self._done}/{self._total}{collected}{when}"

    def _repr_html_(self) -> str:
        bar = f'<progress value="{self._done}" max="{max(self._total, 1)}" style="width: 20em"></progress>'
        return f"{bar} {html.escape(repr(self))}"


@contextlib.contextmanager
def track(what: str, total: int, show: bool) -> Iterator[Callable[[], None]]:
    """Show a bar on a terminal while `total` pieces of work are done; call what is yielded after each."""
    if not (show and sys.stderr.isatty()):
        yield lambda: None
        return
    from rich import progress
    from rich.console import Console

    with progress.Progress(console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


class Status:
    """A line on standard error, on a terminal, that says what is being done."""

    def __init__(self) -> None:
        from rich.console import Console

        self._status = Console(stderr=True).status("") if sys.stderr.isatty() else None

    def __enter__(self) -> Status:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._status is not None:
            self._status.stop()

    def say(self, text: str) -> None:
        """Show `text`."""
        if self._status is not None:
            from rich.markup import escape as plain

            self._status.update(f"{plain(text)} …")


@contextlib.contextmanager
def waiting(what: str, show: bool) -> Iterator[None]:
    """Say on a terminal what is being done, while it is."""
    if not (show and sys.stderr.isatty()):
        yield
        return
    with Status() as status:
        status.say(what)
        yield


class Job(Protocol):
    """What `Runs` must know about a run."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def goal(self) -> int:
        """How many episodes, or steps, it will have."""

    @property
    def unit(self) -> str:
        """Which of these: "episode" or "step"."""


class Runs:
    """The display while an experiment runs: live bars on a terminal, a line now and then elsewhere."""

    def __init__(self, total: int) -> None:
        """`total` is the number of episodes, or steps, of all runs."""
        self._live, self._tasks = None, dict[str, Any]()
        self._done: dict[str, int] = {}  # of the runs under way, by name
        self._ended = 0  # of the others
        self._said: dict[str, float] = {}
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._live = progress.Progress(
                progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
                progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[mean]}"),
                progress.TimeRemainingColumn(), console=Console(stderr=True),
            )  # fmt: skip
            self._all = self._live.add_task("all", total=total, mean="")

    def __enter__(self) -> Runs:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        else:
            say(text)

    def update(self, job: Job, done: int, mean: float | None) -> None:
        """Show how many episodes, or steps, of a run are done, and the mean return of its last episodes."""
        self._done[job.name] = done
        shown = "" if mean is None else f"mean return {mean:.3g}"
        if self._live is not None:
            if job.name not in self._tasks:
                self._tasks[job.name] = self._live.add_task(job.name, total=job.goal, completed=done, mean=shown)
            self._live.update(self._tasks[job.name], completed=done, mean=shown)
            self._live.update(self._all, completed=self._ended + sum(self._done.values()))
        elif time.monotonic() - self._said.setdefault(job.name, time.monotonic()) >= LINE_SECONDS:
            self._said[job.name] = time.monotonic()
            self.say(f"{job.name}: {job.unit} {done} of {job.goal}, {shown}")

    def end(self, job: Job, text: str, done: int | None = None) -> None:
        """Show that a run has ended, with so many episodes or steps; by default as many as were shown last."""
        shown = self._done.pop(job.name, 0)
        self._ended += shown if done is None else done
        self._said.pop(job.name, None)
        if self._live is not None:
            self._live.update(self._all, completed=self._ended + sum(self._done.values()))
        if self._live is not None and job.name in self._tasks:
            self._live.remove_task(self._tasks.pop(job.name))
        self.say(f"{job.name}: {text}")


QUICK = ("ask_for_room",)  # compiled in a fraction of a second


class CompileNotice(event.Listener):  # type: ignore[misc]
    """Explains the pause when numba compiles an algorithm; once per algorithm and process."""

    def __init__(self) -> None:
        self._said: set[type] = set()
        self._depth = 0  # an entry function is compiled at depth 1, what it calls below it

    def on_start(self, event: Any) -> None:
        """An entry function and everything it calls is about to be compiled: the cache does not have it."""
        self._depth += 1
        module = event.data["dispatcher"].py_func.__module__
        quick = event.data["dispatcher"].__name__ in QUICK
        if self._depth > 1 or quick or not module.startswith("kernelrl."):
            return
        classes = (getattr(kind, "instance_class", None) for kind in event.data["args"])
        cls = next((cls for cls in classes if "stream" in getattr(cls, "_fields", ())), None)
        if cls is None or cls in self._said:  # it is no algorithm's
            return
        self._said.add(cls)
        print(f"Compiling {cls.__name__.removesuffix('Model')} ({how_often(event)}) …", file=sys.stderr, flush=True)

    def on_end(self, event: Any) -> None:
        """It has been compiled."""
        self._depth -= 1


def how_often(event: Any) -> str:
    """Whether the compiled code is kept and, if not, why."""
    cache = cache_of(event.data["dispatcher"])
    if cache is None:
        return "in each process again"
    unknown = cache.why_not_kept(tuple(event.data["args"]))
    if unknown:
        return f"in each process again, since it uses {unknown}"
    return "once; the result is kept" if cache.can_keep() else "in each process again: the cache cannot be written"


event.register("numba:compile", CompileNotice())
