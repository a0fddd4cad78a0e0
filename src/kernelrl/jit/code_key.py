"""What machine code depends on: the key under which it is kept on disk.

The package's own sources are covered by the name of the cache directory (see `compile.cache_dir`). The rest is user
code: functions and NamedTuple classes from elsewhere, used by the compiled function or by the classes in its signature.
`Ingredients` follows them as the compiler does and records

    functions    their byte code, default values, closures, the globals that they name, and the file they are in
    classes      their name and fields, and every implementation of a verb that is registered for them
    constants    their type and value, since the compiler freezes them

Stored code is used exactly if all of this is unchanged. Where something cannot be recorded (an object of an unknown
kind, or a function that a user implements by numba's `overload`), `UnknownError` is raised and the machine code is not
kept: each process compiles it again.
"""

import contextlib
import dis
import functools
import hashlib
import sys
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType

import numba
import numpy as np
from numba import types

from kernelrl.jit.handles import Pointer
from kernelrl.jit.numba_private import Dispatcher

__all__ = ["Ingredients", "UnknownError", "classes_of", "is_importable", "register"]

ROOT = Path(__file__).resolve().parent.parent
# The directory's name covers the package's sources and the versions of these two packages.
KNOWN_PLACES = (ROOT, Path(numba.__file__).resolve().parent, Path(np.__file__).resolve().parent)
KNOWN_MODULES = ("kernelrl", "numba", "numpy", "math", "cmath", "builtins", "operator")
CODE_PARTS = (
    "co_name", "co_flags", "co_argcount", "co_kwonlyargcount", "co_posonlyargcount",
    "co_varnames", "co_freevars", "co_cellvars", "co_names", "co_code", "co_exceptiontable",
)  # fmt: skip
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, np.dtype)
SIMPLE_TYPES = (
    types.Number, types.Boolean, types.NoneType, types.Array, types.Omitted, types.Literal, types.UnicodeType,
)  # fmt: skip

implementations: dict[type, dict[str, FunctionType]] = {}  # by class, then by verb


class UnknownError(Exception):
    """An object whose content cannot be recorded, so machine code that depends on it must not be kept."""


def register(cls, verb, function):
    """Remember that `function` implements the verb of that name for `cls`."""
    implementations.setdefault(cls, {})[verb] = function


def classes_of(kinds):
    """The NamedTuple classes of some numba types and of their parts, in a fixed order."""
    found = {}
    for kind in kinds:
        if hasattr(kind, "instance_class"):
            found[kind.instance_class] = None
        found.update(dict.fromkeys(classes_of(getattr(kind, "types", ()))))
    return list(found)


def is_importable(cls):
    """Whether another process can import `cls` by its name."""
    place = sys.modules.get(cls.__module__)
    for name in cls.__qualname__.split("."):
        place = getattr(place, name, None)
    return place is cls and cls.__module__ != "__main__"


@functools.cache
def is_known_file(name):
    """Whether a file belongs to the package, numba or numpy."""
    path = Path(name).resolve()
    return any(place in path.parents for place in KNOWN_PLACES)


def is_known_module(name):
    """Whether a module belongs to the package, numba, numpy or Python's own compiled functions."""
    return (name or "").partition(".")[0] in KNOWN_MODULES


class Ingredients:
    """A list of lines that records everything some machine code depends on."""

    def __init__(self):
        self.lines = []
        self.dispatchers = []  # the user's functions that numba has compiled
        self._seen = {}  # by id; the object is kept, so that its id is not used again

    def digest(self):
        """A digest of all lines."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def write(self, *words):
        """Add a line."""
        self.lines.append(" ".join(map(repr, words)))

    def is_new(self, value, part=None):
        """Whether (that part of) `value` is new; a value seen before is written as its number."""
        new = (id(value), part) not in self._seen
        number, _ = self._seen.setdefault((id(value), part), (len(self._seen), value))
        self.write("object", number)
        return new

    def add_type(self, kind):
        """Record a numba type."""
        if isinstance(kind, types.BaseTuple | Pointer):
            self.write(type(kind).__name__, len(kind.types))
            if hasattr(kind, "instance_class"):
                self.add_class(kind.instance_class)
            for part in kind.types:
                self.add_type(part)
        elif isinstance(kind, types.Dispatcher):
            self.add(kind.dispatcher)
        elif kind is None or isinstance(kind, SIMPLE_TYPES):
            self.write("type", str(kind))
        else:
            raise UnknownError(f"the type {kind}")

    def add_class(self, cls):
        """Record a NamedTuple class and the implementations of its verbs."""
        if self.is_new(cls):
            self.write("class", cls.__module__, cls.__qualname__, cls._fields)
            self.add(cls._field_defaults)
            for verb, function in sorted(implementations.get(cls, {}).items(), key=lambda item: item[0]):
                self.write("verb", verb)
                self.add_function(function)

    def add_function(self, function):
        """Record a function that is compiled."""
        if not self.is_new(function):
            return
        code = function.__code__
        self.write("function", function.__module__, function.__qualname__, code.co_firstlineno)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                self.add(cell.cell_contents)
            except ValueError:
                raise UnknownError(f"{name}, which has no value yet") from None
        if is_known_file(code.co_filename):
            return
        self.add_file(code.co_filename)
        self.add_code(code)
        self.add([function.__defaults__, function.__kwdefaults__])
        names = set(all_names(code))
        for name in sorted(global_names(code) & function.__globals__.keys()):
            self.write("global", name)
            self.add(function.__globals__[name], names)

    def add_file(self, name):
        """Record the source file of a user's function, since the compiler may use other things in it."""
        with contextlib.suppress(OSError):  # notebooks and archives have no such file
            self.write("file", hashlib.sha256(Path(name).read_bytes()).hexdigest())

    def add_code(self, code):
        """Record byte code."""
        self.write("code", *(getattr(code, part, None) for part in CODE_PARTS))
        for constant in code.co_consts:
            self.add(constant)

    def add(self, value, names=()):
        """Record any value; of a user's module only the attributes among `names`."""
        if isinstance(value, Enum):
            self.write("enum", type(value).__module__, type(value).__qualname__, value.name)
            self.add(value.value)
        elif isinstance(value, PLAIN):
            self.write(type(value).__name__, value)
        elif isinstance(value, np.ndarray) and not value.dtype.hasobject:
            contents = hashlib.sha256(value.tobytes()).hexdigest()
            self.write("array", value.dtype, value.shape, value.strides, value.flags.writeable, contents)
        elif isinstance(value, CodeType):
            self.add_code(value)
        elif isinstance(value, tuple | list | dict | set | frozenset):
            self.add_container(value)
        elif isinstance(value, Dispatcher):
            self.dispatchers.append(value)
            self.add(value.targetoptions)
            self.add_function(value.py_func)
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self.add_class(value)
        elif isinstance(value, type) and issubclass(value, Enum):
            self.add(list(value))
        elif isinstance(value, types.Type):
            self.add_type(value)
        elif isinstance(value, ModuleType):
            self.add_module(value, names)
        else:
            self.add_name(value)

    def add_container(self, value):
        """Record a tuple, list, dictionary or set."""
        self.write(type(value).__name__, len(value))
        if hasattr(value, "_fields"):
            self.add_class(type(value))
        items = [item for pair in value.items() for item in pair] if isinstance(value, dict) else value
        for item in sorted(items, key=repr) if isinstance(value, set | frozenset) else items:
            self.add(item)

    def add_module(self, module, names):
        """Record what a function may take from a user's module."""
        self.write("module", module.__name__)
        if is_known_module(module.__name__):
            return
        for name in sorted(vars(module).keys() & names):
            self.write("attribute", name)
            if self.is_new(module, name):
                self.add(vars(module)[name], names)

    def add_name(self, value):
        """Record an object of the package, numba, numpy or Python: its name is enough."""
        name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
        if isinstance(value, FunctionType):
            known = is_known_file(value.__code__.co_filename)
        elif type(value) is type or isinstance(value, BuiltinFunctionType):
            known = is_known_module(value.__module__)
        else:
            known = type(value).__module__.partition(".")[0] == "numpy"
        if not (known and name):
            raise UnknownError(f"{name or repr(value)}, a {type(value).__name__}")
        self.write("name", getattr(value, "__module__", ""), name)


def codes_in(code):
    """A code object and those inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def all_names(code):
    """The names of globals and attributes in byte code."""
    return [name for part in codes_in(code) for name in part.co_names]


def global_names(code):
    """The names of globals in byte code."""
    found = set()
    for part in codes_in(code):
        found |= {line.argval for line in dis.get_instructions(part) if line.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return found
