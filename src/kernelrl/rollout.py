"""The episode loop, and the two ways to drive it.

`run_episodes` is the one loop there is. Over an environment of ours it runs compiled (`run_compiled`), over any other
as plain Python, with the environment behind a `GymEnvironment`; either way it calls the same compiled functions of the
algorithm, so both give the same numbers to the last bit.
"""

from typing import Any

from kernelrl.algorithms.interface import begin_episode, choose, end_episode, has_room, observe, read_values
from kernelrl.core.compile import compiled
from kernelrl.core.stream import episode_seed
from kernelrl.envs.interface import advance, reset

__all__ = ["run_compiled", "run_episodes"]

SLACK = 1e-9  # of rounding in rewards mapped to [0, 1]


def run_episodes(
    model: Any, env: Any, stream: Any, x: Any, y: Any, seed: Any, first: Any, count: Any,
    horizon: Any, lowest: Any, factor: Any, returns: Any, lengths: Any, values: Any, bad: Any,
) -> Any:  # fmt: skip
    """Play episodes `first` … `first`+`count`-1; return how many were played before room ran out.

    `values` takes the optimistic V_0 at each episode's first state, as it is when the episode has begun. Rewards are
    mapped to (reward-lowest)·factor. One outside [0, 1] ends the run: `bad` (2,) takes 1 and the reward.
    """
    for k in range(count):
        if not has_room(model):
            return k
        reset(env, episode_seed(seed, first + k), stream, x)
        begin_episode(model)
        values[k] = read_values(model, x, 0)
        total = 0.0
        steps = 0
        for h in range(horizon):
            a = int(choose(model, x, h))  # a float when Python calls it
            reward, terminated, truncated = advance(env, stream, x, a, y)
            r = (reward - lowest) * factor
            if not (-SLACK <= r <= 1.0 + SLACK):
                bad[0] = 1.0
                bad[1] = reward
                return k
            observe(model, x, a, min(max(r, 0.0), 1.0), y, h, terminated)
            total += reward
            steps += 1
            for j in range(x.size):
                x[j] = y[j]
            if terminated or truncated:
                break
        end_episode(model)
        returns[k] = total
        lengths[k] = steps
    return count


run_compiled = compiled(run_episodes)
