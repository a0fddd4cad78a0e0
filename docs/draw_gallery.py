"""Draw the gallery, docs/gallery.md: one episode of a trained agent in each environment of the package.

    python docs/draw_gallery.py [--out docs/figures] [--page docs/gallery.md] [--only Ramp Oil]

The table of the page is written, too, between the lines `<!-- table: begin -->` and `<!-- table: end -->`.

Each agent is `krl.KernelUCBVI()` with nothing set. Takes a few minutes, most of it compiling the first time.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import gymnasium as gym
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import kernelrl as krl

EPISODES = {
    "TwinRooms": 1000, "SquareWorld": 300, "PBall2D": 600, "PuddleWorld": 600, "Ramp": 200, "Oil": 300,
    "Ambulance": 300,
}  # fmt: skip
FRAMES = 6
BEGIN, END = "<!-- table: begin -->\n", "<!-- table: end -->\n"
SEEDS = range(21)  # of the episodes that are played; the one with the median return is shown


def episode(agent: krl.KernelUCBVI, env: gym.Env[Any, Any], seed: int) -> tuple[list[Any], float]:
    """Frames and return of one episode of the policy to deploy."""
    state, _ = env.reset(seed=seed)
    frames, total = [env.render()], 0.0
    for step in range(agent.spaces.horizon):
        state, reward, terminated, truncated, _ = env.step(agent.act(state, step))
        frames.append(env.render())
        total += float(reward)
        if terminated or truncated:
            break
    return frames, total


def draw_line(agent: krl.KernelUCBVI, env: gym.Env[Any, Any], path: Path) -> float:
    """States against the step, of ten episodes, for an environment of one number that draws no pictures."""
    figure, axes = plt.subplots(figsize=(6, 2.6))
    total = 0.0
    for number in range(10):
        state, _ = env.reset(seed=number)
        states = [state[0]]
        for step in range(agent.spaces.horizon):
            state, reward, *_ = env.step(agent.act(state, step))
            states.append(state[0])
            total += float(reward) / 10
        axes.plot(states, "o-", color="#0072B2", alpha=0.6)
    axes.set(xlabel="step", ylabel="state", xticks=range(agent.spaces.horizon + 1), ylim=(-0.03, 1.03))
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)
    return total


def draw(name: str, out: Path) -> str:
    """Learn, play once, and draw some of its frames side by side; return the row of the table."""
    made, path = f"kernelrl/{name}-v0", out / f"gallery_{name}.png"
    agent = krl.KernelUCBVI()
    agent.fit(made, EPISODES[name], seed=0, progress=False)
    mean = agent.evaluate(made, 100).mean
    plain = gym.make(made)
    if "rgb_array" in plain.metadata["render_modes"]:
        env = gym.make(made, render_mode="rgb_array")
        played = sorted((episode(agent, env, seed) for seed in SEEDS), key=lambda one: one[1])
        frames, total = played[len(played) // 2]
        draw_frames(frames, path)
        print(f"{name}: returns of {len(played)} episodes from {played[0][1]:.3g} to {played[-1][1]:.3g}")
    else:
        total = draw_line(agent, plain, path)
    print(f"{name}: {EPISODES[name]} episodes; shown {total:.3g}, mean of 100 {mean:.3g}", flush=True)
    return f"| {name} | {EPISODES[name]:,} episodes | {total:.3g} | {mean:.3g} |"


def with_rows(page: str, rows: dict[str, str]) -> str:
    """The page with these rows in its table, in place of those of the same environments; the others stay."""
    if BEGIN not in page or END not in page:
        raise ValueError(f"the page needs the lines {BEGIN.strip()} and {END.strip()}")
    before, _, rest = page.partition(BEGIN)
    table, _, after = rest.partition(END)
    known = {row[1]: row[0] for row in re.findall(r"^(\| (\w+) \|.*\|)$", table, re.M) if row[1] in EPISODES} | rows
    head = "| environment | learnt in | shown | mean of 100 |\n|---|---|---|---|\n"
    body = "".join(f"{known[name]}\n" for name in EPISODES if name in known)
    return f"{before}{BEGIN}{head}{body}{END}{after}"


def draw_frames(frames: list[Any], path: Path) -> None:
    """Some of the frames side by side."""
    shown = np.unique(np.linspace(0, len(frames) - 1, FRAMES).round().astype(int))
    columns = 3
    rows = -(-len(shown) // columns)
    height, width = frames[0].shape[:2]
    figure, grid = plt.subplots(
        rows, columns, figsize=(9, 9 / columns * height / width * rows + 0.3 * rows), squeeze=False
    )
    for axes in grid.flat:
        axes.set_axis_off()
    for axes, step in zip(grid.flat, shown, strict=False):
        axes.imshow(frames[step])
        axes.set_title("start" if step == 0 else f"after {step} {'step' if step == 1 else 'steps'}", fontsize=10)
    figure.savefig(path, dpi=80, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "figures")
    parser.add_argument("--page", type=Path, default=Path(__file__).parent / "gallery.md")
    parser.add_argument("--only", choices=EPISODES, nargs="+")
    given = parser.parse_args()
    plt.rcParams["figure.constrained_layout.use"] = True
    drawn = {each: draw(each, given.out) for each in given.only or EPISODES}
    given.page.write_text(with_rows(given.page.read_text(encoding="utf-8"), drawn), encoding="utf-8")
