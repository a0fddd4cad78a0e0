"""The episode loop, and the two ways to drive it.

`run_episodes` is the only episode loop. With compiled dynamics it runs compiled (`run_compiled`). With any other
environment, wrapped in a `GymEnvironment`, it runs as plain Python. Both call the same compiled functions of the
algorithm, so both give the same numbers to the last bit.
"""

import math
from typing import Any

from kernelrl.envs.interface import advance, reset
from kernelrl.episodes.verbs import NOT_YET, begin_episode, has_room, next_action, read_values, turn
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed, seed_stream

__all__ = ["BAD_END", "BAD_RANGE", "BAD_REWARD", "BAD_START", "BAD_STATE", "clip_into", "run_compiled", "run_episodes"]

# What may be wrong with a transition (0: nothing): a start state or next state outside the box, a reward that is not a
# finite number or is outside a strict range, a termination where 0 is outside the range.
BAD_START, BAD_STATE, BAD_REWARD, BAD_RANGE, BAD_END = range(1, 6)
FLOOR, CEILING, STRICT, HOLDS_ZERO, HOPED_FOR, WHOLE = range(6)  # of `limits`
FAULT, REWARD, STEP = range(3)  # of `bad`
LOWEST, HIGHEST = range(2)  # of `beyond` and `box`
MOST = 1e99  # a larger reward is an error: a range must have a finite width


@compiled
def is_inside(box: Any, x: Any) -> Any:
    """Whether the state `x` (d,) lies in the box from box[LOWEST] to box[HIGHEST]; a NaN does not."""
    for j in range(x.size):
        if not box[LOWEST, j] <= x[j] <= box[HIGHEST, j]:
            return False
    return True


@compiled
def clip_into(state: Any, bounds: Any, out: Any) -> Any:
    """Write `state` (d,), clipped, into `out`; False if it is outside by more than the slack, or not a number.

    `bounds` (3, d) has the lowest and the highest state and the slack.
    """
    for j in range(out.size):
        low, high, slack = bounds[0, j], bounds[1, j], bounds[2, j]
        if not low - slack <= state[j] <= high + slack or math.isinf(state[j]):
            return False
        out[j] = min(max(state[j], low), high)
    return True


@compiled
def fault_of(reward: Any, terminated: Any, y: Any, box: Any, limits: Any) -> Any:
    """What is wrong with a transition."""
    if not is_inside(box, y):
        return BAD_STATE
    if not -MOST <= reward <= MOST:
        return BAD_REWARD
    if limits[STRICT] > 0.0 and not limits[FLOOR] <= reward <= limits[CEILING]:
        return BAD_RANGE
    if terminated and limits[HOLDS_ZERO] == 0.0:
        return BAD_END
    return 0


def run_episodes(
    model: Any, env: Any, stream: Any, x: Any, y: Any, seed: Any, first: Any, count: Any, horizon: Any,
    box: Any, limits: Any, returns: Any, lengths: Any, values: Any, beyond: Any, bad: Any,
) -> Any:  # fmt: skip
    """Play episodes `first` … `first`+`count`-1; return how many were played to their end.

    `values` takes the optimistic V_0 at each episode's first state, right after the episode has begun. `box` (2, d)
    holds the lowest and the highest state, `limits` (6,) the FLOOR and CEILING of the range of rewards, whether a
    reward outside is an error (STRICT), whether 0 lies inside (HOLDS_ZERO), and the reward HOPED_FOR, above 0 if all
    rewards so far are costs: it counts as seen once an episode of WHOLE steps has cost nothing. The run ends early

    - when room runs out;
    - after an episode with rewards outside the range: `beyond` (2,) takes the LOWEST and the HIGHEST of them;
    - in the middle of an episode if something is wrong: `bad` (3,) takes the FAULT (BAD_…), the REWARD and the STEP.
    """
    for k in range(count):
        if not has_room(model):
            return k
        number = episode_seed(seed, first + k)
        seed_stream(stream, number)  # so its seed determines an episode even if `reset` does not seed the stream
        reset(env, number, stream, x)
        if not is_inside(box, x):
            bad[FAULT] = BAD_START
            return k
        begin_episode(model)
        values[k] = read_values(model, x, 0)
        total = 0.0
        steps = 0
        free = True  # no reward but 0, and no termination
        ahead = NOT_YET
        for h in range(horizon):
            a = int(next_action(model, x, h, ahead))  # a float if Python called compiled code
            reward, terminated, truncated = advance(env, stream, x, a, y)
            fault = fault_of(reward, terminated, y, box, limits)
            if fault != 0:
                bad[FAULT], bad[REWARD], bad[STEP] = fault, reward, h
                return k
            if not limits[FLOOR] <= reward <= limits[CEILING]:
                beyond[LOWEST] = min(beyond[LOWEST], reward)
                beyond[HIGHEST] = max(beyond[HIGHEST], reward)
            total += reward
            steps += 1
            free = free and reward == 0.0 and not terminated
            over = terminated or truncated or steps == horizon
            ahead = turn(model, x, a, reward, y, h, terminated, over)
            if over:
                break
            for j in range(x.size):
                x[j] = y[j]
        returns[k] = total
        lengths[k] = steps
        if limits[HOPED_FOR] > 0.0 and free and steps == limits[WHOLE]:
            beyond[LOWEST] = min(beyond[LOWEST], 0.0)
            beyond[HIGHEST] = max(beyond[HIGHEST], limits[HOPED_FOR])
        if beyond[LOWEST] <= beyond[HIGHEST]:
            return k + 1
    return count


run_compiled = compiled(run_episodes)
