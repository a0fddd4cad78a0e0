"""An environment for the episode loop that also records every transition.

It passes the verbs of environments on to another one, compiled or not, so a run is the same to the last bit. Runs that
are not recorded do not know of it: their machine code is the same as ever.
"""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from typing import Any, NamedTuple

import numpy as np

from kernelrl.envs.interface import advance, reset

__all__ = ["Taped"]


class Taped(NamedTuple):
    """The environment, and arrays for the transitions, in their order."""

    env: Any
    states: np.ndarray  # (n, d)
    actions: np.ndarray  # (n,) int64, from 0
    rewards: np.ndarray  # (n,)
    next_states: np.ndarray  # (n, d)
    terminated: np.ndarray  # (n,) bool
    number: np.ndarray  # (1,) int64, how many there are


# Compiled callers and Python use the same functions; Python runs them as they are, since the inner one may be Python.


@reset.implement_plain(Taped)
@reset.implement(Taped)
def reset_taped(env, seed, stream, state):
    """Pass it on: there is nothing to record."""
    reset(env.env, seed, stream, state)


@advance.implement_plain(Taped)
@advance.implement(Taped)
def advance_taped(env, stream, state, action, next_state):
    """Take one step and record it."""
    reward, terminated, truncated = advance(env.env, stream, state, action, next_state)
    t = env.number[0]
    for j in range(state.size):
        env.states[t, j] = state[j]
        env.next_states[t, j] = next_state[j]
    env.actions[t], env.rewards[t], env.terminated[t] = action, reward, terminated
    env.number[0] = t + 1
    return reward, terminated, truncated
