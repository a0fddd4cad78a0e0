"""How narrow the certificate of a kernel agent is, and what would make it narrower.

The library's, on the same data:

range R_h    as if nothing were known of V_{h+1}: c = R_h/2
range        c = ½(1 + sup V↑_{h+1} - inf V↓_{h+1}), at most R_h/2, or less by the diameter of the box
bernstein    also the empirical-Bernstein form, Joint(δ, bernstein=True); the data are those of this agent

In plain NumPy, on a lattice:

joint        the joint bonus with c = R_h/2
coupling     transitions that are declared as couplings, |y - y'| ≤ λ_p·ρ for certain: the bias of the next value is
             that of V↑ itself in a ball of radius λ_p·ρ_s around y_s, and L_{h+1} does not enter
true         the joint bonus with the largest slopes of V* itself in place of L_h (nobody knows them)

All are derived in docs/theory.md. The tables show the gap between V↓_1 and V↑_1 at the start state. On Ramp (cap 2) the
data are of Greedy-Kernel-UCBVI with the bonus Joint(0.05); on the lattice states and next states are moved and this is
counted. On TwinRooms (cap 20) the data are of Kernel-UCBVI; the lattice is taken as free, so the gaps there are smaller
than they can be.

    python benchmarks/kernel_certificates.py [--part ramp] [--seeds 4]
"""

import argparse
import functools
import itertools
import math

import gymnasium as gym
import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

import kernelrl as krl
from _common import report
from kernelrl.agents.guarantees import Bounds
from kernelrl.theory.bonuses import Problem, best_radius, joint_coefficients

DELTA, C2 = 0.05, math.exp(-0.5)
VARIANTS = ("joint", "coupling", "true")
OF_LIBRARY = ("range R_h", "range", "bernstein, range R_h", "bernstein")
PARTS = ("ramp", "twin rooms")


class Recorder(gym.Wrapper):
    """Keeps every transition: x, a, r, y."""

    def __init__(self, env):
        super().__init__(env)
        self.rows, self.x = [], None

    def reset(self, **options):
        """As the environment's own."""
        self.x, info = self.env.reset(**options)
        self.x = self.x.copy()
        return self.x, info

    def step(self, action):
        """As the environment's own, and kept."""
        y, reward, *rest = self.env.step(action)
        self.rows.append((self.x, int(action), float(reward), y.copy()))
        self.x = y.copy()
        return y, reward, *rest


def recorded(env_id, agent, episodes, seed):
    """x (n, d), a (n,), r (n,) and y (n, d) of a run."""
    env = Recorder(gym.make(env_id))
    agent.fit(env, episodes, seed=seed, progress=False)
    x, a, r, y = zip(*env.rows, strict=True)
    return np.array(x), np.array(a), np.array(r), np.array(y)


# ---------------------------------------------------------------------------------------------------------- one problem


class Lattice:
    """Points of a box at a spacing, with the distances between them."""

    def __init__(self, low, high, spacing):
        self.low, self.spacing = np.asarray(low, float), spacing
        self.shape = tuple(np.rint((np.asarray(high) - low) / spacing).astype(int) + 1)
        axes = [lo + spacing * np.arange(n) for lo, n in zip(low, self.shape, strict=True)]
        self.points = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, len(self.shape))
        self.distance = np.sqrt(((self.points[:, None] - self.points[None]) ** 2).sum(-1))

    def index(self, x):
        """(n,) the nearest point of each state (n, d)."""
        i = np.clip(np.rint((x - self.low) / self.spacing).astype(int), 0, np.array(self.shape) - 1)
        return np.ravel_multi_index(tuple(i.T), self.shape)

    def spread(self, V, k, op):
        """`op` of V over the balls of radius k·spacing (here: the cubes around them)."""
        f = maximum_filter if op is np.maximum else minimum_filter
        return f(V.reshape(self.shape), size=2 * k + 1, mode="nearest").ravel()


def bounds(problem, lattice, data, variant, slopes):
    """V↓_1 and V↑_1 on the lattice. `slopes` are λ_r and λ_p for the couplings."""
    x, a, r, y = data
    u, v, U, H = lattice.index(x), lattice.index(y), len(lattice.points), problem.horizon
    k = 2 ** math.ceil(math.log2(len(a) + 1)) - 1
    w = np.exp(-0.5 * (lattice.distance / problem.sigma) ** 2)
    w[w < 1e-12] = 0.0
    radius = best_radius(problem, k, DELTA)
    upper, lower = np.zeros(U), np.zeros(U)
    rings = np.minimum(
        np.ceil(slopes[1] * lattice.distance / lattice.spacing - 1e-9).astype(int), 3 * max(lattice.shape)
    )
    for h in reversed(range(H)):
        R, L = float(H - h), problem.lipschitz[h]
        c = joint_coefficients(problem, h, k, radius, DELTA)
        highs, lows = [], []
        for action in range(problem.actions):
            s = a == action
            sums = lambda z: np.bincount(u[s], z[s], U)  # noqa: B023, E731
            n = np.bincount(u[s], minlength=U)
            C, W2, D = problem.beta + w @ n, (w * w) @ n, (w * lattice.distance) @ n
            B = c.constant + c.root * np.sqrt(problem.beta + W2) / C
            if variant == "coupling":
                both = []
                for V, op in ((upper, np.maximum), (lower, np.minimum)):
                    reach = math.ceil(6 * problem.sigma * slopes[1] / lattice.spacing)
                    T = np.stack([sums(r + lattice.spread(V, i, op)[v]) for i in range(reach + 1)])
                    both.append((w * T[np.minimum(rings, reach), np.arange(U)]).sum(1) / C)
                bias = slopes[0] * D / C
                Q = both[0] + B + problem.beta * R / C + bias, both[1] - B - bias
            else:
                bias = L * D / C
                Q = (
                    (w @ sums(r + upper[v])) / C + B + problem.beta * R / C + bias,
                    (w @ sums(r + lower[v])) / C - B - bias,
                )
            cones = lattice.distance * L
            highs.append((Q[0][None] + cones).min(1))
            lows.append((Q[1][None] - cones).max(1))
        upper, lower = np.minimum(R, np.max(highs, 0)), np.maximum(0.0, np.max(lows, 0))
    return lower, upper


def gap(problem, lattice, data, variant, slopes, start):
    lower, upper = bounds(problem, lattice, data, variant, slopes)
    i = lattice.index(np.array([start]))[0]
    return float(upper[i] - lower[i])


# ---------------------------------------------------------------------------------------------------------- the tables


def declared(data):
    """The gap on Ramp of a certificate from a declared model of displacements."""
    table = dict(zip(("state", "action", "reward", "next_state"), data, strict=True))
    model = krl.models.Displacement(reward_lipschitz=0.5)
    certificate = krl.certify(
        {**table, "terminated": 0}, model, env="kernelrl/Ramp-v0", reward_range=(0, 1), progress=False
    )
    lower, upper = certificate.bounds([0.5])
    return upper - lower


def gaps_of_library(make, env_id, start, looks, seed):
    """The gap at the start after so many episodes, of each of OF_LIBRARY; `make(bonus)` makes an agent."""
    found = {}
    for tight in (False, True):
        agent, last = make(krl.bonuses.Joint(DELTA, bernstein=tight)), 0
        for k in looks:
            agent.fit(env_id, k - last, seed=seed if last == 0 else None, progress=False)
            last, name = k, "bernstein" if tight else "range"
            found.setdefault(name, []).append(gap_between(agent.certified_bounds(), start))
            name = "bernstein, range R_h" if tight else "range R_h"
            found.setdefault(name, []).append(gap_between(with_whole_range(agent), start))
    return found


def gap_between(bounds, start):
    """The gap of bounds at a state."""
    lower, upper = bounds.at(np.array(start))
    return upper - lower


def with_whole_range(agent):
    """The bounds of the same data where nothing is known of V_{h+1}: c = R_h/2."""
    bonus, rules = agent.bonus, None
    if bonus.bernstein:
        rules = functools.partial(bonus.rules, agent._bonus_problem(agent.spaces))
    return Bounds(*agent._keeping.planned_together(agent.model, None, rules, agent.representatives or 0.0))


def on_ramp(sigma, bonus):
    """The agent on Ramp."""
    return krl.GreedyKernelUCBVI(
        bandwidth=sigma, regularization=5.0, lipschitz=(0.5, 1.0), reward_range=(0, 1), stationary=True, bonus=bonus,
        representatives=0.002,
    )  # fmt: skip


def ramp(options):
    """Ramp, several bandwidths."""
    lattice, looks, sigmas = Lattice([0.0], [1.0], 0.004), (500, 2000, 8000), (0.1, 0.05, 0.025)
    found = {}
    for seed, sigma in itertools.product(range(1, 1 + options.seeds), sigmas):
        make = functools.partial(on_ramp, sigma)
        for variant, gaps in gaps_of_library(make, "kernelrl/Ramp-v0", [0.5], looks, seed).items():
            found.setdefault((sigma, variant), []).append(gaps)
        data = recorded("kernelrl/Ramp-v0", on_ramp(0.1, krl.bonuses.Joint(DELTA)), looks[-1], seed)
        parts = [tuple(column[: 2 * k] for column in data) for k in looks]
        problem = Problem(2, 2, (1.0,), sigma, 5.0, 1.0, C2, (1.0, 0.5), pooled=True, merge=0.002)
        for variant in VARIANTS[:-1]:
            gaps = [gap(problem, lattice, part, variant, (0.5, 1.0), [0.5]) for part in parts]
            found.setdefault((sigma, f"NumPy: {variant}"), []).append(gaps)
        if sigma == sigmas[-1]:
            found.setdefault(("none", "declared displacements"), []).append([declared(part) for part in parts])
    rows = []
    for (sigma, variant), gaps in found.items():
        means = dict(zip(map(str, looks), np.mean(gaps, axis=0).tolist(), strict=True))
        rows.append({"bandwidth": str(sigma), "bonus": variant, **means})
    report("kernel_certificates_ramp", "Gap between certified bounds on V*_1(0.5) of Ramp, cap 2, by episodes", rows)


def in_twin_rooms(sigma, bonus):
    """The agent in TwinRooms."""
    return krl.KernelUCBVI(
        bandwidth=sigma, regularization=0.01, lipschitz=(10.0, 1.0), reward_range=(0, 1), stationary=True, bonus=bonus,
        representatives=0.05, replan="doubling",
    )  # fmt: skip


def twin_rooms(options):
    """TwinRooms: the library's, and the first room in NumPy with the most generous reading of everything."""
    H, looks = 20, (1000, 10_000)
    lattice, rows = Lattice([0.0, 0.0], [0.94, 1.0], 0.02), []
    agent = krl.KernelUCBVI()
    x, a, r, y = recorded("kernelrl/TwinRooms-v0", agent, looks[-1], 1)
    slopes = tuple(10.0 * (H - h) for h in range(H))
    for sigma in (0.1, 0.05, 0.025):
        make = functools.partial(in_twin_rooms, sigma)
        for variant, gaps in gaps_of_library(make, "kernelrl/TwinRooms-v0", [0.1, 0.1], looks[:1], 1).items():
            rows.append({"bandwidth": sigma, "bonus": variant, **dict(zip(map(str, looks), gaps, strict=False))})
            print(rows[-1], flush=True)
        for variant in VARIANTS:
            L = tuple(np.full(H, 10.0)) if variant == "true" else slopes
            problem = Problem(H, 4, (0.95, 1.0), sigma, 0.01, 1.0, C2, L, pooled=True)
            row = {"bandwidth": sigma, "bonus": f"NumPy: {variant}"}
            for k in looks:
                use = np.arange(len(a)) < H * k
                use &= x[:, 0] < 1
                row[str(k)] = gap(problem, lattice, (x[use], a[use], r[use], y[use]), variant, (10.0, 1.0), [0.1, 0.1])
            rows.append(row)
            print(row, flush=True)
    report(
        "kernel_certificates_twin_rooms",
        "Gap between bounds on V*_1 of TwinRooms at the start, cap 20, by episodes",
        rows,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    for part in options.part or PARTS:
        {"ramp": ramp, "twin rooms": twin_rooms}[part](options)


if __name__ == "__main__":
    main()
