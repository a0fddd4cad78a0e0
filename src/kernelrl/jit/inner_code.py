"""How inner functions, called only from compiled code, are compiled: without optimisation or machine code of their own.

numba optimises every function and generates its machine code, and then does so again inside each of its callers. For
inner functions the first pass is wasted; it took half of the compile time. It also did harm. If a process contains two
compiled copies of a function, the linker takes the first one. Reordered sums can differ in the last bit between the two
copies, so a process that had compiled gave other bits than one that found the same code in the cache. Without machine
code of its own, an inner function exists only inside its callers.

numba resolves a call by the argument types and by the caller's flags, which it compares one by one, option by option.
That was a tenth of the compile time, and a function was compiled again for callers that differ only in their wrappers.
Here such callers share one object, `CallerFlags`.

numba also has LLVM parse a module for the size of each variable's type; `size_of` remembers them.
"""

import ctypes
import functools
import sys

from kernelrl.jit.numba_private import Compiler, Flags, UnfinishedLibrary, make_function

__all__ = ["EntryCompiler", "InnerCompiler"]

OF_NO_CONCERN = ("no_cpython_wrapper", "no_cfunc_wrapper", "forceinline")  # flags that do not matter to callees
known = {}  # the CallerFlags of this process


class CallerFlags(Flags):
    """What the functions that a function calls are told of its flags; equal ones are the same object."""

    __slots__ = ("number",)

    def __hash__(self):
        return self.number


class OwnFlags(Flags):
    """The flags of a function. numba asks for a copy, to show it to the functions that are called."""

    __slots__ = ()

    def copy(self):
        """The flags without those that do not matter to the functions that are called."""
        shown = CallerFlags(self)
        for name in OF_NO_CONCERN:
            shown.discard(name)
        shown.number = super().__hash__()
        return known.setdefault(shown, shown)


@functools.cache
def size_of(kind, data):
    """The size of an LLVM type in bytes."""
    return kind.get_abi_size(data)


class EntryCompiler(Compiler):
    """numba's compiler, with flags as above."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        super().__init__(typingctx, targetctx, library, args, return_type, OwnFlags(flags), locals)
        context = self.state.targetctx
        context.get_abi_sizeof = lambda kind: size_of(kind, context.target_data)


@ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
def refuse(self, arguments, names):
    """Called when Python calls an inner function: print why, and end in a SystemError."""
    print("kernelrl: an inner function was called from Python; only compiled code may call it", file=sys.stderr)


def without_machine_code(library, fndesc, env):
    """The placeholder for an inner function's machine code in numba's tables."""
    name, address = fndesc.qualname.split(".")[-1], ctypes.cast(refuse, ctypes.c_void_p).value
    return make_function(fndesc.lookup_module(), name, "inner", address, env, (library,))


class InnerCompiler(EntryCompiler):
    """numba's compiler, writing to an `UnfinishedLibrary`; both replacements apply to one compilation only."""

    def __init__(self, typingctx, targetctx, library, args, return_type, flags, locals):
        library = UnfinishedLibrary(targetctx.codegen(), "inner")
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
        self.state.targetctx.get_executable = without_machine_code
