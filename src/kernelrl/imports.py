"""Importing what users name as "module:name", and one-line error messages."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import sysconfig
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import Any

__all__ = ["import_module", "imported", "no_such", "one_line", "require"]


def require(what: str, *names: str) -> None:
    """Raise ImportError, which says what to install, unless the packages that `what` needs are installed."""
    if missing := [name for name in names if not is_installed(name)]:
        raise ImportError(
            f"{what} needs {' and '.join(missing)}, which this installation does not have: pip install "
            f"{' '.join(missing)}"
        )


def is_installed(name: str) -> bool:
    """Whether a package can be imported, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: there is a module of that name, made by hand
        return name in sys.modules


def one_line(error: BaseException) -> str:
    """An error's type and message in one line; only the type if there is no message."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def import_module(path: str) -> ModuleType:
    """The module of "module:name"; whatever it raises becomes a ValueError that names the file and the line."""
    try:
        return importlib.import_module(path.partition(":")[0])
    except (Exception, SystemExit) as error:  # a module may do anything
        raise ValueError(f'"{path}" cannot be imported: {located(error)}') from error


def located(error: BaseException) -> str:
    """An error while importing, with file and line, if possible in the user's code."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}, line {error.lineno}: {type(error).__name__}: {error.msg}"
    installed = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is that of `import_module` above
    frames = [frame for frame in frames if not frame.filename.startswith(("<frozen importlib", *installed))]
    return "".join(f"{frame.filename}, line {frame.lineno}: " for frame in frames[-1:]) + one_line(error)


def imported(path: str) -> Any:
    """The object that `module:name`, or `module.name`, names."""
    path = path if ":" in path else ":".join(path.rsplit(".", 1))
    module, _, name = path.partition(":")
    if not module or not name:
        raise ValueError(f'"{path}" is not an import path "module:name"')
    found: Any = import_module(path)
    try:
        for part in name.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise ValueError(f'"{path}" cannot be imported: {error}') from error
    return found


def no_such(kind: str, name: str, allowed: Iterable[str]) -> str:
    """The error message for a name that is not allowed."""
    allowed = sorted(allowed)
    close = difflib.get_close_matches(name, allowed, 1)
    guess = f" (did you mean {close[0]}?)" if close else ""
    return f'there is no {kind} "{name}"{guess}; allowed: {", ".join(allowed)}'
