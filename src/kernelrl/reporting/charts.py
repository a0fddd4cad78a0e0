"""What the page draws with plotly.js: curves as its traces and layouts, maps as arrays that the page's script reads.

Arrays are base64 of little-endian numbers, which plotly.js (`bdata`) and the page's script can read. Maps have 16 bits
per entry: 0 … 65534 for the range from `low` to `high`, 65535 where there is no state.
"""

from __future__ import annotations

import base64
import html
import math
from typing import Any

import numpy as np

from kernelrl.reporting.actions import action_colours, action_names, action_signs, inks
from kernelrl.reporting.certified import Intervals, certified_chart
from kernelrl.reporting.figures import times_shown, window_of
from kernelrl.reporting.maps import Maps, Plane
from kernelrl.reporting.statistics import (
    Floats,
    geometric_mean_with_interval,
    mean_with_interval,
    regret,
    smoothed,
    thinned,
)
from kernelrl.reporting.style import OPTIMUM, line_of
from kernelrl.reporting.summary import Summary

__all__ = ["curve_charts", "map_data"]

POINTS = 1000  # of a curve
NOTHING = 65535
LOG = {"type": "log", "dtick": 1, "tickfont": {"size": 10.4}}  # plotly.js draws powers of ten a quarter larger


def numbers(values: Any, dtype: str = "<f4") -> dict[str, str]:
    """An array as plotly.js reads it."""
    array = np.ascontiguousarray(values, dtype)
    return {"dtype": dtype.lstrip("<"), "bdata": base64.b64encode(array.tobytes()).decode()}


def traces_of(
    summary: Summary, what: Any, above: float = -np.inf, of: Any = mean_with_interval
) -> list[dict[str, Any]]:
    """Mean and interval, by `of`, of `what(c)` (n, K) of every label; on a logarithmic axis only what is `above` 0."""
    traces = []
    for c in summary.curves:
        i, at, style = c.place, thinned(c.episodes, POINTS), line_of(c.place)
        mean, low, high = (np.where(curve > above, curve, np.nan) for curve in of(what(c)[:, at]))
        if above > -np.inf:  # a band that reaches below 0 ends at the lower edge, without a gap
            low = np.where(np.isnan(low), np.nanmin(mean) / 10 if np.isfinite(mean).any() else np.nan, low)
        name, x = html.escape(c.label), numbers(at + 1, "<i4")
        shared = {"x": x, "legendgroup": str(i), "type": "scatter", "mode": "lines"}
        if len(c.seeds) > 1:
            band = {**shared, "hoverinfo": "skip", "showlegend": False, "line": {"width": 0, "color": style.colour}}
            traces.append({**band, "y": numbers(low)})
            traces.append({**band, "y": numbers(high), "fill": "tonexty", "fillcolor": f"{style.colour}30"})
        traces.append(
            {
                **shared,
                "y": numbers(mean),
                "name": name,
                "line": {"color": style.colour, "dash": style.dash, "width": 2},
            }
        )
    return traces


def optimum(x: list[float], y: list[float]) -> dict[str, Any]:
    """The line of the optimal policy."""
    return {
        "x": x, "y": y, "type": "scatter", "mode": "lines", "name": "optimal policy", "legendgroup": "optimal",
        "line": {"color": OPTIMUM, "width": 1},
    }  # fmt: skip


def chart(traces: list[dict[str, Any]], x: dict[str, Any], y: dict[str, Any]) -> dict[str, Any]:
    """Traces with a layout; `x` and `y` are the axes."""
    axis = {"gridcolor": "#e6e6e6", "linecolor": "#444444", "ticks": "outside", "zeroline": False, "automargin": True}
    layout = {
        "xaxis": {**axis, **written(x), "hoverformat": ",d", "title": {"text": "episodes"}, **x},
        "yaxis": {**axis, **written(y), "hoverformat": ",.4~g", **y},
        "showlegend": False,  # the page has its own legend, outside the chart
        "hovermode": "x unified",
    }
    return {"data": traces, "layout": layout}


def written(axis: dict[str, Any]) -> dict[str, Any]:
    """How an axis writes its numbers: 2,000 and never 2×10³, but 10³ on a logarithmic axis."""
    if axis.get("type") == "log":
        return {"exponentformat": "power", "showexponent": "all", "minexponent": 2}
    return {"exponentformat": "none", "separatethousands": True}


def curve_charts(summary: Summary) -> dict[str, Any]:
    """The charts of curves by name."""
    K, window = max(c.episodes for c in summary.curves), window_of(summary)
    best = None if summary.optimal is None else summary.optimal.start_value
    total = traces_of(summary, lambda c: c.returns.cumsum(axis=1))
    recent = traces_of(summary, lambda c: smoothed(c.returns, window))
    charts = {}
    if best is not None:
        total.append(optimum([0, K], [0, K * best]))
        recent.append(optimum([1, K], [best, best]))
        curves = traces_of(summary, lambda c: regret(c.returns, best))
        positive = traces_of(summary, lambda c: regret(c.returns, best), above=0.0)
        charts["regret"] = chart(curves, {}, {"title": {"text": "regret"}})
        charts["regret-log"] = chart(positive, LOG, {**LOG, "title": {"text": "regret"}})
    charts["total-reward"] = chart(total, {}, {"title": {"text": "total reward"}})
    charts["return"] = chart(recent, {}, {"title": {"text": "return"}})
    time = traces_of(summary, lambda c: c.seconds, of=geometric_mean_with_interval)
    ends = [math.log10(end) for end in times_shown(summary)]
    charts["time"] = chart(time, {}, {**LOG, "range": ends, "title": {"text": "seconds of learning"}})
    if any(isinstance(part, Intervals) for part in summary.certified.values()):
        charts["certified"] = chart(*certified_chart(summary))
    return charts


# --------------------------------------------------------------------------------------------------------------- maps


def packed(values: Floats, low: float, high: float) -> dict[str, Any]:
    """Numbers as 16 bits between `low` and `high`."""
    scaled = np.clip((values - low) / max(high - low, 1e-12), 0, 1) * (NOTHING - 1)
    whole = np.where(np.isnan(values), NOTHING, np.nan_to_num(scaled).round())
    return {**numbers(whole, "<u2"), "low": low, "high": high}


def packed_field(name: str, values: Floats, maps: Maps) -> dict[str, Any]:
    """One of an agent's fields; counts and bonuses by their logarithms."""
    if name == "policy":
        return packed(values, 0, NOTHING - 1)
    if name == "value":
        return packed(values, *maps.value_range)
    with np.errstate(divide="ignore"):
        logarithms = np.log10(values)
    finite = logarithms[np.isfinite(logarithms)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    return packed(np.where(np.isneginf(logarithms), low, logarithms), low, max(high, low + 1e-6))


def packed_leaves(maps: Maps, plane: Plane) -> dict[str, Any]:
    """The leaves of all partitions in one array (n, 5) of low, high and Q, and where each partition ends."""
    rows: list[Floats] = []
    ends: list[int] = []
    top = maps.highest_q
    for e in range(len(maps.episodes)):
        for s in range(len(maps.steps)):
            for a in range(maps.actions):
                leaves = maps.leaves[e, s, a]
                size = plane.high - plane.low
                box = np.column_stack([(leaves.low - plane.low) / size, (leaves.high - plane.low) / size])
                rows.append(np.column_stack([box, np.clip(leaves.q / top, 0, 1)]))
                ends.append((ends[-1] if ends else 0) + len(leaves.q))
    return {**packed(np.concatenate(rows), 0, 1), "ends": ends, "top": top}


def map_data(summary: Summary) -> dict[str, Any] | None:
    """Everything that the maps' script needs; None if there are no maps."""
    labels, plane = [], summary.plane
    if plane is None or not summary.maps:
        return None
    for entry in summary.maps:
        fields = {name: packed_field(name, values, entry) for name, values in entry.fields.items()}
        labels.append(
            {
                "label": entry.label, "seed": entry.seed, "horizon": entry.horizon, "episodes": entry.episodes,
                "steps": entry.steps, "fields": fields, "actions": entry.actions,
                "leaves": packed_leaves(entry, plane) if entry.leaves else None,
            }
        )  # fmt: skip
    actions = max(entry.actions for entry in summary.maps)
    names, colours = action_names(summary, actions), action_colours(actions)
    return {
        "x": plane.x.tolist(), "y": plane.y.tolist(), "low": plane.low.tolist(), "high": plane.high.tolist(),
        "equal": plane.equal, "actions": names,
        "colours": colours, "inks": inks(colours), "signs": action_signs(names), "labels": labels,
    }  # fmt: skip
