"""Comparisons for the checks of agents: histories, read-outs and files, all to the last bit."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.agents.base import Agent
from kernelrl.agents.history import History
from kernelrl.envs.wrapping import time_limit
from kernelrl.loading import load

__all__ = [
    "EPISODES",
    "SEED",
    "Env",
    "Make",
    "check_equal",
    "check_same",
    "file_of",
    "horizon_of",
    "joined",
    "loaded",
    "read",
    "read_in",
    "reference",
    "some_states",
    "wrong",
]

Floats = NDArray[np.float64]
Make = Callable[[], Agent]
Env = gym.Env[Any, Any]
EPISODES, SEED = 30, 7
READ_OUTS = ("q_values", "values", "counts", "bonuses")  # those that an agent has


def wrong(message: str) -> NoReturn:
    """Raise the error for an agent that fails a check."""
    raise AssertionError(message)


def horizon_of(agent: Agent, env: Env) -> int:
    """The number of steps that `fit` takes."""
    horizon = agent.horizon or time_limit(env)
    if horizon is None:
        raise ValueError("env has no time limit: make the agent with horizon=…, or wrap env in TimeLimit")
    return horizon


def some_states(env: Env) -> list[Any]:
    """States of the space and states where episodes begin."""
    space: Any = env.observation_space
    rng = np.random.default_rng(0)
    if isinstance(space, gym.spaces.Discrete):
        return [int(space.start + rng.integers(space.n)) for _ in range(6)]
    starts = [np.asarray(env.reset(seed=seed)[0], np.float64) for seed in range(3)]
    low, high = (np.clip(np.asarray(bound, np.float64), -10.0, 10.0) for bound in (space.low, space.high))
    anywhere = [np.clip(low + (high - low) * rng.random(low.shape), space.low, space.high) for _ in range(5)]
    return [*anywhere, *starts]


def read(agent: Agent, states: Sequence[Any], steps: Sequence[int]) -> dict[tuple[str, int], Any]:
    """All read-outs of an agent, by name and step."""
    names = [name for name in READ_OUTS if hasattr(agent, name)]
    found: dict[tuple[str, int], Any] = {
        (name, h): getattr(agent, name)(states, step=h) for name in names for h in steps
    }
    return found | {("act", h): [agent.act(x, step=h) for x in states] for h in steps}


def read_in(agent: Agent, env: Env) -> dict[tuple[str, int], Any]:
    """The same at some states and steps of `env`."""
    H = horizon_of(agent, env)
    return read(agent, some_states(env), sorted({0, H // 2, H - 1}))


def check_equal(one: dict[Any, Any], other: dict[Any, Any], what: str) -> None:
    """Raise an error if read-outs differ."""
    for key in one.keys() | other.keys():
        if not (key in one and key in other and np.array_equal(one[key], other[key])):
            name, step = key
            wrong(f"{what}: {name} at step {step} differ, {one.get(key)} and {other.get(key)}")


def check_same(history: History, other: History, what: str) -> None:
    """Raise an error if histories differ."""
    for name in ("returns", "lengths", "optimistic_values"):
        if not np.array_equal(getattr(history, name), getattr(other, name)):
            wrong(f"{what}: the {name} differ, {getattr(history, name)} and {getattr(other, name)}")


def file_of(agent: Agent) -> bytes:
    """The agent's file: all of its state without scratch."""
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "agent.krl")
        return (Path(folder) / "agent.krl").read_bytes()


def loaded(data: bytes) -> Agent | None:
    """The agent of a file; None if it has functions that cannot be imported by name, such as those of a script."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "agent.krl").write_bytes(data)
        try:
            return load(Path(folder) / "agent.krl", trust=True)
        except ValueError as error:
            if "supply it" in str(error):
                return None
            raise AssertionError(f"what was saved cannot be loaded: {error}") from error


def reference(make_agent: Make, env: Env) -> tuple[Agent, History]:
    """An agent after EPISODES episodes in one call."""
    agent = make_agent()
    return agent, agent.fit(env, EPISODES, seed=SEED, progress=False)


def joined(parts: Sequence[History]) -> Floats:
    """The returns of several calls, one after the other."""
    returns: Floats = np.concatenate([part.returns for part in parts])
    return returns
