"""Models are passed to compiled code as one address.

A model is a NamedTuple of dozens of arrays, and numba passes each part of each array as a separate argument, through
every function on the way. That was most of the cost of compiling, and of a call from Python. A `Handle` stores the
model in memory in numba's own layout, and compiled code receives the address: `model.field` works as usual, and the
field is loaded where it is used. A NamedTuple inside the model is part of the same memory.

Compiled code cannot replace a field. Python can (`_replace`), and the new model then needs a new handle. The contents
of arrays may change.

With the JIT disabled `hand_over` returns the model itself.
"""

import hashlib

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from kernelrl.jit.numba_private import AttributeTemplate, as_dtype, cgutils, type_number
from kernelrl.jit.owning import owned

__all__ = ["Handle", "Pointer", "class_of", "hand_over", "model_of"]

WORD = 2**64 - 1
NUMBERS = {bool: types.boolean, np.bool_: types.boolean, int: types.int64, np.int64: types.int64, float: types.float64}
NUMBERS[np.float64] = types.float64
array_types = {}  # see `type_of`
pointers = {}  # see `pointer_to`


class Pointer(types.Type):
    """The type of a NamedTuple in memory: its class, and (name, offset in bytes, type) of its fields.

    numba names machine code after its name. It contains the identity of the class, since a process may have two classes
    of the same name.
    """

    def __init__(self, cls, fields):
        self.instance_class, self.fields = cls, fields
        self.places = {name: (offset, kind) for name, offset, kind in fields}
        layout = hashlib.sha256(repr(fields).encode()).hexdigest()[:12]
        self.hash = hash((cls, fields))  # numba asks for it all the time while compiling
        super().__init__(name=f"Pointer({cls.__name__} {id(cls):x} {layout})")

    def __hash__(self):
        return self.hash

    def __reduce__(self):
        return Pointer, (self.instance_class, self.fields)  # the hash is another in every process

    def __eq__(self, other):
        return self is other or (isinstance(other, Pointer) and self.key == other.key)

    @property
    def key(self):
        """What makes two of these types equal."""
        return self.instance_class, self.fields

    @property
    def types(self):
        """The types of the fields."""
        return tuple(kind for _, _, kind in self.fields)


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
    if isinstance(of, Pointer):
        return builder.gep(address, [context.get_constant(types.intp, offset)])
    if isinstance(of, types.Array):
        return load_array(context, builder, of, address, offset)
    data = context.data_model_manager[of]
    return data.from_data(builder, load_word(builder, address, offset, data.get_data_type()))


def load_word(builder, address, offset, kind):
    """The 64-bit word at `offset` bytes, as an LLVM type; it never changes while compiled code runs."""
    place = builder.gep(address, [ir.Constant(ir.IntType(64), offset)])
    loaded = builder.load(builder.bitcast(place, kind.as_pointer()))
    loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
    return loaded


def load_array(context, builder, kind, address, offset):
    """An array, part by part: of a load of all parts at once LLVM would forget that they never change."""
    layout, word = context.data_model_manager[kind], ir.IntType(64)
    shape = [load_word(builder, address, offset + 8 * (3 + j), word) for j in range(2 * kind.ndim)]
    parts = {
        "nitems": load_word(builder, address, offset, word),
        "itemsize": ir.Constant(word, as_dtype(kind.dtype).itemsize),
        "data": load_word(builder, address, offset + 16, context.get_data_type(kind.dtype).as_pointer()),
        "shape": cgutils.pack_array(builder, shape[: kind.ndim]),
        "strides": cgutils.pack_array(builder, shape[kind.ndim :]),
    }
    array = ir.Constant(layout.get_value_type(), None)  # numba's own way, by memory, takes twice as many instructions
    for name, part in parts.items():
        array = builder.insert_value(array, part, layout.get_field_position(name))
    return array


class Handle:
    """A model laid out in memory. It keeps the model and its arrays alive."""

    __slots__ = ("_numba_type_", "address", "cls", "memory", "model")

    def __init__(self, model):
        words = []
        self.model, self.cls = model, type(model)
        self._numba_type_ = lay_out(model, words)
        self.memory = np.array(words, np.uint64)
        self.address = self.memory.ctypes.data

    def __reduce__(self):
        return hand_over_owned, (self.model,)


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
            kind = NUMBERS.get(type(value)) or numba.typeof(value)
            number = np.float64(value) if isinstance(value, float) else np.int64(value)
            words.append(int(number.view(np.uint64)))
        else:
            cls = type(part).__name__
            raise TypeError(f"{cls}.{name}: a model holds arrays, numbers and NamedTuples, got {value!r}")
        fields.append((name, offset, kind))
    return pointer_to(type(part), fields)


def pointer_to(cls, fields):
    """The type of a NamedTuple, found by the numbers that numba gives its fields' types: their hashes take longer."""
    key = cls, *(type_number(kind) for _, _, kind in fields)
    if key not in pointers:
        pointers[key] = Pointer(cls, tuple(fields))
    return pointers[key]


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


def hand_over_owned(model):
    """The same with arrays of its own, for pickled handles."""
    return hand_over(owned(model))


def model_of(model):
    """The model itself, of a model or of its handle."""
    return model.model if isinstance(model, Handle) else model


def class_of(model):
    """The class of a model, given as itself or as a handle."""
    return model.cls if isinstance(model, Handle) else type(model)
