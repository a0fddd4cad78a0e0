"""Wrappers and obstacles for the checks of agents."""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator
from typing import Any
from unittest import mock

import gymnasium as gym

from kernelrl.agents.base import Agent
from kernelrl.episodes import verbs

__all__ = ["Breaking", "BreaksError", "FirstValues", "Shifted", "scarce_room"]

Env = gym.Env[Any, Any]


class FirstValues(gym.Wrapper[Any, Any, Any, Any]):
    """Asks the agent for V_0 at the first state of each episode, after the episode has begun."""

    def __init__(self, env: Env, agent: Agent) -> None:
        super().__init__(env)
        self.agent, self.values, self.first = agent, [], None  # type: tuple[Agent, list[float], Any]

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Remember the state."""
        self.first, info = self.env.reset(**options)
        return self.first, info

    def step(self, action: Any) -> Any:
        """Ask, before the first step."""
        if self.first is not None:
            self.values.append(float(self.agent.values([self.first], 0)[0]))
        self.first = None
        return self.env.step(action)


class BreaksError(Exception):
    """The error that `Breaking` raises."""


class Breaking(gym.Wrapper[Any, Any, Any, Any]):
    """Raises an error once, in the second step of episode 12 (or the first, if it has no second)."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.episode, self.steps, self.broken = 0, 0, False

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Count."""
        self.episode, self.steps = self.episode + 1, 0
        return self.env.reset(**options)

    def step(self, action: Any) -> Any:
        """Raise the error at its step."""
        given = self.env.step(action)
        self.steps += 1
        if self.episode == 12 and not self.broken and (self.steps == 2 or given[2] or given[3]):
            self.broken = True
            raise BreaksError
        return given


class Shifted(gym.ActionWrapper[Any, Any, Any]):
    """The same environment with actions numbered from 5 higher."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        space: Any = env.action_space
        self.action_space = gym.spaces.Discrete(int(space.n), start=int(space.start) + 5)

    def action(self, action: Any) -> Any:
        """The environment's own action."""
        return action - 5


@contextlib.contextmanager
def scarce_room(grown: list[type]) -> Iterator[None]:
    """Answer Python's first call of `has_room` with False, so that arrays become longer than necessary."""
    has_room, grow, asked = verbs.has_room, verbs.grow, itertools.count()

    @functools.wraps(has_room)
    def deny(model: Any) -> Any:
        return next(asked) > 0 and has_room(model)

    @functools.wraps(grow)
    def note(model: Any) -> Any:
        grown.append(type(model))
        return grow(model)

    with mock.patch.object(verbs, "has_room", deny), mock.patch.object(verbs, "grow", note):
        yield
