"""Slopes of steps, and where they are used, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from from_python import callable_from_python
from kernelrl.stores import slopes as module
from kernelrl.stores.log import Log
from kernelrl.stores.own_steps import MOST, with_slopes
from kernelrl.stores.slopes import new_fit
from naive.deploying import bending, slopes
from pools import make_settings

fit_slopes, shift = callable_from_python(module.fit_slopes), callable_from_python(module.shift)
SHAPES = ((1, 1), (2, 2), (3, 3), (3, 2), (7, 6))  # coordinates of x, with those of related actions, and of y


@pytest.mark.parametrize(("wide", "places"), SHAPES)
@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 30), grid=st.booleans(), same=st.booleans())
def test_fit(wide, places, seed, n, grid, same):
    """Also with ties, duplicates, one sample, and samples that are all at one place."""
    rng = np.random.default_rng(seed)
    x, y, u = rng.normal(size=(n, wide)), rng.normal(size=(n, places)), rng.normal(size=wide)
    if grid:
        x, u = np.round(x), np.round(u)
    if same:
        x[:] = x[0]
    keeps, bends = rng.integers(2, size=(2, places)).astype(float)
    near, but = rng.permutation(n), int(rng.integers(-1, n))
    fit, z = new_fit(MOST, wide, places), np.zeros(places)
    others = near[near != but]
    assert fit_slopes(fit, u, x, y, near, but, keeps) == (len(others) > 0)
    if not len(others):
        return
    t = y - keeps * x[:, :places]
    mean_t, mean_x, B = slopes(u, x[others], t[others])
    assert_allclose(fit.t, mean_t, rtol=1e-9, atol=1e-9)
    assert_allclose(fit.x, mean_x, rtol=1e-9, atol=1e-9)
    assert_allclose(fit.B, B, rtol=1e-7, atol=1e-7)
    shift(fit, u, x[0], y[0], keeps, bends, z)
    expected = y[0] + keeps * (u - x[0])[:places] + bends * ((u - x[0]) @ B)
    assert_allclose(z, expected, rtol=1e-7, atol=1e-7)


def test_lines_are_found():
    """Without noise the slopes are those of the steps, up to the ridge."""
    rng = np.random.default_rng(0)
    x, A = rng.normal(size=(30, 3)), rng.normal(size=(3, 3))
    fit = new_fit(MOST, 3, 3)
    fit_slopes(fit, np.zeros(3), x, x + x @ A, np.arange(30), -1, np.ones(3))
    assert_allclose(fit.B, A, atol=0.03 * np.abs(A).max())


def transitions(rng, n, noise):
    """The first coordinate turns with the second, the second only moves by the action."""
    x, a = rng.random((n, 2)), rng.integers(3, size=n)
    y = x + 0.1 * np.column_stack([3.0 * x[:, 1], a]) + noise * rng.normal(size=(n, 2))
    end = rng.random(n) < 0.1
    labels = np.array([np.zeros(n, np.int64), a, end.astype(np.int64)])
    return x, a, y, end, Log(np.array([x, y]), labels, np.zeros(n), np.array([n]))


@pytest.mark.parametrize("related", [False, True])
@pytest.mark.parametrize("noise", [0.001, 0.5])
def test_where_slopes_are_used(noise, related):
    rng = np.random.default_rng(3)
    x, a, y, end, log = transitions(rng, 400, noise)
    places = np.array([[0.0], [0.1], [0.2]]) if related else np.zeros((3, 0))
    for keeps in (np.ones(2), np.array([1.0, 0.0])):
        found = with_slopes(make_settings("gaussian", "euclidean", 2), log, keeps, places)
        assert found.bends.tolist() == bending(x, a, y, end, keeps, places if related else None).tolist()
        assert found.bends[0] == (noise < 0.1)


def test_without_another_sample():
    for n in (1, 2):
        log = transitions(np.random.default_rng(n), n, 0.0)[-1]
        log.labels[1] = np.arange(n)  # each action once
        found = with_slopes(make_settings("gaussian", "euclidean", 2), log, np.ones(2), np.zeros((3, 0)))
        assert found.bends.tolist() == [0.0, 0.0]
