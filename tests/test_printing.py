"""Library code returns data: what is shown goes through `kernelrl.console` or is printed by the command line."""

from __future__ import annotations

import ast
from pathlib import Path

import kernelrl

ROOT = Path(kernelrl.__file__).parent
# Where there is no console yet: what is wrong with compiled code is told by the code that finds it.
ALLOWED = ("cli/", "console.py", "jit/inner_code.py", "jit/code_cache.py")


def shows(tree: ast.AST) -> list[int]:
    """The lines that print, or import what draws on a terminal."""
    lines = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            names = [node.func.id]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        lines += [node.lineno for name in names if name.partition(".")[0] in ("print", "rich", "typer")]
    return sorted(lines)


def test_printing_is_seen():
    assert shows(ast.parse("def f():\n    print(1)\n    from rich.table import Table\nimport typer")) == [2, 3, 4]


def test_library_code_does_not_print():
    found = []
    for file in sorted(ROOT.rglob("*.py")):
        name = file.relative_to(ROOT).as_posix()
        if not name.startswith(ALLOWED):
            found += [f"{name}:{line}" for line in shows(ast.parse(file.read_text()))]
    assert not found, f"print or draw on a terminal: {', '.join(found)}; use kernelrl.console, or return data"
