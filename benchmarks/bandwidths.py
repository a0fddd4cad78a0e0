"""Several bandwidths at once (`krl.schedules.Bandwidths`): what they cost, how they learn, what they certify.

cost      CPU time of one plan with M bandwidths against one, the widest: M halves of each other, and M that are nearly
          the same, so that each has as many neighbours as the widest. The agents have learnt from the same random
          episodes of TwinRooms with the same merge distance; the median of ROUNDS rounds in which they take turns.
learning  total reward of Kernel-UCBVI on TwinRooms with nothing set, with local bandwidths, with one and with several,
          all with the bonus Simplified(root=0.05, count=0.01). Numbers were chosen with seeds 100 to 102 (`--choose`
          shows all that were tried) and are reported for seeds 1, 2, …
ramp      the gap between certified bounds on V*_1 of Ramp (cap 2) with the bonus Joint(0.05), with one bandwidth and
          with several. Greedy-Kernel-UCBVI, seeds 1, 2, …

    python benchmarks/bandwidths.py [--part cost] [--episodes 5000] [--seeds 4] [--workers 2] [--choose]
"""

import argparse
import concurrent.futures
import multiprocessing
import time

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import after_random_episodes, environment, plan_seconds, report
from kernelrl.agents.evaluation import t_interval
from kernelrl.geometry.representatives import DEGREE, KNOWN

ROUNDS = 15
SIGMA, MERGE = 0.05, 0.03  # of the plans that are timed
PARTS = ("cost", "learning", "ramp")
Bandwidths, Local = krl.schedules.Bandwidths, krl.schedules.Local

SHARED = {"representatives": 0.03, "reward_range": (0, 1), "bonus": krl.bonuses.Simplified(root=0.05, count=0.01)}
TRIED = {
    "local": [Local(0.1, 0.012), Local(0.05, 0.012), Local(0.05, 0.02)],
    "one": [0.05, 0.035, 0.025, 0.0175, 0.0125],
    "several": [
        Bandwidths([0.1, 0.025]), Bandwidths([0.05, 0.025]), Bandwidths([0.05, 0.0125]), Bandwidths([0.1, 0.05, 0.025]),
        Bandwidths([0.05, 0.025, 0.0125]), Bandwidths([0.025, 0.0125]),
    ],
}  # fmt: skip
CHOSEN = {"local": Local(0.05, 0.012), "one": 0.0175, "several": Bandwidths([0.025, 0.0125])}

RAMP = {
    "regularization": 5.0, "lipschitz": (0.5, 1.0), "reward_range": (0, 1), "bonus": krl.bonuses.Joint(0.05),
    "representatives": 0.002,
}  # fmt: skip
ON_RAMP = [0.4, 0.2, 0.1, 0.05, 0.025]
LOOKS = (500, 2000, 8000)  # episodes


# --------------------------------------------------------------------------------------------------------------- cost


def learnt(bandwidth, episodes):
    """An agent after the same random episodes."""
    agent = krl.KernelUCBVI(
        bandwidth=bandwidth, representatives=MERGE, reward_range=(0, 1), bonus="simplified", reading="nearest",
        replan="episode",
    )  # fmt: skip
    return after_random_episodes(agent, episodes)


def cost(options):
    """The table of CPU times."""
    several = {"one": SIGMA}
    for M in (2, 3, 4):
        several[f"{M}, each half of the one before"] = Bandwidths([SIGMA / 2**j for j in range(M)])
    for M in (2, 3, 4):
        several[f"{M}, nearly the same"] = Bandwidths([SIGMA * (1.0 - 0.001 * j) for j in range(M)])
    agents = {name: learnt(bandwidth, min(300, options.episodes)) for name, bandwidth in several.items()}
    times = {name: [] for name in agents}
    for _ in range(ROUNDS):
        for name, agent in agents.items():
            times[name].append(plan_seconds(agent))
    first, rows = float(np.median(times["one"])), []
    for name, agent in agents.items():
        reps, median = agent.model.store.reps, float(np.median(times[name]))
        number = int(reps.number[KNOWN])
        lists = reps.weights.span[DEGREE, : number * reps.scales.shape[1]]
        rows.append({
            "bandwidths": name, "representatives": number, "neighbours": float(lists.sum() / number),
            "ms a plan": 1000 * median, "ratio": median / first,
        })  # fmt: skip
    report("bandwidths_cost", "CPU time of a plan on TwinRooms", rows)


# ----------------------------------------------------------------------------------------------------------- learning


def run(bandwidth, episodes, seed):
    """Total reward, CPU seconds, representatives and the deployed policy's value; no bandwidth means nothing set."""
    agent = krl.KernelUCBVI() if bandwidth is None else krl.KernelUCBVI(bandwidth=bandwidth, **SHARED)
    before = time.process_time()
    history = agent.fit(environment(), episodes, seed=seed, progress=False)
    taken = time.process_time() - before
    deployed = agent.evaluate(environment(), 1000 if episodes > 1 else 1).mean
    return float(history.returns.sum()), taken, agent.number_of_representatives, deployed


def learning(options):
    """The table of total rewards."""
    K, optimum = options.episodes, krl.envs.solve(environment()).start_value
    tasks = [("nothing set", None), *CHOSEN.items()]
    seeds = range(1, 1 + options.seeds)
    if options.choose:
        tasks, seeds = [(name, bandwidth) for name, tried in TRIED.items() for bandwidth in tried], range(100, 103)
    for _, bandwidth in tasks[:: 1 if not options.choose else 4]:
        run(bandwidth, 1, 0)  # compiled once, before the workers need it
    rows, context = [], multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
        futures = [[pool.submit(run, bandwidth, K, seed) for seed in seeds] for _, bandwidth in tasks]
        for (name, bandwidth), waiting in zip(tasks, futures, strict=True):
            rewards, times, numbers, deployed = np.array([future.result() for future in waiting]).T
            low, high = t_interval(rewards)
            rows.append({
                "bandwidth": name, "numbers": "" if bandwidth is None else str(bandwidth), "seeds": len(rewards),
                "total reward": float(rewards.mean()), "± (95 %)": (high - low) / 2,
                "of K·V*": float(rewards.mean() / (K * optimum)), "deployed": float(deployed.mean() / optimum),
                "its lowest": float(deployed.min() / optimum), "CPU seconds a run": float(times.mean()),
                "representatives": float(numbers.mean()),
            })  # fmt: skip
            print(rows[-1], flush=True)
    name = "bandwidths_choice" if options.choose else "bandwidths_learning"
    report(name, f"Total reward in {K} episodes of TwinRooms, K·V* = {K * optimum:.0f}", rows)


# --------------------------------------------------------------------------------------------------------------- ramp


def gaps(bandwidth, looks, seed):
    """The gap at the start state after so many episodes."""
    agent, found = krl.GreedyKernelUCBVI(bandwidth=bandwidth, **RAMP), []
    for episodes in np.diff([0, *looks]):
        agent.fit(gym.make("kernelrl/Ramp-v0"), int(episodes), seed=seed, progress=False)
        lower, upper = agent.certificate([0.5])
        found.append(upper - lower)
    return found


def ramp(options):
    """The table of certified gaps."""
    names = {f"{sigma:g}": sigma for sigma in ON_RAMP}
    for first, last in ((0, 5), (1, 4), (0, 3)):
        names[", ".join(f"{sigma:g}" for sigma in ON_RAMP[first:last])] = Bandwidths(ON_RAMP[first:last])
    rows = []
    for name, bandwidth in names.items():
        found = np.array([gaps(bandwidth, LOOKS, seed) for seed in range(1, 1 + options.seeds)])
        rows.append(
            {"bandwidths": name, **{f"{k} episodes": float(g) for k, g in zip(LOOKS, found.mean(0), strict=True)}}
        )
        print(rows[-1], flush=True)
    report("bandwidths_ramp", "Gap between certified bounds on V* of Ramp, cap 2", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--choose", action="store_true", help="all numbers that were tried, on seeds 100 to 102")
    options = parser.parse_args()
    for part in options.part or PARTS:
        {"cost": cost, "learning": learning, "ramp": ramp}[part](options)


if __name__ == "__main__":
    main()
