"""Kernel-UCBVI with nothing set on Gymnasium's classic control problems: the policy to deploy, along the way.

Pendulum comes twice: with five torques, and as it is, with an interval of torques; MountainCarContinuous also has a
continuous action. After each mark the policy plays EVALUATION episodes with fixed
starts; the table has the median of the seeds, the worst seed, and the mean return of the learning episodes since the
mark before. `loss` is by how much the policy got worse since a quarter of the episodes, mean over seeds, with an upper
bound that holds with 95 % confidence, and in how many seeds it did. "At most" asks for one side, so the bound is
Student's one-sided one, mean + t(0.95)·s/√n. It is meant for losses that are roughly normal: a large gain of one seed
makes it too high, a loss that is rare and large may be missed by it, so look at the worst seed, too. A bootstrap of
eight numbers would be lower, and is known to be too low too often. Every step of the environment is a step of learning:
nothing is tried out elsewhere.

    python benchmarks/control.py [--seeds 8] [--first-seed 1] [--workers 2] [--only CartPole-v1] [--until 200]
"""

import argparse
import concurrent.futures
import multiprocessing
import warnings

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report
from kernelrl.agents.evaluation import t_interval

EVALUATION = 100
FIVE = "Pendulum-v1, five torques"
MARKS = {
    FIVE: (25, 50, 100),
    "Pendulum-v1": (25, 50, 100),
    "MountainCarContinuous-v0": (10, 20, 50, 100),
    "MountainCar-v0": (75, 150, 250, 300, 1000),
    "CartPole-v1": (50, 100, 125, 150, 200, 300, 400, 500),
    "Acrobot-v1": (25, 50, 100, 125, 200, 500),
}


class Torques(gym.ActionWrapper):
    """Pendulum with five torques."""

    def __init__(self, env):
        super().__init__(env)
        self.action_space, self._torques = gym.spaces.Discrete(5), np.linspace(-2.0, 2.0, 5, dtype=np.float32)

    def action(self, action):
        """The torque of an action."""
        return self._torques[action : action + 1]


def make(problem):
    """The environment of a problem."""
    return Torques(gym.make("Pendulum-v1")) if problem == FIVE else gym.make(problem)


def run(problem, marks, seed):
    """For each mark: the deployed policy's mean return, the learning return since the last mark, and seconds so far."""
    agent, found, taken = krl.KernelUCBVI(), [], 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a policy that got worse is what this measures
        for mark in marks:
            history = agent.fit(make(problem), mark - agent.episodes, seed=seed, progress=False)
            taken += history.seconds
            found.append((agent.evaluate(make(problem), EVALUATION).mean, history.returns.mean(), taken))
    return found


def loss(marks, deployed, i):
    """The loss since a quarter of the episodes, mean and upper bound, from returns (seeds, marks), if known."""
    if marks[i] % 4 or marks[i] // 4 not in marks:
        return {"loss": None, "loss, at most": None, "worse in": None}
    fall = deployed[:, marks.index(marks[i] // 4)] - deployed[:, i]
    bound = t_interval(fall, 0.1)[1]  # the upper end of a 90 % interval is passed with probability 5 %
    return {"loss": float(fall.mean()), "loss, at most": bound, "worse in": int((fall > 0.0).sum())}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--only", choices=MARKS, action="append")
    parser.add_argument("--until", type=int, help="leave out marks beyond this")
    options = parser.parse_args()
    rows, context = [], multiprocessing.get_context("spawn")
    marks = {
        problem: [mark for mark in MARKS[problem] if options.until is None or mark <= options.until]
        for problem in options.only or MARKS
    }
    with concurrent.futures.ProcessPoolExecutor(options.workers, context) as pool:
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        runs = {problem: [pool.submit(run, problem, marks[problem], seed) for seed in seeds] for problem in marks}
        for problem, futures in runs.items():
            found = np.array([future.result() for future in futures])  # (seeds, marks, 3)
            for i, mark in enumerate(marks[problem]):
                deployed = found[:, i, 0]
                rows.append({
                    "problem": problem, "episodes": mark, "seeds": len(futures), "median": float(np.median(deployed)),
                    "worst": float(deployed.min()), "best": float(deployed.max()),
                    "learning": float(found[:, i, 1].mean()), "seconds": float(found[:, i, 2].mean()),
                } | loss(marks[problem], found[:, :, 0], i))  # fmt: skip
                print(rows[-1], flush=True)
    report("control", "Returns of the policy to deploy", rows)


if __name__ == "__main__":
    main()
