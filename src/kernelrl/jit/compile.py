"""How functions are compiled, and how one verb serves every algorithm and environment.

`compiled` is numba's `njit`, kept on disk (`code_cache`) under a key made of all that is compiled: a directory named by
the sources of the package that hold compiled code, and in it a file named by the signature and by a user's own
functions and classes, where there are any (`code_key`). numba's own cache looks only at the file a function is written
in, so a cached caller would go on using the old version of a function that another module changed.

`generic` declares a verb that many classes implement: one function, dispatched on the class of its first argument
(a NamedTuple). From Python that is a dict look-up; from compiled code an `overload`, resolved while compiling, so a
compiled caller is cached like any other and pays nothing per call. The body of the declaration is what a verb does for
a class that does not implement it, unless an implementation is required.

Everything here works with the JIT disabled (`NUMBA_DISABLE_JIT=1`), too.
"""

import functools
import hashlib
import inspect
import os
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

import llvmlite
import numba
import numpy as np
from numba.extending import overload

from kernelrl.jit import code_key
from kernelrl.jit.code_cache import CodeCache, adopt
from kernelrl.jit.handles import class_of
from kernelrl.jit.inner_code import InnerCompiler

__all__ = [
    "SUMS", "Verb", "cache_dir", "compiled", "compiled_as", "distinguish", "generic", "in_both", "inner", "keep",
    "name_of",
]  # fmt: skip

F = TypeVar("F", bound=Callable[..., Any])


ROOT = Path(__file__).resolve().parent.parent
WHERE_COMPILED = (
    "jit",
    "geometry",
    "bonuses",
    "stores",
    "planning",
    "envs",
    "episodes",
    "algorithms",
)  # nothing elsewhere may be compiled

# Sums may be reordered so that they vectorise. Nothing else: products and quotients stay as IEEE has them.
SUMS = {"reassoc", "nsz"}

# Compiled code allocates no arrays, so it need not count references to them. Counting costs more than the work: two
# atomic operations for each array of a NamedTuple, each time the tuple or a part of it is named.
OPTIONS = {"error_model": "numpy", "_nrt": False}
INNER = {"pipeline_class": InnerCompiler}


@functools.cache
def cache_dir() -> Path:
    """The directory of this version's compiled code (not created here)."""
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr(versions).encode())
    places = [ROOT / name for name in WHERE_COMPILED]
    for file in sorted(file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(file.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "kernelrl" / digest.hexdigest()[:16]


@typing.overload
def compiled(function: F, *, fastmath: Any = False, cache: bool = True, inner: bool = False) -> F: ...
@typing.overload
def compiled(*, fastmath: Any = False, cache: bool = True, inner: bool = False) -> Callable[[F], F]: ...
def compiled(function=None, *, fastmath=False, cache=True, inner=False):
    """Compile `function`; `fastmath` takes a set of LLVM flags, of which `SUMS` is the one we use.

    An `inner` function can be called from compiled code only: Python would crash. What makes a function callable from
    Python is compiled with it and costs a second where an argument is a NamedTuple of dozens of arrays, so only entry
    points have it; and only they are cached, with all that they call.
    """
    if function is None:
        return functools.partial(compiled, fastmath=fastmath, cache=cache, inner=inner)
    options = {**OPTIONS, "fastmath": fastmath, "no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    dispatcher = numba.njit(**options, **(INNER if inner else {}))(function)
    if cache and not inner and not numba.config.DISABLE_JIT:
        dispatcher._cache = CodeCache(function, options, cache_dir())
    return dispatcher


inner = functools.partial(compiled, inner=True)


def in_both(function):
    """A function that compiled code compiles into itself, and that Python runs as it is."""
    return compiled_as(function)(function)


def compiled_as(source, inline=False):
    """For a function of Python's: compiled callers compile `source` into themselves instead.

    With `inline` into their very body: worth it in a loop over calls that do little.
    """
    options = {**OPTIONS, "forceinline": True} if inline else {**OPTIONS, **INNER}

    def register(function):
        overload(function, strict=False, jit_options=options)(lambda *arguments, **more: source)
        return function

    return register


def keep(function):
    """Have a user's function, compiled with numba's own cache, kept in ours."""
    if not numba.config.DISABLE_JIT:
        adopt([function], cache_dir())


class Verb(Protocol):
    """What `generic` makes of a declaration."""

    __name__: str

    def __call__(self, first: Any, /, *rest: Any) -> Any:
        """Do what is implemented for the class of the first argument."""

    def implement(self, cls: type) -> Callable[[F], F]:
        """Take a function that is compiled, for that class."""

    def implement_plain(self, cls: type) -> Callable[[F], F]:
        """Take a function for Python alone, for that class."""

    def is_implemented(self, cls: type) -> bool:
        """Whether there is a function for that class, besides the default."""

    def is_compiled_for(self, cls: type) -> bool:
        """Whether there is a function for that class that compiled code can call."""


@typing.overload
def generic(declaration: Callable[..., Any]) -> Verb: ...


@typing.overload
def generic(*, from_python: Any = None, required: bool = False) -> Callable[[Callable[..., Any]], Verb]: ...


def generic(declaration=None, *, from_python=None, required=False):
    """Make a verb of a declaration, whose body is the default unless an implementation is `required`.

    `@verb.implement(cls)` takes a plain function, with the declaration's argument names, for a NamedTuple class. It is
    compiled into compiled callers, and as an entry point when Python first calls it, unless Python's calls are to go
    to `from_python` instead. `@verb.implement_plain(cls)` leaves a function to Python alone.
    """
    if declaration is None:
        return functools.partial(generic, from_python=from_python, required=required)
    for_python, called = {}, {}
    routed = from_python is not None and not numba.config.DISABLE_JIT

    @functools.wraps(declaration)
    def verb(first, *rest):
        cls = class_of(first)
        return (for_python.get(cls) or default(cls))(first, *rest)

    def default(cls):
        if required:
            raise TypeError(missing(declaration, cls))
        return from_python if routed else declaration

    def find_called(cls):
        return called.get(cls, declaration if not required and cls is not None else None)

    # `overload` goes by argument names, so the resolving function needs those of the declaration.
    names = list(inspect.signature(declaration).parameters)
    scope = {"find": find_called}
    exec(f"def resolve({', '.join(names)}):\n    return find(getattr({names[0]}, 'instance_class', None))", scope)
    overload(verb, strict=False, jit_options={**OPTIONS, **INNER})(scope["resolve"])

    def implement(cls):
        def register(function):
            source = getattr(function, "py_func", function)  # of one that is compiled already
            check_arguments(declaration, cls, source)
            check_first(declaration, cls, source, called.get(cls))
            distinguish(cls)
            code_key.register(cls, declaration.__qualname__, source)
            called[cls] = source
            for_python[cls] = from_python if routed else compiled(source)
            return function

        return register

    def implement_plain(cls):
        def register(function):
            for_python[cls] = function
            return function

        return register

    verb.implement = implement
    verb.implement_plain = implement_plain
    verb.is_implemented = for_python.__contains__
    verb.is_compiled_for = called.__contains__
    return verb


named: dict[str, type] = {}  # the classes that compiled code may be given, by name


def distinguish(cls):
    """Give a class a name that no other class has; its qualified name stays.

    Where Python calls compiled code, numba tells NamedTuples apart by their name and the types of their fields. Of two
    classes of one name, such as a notebook's cell makes that is run again, the second would run the first one's code.
    """
    name, number = cls.__name__, 1
    while named.setdefault(cls.__name__, cls) is not cls:
        number += 1
        cls.__name__ = f"{name}_{number}"


def name_of(cls: type[Any]) -> str:
    """What the user called a class."""
    return cls.__qualname__.rpartition(".")[2]


def missing(declaration, cls):
    """What to say where a class has no implementation of a verb."""
    name, arguments = declaration.__name__, ", ".join(inspect.signature(declaration).parameters)
    return (
        f"{name_of(cls)} does not implement {name}: write a function of ({arguments}) and put "
        f"@{name}.implement({name_of(cls)}) above it"
    )


def check_arguments(declaration, cls, function):
    """Refuse an implementation that does not take the arguments of its verb."""
    wanted, given = (list(inspect.signature(f).parameters) for f in (declaration, function))
    if len(wanted) != len(given):
        raise TypeError(
            f"{declaration.__name__}.implement({name_of(cls)}): {function.__name__} must take {len(wanted)} arguments, "
            f"({', '.join(wanted)}), got ({', '.join(given)})"
        )


def check_first(declaration, cls, function, before):
    """Refuse to replace an implementation by another: what is compiled in this process would go on with the old one."""
    if before is not None and before.__code__ != function.__code__:
        name = name_of(cls)
        raise TypeError(
            f"{declaration.__name__}.implement({name}): {before.__name__} implements it already, and compiled code may "
            f"be using it; define {name} again, too, before this (in a notebook, run the cell of the class first)"
        )
