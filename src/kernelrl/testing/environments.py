"""`check_environment`: whether a Gymnasium environment can be used with this package.

Its episodes are played with actions drawn beforehand and checked transition by transition. Then they are played again
in reverse order, which shows whether one episode influences the next. Compiled dynamics are also called verb by verb,
as two copies in turns, and by the compiled driver.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple, NoReturn

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.agents.action_net import ActionNet
from kernelrl.agents.checks import as_environment
from kernelrl.envs.compiled import CompiledEnv
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.wrapping import compiled_dynamics, compiled_horizon, time_limit
from kernelrl.episodes.loop import run_compiled
from kernelrl.episodes.on_net import on_net
from kernelrl.episodes.scripted import Script, play_compiled
from kernelrl.jit.code_cache import why_not_kept
from kernelrl.jit.compile import name_of
from kernelrl.jit.numba_private import Dispatcher
from kernelrl.jit.stream import episode_seed, new_stream

__all__ = ["check_environment"]

Floats = NDArray[np.float64]
SOURCE = {
    False: "self.np_random, which super().reset(seed=seed) seeds",
    True: "`stream`, by krl.random",
}  # where random numbers must come from, by whether the environment is compiled
OF_STEP = "step must return (observation, reward, terminated, truncated, info)"
LARGEST = 1e99  # a larger reward is an error


class Episode(NamedTuple):
    """One episode of an environment."""

    states: Floats  # (steps+1, d)
    rewards: Floats  # (steps,)
    terminated: bool
    truncated: bool


def check_environment(
    env: gym.Env[Any, Any] | str, episodes: int = 20, *, horizon: int | None = None, seed: int = 0
) -> None:  # fmt: skip
    """Check that `env`, an environment or its id, does what agents need.

    Checked are spaces, states inside them, rewards and flags, the same episode for the same seed, and a known number of
    steps. With compiled dynamics (`krl.envs.CompiledEnv`), also that both drivers give the same episodes to the last
    bit, that no episode influences the next, and that the machine code can be kept on disk.

    Args:
        env: the environment; it is reset and played.
        episodes: how many episodes are played with random actions, each of them a few times.
        horizon: the number of steps, for an environment without time limit (agents then need `horizon=`, too).
        seed: the seed of the actions and of the episodes.
    """
    env = as_environment(env)
    check_spaces(env)
    known = horizon or time_limit(env)
    if known is None:
        raise ValueError(
            "env has no time limit: wrap it in gymnasium.wrappers.TimeLimit(env, steps), register it with "
            "max_episode_steps, or give horizon=… here and to the agents"
        )
    space: Any = env.action_space
    size = episodes, compiled_horizon(env, known)
    number = int(space.n) if isinstance(space, gym.spaces.Discrete) else net_of(space).size
    actions = np.random.default_rng(seed).integers(number, size=size)
    seeds = [int(episode_seed(seed, k)) for k in range(episodes)]
    first = [play(env, number, row) for number, row in zip(seeds, actions, strict=True)]
    for k in reversed(range(episodes)):
        if not same(play(env, seeds[k], actions[k]), first[k]):
            wrong(
                f"reset(seed={seeds[k]}) and the same actions gave another episode the second time; draw random "
                f"numbers only from {SOURCE[isinstance(env.unwrapped, CompiledEnv)]}, and set in reset all that step "
                "changes"
            )
    dynamics = compiled_dynamics(env)
    if dynamics is not None:
        net = net_of(space) if isinstance(space, gym.spaces.Box) else None
        check_compiled(env, on_net(dynamics, net), seeds, actions, first, seed)


def wrong(message: str) -> NoReturn:
    """Raise the error for an environment that fails a check."""
    raise AssertionError(message)


def same(one: Episode, other: Episode) -> bool:
    """Whether two episodes are equal to the last bit."""
    ends = (one.terminated, one.truncated) == (other.terminated, other.truncated)
    return ends and np.array_equal(one.states, other.states) and np.array_equal(one.rewards, other.rewards)


def check_spaces(env: gym.Env[Any, Any]) -> None:
    """Reject spaces that no agent supports."""
    space, actions = env.observation_space, env.action_space
    if not isinstance(space, gym.spaces.Box | gym.spaces.Discrete):
        wrong(f"observation_space must be a Box or a Discrete space, got {space}; flatten others with a wrapper")
    if isinstance(actions, gym.spaces.Box):
        try:
            net_of(actions)
        except (TypeError, ValueError) as error:
            wrong(str(error))
    elif not isinstance(actions, gym.spaces.Discrete):
        wrong(f"action_space must be gymnasium's Discrete or a Box, got {actions}; discretise others with a wrapper")
    if isinstance(space, gym.spaces.Box) and (space.low.size == 0 or not (space.low <= space.high).all()):
        wrong(f"observation_space must have at least one axis and low ≤ high on each, got {space}")


# ---------------------------------------------------------------------------------------------- as Gymnasium has it


def net_of(space: gym.spaces.Box) -> ActionNet:
    """The continuous actions with which an environment is checked."""
    return ActionNet.of(space, 3 if space.low.size < 5 else 2, 1)


def action_of(space: Any, number: Any) -> Any:
    """The action with that number, counted from 0."""
    return net_of(space).action(int(number)) if isinstance(space, gym.spaces.Box) else int(number) + int(space.start)


def play(env: gym.Env[Any, Any], seed: int, actions: Any) -> Episode:
    """Play one episode with `actions` (H,), counted from 0, and check everything that the environment returns."""
    try:
        given = env.reset(seed=seed)
    except TypeError as error:
        if "unexpected keyword argument 'seed'" not in str(error):
            raise
        wrong("reset must take a seed: def reset(self, *, seed=None, options=None), with super().reset(seed=seed)")
    if not (isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict)):
        wrong(f"reset must return (observation, info), got {given!r:.80}")
    observations, rewards = [given[0]], []
    states = [checked_state(env, given[0], "reset")]
    terminated = truncated = False
    for h, action in enumerate(actions):
        returned = stepped(env, action_of(env.action_space, action))
        if not (isinstance(returned, tuple) and len(returned) == 5):
            wrong(f"{OF_STEP}, got {returned!r:.80}")
        observation, reward, terminated, truncated, _ = returned
        states.append(checked_state(env, observation, f"step {h}"))
        rewards.append(checked_reward(reward, h))
        check_flags(terminated, truncated, h)
        observations.append(observation)
        if terminated or truncated:
            break
    for h, (observation, state) in enumerate(zip(observations, states, strict=True)):
        if not np.array_equal(np.asarray(observation, np.float64).reshape(-1), state):
            wrong(f"the observation of step {h} was changed by later steps; return a copy of the state, not the state")
    return Episode(np.array(states), np.array(rewards), bool(terminated), bool(truncated))


def stepped(env: gym.Env[Any, Any], action: Any) -> Any:
    """What `step` returns; Gymnasium's wrappers unpack it, and fail if it has not five parts."""
    try:
        return env.step(action)
    except ValueError as error:
        if "(expected 5" not in str(error):
            raise
        raise AssertionError(f"{OF_STEP}: {error}") from error


def checked_state(env: gym.Env[Any, Any], observation: Any, where: str) -> Floats:
    """An observation as float64 (d,), if it is a state of the space."""
    space = env.observation_space
    try:
        state = np.array(observation, np.float64)
    except (TypeError, ValueError):
        wrong(f"the state of {where} must be an array of numbers, got {observation!r:.80}")
    if state.shape != space.shape:
        wrong(f"the state of {where} must have shape {space.shape}, as observation_space has it, got {state.shape}")
    if not np.isfinite(state).all():
        wrong(f"the state of {where} must be finite, got {observation}; look for 0/0, ∞ and what was never written")
    if isinstance(space, gym.spaces.Box):
        inside = bool(((state >= space.low) & (state <= space.high)).all())
    else:
        inside = bool(space.contains(int(state)) and state == np.floor(state))
    if not inside:
        wrong(
            f"the state of {where} must lie in observation_space, {space}, got {observation}; clip the state, or make "
            "the space larger"
        )
    return state.reshape(-1)


def checked_reward(reward: Any, h: int) -> float:
    """A reward as float, if it is a number."""
    try:
        number = float(reward)
    except (TypeError, ValueError):
        wrong(f"the reward of step {h} must be a number, got {reward!r:.80}")
    if not abs(number) <= LARGEST:
        wrong(f"the reward of step {h} must be a finite number, got {reward!r}; look for 0/0 and logarithms of 0")
    return number


def check_flags(terminated: Any, truncated: Any, h: int) -> None:
    """Reject flags that are not True or False."""
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool | np.bool_):
            wrong(f"{name} of step {h} must be True or False, got {flag!r:.80}")


# -------------------------------------------------------------------------------------------------- compiled dynamics


def check_compiled(
    env: gym.Env[Any, Any], dynamics: Any, seeds: list[int], actions: Any, first: list[Episode], seed: int
) -> None:  # fmt: skip
    """Check what the compiled driver needs; `first` are the episodes by Gymnasium's `step`."""
    before = copy.deepcopy(dynamics)
    d = first[0].states.shape[1]
    for k, episode in enumerate(first):
        check_verbs(dynamics, seeds[k], actions[k], episode)
    check_copies(env, seeds[:2], actions[:2], first)
    script = play_compiled(dynamics, d, actions, seed)
    for k, episode in enumerate(first):
        check_drivers(script, k, episode)
    if not unchanged(before, dynamics):
        wrong(
            f"an episode has changed an array of {name_of(type(dynamics))}: the dynamics are the same in all episodes, "
            "so reset and advance may only read them; what changes in an episode belongs in the state"
        )
    if isinstance(run_compiled, Dispatcher):  # not with the JIT disabled
        check_kept(dynamics)


def check_verbs(dynamics: Any, seed: int, actions: Any, episode: Episode) -> None:
    """Whether `reset` and `advance` write the whole state and nothing else."""
    start, other = np.full((2, episode.states.shape[1]), [[0.25], [np.nan]])
    for state in (start, other):
        reset(dynamics, seed, new_stream(seed), state)
    if not np.array_equal(start, other):
        wrong(f"reset must write every entry of state, got {other} where it was nan before")
    for h, x in enumerate(episode.states[:-1]):
        y, other = np.full((2, len(x)), [[0.25], [np.nan]])
        for next_state in (y, other):
            state = x.copy()
            advance(dynamics, new_stream(seed), state, int(actions[h]), next_state)
            if not np.array_equal(state, x):
                wrong(f"advance must not change state, only write to next_state, but it changed {x} to {state}")
        if not np.array_equal(y, other):
            wrong(f"advance must write every entry of next_state, got {other} where it was nan before")


def check_copies(env: gym.Env[Any, Any], seeds: list[int], actions: Any, first: list[Episode]) -> None:
    """Whether two copies, played in turns, give the same as one alone."""
    copies: list[CompiledEnv] = [copy.deepcopy(env.unwrapped) for _ in seeds]  # type: ignore[misc]
    for world, number in zip(copies, seeds, strict=True):
        world.reset(seed=number)
    for h in range(actions.shape[1]):
        for k, world in enumerate(copies):
            if h < len(first[k].rewards):
                world.step(action_of(world.action_space, actions[k, h]))
                if not np.array_equal(world.state, first[k].states[h + 1]):
                    wrong(
                        f"two copies of the environment, played in turns, influence each other: at step {h} a state is "
                        f"{world.state}, alone it was {first[k].states[h + 1]}; keep nothing outside the dynamics"
                    )


def check_drivers(script: Script, k: int, episode: Episode) -> None:
    """Whether the compiled driver gave the same episode."""
    n = len(episode.rewards)
    if n < script.rewards.shape[1] and not np.isnan(script.rewards[k, n]):
        wrong(f"episode {k} ended after {n} steps by env.step and went on in the compiled driver")
    for what, one, other in (
        ("states", script.states[k, : n + 1], episode.states),
        ("rewards", script.rewards[k, :n], episode.rewards),
        ("terminated", script.terminated[k], episode.terminated),
    ):
        if not np.array_equal(one, other):
            wrong(
                f"the {what} of episode {k} differ between the drivers, {one} compiled and {other} by env.step; reset "
                "and advance must draw from `stream` only and read nothing but their arguments and constants"
            )


def unchanged(before: Any, after: Any) -> bool:
    """Whether two NamedTuples have equal entries."""
    if isinstance(before, tuple):
        return all(unchanged(a, b) for a, b in zip(before, after, strict=True))
    return np.array_equal(before, after, equal_nan=np.asarray(before).dtype.kind == "f")


def check_kept(dynamics: Any) -> None:
    """Whether the machine code of this run can be kept on disk."""
    driver: Any = run_compiled
    cls = type(dynamics)
    for signature in driver.signatures:
        kept = why_not_kept(driver, signature)
        if getattr(signature[1], "instance_class", None) is cls and kept:
            wrong(
                f"the machine code of {name_of(cls)} cannot be kept on disk, so that every process compiles it again: "
                f"it uses {kept}; use numbers, arrays, NamedTuples and functions of your own or under @numba.njit"
            )
