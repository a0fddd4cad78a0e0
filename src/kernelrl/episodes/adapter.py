"""Adapts any Gymnasium environment to the episode loop, by the verbs of compiled ones (see `kernelrl.envs`)."""

from typing import Any, NamedTuple

import numpy as np

from kernelrl.envs.interface import advance, reset
from kernelrl.episodes.checks import as_flag, as_reward

__all__ = ["GymEnvironment"]

OLD_RESET = "; one of the old Gym returned the observation alone: return (observation, {})"
OLD_STEP = "; one of the old Gym returned (observation, reward, done, info): done is terminated, truncated False"


class GymEnvironment(NamedTuple):
    """Any Gymnasium environment, with the verbs `reset` and `advance`."""

    env: Any
    check_state: Any  # (name, state) → float64 (d,), or an error that says what is wrong
    action: Any  # number → the action as the environment takes it
    mask: list[Any]  # takes info["action_mask"] of the present state, or None: see `kernelrl.episodes.masked`
    records: list[Any] | None = None  # every episode is appended, for `kernelrl.agents.recovery`


@reset.implement_plain(GymEnvironment)
def reset_gym(env: GymEnvironment, seed: int, stream: Any, state: Any) -> None:
    """Reset with `seed`; `stream` is not used, the environment has its own."""
    given = env.env.reset(seed=int(seed))
    if not (isinstance(given, tuple) and len(given) == 2):
        raise TypeError(f"env: reset must return (observation, info), got {short(given)}{OLD_RESET}")
    state[:] = env.check_state("the environment's start state", given[0])
    env.mask[0] = mask_in(given[1])
    if env.records is not None:
        env.records.append((state.copy(), [], env.mask[0]))


@advance.implement_plain(GymEnvironment)
def advance_gym(env: GymEnvironment, stream: Any, state: Any, action: int, next_state: Any) -> tuple[float, bool, bool]:
    """Take one step."""
    given = env.env.step(env.action(int(action)))
    if not (isinstance(given, tuple) and len(given) == 5):
        raise TypeError(
            f"env: step must return (observation, reward, terminated, truncated, info), got {short(given)}{OLD_STEP}"
        )
    observation, reward, terminated, truncated, info = given
    reward = as_reward(reward, "the environment's reward")
    terminated = as_flag(terminated, "the environment's terminated")
    truncated = as_flag(truncated, "the environment's truncated")
    next_state[:] = env.check_state("the environment's next state", observation)
    env.mask[0] = mask_in(info)
    if env.records is not None:
        env.records[-1][1].append((reward, next_state.copy(), terminated, truncated, env.mask[0]))
    return reward, terminated, truncated


def mask_in(info: Any) -> Any:
    """A copy of the mask in `info`, or None; an environment may write the next mask into the same array."""
    mask = info.get("action_mask") if isinstance(info, dict) else None
    return mask.copy() if isinstance(mask, np.ndarray) else mask


def short(given: Any) -> str:
    """A short description of what an environment returned."""
    return f"a tuple of {len(given)}" if isinstance(given, tuple) else f"{given!r:.60}"
