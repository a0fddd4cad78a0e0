"""What the page across problems draws with plotly.js."""

from __future__ import annotations

import html
import math
import textwrap
from typing import Any

import numpy as np

from kernelrl.reporting.across.figures import label_with_problems
from kernelrl.reporting.across.overview import REACH, Overview
from kernelrl.reporting.across.sentences import geometric_mean, number, percent, two_figures
from kernelrl.reporting.across.statistics import Estimate
from kernelrl.reporting.charts import LOG, chart, numbers
from kernelrl.reporting.statistics import Floats
from kernelrl.reporting.style import line_of

__all__ = ["height_of_rows", "overview_charts"]

SYMBOLS = {"o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross",
           "X": "x", "*": "star"}  # fmt: skip
SHARE = {"tickformat": ".0%", "hoverformat": ".0%"}


def overview_charts(overview: Overview) -> dict[str, Any]:
    """The charts by name."""
    return {
        "means": means_chart(overview),
        "profiles": profiles_chart(overview),
        **improvement_chart(overview),
        "learning": learning_chart(overview),
        "reached": reached_chart(overview),
        "time": time_chart(overview),
    }


def height_of_rows(rows: int) -> int:
    """The height in pixels of a chart with one row per agent."""
    return 75 + 36 * rows


def wrapped(label: str) -> str:
    """A label for an axis, in several lines if it is long."""
    return "<br>".join(html.escape(line) for line in textwrap.wrap(label, 18)) or html.escape(label)


def rows_chart(traces: list[dict[str, Any]], names: list[str], x: dict[str, Any]) -> dict[str, Any]:
    """Traces with one row per name, the first on top."""
    y = {
        "tickvals": list(range(len(names))), "ticktext": [wrapped(name) for name in names], "showgrid": False,
        "range": [len(names) - 0.5, -0.5], "ticks": "", "fixedrange": True,
    }  # fmt: skip
    made = chart(traces, {"exponentformat": "none", **x}, y)
    made["layout"] |= {"hovermode": "closest", "margin": {"l": 20, "r": 24, "t": 34, "b": 48}}
    return made


def point(row: int, index: int, name: str, estimate: Estimate) -> dict[str, Any]:
    """A number and its interval."""
    style = line_of(index)
    bars = {"type": "data", "symmetric": False, "thickness": 5, "width": 0, "color": f"{style.colour}60"}
    if not math.isnan(estimate.low):
        bars |= {"array": [estimate.high - estimate.value], "arrayminus": [estimate.value - estimate.low]}
    text = number(estimate.value)
    if not math.isnan(estimate.low):
        text += f" [{number(estimate.low)}, {number(estimate.high)}]"
    return {
        "type": "scatter", "mode": "markers", "x": [estimate.value], "y": [row], "legendgroup": str(index),
        "error_x": bars if "array" in bars else {"visible": False},
        "marker": {"color": style.colour, "symbol": SYMBOLS[style.marker], "size": 10},
        "hovertemplate": f"{html.escape(name)}<br>{text}<extra></extra>",
    }  # fmt: skip


def means_chart(overview: Overview) -> dict[str, Any]:
    """Interquartile means."""
    traces = [point(i, i, label, overview.means[label]) for i, label in enumerate(overview.labels)]
    ends = [end for e in overview.means.values() for end in e if not math.isnan(end)]
    limits = [min(-0.02, min(ends) - 0.05), max(1.02, max(ends) + 0.05)]
    names = [label_with_problems(overview, label) for label in overview.labels]
    return rows_chart(traces, names, {"title": {"text": "interquartile mean"}, "range": limits})


def improvement_chart(overview: Overview) -> dict[str, Any]:
    """The probability that the reference is better; nothing without another agent."""
    first = overview.reference
    rows = [label for label in overview.labels if (first, label) in overview.improvements]
    if not rows:
        return {}
    traces = [
        point(row, overview.labels.index(label), label, overview.improvements[first, label].probability)
        for row, label in enumerate(rows)
    ]
    made = rows_chart(
        traces, rows, {"title": {"text": "probability of improvement"}, "range": [-0.03, 1.03], "dtick": 0.25}
    )
    line = {"color": "#444444", "width": 1, "dash": "dash"}
    made["layout"]["shapes"] = [{"type": "line", "x0": 0.5, "x1": 0.5, "y0": 0, "y1": 1, "yref": "paper", "line": line}]
    return {"improvement": made}


def time_chart(overview: Overview) -> dict[str, Any]:
    """Seconds of learning: one dot per problem, and the geometric mean."""
    traces: list[dict[str, Any]] = []
    for i, label in enumerate(overview.labels):
        colour, problems = line_of(i).colour, overview.problems_of(label)
        times = {p.label: overview.cells[p.label, label].seconds for p in problems}
        times = {name: seconds for name, seconds in times.items() if seconds > 0}
        if not times:
            continue
        shared = {"type": "scatter", "mode": "markers", "legendgroup": str(i)}
        text = [f"{html.escape(name)}: {two_figures(seconds)} s" for name, seconds in times.items()]
        hover = f"{html.escape(label)}<br>%{{text}}<extra></extra>"
        traces.append(
            {
                **shared, "x": list(times.values()), "y": [i] * len(times), "text": text, "hovertemplate": hover,
                "marker": {"color": colour, "size": 8, "opacity": 0.5},
            }
        )  # fmt: skip
        mean = geometric_mean(list(times.values()))
        traces.append(
            {
                **shared, "x": [mean], "y": [i], "text": [f"geometric mean: {two_figures(mean)} s"],
                "hovertemplate": hover,
                "marker": {"symbol": "line-ns-open", "size": 20, "line": {"width": 3}, "color": colour},
            }
        )  # fmt: skip
    title = {"text": "seconds for 1,000 episodes"}
    return rows_chart(traces, overview.labels, {**LOG, "exponentformat": "power", "title": title})


# -------------------------------------------------------------------------------------------------------------- curves


def bands(overview: Overview, x: Floats, curves: dict[str, Estimate], shape: str = "linear") -> list[dict[str, Any]]:
    """A line and a band for each agent."""
    traces: list[dict[str, Any]] = []
    for i, label in enumerate(overview.labels):
        curve, style = curves[label], line_of(i)
        shared = {"x": numbers(x), "legendgroup": str(i), "type": "scatter", "mode": "lines"}
        if not np.isnan(curve.low).any():
            edge = {"width": 0, "color": style.colour, "shape": shape}
            band = {**shared, "hoverinfo": "skip", "showlegend": False, "line": edge}
            traces.append({**band, "y": numbers(curve.low)})
            traces.append({**band, "y": numbers(curve.high), "fill": "tonexty", "fillcolor": f"{style.colour}28"})
        line = {"color": style.colour, "dash": style.dash, "width": 2, "shape": shape}
        traces.append({**shared, "y": numbers(curve.value), "name": html.escape(label), "line": line})
    return traces


def profiles_chart(overview: Overview) -> dict[str, Any]:
    """Performance profiles."""
    traces = bands(overview, overview.thresholds, overview.profiles, "hv")
    x = {"title": {"text": "threshold τ, a fraction of the ceiling"}, "hoverformat": ".2f", "exponentformat": "none"}
    return chart(traces, x, {"title": {"text": "share of runs above τ"}, "range": [-0.02, 1.03], **SHARE})


def learning_chart(overview: Overview) -> dict[str, Any]:
    """Recent fractions against the share of episodes."""
    traces = bands(overview, overview.shares, overview.learning)
    x = {"title": {"text": "share of each problem's episodes"}, **SHARE}
    ends = [end for curve in overview.learning.values() for end in (np.min(curve.value), np.max(curve.value))]
    limits = [min(0.0, min(ends)) - 0.02, max(1.0, max(ends)) + 0.03]
    return chart(traces, x, {"title": {"text": "fraction of the ceiling, IQM"}, "hoverformat": ".2f", "range": limits})


def reached_chart(overview: Overview) -> dict[str, Any]:
    """The share of runs that reached the level against episodes."""
    traces = bands(overview, overview.episodes, overview.reached, "hv")
    y = {"title": {"text": f"runs that reached {percent(REACH)}"}, "range": [-0.02, 1.03], **SHARE}
    narrow = overview.episodes[-1] < 100 * overview.episodes[0]
    ticks = {"dtick": "D2"} if narrow else {}  # 2 and 5 between powers of ten
    return chart(traces, {**LOG, **ticks, "title": {"text": "episodes"}}, y)
