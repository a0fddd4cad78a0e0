"""What Sphinx is given to read: docstrings as reStructuredText, pages with whole alt texts, and only what is public.

Docstrings of kernelrl are written to be read in an editor: this turns them into reStructuredText for the reference.

Names stand between single backticks, blocks that are indented by four spaces are shown as they are, and * | _ mean
themselves. `Args:`, `Returns:` and `Raises:` are left to Sphinx's own extension, napoleon.
"""

from __future__ import annotations

import re
from typing import Any

SECTION = re.compile(r"(Args|Returns|Raises|Yields|Attributes):\s*$")
CODE = re.compile(r"`[^`]+`")
PICTURE = re.compile(r"!\[[^\]]*\]")
# Parts of agents that are neither for users nor hooks for algorithms of their own.
INNER = {"check_result", "exact_plan", "get_ready", "merged_plan", "model_of"}
ITEM = re.compile(r"\s*([-*]|\d+\.)\s")


def on_one_line(code: re.Match[str]) -> str:
    """Code between backticks that goes on in the next line."""
    return re.sub(r"\s*\n\s*", " ", code[0])


def in_line(text: str) -> str:
    """One line: `code` becomes ``code``, and characters with a meaning for reStructuredText are escaped elsewhere."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(
        f"``{part[1:-1]}``\\ "
        if part.startswith("`") and len(part) > 2
        else re.sub(r"([*|\\]|(?<=\w)_(?!\w))", r"\\\1", part)
        for part in parts
    )


def converted(lines: list[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    text = "\n\n".join(CODE.sub(on_one_line, part) for part in "\n".join(lines).split("\n\n"))
    lines = text.split("\n")
    out: list[str] = []
    section, literal, item = False, False, False
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if not line.strip():
            out.append("")
            continue
        after_blank = not out or not out[-1]
        if indent == 0:
            section, literal, item = bool(SECTION.match(line)), False, bool(ITEM.match(line))
        if literal or (indent >= 4 and after_blank and not section and not item):
            if not literal:
                out += ["::", ""]
            literal = True
            out.append(line)
        else:
            out.append(line if SECTION.match(line) else in_line(line))
    return out


def as_restructured_text(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's hook: changes `lines` in place."""
    lines[:] = converted(lines)


def with_whole_alt_texts(text: str) -> str:
    """A page in which the alt text of each picture is one line: at the end of a line Sphinx would join two words."""
    return PICTURE.sub(lambda found: " ".join(found[0].split()), text)


def read_page(app: Any, name: str, source: list[str]) -> None:
    """Sphinx's hook: changes the page in place."""
    source[0] = with_whole_alt_texts(source[0])


def is_inner(name: str) -> bool:
    """Whether a method of an agent is not for those who use agents."""
    from kernelrl.agents.hooks import Hooks

    return name in INNER or name in vars(Hooks)


def leave_out(app: Any, what: str, name: str, thing: Any, skip: bool, options: Any) -> bool | None:
    """Sphinx's hook: whether the page of agents leaves out a method; None leaves that to others."""
    method = callable(thing) or isinstance(thing, property | staticmethod)
    return True if app.env.docname == "api/agents" and method and is_inner(name) else None
