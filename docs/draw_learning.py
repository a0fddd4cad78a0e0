"""Draw the first figure of README.md: how the agents of the experiment "quick" learn, with more seeds than it has.

    python docs/draw_learning.py [--out docs/figures] [--seeds 8] [--episodes 2000]

Takes a few minutes on two cores. Runs are kept in results/readme-figure; those that are there are not run again, so
delete the folder to run all of them with the present code.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from kernelrl import envs, experiments
from kernelrl.reporting.drawing import STYLE
from kernelrl.reporting.statistics import smoothed
from kernelrl.reporting.style import OPTIMUM, line_of

Floats = NDArray[np.float64]
WINDOW = 40  # episodes
NAMES = {
    "Kernel-UCBVI": "Kernel-UCBVI, nothing set",
    "Greedy-Kernel-UCBVI": "Greedy-Kernel-UCBVI, nothing set",
    "Kernel-UCBVI, as in the paper": "Kernel-UCBVI, settings of the paper",
    "random": "random actions",
}


def learning_curves(store: experiments.Store) -> dict[str, Floats]:
    """By label: the mean return of the last episodes, (seeds, episodes)."""
    returns: dict[str, list[Floats]] = {}
    for run in store.runs():
        returns.setdefault(run.label, []).append(run.history()["return"].to_numpy())
    return {label: smoothed(np.stack(rows), WINDOW) for label, rows in returns.items()}


def draw(curves: dict[str, Floats], best: float, path: Path) -> None:
    """Means over seeds, and the band of all but the lowest and the highest seed."""
    plt.rcParams.update(STYLE)
    figure, axes = plt.subplots(figsize=(6.4, 3.5), layout="constrained")
    for index, (label, rows) in enumerate(curves.items()):
        style, ordered = line_of(index), np.sort(rows, axis=0)
        k = np.arange(1, rows.shape[1] + 1)
        axes.plot(
            k, rows.mean(axis=0), color=style.colour, linestyle=style.pattern, linewidth=1.8, label=NAMES[label],
            marker=style.marker, markersize=4.5, markevery=(0.03 + 0.02 * index, 0.14),
        )  # fmt: skip
        inner = ordered[1:-1] if len(ordered) > 3 else ordered
        axes.fill_between(k, inner[0], inner[-1], color=style.colour, alpha=0.18, linewidth=0)
    axes.axhline(best, color=OPTIMUM, linewidth=1, label=f"best policy, {best:.2f}")
    axes.set(xlabel="episodes", ylabel=f"return, mean of the last {WINDOW} episodes")
    axes.margins(x=0.01)
    figure.legend(loc="outside upper center", ncols=2)
    figure.savefig(path, dpi=200, metadata={"Software": None})
    plt.close(figure)


def main() -> None:
    """Run what is missing, and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figures")
    parser.add_argument("--runs", type=Path, default=Path("results/readme-figure"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--workers", type=int)
    given = parser.parse_args()
    experiments.run("quick", given.runs, seeds=given.seeds, episodes=given.episodes, workers=given.workers)
    curves = learning_curves(experiments.open_store(given.runs))
    best = envs.solve(gym.make("kernelrl/TwinRooms-v0")).start_value
    for label, rows in curves.items():
        ends = ", ".join(f"{rows[:, k - 1].mean():.2f}" for k in (250, 500, 1000, 2000) if k <= rows.shape[1])
        print(f"{label}: {len(rows)} seeds, mean after 250, 500, 1,000 and 2,000 episodes: {ends}")
    given.out.mkdir(parents=True, exist_ok=True)
    draw(curves, best, given.out / "learning.png")
    print(given.out / "learning.png")


if __name__ == "__main__":
    main()
