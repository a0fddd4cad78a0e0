"""How functions are compiled, and how one verb serves every algorithm and environment.

`compiled` is numba's `njit` with another cache on disk (`code_cache`). Its key covers everything that is compiled: the
directory is named by a hash of the package's compiled sources, the file in it by a hash of the signature and of the
user's functions and classes, if any (`code_key`). numba's own cache checks only the file a function is written in, so a
cached caller would continue to use the old version of a function that was changed in another file.

`generic` declares a verb that many classes implement: one function, dispatched on the class of its first argument
(a NamedTuple). From Python that is a dict look-up; from compiled code an `overload`, resolved while compiling, so a
compiled caller is cached like any other and pays nothing per call. The body of the declaration is the default for
classes that do not implement the verb, unless an implementation is required.

Everything here also works with the JIT disabled (`NUMBA_DISABLE_JIT=1`).
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
from kernelrl.jit.code_cache import CodeCache, adopt, keep_code
from kernelrl.jit.handles import class_of
from kernelrl.jit.inner_code import EntryCompiler, InnerCompiler
from kernelrl.jit.numba_private import NO_REFERENCES

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
)  # only code in these places may be compiled

# Sums may be reordered so that they vectorise. Nothing else is relaxed: products and quotients follow IEEE 754.
SUMS = {"reassoc", "nsz"}

# Compiled code allocates no arrays, so it need not count references to them. Counting would cost more than the work
# itself: two atomic operations for each array of a NamedTuple, each time the tuple or a part of it is used.
OPTIONS = {"error_model": "numpy", **NO_REFERENCES, "no_cfunc_wrapper": True}
INNER = {"pipeline_class": InnerCompiler, "no_cpython_wrapper": True, "forceinline": False}


@functools.cache
def cache_dir() -> Path:
    """The directory for compiled code of the present sources (not created here)."""
    versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__)
    digest = hashlib.sha256(repr(versions).encode())
    places = [ROOT / name for name in WHERE_COMPILED]
    for file in sorted(file for place in places for file in (place.rglob("*.py") if place.is_dir() else [place])):
        digest.update(str(file.relative_to(ROOT)).encode())
        digest.update(file.read_bytes())
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "kernelrl" / digest.hexdigest()[:16]


@typing.overload
def compiled(
    function: F, *, fastmath: Any = False, cache: bool = True, inner: bool = False, inline: bool = False
) -> F: ...
@typing.overload
def compiled(
    *, fastmath: Any = False, cache: bool = True, inner: bool = False, inline: bool = False
) -> Callable[[F], F]: ...
def compiled(function=None, *, fastmath=False, cache=True, inner=False, inline=False):
    """Compile `function`; `fastmath` takes a set of LLVM flags, such as `SUMS`.

    An `inner` function can be called only from compiled code; a call from Python is a SystemError. The wrapper that
    makes a function callable from Python takes time to compile, so only entry points have one. Only they are cached,
    together with everything they call. In compiled callers an entry point is an inner function, too.

    With `inline` the function's body is copied into its compiled callers. This pays for functions that do little.
    """
    if function is None:
        return functools.partial(compiled, fastmath=fastmath, cache=cache, inner=inner, inline=inline)
    options = {**OPTIONS, "fastmath": fastmath}
    for_callers = functools.cache(lambda: numba.njit(**options, **INNER | {"forceinline": inline})(function))
    if inner or numba.config.DISABLE_JIT:
        return for_callers()
    dispatcher = numba.njit(**options, pipeline_class=EntryCompiler)(function)
    if cache:
        keep_code(dispatcher, CodeCache(function, options, cache_dir()))
    dispatcher.get_call_template = lambda *arguments: for_callers().get_call_template(*arguments)
    dispatcher.get_overload = lambda signature: for_callers().get_overload(signature)
    return dispatcher


inner = functools.partial(compiled, inner=True)


def in_both(function):
    """A function that is compiled into its compiled callers, and that Python runs as plain Python."""
    return compiled_as(function)(function)


def compiled_as(source, inline=False):
    """For a Python function: compiled callers use `source` in its place.

    With `inline` its body is copied into them. This pays in loops over calls that do little.
    """
    options = {**OPTIONS, **INNER, "forceinline": inline}

    def register(function):
        overload(function, strict=False, jit_options=options)(lambda *arguments, **more: source)
        return function

    return register


def keep(function):
    """Keep a user's function that has numba's `cache=True` in this package's cache instead."""
    if not numba.config.DISABLE_JIT:
        adopt([function], cache_dir())


class Verb(Protocol):
    """What `generic` turns a declaration into."""

    __name__: str

    def __call__(self, first: Any, /, *rest: Any) -> Any:
        """Call the implementation for the class of the first argument."""

    def implement(self, cls: type, inline: bool = False) -> Callable[[F], F]:
        """A decorator: the function, which will be compiled, implements the verb for `cls`.

        With `inline` its body is copied into its callers: faster if it does little, but callers take longer to compile.
        """

    def implement_plain(self, cls: type) -> Callable[[F], F]:
        """A decorator: the function implements the verb for `cls` in Python only."""

    def is_implemented(self, cls: type) -> bool:
        """Whether the class has its own implementation, not only the default."""

    def is_compiled_for(self, cls: type) -> bool:
        """Whether the class has an implementation that compiled code can call."""


@typing.overload
def generic(declaration: Callable[..., Any]) -> Verb: ...


@typing.overload
def generic(*, from_python: Any = None, required: bool = False) -> Callable[[Callable[..., Any]], Verb]: ...


def generic(declaration=None, *, from_python=None, required=False):
    """Turn a declaration into a verb; its body is the default unless an implementation is `required`.

    `@verb.implement(cls)` takes a plain function with the declaration's argument names for a NamedTuple class. It is
    compiled into compiled callers. When Python first calls it, it is compiled as an entry point, unless `from_python`
    is given: then Python's calls go there. `@verb.implement_plain(cls)` takes a function for Python only.
    """
    if declaration is None:
        return functools.partial(generic, from_python=from_python, required=required)
    for_python, called, inlined = {}, {}, {}
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
        usual = None if required or cls is None or cls in inlined else declaration
        return called.get(cls, usual)

    # `overload` goes by argument names, so the resolving functions need those of the declaration.
    names = list(inspect.signature(declaration).parameters)
    for find, inline in ((find_called, False), (inlined.get, True)):
        scope = {"find": find}
        exec(f"def resolve({', '.join(names)}):\n    return find(getattr({names[0]}, 'instance_class', None))", scope)
        overload(verb, strict=False, jit_options={**OPTIONS, **INNER, "forceinline": inline})(scope["resolve"])

    def implement(cls, inline=False):
        def register(function):
            source = getattr(function, "py_func", function)  # the function may be compiled already
            check_arguments(declaration, cls, source)
            check_first(declaration, cls, source, called.get(cls) or inlined.get(cls))
            distinguish(cls)
            code_key.register(cls, declaration.__qualname__, source)
            (inlined if inline else called)[cls] = source
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
    verb.is_compiled_for = lambda cls: cls in called or cls in inlined
    return verb


named: dict[str, type] = {}  # by name: the classes that may be passed to compiled code


def distinguish(cls):
    """Give a class a name that no other class has; its qualified name stays.

    When Python calls compiled code, numba tells NamedTuples apart by their name and the types of their fields. If a
    notebook's cell that defines a class is run again, the new class would otherwise run the old one's code.
    """
    name, number = cls.__name__, 1
    while named.setdefault(cls.__name__, cls) is not cls:
        number += 1
        cls.__name__ = f"{name}_{number}"


def name_of(cls: type[Any]) -> str:
    """The name that the user gave a class."""
    return cls.__qualname__.rpartition(".")[2]


def missing(declaration, cls):
    """The error message where a class has no implementation of a verb."""
    name, arguments = declaration.__name__, ", ".join(inspect.signature(declaration).parameters)
    return (
        f"{name_of(cls)} does not implement {name}: write a function of ({arguments}) and put "
        f"@{name}.implement({name_of(cls)}) above it"
    )


def check_arguments(declaration, cls, function):
    """Reject an implementation that does not take the arguments of its verb."""
    wanted, given = (list(inspect.signature(f).parameters) for f in (declaration, function))
    if len(wanted) != len(given):
        raise TypeError(
            f"{declaration.__name__}.implement({name_of(cls)}): {function.__name__} must take {len(wanted)} arguments, "
            f"({', '.join(wanted)}), got ({', '.join(given)})"
        )


def check_first(declaration, cls, function, before):
    """Reject a second implementation: code already compiled in this process would continue to use the first."""
    if before is not None and before.__code__ != function.__code__:
        name = name_of(cls)
        raise TypeError(
            f"{declaration.__name__}.implement({name}): {before.__name__} implements it already, and compiled code may "
            f"be using it; define {name} again, too, before this (in a notebook, run the cell of the class first)"
        )
