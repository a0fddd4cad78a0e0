"""How functions are compiled, and how one verb serves every algorithm and environment.

`compiled` is numba's `njit`, kept on disk (`code_cache`) under a key made of all that is compiled: a directory named by
the sources of the package that hold compiled code, and in it a file named by the signature and by a user's own
functions and classes, where there are any (`code_key`). numba's own cache looks only at the file a function is written
in, so a cached caller would go on using the old version of a function that another module changed.

`generic` declares a verb that many classes implement: one function, dispatched on the class of its first argument
(a NamedTuple). From Python that is a dict look-up; from compiled code an `overload`, resolved while compiling, so a
compiled caller is cached like any other and pays nothing per call.

Everything here works with the JIT disabled (`NUMBA_DISABLE_JIT=1`), too.
"""

import functools
import hashlib
import inspect
import os
import sys
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.extending import overload, register_jitable

from kernelrl.jit import code_key
from kernelrl.jit.code_cache import CodeCache, adopt
from kernelrl.jit.inner_code import InnerCompiler

__all__ = ["SUMS", "cache_dir", "compiled", "generic", "in_both", "inner", "keep"]


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
    return register_jitable(**OPTIONS, **INNER)(function)


def keep(function):
    """Have a user's function, compiled with numba's own cache, kept in ours."""
    if not numba.config.DISABLE_JIT:
        adopt([function], cache_dir())


def generic(declaration=None, *, from_python=None, interpreted=False):
    """Make a verb of a declaration.

    `@verb.implement(cls)` takes a plain function, with the declaration's argument names, for a NamedTuple class. It is
    compiled into compiled callers, and as an entry point when Python first calls it, unless Python's calls are to go
    to `from_python` instead, or `interpreted` leaves the function to Python as it is, which is for verbs that do so
    little that compiling them is not worth it. `@verb.implement_plain(cls)` takes a function for Python alone.

    With `inline=True` it is compiled into the very body of its callers. A call hands over every array of the model,
    which costs more than a verb that does little; one that does much is better called: that compiles far sooner.
    """
    if declaration is None:
        return functools.partial(generic, from_python=from_python, interpreted=interpreted)
    for_python, called, inlined = {}, {}, {}

    @functools.wraps(declaration)
    def verb(first, *rest):
        return for_python[type(first)](first, *rest)

    # `overload` goes by argument names, so the resolving function needs those of the declaration.
    names = list(inspect.signature(declaration).parameters)
    for sources, options in ((called, {**OPTIONS, **INNER}), (inlined, {**OPTIONS, "forceinline": True})):
        scope = {"sources": sources}
        exec(
            f"def resolve({', '.join(names)}):\n    return sources.get(getattr({names[0]}, 'instance_class', None))",
            scope,
        )
        overload(verb, strict=False, jit_options=options)(scope["resolve"])

    def implement(cls, inline=False):
        def register(function):
            code_key.register(cls, declaration.__qualname__, inline, function)
            (inlined if inline else called)[cls] = function
            if interpreted:
                for_python[cls] = function
            elif from_python is not None and not numba.config.DISABLE_JIT:
                for_python[cls] = from_python
            else:
                for_python[cls] = compiled(function)
            return function

        return register

    def implement_plain(cls):
        def register(function):
            for_python[cls] = function
            return function

        return register

    verb.implement = implement
    verb.implement_plain = implement_plain
    return verb
