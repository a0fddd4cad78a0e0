"""Shapes, types and valid contents of a NamedTuple's arrays, declared beside its fields; used to check loaded agents.

    following: Annotated[np.ndarray, Field("U", np.int64, index="U", none=True)]  # next one of the cell, or -1

A shape has one word per axis: a number, a name, or an expression of names such as `U+1`. Names that begin with a
capital mean the same number in the whole model; other names belong to the tuple, and `S.chunks` is `chunks` of its part
`S`. `U?` is U, or 0 where a new model has 0. `any` is a length that is checked by a function of its own.

A field with `counts="U"` holds how many of the U entries are in use. That size may grow with the data; a size without
a counter must be as in a new model. Only entries in use are checked; the rest must equal `fill`, if it is given.

Besides its type, an array is checked for:

    index="U"           indices of entries in use; with `none` also -1. `index="S"`, a part: see `indices_of`
    least, most         bounds: numbers or expressions of names, where a name stands for the number in use; `Lowest`
                        and `Highest` are the ends of the reward range, `Least` and `Most` the bounds of values
    of="S"              the last axes are those of part S, and only its entries in use are checked
    otherwise           integers from 0 to MOST, finite floats (with `infinite` also +∞), False and True

`Rows` declares an array whose first axis has entries of different meaning. `scratch` arrays are not saved; they are
made again as in a new model. `SCRATCH` declares a whole part that is not saved; the function that `completes` its tuple
makes it. Anything else is checked by a function registered with `checks`, in the file of the class; it is called after
all of the above. Everything here is plain Python, called once per file.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, get_type_hints

import numpy as np

__all__ = [
    "SCRATCH",
    "Field",
    "Rows",
    "check",
    "check_lists",
    "check_shapes",
    "checks",
    "completed",
    "completes",
    "declared",
    "indices_of",
    "require",
    "without_scratch",
]

MOST = 2**53
CHECKS, INDICES, COMPLETIONS = {}, {}, {}


@dataclass(frozen=True)
class Field:
    """What must hold for an array (see the module's docstring)."""

    shape: str
    dtype: Any = np.float64
    index: str = ""
    none: bool = False
    least: Any = None
    most: Any = None
    fill: Any = None
    counts: str = ""
    of: str = ""
    infinite: bool = False
    scratch: bool = False
    rows: tuple = ()


def Rows(*rows, dtype=np.int64):  # noqa: N802 - a kind of Field
    """An array with a Field for each entry of its first axis, all of the same shape and type."""
    rows = tuple(replace(row, dtype=dtype) for row in rows)
    return Field(f"{len(rows)} {rows[0].shape}", dtype, rows=rows)


SCRATCH = Field("", scratch=True)


def declared(cls):
    """The Field of each field of a NamedTuple class, or None."""
    return read_declarations(cls)


@functools.cache
def read_declarations(cls):
    """What `declared` returns."""
    hints = get_type_hints(cls, include_extras=True)
    return {name: next(iter(getattr(hints[name], "__metadata__", ())), None) for name in cls._fields}


def registers(table):
    """A decorator that takes a class and enters the function for it in `table`."""

    def decorate(cls):
        def register(function):
            table[cls] = function
            return function

        return register

    return decorate


checks = registers(CHECKS)  # (where, model): raises ValueError
indices_of = registers(INDICES)  # part → an array of bools: which indices are in use
completes = registers(COMPLETIONS)  # model → the model with its scratch parts


def require(condition, where, what):
    """Raise ValueError unless the condition holds."""
    if not condition:
        raise ValueError(f"array {where}: {what}")


# ------------------------------------------------------------------------------------------------------ what names mean


class Scope:
    """The sizes of a NamedTuple's arrays, and how many of each are in use; `shared` is that of the whole model."""

    def __init__(self, model, shared=None):
        self.model, self.sizes, self.used = model, {}, {}
        self.shared = shared
        if shared is None:
            return
        self.fields = declared(type(model))
        parts = ((name, part) for name, part in model._asdict().items() if hasattr(part, "_fields"))
        self.parts = {name: Scope(part, shared) for name, part in parts if self.fields[name] is not SCRATCH}
        self.arrays = {
            name: array
            for name, array in model._asdict().items()
            if isinstance(array, np.ndarray) and self.fields[name] is not None
        }
        for name, field in self.saved():
            for word, length in zip(field.shape.split(), self.arrays[name].shape, strict=False):
                word = word.removesuffix("?") if length else word
                if word.isidentifier():
                    self.home(word).sizes.setdefault(word, length)
        for _, _, word in self.counters():
            self.home(word).used.setdefault(word, None)

    def home(self, word):
        """Where a name belongs."""
        return self.shared if word[0].isupper() else self

    def saved(self):
        """Names and Fields of the arrays that are saved."""
        return [(name, self.fields[name]) for name in self.arrays if not self.fields[name].scratch]

    def counters(self):
        """Every counter: its field's name, its place in the array, and the name of the size it counts."""
        for name, field in self.saved():
            for i, row in enumerate(field.rows or (field,)):
                if row.counts:
                    yield name, i, row.counts

    def grows(self, word):
        """Whether `word` names a size that has a counter."""
        return word.isidentifier() and word in self.home(word).used

    def size(self, expression):
        """The value of an expression, as the length of an axis."""
        return eval(str(expression), {"max": max}, View(self, False))

    def number(self, expression):
        """The value of an expression in which a name stands for the number in use."""
        return eval(str(expression), {"max": max}, View(self, True))

    def part(self, name):
        """The scope of a part; `name` may also be a property of the NamedTuple."""
        part = getattr(self.model, name, None)
        return next((scope for scope in self.parts.values() if scope.model is part), None)


class View:
    """A scope as expressions see it."""

    def __init__(self, scope, in_use):
        self._scope, self._in_use = scope, in_use

    def __getitem__(self, name):
        for scope in (self._scope, self._scope.shared):
            if self._in_use and scope.used.get(name) is not None:
                return scope.used[name]
            if name in scope.sizes:
                return scope.sizes[name]
        part = self._scope.part(name)
        if part is None:
            raise KeyError(name)
        return View(part, self._in_use)

    def __getattr__(self, name):
        return self[name]


def scope_of(model, sizes):
    """The scope of a whole model, given some of its sizes."""
    shared = Scope(None)
    shared.sizes.update(sizes)
    return Scope(model, shared)


def walk(scope, where=""):
    """A scope and those of its parts, innermost first, each with the prefix of its fields' names."""
    for name, part in scope.parts.items():
        yield from walk(part, f"{where}{name}.")
    yield where, scope


# ------------------------------------------------------------------------------------------------------------- checking


def check(model, new, **sizes):
    """Raise ValueError, naming the array, unless all arrays are as declared.

    `new` is a model with the same hyper-parameters and no data; `sizes` are the known sizes, H and A.
    """
    scope = check_shapes(model, new, **sizes)
    for where, part in walk(scope):
        check_counters(where, part)
    for where, part in walk(scope):
        for name, field in part.saved():
            check_array(f"{where}{name}", part, part.arrays[name], field)
    for where, part in walk(scope):
        if type(part.model) in CHECKS:
            CHECKS[type(part.model)](where, part.model)


def check_shapes(model, new, **sizes):
    """Raise ValueError unless types and shapes are as declared (contents are not read). Return the sizes."""
    scope, fresh = scope_of(model, sizes), scope_of(new, sizes)
    for (where, part), (_, other) in zip(walk(scope), walk(fresh), strict=True):
        for name, array in undeclared(part.model):
            same = array.dtype == getattr(other.model, name).dtype and array.ndim == getattr(other.model, name).ndim
            require(same, where + name, f"its type is {array.dtype}, and it has {array.ndim} axes")
        for name, field in part.saved():
            array, usual, words = part.arrays[name], other.arrays[name].shape, field.shape.split()
            require(array.ndim == len(usual), where + name, f"it has {array.ndim} axes, not {len(usual)}")
            usual = [own if word == "any" else n for word, own, n in zip(words, array.shape, usual, strict=True)]
            expected = shape_of(part, field, usual)
            require(array.dtype == field.dtype, where + name, f"its type is {array.dtype}, not {np.dtype(field.dtype)}")
            require(array.shape == expected, where + name, f"its shape is {array.shape}, not {expected}")
            for word, length, least in zip(words, array.shape, usual, strict=True):
                short = part.grows(word) and length < least
                require(not short, where + name, f"its shape is {array.shape}, and no {word} is below {least}")
    return scope


def undeclared(model):
    """Names and arrays without a declaration, as in a user's own algorithm."""
    fields = declared(type(model))
    return ((name, a) for name, a in model._asdict().items() if isinstance(a, np.ndarray) and fields[name] is None)


def shape_of(scope, field, new):
    """The shape that an array must have if it has the shape `new` in a new model."""
    words = field.shape.split()
    return tuple(
        length if (word.isidentifier() and not scope.grows(word)) or (word.endswith("?") and length == 0)
        else scope.size(word.removesuffix("?"))
        for word, length in zip(words, new, strict=True)
    )  # fmt: skip


def check_counters(where, scope):
    """Read how many entries of each counted size are in use, and check these numbers."""
    for name, i, word in scope.counters():
        number, size = int(scope.arrays[name].reshape(-1)[i]), scope.size(word)
        require(0 <= number <= size, where + name, f"{number} are said to be in use, and there is room for {size}")
        scope.home(word).used[word] = number


def check_array(where, scope, array, field):
    """Check the entries of an array."""
    if field.rows:
        for i, row in enumerate(field.rows):
            if not row.scratch:
                check_array(f"{where}[{i}]", scope, np.asarray(array[i]), row)
        return
    if field.of:
        mask = INDICES[type(scope.part(field.of).model)](scope.part(field.of).model)
        mask = mask[:, : array.shape[-1]]
        behind, array = (array[..., ~mask],), array[..., mask]
    else:
        behind = []
        for axis, word in enumerate(field.shape.split()):
            number = scope.number(word.removesuffix("?"))
            ahead = (slice(None),) * axis
            behind.append(array[(*ahead, slice(number, None))])
            array = array[(*ahead, slice(number))]
    if field.fill is not None:
        as_new = all((rest == field.fill).all() for rest in behind)
        require(as_new, where, f"an entry that is not in use is not {field.fill}")
    if array.size:
        check_entries(where, scope, array, field)


def check_entries(where, scope, array, field):
    """Check entries in use."""
    if field.index:
        check_indices(where, scope, array, field)
        return
    if array.dtype == np.bool_:
        require((array.view(np.uint8) <= 1).all(), where, "an entry is neither False nor True")
        return
    least, most = field.least, field.most
    if array.dtype.kind == "f":
        bad = np.isnan(array) | (array == -np.inf) if field.infinite else ~np.isfinite(array)
        require(not bad.any(), where, f"an entry is {array[bad][0] if bad.any() else 0}")
    elif array.dtype.kind == "i":
        least, most = 0 if least is None else least, MOST if most is None else most
    if least is not None:
        least = scope.number(least)
        require(array.min() >= least, where, f"an entry is {array.min()}, below {least}")
    if most is not None:
        most = scope.number(most)
        require(array.max() <= most, where, f"an entry is {array.max()}, above {most}")


def check_indices(where, scope, array, field):
    """Check that entries are indices of entries in use, or -1 where that is allowed."""
    part = scope.part(field.index)
    valid = None if part is None else INDICES[type(part.model)](part.model).reshape(-1)
    limit, least = scope.number(field.index) if valid is None else valid.size, -1 if field.none else 0
    low, high = int(array.min()), int(array.max())
    inside = least <= low and high < limit
    require(inside, where, f"an index is {low if low < least else high}, not one of {least} … {limit - 1}")
    if valid is not None:
        require(valid[array[array >= 0]].all(), where, f"an index is of nothing in {field.index}")


def check_lists(where, first, following, last=None):
    """Require linked lists: each element is in exactly one list, and each list ends.

    `first` holds the first element of each list, `following` (n,) each element's successor or -1, and `last` the last
    element of each list.
    """
    n = following.size
    named = np.concatenate([first.reshape(-1), following]).astype(np.int64)
    times = np.bincount(named[named >= 0], minlength=n)
    require((times <= 1).all(), where, f"{times.argmax() if n else 0} is in two lists, or twice in one")
    require((times == 1).all(), where, f"{times.argmin() if n else 0} is in no list")
    after = np.append(following, n).astype(np.int64)
    end = np.where(after < 0, np.arange(n + 1), after)  # the last leads to itself, and n stands for no element
    for _ in range(int(n).bit_length() + 1):  # each pass doubles the distance
        end = end[end]
    require((after[end[:n]] < 0).all(), where, "a list never ends")
    if last is not None:
        wanted = np.where(first < 0, -1, end[np.where(first < 0, n, first)])
        require(np.array_equal(wanted, last), where, "the last of a list is not its last")


# ------------------------------------------------------------------------------------------------------ what is scratch


def without_scratch(array, field):
    """An array as it is saved: rows that are scratch are 0."""
    scratch = [i for i, row in enumerate(field.rows) if row.scratch] if field is not None else []
    if scratch:
        array = array.copy()
        array[scratch] = 0
    return array


def completed(model, new, **sizes):
    """The model with scratch arrays that fit its other arrays."""
    return complete(scope_of(model, sizes), scope_of(new, sizes))


def complete(scope, fresh):
    """`completed` for the NamedTuple of a scope."""
    made = {name: complete(part, fresh.parts[name]) for name, part in scope.parts.items()}
    for name, array in scope.arrays.items():
        field = scope.fields[name]
        if field.scratch:
            shape = shape_of(scope, field, fresh.arrays[name].shape)
            made[name] = np.full(shape, 0 if field.fill is None else field.fill, field.dtype)
        else:
            made[name] = without_scratch(array, field)
    model = scope.model._replace(**made)
    return COMPLETIONS[type(model)](model) if type(model) in COMPLETIONS else model
