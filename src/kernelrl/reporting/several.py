"""The report of an experiment over several problems: a page for each problem, and one that leads to them."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernelrl.experiments.store import safe_name

__all__ = ["index_page", "report_each"]


def report_each(store: Any, out: Path, report: Any) -> dict[str, Path | str]:
    """For each problem the path of its page, made by `report(store, folder)`, or why there is none."""
    pages: dict[str, Path | str] = {}
    for problem in store.problems:
        try:
            pages[problem.label] = report(store.only(problem.label), out / safe_name(problem.label))
        except ValueError as error:  # no run has an episode yet
            pages[problem.label] = str(error)
    if not any(isinstance(page, Path) for page in pages.values()):
        raise ValueError("path: there is no run with an episode to report yet; `kernelrl run` first")
    return pages


def index_page(store: Any, pages: dict[str, Path | str], out: Path) -> str:
    """A page with a link to each problem's."""
    lines = []
    for label, page in pages.items():
        if isinstance(page, Path):
            link = quote(page.relative_to(out).as_posix())
            lines.append(f'<li><a href="{escape(link)}">{escape(label)}</a></li>')
        else:
            lines.append(f"<li>{escape(label)}: {escape(page)}</li>")
    name = escape(str(store.experiment["name"]))
    head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{name}: report</title></head>'
    return f"{head}<body><h1>{name}</h1><ul>{''.join(lines)}</ul></body></html>"
