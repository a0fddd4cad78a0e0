"""Pages of reports in tests: read as text, and opened in a browser."""

from __future__ import annotations

import re
from contextlib import contextmanager
from html.parser import HTMLParser


class Page(HTMLParser):
    """Text by element id, tables as lists of rows of cells, and addresses."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.addresses, self.text, self._ignore = {}, [], "", False
        self._table, self._cell = None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.addresses += [attributes[key] for key in ("href", "src") if key in attributes]
        self._ignore = tag in ("script", "style")
        if tag == "table":
            self._table = self.tables.setdefault(attributes.get("id", f"table-{len(self.tables)}"), [])
        if tag == "tr":
            self._table.append([])
        if tag in ("td", "th"):
            self._cell = ""

    def handle_endtag(self, tag):
        if tag in ("script", "style"):
            self._ignore = False
        if tag in ("td", "th"):
            self._table[-1].append(self._cell)
            self._cell = None

    def handle_data(self, data):
        if not self._ignore:
            self.text += data
            if self._cell is not None:
                self._cell += data


def numbers_in(cell):
    """The numbers of a cell, mean, low and high."""
    cell = cell.replace(", ", " ")
    return [float(n.replace(",", "")) for n in re.findall(r"-?\d[\d,]*(?:\.\d+)?", cell.replace("−", "-"))]


MAPS = "#map-value .heatmaplayer image, #map-value .heatmaplayer .hm"


@contextmanager
def opened(browser, report, width=1200, drawn=MAPS):
    """The page, with a list of all that went wrong."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else wrong.append(r.url))
    page.goto(report.as_uri())
    page.wait_for_selector(drawn, state="attached")
    try:
        yield page, wrong
    finally:
        page.close()
