"""All that this package uses of numba's inside: names that begin with an underscore, and all of `numba.core`.

numba may change them in any version. What it invites to use is in `numba`, `numba.types` and `numba.extending`, which
any file imports. Therefore its versions are bounded (pyproject.toml), and this is the file to look at when the bound is
raised: `tests/test_cache.py`, `test_inner_code.py` and `test_compile_once.py` try what is here. `import numba` loads
all these modules, so that having them here costs no time.
"""

import itertools
import operator

from numba import _dynfunc
from numba.core import cgutils, event, sigutils
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache, _Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, Flags
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError, TypingError
from numba.core.imputils import lower_constant
from numba.core.serialize import NumbaPickler
from numba.core.typing.templates import AttributeTemplate, signature
from numba.np.numpy_support import as_dtype

__all__ = [
    "NO_REFERENCES", "AttributeTemplate", "Cache", "Compiler", "Dispatcher", "Flags", "FunctionCache", "NumbaError",
    "NumbaPickler", "TypingError", "UnfinishedLibrary", "as_dtype", "cgutils", "event", "final_module", "kept_in",
    "lower_constant", "make_function", "number_functions_from", "put_cache", "rebuilt", "reduced", "signature",
    "sigutils", "type_number",
]  # fmt: skip

Cache = _Cache  # the base class of what numba's dispatchers take as their cache
make_function = _dynfunc.make_function  # the function object for machine code at an address
NO_REFERENCES = {"_nrt": False}  # the option with which compiled code counts no references to arrays
type_number = operator.attrgetter("_code")  # the number by which numba tells types apart, where hashes take longer
final_module = operator.attrgetter("_final_module")  # of a library: the only object that lists what machine code calls


def kept_in(dispatcher):
    """Where numba looks for kept code of a function; None for anything but a dispatcher."""
    return getattr(dispatcher, "_cache", None)


def put_cache(dispatcher, cache):
    """Have numba look for kept code in `cache`."""
    dispatcher._cache = cache


def number_functions_from(first):
    """Have numba number functions from `first` on: it numbers them from 1 in every process, and names code by that."""
    FunctionIdentity._unique_ids = itertools.count(first)


def reduced(result):
    """What numba keeps of compiled code."""
    return result._reduce()


def rebuilt(context, kept):
    """Compiled code, from what was kept of it."""
    return CompileResult._rebuild(context, *kept)


class UnfinishedLibrary(JITCodeLibrary):
    """Code to be linked into callers: it is neither optimised nor made machine code."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalize_dynamic_globals()
        self._finalized = True
