"""The speed of learning: processor time of this version and of a commit, measured in turns in one run.

    python benchmarks/learning_speed.py [--before COMMIT] [--turns 5] [--only NAME …]

Each turn is a separate process with filled compile caches; the result is the median of the turns.
"""

import argparse
import statistics
import tempfile

from _common import report
from _versions import run, versions

CODE = """
import time, warnings, gymnasium as gym, kernelrl as krl
warnings.simplefilter("ignore")
make = lambda: krl.{agent}.preset("text", **{options})
env = gym.make("kernelrl/TwinRooms-v0")
make().fit(env, 2, seed=0, progress=False)
agent = make()
start = time.process_time()
history = agent.fit(env, {episodes}, seed=1, progress=False)
print([time.process_time() - start, float(history.returns.sum())])
"""
KERNEL, EXACT = {"bonus_scale": 0.1}, {"representatives": None}  # what differs from the paper's text
GRID = {"bonus_scale": 0.1}
AGENTS = {
    "Kernel-UCBVI": ("KernelUCBVI", KERNEL, 3000),
    "Kernel-UCBVI, per step": ("KernelUCBVI", KERNEL | {"stationary": False}, 1000),
    "Kernel-UCBVI, interpolated": ("KernelUCBVI", KERNEL | {"lipschitz": 10.0}, 1000),
    "Kernel-UCBVI, exact": ("KernelUCBVI", EXACT, 300),
    "Kernel-UCBVI, exact, interpolated": ("KernelUCBVI", EXACT | {"lipschitz": 10.0, "stationary": False}, 400),
    "Greedy-Kernel-UCBVI": ("GreedyKernelUCBVI", KERNEL, 20_000),
    "Greedy-Kernel-UCBVI, exact": ("GreedyKernelUCBVI", EXACT | {"lipschitz": 10.0}, 3000),
    "UCBVI": ("UCBVI", GRID, 5000),
    "Greedy-UCBVI": ("GreedyUCBVI", GRID, 50_000),
    "OptQL": ("OptQL", GRID, 50_000),
    "AdaptiveQL": ("AdaptiveQL", {"bonus_scale": 0.1}, 20_000),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="a commit to compare with")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=list(AGENTS))
    given, rows = parser.parse_args(), []
    with versions(given.before) as sources, tempfile.TemporaryDirectory() as cache:
        for name in given.only:
            agent, options, episodes = AGENTS[name]
            code = CODE.format(agent=agent, options=options, episodes=episodes)
            times, totals = {version: [] for version in sources}, {}
            for _ in range(given.turns):
                for version, source in sources.items():
                    seconds, totals[version] = run(code, source, cache)
                    times[version].append(seconds)
            row = {"agent": name, "episodes": episodes, "seconds": statistics.median(times["now"])}
            if "before" in times:
                before = statistics.median(times["before"])
                row |= {"before": before, "now/before": row["seconds"] / before}
                row["same return"] = str(totals["now"] == totals["before"])
            rows.append(row)
    report("learning_speed", "Learning in TwinRooms, processor seconds", rows)


if __name__ == "__main__":
    main()
