"""Compiled functions for tests to call. Not in a conftest: there are several, and order decides which is found."""

from __future__ import annotations

import numba

from kernelrl.jit.compile import compiled


def callable_from_python(function, cache=True):
    """A twin of a compiled function that Python may call; calling an `inner` one itself would fail.

    With the JIT disabled every function is a plain one. `cache` must be off where a class made inside a function is
    among the arguments.
    """
    if numba.config.DISABLE_JIT:
        return function
    return compiled(function.py_func, cache=cache, fastmath=function.targetoptions.get("fastmath", False))
