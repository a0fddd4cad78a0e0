"""Bounds between nodes (`refine=True`) on TwinRooms: how narrow they are, whether they hold, and what they take.

Data are of Kernel-UCBVI with nothing set, δ = 0.05, cells of side 0.005, cap 20. Rewards are known (a function), or
deterministic with λ_r = 10. "cells" are the bounds on cells within the same certificate, at δ/2; "refined" are the
better ones of both. Bounds at the start states are means over seeds. `violations` counts certificates with a node and
step at which V* is outside of the refined bounds by more than 0.002, twice the error of V*. `--sub` tries other
numbers of sub-cells; the default was chosen with seed 100.

    python benchmarks/displacement_nodes.py [--seeds 20] [--first 1] [--episodes 1000 3000 10000] [--sub 256]
"""

import argparse
import time

import numpy as np

import kernelrl as krl
from _common import environment, report
from kernelrl.certifying import nodes
from kernelrl.certifying.node_rewards import node_places

ROOMS = [((0.0, 0.0), (0.95, 1.0)), ((1.05, 0.0), (2.0, 1.0))]
STARTS = np.array([[0.1, 0.1], [1.1, 0.1]])
H, ERROR = 20, 0.002


def reward(states, action):
    """The reward of TwinRooms."""
    goals = np.where(states[:, :1] < 1.0, 0.8, 1.8)
    return np.maximum(0.0, 1.0 - np.hypot(states[:, 0] - goals[:, 0], states[:, 1] - 0.8) / 0.1)


MODELS = {
    "known": krl.models.Displacement(rooms=ROOMS, reward=reward, reward_lipschitz=10.0),
    "deterministic": krl.models.Displacement(rooms=ROOMS, reward_lipschitz=10.0),
}


def violated(certificate, optimum):
    """Whether V* is outside of the bounds at any step and node."""
    for h in range(H):
        for room in certificate.plan.cells.rooms:
            x = node_places(room).reshape(-1, 2)
            lower, upper = certificate.at(x, h)
            V = optimum.values(x, h)
            if (lower > V + ERROR).any() or (upper < V - ERROR).any():
                return True
    return False


def one_seed(seed, looks, optimum, found):
    """Add the bounds of one seed to `found`."""
    data = krl.KernelUCBVI().fit(environment(), max(looks), seed=seed, progress=False, transitions=True).transitions
    for k in looks:
        for name, model in MODELS.items():
            before = time.process_time()
            c = krl.certify(data[: k * H], model, env=environment(), reward_range=(0, 1), refine=True, progress=False)
            taken = time.process_time() - before
            ends = [np.mean(end) for end in (*c.plan.coarse.at(STARTS, 0), *c.at(STARTS, 0))]
            found.setdefault((name, k), []).append([*ends, taken, violated(c, optimum)])
            print(seed, k, name, np.round(found[name, k][-1], 3), flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--sub", type=int, default=nodes.SUB, help="sub-cells of a cell on each axis")
    options = parser.parse_args()
    nodes.SUB = options.sub
    optimum, found = krl.envs.solve(environment()), {}
    for seed in range(options.first, options.first + options.seeds):
        one_seed(seed, options.episodes, optimum, found)
    rows = []
    for (name, k), ends in sorted(found.items(), key=lambda item: (item[0][0] != "known", item[0][1])):
        low, high, lower, upper, taken, outside = np.array(ends, float).T
        rows.append({
            "reward": name, "episodes": k, "cells": f"[{low.mean():.2f}, {high.mean():.2f}]",
            "refined": f"[{lower.mean():.2f}, {upper.mean():.2f}]", "gap, cells": float((high - low).mean()),
            "gap, refined": float((upper - lower).mean()), "% of the cap": float((upper - lower).mean() / H * 100),
            "widest": float((upper - lower).max()), "violations": f"{int(outside.sum())} of {len(ends)}",
            "CPU seconds": float(taken.mean()),
        })  # fmt: skip
    name = "displacement_nodes" if options.first == 1 else "displacement_nodes_choice"
    report(name, f"Bounds on V*_1 of TwinRooms, V* = {optimum.start_value:.3f}", rows)


if __name__ == "__main__":
    main()
