"""Searching for neighbours and planning in three to six dimensions, up to 20,000 representatives.

Logged transitions of CartPole (4 dimensions) and Acrobot (6) under random actions, and synthetic ones, uniform in a box
of 3, 4 and 6. Bandwidths are local, as in automatic agents; the merge distance is chosen for a number of
representatives. "search" is the processor time of everything but planning: for each state its representative, for each
representative its neighbours; "plan" that of one plan from scratch. Time per representative × neighbour says how it
grows.

    python benchmarks/dimensions.py [--most 20000]
"""

import argparse
import time
import warnings

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report, resident_megabytes
from kernelrl.geometry.representatives import DEGREE, KNOWN
from kernelrl.planning.reading import plan_again

HORIZON, ROUNDS = 10, 3
SIZES = (1_250, 5_000, 20_000)


def synthetic(d):
    """Uniform states, small steps."""

    def rows(n, rng):
        x = rng.random((n, d))
        return x, rng.integers(0, 3, n), np.clip(x + 0.05 * rng.standard_normal((n, d)), 0.0, 1.0)

    return rows, 3, np.zeros(d), np.ones(d)


def played(name):
    """Random actions in an environment of Gymnasium; coordinates are scaled to unit variance."""
    env = gym.make(name)

    def rows(n, rng):
        x, a, y = [], [], []
        state, _ = env.reset(seed=int(rng.integers(2**31)))
        while len(x) < n:
            action = int(rng.integers(env.action_space.n))
            following, _, ended, stopped, _ = env.step(action)
            x.append(state), a.append(action), y.append(following)
            state = env.reset()[0] if ended or stopped else following
        x, y = np.array(x, float), np.array(y, float)
        centre, spread = x.mean(axis=0), x.std(axis=0)
        return (x - centre) / spread, np.array(a), (y - centre) / spread

    d = env.observation_space.shape[0]
    return rows, int(env.action_space.n), np.full(d, -20.0), np.full(d, 20.0)


def learn(problem, x, a, y, merge):
    """An agent that has taken in these transitions, and the processor time that this took."""
    _, actions, low, high = problem
    agent = krl.KernelUCBVI(
        bandwidth=krl.schedules.Local(1.5 * merge, 0.75 * merge), representatives=merge, metric="euclidean",
        max_representatives=2 * SIZES[-1], reward_range=(0, 1), horizon=HORIZON,
    )  # fmt: skip
    agent.start(gym.spaces.Box(low, high, dtype=np.float64), gym.spaces.Discrete(actions), HORIZON, 0)
    table = {f"state_{j}": x[:, j] for j in range(x.shape[1])} | {f"next_state_{j}": y[:, j] for j in range(x.shape[1])}
    table |= {"action": a, "reward": np.abs(np.sin(x.sum(axis=1))), "terminated": np.zeros(len(x), bool)}
    began = time.process_time()
    agent.learn_from(table, progress=False)
    return agent, time.process_time() - began


def plan_seconds(agent):
    """Processor time of a plan from scratch, the shortest of some."""
    model, best = agent.model, np.inf
    for _ in range(ROUNDS):
        began = time.process_time()
        plan_again(model.plan, model.settings, model.store)
        best = min(best, time.process_time() - began)
    return best


def merge_for(rows, number, rng):
    """A merge distance at which transitions have about so many representatives: a quantile of nearest distances."""
    from scipy.spatial import KDTree

    x, _, y = rows(number, rng)
    states = np.unique(np.concatenate([x, y]), axis=0)
    distance = KDTree(states).query(states, 2)[0][:, 1]
    return float(np.quantile(distance, 0.5)) * 1.2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=SIZES[-1])
    most = parser.parse_args().most
    problems = {f"uniform, d = {d}": synthetic(d) for d in (3, 4, 6)}
    problems |= {f"{name}, d = {d}": played(f"{name}-v1") for name, d in (("CartPole", 4), ("Acrobot", 6))}
    warnings.simplefilter("ignore")  # most states are far from others here
    warm = problems["uniform, d = 3"]
    learn(warm, *warm[0](50, np.random.default_rng(1)), 0.2)  # compiles everything
    rows = []
    for name, problem in problems.items():
        for size in (size for size in SIZES if size <= most):
            rng = np.random.default_rng(0)
            merge = merge_for(problem[0], size, rng)
            agent, spent = learn(problem, *problem[0](2 * size, rng), merge)
            plan, reps = plan_seconds(agent), agent.model.store.reps
            number = int(reps.number[KNOWN])
            neighbours = float(reps.weights.span[DEGREE, :number].mean())
            rows.append({
                "states": name, "representatives": number, "neighbours": neighbours, "transitions": 2 * size,
                "search s": spent - plan, "plan s": plan,
                "search µs/transition": 1e6 * (spent - plan) / (2 * size),
                "plan ns/(H·rep·neighbour)": 1e9 * plan / (HORIZON * number * neighbours),
                "MB": resident_megabytes(),
            })  # fmt: skip
    report("dimensions", f"Neighbours and plans in three to six dimensions, H = {HORIZON}", rows)


if __name__ == "__main__":
    main()
