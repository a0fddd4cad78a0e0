"""Models are passed to compiled code as one address.

A model is a NamedTuple of dozens of arrays, and numba passes each part of each array as a separate argument, through
every function on the way. That was most of the cost of compiling, and of a call from Python. A `Handle` stores the
model in memory in numba's own layout, and compiled code receives the address: `model.field` works as usual, and the
field is loaded where it is used. A NamedTuple inside the model is part of the same memory.

Compiled code cannot replace a field. Python can (`_replace`), and the new model then needs a new handle. The contents
of arrays may change.

With the JIT disabled `hand_over` returns the model itself.
"""

import functools
import hashlib

import numba
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

__all__ = ["Handle", "Pointer", "class_of", "hand_over"]

WORD = 2**64 - 1
array_types = {}  # see `type_of`


class Pointer(types.Type):
    """The type of a NamedTuple in memory: its class, and (name, offset in bytes, type) of its fields.

    numba names machine code after its name. It contains the identity of the class, since a process may have two classes
    of the same name.
    """

    def __init__(self, cls, fields):
        self.instance_class, self.fields = cls, fields
        self.places = {name: (offset, kind) for name, offset, kind in fields}
        layout = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
        super().__init__(name=f"Pointer({cls.__name__} {id(cls):x} {layout})")

    @property
    def key(self):
        """What makes two of these types equal."""
        return self.instance_class, self.fields

    @property
    def types(self):
        """The types of the fields."""
        return tuple(kind for _, _, kind in self.fields)


pointer_to = functools.cache(Pointer)
register_model(Pointer)(models.OpaqueModel)


@infer_getattr
class PointerFields(AttributeTemplate):
    """The type of `model.field`."""

    key = Pointer

    def generic_resolve(self, kind, field):
        """The type of the field, or None if there is no such field."""
        return kind.places.get(field, (0, None))[1]


@lower_getattr_generic(Pointer)
def load_field(context, builder, kind, address, field):
    """Load a field. It does not change while compiled code runs, so LLVM may load it once and keep it."""
    offset, of = kind.places[field]
    place = builder.gep(address, [context.get_constant(types.intp, offset)])
    if isinstance(of, Pointer):
        return place
    if isinstance(of, types.Array):
        return load_array(context, builder, of, place)
    data = context.data_model_manager[of]
    return data.from_data(builder, load_word(builder, place, 0, data.get_data_type()))


def load_word(builder, place, number, kind):
    """The 64-bit word of that number at `place`, as an LLVM type; it never changes while compiled code runs."""
    address = builder.gep(place, [ir.Constant(ir.IntType(64), 8 * number)])
    loaded = builder.load(builder.bitcast(address, kind.as_pointer()))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def load_array(context, builder, kind, place):
    """An array, part by part: of a load of all parts at once LLVM would forget that they never change."""
    array, word = context.make_array(kind)(context, builder), ir.IntType(64)
    parts = [load_word(builder, place, 3 + j, word) for j in range(2 * kind.ndim)]
    array.meminfo = context.get_constant_null(types.MemInfoPointer(kind.dtype))
    array.parent = context.get_constant_null(types.pyobject)
    array.nitems = load_word(builder, place, 0, word)
    array.itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    array.data = load_word(builder, place, 2, context.get_data_type(kind.dtype).as_pointer())
    array.shape = cgutils.pack_array(builder, parts[: kind.ndim])
    array.strides = cgutils.pack_array(builder, parts[kind.ndim :])
    return array._getvalue()


class Handle:
    """A model laid out in memory. It keeps the model and its arrays alive."""

    __slots__ = ("_numba_type_", "address", "cls", "memory", "model")

    def __init__(self, model):
        words = []
        self.model, self.cls = model, type(model)
        self._numba_type_ = lay_out(model, words)
        self.memory = np.array(words, np.uint64)
        self.address = self.memory.ctypes.data


def lay_out(part, words):
    """Append the 64-bit words of a NamedTuple to `words`, and return its type. Called each time that arrays grow."""
    start, fields = len(words), []
    for name, value in zip(part._fields, part, strict=True):
        offset = 8 * (len(words) - start)
        if isinstance(value, np.ndarray):  # number of entries, bytes per entry, address, shape, strides
            kind = type_of(value)
            words += (value.size, value.itemsize, value.__array_interface__["data"][0], *value.shape)
            words += [number & WORD for number in value.strides]
        elif hasattr(value, "_fields"):
            kind = lay_out(value, words)
        elif isinstance(value, bool | int | float | np.bool_ | np.int64):
            kind = numba.typeof(value)
            number = np.float64(value) if isinstance(value, float) else np.int64(value)
            words.append(int(number.view(np.uint64)))
        else:
            cls = type(part).__name__
            raise TypeError(f"{cls}.{name}: a model holds arrays, numbers and NamedTuples, got {value!r}")
        fields.append((name, offset, kind))
    return pointer_to(type(part), tuple(fields))


def type_of(array):
    """The type of an array, as `numba.typeof` makes it, which takes much longer."""
    key = type(array), array.dtype, array.ndim, array.flags.num
    if key not in array_types:
        array_types[key] = numba.typeof(array)
    return array_types[key]


@typeof_impl.register(Handle)
def typeof_handle(handle, context):
    """The type that was made with the handle."""
    return handle._numba_type_


@unbox(Pointer)
def unbox_handle(kind, handle, c):
    """Turn the Python object into its address."""
    number = c.pyapi.object_getattr_string(handle, "address")
    address = c.pyapi.long_as_voidptr(number)
    c.pyapi.decref(number)
    return NativeValue(address)


def hand_over(model):
    """The model in the form that compiled entry points take; a handle is returned unchanged."""
    return model if numba.config.DISABLE_JIT or isinstance(model, Handle) else Handle(model)


def class_of(model):
    """The class of a model, given as itself or as a handle."""
    return model.cls if isinstance(model, Handle) else type(model)
