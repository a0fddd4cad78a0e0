"""The episode loop, and the two ways to drive it.

`run_episodes` is the one loop there is. Over compiled dynamics it runs compiled (`run_compiled`), over any other
environment as plain Python, with the environment behind a `GymEnvironment`; either way it calls the same compiled
functions of the algorithm, so both give the same numbers to the last bit.
"""

import math
from typing import Any

from kernelrl.envs.interface import advance, reset
from kernelrl.episodes.verbs import begin_episode, choose, has_room, read_values, turn
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed, seed_stream

__all__ = ["BAD_END", "BAD_RANGE", "BAD_REWARD", "BAD_START", "BAD_STATE", "clip_into", "run_compiled", "run_episodes"]

# What may be wrong with a transition (0: nothing): a start state or next state outside the box, a reward that is no
# finite number or outside a range that is a promise, a termination where 0 is outside the range.
BAD_START, BAD_STATE, BAD_REWARD, BAD_RANGE, BAD_END = range(1, 6)
FLOOR, CEILING, STRICT, HOLDS_ZERO = range(4)
MOST = 1e99  # a larger reward is taken for a mistake: a range must have a finite width


@compiled
def is_inside(box: Any, x: Any) -> Any:
    """Whether the state `x` (d,) lies in the box from box[0] to box[1]; a NaN does not."""
    for j in range(x.size):
        if not box[0, j] <= x[j] <= box[1, j]:
            return False
    return True


@compiled
def clip_into(state: Any, bounds: Any, out: Any) -> Any:
    """Write `state` (d,), clipped, into `out`; False if it is outside by more than the slack, or no number.

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

    `values` takes the optimistic V_0 at each episode's first state, as it is when the episode has begun. `box` (2, d)
    holds the lowest and the highest state, `limits` (4,) FLOOR and CEILING of the range of rewards, whether it is a
    promise (STRICT) and whether 0 lies inside (HOLDS_ZERO). The run ends early

    - when room runs out;
    - after an episode with rewards outside the range: `beyond` (2,) takes the lowest and the highest of them;
    - in the middle of an episode if something is wrong: `bad` (3,) takes what (BAD_…), the reward and the step.
    """
    for k in range(count):
        if not has_room(model):
            return k
        number = episode_seed(seed, first + k)
        seed_stream(stream, number)  # an episode is a function of its seed, also where `reset` leaves the stream alone
        reset(env, number, stream, x)
        if not is_inside(box, x):
            bad[0] = BAD_START
            return k
        begin_episode(model)
        values[k] = read_values(model, x, 0)
        total = 0.0
        steps = 0
        a = choose(model, x, 0)
        for h in range(horizon):
            a = int(a)  # a float when Python called compiled code
            reward, terminated, truncated = advance(env, stream, x, a, y)
            fault = fault_of(reward, terminated, y, box, limits)
            if fault != 0:
                bad[0], bad[1], bad[2] = fault, reward, h
                return k
            if not limits[FLOOR] <= reward <= limits[CEILING]:
                beyond[0] = min(beyond[0], reward)
                beyond[1] = max(beyond[1], reward)
            total += reward
            steps += 1
            over = terminated or truncated or steps == horizon
            a = turn(model, x, a, reward, y, h, terminated, over)
            if over:
                break
            for j in range(x.size):
                x[j] = y[j]
        returns[k] = total
        lengths[k] = steps
        if beyond[0] <= beyond[1]:
            return k + 1
    return count


run_compiled = compiled(run_episodes)
