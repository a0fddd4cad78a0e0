"""Forecasts against what then happens, on TwinRooms and SquareWorld.

An agent with nothing set learns for some episodes. `forecast` says what its policy to deploy will be worth after more
of them, from its data alone. Then the agent really goes on, and its policy is evaluated in the environment. The error
is the forecast less what happened, as a share of V*, over several seeds.

    python benchmarks/forecast.py [--seeds 8] [--after 50,200]
"""

import argparse
import time
import warnings

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report
from kernelrl.agents.evaluation import t_interval

PROBLEMS = {"TwinRooms": "kernelrl/TwinRooms-v0", "SquareWorld": "kernelrl/SquareWorld-v0"}
MORE = (50, 100, 200)


def outcomes(name, after, seed):
    """Forecast and real values (2, 1 + len(MORE)), and the processor time of the forecast."""
    env, agent = gym.make(name), krl.KernelUCBVI()
    agent.fit(env, after, seed=seed, progress=False)
    began = time.process_time()
    forecast = agent.forecast(MORE, seed=seed, progress=False)
    spent, real = time.process_time() - began, []
    for more in np.diff(forecast.episodes, prepend=0).tolist():
        agent.fit(env, more, progress=False)
        real.append(agent.evaluate(env, 1000, seed=seed).mean)
    return np.array([forecast.mean, real]), forecast.interval, spent


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--after", default="50,200")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for label, name in PROBLEMS.items():
        best = float(krl.envs.solve(gym.make(name)).start_value)
        for after in map(int, given.after.split(",")):
            values, intervals, spent = zip(
                *(outcomes(name, after, seed) for seed in range(1, given.seeds + 1)), strict=True
            )
            values, intervals = np.array(values) / best, np.array(intervals) / best
            for m, more in enumerate((0, *MORE)):
                said, real = values[:, 0, m], values[:, 1, m]
                low, high = t_interval(said - real)
                inside = (intervals[:, 0, m] <= real) & (real <= intervals[:, 1, m])
                rows.append({
                    "problem": label, "episodes": after, "more": more, "forecast": said.mean(), "happened": real.mean(),
                    "error": (said - real).mean(), "from": low, "to": high, "inside": int(inside.sum()),
                    "CPU s": float(np.mean(spent)),
                })  # fmt: skip
    report("forecast", f"Forecasts, as a share of V*, {given.seeds} seeds", rows)


if __name__ == "__main__":
    main()
