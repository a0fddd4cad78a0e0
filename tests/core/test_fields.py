"""Declarations of arrays: what they say is checked, and everything that is saved is declared."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import gymnasium as gym
import numpy as np
import pytest

import edited_files
from kernelrl.agents import storage
from kernelrl.jit.fields import (
    SCRATCH,
    Field,
    Rows,
    check,
    check_lists,
    checks,
    completed,
    completes,
    declared,
    require,
)


class Part(NamedTuple):
    items: Annotated[np.ndarray, Field("items 2", fill=0)]
    used: Annotated[np.ndarray, Field("1", np.int64, counts="items")]


class Cache(NamedTuple):
    sums: np.ndarray


class Model(NamedTuple):
    part: Part
    other: Part
    cache: Annotated[Cache, SCRATCH]
    number: Annotated[np.ndarray, Rows(Field("", counts="U"), Field("", most="U"))]
    next: Annotated[np.ndarray, Field("U", np.int32, index="U", none=True, fill=-1)]
    kind: Annotated[np.ndarray, Field("U", np.uint32, index="A")]
    weight: Annotated[np.ndarray, Field("U A", least=0, most="A+1")]
    best: Annotated[np.ndarray, Field("U", infinite=True)]
    lost: Annotated[np.ndarray, Field("U? A")]
    which: Annotated[np.ndarray, Field("A", np.int64, index="part.items", none=True)]
    flags: Annotated[np.ndarray, Field("A", np.bool_)]
    of_part: Annotated[np.ndarray, Field("part.items A")]
    scratch: Annotated[np.ndarray, Field("U+1 max(part.items,other.items)", scratch=True, fill=-1)]

    @property
    def alias(self):
        return self.other


@checks(Model)
def check_model(where, model):
    require(model.kind[0] != 1, f"{where}kind", "the first is 1")


@completes(Model)
def complete_model(model):
    return model._replace(cache=Cache(np.zeros(len(model.next))))


def new(U=4, items=3):
    part = Part(np.zeros((items, 2)), np.zeros(1, np.int64))
    return Model(
        part, part, Cache(np.zeros(U)), np.zeros(2, np.int64), np.full(U, -1, np.int32), np.zeros(U, np.uint32),
        np.zeros((U, 2)), np.full(U, np.inf), np.zeros((0, 2)), np.full(2, -1), np.zeros(2, np.bool_),
        np.zeros((items, 2)), np.full((U + 1, items), -1.0),
    )  # fmt: skip


def full(U=6, items=5):
    """A model with three of U and two of the part's items in use."""
    model = new(U, items)
    part = Part(model.part.items.copy(), np.array([2]))
    part.items[:2] = 7.0
    model.number[:] = 3, 2
    model.next[:3] = 1, 2, -1
    model.which[:] = 1, 0
    return model._replace(part=part)


def checked(model):
    check(model, new(), A=2)


def test_what_is_right():
    checked(new())
    checked(full())
    made = completed(full()._replace(scratch=np.zeros(0), cache=Cache(np.zeros(0))), new(), A=2)
    assert made.scratch.shape == (7, 5) and (made.scratch == -1).all() and made.cache.sums.shape == (6,)


@pytest.mark.parametrize(
    ("field", "change", "why"),
    [
        ("number", [7, 0], r"number: 7 are said to be in use, and there is room for 6"),
        ("number", [-1, 0], r"number: -1 are said"),
        ("number", [3, 4], r"number\[1\]: an entry is 4, above 3"),
        ("number", [3, -1], r"number\[1\]: an entry is -1, below 0"),
        ("next", [1, 3, -1, -1, -1, -1], r"next: an index is 3, not one of -1 … 2"),
        ("next", [1, -2, -1, -1, -1, -1], r"next: an index is -2"),
        ("next", [1, 2, -1, -1, 0, -1], r"next: an entry that is not in use is not -1"),
        ("kind", [0, 2, 0, 0, 0, 0], r"kind: an index is 2, not one of 0 … 1"),
        ("kind", [1, 0, 0, 0, 0, 0], r"kind: the first is 1"),
        ("weight", [[0, 3.5]] * 6, r"weight: an entry is 3.5, above 3"),
        ("weight", [[0, -1]] * 6, r"weight: an entry is -1.0, below 0"),
        ("weight", [[0, np.nan]] * 6, r"weight: an entry is nan"),
        ("weight", [[0, np.inf]] * 6, r"weight: an entry is inf"),
        ("best", [-np.inf] * 6, r"best: an entry is -inf"),
        ("best", [np.nan] * 6, r"best: an entry is nan"),
        ("which", [2, 0], r"which: an index is 2, not one of -1 … 1"),
        ("which", [-2, 0], r"which: an index is -2"),
        ("lost", np.zeros((6, 2)), r"lost: its shape is \(6, 2\), not \(0, 2\)"),
        ("of_part", np.zeros((4, 2)), r"of_part: its shape is \(4, 2\), not \(5, 2\)"),
        ("kind", np.zeros(5, np.uint32), r"its shape is"),
        ("kind", np.zeros((6, 1), np.uint32), r"kind: it has 2 axes, not 1"),
        ("best", np.zeros(6, np.float32), r"best: its type is float32, not float64"),
        ("flags", np.array([0, 2], np.uint8).view(np.bool_), r"flags: an entry is neither False nor True"),
    ],
)
def test_what_is_wrong(field, change, why):
    model = full()
    array = change if isinstance(change, np.ndarray) else np.array(change, getattr(model, field).dtype)
    with pytest.raises(ValueError, match=f"array {why}" if not why.startswith("its") else why):
        checked(model._replace(**{field: array}))


def test_no_size_is_below_that_of_a_new_model():
    """Or growing by half would never come to an end."""
    with pytest.raises(ValueError, match="no U is below 4"):
        checked(full(U=3)._replace(next=np.array([1, 2, -1], np.int32)))


def test_parts_have_sizes_of_their_own():
    checked(full(items=9)._replace(other=new().other))
    with pytest.raises(ValueError, match=r"array other\.used: 4 are said"):
        checked(full()._replace(other=Part(np.zeros((3, 2)), np.array([4]))))


@pytest.mark.parametrize(
    ("first", "following", "last", "why"),
    [
        ([0, 2], [1, -1, -1], [1, 2], None),
        ([2, -1], [1, -1, 0], [1, -1], None),
        ([], [], [], None),
        ([0, 1], [1, -1, -1], None, "in two lists"),
        ([0, -1], [1, -1, -1], None, "in no list"),
        ([0, -1], [-1, 2, 1], None, "never ends"),
        ([-1, -1], [0, 1, 2], None, "never ends"),
        ([0, 2], [1, -1, -1], [0, 2], "not its last"),
        ([0, 2], [1, -1, -1], [1, -1], "not its last"),
    ],
)
def test_lists(first, following, last, why):
    arguments = (np.array(a, np.int64) if a is not None else None for a in (first, following, last))
    if why is None:
        check_lists("lists", *arguments)
        return
    with pytest.raises(ValueError, match=f"array lists: .*{why}"):
        check_lists("lists", *arguments)


def test_long_lists():
    n = 5000
    following = np.append(np.arange(1, n), -1)
    check_lists("lists", np.array([0]), following, np.array([n - 1]))
    following[-1] = 1
    with pytest.raises(ValueError, match="twice in one"):
        check_lists("lists", np.array([0]), following)


def fields_of(model, prefix=""):
    """Every array that is saved, with its Field."""
    for name, value in model._asdict().items():
        field = declared(type(model))[name]
        if field is SCRATCH or prefix.startswith("settings."):
            continue
        if hasattr(value, "_fields"):
            yield from fields_of(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            yield prefix + name, value, field


@pytest.mark.parametrize("name", edited_files.AGENTS)
def test_everything_is_declared(name):
    """An array without a declaration is not checked when an agent comes out of a file."""
    agent, env = edited_files.AGENTS[name](), gym.make("kernelrl/TwinRooms-v0")
    agent.start(env.observation_space, env.action_space, 5, seed=0)
    found = list(fields_of(agent.model))
    assert found
    for path, array, field in found:
        assert field is not None, f"{path} is not declared"
        assert len(field.shape.split()) == array.ndim and array.dtype == field.dtype, path
    saved = {path for path, _ in storage.arrays_of(agent.model)}
    assert {path for path, _, field in found if not field.scratch} <= saved
