"""What several test modules share."""

from __future__ import annotations

import numba
from hypothesis import settings

from kernelrl.core.compile import compiled

settings.register_profile("kernelrl", deadline=None)  # a loaded machine is no error
settings.load_profile("kernelrl")


def callable_from_python(function, cache=True):
    """A twin of a compiled function that Python may call; calling an `inner` one itself would crash.

    With the JIT disabled every function is a plain one. `cache` must be off where a class made inside a function is
    among the arguments.
    """
    if numba.config.DISABLE_JIT:
        return function
    return compiled(function.py_func, cache=cache, fastmath=function.targetoptions.get("fastmath", False))
