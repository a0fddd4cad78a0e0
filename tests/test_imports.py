"""Imports go one way: docs/design.md draws the layers, and no module imports one of a higher layer.

All imports count, wherever they stand: in functions, for type checkers only, by `importlib.import_module` with a name
that can be read off, and the names of modules in tables of what is imported when first used.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kernelrl

ROOT = Path(kernelrl.__file__).parent
DESIGN = ROOT.parent.parent / "docs" / "design.md"
MODULE = re.compile(r"kernelrl(\.\w+)*(:\w+)?")


def layers() -> dict[str, int]:
    """The number of each package's layer, the lowest first, as it is drawn."""
    (drawing,) = re.findall(r"```layers\n(.*?)```", DESIGN.read_text(), re.S)
    rows = [line.split("  ")[0] for line in drawing.splitlines() if line.strip() and not line.startswith(" ")]
    return {name: number for number, row in enumerate(rows) for name in row.split(", ")}


def modules() -> dict[str, Path]:
    """All modules by name."""
    found = {}
    for file in sorted(ROOT.rglob("*.py")):
        parts = ["kernelrl", *file.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def exported(known: dict[str, Path]) -> dict[str, str]:
    """Where the names are that `kernelrl` imports when they are first used."""
    tables = [node for node in ast.walk(ast.parse(known["kernelrl"].read_text())) if isinstance(node, ast.Dict)]
    return {
        ast.literal_eval(key): ast.literal_eval(value)
        for table in tables
        for key, value in zip(table.keys, table.values, strict=True)
        if key is not None
    }


def imported(tree: ast.AST, known: dict[str, Path]) -> set[str]:
    """The modules of this package that a syntax tree names."""
    named, public = set(), exported(known)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not followed here"
            named |= {f"{node.module}.{name.name}" for name in node.names} | {node.module}
            if node.module == "kernelrl":
                named |= {public.get(name.name) for name in node.names}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kernelrl":
            named.add(public.get(node.attr))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and MODULE.fullmatch(node.value):
            named.add(node.value.partition(":")[0])
    return {name for name in named if name in known and name != "kernelrl"}


def part_of(module: str) -> str:
    """The package, or the module beside the packages, that a module belongs to."""
    return module.split(".")[1] if "." in module else "__init__"


def violations(sources: dict[str, str], known: dict[str, Path], order: dict[str, int]) -> list[str]:
    """Imports of a higher layer; `sources` are texts of modules by name."""
    found = []
    for module, text in sources.items():
        for other in sorted(imported(ast.parse(text), known)):
            if order[part_of(other)] > order[part_of(module)]:
                found.append(f"{module} imports {other}")
    return found


def test_every_part_has_its_place():
    assert {part_of(name) for name in modules()} == set(layers())


def test_imports_go_one_way():
    known = modules()
    assert len(known) > 80
    sources = {name: file.read_text() for name, file in known.items()}
    assert not (wrong := violations(sources, known, layers())), "\n".join(wrong)


@pytest.mark.parametrize(
    "text",
    [
        "import kernelrl.cli.main",
        "from kernelrl.cli import main",
        "from kernelrl import cli",
        "def f():\n    from kernelrl.cli.main import app",
        "import importlib\nimportlib.import_module('kernelrl.cli')",
        "WHERE = {'name': 'kernelrl.cli.main'}",
        "ENTRY = 'kernelrl.cli:main'",
        "if TYPE_CHECKING:\n    import kernelrl.cli",
        "from kernelrl import load",
        "import kernelrl\nkernelrl.KernelUCBVI",
    ],
)
def test_what_would_be_seen(text):
    known = modules()
    assert violations({"kernelrl.jit.new": text}, known, layers())
    assert not violations({"kernelrl.cli.new": text}, known, layers())


ABSENT = (
    "kernelrl.theory", "kernelrl.reporting", "kernelrl.experiments", "kernelrl.planning", "kernelrl.agents.kernel",
    "kernelrl.agents.guarantees", "scipy.stats", "scipy.special", "scipy.interpolate", "scipy.ndimage", "polars",
    "matplotlib", "plotly", "pydantic", "rich", "typer",
)  # fmt: skip


def test_a_random_agent_needs_nothing_of_the_others():
    """numba itself imports a little of scipy."""
    program = "import kernelrl, sys; kernelrl.RandomAgent; print(*sys.modules)"
    env = {**os.environ, "PYTHONPATH": str(ROOT.parent)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env)
    loaded = done.stdout.split()
    assert "kernelrl.algorithms.random_agent" in loaded
    assert not [name for name in loaded if name.startswith(ABSENT)]
    algorithms = [name for name in loaded if name.startswith("kernelrl.algorithms.")]
    assert algorithms == ["kernelrl.algorithms.random_agent"]
