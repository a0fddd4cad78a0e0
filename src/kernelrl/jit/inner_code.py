"""How functions that only compiled code calls are compiled: not optimised by themselves, and without machine code.

numba optimises every function fully, makes machine code of it, and does so again inside each of its callers. For inner
functions the first is wasted: half of the time that compiling takes. And it is not harmless. Where the same function
has been made into machine code twice in one process, the linker takes the copy that came first; sums that may be
reordered can come out different in the last bit in the two, and so a process that had compiled gave other bits than one
that found the same code in the cache. An inner function that has no code of its own leaves one copy to choose from.
"""

import ctypes
import sys

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler

__all__ = ["InnerCompiler"]


class InnerLibrary(JITCodeLibrary):
    """Code to be linked into callers."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True


@ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
def refuse(self, arguments, names):
    """Python calls an inner function: end in a SystemError."""
    print("kernelrl: an inner function was called from Python; only compiled code may call it", file=sys.stderr)


def without_machine_code(library, fndesc, env):
    """What stands for the machine code of an inner function in numba's tables."""
    name, address = fndesc.qualname.split(".")[-1], ctypes.cast(refuse, ctypes.c_void_p).value
    return _dynfunc.make_function(fndesc.lookup_module(), name, "inner", address, env, (library,))


class InnerCompiler(Compiler):
    """numba's compiler, writing to an `InnerLibrary`; both replacements are local to one compilation."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        library = InnerLibrary(targetctx.codegen(), "inner")
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
        self.state.targetctx.get_executable = without_machine_code
