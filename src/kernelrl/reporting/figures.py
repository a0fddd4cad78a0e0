"""The figures for papers and printers, drawn with matplotlib (see `drawing` for the files)."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from kernelrl.envs.motion import Motion
from kernelrl.reporting.actions import action_colours, action_names, action_signs, for_legend, inks
from kernelrl.reporting.certified import Intervals, draw_certified
from kernelrl.reporting.drawing import STYLE
from kernelrl.reporting.maps import Leaves, Maps, Plane, possible
from kernelrl.reporting.statistics import (
    Floats,
    geometric_mean_with_interval,
    mean_with_interval,
    regret,
    smoothed,
    thinned,
)
from kernelrl.reporting.style import OPTIMUM, line_of
from kernelrl.reporting.summary import Curves, Summary

__all__ = ["draw_all", "plain", "times_shown"]

POINTS = 400  # of a curve
MOST_STARTS = 20  # that are marked


def plain(label: str) -> str:
    """A label in a form that matplotlib shows unchanged: not as mathematics, and not hidden from the legend."""
    label = label.replace("\\", "\\\\").replace("$", r"\$")
    return f" {label}" if label.startswith("_") else label


def draw_all(summary: Summary) -> dict[str, Figure]:
    """All figures by name."""
    with matplotlib.rc_context(STYLE):
        figures = {}
        if isinstance(summary.motion, Motion) and summary.motion.low.shape[1] == 2:
            figures["environment"] = draw_environment(summary.motion)
        figures["total-reward"] = draw_total_reward(summary)
        if summary.optimal is not None:
            figures["regret"] = draw_regret(summary)
        figures["return"] = draw_return(summary)
        figures["time"] = draw_time(summary)
        if any(isinstance(part, Intervals) for part in summary.certified.values()):
            figures["certified"], axes = new_axes()
            draw_certified(figures["certified"], axes, summary, plain)
            legend(figures["certified"], axes)
        if summary.plane is not None:
            for maps in summary.maps:
                figures[maps.file] = draw_maps(summary, summary.plane, maps)
    return figures


# -------------------------------------------------------------------------------------------------------- environment


def draw_environment(motion: Motion) -> Figure:
    """The rooms, the reward of a state under its best action, and where episodes start."""
    low, high = motion.low.min(axis=0), motion.high.max(axis=0)
    width, height = high - low
    figure = Figure(figsize=(6.4, min(6.4, 0.6 + 5.1 * height / width)), layout="constrained")
    axes = figure.subplots()
    x, y = (np.linspace(low[j], high[j], 400) for j in range(2))
    states = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    reward = np.max([motion.reward(states, a) for a in range(len(motion.actions))], axis=0)
    reward = np.where(possible(motion, states), reward, np.nan).reshape(400, 400)
    extent = (low[0], high[0], low[1], high[1])
    picture = axes.imshow(reward, origin="lower", extent=extent, cmap="Oranges", aspect="equal", zorder=1)
    axes.add_patch(Rectangle((low[0], low[1]), width, height, color="#555555", zorder=0))
    clip = [
        Rectangle(tuple(a), *(b - a), transform=axes.transData) for a, b in zip(motion.low, motion.high, strict=True)
    ]
    picture.set_clip_path(union(clip), axes.transData)
    for a, b in zip(motion.low, motion.high, strict=True):
        axes.add_patch(
            Rectangle(tuple(a), *(b - a), fill=False, edgecolor="black", linewidth=1.5, zorder=3, clip_on=False)
        )
    starts = motion.starts if len(motion.starts) <= MOST_STARTS else motion.starts[:0]
    axes.plot(*starts.T, "o", color="#0072B2", markersize=7, markeredgecolor="white", zorder=4)
    for start in starts:
        axes.annotate("start", start, xytext=(6, 3), textcoords="offset points", zorder=4)
    figure.colorbar(picture, cax=beside(axes), label="reward")
    axes.grid(False)
    axes.set(xlabel="$x_1$", ylabel="$x_2$", xlim=extent[:2], ylim=extent[2:])
    return figure


def beside(axes: Axes) -> Axes:
    """A place for a colour bar, as high as the picture."""
    return axes.inset_axes((1.03, 0.0, 0.035, 1.0))


def union(rectangles: list[Rectangle]) -> Any:
    """One path around all of them."""
    from matplotlib.path import Path as Outline

    return Outline.make_compound_path(*(r.get_path().transformed(r.get_patch_transform()) for r in rectangles))


# ------------------------------------------------------------------------------------------------------------- curves


def draw_curve(axes: Axes, index: int, label: str, k: Any, curves: Floats, low_limit: float, of: Any) -> None:
    """A label's mean over seeds and its interval, by the function `of` `curves` (n, len(k)) at episodes `k`."""
    style = line_of(index)
    mean, low, high = of(curves)
    axes.plot(
        k, mean, color=style.colour, linestyle=style.pattern, linewidth=1.6, label=label, marker=style.marker,
        markersize=4.5, markevery=(0.03 + 0.02 * (index % 5), 0.14),
    )  # fmt: skip
    if len(curves) > 1:
        axes.fill_between(k, np.maximum(low, low_limit), high, color=style.colour, alpha=0.18, linewidth=0)


def draw_labels(
    axes: Axes, curves: list[Curves], what: Any, low_limit: float = -np.inf, names: Any = MappingProxyType({}),
    of: Any = mean_with_interval,
) -> None:  # fmt: skip
    """The curves `what(c)` (n, K) of all labels against the number of episodes; `names` are their names."""
    for c in curves:
        at = thinned(c.episodes, POINTS)
        draw_curve(axes, c.place, names.get(c.label, plain(c.label)), at + 1, what(c)[:, at], low_limit, of)
    axes.set_xlabel("episodes")
    axes.margins(x=0.01)


def new_axes(panels: int = 1) -> tuple[Figure, Any]:
    """A figure of a paper's width."""
    figure = Figure(figsize=(6.4, 3.3) if panels == 1 else (6.4, 2.6), layout="constrained")
    return figure, figure.subplots(1, panels)


def legend(figure: Figure, axes: Axes) -> None:
    """One legend above all panels."""
    handles, labels = axes.get_legend_handles_labels()
    longest = max(len(re.sub(r"\$.*", "xxxxxx", label)) for label in labels)
    columns = max(1, min(3, 90 // (longest + 8)))
    figure.set_figheight(figure.get_figheight() + 0.2 * -(-len(labels) // columns))
    figure.legend(handles, labels, loc="outside upper center", ncols=columns, handlelength=3.2)


def draw_total_reward(summary: Summary) -> Figure:
    """Total reward against episodes, as in the paper."""
    figure, axes = new_axes()
    draw_labels(axes, summary.curves, lambda c: c.returns.cumsum(axis=1))
    if summary.optimal is not None:
        K = max(c.episodes for c in summary.curves)
        axes.plot([0, K], [0, K * summary.optimal.start_value], color=OPTIMUM, linewidth=1, label="optimal policy")
    axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    axes.set_ylabel("total reward")
    legend(figure, axes)
    return figure


def draw_regret(summary: Summary) -> Figure:
    """Regret on linear and on logarithmic axes."""
    figure, (linear, logarithmic) = new_axes(2)
    best = summary.optimal.start_value if summary.optimal else np.nan
    for axes, limit in ((linear, -np.inf), (logarithmic, 1e-3)):
        draw_labels(axes, summary.curves, lambda c: regret(c.returns, best), limit, with_exponents(summary))
        axes.set_ylabel("regret")
    linear.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    logarithmic.set(xscale="log", yscale="log")
    legend(figure, linear)
    return figure


def with_exponents(summary: Summary) -> dict[str, str]:
    """Labels with the exponents that were fitted to their regret."""
    known = {label: e for label, (e, *_) in summary.exponents.items() if not np.isnan(e)}
    return {label: rf"{plain(label)} $\propto k^{{{e:.2f}}}$" for label, e in known.items()}


def draw_return(summary: Summary) -> Figure:
    """Return per episode, smoothed."""
    figure, axes = new_axes()
    window = window_of(summary)
    draw_labels(axes, summary.curves, lambda c: smoothed(c.returns, window))
    if summary.optimal is not None:
        axes.axhline(summary.optimal.start_value, color=OPTIMUM, linewidth=1, label="optimal policy")
    axes.set_ylabel(f"return, mean of the last {window:,} episodes" if window > 1 else "return")
    legend(figure, axes)
    return figure


def window_of(summary: Summary) -> int:
    """How many episodes a return is smoothed over: a fiftieth of them."""
    return max(1, max(c.episodes for c in summary.curves) // 50)


def times_shown(summary: Summary) -> tuple[float, float]:
    """The ends of an axis of learning times: around those of all runs. Intervals of few seeds may go beyond."""
    least = [c.seconds[c.seconds > 0].min(initial=np.inf) for c in summary.curves]
    low, high = min(least), max(c.seconds.max() for c in summary.curves)
    return (float(low) / 2, 2 * float(high)) if low <= high else (1e-3, 1.0)


def draw_time(summary: Summary) -> Figure:
    """Learning time against episodes."""
    figure, axes = new_axes()
    draw_labels(axes, summary.curves, lambda c: c.seconds, of=geometric_mean_with_interval)
    axes.set(yscale="log", ylabel="seconds of learning", ylim=times_shown(summary))
    legend(figure, axes)
    return figure


# --------------------------------------------------------------------------------------------------------------- maps

TITLES = {
    "value": "optimistic value", "count": "generalized count, all actions", "bonus": "bonus of the best action",
    "policy": "deployed policy",
}  # fmt: skip


def draw_maps(summary: Summary, plane: Plane, maps: Maps) -> Figure:
    """A label's maps at the first step after its last episode."""
    panels = [*maps.fields, *(["partition"] if maps.leaves else [])]
    rows = (len(panels) + 1) // 2
    ratio = (plane.high[1] - plane.low[1]) / (plane.high[0] - plane.low[0]) if plane.equal else 0.75
    figure = Figure(figsize=(7.2, 0.4 + (0.55 + 2.7 * ratio) * rows), layout="constrained")
    grid = figure.subplots(rows, 2, squeeze=False)
    for axes in grid.ravel()[len(panels) :]:
        axes.set_axis_off()
    for axes, name in zip(grid.ravel(), panels, strict=False):
        axes.grid(False)
        axes.set(xlim=(plane.low[0], plane.high[0]), ylim=(plane.low[1], plane.high[1]))
        axes.set_aspect("equal" if plane.equal else "auto")
        axes.set(xlabel="$x_1$", ylabel="$x_2$")
        if name == "partition":
            leaves, action = maps.leaves[len(maps.episodes) - 1, 0, 0], action_names(summary, maps.actions)[0]
            draw_partition(figure, axes, leaves, action, maps.highest_q)
        else:
            draw_map(figure, axes, plane, name, maps.fields[name][-1, 0], maps, action_names(summary, maps.actions))
    figure.suptitle(
        f"{plain(maps.label)}, seed {maps.seed}: step 0 of 0 … {maps.horizon - 1} after {maps.episodes[-1]:,} episodes"
    )
    return figure


def draw_map(
    figure: Figure, axes: Axes, plane: Plane, name: str, field: Floats, maps: Maps, actions: list[str]
) -> None:
    """One map (h, w)."""
    norm: Any
    colours: Any = "cividis"
    if name == "policy":
        norm, colours = Normalize(-0.5, maps.actions - 0.5), ListedColormap(action_colours(maps.actions))
    elif name == "value":
        norm = Normalize(*maps.value_range)
    else:
        positive = maps.fields[name][maps.fields[name] > 0]
        norm = (
            LogNorm(positive.min(), max(positive.max(), 1.001 * positive.min())) if positive.size else Normalize(0, 1)
        )
    mesh = axes.pcolormesh(plane.x, plane.y, field, norm=norm, cmap=colours, shading="nearest", rasterized=True)
    axes.set_title(TITLES[name])
    if name == "policy":
        signs = action_signs(actions) or [""] * len(actions)
        entries = zip(signs, actions, action_colours(maps.actions), strict=False)
        patches = [Patch(color=c, label=plain(f"{sign} {name}".strip())) for sign, name, c in entries]
        draw_signs(axes, plane, field, signs)
        axes.legend(handles=for_legend(patches), loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=1)
    else:
        figure.colorbar(mesh, cax=beside(axes), label={"value": "V", "count": "C", "bonus": "B"}[name])


def draw_signs(axes: Axes, plane: Plane, field: Floats, signs: list[str]) -> None:
    """The signs of the actions at some of the cells: nobody needs to tell colours apart."""
    every = max(1, len(plane.x) // 10)
    colours = inks(action_colours(len(signs)))
    for j in range(every // 2, len(plane.y), every):
        for i in range(every // 2, len(plane.x), every):
            if not np.isnan(field[j, i]) and (sign := signs[int(field[j, i])]):
                ink = colours[int(field[j, i])]
                axes.text(plane.x[i], plane.y[j], sign, color=ink, fontsize=7, ha="center", va="center", clip_on=True)


def draw_partition(figure: Figure, axes: Axes, leaves: Leaves, action: str, highest: float) -> None:
    """The leaves of one action, coloured by Q from 0 to `highest`."""
    from matplotlib.collections import PatchCollection

    boxes = [Rectangle(tuple(low), *(high - low)) for low, high in zip(leaves.low, leaves.high, strict=True)]
    collection = PatchCollection(boxes, cmap="cividis", edgecolor="white", linewidth=0.3)
    collection.set_array(leaves.q)
    collection.set_clim(0, highest)
    axes.add_collection(collection)
    axes.set_title(f"partition, Q of {plain(action)}")
    figure.colorbar(collection, cax=beside(axes), label="Q")
