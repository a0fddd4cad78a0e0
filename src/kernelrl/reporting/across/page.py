"""The report of an experiment over several problems: an overview, and one page for each problem in a folder of its own.

    report.html, FIGURE.png, .pdf, .svg     the overview
    tables.md                               its tables and sentences as Markdown, to be copied into documents
    PROBLEM/report.html, …                  the report of each problem

Every table and figure of the overview has a sentence, made from the numbers, that says what is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernelrl.experiments.store import safe_name
from kernelrl.reporting.across import sentences, tables
from kernelrl.reporting.across.charts import height_of_rows, overview_charts
from kernelrl.reporting.across.figures import draw_overview
from kernelrl.reporting.across.overview import Overview
from kernelrl.reporting.across.reading import Reading, read_store
from kernelrl.reporting.across.sections import Section, sections_of
from kernelrl.reporting.document import NAME, described, files_list, lines_of, picture, rendered, write_text
from kernelrl.reporting.drawing import save_all
from kernelrl.reporting.page import Part, write_page
from kernelrl.reporting.tables import key

__all__ = ["MARKDOWN", "markdown", "render", "write_pages"]

MARKDOWN = "tables.md"


def write_pages(store: Any, out: Path, say: Callable[[str], None], pages: bool = True) -> Path:
    """Write the overview and, unless not asked to, all problems' `pages` into the folder `out`.

    Returns the overview's path. It is written first, since the pages of many problems take long.
    """
    reading = read_store(store, say)
    say("Drawing")
    files = save_all(draw_overview(reading.overview), out) if reading.overview is not None else {}
    write_text(out / MARKDOWN, markdown(reading))
    there = {p.label for p in reading.problems if p.begun and (pages or (out / address(p.label)).exists())}
    written = write_text(out / NAME, render(reading, files, there))
    if pages:
        write_problems(store, reading, out, say)
    return written


def write_problems(store: Any, reading: Reading, out: Path, say: Callable[[str], None]) -> None:
    """Write the page of each problem into a folder of its own."""
    labels = [agent["label"] for agent in reading.experiment["agents"]]
    for problem in reading.problems:
        if problem.begun:
            folder = out / safe_name(problem.label)
            folder.mkdir(exist_ok=True)
            back = f'<nav><a href="../{NAME}">← all problems of {escape(reading.name)}</a></nav>'

            def say_of(text: str, label: str = problem.label) -> None:
                say(f"{label}: {text}")

            write_page(store.only(problem.label), folder, say_of, Part(problem.label, back, labels))


# ------------------------------------------------------------------------------------------------------------ the page


def render(reading: Reading, files: dict[str, list[Path]], there: set[str]) -> str:
    """The overview as text, with links to the pages of the problems that are `there`."""
    overview = reading.overview
    sections, charts = [], {}
    if overview is not None:
        charts = overview_charts(overview)
        links = {label: address(label) for label in there}
        for section in sections_of(overview):
            sections.append((section.key, section.title, section_html(overview, section, files, charts, links)))
    sections.append(("problems", "Problems", problems_html(reading, there)))
    experiment = f"<h3>The experiment</h3><pre>{escape(lines_of(reading.experiment))}</pre>"
    pages = "<p>The page of each problem has all hyper-parameters, what agents chose themselves, and versions.</p>"
    markdown_link = f'<p>The tables as Markdown: <a href="{MARKDOWN}">{MARKDOWN}</a></p>'
    sections.append(("configuration", "Configuration", experiment + pages + files_list(files) + markdown_link))
    data = {"charts": charts, "maps": None}
    return rendered(reading.name, header(reading), notes_of(reading), sections, data)


def notes_of(reading: Reading) -> list[str]:
    """What the reader must know first."""
    few = sentences.about_seeds(reading.overview) if reading.overview is not None else ""
    return [*reading.notes, *([few] if few else [])]


def header(reading: Reading) -> str:
    """The title and what was run."""
    seeds = len(reading.experiment["seeds"])
    facts = [
        f"{len(reading.problems)} problem{'s' if len(reading.problems) > 1 else ''}",
        f"{len(reading.experiment['agents'])} agent{'s' if len(reading.experiment['agents']) > 1 else ''}",
        f"{seeds} seed{'s' if seeds > 1 else ''}",
    ]
    title = f'<h1>{escape(reading.name)}</h1><p class="facts">{" · ".join(facts)}</p>'
    if reading.overview is None:
        title += "<p>No problem with a known best return has a finished run yet, so there is nothing to compare.</p>"
    return title


def section_html(
    overview: Overview, section: Section, files: dict[str, list[Path]], charts: dict[str, Any], links: dict[str, str]
) -> str:
    """What is seen, the charts, their figure for paper, the table, and how it is computed."""
    content = f'<p class="seen">{escape(section.seen).replace(" %", "&nbsp;%")}</p>'
    drawn = [name for name in section.charts if name in charts]
    if drawn:
        rows = f' style="height: {height_of_rows(len(overview.labels))}px"' if section.rows else ""
        boxes = "".join(
            f'<figure><div class="chart" id="chart-{name}" {described(section.alt)}{rows}></div></figure>'
            for name in drawn
        )
        if len(drawn) > 1:
            boxes = f'<div class="pair screen">{boxes}</div>'
        legend = "" if section.rows else legend_html(overview)
        content += f'<div class="whole">{legend}{boxes}{picture("static", section.alt, files[section.figure])}</div>'
    if section.table is not None:
        content += tables.as_html(section.table, links, agents=section.table.corner != "problem")
    return f'{content}<p class="quiet">{escape(section.how)}</p>'


def legend_html(overview: Overview) -> str:
    """Which line is which agent; a click hides it."""
    buttons = "".join(
        f'<button type="button" data-group="{i}" aria-pressed="true">{key(i)}{escape(label)}</button>'
        for i, label in enumerate(overview.labels)
    )
    return f'<div class="legend lines">{buttons}</div>'


def address(label: str) -> str:
    """Where the page of a problem is."""
    return f"{safe_name(label)}/{NAME}"


def problems_html(reading: Reading, there: set[str]) -> str:
    """All problems with their ceilings, and links to their pages."""
    rows = ""
    for p in reading.problems:
        name = escape(p.label)
        link = f'<a href="{escape(quote(address(p.label)))}">{name}</a>' if p.label in there else name
        link += "" if p.begun else " (no run yet)"
        best = "not known" if p.best is None else sentences.number(p.best, 3) + (" (given)" if p.given else "")
        rows += (
            f"<tr><th>{link}</th><td>{escape(p.environment)}</td><td>{p.length}</td><td>{best}</td>"
            f"<td>{sentences.number(p.worst, 3)}</td></tr>"
        )
    head = "".join(f"<th>{name}</th>" for name in ("problem", "environment", "each run", "best return", "worst return"))
    return (
        "<p>The best return is the optimal value V* at the start, unless the experiment gives it. Each problem has a "
        "page of its own, with curves, regret, maps and hyper-parameters.</p>"
        '<div class="wide"><table id="table-problems">'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


# ------------------------------------------------------------------------------------------------------------ Markdown


def markdown(reading: Reading) -> str:
    """The overview's sentences and tables for a Markdown document."""
    parts = [f"# {reading.name}\n"]
    parts += [f"{note}\n" for note in notes_of(reading)]
    for section in sections_of(reading.overview) if reading.overview is not None else []:
        parts.append(f"## {section.title}\n")
        parts.append(f"{section.seen}\n")
        if section.figure:
            parts.append(f"![{section.alt}]({section.figure}.png)\n")
        if section.table is not None:
            parts.append(tables.as_markdown(section.table))
        parts.append(f"{section.how}\n")
    return "\n".join(parts)
