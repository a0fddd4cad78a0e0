"""Intervals of optimal values from draws, on environments whose description is hidden, beside the known values.

python benchmarks/draws.py [--only SquareWorld]
"""

import argparse
import time
import warnings

import gymnasium as gym

import kernelrl as krl
from _common import report
from kernelrl.envs.sampled import solve_by_drawing
from kernelrl.envs.wrapping import time_limit

PROBLEMS = {
    "SquareWorld": ("kernelrl/SquareWorld-v0", {}),
    "TwinRooms": ("kernelrl/TwinRooms-v0", {}),
    "PuddleWorld": ("kernelrl/PuddleWorld-v0", {}),
    "Oil, λ = 1": ("kernelrl/Oil-v0", {"form": "laplace", "steepness": 1.0}),
    "Oil, noise, λ = 1": ("kernelrl/Oil-v0", {"form": "noise", "steepness": 1.0}),
    "Ambulance, α = 0.25": ("kernelrl/Ambulance-v0", {"alpha": 0.25}),
    "MountainCar-v0": ("MountainCar-v0", {}),
    "MountainCarContinuous-v0": ("MountainCarContinuous-v0", {}),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=PROBLEMS, action="append")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for problem in options.only or PROBLEMS:
        name, given = PROBLEMS[problem]
        env, began = gym.make(name, **given), time.perf_counter()
        low, high = solve_by_drawing(env, time_limit(env), None).interval
        seconds = time.perf_counter() - began
        known = krl.envs.solve(env).start_value if name.startswith("kernelrl/") else None
        rows.append({"problem": problem, "lowest": low, "highest": high, "V*": known, "seconds": seconds})
        print(rows[-1], flush=True)
    report("draws", "Optimal values from draws", rows)


if __name__ == "__main__":
    main()
