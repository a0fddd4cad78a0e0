"""Nothing outside a class uses its private names: the syntax trees of the package say so."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "kernelrl"
OWN = ("self", "cls")
OF_NAMED_TUPLES = ("_replace", "_fields", "_asdict", "_make", "_field_defaults")  # public, whatever their names
OF_NUMBA = ("numba", "numba.types", "numba.extending")  # what it documents for users
# Names of other libraries for which they have no public one: file, name and why it is needed.
EXCEPTIONS = {
    ("jit/numba_private.py", "_unique_ids"): "numba numbers functions from 1 in every process, and names code by that",
    ("jit/numba_private.py", "_reduce"): "what numba keeps of compiled code, and",
    ("jit/numba_private.py", "_rebuild"): "how it is made code again",
    ("jit/numba_private.py", "_cache"): "where numba looks for kept code,",
    ("jit/handles.py", "_numba_type_"): "where numba looks for the type of an object",
    (
        "envs/wrapping.py",
        "_max_episode_steps",
    ): "Gymnasium's TimeLimit tells it only if there is a spec",
    (
        "agents/archive.py",
        "_compresslevel",
    ): "`ZipFile.open` has no argument for it, ZipInfo no public name before 3.13",
}


def is_private(name: str) -> bool:
    """Whether a name is private, and not one of Python's own."""
    return name.startswith("_") and not name.endswith("__") and name not in OF_NAMED_TUPLES


def is_own(node: ast.expr) -> bool:
    """Whether an expression is the object or the class itself, as methods see them."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in OWN


def foreign_names(source: str) -> list[tuple[int, str]]:
    """Line and name of every use of something else's private name."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelrl"):
            found += [(node.lineno, alias.name) for alias in node.names if is_private(alias.name)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("getattr", "setattr"):
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else ""
            if is_private(str(name)) and not is_own(node.args[0]):
                found.append((node.lineno, str(name)))
    return found


def private_of_numba(source: str) -> list[str]:
    """Names of numba's inside that a file imports, and private ones of its options that it writes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            if node.module not in OF_NUMBA:
                found.append(str(node.module))
            found += [alias.name for alias in node.names if is_private(alias.name) or alias.name in ("core", "np")]
        elif isinstance(node, ast.Import):
            found += [a.name for a in node.names if a.name.partition(".")[0] == "numba" and a.name not in OF_NUMBA]
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("numba.core", "numba.np"):
            found.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and node.value in ("_nrt", "_code", "_final_module", "_cache"):
            found.append(str(node.value))
    return found


def test_private_parts_of_numba_are_in_one_file():
    where = {str(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py") if private_of_numba(file.read_text())}
    assert where == {"jit/numba_private.py"}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("from numba.core import cgutils", ["numba.core"]),
        ("from numba import core, types", ["core"]),
        ("import numba.core.event", ["numba.core.event"]),
        ("import numba\nnumba.core.event.register()", ["numba.core"]),
        ("from numba import _dynfunc", ["_dynfunc"]),
        ("from numba.extending import overload\nimport numba\nnumba.njit", []),
    ],
)
def test_the_test_sees_the_inside_of_numba(source, found):
    assert private_of_numba(source) == found


def test_no_private_name_is_used_from_outside():
    used, wrong = set(), []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = str(file.relative_to(PACKAGE))
        for line, name in foreign_names(file.read_text()):
            used.add((place, name))
            if (place, name) not in EXCEPTIONS:
                wrong.append(f"{place}:{line}: {name}")
    assert not wrong, "\n".join(wrong)
    assert used == EXCEPTIONS.keys(), "an exception that nobody needs any more"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("agent._model", ["_model"]),
        ("self.agent._model", ["_model"]),
        ("type(self)._exact(1)", ["_exact"]),
        ("Agent._shared", ["_shared"]),
        ("agent._steps = agent._low.size", ["_steps", "_low"]),
        ("getattr(agent, '_seed')", ["_seed"]),
        ("from kernelrl.agents.base import _made", ["_made"]),
        ("self._model, cls._shared, super()._capture()", []),
        ("model._replace(N=1)._fields, model.__class__, getattr(self, '_seed')", []),
        ("from kernelrl.envs import register as _register", []),
    ],
)
def test_the_test_sees_them(source, names):
    assert sorted(name for _, name in foreign_names(source)) == sorted(names)
