"""Exact Kernel-UCBVI, data per step: processor time against the number of episodes, and the error of its plans.

With and without interpolation, and if a commit is given, also that version of the package, in turns. At each checkpoint
all values are compared with those of one full plan on the same data.

    python benchmarks/kernel_exact_growth.py [--episodes 5000] [--before COMMIT]
"""

import argparse
import math
import tempfile

import numpy as np

from _common import LIPSCHITZ as INTERPOLATED
from _common import H, environment, report, resident_megabytes
from _scan import scan
from _versions import ROOT, run, versions
from kernel_exact import BETA, SIGMA, A, add, arrays_for, full_plan
from kernelrl.jit.compile import compiled
from kernelrl.planning.entries import PLANNED

CODE = """
import json, sys, time
sys.path.insert(0, {benchmarks!r})
import _common
_common.LIPSCHITZ = _common.LIPSCHITZ if {interpolate} else None
agent, spent = _common.agent("KernelUCBVI", stationary=False), [0.0]
for first, last in {pieces}:
    start = time.process_time()
    agent.fit(_common.environment(), last - first, seed=0, progress=False)
    spent.append(spent[-1] + time.process_time() - start)
print(json.dumps(spent[1:]))
"""


@compiled(cache=False)
def plain_plan(X, Y, where, rewards, number, H):
    """`full_plan` of `kernel_exact` without interpolation: V = min(R, max_a Q̃) at each next state."""
    factor = -0.5 / (SIGMA * SIGMA)
    for h in range(H - 1, 0, -1):
        R = np.float64(H - h)
        for j in range(number[h - 1].sum()):
            best = -math.inf
            for a in range(A):
                n = number[h, a]
                C, T = scan(X[h, a, 0, :n], X[h, a, 1, :n], X[h, a, 2, :n], Y[h, 0, j], Y[h, 1, j], factor)
                C += BETA
                best = max(best, T / C + 1.0 / math.sqrt(C) + R / C)
            Y[h, 2, j] = min(R, best)
            X[h - 1, where[h, 0, j], 2, where[h, 1, j]] = rewards[h, j] + Y[h, 2, j]


def largest_difference(agent, K, interpolate):
    """max |V - V of a full plan| over the plan's next states."""
    samples, arrays = agent.model.store, arrays_for(K)
    for t in range(int(agent.model.plan.clock[PLANNED])):
        h, a, _ = samples.labels[:, t]
        add(*arrays, h, a, samples.states[0, t], samples.states[1, t], samples.reward[t], H)
    if interpolate:
        full_plan(*arrays, np.array(INTERPOLATED), H)
    else:
        plain_plan(*arrays, H)
    worst = 0.0
    for h in range(1, H):
        n = int(arrays[4][h - 1].sum())
        V = agent.values(arrays[1][h, :2, :n].T, h)
        worst = max(worst, float(abs(V - arrays[1][h, 2, :n]).max()))
    return worst


def differences(points, interpolate):
    """`largest_difference` after each of these numbers of episodes."""
    import _common

    _common.LIPSCHITZ = INTERPOLATED if interpolate else None
    agent, played, worst = _common.agent("KernelUCBVI", stationary=False), 0, []
    for k in points:
        agent.fit(environment(), k - played, seed=0, progress=False)
        played = k
        worst.append(largest_difference(agent, k, interpolate))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=5000)
    parser.add_argument("--before", help="a commit to compare with")
    options = parser.parse_args()
    K = options.episodes
    points = sorted({K // 5, 2 * K // 5, 3 * K // 5, K})
    pieces, rows = list(zip([0, *points], points, strict=False)), []
    with versions(options.before) as sources, tempfile.TemporaryDirectory() as cache:
        for interpolate in (False, True):
            code = CODE.format(benchmarks=str(ROOT / "benchmarks"), interpolate=interpolate, pieces=pieces)
            times = {name: run(code, source, f"{cache}/{name}") for name, source in sources.items()}
            for i, (k, worst) in enumerate(zip(points, differences(points, interpolate), strict=True)):
                row = {"interpolation": "yes" if interpolate else "no", "episodes": k}
                row |= {f"{name}, s": spent[i] for name, spent in times.items()}
                if "before" in times:
                    row["times faster"] = times["before"][i] / times["now"][i]
                rows.append(row | {"largest difference": worst})
    notes = [f"resident memory: {resident_megabytes():.0f} MB", "differences are to be at most 1e-6"]
    report("kernel_exact_growth", f"Exact Kernel-UCBVI, data per step, {K} episodes of TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
