"""What a plan costs with a bandwidth for each representative state and action, against one bandwidth for all.

Both agents have learnt from the same episodes of TwinRooms, with the same merge distance, and have the same neighbours:
those within REACH. One bandwidth has a kernel that ends there; `krl.schedules.Local` cuts any kernel at three
bandwidths, so its σ is a third of REACH at every representative and action. CPU time of one plan, the median of ROUNDS
rounds in which the two take turns.

    python benchmarks/plan_cost.py [--episodes 300] [--merge 0.03] [--reach 0.15]
"""

import argparse

import numpy as np

import kernelrl as krl
from _common import after_random_episodes, plan_seconds, report
from kernelrl.geometry.representatives import DEGREE, KNOWN

ROUNDS = 15


def learnt(bandwidth, kernel, options):
    """An agent after the same random episodes."""
    agent = krl.KernelUCBVI(
        bandwidth=bandwidth, kernel=kernel, representatives=options.merge, reward_range=(0, 1), metric="euclidean",
        bonus="simplified", reading="nearest", replan="episode",
    )  # fmt: skip
    return after_random_episodes(agent, options.episodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--merge", type=float, default=0.03)
    parser.add_argument("--reach", type=float, default=0.15)
    options = parser.parse_args()
    sigma = options.reach / 3
    agents = {
        "one bandwidth": learnt(options.reach, krl.kernels.Outside("epanechnikov"), options),
        "one for each representative and action": learnt(krl.schedules.Local(sigma, sigma), "gaussian", options),
    }
    times = {name: [] for name in agents}
    for _ in range(ROUNDS):
        for name, agent in agents.items():
            times[name].append(plan_seconds(agent))
    rows, first = [], float(np.median(times["one bandwidth"]))
    for name, agent in agents.items():
        reps = agent.model.store.reps
        number = int(reps.number[KNOWN])
        neighbours, median = int(reps.weights.span[DEGREE, :number].sum()), float(np.median(times[name]))
        rows.append({
            "bandwidth": name, "representatives": number, "neighbours": neighbours / number,
            "weights": neighbours * (agent.spaces.actions if reps.weights.amount.shape[1] > 1 else 1),
            "ms a plan": 1000 * median, "ratio": median / first,
        })  # fmt: skip
    report("plan_cost", "CPU time of a plan on TwinRooms", rows)


if __name__ == "__main__":
    main()
