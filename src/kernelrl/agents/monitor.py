"""The optimism monitor: how often and by how much V^k < V* at the states that a run visits.

The analysis depends on optimism, V^k_h ≥ V*_h everywhere; the simplified bonus does not guarantee it. On an environment
whose optimal values are known, `fit(..., monitor=optimal_values)` records V^k_h just before each choice.

A `Watched` model passes every verb on to the algorithm, so the run is the same to the last bit; it is plain Python, so
it needs the Python driver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.episodes.verbs import begin_episode, choose, end_episode, has_room, observe, read_values

__all__ = ["Monitor", "Optimism", "Watched"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
ROUNDING = 1e-9


@dataclass(frozen=True)
class Optimism:
    """Optimistic and optimal values at every visited state of a run, in order, in the environment's units."""

    episodes: Integers
    """(n,) number of the episode, from 0 in the agent's first one."""
    steps: Integers
    """(n,) step of the episode, from 0."""
    values: Floats
    """(n,) V^k_h when the action was chosen."""
    optimal: Floats
    """(n,) V*_h."""

    @property
    def shortfalls(self) -> Floats:
        """(n,) max(0, V*_h - V^k_h)."""
        gap = self.optimal - self.values
        return np.where(gap > ROUNDING, gap, 0.0)

    @property
    def rate(self) -> float:
        """The share of visited states at which V^k_h < V*_h."""
        return float((self.shortfalls > 0.0).mean()) if self.values.size else 0.0

    @property
    def worst(self) -> float:
        """The largest shortfall."""
        return float(self.shortfalls.max(initial=0.0))

    def by_episode(self, first: int, count: int) -> tuple[Integers, Floats]:
        """(count,) states with V^k_h < V*_h and (count,) largest shortfall, of episodes `first` … `first`+`count`-1."""
        below, worst = np.zeros(count, np.int64), np.zeros(count)
        shortfalls = self.shortfalls
        np.add.at(below, self.episodes - first, shortfalls > 0.0)
        np.maximum.at(worst, self.episodes - first, shortfalls)
        return below, worst

    @property
    def moved(self) -> float:
        """The share of visited states where V^k_h is below the largest value seen at that step, that without data."""
        if not self.values.size:
            return 0.0
        caps = np.zeros(int(self.steps.max()) + 1)
        np.maximum.at(caps, self.steps, self.values)
        return float((self.values < caps[self.steps] - ROUNDING).mean())


class Monitor:
    """Collects values at visited states."""

    def __init__(self, optimal: Any, first_episode: int, in_own_units: Callable[[Any, int], Any]) -> None:
        """`optimal(states, step)` gives V*_h (n,) at `states` (n, d); or an object with such a method `values`.

        `in_own_units(values, step)` converts the algorithm's values to the environment's units.
        """
        self.optimal = getattr(optimal, "values", optimal)
        if not callable(self.optimal):
            raise TypeError(f"monitor must be a function (states, step) → V*_h at the states, got {optimal!r}")
        self.states: list[Floats] = []
        self.visits: list[tuple[int, int, float]] = []
        self.episode = first_episode
        self.in_own_units = in_own_units

    def note(self, state: Floats, h: int, value: float) -> None:
        """Keep the value at a visited state."""
        self.states.append(state.copy())
        self.visits.append((self.episode, h, float(self.in_own_units(value, h))))

    def result(self, episodes_played: int) -> Optimism:
        """The values of the first `episodes_played` episodes, with the optimal values."""
        visits = np.array(self.visits, np.float64).reshape(-1, 3)
        whole = visits[:, 0] < episodes_played
        visits, states = visits[whole], np.array(self.states)[whole]
        episodes, steps = visits[:, 0].astype(np.int64), visits[:, 1].astype(np.int64)
        optimal = np.zeros(len(visits))
        for h in np.unique(steps):
            at = steps == h
            found = np.asarray(self.optimal(states[at], int(h)), np.float64)
            if found.shape != (int(at.sum()),):
                raise ValueError(f"monitor must return one value per state, {at.sum()} values, got shape {found.shape}")
            optimal[at] = found
        return Optimism(episodes, steps, visits[:, 2].copy(), optimal)


class Watched(NamedTuple):
    """An algorithm's model whose values are recorded before each choice."""

    model: Any
    monitor: Monitor


@has_room.implement_plain(Watched)
def has_room_watched(watched: Watched) -> Any:
    """Ask the algorithm."""
    return has_room(watched.model)


@begin_episode.implement_plain(Watched)
def begin_watched(watched: Watched) -> None:
    """Pass it on."""
    begin_episode(watched.model)


@choose.implement_plain(Watched)
def choose_watched(watched: Watched, state: Floats, h: int) -> Any:
    """Record the value, then choose."""
    watched.monitor.note(state, h, float(read_values(watched.model, state, h)))
    return choose(watched.model, state, h)


@observe.implement_plain(Watched)
def observe_watched(
    watched: Watched, state: Floats, action: int, reward: float, next_state: Floats, h: int, terminated: bool
) -> None:
    """Pass it on."""
    observe(watched.model, state, action, reward, next_state, h, terminated)


@read_values.implement_plain(Watched)
def read_watched(watched: Watched, state: Floats, h: int) -> Any:
    """Ask the algorithm."""
    return read_values(watched.model, state, h)


@end_episode.implement_plain(Watched)
def end_watched(watched: Watched) -> None:
    """Pass it on, and count the episode."""
    end_episode(watched.model)
    watched.monitor.episode += 1
