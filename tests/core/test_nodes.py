"""Gaussian sums by nodes, and patches of a grid, against plain NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelrl.geometry.nodes import add_at_nodes, aim, new_nodes, no_nodes, nodes_fit, read_at_nodes
from kernelrl.jit import patches
from kernelrl.jit.compile import compiled

LOW, HIGH = np.array([-1.0, 0.5]), np.array([1.0, 1.5])
LISTS, LAYERS = 2, 3


@compiled(cache=False)
def add_points(nodes, which, layer, points, amounts):
    """Add points (n, 2); return how many were inside."""
    inside = 0
    for i in range(len(points)):
        at = aim(nodes, points[i, 0], points[i, 1])
        if at >= 0:
            add_at_nodes(nodes, which, layer, at, amounts[i])
            inside += 1
    return inside


@compiled(cache=False)
def read_points(nodes, which, layer, points, out):
    """Read the sums at points (n, 2); NaN outside."""
    for i in range(len(points)):
        at = aim(nodes, points[i, 0], points[i, 1])
        out[i] = read_at_nodes(nodes, which, layer, at) if at >= 0 else math.nan


def read(nodes, which, layer, points):
    out = np.zeros(len(points))
    read_points(nodes, which, layer, points, out)
    return out


def naive_sums(points, amounts, at, sigma):
    squares = ((at[:, None] - points) ** 2).sum(axis=2)
    return np.exp(-squares / (2 * sigma**2)) @ amounts


def some_points(rng, n):
    """Points anywhere in the box, in its corners and edges, and some of them several times."""
    points = LOW + (HIGH - LOW) * rng.random((n, 2))
    points[: n // 4] = np.where(rng.random((n // 4, 2)) < 0.5, LOW, HIGH)
    return points[rng.integers(n, size=n)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.sampled_from([0.03, 0.1, 0.7, 5.0]))
def test_sums(seed, n, sigma):
    rng = np.random.default_rng(seed)
    nodes = new_nodes(LOW, HIGH, sigma, LISTS, LAYERS)
    points, at = some_points(rng, n), some_points(rng, 20)
    amounts = {place: rng.random(n) * 10.0 ** rng.integers(-3, 3) for place in ((0, 0), (0, 2), (1, 1))}
    for (which, layer), amount in amounts.items():
        assert add_points(nodes, which, layer, points, amount) == n
    for which in range(LISTS):
        for layer in range(LAYERS):
            amount = amounts.get((which, layer), np.zeros(n))
            wanted = naive_sums(points, amount, at, sigma)
            # What is missing is relative to the samples, not to their sum at a place that is far from all of them.
            assert_allclose(read(nodes, which, layer, at), wanted, rtol=1e-13, atol=1e-18 * amount.sum())


def test_a_change_is_as_if_the_value_had_been_there_from_the_start():
    rng = np.random.default_rng(0)
    points, before, now = some_points(rng, 50), rng.random(50), rng.random(50)
    nodes = new_nodes(LOW, HIGH, 0.1, 1, 1)
    add_points(nodes, 0, 0, points, before)
    add_points(nodes, 0, 0, points, now - before)
    assert_allclose(read(nodes, 0, 0, points), naive_sums(points, now, points, 0.1), rtol=1e-12)


def test_points_outside_are_told():
    nodes = new_nodes(LOW, HIGH, 0.1, 1, 1)
    outside = np.array([[-1.1, 1.0], [1.2, 1.0], [0.0, 0.4], [0.0, 1.7], [math.nan, 1.0], [math.inf, 1.0]])
    assert add_points(nodes, 0, 0, outside, np.ones(len(outside))) == 0
    assert not nodes.sums.any() and np.isnan(read(nodes, 0, 0, outside)).all()
    assert read(nodes, 0, 0, np.array([LOW, HIGH])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("low", "high", "sigma", "fits"),
    [
        (LOW, HIGH, 0.1, True),
        (LOW, HIGH, 1e-9, False),  # too many nodes
        (LOW, np.array([1.0, math.inf]), 0.1, False),
        (np.zeros(3), np.ones(3), 0.1, False),
        (LOW, LOW, 0.1, True),  # a box without extent
    ],
)
def test_when_there_are_nodes(low, high, sigma, fits):
    assert nodes_fit(low, high, sigma, 4, 2) is fits
    assert no_nodes().sums.size == 0


def test_patches_are_those_of_numpy():
    """The compiled functions and what takes their place with the JIT disabled."""

    @compiled(cache=False)
    def both(grid, first, stride, amount, w):
        patches.add_patch(grid, first, stride, amount, w)
        return patches.read_patch(grid, first, stride, w)

    rng = np.random.default_rng(1)
    grid, w = rng.random((2, 40, 50)), rng.random((2, patches.SPAN))
    plain = grid.copy()
    first, stride = 2000 + 3 * 50 + 7, 50
    patches.add_patch(plain, first, stride, 0.7, w)
    wanted = grid.copy()
    wanted[1, 3 : 3 + patches.SPAN, 7 : 7 + patches.SPAN] += 0.7 * np.outer(w[0], w[1])
    assert_allclose(plain, wanted, rtol=1e-15)
    found = both(grid, first, stride, 0.7, w)
    assert_allclose(grid, wanted, rtol=1e-15)
    assert_allclose([found, patches.read_patch(plain, first, stride, w)], w[0] @ wanted[1, 3:39, 7:43] @ w[1])
