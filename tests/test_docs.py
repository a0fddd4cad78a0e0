"""The files and functions that docs/paper_to_code.md and docs/design.md name are there; the code of tutorials runs."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kernelrl.cli import app

ROOT = Path(__file__).resolve().parent.parent
PLACES = (ROOT, ROOT / "src" / "kernelrl", ROOT / "tests")


def spans(text: str) -> list[str]:
    """What stands between backticks, blocks of code apart."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))


def find(name: str) -> Path | None:
    """The file of that name, as docs give it."""
    return next((place / name for place in PLACES if (place / name).exists()), None)


@cache
def defined(file: Path) -> set[str]:
    """The functions, classes and names that a file defines, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


def is_file(span: str) -> bool:
    return bool(re.fullmatch(r"[\w./-]+\.py|[a-z_./-]+/", span))


def wrong_names(table: str) -> list[str]:
    """Files that are not there, and names that are not defined in the file that stands before them."""
    wrong = []
    for cell in re.split(r"[|\n]", table):
        file = None
        for span in spans(cell):
            if is_file(span):
                file = find(span)
                if file is None:
                    wrong.append(span)
            elif re.fullmatch(r"[A-Za-z_]\w*", span) and (file is None or span not in defined(file)):
                wrong.append(f"{span} in {file and file.name}")
    return wrong


def test_what_would_be_wrong():
    assert wrong_names("| `theory/regret.py`: `rates` | `test_docs.py`: `wrong_names` |") == []
    assert wrong_names("| `theory/regrets.py` |") == ["theory/regrets.py"]
    assert wrong_names("| `theory/regret.py`: `rate_of` |") == ["rate_of in regret.py"]
    assert wrong_names("| `rates` |") == ["rates in None"]


def test_from_the_paper_to_the_code():
    text = (ROOT / "docs" / "paper_to_code.md").read_text()
    table = "\n".join(line for line in text.splitlines() if line.startswith("| "))
    assert len(table.splitlines()) > 30 and len([span for span in spans(table) if is_file(span)]) > 80
    assert wrong_names(table) == []


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_files_that_docs_name(name):
    named = {span for span in spans((ROOT / "docs" / name).read_text()) if is_file(span) and "/" in span.rstrip("/")}
    assert not (gone := sorted(span for span in named if find(span) is None)), f"docs/{name} names {gone}"


# pages whose blocks of code run one after another
RUN = ("logged_data.md", "export.md", "explain.md", "own_loop.md", "callbacks.md", "forecast.md")


def blocks(text: str) -> list[tuple[str, str]]:
    """Language and content of the blocks of code."""
    return re.findall(r"```(\w+)\n(.*?)```", text, re.S)


@pytest.mark.parametrize("name", RUN)
def test_code_of_tutorials(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for language, code in blocks((ROOT / "docs" / name).read_text()):
        if language == "python":
            exec(compile(code, name, "exec"), namespace)
        elif language == "sh":
            for line in code.splitlines():
                command, *arguments = shlex.split(line)
                assert command == "kernelrl"
                done = CliRunner().invoke(app, arguments, catch_exceptions=False)
                assert done.exit_code == 0, done.output
