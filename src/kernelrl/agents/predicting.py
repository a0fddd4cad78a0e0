"""`Agent.predict`: actions for one observation or a batch, with the arguments of Stable-Baselines3's `predict`.

What is called `state` there, the memory of a policy, is the step here: the policies depend on nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.masking import allowed_at, choose_at
from kernelrl.episodes.checks import as_flag
from kernelrl.episodes.masked import choose_allowed

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["predict"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def predict(
    agent: Agent, observation: npt.ArrayLike, state: Any, episode_start: Any, deterministic: bool, action_masks: Any
) -> tuple[Any, Any]:
    """What `agent.predict` returns."""
    agent.check_started()
    spaces = agent.spaces
    single = np.ndim(observation) == len(spaces.shape)
    if single:
        x = spaces.check_state("observation", observation)[None]
    else:
        x = spaces.check_states(observation, "observation")
    steps = steps_of(state, len(x), single)
    if episode_start is not None:
        steps[flags_of(episode_start, len(x), single)] = 0
    allowed = None
    if action_masks is not None:
        allowed = np.atleast_2d(spaces.check_mask(action_masks, "action_masks", None if single else len(x)))
        allowed = allowed_at(agent, x, allowed)
    policy = deployed if as_flag(deterministic, "deterministic") else learning
    numbers = policy(agent, x, np.minimum(steps, spaces.horizon - 1), allowed)
    if single:
        return spaces.action(int(numbers[0])), int(steps[0]) + 1
    if spaces.net is None:
        return numbers + spaces.first_action, steps + 1
    first = spaces.action(0)
    actions = np.array([spaces.action(int(a)) for a in numbers], first.dtype)
    return actions.reshape(len(x), *first.shape), steps + 1


def deployed(agent: Agent, x: Floats, steps: Integers, allowed: Any) -> Integers:
    """(n,) the policy to deploy at states x (n, d) of `steps` (n,)."""
    numbers = np.zeros(len(x), np.int64)
    for h in np.unique(steps):
        at = steps == h
        if allowed is None:
            numbers[at] = agent.deployed_actions(x[at], int(h))
        else:
            numbers[at] = agent.deployed_among(x[at], int(h), allowed[at])
    return numbers


def learning(agent: Agent, x: Floats, steps: Integers, allowed: Any) -> Integers:
    """(n,) the learning policy at the same states, one after the other."""
    numbers = np.zeros(len(x), np.int64)
    for i, h in enumerate(steps.tolist()):
        if allowed is None:
            numbers[i] = choose_at(agent, x[i], h)
        else:
            numbers[i] = choose_allowed(agent.handle(), x[i], h, allowed[i])
    return numbers


def steps_of(state: Any, n: int, single: bool) -> Integers:
    """`state` as steps (n,); 0 where it is None."""
    if state is None:
        return np.zeros(n, np.int64)
    given = np.asarray(state)
    fits = given.shape == (n,) or (single and given.shape == ())
    if not fits or given.dtype.kind not in "iu" or (given < 0).any():
        raise ValueError(
            f"state must be the step of each observation, {'a whole number' if single else f'{n} whole numbers'} from "
            f"0, as the last call of predict returned it, or None; got {state!r:.80}"
        )
    return given.reshape(n).astype(np.int64)


def flags_of(episode_start: Any, n: int, single: bool) -> npt.NDArray[np.bool_]:
    """`episode_start` as booleans (n,)."""
    given = np.asarray(episode_start)
    fits = given.shape == (n,) or (single and given.shape == ())
    if not fits or given.dtype.kind not in "biuf" or not ((given == 0) | (given == 1)).all():
        raise ValueError(f"episode_start must be {n} flags, one for each observation, or None; got {episode_start!r}")
    return given.reshape(n).astype(np.bool_)
