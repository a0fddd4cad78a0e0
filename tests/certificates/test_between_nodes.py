"""Bounds between nodes: equal to the naive version, and each step of the proof on random numbers."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelrl.certifying import nodes as fast
from kernelrl.certifying.bernstein import Bonus
from kernelrl.certifying.cells import Room
from kernelrl.certifying.node_rewards import cone_nodes, function_nodes
from naive import nodes as naive

DELTA, SLOPE = 0.05, 3.0
SHAPES = [(1,), (5,), (1, 1), (3, 2), (2, 2, 2), (1, 2, 1)]


def room_of(counts, rng):
    low = rng.normal(size=len(counts))
    return Room(low, low + rng.uniform(0.5, 2.0, len(counts)), counts)


def problem(counts, seed, samples=(3, 0, 1), lost=(1, 0, 0), still=False):
    """A room, displacements of three actions, and rewards at nodes."""
    rng = np.random.default_rng(seed)
    room, d = room_of(counts, rng), len(counts)
    moves = [rng.normal(scale=rng.choice([0.3, 1.0, 4.0]), size=(n, d)) * room.side for n in samples]
    if still:  # moves by whole cells, one of them twice
        moves = [np.round(m / room.side)[: max(0, len(m) - 1)].repeat(2, axis=0) * room.side for m in moves]
    shape = tuple(n + 1 for n in counts)
    lower = rng.uniform(0.0, 0.5, (len(moves), *shape))
    return room, moves, np.array(lost), (lower, lower + rng.uniform(0.0, 0.3, lower.shape))


def shrunk(bonus, scale):
    """That share of the bonus."""
    return dataclasses.replace(bonus, heights=scale * bonus.heights, slopes=scale * bonus.slopes)


def both(room, moves, lost, rewards, H, slope, scale=1.0):
    statements, none = 2.0, np.zeros(len(room.counts))
    bonus = shrunk(Bonus.of(statements, DELTA), scale)
    own = [fast.moves_of(room, m, int(k)) for m, k in zip(moves, lost, strict=True)]
    found = fast.plan_nodes(room, own, rewards, H, bonus, none, slope)
    spread = [((m - m.mean(axis=0)) ** 2).sum() if len(m) else 0.0 for m in moves]
    units = [m / room.side for m in moves]
    expected = naive.plan(
        room.counts, units, lost, rewards, H, statements, DELTA, fast.SUB, slope=slope, spread=spread, scale=scale
    )
    return found, expected


@settings(max_examples=20, deadline=None)
@given(
    st.sampled_from(SHAPES), st.integers(0, 10**6), st.tuples(*[st.integers(0, 6)] * 3),
    st.tuples(*[st.integers(0, 2)] * 3), st.booleans(), st.sampled_from([None, 0.05]),
)  # fmt: skip
@example((3, 2), 0, (0, 0, 0), (0, 0, 0), False, None)  # no samples
@example((5,), 1, (1, 0, 0), (0, 0, 0), False, None)  # one sample
@example((3, 2), 2, (0, 0, 0), (2, 1, 0), False, None)  # all are censored
@example((3, 2), 3, (6, 6, 6), (0, 0, 0), True, None)  # whole cells, duplicates
def test_equal_to_the_naive_version(counts, seed, samples, lost, still, slope):
    room, moves, lost, rewards = problem(counts, seed, samples, lost, still)
    found, (lower, upper) = both(room, moves, lost, rewards, 3, slope)
    assert_allclose(found.upper, upper, rtol=0, atol=2e-9)
    assert_allclose(found.lower, lower, rtol=0, atol=2e-9)
    assert (found.upper >= upper - 1e-13).all()  # rounded outward
    assert (found.lower <= lower + 1e-13).all()


@pytest.mark.parametrize("counts", [(6,), (2, 3)])
def test_equal_where_values_move(counts):
    """With a small bonus values are neither 0 nor the cap."""
    room, moves, lost, rewards = problem(counts, 5, (15, 10, 12), (0, 0, 1))
    found, (lower, upper) = both(room, moves, lost, rewards, 4, None, 0.05)
    assert_allclose(found.upper, upper, rtol=0, atol=2e-9)
    assert_allclose(found.lower, lower, rtol=0, atol=2e-9)
    assert (found.upper[0] < 3.9).all()
    assert (found.lower[0] > rewards[0].max(axis=0) + 0.1).any()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 10**6), st.booleans())
def test_how_much_a_moved_interpolation_is_bent(counts, seed, far):
    """U(Π(x+D)) against the interpolation of its values at the corners of the cell of x, at many x."""
    rng = np.random.default_rng(seed)
    nodes = rng.normal(size=tuple(n + 1 for n in counts))
    D = rng.normal(scale=10.0 if far else 1.0, size=len(counts))
    cell = np.array([rng.integers(n) for n in counts])
    ends = list(itertools.product((0, 1), repeat=len(counts)))
    at = np.array([naive.interpolated(nodes, cell + e + D) for e in ends]).reshape((2,) * len(counts))
    above = sum(naive.bend(nodes, cell, D, naive.negative))
    below = sum(naive.bend(nodes, cell, D, naive.positive))
    for x in [*rng.random((30, len(counts))), 1.0 - (D - np.floor(D))]:  # the last: where the axes' kinks meet
        difference = naive.interpolated(nodes, cell + x + D) - naive.interpolated(at, x)
        assert -below - 1e-12 <= difference <= above + 1e-12
    if len(counts) == 1:  # the bound is reached at the kink
        assert max(above, below) == pytest.approx(abs(difference), abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 10**6))
def test_choices_by_cell_are_bounds(counts, seed):
    """`lowest_above` is above min(I + rise, constant), `highest_below` below the largest candidate."""
    rng = np.random.default_rng(seed)
    shape = tuple(n + 1 for n in counts)
    candidates = [(rng.normal(size=shape), rng.random(counts)) for _ in range(3)]
    high, low = fast.lowest_above(*candidates[0], 0.7), fast.highest_below(candidates)
    for x in rng.random((40, len(counts))) * counts:
        cell = tuple(np.minimum(x.astype(int), np.array(counts) - 1))
        value = naive.interpolated(candidates[0][0], x) + candidates[0][1][cell]
        assert naive.interpolated(high, x) >= min(value, 0.7) - 1e-12
        best = max(naive.interpolated(z, x) - fall[cell] for z, fall in candidates)
        assert naive.interpolated(low, x) <= best + 1e-12


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(SHAPES), st.integers(0, 10**6), st.integers(0, 30))
def test_rewards_between_nodes(counts, seed, number):
    """Bounds on a function with the given slope hold at random states, also near a kink and where it is cut."""
    rng = np.random.default_rng(seed)
    room = room_of(counts, rng)
    goal = room.low + rng.random(len(counts)) * (room.high - room.low)

    def reward(x, action):
        return np.clip(1.2 - SLOPE * np.linalg.norm(x - goal, axis=-1), 0.0, 1.0)

    states = room.low + rng.random((200, len(counts))) * (room.high - room.low)
    true = reward(states, 0)
    data = room.low + rng.random((number, len(counts))) * (room.high - room.low)
    for lower, upper in (
        function_nodes(room, reward, None, SLOPE, 0.0, 1.0, 0.0), cone_nodes(room, data, reward(data, 0), SLOPE, 0.0),
    ):  # fmt: skip
        assert (fast.interpolate(room, lower, states) <= true + 1e-12).all()
        assert (fast.interpolate(room, upper, states) >= true - 1e-12).all()


def test_rewards_of_a_function_are_close():
    """A multilinear function is its own interpolation, so that only the slack between points of the lattice is left."""
    room = Room(np.zeros(2), np.ones(2), (20, 20))
    lower, upper = function_nodes(room, lambda x, a: 0.2 + 0.3 * x[:, 0] * x[:, 1], None, 0.43, 0.0, 1.0, 0.0)
    assert (upper - lower).max() < 4 * 0.43 * room.half_diagonal / 7


def test_more_actions_than_numpy_can_choose_from():
    """With 40 actions there are 81 candidates."""
    rng = np.random.default_rng(0)
    room = room_of((2,), rng)
    moves = [rng.normal(size=(3, 1)) * room.side for _ in range(40)]
    rewards = np.zeros((40, 3)), np.ones((40, 3))
    found, expected = both(room, moves, np.zeros(40, np.int64), rewards, 2, None, scale=0.01)
    for mine, plain in zip((found.lower, found.upper), expected, strict=True):
        assert_allclose(mine, plain, atol=1e-8)
