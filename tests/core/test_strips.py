"""Sums of Gaussians in strips against sums over all sources and points; and the rough power of two."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.geometry import strips as module
from kernelrl.geometry.buckets import add_point, new_buckets, payload
from kernelrl.geometry.kernels import LOG2E, ROUGH, rough_power

gather, fineness, lay_out, spread, add = (
    callable_from_python(function)
    for function in (module.gather, module.fineness, module.lay_out, module.spread, add_point)
)


def in_strips(points, marked, sources, changes, radius, sigma, cell):
    """ΔT at each marked point, 0 elsewhere, computed in strips; the points are in the second of two lists."""
    E = new_buckets(2, np.zeros(2), np.array([2.0, 1.0]), cell, chunks=2 * len(points) + 100)
    slots = np.array([add(E, 1, u) for u in points])
    add(E, 0, np.array([0.5, 0.5]))
    marks = payload(E)
    marks.reshape(-1)[slots] = np.where(marked, -1.0, 3.0)
    room = 2 * marks.size
    in_order, index = np.zeros((3, room)), np.zeros((3, room), np.int64)
    n = gather(E, 1, marks, -1.0, index)
    assert n == marked.sum()
    fine = fineness(E.grid, n)
    if fine == 0:
        return None
    scale = np.sqrt(0.5 * LOG2E) / sigma
    places = lay_out(E, n, fine, scale, in_order, index)
    for u, change in zip(sources, changes, strict=True):
        spread(E.grid, fine, scale, in_order, index[module.ENDS], u, change, radius)
    result = np.zeros(marks.size)
    order = index[module.ORDER, :places]
    assert sorted(order[order >= 0]) == sorted(slots[marked])
    result[order[order >= 0]] = in_order[module.SUM, :places][order >= 0]
    return result[slots]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    number=st.integers(256, 900),
    share=st.sampled_from([1.0, 0.7]),
    radius=st.sampled_from([0.0, 0.05, 0.3, 5.0]),
    spill=st.sampled_from([0.0, 0.4]),
    cell=st.sampled_from([0.15, 0.6, np.inf]),
)
def test_sums_in_strips(seed, number, share, radius, spill, cell):
    rng, sigma = np.random.default_rng(seed), 0.07
    points = rng.uniform(-spill, 1.0 + spill, (number, 2)) * [2.0, 1.0]
    points[: number // 10] = points[0]  # some at the same place
    marked = rng.random(number) < share
    sources = np.vstack([rng.uniform(-spill, 1.0 + spill, (20, 2)) * [2.0, 1.0], points[:3]])
    changes = rng.normal(size=len(sources)) * 10.0 ** rng.integers(-8, 1, len(sources))
    result = in_strips(points, marked, sources, changes, radius, sigma, cell)
    if result is None:
        assert marked.sum() < 256 or cell < 0.5  # few points in many cells
        return
    squares = ((points[:, None] - sources) ** 2).sum(axis=2)
    weights = np.where(squares <= radius**2, np.exp(-squares / (2 * sigma**2)), 0.0) * marked[:, None]
    border = (abs(squares - radius**2) < 1e-12).any(axis=1) & (radius > 0.0)
    off = ROUGH * (weights @ abs(changes)) + 1e-15
    assert (abs(result - weights @ changes) <= off)[~border].all()


@pytest.mark.parametrize("largest", [1.0, 40.0, 1000.0])
def test_rough_power(largest):
    z = np.random.default_rng(0).uniform(0.0, largest, 5000)
    assert_allclose([rough_power(value) for value in z], np.exp2(-z), rtol=ROUGH)
    assert rough_power(0.0) == pytest.approx(1.0, rel=ROUGH)
