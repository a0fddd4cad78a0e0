"""What the pages of reports share: the document around a page's sections, figures in it, and links to files."""

from __future__ import annotations

import base64
import json
import re
import string
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import quote

from kernelrl.agents.files import replacing

__all__ = ["NAME", "embedded", "files_list", "lines_of", "marked", "notes_box", "picture", "rendered", "write_text"]

NAME = "report.html"


def rendered(
    title: str, head: str, notes: Sequence[str], sections: Sequence[tuple[str, str, str]], data: dict[str, Any]
) -> str:
    """A page as text: its head, links to the sections, notes, and sections with key, title and content.

    `data` is what the page's script draws.
    """
    from plotly.offline import get_plotlyjs

    contents = "".join(f'<a href="#{key}">{text}</a>' for key, text, _ in sections)
    body = f"{head}<nav>{contents}</nav>{notes_box(notes)}"
    body += "".join(f'<section id="{key}"><h2>{text}</h2>{content}</section>\n' for key, text, content in sections)
    return string.Template(part("page.html")).substitute(
        title=escape(f"{title}: report"),
        css=part("page.css"),
        body=body,
        plotly=get_plotlyjs(),
        data=json.dumps(data, allow_nan=False).replace("<", "\\u003c"),
        script=part("page.js"),
    )


def part(name: str) -> str:
    """A file beside this one."""
    return resources.files("kernelrl.reporting").joinpath(name).read_text(encoding="utf-8")


def write_text(path: Path, text: str) -> Path:
    """Write a file by renaming, and return its path."""
    with replacing(path) as file:
        file.write(text.encode())
    return path


def notes_box(notes: Sequence[str]) -> str:
    """What the reader must know first."""
    if not notes:
        return ""
    return f'<div class="notes"><ul>{"".join(f"<li>{marked(note)}</li>" for note in notes)}</ul></div>'


def marked(text: str) -> str:
    """A message as HTML: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def picture(kind: str, alt: str, paths: list[Path], suffix: str = ".svg") -> str:
    """A figure in the page; one of `kind` "static" is shown only on paper and where scripts are off."""
    return f'<img class="{kind}" alt="{escape(alt)}" src="{embedded(paths, suffix)}">'


def described(text: str) -> str:
    """The attributes of a chart by which programs that read a page aloud say what it shows."""
    return f'role="img" aria-label="{escape(text)}"'


def embedded(paths: list[Path], suffix: str) -> str:
    """A figure as a data URL."""
    kind = {".svg": "image/svg+xml", ".png": "image/png"}[suffix]
    content = next(path for path in paths if path.suffix == suffix).read_bytes()
    return f"data:{kind};base64,{base64.b64encode(content).decode()}"


def files_list(files: dict[str, list[Path]]) -> str:
    """Links to the files of every figure."""
    kept = "".join(f"<li>{escape(name)}: {links(paths)}</li>" for name, paths in files.items())
    return f'<h3>Figures beside this page</h3><ul class="plain">{kept}</ul>'


def links(paths: list[Path]) -> str:
    """A link to each file of a figure."""
    return ", ".join(f'<a href="{escape(quote(path.name))}">{path.suffix[1:].upper()}</a>' for path in paths)


def lines_of(experiment: dict[str, Any]) -> str:
    """The experiment as JSON, one line per entry, per agent and per environment."""
    entries = []
    for key, value in experiment.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            inside = ",\n".join(f"    {json.dumps(item, ensure_ascii=False)}" for item in value)
            entries.append(f"  {json.dumps(key)}: [\n{inside}\n  ]")
        else:
            entries.append(f"  {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(entries) + "\n}"
