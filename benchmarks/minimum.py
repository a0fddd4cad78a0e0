"""What UCBVI learns with and without the minimum over its earlier Q (Azar et al. 2017, algorithm 2).

Total reward of 20,000 episodes of TwinRooms, preset "text": data pooled or per step, the whole bonus or a tenth of it.
Mean over seeds with a 95 % interval (Student's t), and the same for the paired difference that the minimum makes.

    python benchmarks/minimum.py [--episodes 20000] [--seeds 4] [--first-seed 0] [--workers 2]
"""

import argparse
import concurrent.futures
import itertools
import multiprocessing

import numpy as np

import kernelrl as krl
from _common import environment, report
from kernelrl.agents.evaluation import t_interval


def run(stationary, scale, minimum, episodes, seed):
    """Total reward and seconds of one run."""
    agent = krl.UCBVI.preset("text", stationary=stationary, bonus_scale=scale, minimum=minimum)
    history = agent.fit(environment(), episodes, seed=seed, progress=False)
    return float(history.returns.sum()), history.seconds


def interval(values):
    """The mean and half the width of its 95 % interval."""
    low, high = t_interval(values)
    return float(values.mean()), float(high - low) / 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    cases = list(itertools.product((True, False), (1.0, 0.1)))
    run(True, 1.0, True, 1, 0)  # compiled once, before the workers need it
    context, rows = multiprocessing.get_context("spawn"), []
    with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
        runs = {
            (*case, minimum): [pool.submit(run, *case, minimum, options.episodes, seed) for seed in seeds]
            for case in cases
            for minimum in (False, True)
        }
        for stationary, scale in cases:
            without, with_minimum = (
                np.array([future.result() for future in runs[stationary, scale, minimum]]) for minimum in (False, True)
            )
            for minimum, found in ((False, without), (True, with_minimum)):
                mean, half = interval(found[:, 0])
                change, half_change = interval(found[:, 0] - without[:, 0])
                rows.append({
                    "data": "pooled" if stationary else "per step", "bonus_scale": scale, "minimum": str(minimum),
                    "total reward": mean, "± (95 %)": half, "difference": change, "its ± (95 %)": half_change,
                    "seconds per run": float(found[:, 1].mean()),
                })  # fmt: skip
                print(rows[-1], flush=True)
    notes = [f"{options.seeds} seeds, from {options.first_seed} on"]
    report("minimum", f"Total reward of UCBVI in {options.episodes} episodes of TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
