"""Certificates from exogenous noise: bounds on V* at the start of ambulance and oil, from data of KernelUCBVI().

`python benchmarks/certificates_exogenous.py [--seeds N] [--cell C]`
"""

import argparse
import sys
import time
from pathlib import Path

import gymnasium as gym
import numpy as np

import kernelrl as krl
from _common import report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from exogenous_envs import ALPHA, ambulance, oil

EPISODES, H = (500, 2_000, 10_000), 5
SPREAD = 0.1**0.5


def noisy_oil():
    """The noise form, of which the standardised noise is known where the landing place was not clipped."""

    def recover(x, a, y):
        inside = (y > 0.0) & (y < 1.0) & (x + a > 0.2)
        return np.where(inside, (y - a) / (SPREAD * np.where(inside, x + a, 1.0)), np.nan)

    return krl.models.Exogenous(
        function=lambda x, a, z: np.clip(a + SPREAD * (x + a) * z, 0.0, 1.0), recover=recover,
        reward=lambda x, a: np.clip(np.exp(-np.abs(x * a - 0.7)) - np.abs(x - a), 0.0, 1.0)[:, 0], noise=(-4.0, 4.0),
        lipschitz=(4 * SPREAD, 1 + 4 * SPREAD, 2 * SPREAD), reward_lipschitz=(2, 2, 0), reward_of="state-action",
        noise_cell=0.05,
    )  # fmt: skip


PROBLEMS = {
    "ambulance, beta": ("Ambulance", {"arrivals": "beta", "alpha": ALPHA}, ambulance),
    "ambulance, uniform": ("Ambulance", {"arrivals": "uniform", "alpha": ALPHA}, ambulance),
    "oil, laplace": ("Oil", {"form": "laplace", "steepness": 1.0}, oil),
    "oil, noise": ("Oil", {"form": "noise", "steepness": 1.0}, noisy_oil),
}


def main(seeds, cell):
    rows = []
    for name, (env_name, settings, declare) in PROBLEMS.items():
        env, model = gym.make(f"kernelrl/{env_name}-v0", **settings), declare()
        V, found = float(krl.envs.solve(env).start_value), {k: [] for k in EPISODES}
        for seed in range(seeds):
            recorded = krl.KernelUCBVI().fit(env, EPISODES[-1], seed=seed, transitions=True, progress=False).transitions
            for k in EPISODES:
                before = time.process_time()
                made = krl.certify(recorded.head(H * k), model, env=env, reward_range=(0, 1), cell=cell, progress=False)
                cpu, (lower, upper) = time.process_time() - before, made.bounds([0.5])
                inside = lower <= V + 1e-3 and V - 1e-3 <= upper
                right = bool(made.check_declaration())
                share = made.kept.sum() / (H * k)
                found[k].append((lower, upper, inside, right, share, made.censored.sum() / (H * k), cpu))
        for k, values in found.items():
            lower, upper, inside, right, kept, censored, cpu = np.mean(values, axis=0)
            rows.append({
                "problem": name, "V*": V, "episodes": k, "seeds": seeds, "lower": float(lower), "upper": float(upper),
                "gap": float(upper - lower), "gap, % of the cap": float(100 * (upper - lower) / H),
                "V* inside": round(inside * seeds), "not contradicted": round(right * seeds),
                "kept, %": float(100 * kept), "unknown, %": float(100 * censored), "CPU s": float(cpu),
            })  # fmt: skip
    notes = [f"δ = 0.05, cells, bins and distances of actions {cell} (noise form of oil: bins 0.05); cap 5."]
    report(
        "certificates_exogenous", "Bounds on V* at the start from exogenous noise, data of KernelUCBVI()", rows, notes
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--cell", type=float, default=0.005)
    given = parser.parse_args()
    main(given.seeds, given.cell)
