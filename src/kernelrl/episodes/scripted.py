"""A model for the episode loop that takes given actions and records transitions, to compare two drivers."""

from typing import Any, NamedTuple

import numpy as np

from kernelrl.episodes.loop import run_compiled
from kernelrl.episodes.verbs import begin_episode, choose, end_episode, has_room, observe, read_values
from kernelrl.jit.stream import new_stream

__all__ = ["Script", "play_compiled"]


class Script(NamedTuple):
    """Actions to take, and arrays for the transitions that follow."""

    actions: Any  # (episodes, H) int64, counted from 0
    states: Any  # (episodes, H+1, d) each episode's states; NaN after its end
    rewards: Any  # (episodes, H)
    terminated: Any  # (episodes,) bool
    episode: Any  # (1,) int64 the running one


@has_room.implement(Script)
def has_room_script(model: Any) -> Any:
    """True: the arrays are made for all episodes."""
    return True


@begin_episode.implement(Script)
def begin_script(model: Any) -> Any:
    """Nothing to do."""
    return None


@choose.implement(Script)
def choose_script(model: Any, state: Any, h: Any) -> Any:
    """The next action of the script."""
    return model.actions[model.episode[0], h]


@observe.implement(Script)
def observe_script(model: Any, state: Any, action: Any, reward: Any, next_state: Any, h: Any, terminated: Any) -> Any:
    """Record the transition."""
    k = model.episode[0]
    for j in range(state.size):
        model.states[k, h, j] = state[j]
        model.states[k, h + 1, j] = next_state[j]
    model.rewards[k, h] = reward
    model.terminated[k] = terminated


@end_episode.implement(Script)
def end_script(model: Any) -> Any:
    """Continue with the next episode."""
    model.episode[0] += 1


@read_values.implement(Script)
def read_values_script(model: Any, state: Any, h: Any) -> Any:
    """0: there are no values."""
    return 0.0


def play_compiled(dynamics: Any, d: int, actions: Any, seed: int) -> Script:
    """Episodes 0, 1, … of a run with `seed` by the compiled driver, with `actions` (episodes, H); no checks are made.

    Episode k has the seed `episode_seed(seed, k)`. If a state is not a number, the remaining episodes are not played.
    """
    n, H = actions.shape
    script = Script(
        np.ascontiguousarray(actions, np.int64), np.full((n, H + 1, d), np.nan), np.full((n, H), np.nan),
        np.zeros(n, np.bool_), np.zeros(1, np.int64),
    )  # fmt: skip
    box, limits = np.array([np.full(d, -1e300), np.full(d, 1e300)]), np.array([-1e300, 1e300, 0.0, 1.0])
    outcome = np.zeros(n), np.zeros(n, np.int64), np.zeros(n), np.array([np.inf, -np.inf]), np.zeros(3)
    run_compiled(script, dynamics, new_stream(0), np.zeros(d), np.zeros(d), seed, 0, n, H, box, limits, *outcome)
    return script
