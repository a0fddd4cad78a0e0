"""What `Agent.learn_from` does: all rows of a table are checked, then learnt from, then planned with once.

    widen     the range of rewards, once, by the rewards of all rows: before the first row, since agents whose values
              only fall would forget what they had learnt in other units
    observe   each row in order, by `observe` of the algorithm, without the plans that it makes between episodes
    look      at automatic settings and local bandwidths, once
    plan      once

Rows are samples, not episodes: the number of episodes stays, and with it what depends on it (schedules of the
bandwidth, constants that grow with the episodes, when settings are looked at next).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from kernelrl.agents.checks import as_environment
from kernelrl.agents.fitting import next_size
from kernelrl.agents.rows import Rows, rows_of
from kernelrl.agents.tables import read_table
from kernelrl.console import Interrupts, Progress, waiting
from kernelrl.episodes import verbs
from kernelrl.episodes.rows import take_compiled, take_rows

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["learn_from"]

BETWEEN = 10_000  # rows from one call of `between_rows` to the next: samples that wait to be counted take memory


def learn_from(
    agent: Agent, table: Any, env: Any, seed: int | None, ignore: Iterable[str], progress: bool | None
) -> int:
    """Learn from the rows of a table; return how many were taken in. After an error the agent is as it was before."""
    began = agent.model is not None
    if env is None:
        if not began:
            raise RuntimeError(
                "this agent has not been started: give env=…, an environment or its id, or call start(…)"
            )
        if seed is not None:
            raise ValueError("seed: it is for starting an agent, together with env=…; leave it out")
    read = read_table(table, ignore)
    captured = agent.capture() if began else None
    try:
        if env is not None:
            agent.get_ready(as_environment(env), seed)
        check_verbs(agent.model)
        agent.check_rows()
        rows = rows_of(agent, read)
        agent.recovery = None
        widen(agent, rows.rewards)
        agent.before_rows()
        taken = take_in(agent, rows, progress)
        with waiting("Planning", show=progress is not False):
            agent.after_rows()
    except BaseException:
        if captured is None:
            agent.model = None
        else:
            agent.reinstate(captured)
        raise
    return taken


def check_verbs(model: Any) -> None:
    """Reject an algorithm that may learn at the end of episodes, which rows do not have."""
    cls = type(model)
    if verbs.end_episode.is_implemented(cls) and not verbs.catch_up.is_implemented(cls):
        raise TypeError(
            f"{cls.__name__} implements end_episode, and a table has no episodes; say what is to be done after "
            f"them by a function for @krl.verbs.catch_up.implement_plain({cls.__name__}); all agents of this package "
            "learn from tables"
        )


def widen(agent: Agent, rewards: Any) -> None:
    """Widen the range of rewards to include all rows."""
    floor, ceiling = agent.rewards.limits
    outside = rewards[(rewards < floor) | (rewards > ceiling)]
    if outside.size:
        agent.widen(float(outside.min()), float(outside.max()))


def take_in(agent: Agent, rows: Rows, progress: bool | None) -> int:
    """Learn from the rows in order; return how many were taken in before Ctrl-C, if it came."""
    n, done, size = len(rows.rewards), 0, 100
    run: Any = take_compiled if verbs.observe.is_compiled_for(type(agent.model)) else take_rows
    arrays = [np.ascontiguousarray(array) for array in rows]
    label = f"{type(agent).__name__}, rows"
    with Interrupts("after these rows") as interrupts, Progress(progress, label, n) as bar:
        while done < n and not interrupts.asked:
            while not verbs.has_room(agent.handle()):
                agent.model = verbs.grow(agent.model)
            before, first = time.perf_counter(), done
            done = int(run(agent.handle(), *arrays, first, min(n, first + size)))
            if done // BETWEEN > first // BETWEEN:
                agent.between_rows()
            size = min(BETWEEN, next_size(max(1, done - first), time.perf_counter() - before))
            bar.update(done)
    return done
