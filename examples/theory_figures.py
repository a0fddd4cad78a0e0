"""Draw the figures of docs/theory.md: bonuses against the count, coverage against δ, the gap against episodes.

    python examples/theory_figures.py [--out docs/figures]

Takes about two minutes, most of it compiling the first time.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import gymnasium as gym
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import kernelrl as krl
from kernelrl.theory import summarise
from kernelrl.theory.concentration import bernstein_bound, hoeffding_bound

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00")  # told apart by the colour-blind


def draw_bonuses(out: Path) -> None:
    """Each bonus at the paper's settings, against the cap."""
    answer = summarise("kernelrl/TwinRooms-v0", 50_000, bandwidth=0.025, stationary=False)
    bonuses = dict(answer["bonuses"])
    counts = bonuses.pop("count")
    figure, axes = plt.subplots(figsize=(7, 4.2))
    for (name, values), colour, marker in zip(bonuses.items(), COLOURS, "osv^D", strict=False):
        axes.loglog(counts, values, color=colour, marker=marker, label=name)
    axes.axhline(answer["cap"], color="black", linestyle="--", linewidth=1)
    axes.text(1e6, answer["cap"] * 1.2, "cap: above it no value moves", ha="right")
    axes.set(xlabel="generalized count C", ylabel="bonus at the first step", title="TwinRooms, the paper's settings")
    axes.legend(frameon=False, loc="lower left")
    save(figure, out / "theory_bonuses.png")


def violations(
    delta: float, kind: str, adversary: str, paths: int = 4000, steps: int = 400, beta: float = 1.0, seed: int = 0
) -> float:
    """The share of paths of ±1 that violate a bound at any time."""
    rng = np.random.default_rng(seed)
    S, W, V = np.zeros(paths), np.zeros(paths), np.zeros(paths)
    violated = np.zeros(paths, bool)
    limit = np.full(paths, np.inf)
    for t in range(1, steps + 1):
        Y = rng.choice([-1.0, 1.0], size=paths)
        w = np.ones(paths)
        if adversary == "stops when it is ahead":
            w = np.where(np.abs(S) < 0.97 * limit, 1.0, 0.0)
        elif adversary == "presses on when it is ahead":
            w = np.clip(np.abs(S) / limit, 0.05, 1.0)
        S, W, V = S + w * Y, W + w, V + w * w
        bound = hoeffding_bound(W, V, 1.0, beta, delta) if kind == "Hoeffding" else None
        if bound is None:
            bound = bernstein_bound(W, V, t, 1.0, beta, delta)
        limit = bound * (W + beta)
        violated |= np.abs(S) > limit
    return float(violated.mean())


def draw_coverage(out: Path, paths: int = 4000, steps: int = 400) -> None:
    """How often the two lemmas are violated, against δ."""
    deltas = np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5])
    figure, axes = plt.subplots(figsize=(7, 4.2))
    axes.plot([0.005, 0.7], [0.005, 0.7], color="black", linestyle="--", linewidth=1, label="δ: what is allowed")
    cases = [(kind, who) for kind in ("Hoeffding", "Bernstein")
             for who in ("weights all 1", "stops when it is ahead", "presses on when it is ahead")]  # fmt: skip
    for (kind, adversary), colour, marker in zip(cases, COLOURS, "osv^D*", strict=True):
        rates = [violations(delta, kind, adversary, paths, steps) for delta in deltas]
        axes.plot(deltas, np.maximum(rates, 1e-4), color=colour, marker=marker, label=f"{kind}, {adversary}")
    axes.set(xscale="log", yscale="log", xlabel="δ", ylabel=f"share of {paths:,} paths that violate it by t = {steps}",
             title="Both lemmas, at all times (10⁻⁴: never)", ylim=(7e-5, 1))  # fmt: skip
    axes.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, out / "theory_coverage.png")


def draw_gap(out: Path, episodes: int = 6000) -> None:
    """The certified interval at Ramp's start."""
    env = gym.make("kernelrl/Ramp-v0")
    figure, axes = plt.subplots(figsize=(7, 4.2))
    variants = {
        "self-normalised, number of episodes known": krl.bonuses.Joint(0.05, episodes),
        "self-normalised, anytime": krl.bonuses.Joint(0.05),
        "not self-normalised": krl.bonuses.Joint(0.05, episodes, self_normalised=False),
    }
    marks = np.unique(np.geomspace(10, episodes, 25).astype(int))
    for (name, bonus), colour, line in zip(variants.items(), COLOURS, ("-", "--", "-."), strict=False):
        agent = krl.GreedyKernelUCBVI(
            bandwidth=0.1,
            regularization=5.0,
            lipschitz=(0.5, 1.0),
            bonus=bonus,
            representatives=None,
            reward_range=(0, 1),
        )
        bounds = []
        for mark in marks:
            agent.fit(env, mark - agent.episodes, seed=0 if agent.episodes == 0 else None, progress=False)
            bounds.append(agent.certificate([0.5]))
        lower, upper = np.array(bounds).T
        axes.plot(marks, lower, color=colour, linestyle=line)
        axes.plot(marks, upper, color=colour, linestyle=line, label=name)
    axes.axhline(0.6, color="black", linestyle="--", linewidth=1)
    axes.text(11, 0.63, "V*₁ = 0.6")
    axes.set(xscale="log", xlabel="episodes", ylabel="certified bounds on V*₁ at the start", ylim=(0, 2.05),
             title="Ramp, δ = 0.05; the cap is 2")  # fmt: skip
    axes.legend(frameon=False, title="joint bonus")
    save(figure, out / "theory_gap.png")


def save(figure: Figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs/figures"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    draw_bonuses(out)
    draw_coverage(out)
    draw_gap(out)


if __name__ == "__main__":
    main()
