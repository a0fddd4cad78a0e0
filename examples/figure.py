"""A first look: both exact algorithms and a random agent on TwinRooms, and a figure of how they learn.

    python examples/figure.py [--out figures]

About a minute of learning; the first run compiles for a minute or two before that.
"""

import argparse
from pathlib import Path

import gymnasium as gym
import matplotlib
import numpy as np

import kernelrl as krl

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SEEDS = 3
BEST = 2.925  # V*_1 at the start: no policy collects more on average
COMMON = {"bandwidth": 0.04, "regularization": 0.01, "bonus_scale": 0.02, "representatives": None}
# label, agent, episodes, colour (safe for colour-blind readers)
CURVES = [
    ("Kernel-UCBVI", lambda: krl.KernelUCBVI(**COMMON), 250, "#0072B2"),
    ("Greedy-Kernel-UCBVI, $L_h$ = 10", lambda: krl.GreedyKernelUCBVI(**COMMON, lipschitz=10.0), 2500, "#D55E00"),
    ("random", lambda: krl.RandomAgent(), 2500, "#777777"),
]


def learn(label, make, episodes):
    """Returns (SEEDS, episodes)."""
    returns = []
    for seed in range(SEEDS):
        print(f"{label.partition(',')[0]}: seed {seed}, {episodes} episodes", flush=True)
        returns.append(make().fit(gym.make("kernelrl/TwinRooms-v0"), episodes, seed=seed).returns)
    return np.array(returns)


def smooth(returns):
    """At each episode, the mean of the last fifth of the episodes played so far: (…, episodes)."""
    totals = np.concatenate([np.zeros((*returns.shape[:-1], 1)), returns.cumsum(axis=-1)], axis=-1)
    end = np.arange(1, returns.shape[-1] + 1)
    begin = np.minimum(end - 1, (0.8 * end).astype(int))
    return (totals[..., end] - totals[..., begin]) / (end - begin)


def draw(curves):
    """The figure."""
    figure, axes = plt.subplots(figsize=(7.2, 4.4), layout="constrained")
    for (label, _, _, colour), returns in curves:
        episodes = np.arange(1, returns.shape[1] + 1)
        shown = episodes >= 10
        lines = smooth(returns)[:, shown]
        axes.plot(episodes[shown], lines.T, color=colour, linewidth=0.7, alpha=0.35)
        axes.plot(episodes[shown], lines.mean(axis=0), color=colour, linewidth=2.2, label=label)
    axes.axhline(BEST, color="black", linestyle="--", linewidth=1)
    axes.text(10.5, BEST - 0.05, "optimal policy, 2.925", va="top", fontsize=9)
    axes.set(xscale="log", xlim=(10, None), ylim=(-0.05, 3.15))
    axes.set_xlabel("episode")
    axes.set_ylabel("return, mean of the last fifth of episodes")
    axes.set_title(
        "TwinRooms, exact algorithms, pooled data: σ = {bandwidth}, β = {regularization}, bonus × {bonus_scale}; "
        "{seeds} seeds".format(**COMMON, seeds=SEEDS),
        fontsize=9.5,
    )
    axes.grid(alpha=0.25)
    axes.legend(loc="center left", frameon=False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("figures"))
    out = parser.parse_args().out
    curves = [(curve, learn(*curve[:3])) for curve in CURVES]
    figure = draw(curves)
    out.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "pdf"):
        figure.savefig(out / f"learning.{suffix}", dpi=160)
        print(f"Written: {out / f'learning.{suffix}'}")
    for (label, *_), returns in curves:
        last = returns[:, -returns.shape[1] // 10 :]
        print(f"{label.partition(',')[0]:20s} mean return of the last tenth: {last.mean():.2f}")


if __name__ == "__main__":
    main()
