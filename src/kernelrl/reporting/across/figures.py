"""The figures across problems for papers and printers, drawn with matplotlib."""

from __future__ import annotations

import math
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from kernelrl.reporting.across.overview import REACH, Overview
from kernelrl.reporting.across.sentences import geometric_mean, number, percent
from kernelrl.reporting.across.statistics import Estimate
from kernelrl.reporting.drawing import STYLE
from kernelrl.reporting.figures import legend, plain
from kernelrl.reporting.statistics import Floats
from kernelrl.reporting.style import ink_on, line_of

__all__ = ["MARKS", "draw_overview", "label_with_problems", "shade"]

BLUES, DARKEST = matplotlib.colormaps["Blues"], 1.15
MARKS = {"best": " ★", "close": " ≈", "worse": "", "": ""}


def draw_overview(overview: Overview) -> dict[str, Figure]:
    """All figures by name."""
    with matplotlib.rc_context(STYLE):
        figures = {
            "problems": draw_problems(overview),
            "means": draw_means(overview),
            "profiles": draw_profiles(overview),
            "efficiency": draw_efficiency(overview),
            "time": draw_time(overview),
        }
        if improvements := draw_improvements(overview):
            figures["improvement"] = improvements
    return figures


def label_with_problems(overview: Overview, label: str) -> str:
    """A label, with the number of its problems where it does not have all."""
    count, m = len(overview.problems_of(label)), len(overview.problems)
    return label if count == m else f"{label} ({count} of {m} problems)"


def shade(value: float) -> float:
    """How dark a cell of the table is, from 0 to 1: a fraction of the ceiling, cut to this range."""
    return 0.0 if math.isnan(value) else min(1.0, max(0.0, value))


# -------------------------------------------------------------------------------------------------------- points


def rows_axes(rows: int, per_row: float = 0.3) -> tuple[Figure, Axes]:
    """A figure with one row per agent, the first on top."""
    figure = Figure(figsize=(6.4, 0.75 + per_row * rows), layout="constrained")
    axes = figure.subplots()
    axes.set_ylim(rows - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    return figure, axes


def draw_point(axes: Axes, row: int, index: int, estimate: Estimate) -> None:
    """A number and its interval."""
    style = line_of(index)
    if not math.isnan(estimate.low):
        axes.plot([estimate.low, estimate.high], [row, row], color=style.colour, linewidth=5, alpha=0.35)
    axes.plot([estimate.value], [row], color=style.colour, marker=style.marker, markersize=6, linestyle="none")
    right = estimate.value if math.isnan(estimate.high) else estimate.high
    axes.annotate(
        number(estimate.value), (right, row), xytext=(6, 0), textcoords="offset points", va="center", fontsize=8
    )


def draw_means(overview: Overview) -> Figure:
    """Interquartile means with their intervals."""
    figure, axes = rows_axes(len(overview.labels))
    for i, label in enumerate(overview.labels):
        draw_point(axes, i, i, overview.means[label])
    names = [plain(label_with_problems(overview, label)) for label in overview.labels]
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(left=min(0.0, axes.get_xlim()[0]), right=max(1.02, axes.get_xlim()[1]))
    axes.set_xlabel("interquartile mean of the fraction of the ceiling")
    return figure


def draw_improvements(overview: Overview) -> Figure | None:
    """The probability that a run of the reference is better than one of each other agent."""
    first = overview.reference
    rows = [label for label in overview.labels if (first, label) in overview.improvements]
    if not rows:
        return None
    figure, axes = rows_axes(len(rows))
    axes.axvline(0.5, color="#444444", linewidth=1, linestyle="--")
    for row, label in enumerate(rows):
        draw_point(axes, row, overview.labels.index(label), overview.improvements[first, label].probability)
    axes.set_yticks(range(len(rows)), [plain(label) for label in rows])
    axes.set_xlim(-0.02, 1.09)
    axes.set_xticks(np.linspace(0, 1, 5))
    axes.set_xlabel(f"probability that a run of {plain(first)}\nis better than one of the agent on the left")
    return figure


def draw_time(overview: Overview) -> Figure:
    """Seconds of learning: one dot per problem, and the geometric mean."""
    figure, axes = rows_axes(len(overview.labels))
    for i, label in enumerate(overview.labels):
        style = line_of(i)
        times = [overview.cells[p.label, label].seconds for p in overview.problems_of(label)]
        times = [seconds for seconds in times if seconds > 0]
        if times:
            axes.plot(times, [i] * len(times), "o", color=style.colour, markersize=4.5, alpha=0.5, markeredgewidth=0)
            axes.plot([geometric_mean(times)], [i], "|", color=style.colour, markersize=15, markeredgewidth=2.5)
    axes.set_yticks(range(len(overview.labels)), [plain(label) for label in overview.labels])
    logarithmic(axes)
    axes.set_xlabel("seconds of learning for 1,000 episodes; dots: problems, bars: geometric means")
    return figure


def logarithmic(axes: Axes) -> None:
    """A logarithmic x axis with plain numbers; also at 2 and 5 where it has less than two powers of ten."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


# -------------------------------------------------------------------------------------------------------- curves


def draw_band(axes: Axes, index: int, label: str, x: Floats, curve: Estimate, steps: str | None = None) -> None:
    """A curve and its pointwise interval; `steps` is matplotlib's name of how it jumps."""
    style = line_of(index)
    jumps: dict[str, Any] = {"drawstyle": f"steps-{steps}"} if steps else {}
    axes.plot(
        x, curve.value, color=style.colour, linestyle=style.pattern, linewidth=1.6, label=label, marker=style.marker,
        markersize=4.5, markevery=(0.03 + 0.02 * (index % 5), 0.14), **jumps,
    )  # fmt: skip
    if not np.isnan(curve.low).any():
        axes.fill_between(x, curve.low, curve.high, color=style.colour, alpha=0.15, linewidth=0, step=steps)  # type: ignore[arg-type]


def draw_profiles(overview: Overview) -> Figure:
    """Performance profiles."""
    figure = Figure(figsize=(6.4, 3.3), layout="constrained")
    axes = figure.subplots()
    for i, label in enumerate(overview.labels):
        name = plain(label_with_problems(overview, label))
        draw_band(axes, i, name, overview.thresholds, overview.profiles[label], "post")
    axes.set(xlabel="threshold τ, a fraction of the ceiling", ylabel="share of runs above τ", ylim=(-0.02, 1.02))
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    axes.margins(x=0.01)
    legend(figure, axes)
    return figure


def draw_efficiency(overview: Overview) -> Figure:
    """Recent fractions against the share of episodes; the share of runs that reached the level against episodes."""
    figure = Figure(figsize=(6.4, 2.7), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, label in enumerate(overview.labels):
        name = plain(label_with_problems(overview, label))
        draw_band(left, i, name, overview.shares, overview.learning[label])
        draw_band(right, i, name, overview.episodes, overview.reached[label], "post")
    left.set(xlabel="share of each problem's episodes", ylabel="fraction of the ceiling, IQM")
    left.set_ylim(min(0.0, left.get_ylim()[0]), max(1.02, left.get_ylim()[1]))
    left.xaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    logarithmic(right)
    right.set(xlabel="episodes", ylabel=f"runs that reached {percent(REACH)}")
    right.set_ylim(-0.02, 1.02)
    right.yaxis.set_major_formatter(PercentFormatter(1.0, symbol=" %"))
    legend(figure, left)
    return figure


# -------------------------------------------------------------------------------------------------------- the table


def draw_problems(overview: Overview) -> Figure:
    """Problems × agents: mean fractions of the ceiling, darker where they are higher."""
    rows, columns = len(overview.problems), len(overview.labels)
    width = max(6.4, 1.6 + 0.85 * columns)
    figure = Figure(figsize=(width, 1.15 + 0.3 * rows), layout="constrained")
    axes = figure.subplots()
    values = np.full((rows, columns), np.nan)
    for r, problem in enumerate(overview.problems):
        for c, label in enumerate(overview.labels):
            cell = overview.cells.get((problem.label, label))
            if cell is None:
                axes.text(c, r, "–", ha="center", va="center", color="#57606a")
                continue
            values[r, c] = shade(cell.score.mean)
            text = f"{number(cell.score.mean)}{MARKS[cell.place]}"
            axes.text(
                c, r, text, ha="center", va="center", fontsize=8.5,
                color=ink_on(BLUES(values[r, c] / DARKEST)),
                weight="bold" if cell.place == "best" else "normal",
            )  # fmt: skip
    axes.imshow(values, cmap=BLUES, vmin=0, vmax=DARKEST, aspect="auto")
    slanted = columns > 4 or max(map(len, overview.labels)) > 14
    axes.set_xticks(
        range(columns), [plain(label) for label in overview.labels],
        rotation=25 if slanted else 0, ha="left" if slanted else "center",
    )  # fmt: skip
    axes.set_yticks(range(rows), [plain(problem.label) for problem in overview.problems])
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.grid(False)
    axes.set_xlabel("fraction of the ceiling; ★ best, ≈ not significantly worse", fontsize=8)
    return figure
