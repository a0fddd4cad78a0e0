"""The history of a run that goes on: pieces are collected as arrays and become one table when it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars

if TYPE_CHECKING:
    from kernelrl.agents.history import History

__all__ = ["GrowingHistory"]

RECENT = 100  # episodes whose mean return is shown


class GrowingHistory:
    """The stored episodes of a run and those played since.

    Making a table costs more than playing a few episodes, so there is none for each piece of a run.
    """

    def __init__(self, stored: polars.DataFrame) -> None:
        self._stored = stored
        self._pieces: list[dict[str, Any]] = []
        self.episodes = len(stored)
        self.steps = int(stored["steps"].sum())
        self.steps_before_last = self.steps - (int(stored["steps"][-1]) if len(stored) else 0)
        self.seconds = float(stored["seconds"][-1]) if len(stored) else 0.0
        self._recent = stored["return"].tail(RECENT).to_numpy()

    @property
    def mean(self) -> float | None:
        """The mean return of the last episodes; None before the first."""
        return float(self._recent.mean()) if len(self._recent) else None

    def add(self, part: History) -> None:
        """Add the episodes of one call of `fit`."""
        n = len(part)
        if not n:
            return
        columns = {
            "episode": part.first_episode + np.arange(n, dtype=np.int64),
            "return": part.returns,
            "steps": part.lengths,
            "seconds": self.seconds + part.seconds * np.arange(1, n + 1) / n,
            "value": part.optimistic_values,
        }
        if part.optimism is not None:
            columns["below"], columns["shortfall"] = part.optimism.by_episode(part.first_episode, n)
        self._pieces.append(columns)
        self.episodes += n
        self.steps += int(part.lengths.sum())
        self.steps_before_last = self.steps - int(part.lengths[-1])
        self.seconds += part.seconds
        self._recent = np.concatenate([self._recent, part.returns[-RECENT:]])[-RECENT:]

    def table(self) -> polars.DataFrame:
        """All episodes."""
        if self._pieces:
            columns = {name: np.concatenate([piece[name] for piece in self._pieces]) for name in self._stored.columns}
            rows = polars.DataFrame(columns)
            self._stored = self._stored.vstack(rows) if len(self._stored) else rows
            self._pieces.clear()
        return self._stored
