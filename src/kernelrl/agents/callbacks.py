"""Callbacks: what `fit` calls between episodes, and the ready ones (`krl.callbacks`, docs/callbacks.md).

A callback is any function `callback(agent, history)`; `history` has the episodes of this call of `fit` so far. It is
called after every `every` episodes of the agent, counted over all calls, and at the end of each call. If it returns
False, `fit` ends. A callback may have an attribute `every` of its own: a number of episodes, or 0 for each time that
Python has control, which is about ten times per second; None means that of `fit`.

Callbacks look at the agent and do not change it: `fit` with callbacks gives the same agent as without, to the
last bit.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from kernelrl.agents.checks import as_environment, finite, positive, whole_number
from kernelrl.agents.files import as_path, require_folder
from kernelrl.agents.history import History

if TYPE_CHECKING:
    import polars

    from kernelrl.agents.base import Agent

__all__ = ["Callback", "Callbacks", "Checkpoint", "Evaluate", "StopAfter", "StopAt", "TensorBoard"]

Callback = Callable[[Any, History], Any]


class Callbacks:
    """The callbacks of one call of `fit`, and when each is due."""

    def __init__(self, callback: Any, every: Any) -> None:
        given = [] if callback is None else [callback] if callable(callback) else callback
        if not isinstance(given, Sequence) or not all(callable(each) for each in given):
            raise TypeError(f"callback must be a function (agent, history), or a list of them, got {callback!r:.200}")
        period = whole_number("every", every, 1)
        self._callbacks: list[Callback] = list(given)
        self._every = [period_of(each, period) for each in given]
        self._called = [-1] * len(given)  # the number of episodes at the last call

    def left(self, episodes: int) -> int | None:
        """How many episodes to play until the next callback is due; None if there is none."""
        periods = [every for every in self._every if every > 0]
        return min(every - episodes % every for every in periods) if periods else None

    def call(self, agent: Agent, history: Callable[[], History], end: bool = False) -> bool:
        """Call those that are due, at the `end` all; return whether one of them asks to stop."""
        k = agent.episodes
        due = [
            i for i, every in enumerate(self._every)
            if self._called[i] != k and (end or every == 0 or (k % every == 0 and k > 0))
        ]  # fmt: skip
        if not due:
            return False
        so_far, stop, agent.only_looked_at = history(), False, True
        try:
            for i in due:
                self._called[i] = k
                answer = self._callbacks[i](agent, so_far)
                stop = (isinstance(answer, bool | np.bool_) and not answer) or stop
        finally:
            agent.only_looked_at = False
        return stop


def period_of(callback: Any, period: int) -> int:
    """How many episodes there are between two calls of a callback: its own `every`, or `period`."""
    own = getattr(callback, "every", None)
    return period if own is None else whole_number("the attribute `every` of a callback", own, 0)


def check_every(every: int | None) -> int | None:
    """The argument `every`, or an error that names it."""
    return None if every is None else whole_number("every", every, 1)


class StopAt:
    """Ends `fit` when the mean return of the last `episodes` episodes of the call is at least `mean`."""

    def __init__(self, mean: float, episodes: int = 100, *, every: int | None = None) -> None:
        self.mean = finite("mean", mean)
        self.episodes, self.every = whole_number("episodes", episodes, 1), check_every(every)

    def __call__(self, agent: Agent, history: History) -> bool:
        """Whether to go on."""
        last = history.returns[-self.episodes :]
        return not (len(last) == self.episodes and float(last.mean()) >= self.mean)


class StopAfter:
    """Ends `fit` when the call has taken so many `seconds`, after the running episode."""

    every = 0

    def __init__(self, seconds: float) -> None:
        self.seconds = positive("seconds", seconds)

    def __call__(self, agent: Agent, history: History) -> bool:
        """Whether to go on."""
        return history.seconds < self.seconds


class Evaluate:
    """Plays the policy to deploy now and then; `results` is a frame of what was found.

    Args:
        env: an environment or its id; not one that `fit` uses at the same time.
        episodes: how many episodes to play each time; these are always the same, those of `seed`.
        every: the number of episodes of learning between two evaluations; None: that of `fit`.
        seed: the seed of the episodes.
    """

    def __init__(
        self, env: gym.Env[Any, Any] | str, episodes: int = 100, every: int | None = None, seed: int = 0
    ) -> None:
        self.env, self.episodes = as_environment(env), whole_number("episodes", episodes, 1)
        self.every, self.seed = check_every(every), whole_number("seed", seed, 0)
        self._rows: list[tuple[int, float, float, float, float]] = []

    def __call__(self, agent: Agent, history: History) -> None:
        """Evaluate the agent as it is now."""
        found = agent.evaluate(self.env, self.episodes, self.seed)
        low, high = found.t_interval
        self._rows.append((agent.episodes, found.mean, low, high, history.seconds))

    @property
    def results(self) -> polars.DataFrame:
        """One row for each evaluation: episode, mean, low and high (Student's 95 % interval), seconds of the call."""
        import polars

        names = {"episode": polars.Int64} | dict.fromkeys(("mean", "low", "high", "seconds"), polars.Float64)
        return polars.DataFrame(self._rows, schema=names, orient="row")


class Checkpoint:
    """Saves the agent; at any moment the whole old file or the whole new one is there.

    Args:
        path: the file. With `keep=1` it is replaced each time; else its name gets the number of episodes,
            agent.krl becomes agent-1000.krl.
        every: the number of episodes between two files; None: that of `fit`.
        keep: how many of the newest files stay; None: all.
    """

    def __init__(self, path: str | os.PathLike[str], every: int | None = None, keep: int | None = 1) -> None:
        self.path, self.every = as_path("path", path, "agent.krl"), check_every(every)
        self.keep = None if keep is None else whole_number("keep", keep, 1)
        require_folder(self.path)

    def __call__(self, agent: Agent, history: History) -> None:
        """Save the agent as it is now."""
        if self.keep == 1:
            agent.save(self.path)
            return
        agent.save(self.path.with_stem(f"{self.path.stem}-{agent.episodes}"))
        for old in self.files()[: -self.keep] if self.keep is not None else []:
            old.unlink(missing_ok=True)

    def files(self) -> list[Path]:
        """The files that there are, oldest first."""
        if self.keep == 1:
            return [self.path] if self.path.exists() else []
        form = re.compile(rf"{re.escape(self.path.stem)}-(\d+){re.escape(self.path.suffix)}")
        found = [(int(match[1]), path) for path in self.path.parent.iterdir() if (match := form.fullmatch(path.name))]
        return [path for _, path in sorted(found)]


class TensorBoard:
    """Writes returns, lengths and optimistic values of all episodes of an agent for TensorBoard.

    It needs `pip install 'kernelrl[tensorboard]'`.

    Args:
        folder: where to write; `tensorboard --logdir folder` shows it.
        every: the number of episodes from writing to writing; None: that of `fit`.
    """

    def __init__(self, folder: str | os.PathLike[str], every: int | None = None) -> None:
        self.folder, self.every = os.fspath(as_path("folder", folder, "runs")), check_every(every)
        if importlib.util.find_spec("tensorboard") is None:
            raise ImportError("TensorBoard is not installed: pip install 'kernelrl[tensorboard]'")
        self._writer: Any = None
        self._written = 0  # episodes of the agent

    def __call__(self, agent: Agent, history: History) -> None:
        """Write the episodes that have not been written yet."""
        if self._writer is None:
            self._writer = importlib.import_module("tensorboard.summary").Writer(self.folder)
        first = history.first_episode
        for i in range(max(0, self._written - first), len(history)):
            for name, values in (
                ("episode/return", history.returns), ("episode/length", history.lengths),
                ("episode/optimistic value", history.optimistic_values),
            ):  # fmt: skip
                if math.isfinite(values[i]):
                    self._writer.add_scalar(name, float(values[i]), first + i + 1)
        self._written = first + len(history)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
