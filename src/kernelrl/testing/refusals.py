"""Whether an agent rejects bad arguments, with the right type of error and without changing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np

from kernelrl.agents.base import Agent
from kernelrl.testing.comparing import SEED, Env, Make, file_of, horizon_of, some_states, wrong

__all__ = ["check_refusals"]

BAD = (ValueError, TypeError)
BAD_REWARDS = (math.nan, math.inf, None, "one")


def check_refusals(make_agent: Make, env: Env) -> None:
    """Bad arguments are a ValueError or TypeError, calls before the start a RuntimeError; neither changes the agent."""
    agent = make_agent()
    x = some_states(env)[-1]
    for call, arguments in (
        (agent.begin_episode, ()), (agent.end_episode, ()), (agent.choose, (x, 0)), (agent.act, (x, 0)),
        (agent.values, ([x], 0)),
    ):  # fmt: skip
        refused((RuntimeError,), call, *arguments)
    agent.fit(env, 3, seed=SEED, progress=False)
    before = file_of(agent)
    refuse_states(agent, env, x)
    refuse_the_rest(agent, env, x)
    if file_of(agent) != before:
        wrong("a call that was rejected has changed the agent: its file differs")


def refuse_states(agent: Agent, env: Env, x: Any) -> None:
    """States of another shape, not numbers, or outside the box."""
    a = agent.spaces.action(0)
    bad: list[Any] = [np.full(np.shape(x), math.nan), np.zeros((2, 3, 4)), None, "x"]
    if isinstance(env.observation_space, gym.spaces.Box) and env.observation_space.is_bounded():
        bad.append(np.asarray(env.observation_space.high, np.float64) + 1.0)
    for state in bad:
        refused(BAD, agent.choose, state, 0)
        refused(BAD, agent.act, state, 0)
        refused(BAD, agent.values, [state], 0)
        refused(BAD, agent.observe, state, a, 0.0, x, 0)
        refused(BAD, agent.observe, x, a, 0.0, state, 0)


def refuse_the_rest(agent: Agent, env: Env, x: Any) -> None:
    """Steps, actions, rewards, numbers of episodes, another seed."""
    space: Any = env.action_space
    a = agent.spaces.action(0)
    others: tuple[Any, ...] = (None, "x", np.full(np.shape(a), math.nan), np.zeros((2, 3, 4)))
    if isinstance(space, gym.spaces.Discrete):
        others = a - 1, a + int(space.n), 0.5, None
    for step in (-1, horizon_of(agent, env), 0.5, None):
        refused(BAD, agent.choose, x, step)
        refused(BAD, agent.act, x, step)
        refused(BAD, agent.values, [x], step)
        refused(BAD, agent.observe, x, a, 0.0, x, step)
    for action in others:
        refused(BAD, agent.observe, x, action, 0.0, x, 0)
    for reward in BAD_REWARDS:
        refused(BAD, agent.observe, x, a, reward, x, 0)
    refused(BAD, agent.fit, env, -1)
    refused(BAD, lambda: agent.fit(env, 1, seed=SEED + 1))


def refused(errors: tuple[type[Exception], ...], call: Callable[..., Any], *arguments: Any) -> None:
    """Raise an error unless the call raises one of `errors`."""
    what = f"{call.__name__}{arguments} must be a {' or '.join(error.__name__ for error in errors)}"
    try:
        call(*arguments)
    except errors:
        return
    except Exception as error:
        raise AssertionError(f"{what}, but it is {error!r}") from error
    wrong(f"{what}, but it was accepted")
