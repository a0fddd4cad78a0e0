"""How often the test of the step fires where the step does not matter, and how soon where it does.

`alarms`: the looks of an automatic agent at growing data of stationary problems. A run in which any look fires is a
false alarm; bounds are Clopper and Pearson's (95 %, one-sided). The problems are generated ones (`_generated.py`),
those of the package and Gymnasium's classic control. The data are those of random actions, of policies that depend on
the step, and of Kernel-UCBVI with nothing set.

`power`: the same on generated problems in which the step matters; median and 90 % quantile of the episodes until it
fires. Where the state tells the step (a clock), or an episode rarely gets as far, it should not.

`gain`: the mean return of the policy that Kernel-UCBVI deploys on problems in which the step matters: with the test,
with pooled data and no test, and with data of each step apart (stationary=False).

    python benchmarks/step_test.py [--runs 800] [--seeds 3] [--agents 1] [--steps 8000] [--first-seed 1] [--only alarms]
"""

import argparse
import concurrent.futures
import functools
import multiprocessing
import types
import unittest.mock
import warnings

import gymnasium as gym
import numpy as np
from scipy.special import betaincinv

import kernelrl as krl
from _common import report
from _generated import DEPENDENCES, POLICIES, Generated, environment
from control import Torques
from kernelrl.agents.automatic import RANDOM_STEPS, Automatic, next_renewal
from kernelrl.agents.dependence import NOT
from kernelrl.stores.log import Log
from kernelrl.stores.samples import LOGGED

STATIONARY = {
    "TwinRooms": {"id": "kernelrl/TwinRooms-v0"},
    "Ramp": {"id": "kernelrl/Ramp-v0"},
    "SquareWorld": {"id": "kernelrl/SquareWorld-v0"},
    "PBall2D": {"id": "kernelrl/PBall2D-v0", "level": 2},
    "Oil": {"id": "kernelrl/Oil-v0", "form": "laplace", "steepness": 10, "actions": 11},
    "Ambulance, beta": {"id": "kernelrl/Ambulance-v0", "arrivals": "beta", "actions": 11},
    "Ambulance, uniform": {"id": "kernelrl/Ambulance-v0", "arrivals": "uniform", "actions": 5},
    "PuddleWorld": {"id": "kernelrl/PuddleWorld-v0"},
    "CartPole": {"id": "CartPole-v1"},
    "MountainCar": {"id": "MountainCar-v0"},
    "Acrobot": {"id": "Acrobot-v1"},
    "Pendulum": {"id": "Pendulum-v1"},
}
AGENT_STEPS = 3000
EVALUATION = 200


# ------------------------------------------------------------------------------------------------------------ problems


def make(name):
    """The environment of this name."""
    env = gym.make(**STATIONARY[name])
    return Torques(env) if name == "Pendulum" else env


class ByStep(gym.Wrapper):
    """SquareWorld, but the step matters; `kind` says how."""

    def __init__(self, kind):
        super().__init__(gym.make("kernelrl/SquareWorld-v0"))
        self.kind, self.h, self.x = kind, 0, np.zeros(2)

    def reset(self, **options):
        """A new episode."""
        self.h, (self.x, information) = 0, self.env.reset(**options)
        return self.x, information

    def step(self, action):
        """One step: rewards or the motion depend on which."""
        h, H, x = self.h, self.env.spec.max_episode_steps, self.x
        if self.kind == "reversal":
            action = [1, 0, 3, 2][action] if h >= H // 2 else action
        y, reward, *others = self.env.step(action)
        if self.kind == "disturbance" and h == H // 2:
            y = np.clip(y + np.array([0.3, -0.3]), 0.0, 1.0)
            self.env.unwrapped.state = y
        if self.kind == "pay-off":  # a little on the left all the time, and much on the right at the end
            reward = 5.0 * (x[0] > 0.5) if h == H - 1 else 0.1 * (x[0] < 0.3)
        if self.kind == "tariff":  # the left and the right pay by turns, five steps each
            reward = float((x[0] < 0.4) == (h // 5 % 2 == 0))
        if self.kind == "weak tariff":  # the right pays more in the second half
            reward = float((x[0] < 0.4) + (0.5 if h < H // 2 else 1.5) * (x[0] > 0.4))
        self.h, self.x = h + 1, y
        return y, float(reward), *others


def by_step(kind):
    """The problem of this kind."""
    if kind == "Ambulance, shifting":
        return gym.make("kernelrl/Ambulance-v0", arrivals="shifting", actions=11)
    return ByStep(kind)


GAINS = {  # episodes
    "pay-off": 200, "tariff": 200, "weak tariff": 200, "disturbance": 200, "reversal": 200, "Ambulance, shifting": 200,
}  # fmt: skip


# ------------------------------------------------------------------------------------------------------------ the looks


def fired(box, H, actions, data):
    """The number of episodes after which a look first fires and what it says, or None."""
    x, a, r, y, h = data
    log = Log(np.stack([x, y]), np.stack([h, a, np.zeros_like(a)]).astype(np.int64), r, np.zeros(1, np.int64))
    spaces = types.SimpleNamespace(low=box[0], high=box[1], horizon=H, actions=actions, net=None)
    automatic, due = Automatic(None, None, None), 0
    for k, n in enumerate(np.append(np.flatnonzero(h == 0)[1:], len(h)), 1):
        if n < RANDOM_STEPS or k < due:
            continue
        log.number[LOGGED], due = n, next_renewal(k)
        automatic.look(log, spaces, np.iinfo(np.int64).max, pooled=True)
        if automatic.depends != NOT:
            return k, automatic.depends
    return None


def of_generated(seed, steps, depends=None):
    """The looks at a generated problem; the policy goes round with the seed."""
    problem = Generated(seed, depends)
    data = problem.play(POLICIES[seed % len(POLICIES)], steps, seed)
    return fired(problem.box, problem.H, problem.A, data)


def of_environment(name, policy, steps, seed):
    """The looks at an environment: random actions, or mostly those of a plan for each step."""
    env, rng, data = make(name), np.random.default_rng(seed), []
    H, A, box = env.spec.max_episode_steps, int(env.action_space.n), env.observation_space
    plan = rng.integers(A, size=H)
    while len(data) < steps:
        (x, _), over, h = env.reset(seed=int(rng.integers(2**31))), False, 0
        while not over:
            a = plan[h] if policy == "by step" and rng.random() < 0.8 else rng.integers(A)
            y, r, ends, stops, _ = env.step(int(a))
            data.append((np.array(x, float), a, float(r), np.array(y, float), h))
            x, h, over = y, h + 1, ends or stops
    return fired((box.low.astype(float), box.high.astype(float)), H, A, map(np.array, zip(*data, strict=True)))


def of_agent(make_env, seed):
    """What Kernel-UCBVI with nothing set says of data of its own."""
    env = make_env()
    H, agent = env.get_wrapper_attr("spec").max_episode_steps if env.spec else env._max_episode_steps, krl.KernelUCBVI()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        agent.fit(env, max(12, AGENT_STEPS // H), seed=seed, progress=False)
    found = agent.to_store()["automatic"]["depends"]
    return None if found == NOT else (agent.episodes, found)


def of_gain(kind, way, seed):
    """The deployed policy's mean return, and whether the test fired."""
    env, agent = by_step(kind), krl.KernelUCBVI(stationary=way != "apart")
    without = unittest.mock.patch("kernelrl.agents.automatic.dependence", lambda *_: NOT)
    with warnings.catch_warnings(), without if way == "pooled" else unittest.mock.MagicMock():
        warnings.simplefilter("ignore")
        agent.fit(env, GAINS[kind], seed=seed, progress=False)
        return agent.evaluate(env, EVALUATION).mean, agent.to_store()["automatic"]["depends"] != NOT


# ---------------------------------------------------------------------------------------------------------- the tables


def at_most(alarms, runs):
    """Clopper and Pearson's upper bound (95 %, one-sided) of the rate."""
    return 1.0 if alarms == runs else float(betaincinv(alarms + 1, runs - alarms, 0.95))


def alarms(pool, options):
    """A row for each kind of data, and one for all."""
    first, last = options.first_seed, options.first_seed + options.runs
    seeds, agent_seeds = range(first, first + options.seeds), range(first, first + options.agents)
    runs = {f"generated, {policy}": [] for policy in POLICIES}
    for seed in range(first, last):
        kind = f"generated, {POLICIES[seed % len(POLICIES)]}"
        runs[kind].append((seed, pool.submit(of_generated, seed, options.steps)))
    for policy in ("random", "by step"):
        runs[f"environments, {policy}"] = [
            ((name, seed), pool.submit(of_environment, name, policy, options.steps, seed))
            for name in STATIONARY
            for seed in seeds
        ]
    runs["generated, Kernel-UCBVI"] = [
        (seed, pool.submit(of_agent, functools.partial(environment, seed), seed))
        for seed in range(last, last + len(STATIONARY) * options.agents)
    ]
    runs["environments, Kernel-UCBVI"] = [
        ((name, seed), pool.submit(of_agent, functools.partial(make, name), seed))
        for name in STATIONARY
        for seed in agent_seeds
    ]
    rows = []
    for kind, futures in runs.items():
        found = [(what, future.result()) for what, future in futures]
        heard = [f"{what}: {result[1]} after {result[0]}" for what, result in found if result]
        rows.append(rate(kind, len(heard), len(found)) | {"which": "; ".join(heard)})
        print(rows[-1], flush=True)
    rows.append(rate("all", *(sum(row[key] for row in rows) for key in ("alarms", "runs"))) | {"which": ""})
    report("step_test_alarms", "False alarms of the test of the step", rows)


def rate(kind, heard, runs):
    """A row of the first table."""
    return {"data": kind, "runs": runs, "alarms": heard, "rate": heard / max(runs, 1), "at most": at_most(heard, runs)}


def power(pool, options):
    """A row for each dependence."""
    rows, seeds = [], range(options.first_seed, options.first_seed + max(1, options.runs // 8))
    for depends in DEPENDENCES:
        rest = [seed for seed in seeds if not Generated(seed).clock]
        found = [f.result() for f in [pool.submit(of_generated, seed, options.steps, depends) for seed in rest]]
        episodes = [one[0] for one in found if one]
        right = sum(one[1] == ("rewards" if depends in DEPENDENCES[:3] else "motion") for one in found if one)
        rows.append({
            "dependence": depends, "runs": len(found), "fired": len(episodes), "as what it is": right,
            "episodes, median": float(np.median(episodes)) if episodes else np.nan,
            "90 %": float(np.quantile(episodes, 0.9)) if episodes else np.nan,
        })  # fmt: skip
        print(rows[-1], flush=True)
    report("step_test_power", "Where the step matters: how soon that is seen", rows)


def gain(pool, options):
    """A row for each problem."""
    rows, seeds = [], range(options.first_seed, options.first_seed + options.seeds)
    for kind, episodes in GAINS.items():
        runs = {way: [pool.submit(of_gain, kind, way, seed) for seed in seeds] for way in ("test", "pooled", "apart")}
        found = {way: np.array([future.result() for future in futures]) for way, futures in runs.items()}
        values = {way: float(results[:, 0].mean()) for way, results in found.items()}
        rows.append({"problem": kind, "episodes": episodes, "seeds": len(seeds),
                     "fired": int(found["test"][:, 1].sum())} | values)  # fmt: skip
        print(rows[-1], flush=True)
    report("step_test_gain", "Mean return of the deployed policy", rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=800, help="generated problems; an eighth of it for each dependence")
    parser.add_argument("--seeds", type=int, default=3, help="for each environment and policy, and for gains")
    parser.add_argument("--agents", type=int, default=1, help="seeds of agents for each environment")
    parser.add_argument("--steps", type=int, default=8000, help="in each run")
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parts = {"alarms": alarms, "power": power, "gain": gain}
    parser.add_argument("--only", choices=parts, action="append")
    options = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(options.workers, multiprocessing.get_context("spawn")) as pool:
        for part in options.only or parts:
            parts[part](pool, options)


if __name__ == "__main__":
    main()
