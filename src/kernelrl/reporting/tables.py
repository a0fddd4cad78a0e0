"""The tables of the page, as HTML. Every label and name is escaped here."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Container
from html import escape
from importlib import metadata
from typing import Any

from kernelrl.agents.codec import describe, left_to_agent
from kernelrl.reporting.actions import action_colours, action_names, action_signs, for_legend, inks
from kernelrl.reporting.style import OPTIMUM, line_of
from kernelrl.reporting.summary import COMPARED, MEASURES, Comparison, Measure, Summary

__all__ = ["action_legend", "differences", "exponents", "hyper_parameters", "legend", "optimism", "results", "versions"]

FORMAT = {
    "total reward": "{:,.0f}",
    "regret": "{:,.0f}",
    "fraction of ceiling": "{:.1%}",
    "value of deployed policy": "{:.3f}",
}


def shown(name: str, value: float, size: float) -> str:
    """A number in the format of its column; `size` is the number that determines how many digits are shown."""
    if math.isnan(value):
        return "–"
    size = abs(size)
    if name == "seconds per 1,000 episodes":  # three figures
        text = f"{value:,.{max(0, 2 - math.floor(math.log10(size))) if size > 0 else 0}f}"
    elif name in ("total reward", "regret") and size < 1000:
        text = f"{value:.1f}"
    else:
        text = FORMAT[name].format(value)
    if not text.strip("-0.%"):
        text = text.removeprefix("-")
    return text.replace("%", " %").replace("-", "−")


def results(summary: Summary) -> str:
    """One row per label, one column per measure."""
    names = [name for name in MEASURES if name in summary.measures[summary.curves[0].label]]
    head = "".join(f"<th>{name}</th>" for name in ("algorithm", *names, "seeds", "episodes"))
    rows = ""
    for c in summary.curves:
        cells = "".join(f"<td>{cell(name, summary.measures[c.label][name])}</td>" for name in names)
        rows += (
            f"<tr><th>{key(c.place)}{escape(c.label)}</th>{cells}<td>{len(c.seeds)}</td><td>{c.episodes:,}</td></tr>"
        )
    return (
        f'<div class="wide"><table id="table-results"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    )


def cell(name: str, measure: Measure) -> str:
    """Mean and interval."""
    text = shown(name, measure.mean, measure.mean)
    if not math.isnan(measure.low):
        low, high = (shown(name, end, measure.mean) for end in (measure.low, measure.high))
        text += f'<span class="interval">[{low}, {high}]</span>'
    return text


def key(index: int) -> str:
    """A piece of the label's line."""
    line = line_of(index)
    return stroke(line.colour, 2.5, "" if line.dash == "solid" else line.dash.replace("px", ""))


def stroke(colour: str, width: float, dash: str) -> str:
    """A short line."""
    return (
        '<svg class="key" width="26" height="8" aria-hidden="true"><line x1="0" y1="4" x2="26" y2="4" '
        f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}"/></svg>'
    )


# --------------------------------------------------------------------------------------------------------- differences


def differences(summary: Summary) -> str:
    """For each compared measure a sentence and a table of all pairs."""
    if len(summary.curves) < 2:
        return "<p>There is only one algorithm, so there is nothing to compare.</p>"
    seeds = [c.seeds for c in summary.comparisons]
    tested = sum(not math.isnan(c.p_value) for c in summary.comparisons)
    text = (
        "Labels are compared by their differences seed by seed (paired t test, two-sided, which assumes that the "
        "differences are roughly normal; where all are equal, only by their signs), corrected by Holm's method for the "
        f"{tested} tests of this page: the probability that any of these statements is wrong is at most 5 %. "
    )
    if not tested:
        text = "Differences cannot be told from noise: this needs at least two common seeds of each pair of labels. "
    elif min(seeds) < 5:
        text += f"With {min(seeds)} common seeds only large differences can be detected. "
    out = f"<p>{text}</p>"
    for measure in COMPARED:
        entries = [c for c in summary.comparisons if c.measure == measure and not math.isnan(c.p_value)]
        if entries:
            out += f"<p><b>{measure.capitalize()}:</b> {sentence(entries)}</p>{square(summary, measure)}"
    return out


def sentence(entries: list[Comparison]) -> str:
    """What is beyond noise, in words: for each label those that it is above."""
    above: dict[str, list[str]] = {}
    for c in entries:
        if c.beyond_noise:
            better, worse = (c.first, c.second) if c.difference > 0 else (c.second, c.first)
            above.setdefault(better, []).append(escape(worse))
    if not above:
        return "no difference is beyond noise."
    lines = "".join(f"<li><b>{escape(one)}</b> is above {', '.join(others)}.</li>" for one, others in above.items())
    return f'</p><ul class="plain">{lines}</ul><p>'


def square(summary: Summary, measure: str) -> str:
    """Row minus column, with the corrected p-value."""
    by_pair = {(c.first, c.second): c for c in summary.comparisons if c.measure == measure}
    labels = [c.label for c in summary.curves]
    size = max((abs(c.difference) for c in by_pair.values() if not math.isnan(c.difference)), default=0.0)
    head = "".join(f"<th>minus {escape(label)}</th>" for label in labels)
    rows = ""
    for c in summary.curves:
        cells = "".join(pair_cell(by_pair, c.label, other, size) for other in labels)
        rows += f"<tr><th>{key(c.place)}{escape(c.label)}</th>{cells}</tr>"
    table = f"<thead><tr><th>{measure}</th>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide"><table class="square">{table}</table></div>'


def pair_cell(by_pair: dict[tuple[str, str], Comparison], one: str, other: str, size: float) -> str:
    """One entry of the table of pairs, whose largest number is `size`."""
    if one == other:
        return "<td></td>"
    sign, c = (1, by_pair[one, other]) if (one, other) in by_pair else (-1, by_pair[other, one])
    if math.isnan(c.p_value):
        return '<td class="noise">–</td>'
    difference = sign * c.difference
    kind = ("better" if difference > 0 else "worse") if c.beyond_noise else "noise"
    mark = {"better": "▲ ", "worse": "▼ ", "noise": ""}[kind]
    plus = "+" if difference > 0 else ""
    p = "p &lt; 0.001" if c.p_value < 0.001 else f"p = {c.p_value:.2g}"
    return f'<td class="{kind}">{mark}{plus}{shown(c.measure, difference, size)}<span class="p">{p}</span></td>'


# -------------------------------------------------------------------------------------------------------------- others


def legend(summary: Summary, optimum: bool, labels: Container[str] | None = None) -> str:
    """Which line is which label, of all or of these `labels`; a click hides it."""
    curves = [c for c in summary.curves if labels is None or c.label in labels]
    entries = [(str(c.place), key(c.place), c.label) for c in curves]
    if optimum:
        entries.append(("optimal", stroke(OPTIMUM, 1.0, ""), "optimal policy"))
    buttons = "".join(
        f'<button type="button" data-group="{group}" aria-pressed="true">{line}{escape(label)}</button>'
        for group, line, label in entries
    )
    return f'<div class="legend lines">{buttons}</div>'


def exponents(summary: Summary) -> str:
    """The exponent of each label's regret."""
    rows = ""
    for c in summary.curves:
        e, low, high = summary.exponents[c.label]
        text = "–" if math.isnan(e) else f"{e:.2f}"
        if not math.isnan(low):
            text += f'<span class="interval">[{low:.2f}, {high:.2f}]</span>'
        rows += f"<tr><th>{key(c.place)}{escape(c.label)}</th><td>{text}</td></tr>"
    return (
        "<p>Fitted exponents: the slope of a seed's regret on logarithmic axes over the last nine tenths of the "
        "episodes, mean over seeds, in brackets Student's 95 % interval of that mean. An agent that learns nothing "
        "has 1; faster learning gives a lower exponent.</p>"
        '<div class="wide"><table id="table-exponents"><thead><tr><th>algorithm</th><th>exponent</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def optimism(summary: Summary) -> str:
    """How often and by how much the values of each monitored label were below V*."""
    rows = ""
    for c in summary.curves:
        if c.below is not None and c.shortfalls is not None:
            share = Measure.of(c.below, 0.0, 1.0)
            text = percent(share.mean)
            if not math.isnan(share.low):
                text += f'<span class="interval">[{percent(share.low)}, {percent(share.high)}]</span>'
            rows += f"<tr><th>{key(c.place)}{escape(c.label)}</th><td>{text}</td><td>{c.shortfalls.max():.3g}</td></tr>"
    head = "<th>algorithm</th><th>states below V*</th><th>largest shortfall</th>"
    table = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide"><table id="table-optimism">{table}</table></div>'


def percent(share: float) -> str:
    """A share in percent; a positive one is never shown as 0 %."""
    return "&lt; 0.01 %" if 0 < share < 1e-4 else f"{100 * share:.2f} %"


def action_legend(summary: Summary) -> str:
    """What the colours of the policy mean."""
    actions = max(m.actions for m in summary.maps)
    names, colours = action_names(summary, actions), action_colours(actions)
    signs = action_signs(names) or [""] * len(names)
    entries = "".join(
        f'<span><span class="swatch" style="background:{colour};color:{ink}">{sign}</span>{escape(name)}</span>'
        for name, colour, ink, sign in for_legend(list(zip(names, colours, inks(colours), signs, strict=False)))
    )
    return f'<div class="legend">{entries}</div>'


def hyper_parameters(summary: Summary) -> str:
    """The hyper-parameters of each label's agent, from its first run, and what it chose itself."""
    rows = ""
    for c in summary.curves:
        made = record(c.runs[0], "configuration")
        given = dict(made.get("hyper_parameters", {}))
        agent, text = escape(str(made.get("agent", "–"))), escape(describe(given))
        chosen = describe(left_to_agent(given, record(c.runs[0], "settings_used")), digits=4)
        last = f"<br>chosen by the agent, seed {c.runs[0].seed}: {escape(chosen)}" if chosen else ""
        rows += f'<tr><th>{key(c.place)}{escape(c.label)}</th><td class="text">{agent}({text}){last}</td></tr>'
    return f'<div class="wide"><table id="table-hyper-parameters"><tbody>{rows}</tbody></table></div>'


def versions(summary: Summary) -> str:
    """The versions that the runs used, each once, and those that wrote this page."""
    here = {"python": platform.python_version()}
    here |= {name: metadata.version(name) for name in ("numpy", "scipy", "matplotlib", "plotly", "polars")}
    found: dict[str, set[str]] = {}
    for c in summary.curves:
        for run in c.runs:
            for name, value in {**record(run, "versions"), **record(run, "machine")}.items():
                found.setdefault(name, set()).add(str(value))
    runs = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(', '.join(sorted(v)))}</td></tr>" for name, v in found.items()
    )
    page = "".join(f"<tr><td>{escape(name)}</td><td>{escape(v)}</td></tr>" for name, v in here.items())
    return (
        f'<div class="wide"><table><thead><tr><th>the runs</th><th></th></tr></thead><tbody>{runs}</tbody>'
        f"<thead><tr><th>this page</th><th></th></tr></thead><tbody>{page}</tbody></table></div>"
    )


def record(run: Any, key: str) -> dict[str, Any]:
    """A table of the run's JSON file, empty if it is not there."""
    try:
        content = json.loads((run.path / "run.json").read_text(encoding="utf-8"))[key]
        return dict(content)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
