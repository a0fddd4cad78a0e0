"""What compiled code compiles of the functions that it calls: each of them once, and without an entry from Python."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core import event

from kernelrl.jit.compile import compiled, generic, inner
from kernelrl.jit.handles import Handle

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")


class Shape(NamedTuple):
    """A class for the verb below."""

    side: float


class Listener(event.Listener):
    """Counts which functions are compiled."""

    def __init__(self):
        self.found = Counter()

    def on_start(self, started):
        self.found[started.data["dispatcher"].py_func.__name__] += 1

    def on_end(self, ended):
        pass


def compiled_by(call):
    """How often each function is compiled during a call."""
    listener = Listener()
    with event.install_listener("numba:compile", listener):
        call()
    return listener.found


@generic(required=True)
def area(shape):
    """A verb."""


@area.implement(Shape)
def area_of_shape(shape):
    return shape.side * shape.side


def test_an_entry_point_is_an_inner_function_in_compiled_callers():
    @compiled(cache=False)
    def double(x):
        return 2.0 * x

    @compiled(cache=False)
    def caller(x):
        return double(x) + 1.0

    assert caller(3.0) == 7.0
    assert double.signatures == []
    assert double(3.0) == 6.0
    assert len(double.signatures) == 1


def test_callers_of_all_kinds_share_what_they_call():
    """Whether a caller can be called from Python or is inlined makes no difference to the functions that it calls."""

    @inner
    def called(shape):
        return area(shape) + max(shape.side, 1.0)

    @inner(inline=True)
    def copied(shape):
        return area(shape) - max(shape.side, 1.0)

    @compiled(cache=False)
    def caller(shape):
        return called(shape) + copied(shape) + area(shape) + max(shape.side, 1.0)

    found = compiled_by(lambda: caller(Shape(3.0)))
    assert found["area_of_shape"] == 1
    assert set(found.values()) == {1}


@pytest.mark.parametrize("inline", [False, True])
def test_inlined_implementations_give_the_same(inline):
    class Square(NamedTuple):
        side: float

    @area.implement(Square, inline=inline)
    def area_of_square(shape):
        return shape.side**2

    @compiled(cache=False)
    def caller(shape):
        return area(shape)

    assert area.is_compiled_for(Square)
    assert caller(Square(3.0)) == area(Square(3.0)) == 9.0


class Arrays(NamedTuple):
    """Arrays of several layouts."""

    rows: np.ndarray
    columns: np.ndarray


def test_handles_of_the_same_class_have_the_type_of_their_arrays():
    wide = np.arange(12.0).reshape(3, 4)
    kinds = [Handle(Arrays(wide, other))._numba_type_ for other in (wide, wide[:, ::-1], wide.T, wide.astype(np.int32))]
    assert len({kind.types[1] for kind in kinds}) == 4
    assert [kind.types[1] for kind in kinds] == [numba.typeof(a) for a in (wide, wide[:, ::-1], wide.T, np.int32(wide))]
    assert Handle(Arrays(wide, wide + 1.0))._numba_type_ is kinds[0]

    @compiled(cache=False)
    def corner(arrays):
        return arrays.columns[0, 0]

    assert corner(Handle(Arrays(wide, wide[:, ::-1]))) == 3.0
