"""Exact Greedy-Kernel-UCBVI, data per step, against a brute-force SIMD scan of all samples and a loop that only reads.

The scan is the same algorithm without any shortcut, but fully vectorised. At each step all samples of the step are read
and weighted (with the library's exponential). If the target is below the cap, all next states of the step are read and
lowered where the target's cone is below them. The value of the new next state is the lowest cone of all visited states.
The reading loop reads the same arrays equally often and only adds them up.

    python benchmarks/greedy_exact.py [--episodes 50000]
"""

import argparse
import math

import numpy as np

from _common import LIPSCHITZ, H, agent, environment, report, resident_megabytes, seconds
from _scan import BLOCK, lowest, scan
from kernelrl.envs.interface import advance, reset
from kernelrl.episodes.verbs import pick_largest
from kernelrl.jit.compile import SUMS, compiled, inner
from kernelrl.jit.stream import episode_seed, new_stream

A, SIGMA, BETA = 4, 0.025, 0.01


@inner(fastmath=SUMS | {"contract"})
def read_three(Z, j, n):
    """The sum of the first n columns of Z[j], where Z is (…, 3, K)."""
    total = 0.0
    for i in range(n):
        total += Z[j, 0, i] + Z[j, 1, i] + Z[j, 2, i]
    return total


@inner(fastmath=SUMS | {"contract"})
def excess(xs, ys, values, x, y, target, L2):
    """Positive if the cone at (x, y) lies below any of `values` at (xs, ys)."""
    total = 0.0
    for i in range(xs.size):
        dx, dy, above = xs[i] - x, ys[i] - y, max(0.0, values[i] - target)
        total += max(0.0, above * above - L2 * (dx * dx + dy * dy))
    return total


@inner
def lower(X, Y, where, rewards, h, n, x, y, target, L):
    """V_h ← min(V_h, cone) at the n next states of step h-1, block by block, and G of the samples they belong to."""
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        if excess(Y[h, 0, first:last], Y[h, 1, first:last], Y[h, 2, first:last], x, y, target, L * L) > 0.0:
            for i in range(first, last):
                dx, dy = Y[h, 0, i] - x, Y[h, 1, i] - y
                value = target + L * math.sqrt(dx * dx + dy * dy)
                if value < Y[h, 2, i]:
                    Y[h, 2, i] = value
                    X[h - 1, where[h, 0, i], 2, where[h, 1, i]] = rewards[h, i] + value


@compiled(cache=False)
def run_scan(env, seed, K, H, stream, own, lipschitz, X, Y, cones, where, rewards, number, lowered, states, q, returns):
    """Greedy-Kernel-UCBVI by plain scans; number is (H, A)."""
    factor = -0.5 / (SIGMA * SIGMA)
    x, y = states[0], states[1]
    for k in range(K):
        reset(env, episode_seed(seed, k), stream, x)
        for h in range(H):
            R, L = np.float64(H - h), lipschitz[h]
            for a in range(A):
                n = number[h, a]
                C, T = scan(X[h, a, 0, :n], X[h, a, 1, :n], X[h, a, 2, :n], x[0], x[1], factor)
                C += BETA
                q[a] = T / C + 1.0 / math.sqrt(C) + R / C
            a = pick_largest(q, own)
            reward, _, _ = advance(env, stream, x, a, y)
            target = min(R, q[a])
            cones[h, 0, k], cones[h, 1, k], cones[h, 2, k] = x[0], x[1], target
            if target < R and h > 0:
                lowered[h] += 1
                lower(X, Y, where, rewards, h, k + 1, x[0], x[1], target, L)
            i = number[h, a]
            value = 0.0
            if h + 1 < H:
                above = cones[h + 1, 0, :k], cones[h + 1, 1, :k], cones[h + 1, 2, :k]
                value = lowest(above[0], above[1], above[2], y[0], y[1], R - 1.0, lipschitz[h + 1])
                Y[h + 1, 0, k], Y[h + 1, 1, k], Y[h + 1, 2, k] = y[0], y[1], value
                where[h + 1, 0, k], where[h + 1, 1, k], rewards[h + 1, k] = a, i, reward
            X[h, a, 0, i], X[h, a, 1, i], X[h, a, 2, i] = x[0], x[1], reward + value
            number[h, a] = i + 1
            returns[k] += reward
            x[0], x[1] = y[0], y[1]


@compiled(cache=False)
def run_read(K, H, number, lowered, X, Y, cones):
    """Read what the scan reads, equally often: finally `number` (H, A) samples and `lowered` (H,) passes over Y."""
    total = 0.0
    for k in range(K):
        for h in range(H):
            for a in range(A):
                total += read_three(X[h], a, np.int64(number[h, a] / K * k))
            total += read_three(Y, h, np.int64(lowered[h] / K * k))
            if h + 1 < H:
                total += read_three(cones, h + 1, k)
    return total


def scan_arrays(K):
    """Fresh arrays for `run_scan`, in the order of its arguments from `X` on."""
    return (
        np.zeros((H, A, 3, K)), np.zeros((H, 3, K)), np.zeros((H, 3, K)), np.zeros((H, 2, K), np.int64),
        np.zeros((H, K)), np.zeros((H, A), np.int64), np.zeros(H, np.int64), np.zeros((2, 2)), np.zeros(A), np.zeros(K),
    )  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=50_000)
    K = parser.parse_args().episodes
    dynamics, L = environment().unwrapped.dynamics, np.array(LIPSCHITZ)

    ours = agent("GreedyKernelUCBVI", stationary=False)
    our_time, history = seconds(lambda: ours.fit(environment(), K, seed=0, progress=False))
    memory = resident_megabytes()

    run_scan(dynamics, 0, 2, H, np.zeros(4, np.uint64), new_stream(0), L, *scan_arrays(2))
    arrays = scan_arrays(K)
    scan_time, _ = seconds(lambda: run_scan(dynamics, 0, K, H, np.zeros(4, np.uint64), new_stream(0), L, *arrays))
    X, Y, cones, _, _, number, lowered, *_ = arrays
    run_read(2, H, number, lowered, X, Y, cones)
    read_time, _ = seconds(lambda: run_read(K, H, number, lowered, X, Y, cones))

    agreement = float(np.mean(history.returns == arrays[-1]))
    runs = [
        ("kernelrl", our_time, history.returns.sum()),
        ("plain SIMD scan", scan_time, arrays[-1].sum()),
        ("reading only", read_time, math.nan),
    ]
    rows = [
        {"run": name, "seconds": time, "against the scan": time / scan_time, "return": float(total)}
        for name, time, total in runs
    ]
    notes = [
        f"kernelrl needs {our_time / scan_time:.2f} of the scan's time (to reach: at most 0.5)",
        f"the scan needs {scan_time / read_time:.2f} times the reading loop's (a fair yardstick: at most 2.2)",
        f"resident memory after kernelrl's run: {memory:.0f} MB (to reach: under 500)",
        f"episodes with the very same return in kernelrl and the scan: {agreement:.1%}",
    ]
    report("greedy_exact", f"Exact Greedy-Kernel-UCBVI, data per step, {K} episodes of TwinRooms", rows, notes)


if __name__ == "__main__":
    main()
