"""Writing the report of a store: of one problem one page, of several an overview and one page for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernelrl.console import Status
from kernelrl.reporting.page import write_page

__all__ = ["report_of", "write_report"]


def write_report(path: str | Path, out: str | Path | None = None, *, overview: bool = False) -> Path:
    """Write the report of the experiment stored in `path` to `path`/report, or to `out`; return the page's path.

    With `overview`, of an experiment over several problems only the overview is written, which is quick.
    """
    from kernelrl.experiments import open_store

    path = Path(path)
    return report_of(open_store(path), Path(out) if out is not None else path / "report", overview=overview)


def report_of(store: Any, out: Path, *, overview: bool = False) -> Path:
    """Write the report of an open store into the folder `out`; with `overview` without the pages of its problems."""
    out = Path(out)
    if overview and not store.several:
        raise ValueError("overview: this experiment has one problem; its report is one page")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"out: the folder {out} cannot be made: {error}") from error
    with Status() as status:
        if store.several:
            from kernelrl.reporting.across.page import write_pages

            return write_pages(store, out, status.say, pages=not overview)
        return write_page(store, out, status.say)
