"""The speed of the baselines on TwinRooms, 20 bins per axis, and of the environment alone.

The environment alone is its dynamics and random stream, with fixed actions, in a compiled loop. Times are processor
times, the best of five runs if a run takes less than two seconds.

python benchmarks/baselines.py [--episodes 50000] [--seed 0]
"""

import argparse
import time

import numpy as np

import kernelrl as krl
from _common import H, environment, report
from kernelrl.envs.interface import advance, reset
from kernelrl.jit.compile import compiled
from kernelrl.jit.stream import episode_seed

BINS = 20
BASELINES = {
    "OptQL": lambda: krl.OptQL(bins=BINS, reward_range=(0, 1)),
    "Greedy-UCBVI": lambda: krl.GreedyUCBVI(bins=BINS, reward_range=(0, 1)),
    "AdaptiveQL": lambda: krl.AdaptiveQL(reward_range=(0, 1)),
    "UCBVI": lambda: krl.UCBVI(bins=BINS, reward_range=(0, 1)),
    "UCBVI, doubling": lambda: krl.UCBVI(bins=BINS, replan="doubling", reward_range=(0, 1)),
    "UCBVI, data per step": lambda: krl.UCBVI(bins=BINS, stationary=False, reward_range=(0, 1)),
}


@compiled(cache=False)
def run_environment(env, seed, K, stream, x, y):
    """K episodes with fixed actions: each in turn, so that the walk stays inside the rooms."""
    total = 0.0
    for k in range(K):
        reset(env, episode_seed(seed, k), stream, x)
        for h in range(H):
            reward, _, _ = advance(env, stream, x, h % 4, y)
            total += reward
            x[0], x[1] = y[0], y[1]
    return total


def best_time(function):
    """The shortest processor time of a few calls, and the last result."""
    times, result = [], None
    while not times or (len(times) < 5 and times[0] < 2.0):
        start = time.process_time()
        result = function()
        times.append(time.process_time() - start)
    return min(times), result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    K, steps = given.episodes, given.episodes * H

    arguments = environment().unwrapped.dynamics, given.seed
    arrays = np.zeros(4, np.uint64), np.zeros(2), np.zeros(2)
    run_environment(*arguments, 2, *arrays)
    alone, _ = best_time(lambda: run_environment(*arguments, K, *arrays))
    rows = [{"run": "environment alone", "seconds": alone, "µs a step": 1e6 * alone / steps, "against it": 1.0,
             "return": float("nan")}]  # fmt: skip
    for name, make in BASELINES.items():
        make().fit(environment(), 3, seed=1, progress=False)  # compiled before the clock starts
        took, history = best_time(lambda make=make: make().fit(environment(), K, seed=given.seed, progress=False))
        rows.append({"run": name, "seconds": took, "µs a step": 1e6 * took / steps, "against it": took / alone,
                     "return": float(history.returns.sum())})  # fmt: skip
    ratios = {row["run"]: row["against it"] for row in rows}
    notes = [
        f"{name} takes {ratios[name]:.2f} times the environment alone (to reach: at most 4)"
        for name in ("OptQL", "Greedy-UCBVI")
    ]
    report("baselines", f"Baselines, {K} episodes of TwinRooms, {BINS} bins an axis", rows, notes)


if __name__ == "__main__":
    main()
