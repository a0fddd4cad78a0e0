"""A batch reactor, A → B → C with heat: slow, three-dimensional, and paid for B at the end only.

States are the concentrations of A and B and the temperature, actions five temperatures of the jacket. If it becomes
too hot, B turns into C. One jacket temperature all the time needs no learning: the best of these is in the table, and
`optimum`, what the best policy of a model on a grid returns. The table has the mean return of the learning episodes
since the mark before, and of the policy to deploy, for agents with nothing set but the bonus.

    python benchmarks/reactor.py [--seeds 4] [--first-seed 1]
"""

import argparse
import warnings

import gymnasium as gym
import numpy as np
from scipy.interpolate import RegularGridInterpolator

import kernelrl as krl
from _common import report

MARKS = (50, 100, 200, 500)
EVALUATION = 100
STEPS, PARTS, NOISE = 20, 10, 0.5
LIMITS = (0.0, 0.0, 290.0), (1.0, 1.0, 400.0)
CELLS = (41, 41, 111)
BONUSES = {
    "default": "auto",
    "a tenth": krl.bonuses.Simplified(root=0.005, count=0.001),
}


def react(a, b, T, jacket):
    """Concentrations and temperature one step later, without noise."""
    for _ in range(PARTS):
        first, second = 3.0e4 * np.exp(-4000.0 / T) * a, 1.0e8 * np.exp(-7000.0 / T) * b
        a, b = a - first / PARTS, b + (first - second) / PARTS
        T = T + (60.0 * first + 80.0 * second - 0.35 * (T - jacket)) / PARTS
    return a, b, T


class Reactor(gym.Env):
    """The reactor."""

    def __init__(self):
        self.observation_space = gym.spaces.Box(*np.array(LIMITS), dtype=np.float64)
        self.action_space = gym.spaces.Discrete(5)
        self.jacket = np.linspace(290.0, 350.0, 5)

    def reset(self, *, seed=None, options=None):
        """A fresh batch of A."""
        super().reset(seed=seed)
        a, warm = self.np_random.random(2)
        self.state, self.time = np.array([0.95 + 0.05 * a, 0.0, 300.0 + 5.0 * warm]), 0
        return self.state.copy(), {}

    def step(self, action):
        """Both reactions are faster when it is hot, and heat the reactor; the jacket cools."""
        a, b, T = react(*self.state, self.jacket[action])
        T += NOISE * self.np_random.standard_normal()
        box, self.time = self.observation_space, self.time + 1
        self.state = np.clip([a, b, T], box.low, box.high)
        ends = self.time == STEPS
        return self.state.copy(), 2.0 * float(self.state[1]) if ends else 0.0, False, ends, {}


def played(policy):
    """The mean return of a policy, a function of state and step."""
    env, total = Reactor(), 0.0
    for k in range(EVALUATION):
        state, _ = env.reset(seed=k)
        for step in range(STEPS):
            state, reward, *_ = env.step(policy(state, step))
            total += reward
    return total / EVALUATION


def optimum():
    """The mean return of the best policy of a model on a grid of states, interpolated, with three draws of noise."""
    env = Reactor()
    box, axes = env.observation_space, [np.linspace(*ends, n) for *ends, n in zip(*LIMITS, CELLS, strict=True)]
    states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    draws, weights = np.polynomial.hermite_e.hermegauss(3)
    with np.errstate(all="ignore"):  # a reaction that runs away ends at the hottest corner, where nothing is left
        next_states = [np.array(react(*states.T, jacket)).T for jacket in env.jacket]
    next_states = [np.where(np.isfinite(y).all(axis=1, keepdims=True), y, [0.0, 0.0, box.high[2]]) for y in next_states]
    Q, V = [], None
    for _ in range(STEPS):
        q = []
        for y in next_states:
            around = [np.clip(y + np.array([0.0, 0.0, NOISE * z]), box.low, box.high) for z in draws]
            after = [2.0 * x[:, 1] if V is None else V(x) for x in around]
            q.append(np.average(after, axis=0, weights=weights))
        Q.insert(0, RegularGridInterpolator(axes, np.stack(q, axis=1).reshape(*CELLS, len(q))))
        V = RegularGridInterpolator(axes, np.max(q, axis=0).reshape(CELLS))
    return played(lambda state, step: int(Q[step](state).argmax()))


def run(bonus, seed):
    """(marks, 2) learning return and deployed return."""
    agent, found = krl.KernelUCBVI(horizon=STEPS, bonus=BONUSES[bonus]), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rewards depend on the step is known here
        for mark in MARKS:
            history = agent.fit(Reactor(), mark - agent.episodes, seed=seed, progress=False)
            found.append((history.returns.mean(), agent.evaluate(Reactor(), EVALUATION).mean))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--first-seed", type=int, default=1)
    options = parser.parse_args()
    best, most = max(played(lambda state, step, action=action: action) for action in range(5)), optimum()
    rows = []
    for bonus in BONUSES:
        seeds = range(options.first_seed, options.first_seed + options.seeds)
        found = np.array([run(bonus, seed) for seed in seeds])  # (seeds, marks, 2)
        for i, mark in enumerate(MARKS):
            rows.append({
                "bonus": bonus, "episodes": mark, "seeds": len(seeds), "learning": float(found[:, i, 0].mean()),
                "deployed": float(found[:, i, 1].mean()), "worst": float(found[:, i, 1].min()),
                "best constant": best, "optimum": most,
            })  # fmt: skip
    report("reactor", "A batch reactor that pays at the end", rows)


if __name__ == "__main__":
    main()
