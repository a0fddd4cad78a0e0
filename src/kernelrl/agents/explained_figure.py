"""The figure of an explanation: where the state and the data are, and what each action is worth there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from kernelrl.imports import require

if TYPE_CHECKING:
    from kernelrl.agents.explaining import Explanation

__all__ = ["draw"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")  # Okabe and Ito's
ESTIMATE, BONUS = "#0072B2", "#9CCBE8"
MARKERS = "ov^s<D>"
MOST_LINES = 7


def draw(explanation: Explanation) -> Any:
    """A matplotlib figure."""
    content = explanation.content
    d = len(content["state"])
    if d > 2:
        raise ValueError(f"figure: states have {d} dimensions, and figures are for one or two; print the explanation")
    require("a figure", "matplotlib")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.15, 1.0))
    (draw_line if d == 1 else draw_plane)(left, explanation)
    draw_actions(right, explanation)
    state = ", ".join(f"{s:.4g}" for s in content["state"])
    figure.suptitle(f"{content['agent']} in ({state}) at step {content['step']}", fontsize=11)
    return figure


def label_of(action: dict[str, Any]) -> str:
    """What an action is called."""
    if action["label"]:
        return str(action["label"])
    value = action["action"]
    return ", ".join(f"{a:.3g}" for a in value) if isinstance(value, list) else str(value)


def draw_actions(axes: Any, explanation: Explanation) -> None:
    """For each action the estimate, the bonus up to q, and the value that is deployed."""
    actions, cap = explanation.shown(), explanation.content["cap"]
    places = np.arange(len(actions))
    q = np.array([np.nan if a["q"] is None else a["q"] for a in actions])
    if any(a["bonus"] is not None for a in actions):
        known = np.array([np.nan if a["estimate"] is None else a["estimate"] for a in actions])
        axes.hlines(places, known, q, color=BONUS, lw=7, label="bonus")
        axes.plot(known, places, "o", color=ESTIMATE, ms=6, label="estimate")
    axes.plot(q, places, "|", color=ESTIMATE, ms=13, mew=2.2, label="q")
    worth = np.array([np.nan if a["deployed"] is None else a["deployed"] for a in actions])
    if np.isfinite(worth).any():
        axes.plot(worth, places, "D", color="black", ms=4.5, label="deployed value")
    axes.margins(x=0.08, y=0.12)
    left, right = axes.get_xlim()
    if cap < right + 0.5 * (right - left):  # else the values would be too close together to be told apart
        axes.axvline(cap, color="#555555", lw=0.9, ls="--", label="most possible")
    axes.grid(axis="y", color="#e6e6e6", lw=0.8)
    axes.set_axisbelow(True)
    names = []
    for a in actions:
        marks = "".join(mark for mark, what in (("○", "is_learning"), ("●", "is_deployed")) if a[what])
        names.append(f"{label_of(a)} {marks if a['allowed'] else '(not allowed)'}".strip())
    axes.set_yticks(places, names)
    axes.invert_yaxis()
    axes.set_xlabel("value, in units of reward")
    axes.set_title("actions: ○ learning, ● deployed", fontsize=9)
    axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=5, frameon=False, handlelength=1.0)
    axes.spines[["top", "right"]].set_visible(False)


def draw_line(axes: Any, explanation: Explanation) -> None:
    """States of one dimension: q of the actions along the axis, the data below."""
    content = explanation.content
    x = content["state"][0]
    if explanation.lines is not None:
        states, q = explanation.lines
        discrete = bool((np.diff(states) == 1.0).all())  # numbers of states, with nothing between them
        best = [a for a, action in enumerate(content["actions"]) if action["is_learning"] or action["is_deployed"]]
        shown = range(q.shape[1]) if q.shape[1] <= MOST_LINES else best[:MOST_LINES]
        for i, a in enumerate(shown):
            name = label_of(content["actions"][a])
            values = np.where(np.isfinite(q[:, a]), q[:, a], np.nan)
            style = {"ls": "", "marker": MARKERS[i % len(MARKERS)], "ms": 5, "alpha": 0.8} if discrete else {"lw": 1.4}
            axes.plot(states, values, color=COLOURS[i % len(COLOURS)], label=name, **style)
        axes.legend(fontsize=7.5, title="q of action", title_fontsize=7.5, frameon=False)
    rows = (content["evidence"] or {}).get("nearest", [])
    for row in rows:
        height = 0.02 + 0.1 * strength(row)
        axes.axvline(row["state"][0], ymax=height, color="#555555", lw=1.2)
    axes.axvline(x, color="black", lw=1.0, ls=":")
    axes.set_xlabel("state")
    axes.set_ylabel("q, in units of reward")
    axes.set_title(f"q along the states{'; ticks: nearest data, by weight' if rows else ''}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


def draw_plane(axes: Any, explanation: Explanation) -> None:
    """States of two dimensions: the data around the state, by weight, or its cell."""
    from matplotlib.patches import Rectangle

    content = explanation.content
    evidence = content["evidence"] or {}
    rows, boxes = evidence.get("nearest", []), evidence.get("boxes", [])
    if rows:
        points = np.array([row["state"] for row in rows])
        sizes = [18.0 + 160.0 * strength(row) for row in rows]
        counts = [sum(row["counts"]) if "counts" in row else 1.0 for row in rows]
        drawn = axes.scatter(*points.T, s=sizes, c=counts, cmap="viridis_r", edgecolor="white", lw=0.6, zorder=2)
        if "counts" in rows[0]:
            axes.figure.colorbar(drawn, ax=axes, label="samples", shrink=0.85)
        axes.set_title(f"nearest {evidence['kind']}; area: weight", fontsize=9)
    for box in boxes:
        low, high = np.array(box["low"][:2]), np.array(box["high"][:2])
        axes.add_patch(Rectangle(tuple(low), *(high - low), fill=False, edgecolor=ESTIMATE, lw=1.2, alpha=0.8))
        axes.set_title("the cells that contain the state", fontsize=9)
    axes.plot(*content["state"], "x", color="#D55E00", ms=10, mew=2.2, zorder=3)
    axes.margins(0.15)
    if boxes:
        axes.autoscale_view()
    axes.set_xlabel("state, coordinate 0")
    axes.set_ylabel("coordinate 1")
    axes.spines[["top", "right"]].set_visible(False)


def strength(row: dict[str, Any]) -> float:
    """How much a sample or representative counts, between 0 and 1."""
    return float(row["weight"]) if "weight" in row else float(max(row["weights"]))
