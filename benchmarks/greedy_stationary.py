"""Exact Greedy-Kernel-UCBVI on pooled data: time against the number of episodes, and its growth exponent.

python benchmarks/greedy_stationary.py [--episodes 8000]
"""

import argparse
import math

from _common import agent, environment, report, resident_megabytes, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=8000)
    K = parser.parse_args().episodes
    ours, rows, played, spent, collected = agent("GreedyKernelUCBVI", stationary=True), [], 0, 0.0, 0.0
    for k in (K // 8, K // 4, K // 2, K):
        elapsed, history = seconds(lambda: ours.fit(environment(), k - played, seed=0, progress=False))  # noqa: B023
        rows.append(
            {
                "episodes": k,
                "seconds": spent + elapsed,
                "exponent": math.log2((spent + elapsed) / spent) if spent else math.nan,
                "µs per step, here": elapsed / history.lengths.sum() * 1e6,
                "return so far": collected + float(history.returns.sum()),
            }
        )
        played, spent, collected = k, spent + elapsed, collected + float(history.returns.sum())
    notes = [
        f"growth exponent from {K // 4} to {K} episodes: {math.log(rows[-1]['seconds'] / rows[1]['seconds'], 4):.2f}",
        f"resident memory: {resident_megabytes():.0f} MB",
    ]
    report("greedy_stationary", f"Exact Greedy-Kernel-UCBVI, pooled data, {K} episodes of TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
