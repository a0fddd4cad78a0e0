"""What would make the kernel certificate narrower: three changes of the joint bonus, in plain NumPy.

range      c = ½(1 + sup V↑_{h+1} - inf V↓_{h+1}), at most R_h/2, in place of R_h/2
bernstein  the smaller one of the joint bonus and the empirical-Bernstein bonus, each at δ/2
coupling   transitions that are declared as couplings, |y - y'| ≤ λ_p·ρ for certain: the bias of the next value is that
           of V↑ itself in a ball of radius λ_p·ρ_s around y_s, and L_{h+1} does not enter
true       the joint bonus with the largest slopes of V* itself in place of L_h (nobody knows them)

All are derived in docs/theory.md. The tables show the gap between V↓_1 and V↑_1 at the start state. On Ramp (cap 2) the
data are of Greedy-Kernel-UCBVI with the bonus Joint(0.05), states and next states are moved to a lattice and this is
counted. On TwinRooms (cap 20) the data are of Kernel-UCBVI with nothing set, and the lattice is taken as free, so the
gaps there are smaller than they can be.

    python benchmarks/kernel_certificates.py [--part ramp] [--seeds 4]
"""

import argparse
import itertools
import math

import gymnasium as gym
import numpy as np
from scipy.ndimage import maximum_filter, minimum_filter

import kernelrl as krl
from _common import report
from kernelrl.theory.bonuses import Problem, best_radius, joint_coefficients

DELTA, C2, J = 0.05, math.exp(-0.5), 200
LAMBDAS = 0.75 * 2.0 ** (-0.5 * np.arange(24))
PSI = -np.log1p(-LAMBDAS) - LAMBDAS
VARIANTS = ("joint", "range", "bernstein", "coupling", "range, bernstein, coupling", "true")
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


def bernstein(problem, h, k, radius, delta, C, W2, S):
    """min over j of [R·ℓ_j/λ_j + ψ_j/λ_j·V̂/R]/C and its ε-terms; S holds Σw²m, Σw²m², Σw²g², each (U,)."""
    R, beta, sigma = float(problem.horizon - h), problem.beta, problem.sigma
    mean = S[0] / np.maximum(W2, 1e-300)
    spread = np.maximum(S[1] - S[0] * mean, 0.0)
    V = (np.sqrt(spread + W2 * (R / (2 * J)) ** 2) + np.sqrt(S[2])) ** 2
    log = math.log(problem.horizon) + problem.log_cover(radius) - math.log(delta)
    best = np.full(C.shape, math.inf)
    for j, (lam, psi) in enumerate(zip(LAMBDAS, PSI, strict=True)):
        ell = log + math.log(2.0 * (j + 1) * (j + 2) * (J + 1))
        net = 2 * C2 * k * R / (beta * sigma) + R * ell / lam * C2 * k / (sigma * beta**2)
        net += psi / lam * C2 * R / sigma * (2 + k / beta)
        best = np.minimum(best, (R * ell / lam + psi / lam * V / R) / C + radius * net)
    return best


def bounds(problem, lattice, data, variant, slopes):
    """V↓_1 and V↑_1 on the lattice. `slopes` are λ_r and λ_p for the couplings."""
    x, a, r, y = data
    u, v, U, H = lattice.index(x), lattice.index(y), len(lattice.points), problem.horizon
    k = 2 ** math.ceil(math.log2(len(a) + 1)) - 1
    w = np.exp(-0.5 * (lattice.distance / problem.sigma) ** 2)
    w[w < 1e-12] = 0.0
    delta = DELTA / 2 if "bernstein" in variant else DELTA
    radius = best_radius(problem, k, delta)
    upper, lower = np.zeros(U), np.zeros(U)
    rings = np.minimum(
        np.ceil(slopes[1] * lattice.distance / lattice.spacing - 1e-9).astype(int), 3 * max(lattice.shape)
    )
    for h in reversed(range(H)):
        R, L = float(H - h), problem.lipschitz[h]
        following = problem.lipschitz[h + 1] if h + 1 < H else 0.0
        c = joint_coefficients(problem, h, k, radius, delta)
        factor = 1.0
        if "range" in variant:
            factor = min(1.0, (1.0 + upper.max() - lower.min()) / R)
        highs, lows = [], []
        for action in range(problem.actions):
            s = a == action
            sums = lambda z: np.bincount(u[s], z[s], U)  # noqa: B023, E731
            n = np.bincount(u[s], minlength=U)
            C, W2, D = problem.beta + w @ n, (w * w) @ n, (w * lattice.distance) @ n
            mid, half = r + 0.5 * (upper + lower)[v], 0.5 * (upper - lower)[v] + following * problem.merge
            B = c.constant + c.root * factor * np.sqrt(problem.beta + W2) / C
            if "bernstein" in variant:
                S = [(w * w) @ sums(z) for z in (mid, mid * mid, half * half)]
                B = np.minimum(B, bernstein(problem, h, k, radius, delta, C, W2, S) + problem.identifying(h))
            if "coupling" in variant:
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


def ramp(options):
    """Ramp, several bandwidths."""
    lattice, looks, sigmas = Lattice([0.0], [1.0], 0.004), (500, 2000, 8000), (0.1, 0.05, 0.025)
    found = {key: [] for key in itertools.product(sigmas, VARIANTS[:-1])}
    found["none", "declared displacements"] = []
    for seed in range(1, 1 + options.seeds):
        agent = krl.GreedyKernelUCBVI(
            bandwidth=0.1, regularization=5.0, lipschitz=(0.5, 1.0), reward_range=(0, 1), stationary=True,
            bonus=krl.bonuses.Joint(DELTA), representatives=0.002,
        )  # fmt: skip
        data = recorded("kernelrl/Ramp-v0", agent, looks[-1], seed)
        for sigma, variant in found:
            gaps = []
            for k in looks:
                first = tuple(column[: 2 * k] for column in data)
                if sigma == "none":
                    gaps.append(declared(first))
                    continue
                problem = Problem(2, 2, (1.0,), sigma, 5.0, 1.0, C2, (1.0, 0.5), pooled=True, merge=0.002)
                gaps.append(gap(problem, lattice, first, variant, (0.5, 1.0), [0.5]))
            found[sigma, variant].append(gaps)
    rows = []
    for (sigma, variant), gaps in found.items():
        means = dict(zip(map(str, looks), np.mean(gaps, axis=0).tolist(), strict=True))
        rows.append({"bandwidth": str(sigma), "bonus": variant, **means})
    report("kernel_certificates_ramp", "Gap between certified bounds on V*_1(0.5) of Ramp, cap 2, by episodes", rows)


def twin_rooms(options):
    """TwinRooms: the first room, with the most generous reading of everything."""
    H, looks = 20, (1000, 10_000)
    lattice, rows = Lattice([0.0, 0.0], [0.94, 1.0], 0.02), []
    agent = krl.KernelUCBVI()
    x, a, r, y = recorded("kernelrl/TwinRooms-v0", agent, looks[-1], 1)
    slopes = tuple(10.0 * (H - h) for h in range(H))
    for sigma, variant in itertools.product((0.1, 0.05, 0.025), VARIANTS):
        L = tuple(np.full(H, 10.0)) if variant == "true" else slopes
        problem = Problem(H, 4, (0.95, 1.0), sigma, 0.01, 1.0, C2, L, pooled=True)
        row = {"bandwidth": sigma, "bonus": variant}
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
