"""Tables of logged transitions for tests, and what `learn_from` does with one, row by row."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import polars

import kernelrl as krl
from kernelrl.agents.base import Agent


@functools.cache
def logged(env_id: str, episodes: int, ends: float = 0.0, seed: int = 0, **options: Any) -> polars.DataFrame:
    """The transitions of a random agent; a share of them `ends` their episode, as the table says."""
    import gymnasium as gym

    env = gym.make(env_id, **options)
    table = krl.RandomAgent().fit(env, episodes, seed=seed, progress=False, transitions=True).transitions
    ending = np.random.default_rng(seed).random(len(table)) < ends
    return table.with_columns(polars.Series("terminated", ending))


def transitions_of(table: polars.DataFrame, agent: Agent) -> list[tuple[Any, ...]]:
    """The arguments of `observe` for each row."""
    spaces = agent.spaces
    names = ["state"] if spaces.discrete else [f"state_{j}" for j in range(spaces.dimensions)]
    actions = ["action"] if spaces.net is None else [f"action_{j}" for j in range(spaces.net.low.size)]
    rows = []
    for row in table.iter_rows(named=True):
        x = np.array([row[name] for name in names]).reshape(spaces.shape)
        y = np.array([row[f"next_{name}"] for name in names]).reshape(spaces.shape)
        a = row["action"] if spaces.net is None else np.array([row[name] for name in actions]).reshape(spaces.net.shape)
        rows.append((x, a, row["reward"], y, row["step"], row["terminated"]))
    return rows


def one_by_one(agent: Agent, table: polars.DataFrame, before_looking: Any = lambda: None) -> Agent:
    """The naive version, by public calls: `observe` for each row, then the look and the plan of the next episode.

    The agent must not plan between steps. Its number of episodes stays. `before_looking` is called before the look.
    """
    rewards = table["reward"].to_numpy()
    low, high = agent.rewards.limits
    outside = rewards[(rewards < low) | (rewards > high)]
    if outside.size:
        agent.widen(outside.min(), outside.max())
    for transition in transitions_of(table, agent):
        agent.observe(*transition)
    before_looking()
    agent.begin_episode()
    return agent
