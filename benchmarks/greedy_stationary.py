"""Exact Greedy-Kernel-UCBVI on pooled data: processor time against the number of episodes, its growth, and memory.

python benchmarks/greedy_stationary.py [--episodes 50000]
"""

import argparse
import math
import time

from _common import agent, environment, report, resident_megabytes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=50_000)
    K = parser.parse_args().episodes
    ours, rows, played, spent, collected = agent("GreedyKernelUCBVI", stationary=True), [], 0, 0.0, 0.0
    for k in (K // 10, K // 5, 2 * K // 5, K):
        start = time.process_time()
        history = ours.fit(environment(), k - played, seed=0, progress=False)
        here = time.process_time() - start
        grown = math.log((spent + here) / spent) / math.log(k / played) if spent else math.nan
        played, spent, collected = k, spent + here, collected + float(history.returns.sum())
        rows.append(
            {
                "episodes": k, "CPU seconds": spent, "exponent": grown,
                "µs per step, here": float(here / history.lengths.sum() * 1e6),
                "peak memory, MB": resident_megabytes(), "return so far": collected,
            }
        )  # fmt: skip
    exponent = math.log10(rows[-1]["CPU seconds"] / rows[0]["CPU seconds"])
    notes = [
        f"growth exponent from {K // 10} to {K} episodes: {exponent:.2f} (to reach: at most 1.4)",
        "to reach for 50,000 episodes: 180 CPU seconds, 6 GB",
    ]
    report("greedy_stationary", f"Exact Greedy-Kernel-UCBVI, pooled data, {K} episodes of TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
