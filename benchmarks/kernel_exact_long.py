"""Exact Kernel-UCBVI, data per step, over many episodes: processor time, memory and the error of its plans, in one run.

At each of four checkpoints all values are compared with those of one full plan on the same data, which is not timed.
The rows are shown as they come, since the whole takes up to an hour.

    python benchmarks/kernel_exact_long.py [--episodes 5000] [--interpolate]
"""

import argparse
import sys
import time

import _common
from _common import environment, report, resident_megabytes
from kernel_exact_growth import INTERPOLATED, largest_difference


def measure(points, interpolate):
    """One row for each of these numbers of episodes."""
    _common.LIPSCHITZ = INTERPOLATED if interpolate else None
    agent, played, spent, rows = _common.agent("KernelUCBVI", stationary=False), 0, 0.0, []
    for k in points:
        start = time.process_time()
        agent.fit(environment(), k - played, seed=0, progress=False)
        spent += time.process_time() - start
        played, memory = k, resident_megabytes()
        row = {"episodes": k, "CPU seconds": spent, "peak memory, MB": memory}
        rows.append(row | {"largest difference": largest_difference(agent, k, interpolate)})
        print("  ".join(f"{name} {value:.3g}" for name, value in rows[-1].items()), file=sys.stderr, flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--interpolate", action="store_true", help="with interpolation")
    options = parser.parse_args()
    K, how = options.episodes, "with" if options.interpolate else "without"
    rows = measure((K // 4, K // 2, 3 * K // 4, K), options.interpolate)
    notes = [
        "to reach for 20,000 episodes: an hour, 8 GB, differences of at most 1e-6",
        "peak memory from the second row on includes the arrays of the full plan before it",
    ]
    title = f"Exact Kernel-UCBVI, data per step, {how} interpolation, {K} episodes of TwinRooms"
    report(f"kernel_exact_long_{how}", title, rows, notes)


if __name__ == "__main__":
    main()
