"""The tables across problems, once as data, written as HTML for the page and as Markdown for documents."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import quote

import numpy as np

from kernelrl.reporting.across.figures import MARKS, shade
from kernelrl.reporting.across.overview import Cell, Improvement, Overview
from kernelrl.reporting.across.sentences import megabytes, number, two_figures
from kernelrl.reporting.across.statistics import Estimate
from kernelrl.reporting.tables import key

__all__ = ["Table", "as_html", "as_markdown", "episodes_table", "improvement_table", "scores_table", "time_table"]


class Entry(NamedTuple):
    """One cell: its text, what is written small below it, and how it stands out."""

    text: str
    below: str = ""
    depth: float = 0.0
    """Of its colour, from 0 to 1."""
    bold: bool = False
    kind: str = ""
    """"better" or "worse" where a comparison is decided."""


@dataclass(frozen=True)
class Table:
    """A table with a name for each row and column."""

    name: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[Entry]]]
    foot: int = 0
    """How many of the last rows are about all problems."""


NOTHING = Entry("–")
DIGITS = 3  # of fractions, many of which are near 1


def interval(low: float, high: float, digits: int = 2) -> str:
    """An interval, or nothing where there is none."""
    return "" if math.isnan(low) else f"[{number(low, digits)}, {number(high, digits)}]"


def estimated(estimate: Estimate, kind: str = "", digits: int = 2) -> Entry:
    """A number and its interval."""
    between = interval(estimate.low, estimate.high, digits)
    return Entry(number(estimate.value, digits), between, bold=kind == "better", kind=kind)


def by_problem(overview: Overview, name: str, entry_of: object) -> Table:
    """A table of problems × agents; `entry_of` makes a cell of it."""
    assert callable(entry_of)
    rows = [
        (
            p.label,
            [entry_of(overview.cells[p.label, label]) if label in p.runs else NOTHING for label in overview.labels],
        )
        for p in overview.problems
    ]
    return Table(name, "problem", overview.labels, rows)


def scores_table(overview: Overview) -> Table:
    """Fractions of the ceiling, and what is made of them over all problems."""

    def entry(cell: Cell) -> Entry:
        score = cell.score
        text = f"{number(score.mean, DIGITS)}{MARKS[cell.place]}"
        return Entry(text, interval(score.low, score.high, DIGITS), shade(score.mean), cell.place == "best")

    table, m = by_problem(overview, "scores", entry), len(overview.problems)
    over_all = [
        ("interquartile mean", [estimated(overview.means[label], digits=DIGITS) for label in overview.labels]),
        ("optimality gap", [estimated(overview.gaps[label], digits=DIGITS) for label in overview.labels]),
        ("problems", [Entry(f"{len(overview.problems_of(label))} of {m}") for label in overview.labels]),
    ]
    return Table(table.name, table.corner, table.columns, table.rows + over_all, len(over_all))


def episodes_table(overview: Overview) -> Table:
    """The median number of episodes until the level was reached."""

    def entry(cell: Cell) -> Entry:
        n, there = cell.until.size, int(np.isfinite(cell.until).sum())
        median = (
            float(np.sort(cell.until)[n // 2]) if n % 2 else float(np.sort(cell.until)[n // 2 - 1 : n // 2 + 1].mean())
        )
        text = f"{median:,.0f}" if math.isfinite(median) else "not reached"
        return Entry(text, "" if there in (0, n) else f"{there} of {n} runs")

    return by_problem(overview, "episodes", entry)


def time_table(overview: Overview) -> Table:
    """Seconds of learning for 1,000 episodes."""
    return by_problem(overview, "seconds", lambda cell: Entry(two_figures(cell.seconds)))


def memory_table(overview: Overview) -> Table:
    """Megabytes of the agents' data."""

    def entry(cell: Cell) -> Entry:
        return NOTHING if math.isnan(cell.megabytes) else Entry(megabytes(cell.megabytes))

    return by_problem(overview, "memory", entry)


def decided(found: Improvement) -> str:
    """Which of two agents is better, where that can be told."""
    return "" if not found.decided else "better" if found.probability.value > 0.5 else "worse"


def improvement_table(overview: Overview) -> Table:
    """The probability that the row's agent is better than the column's."""
    rows = []
    for first in overview.labels:
        entries = []
        for second in overview.labels:
            found = overview.improvements.get((first, second))
            entries.append(estimated(found.probability, decided(found)) if found else Entry(""))
        rows.append((first, entries))
    return Table("improvement", "row better than column", overview.labels, rows)


# ------------------------------------------------------------------------------------------------------------- formats


def as_html(table: Table, links: Mapping[str, str] = MappingProxyType({}), agents: bool = False) -> str:
    """The table for the page; `links` are addresses of rows, and with `agents` rows have the lines of their agents."""
    head = "".join(f"<th>{escape(name)}</th>" for name in (table.corner, *table.columns))
    rows = ""
    for i, (name, entries) in enumerate(table.rows):
        text = f'<a href="{escape(quote(links[name]))}">{escape(name)}</a>' if name in links else escape(name)
        kind = ' class="foot"' if i >= len(table.rows) - table.foot else ""
        rows += f"<tr{kind}><th>{key(i) if agents else ''}{text}</th>{''.join(map(cell_html, entries))}</tr>"
    inside = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide"><table id="table-{table.name}">{inside}</table></div>'


def cell_html(entry: Entry) -> str:
    """One cell for the page."""
    style = f' style="background: rgb(0 114 178 / {0.4 * entry.depth:.2f})"' if entry.depth else ""
    kind = f' class="{entry.kind}"' if entry.kind else ""
    below = f'<span class="interval">{escape(entry.below)}</span>' if entry.below else ""
    text = escape(marked(entry))
    return f"<td{kind}{style}>{f'<b>{text}</b>' if entry.bold else text}{below}</td>"


def as_markdown(table: Table) -> str:
    """The table for a Markdown document."""
    lines = [row_markdown([table.corner, *table.columns]), f"|---|{'---:|' * len(table.columns)}"]
    for i, (name, entries) in enumerate(table.rows):
        cells = []
        for entry in entries:
            text = marked(entry)
            text = f"**{text}**" if entry.bold else text
            cells.append(f"{text} {entry.below}".strip())
        lines.append(row_markdown([f"*{name}*" if i >= len(table.rows) - table.foot else name, *cells]))
    return "\n".join(lines) + "\n"


def row_markdown(cells: list[str]) -> str:
    """One line of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def marked(entry: Entry) -> str:
    """The text with the mark of its kind."""
    return {"better": "▲ ", "worse": "▼ "}.get(entry.kind, "") + entry.text
