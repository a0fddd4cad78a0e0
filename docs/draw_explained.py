"""Draw the figures of docs/explained.md: what a bonus, a bandwidth and merging do. All numbers are those of agents.

    python docs/draw_explained.py [--out docs/figures]

Takes less than a minute, most of it compiling the first time.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import gymnasium as gym
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

import kernelrl as krl

Floats = NDArray[np.float64]
BLUE, RED, GREY = "#0072B2", "#D55E00", "#555555"  # told apart by the colour-blind, and by their dashes in grey
SEED = 3


def true_reward(x: Floats) -> Floats:
    """The mean reward of the one action of the example, for a state in [0, 1]."""
    return 0.5 + 0.35 * np.sin(2 * np.pi * x) * np.exp(-x)


def samples(number: int) -> tuple[Floats, Floats]:
    """States, most of them on the left, and rewards of 0 or 1."""
    rng = np.random.default_rng(SEED)
    x = rng.beta(1.2, 2.5, 400)
    r = (rng.random(400) < true_reward(x)).astype(float)
    return x[:number], r[:number]


def agent_of(number: int, bandwidth: float) -> krl.KernelUCBVI:
    """An agent for episodes of one step that was told so many samples; every sample is kept."""
    agent = krl.KernelUCBVI(
        bandwidth=bandwidth, representatives=None, regularization=0.1, reward_range=(0, 1),
        bonus=krl.bonuses.Simplified(root=0.4, count=0.1), replan="episode",
    )  # fmt: skip
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Discrete(1), horizon=1, seed=0)
    for x, r in zip(*samples(number), strict=True):
        agent.begin_episode()
        agent.observe([x], 0, r, [x], 0)
        agent.end_episode()
    agent.begin_episode()  # plans
    return agent


def draw_estimate(axes: plt.Axes, number: int, bandwidth: float) -> None:
    """The estimate, the bonus above it and the upper value, with the truth and the samples."""
    agent = agent_of(number, bandwidth)
    x = np.linspace(0.0, 1.0, 301)
    upper = agent.values(x[:, None], 0)
    bonus = agent.bonuses(x[:, None], 0)[:, 0]
    estimate = np.minimum(agent.q_values(x[:, None], 0)[:, 0] - bonus, 1.0)
    axes.fill_between(x, estimate, upper, color=BLUE, alpha=0.15, linewidth=0)
    axes.plot(x, upper, color=BLUE, linewidth=2, label="optimistic value")
    axes.plot(x, estimate, color=RED, linewidth=2, linestyle=(0, (5, 2)), label="estimate, without bonus")
    axes.plot(x, true_reward(x), color=GREY, linewidth=1.2, linestyle=(0, (1.5, 1.5)), label="truth")
    seen, rewards = samples(number)
    axes.plot(seen, rewards * 1.1 - 0.05, "|", color="black", markersize=7, label="samples (rewards 0 or 1)")
    axes.set(xlim=(0, 1), ylim=(-0.1, 1.1), xlabel="state x")


def draw_bonus(out: Path) -> None:
    """The same states after 3, 30 and 300 samples."""
    figure, row = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
    for axes, number in zip(row, (3, 30, 300), strict=True):
        draw_estimate(axes, number, 0.06)
        axes.set_title(f"{number} samples")
    finish(figure, row, "value", out / "explained_bonus.png")


def write_samples(path: Path) -> None:
    """The samples for the figure that readers move (docs/_static/explained.js)."""
    x, r = samples(300)
    content = {"x": x.round(4).tolist(), "r": r.astype(int).tolist()}
    path.write_text(f"window.explainedSamples = {json.dumps(content)};\n")
    print(path)


def draw_bandwidth(out: Path) -> None:
    """The same samples with three bandwidths."""
    figure, row = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
    for axes, bandwidth, what in zip(row, (0.01, 0.06, 0.4), ("narrow", "fitting", "wide"), strict=True):
        draw_estimate(axes, 60, bandwidth)
        axes.set_title(f"bandwidth {bandwidth} ({what})")
    finish(figure, row, "value", out / "explained_bandwidth.png")


def finish(figure: Figure, row: Floats, label: str, path: Path) -> None:
    """One legend below all panels, and save."""
    row[0].set_ylabel(label)
    figure.legend(*row[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    save(figure, path)


def merged(states: Floats, distance: float) -> tuple[Floats, NDArray[np.int64]]:
    """Representatives as the paper merges: a state farther than `distance` from all of them becomes one."""
    chosen: list[int] = []
    member = np.zeros(len(states), np.int64)
    for i, state in enumerate(states):
        gaps = np.linalg.norm(states[chosen] - state, axis=1)
        if not chosen or gaps.min() > distance:
            chosen.append(i)
            member[i] = len(chosen) - 1
        else:
            member[i] = int(gaps.argmin())
    return states[chosen], member


def draw_merging(out: Path) -> None:
    """The states of a few episodes of TwinRooms, and what three merge distances make of them."""
    agent = krl.RandomAgent()
    history = agent.fit("kernelrl/TwinRooms-v0", 25, seed=0, progress=False, transitions=True)
    states = history.transitions.select("state_0", "state_1").to_numpy()
    figure, row = plt.subplots(3, 1, figsize=(7, 7.2), sharex=True)
    for axes, distance in zip(row, (0.02, 0.05, 0.15), strict=True):
        points, member = merged(states, distance)
        counts = np.bincount(member)
        for state, number in zip(states, member, strict=True):
            axes.plot(*np.stack([state, points[number]]).T, color="#999999", linewidth=0.5, zorder=1)
        axes.plot(*states.T, ".", color=RED, markersize=2, zorder=2)
        axes.scatter(*points.T, s=8 + 3 * counts, facecolor="none", edgecolor=BLUE, linewidth=1, zorder=3)
        axes.set(xlim=(0, 2), ylim=(0, 1), aspect="equal", ylabel="$x_2$")
        axes.set_title(f"within {distance}: {len(states)} states, {len(points)} representatives", fontsize=10)
    row[-1].set_xlabel("$x_1$")
    save(figure, out / "explained_merging.png")


def draw_optimism(out: Path) -> None:
    """Optimistic values and counts of TwinRooms after more and more episodes."""
    agent = krl.KernelUCBVI(bandwidth=0.02, representatives=0.04, reward_range=(0, 1))
    figure, grid = plt.subplots(3, 2, figsize=(10, 7.6), sharex=True, sharey=True)
    x, y = np.meshgrid(np.linspace(0.005, 1.995, 100), np.linspace(0.005, 0.995, 50))
    states = np.column_stack([x.ravel(), y.ravel()])
    for row, episodes in zip(grid, (10, 100, 2000), strict=True):
        agent.fit(
            "kernelrl/TwinRooms-v0", episodes - agent.episodes, seed=0 if not agent.episodes else None, progress=False
        )
        values = agent.values(states, 0).reshape(x.shape)
        counts = agent.counts(states, 0).sum(axis=1).reshape(x.shape)
        left = row[0].pcolormesh(x, y, values, cmap="cividis", vmin=0, vmax=20, shading="nearest", rasterized=True)
        right = row[1].pcolormesh(
            x, y, np.log10(1 + counts), cmap="cividis", vmin=0, vmax=4, shading="nearest", rasterized=True
        )
        row[0].set(aspect="equal", title=f"optimistic value V, {episodes:,} episodes")
        row[1].set(aspect="equal", title=f"visits, {episodes:,} episodes")
        figure.colorbar(left, ax=row[0], shrink=0.85)
        bar = figure.colorbar(right, ax=row[1], shrink=0.85)
        bar.set_ticks([0, 1, 2, 3, 4], labels=["0", "10", "100", "1,000", "10,000"])
    for axes in grid[-1]:
        axes.set_xlabel("$x_1$")
    for axes in grid[:, 0]:
        axes.set_ylabel("$x_2$")
    save(figure, out / "explained_optimism.png")


def save(figure: Figure, path: Path) -> None:
    """Write a figure without the date and version of the program, so that it changes only when its content does."""
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)
    print(path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figures")
    folder = parser.parse_args().out
    plt.rcParams.update(
        {"figure.constrained_layout.use": True, "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    write_samples(Path(__file__).parent / "_static" / "explained_samples.js")
    for draw in (draw_bonus, draw_bandwidth, draw_merging, draw_optimism):
        draw(folder)
