"""Certified bounds in a report: how they tighten with episodes, where the experiment declares a model.

They are those of one run of each label, at the state in which its first episode began. They are computed again from the
first 1/16, 1/8, … of the episodes, with cells that are larger than the usual ones unless the model says how large: a
report should not take long.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from kernelrl.reporting.document import marked, picture
from kernelrl.reporting.statistics import Floats
from kernelrl.reporting.style import OPTIMUM, line_of

if TYPE_CHECKING:
    from kernelrl.reporting.summary import Curves, Summary

__all__ = ["Intervals", "certified_chart", "certified_section", "draw_certified", "read_intervals"]

HALVINGS = 4
CELL = 0.01  # takes a quarter of the time of 0.005


@dataclass(frozen=True)
class Intervals:
    """Bounds on V* at a start state after several numbers of episodes."""

    seed: int
    state: Floats  # (d,)
    episodes: list[int]
    lower: Floats  # (points,)
    upper: Floats
    possible: tuple[float, float]  # the lowest and the highest value of any policy
    delta: float
    cell: float
    refined: bool
    contradicted: str  # what in the data contradicts the declaration, or nothing


def read_intervals(run: Any, agent: Any, table: dict[str, Any]) -> Intervals | str:
    """The bounds of a run, from the experiment's `table` of its model; a text says why there are none."""
    from kernelrl.experiments.certifying import first_episodes, logged_in
    from kernelrl.experiments.declared import declared
    from kernelrl.experiments.entries import ModelEntry

    try:
        logged = logged_in(run, agent)
        model = declared(ModelEntry.model_validate(table), "model")
        state, K = logged.rows.states[0], logged.episodes
        marks = sorted({max(1, K >> i) for i in range(HALVINGS + 1)})
        found = [first_episodes(logged, k).certify(model, usual=CELL, progress=False) for k in marks]
        bounds = np.array([made.at(state[None], 0) for made in found])[:, :, 0]
    except (TypeError, ValueError, MemoryError, IndexError) as error:
        return str(error)
    last = found[-1]
    H, (low, high) = last.spaces.horizon, last.reward_range
    return Intervals(
        run.seed, state, marks, bounds[:, 0], bounds[:, 1], (low * H, high * H), last.delta, model.cell or CELL,
        last.refined, last.check_declaration().reason,
    )  # fmt: skip


def shown(summary: Summary) -> list[tuple[Curves, Intervals]]:
    """The labels with bounds."""
    found = ((c, summary.certified.get(c.label)) for c in summary.curves)
    return [(c, part) for c, part in found if isinstance(part, Intervals)]


def optimal_at(summary: Summary, part: Intervals) -> float | None:
    """V* at the state of these bounds, if it is known."""
    return None if summary.optimal is None else float(summary.optimal.values(part.state[None], 0)[0])


def ticks_of(summary: Summary) -> list[int]:
    """The numbers of episodes of the label with most of them."""
    return max((part.episodes for _, part in shown(summary)), key=lambda marks: marks[-1])


# --------------------------------------------------------------------------------------------------------- the figures


def draw_certified(figure: Figure, axes: Any, summary: Summary, name: Any) -> None:
    """The bounds of each label against episodes, and V*; `name` makes a label fit for matplotlib."""
    for c, part in shown(summary):
        style = line_of(c.place)
        line = {"color": style.colour, "linestyle": style.pattern, "marker": style.marker, "markersize": 4.5}
        axes.plot(part.episodes, part.upper, label=name(c.label), linewidth=1.6, **line)
        axes.plot(part.episodes, part.lower, linewidth=1.6, **line)
        axes.fill_between(part.episodes, part.lower, part.upper, color=style.colour, alpha=0.1, linewidth=0)
    first = shown(summary)[0][1]
    best, ticks = optimal_at(summary, first), ticks_of(summary)
    if best is not None:
        axes.axhline(best, color=OPTIMUM, linewidth=1, label="optimal policy")
    axes.set(xscale="log", xlabel="episodes", ylabel="bounds on the optimal value")
    axes.set_xticks(ticks, [f"{k:,}" for k in ticks])
    axes.set_xticks([], minor=True)
    low, high = first.possible
    axes.set_ylim(low - 0.03 * (high - low), high + 0.03 * (high - low))


def certified_chart(summary: Summary) -> tuple[list[dict[str, Any]], dict[str, Any], dict[str, Any]]:
    """The same as traces for plotly.js, with what its axes have."""
    traces = []
    for c, part in shown(summary):
        style, ends = line_of(c.place), {"lower": part.lower, "upper": part.upper}
        for end, values in ends.items():
            fill = {"fill": "tonexty", "fillcolor": f"{style.colour}1a"} if end == "upper" else {}
            traces.append(
                {
                    "x": part.episodes, "y": values.tolist(), "type": "scatter", "mode": "lines+markers",
                    "name": f"{escape(c.label)}, {end}", "legendgroup": str(c.place),
                    "line": {"color": style.colour, "dash": style.dash, "width": 2}, **fill,
                }
            )  # fmt: skip
    first, ticks = shown(summary)[0][1], ticks_of(summary)
    best = optimal_at(summary, first)
    if best is not None:
        traces.append(
            {
                "x": [ticks[0], ticks[-1]], "y": [best, best], "type": "scatter", "mode": "lines",
                "name": "optimal policy", "legendgroup": "optimal", "line": {"color": OPTIMUM, "width": 1},
            }
        )  # fmt: skip
    margin = 0.03 * (first.possible[1] - first.possible[0])
    x = {"type": "log", "tickvals": ticks, "ticktext": [f"{k:,}" for k in ticks]}
    y = {
        "title": {"text": "bounds on the optimal value"},
        "range": [first.possible[0] - margin, first.possible[1] + margin],
    }
    return traces, x, y


# --------------------------------------------------------------------------------------------------------- the section


def certified_section(summary: Summary, files: dict[str, list[Path]], legend: str) -> list[tuple[str, str, str]]:
    """What is seen, the chart, the table, and who has no bounds; nothing if the experiment declares no model."""
    if not summary.certified:
        return []
    parts, left = shown(summary), [(k, v) for k, v in summary.certified.items() if isinstance(v, str)]
    content = "".join(f'<p class="seen">{sentence(summary, c.label, part)}</p>' for c, part in parts)
    if parts:
        alt = "Lower and upper bounds on the optimal value against episodes"
        boxes = '<figure><div class="chart" id="chart-certified"></div></figure>'
        static = picture("static", alt, files["certified"])
        content += f'<div class="whole">{legend}{boxes}{static}<p class="quiet">{caption(parts[0][1])}</p></div>'
        content += table(summary)
    if left:
        reasons = "".join(f"<li>{escape(label)}: {marked(reason)}</li>" for label, reason in left)
        content += f'<p>Without bounds:</p><ul class="plain">{reasons}</ul>'
    return [("certified", "Certified bounds", content)]


def caption(part: Intervals) -> str:
    """How the bounds are made."""
    finer = ", and bounds between their corners are planned, too" if part.refined else ""
    return (
        f"Bounds on the optimal value at the start state {place(part)}, from the transitions of one run of each label "
        f"and the model that the experiment declares. All bounds of a run hold together with probability "
        f"{100 * (1 - part.delta):g}&nbsp;%, if the declaration is true. Cells have sides of {part.cell:g}{finer}; "
        "smaller ones (<code>cell</code> in the model) give tighter bounds and take longer. Bounds on the "
        "optimal value are no bounds on the value of a deployed policy."
    )


def sentence(summary: Summary, label: str, part: Intervals) -> str:
    """What is seen of one label."""
    gaps, (low, high) = part.upper - part.lower, part.possible
    share = [f"{100 * gap / (high - low):.0f}&nbsp;%" for gap in gaps]
    text = (
        f"<b>{escape(label)}</b>: after {part.episodes[-1]:,} episodes the optimal value at {place(part)} is certified "
        f"to lie from {part.lower[-1]:.2f} to {part.upper[-1]:.2f}, {share[-1]} of the range of all values, {low:g} to "
        f"{high:g}"
    )
    if len(gaps) > 1:
        text += f"; after {part.episodes[0]:,} it was {share[0]}"
    best = optimal_at(summary, part)
    if best is not None:
        inside = ((part.lower <= best) & (best <= part.upper)).all()
        text += f". The optimal value itself, {best:.3f}, lies {'inside' if inside else 'NOT inside'} all these bounds"
        text += "" if inside else ": the declaration is probably wrong"
    if part.contradicted:
        text += f". The data contradict the declaration: {marked(part.contradicted)}"
    return f"{text}."


def place(part: Intervals) -> str:
    """The state."""
    return f"({', '.join(f'{c:.3g}' for c in part.state)})"


def table(summary: Summary) -> str:
    """One row for each label and number of episodes."""
    rows = ""
    for c, part in shown(summary):
        best = optimal_at(summary, part)
        for k, low, high in zip(part.episodes, part.lower, part.upper, strict=True):
            value = "–" if best is None else f"{best:.3f}"
            numbers = f"{k:,}", f"{low:.3f}", f"{high:.3f}", f"{high - low:.3f}", value
            cells = "".join(f"<td>{number}</td>" for number in numbers)
            rows += f"<tr><th>{escape(c.label)}, seed {part.seed}</th>{cells}</tr>"
    head = "".join(f"<th>{name}</th>" for name in ("algorithm", "episodes", "lower", "upper", "gap", "V*"))
    return (
        f'<div class="wide"><table id="table-certified"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div>"
    )
