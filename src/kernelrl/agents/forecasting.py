"""What more episodes would be worth, simulated before they are played.

The transitions so far are resampled with replacement, episode by episode: a bootstrap. From each resample an
environment is made in which what happened near a state happens there again (`kernelrl.envs.resampled`). A copy of the
agent, with all that it has learnt, goes on in it, and after 0, n_1, n_2 … more episodes its policy to deploy is
evaluated there. The mean over the resamples is the forecast; their spread says how much it depends on which episodes
were played.

What is assumed, and when it fails:

    the transitions say how the system behaves     a reward that has never been seen is not in the forecast, nor is a
                                                   way that has never been gone: the forecast is then too low, and the
                                                   gain of more episodes, too
    states near each other behave alike            where samples are few, a distant one stands for a state
    a policy is as good as its simulation          errors of the simulation are seen by the policy that is best in it,
                                                   so that values can be too high
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.checks import flag_or_none, whole_number
from kernelrl.agents.rows import Rows, rows_of
from kernelrl.agents.tables import read_table
from kernelrl.console import Progress
from kernelrl.envs.resampled import Resampled
from kernelrl.stores.log import first_rows

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Forecast", "forecast"]

FEWEST = 5  # episodes in the data below which a resample says nothing
CAVEAT = (
    "simulated from the episodes so far: what they have not seen is not in it, and errors of the simulation can make "
    "values too high"
)


@dataclass(frozen=True)
class Forecast:
    """Values of the policy to deploy after more episodes, in the environment's units, as simulated from the data."""

    played: int
    """How many episodes the data have."""
    episodes: npt.NDArray[np.int64]
    """(m,) how many more; the first is 0."""
    values: npt.NDArray[np.float64]
    """(resamples, m) the mean return of the policy to deploy, in each resample of the data."""

    @property
    def mean(self) -> npt.NDArray[np.float64]:
        """(m,) the expected values."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def interval(self) -> npt.NDArray[np.float64]:
        """(2, m) the tenth and the ninetieth percentile of the resamples."""
        return np.quantile(self.values, [0.1, 0.9], axis=0)

    @property
    def gain(self) -> npt.NDArray[np.float64]:
        """(m,) the expected value less that of now, with the same resamples."""
        return np.asarray((self.values - self.values[:, :1]).mean(axis=0))

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        low, high = self.interval
        return {
            "played": self.played, "more episodes": self.episodes.tolist(), "value": self.mean.tolist(),
            "low": low.tolist(), "high": high.tolist(), "gain": self.gain.tolist(),
        }  # fmt: skip

    def __str__(self) -> str:
        low, high = self.interval
        lines = [f"Value of the policy to deploy, after {self.played} episodes and more (80 % of resamples)"]
        lines += [
            f"{'now' if not n else f'+{n:,}':>8}  {mean:10.4g}   [{a:.4g}, {b:.4g}]"
            for n, mean, a, b in zip(self.episodes.tolist(), self.mean, low, high, strict=True)
        ]
        return "\n".join([*lines, f"({CAVEAT})"])


def forecast(
    agent: Agent,
    episodes: Sequence[int],
    table: Any,
    resamples: int,
    evaluations: int,
    seed: int,
    progress: bool | None,
) -> Forecast:
    """What `agent.forecast` returns; the agent does not change."""
    marks, progress = marks_of(episodes), flag_or_none("progress", progress)
    resamples, evaluations = whole_number("resamples", resamples, 1), whole_number("evaluations", evaluations, 1)
    seed, rows = whole_number("seed", seed, 0), transitions_of(agent, table)
    first = first_rows(rows.states, rows.next_states, rows.terminated, rows.steps)
    if len(first) < FEWEST:
        raise ValueError(f"transitions: a forecast needs {FEWEST} episodes or more, and these are of {len(first)}")
    values = np.zeros((resamples, len(marks)))
    with Progress(progress, "Forecast", resamples * len(marks)) as bar, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on settings of copies
        for b in range(resamples):
            env, copied = resampled(agent, rows, first, seed, b), copy.deepcopy(agent)
            copied.running = copied.rigs = None  # open episodes are left behind: what was told stays learnt
            for m, more in enumerate(np.diff(marks, prepend=0).tolist()):
                if more and copied.fit(env, more, progress=False).interrupted:
                    raise KeyboardInterrupt  # else the value of fewer episodes would stand in the forecast
                values[b, m] = copied.evaluate(env, evaluations, seed).mean
                bar.update(b * len(marks) + m + 1)
    return Forecast(len(first), marks, values)


def marks_of(episodes: Sequence[int]) -> npt.NDArray[np.int64]:
    """The numbers of episodes in order, beginning with 0."""
    given = [episodes] if isinstance(episodes, str) or not isinstance(episodes, Iterable) else list(episodes)
    if not given:
        raise ValueError("episodes must have numbers of further episodes, such as [50, 100, 200]; it is empty")
    return np.array(sorted({0, *(whole_number("episodes", n, 1) for n in given)}), np.int64)


def transitions_of(agent: Agent, table: Any) -> Rows:
    """The transitions from a table, or else those that the agent has kept."""
    agent.check_started()
    if agent.spaces.discrete:
        raise TypeError("forecast: it needs states of a Box; those of a Discrete space have no neighbours")
    if table is not None:
        try:
            return rows_of(agent, read_table(table, ()))
        except (TypeError, ValueError) as error:  # which call it a table
            kind = TypeError if isinstance(error, TypeError) else ValueError  # subclasses may need more than a text
            raise kind(f"transitions{str(error).removeprefix('table')}") from error
    kept = agent.kept_transitions()
    if kept is None:
        raise ValueError(
            f"transitions: this {type(agent).__name__} has not kept its transitions, as only agents with automatic "
            "settings do; give them, such as transitions=history.transitions of fit(…, transitions=True)"
        )
    return kept


def resampled(agent: Agent, rows: Rows, first: npt.NDArray[np.int64], seed: int, b: int) -> Resampled:
    """The environment of the resample with number `b`."""
    spaces, rng = agent.spaces, np.random.default_rng([seed, b])
    lengths = np.diff(first, append=len(rows.states))
    drawn = rng.integers(len(first), size=len(first))
    taken = np.concatenate([np.arange(first[e], first[e] + lengths[e]) for e in drawn])
    actions: Any = gym.spaces.Discrete(spaces.actions, start=spaces.first_action)
    numbers: npt.NDArray[Any] = rows.actions[taken] + spaces.first_action
    if spaces.net is not None:
        actions, numbers = spaces.net.space, spaces.net.points[rows.actions[taken]]
    low, high = spaces.low.reshape(spaces.shape), spaces.high.reshape(spaces.shape)
    return Resampled(
        gym.spaces.Box(low, high, dtype=np.float64), actions, numbers, rows.states[taken], rows.rewards[taken],
        rows.next_states[taken], rows.terminated[taken], rows.states[first[drawn]], spaces.horizon,
        int(rng.integers(2**31)),
    )  # fmt: skip
