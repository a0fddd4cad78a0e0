"""What `fit` shows while it runs, and how it takes Ctrl-C."""

from __future__ import annotations

import signal
import sys
import threading
import types
from typing import Any

import numba
import numpy as np

from kernelrl.core.compile import cache_dir

__all__ = ["Interrupts", "Progress", "note_compiled", "say_if_compiling"]


class Interrupts:
    """Within this context the first Ctrl-C only sets `asked`; the second raises KeyboardInterrupt."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *exception: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        print("\nStopping when this episode ends (Ctrl-C again to stop at once) …", file=sys.stderr)


class Progress:
    """A bar on standard error: episodes, mean return of the last ones, time left."""

    def __init__(self, show: bool | None, label: str, total: int, returns: Any) -> None:
        self._bar: Any = None
        self._returns = returns
        if show if show is not None else sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"), progress.BarColumn(), progress.MofNCompleteColumn(),
                progress.TextColumn("return {task.fields[mean]}"), progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )  # fmt: skip
            self._task = self._bar.add_task(label, total=total, mean="–")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, done: int) -> None:
        """Show that `done` episodes have been played."""
        if self._bar is not None and done:
            mean = float(np.mean(self._returns[max(0, done - 100) : done]))
            self._bar.update(self._task, completed=done, mean=f"{mean:.3g}")


def marker(model: Any, dynamics: Any) -> Any:
    """The file that says that this combination has been compiled and cached."""
    space = getattr(getattr(model, "settings", None), "space", None)
    return cache_dir() / "-".join(["compiled", type(model).__name__, type(space).__name__, type(dynamics).__name__])


compiled_here: set[str] = set()


def say_if_compiling(model: Any, dynamics: Any) -> None:
    """Say so before a pause for compiling."""
    file = marker(model, dynamics)
    if numba.config.DISABLE_JIT or file.name in compiled_here:
        return
    if not file.exists():
        print(f"Compiling {type(model).__name__} (once; the result is kept) …", file=sys.stderr, flush=True)


def note_compiled(model: Any, dynamics: Any) -> None:
    """Remember that this combination has been compiled."""
    file = marker(model, dynamics)
    if file.name in compiled_here or numba.config.DISABLE_JIT:
        return
    compiled_here.add(file.name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    except OSError:
        pass  # an unwritable cache costs a message too many, nothing else
