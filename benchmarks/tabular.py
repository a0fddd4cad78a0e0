"""Agents that count, with nothing set, on Gymnasium's FrozenLake and Taxi, with and without Taxi's action mask.

Taxi's mask is in its info, for choosing only; or is given to the agent as a function of the state, `mask=`, which then
plans with it; or is removed.

The table has the mean return of the first and of the last quarter of the learning episodes, and of 200 episodes of the
policy to deploy; on FrozenLake also the last quarter with `bonus_scale=0.01`.

    python benchmarks/tabular.py [--seed 0] [--episodes 2000] [--only FrozenLake-v1]
"""

import argparse
import warnings

import gymnasium as gym
import numba
import numpy as np

import kernelrl as krl
from _common import report

AGENTS = ("UCBVI", "GreedyUCBVI", "OptQL", "RandomAgent")
TAXI = next((name for name in ("Taxi-v4", "Taxi-v3") if name in gym.registry), "Taxi-v3")
PROBLEMS = {"FrozenLake-v1": 2000, TAXI: 1000, f"{TAXI}, mask=": 1000, f"{TAXI}, mask removed": 1000}
STANDS = np.array([[0, 0], [0, 4], [4, 0], [4, 3]])  # rows and columns of the four places
WALLS = np.array([[0, 1], [1, 1], [3, 0], [3, 2], [4, 0], [4, 2]])  # a wall to the east of these


@numba.njit
def taxi_mask(state, action):
    """Which actions change something: no driving into walls, and passengers get on and off at the four places."""
    code = int(state[0])  # ((row · 5 + column) · 5 + passenger) · 4 + destination
    passenger, column, row = code // 4 % 5, code // 20 % 5, code // 100
    if action == 0:
        return row < 4
    if action == 1:
        return row > 0
    if action < 4:
        west = column if action == 2 else column - 1  # the cell to the west of the line that is crossed
        if west < 0 or west > 3:
            return False
        for i in range(len(WALLS)):
            if WALLS[i, 0] == row and WALLS[i, 1] == west:
                return False
        return True
    if action == 4:
        return passenger < 4 and STANDS[passenger, 0] == row and STANDS[passenger, 1] == column
    for i in range(len(STANDS)):
        if STANDS[i, 0] == row and STANDS[i, 1] == column:
            return passenger == 4
    return False


class Unmasked(gym.Wrapper):
    """An environment without its action mask."""

    def reset(self, **given):
        """Begin an episode."""
        state, info = self.env.reset(**given)
        return state, {key: value for key, value in info.items() if key != "action_mask"}

    def step(self, action):
        """Take one step."""
        *others, info = self.env.step(action)
        return *others, {key: value for key, value in info.items() if key != "action_mask"}


def make(problem):
    """The environment of a problem."""
    name, _, removed = problem.partition(", ")
    return Unmasked(gym.make(name)) if removed else gym.make(name)  # also where the agent has the mask itself


def learnt(agent, problem, episodes, seed):
    """The mean returns of the first and of the last quarter of the episodes."""
    quarter = max(1, episodes // 4)
    returns = agent.fit(make(problem), episodes, seed=seed, progress=False).returns
    return float(returns[:quarter].mean()), float(returns[-quarter:].mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episodes", type=int, help="in place of those of each problem")
    parser.add_argument("--only", choices=PROBLEMS, action="append")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = []
    for problem in options.only or PROBLEMS:
        episodes = options.episodes or PROBLEMS[problem]
        for name in AGENTS:
            agent = getattr(krl, name)(**({"mask": taxi_mask} if problem.endswith("mask=") else {}))
            first, last = learnt(agent, problem, episodes, options.seed)
            deployed = agent.evaluate(make(problem), 200).mean
            row = {"problem": problem, "agent": name, "first": first, "last": last, "deployed": deployed}
            if problem == "FrozenLake-v1" and name != "RandomAgent":
                narrow = getattr(krl, name)(bonus_scale=0.01)
                row["last, bonus_scale=0.01"] = learnt(narrow, problem, episodes, options.seed)[1]
            rows.append(row)
            print(row, flush=True)
    report("tabular", "Mean returns", rows)


if __name__ == "__main__":
    main()
