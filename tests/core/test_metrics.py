"""Metrics in their compiled form against plain NumPy: distances, lower bounds, embeddings, and wrong arguments."""

from __future__ import annotations

import math

import gymnasium as gym
import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit
from numpy.testing import assert_allclose

from kernelrl.envs import twin_rooms_fold
from kernelrl.geometry.buckets import AWAY, LANES, WIDTH
from kernelrl.geometry.kernels import exp_negative
from kernelrl.geometry.metrics import (
    METRICS,
    Custom,
    Folded,
    Lp,
    embed,
    gap_squared,
    is_plane,
    resolve_metric,
    squared_distances,
)
from naive import metrics as naive

POWERS = [1.0, 1.5, 2.0, 3.0, math.inf]
LOW, HIGH = np.array([-1.0, 0.0, -3.0, 2.0]), np.array([1.0, 0.5, 1.0, 12.0])
SCALE = np.array([0.5, 2.0, 1.0, 0.1])
# rounded, since the squares of numbers near 1e-200 are no numbers
coordinates = st.one_of(st.sampled_from([-1.0, 0.0, 0.25, 1.0]), st.floats(-3, 3).map(lambda x: round(x, 9)))


def scale_of(kind, d):
    """Public and naive scale."""
    if kind == "box":
        return "box", (HIGH - LOW)[:d]
    if kind == "array":
        return SCALE[:d], SCALE[:d]
    return (0.25, np.full(d, 0.25)) if kind == "number" else (None, None)


def embedded(space, x):
    out = np.empty(len(x))
    embed(space, np.asarray(x, float), out)
    return out


def distances(space, x, states, chunk=1):
    """ρ between `x` and `states` (n, d) by way of a chunk; checks the padding on the way."""
    size, d = states.shape
    n = -(-size // LANES) * LANES
    points = np.full((3, d, WIDTH), AWAY)
    for i, state in enumerate(states):
        points[chunk, :, i] = embedded(space, state)
    out = np.full(WIDTH, -7.0)
    squared_distances(space, points, chunk, size, n, embedded(space, x), out)
    assert (out[n:] == -7.0).all()
    assert all(exp_negative(-0.5 * square) < 1e-300 for square in out[size:n])  # what pads weighs nothing
    return np.sqrt(out[:size])


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_lp_distances(data):
    d = data.draw(st.integers(1, 4))
    p = data.draw(st.sampled_from(POWERS))
    public, plain = scale_of(data.draw(st.sampled_from(["none", "box", "array", "number"])), d)
    state = st.lists(coordinates, min_size=d, max_size=d)
    states = np.array(data.draw(st.lists(state, min_size=1, max_size=20)))
    x = np.array(data.draw(state))
    space = Lp(p, public).space(LOW[:d], HIGH[:d])
    assert_allclose(distances(space, x, states), naive.lp(p, plain)(x[None], states)[0], rtol=1e-12, atol=1e-150)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("p", POWERS)
def test_plane_is_the_euclidean_one(p, d):
    space = Lp(p).space(LOW[:d], HIGH[:d])
    assert bool(is_plane(space, np.zeros(d))) == (p == 2.0 and d == 2)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_gap_is_a_lower_bound(data):
    d = data.draw(st.integers(1, 4))
    p = data.draw(st.sampled_from(POWERS))
    state = st.lists(coordinates, min_size=d, max_size=d)
    states = np.array(data.draw(st.lists(state, min_size=1, max_size=8)))
    x = np.array(data.draw(state))
    space = Lp(p).space(LOW[:d], HIGH[:d])
    box = np.stack([np.full((2, d), 99.0), np.full((2, d), -99.0)])
    box[0, 1], box[1, 1] = states.min(axis=0), states.max(axis=0)
    gap = math.sqrt(gap_squared(space, box, 1, x))
    assert gap <= naive.lp(p)(x[None], states).min() * (1 + 1e-12)
    outside = np.maximum(0.0, np.maximum(box[0, 1] - x, x - box[1, 1]))
    if not outside.any():
        assert gap == 0.0
    else:  # it tells something, or the search would look everywhere
        assert gap >= outside.max() * (1 - 1e-12)
    if p == 2.0:
        assert gap == pytest.approx(math.sqrt((outside**2).sum()), rel=1e-12)


def test_box_scale_divides_by_the_widths():
    space = Lp(2, "box").space(LOW, HIGH)
    assert_allclose(embedded(space, HIGH) - embedded(space, LOW), np.ones(4))


# ------------------------------------------------------------------------------------------------------------ one's own


@njit
def mirror(state, out):
    out[0] = abs(state[0])
    out[1] = state[1]


@njit
def around(x, y):
    across = abs(x[0] - y[0])
    return min(across, 4 - across) + 0.5 * abs(x[1] - y[1])


STATES = np.random.default_rng(3).uniform(-2, 2, (21, 2))
HERE = np.array([0.3, -1.2])


@pytest.mark.parametrize("p", POWERS)
def test_folded(p):
    space = Folded(mirror, Lp(p, [0.5, 2.0])).space(LOW[:2], HIGH[:2])
    rho = naive.folded(lambda x: np.array([abs(x[0]), x[1]]), naive.lp(p, [0.5, 2.0]))
    assert_allclose(distances(space, HERE, STATES), rho(HERE[None], STATES)[0], rtol=1e-12)
    assert distances(space, HERE, HERE[None] * [-1, 1])[0] == 0.0
    assert bool(is_plane(space, HERE)) == (p == 2.0)
    box = np.array([[[1.0, 1.0]], [[2.0, 2.0]]])
    assert gap_squared(space, box, 0, np.array([1.5, 0.0])) == pytest.approx(1.0)


def test_twin_rooms_fold_lays_one_room_over_the_other():
    space = Folded(twin_rooms_fold).space(np.zeros(2), np.array([2.0, 1.0]))
    assert distances(space, np.array([0.25, 0.5]), np.array([[1.25, 0.5], [0.25, 0.5]])).tolist() == [0.0, 0.0]
    assert distances(space, np.array([0.25, 0.5]), np.array([[1.75, 0.5]]))[0] == pytest.approx(0.5)


def test_custom():
    space = Custom(around).space(LOW[:2], HIGH[:2])
    rho = naive.custom(lambda x, y: around(x, y))
    assert_allclose(distances(space, HERE, STATES), rho(HERE[None], STATES)[0], rtol=1e-12)
    assert not is_plane(space, HERE)
    assert gap_squared(space, np.array([[[5.0, 5.0]], [[6.0, 6.0]]]), 0, HERE) == 0.0  # nothing is known of it


def test_one_function_makes_one_space():
    """Or everything would be compiled again for every agent."""
    low, high = LOW[:2], HIGH[:2]
    assert type(Custom(around).space(low, high)) is type(Custom(around).space(low, high))
    assert type(Folded(mirror).space(low, high)) is type(Folded(mirror, Lp(1)).space(low, high))


# ------------------------------------------------------------------------------------------------------------ arguments


def test_names():
    assert {name: metric.p for name, metric in METRICS.items()} == {
        "euclidean": 2,
        "manhattan": 1,
        "chebyshev": math.inf,
    }
    assert resolve_metric("manhattan") == Lp(1)
    metric = Lp(3, [1, 2])
    assert resolve_metric(metric) is metric
    assert resolve_metric(around) == Custom(around)
    assert Folded(mirror, "chebyshev").metric == Lp(math.inf)


def test_equal_metrics_are_equal():
    assert Lp(2, [1, 2]) == Lp(2.0, np.array([1.0, 2.0])) != Lp(2, [1, 3])
    assert hash(Lp(2, [1, 2])) == hash(Lp(2.0, (1.0, 2.0)))


@pytest.mark.parametrize("name", ["euclid", "", "Lp"])
def test_unknown_name(name):
    with pytest.raises(ValueError, match=r"^metric: .* is not known; use one of euclidean, manhattan, chebyshev"):
        resolve_metric(name)


@pytest.mark.parametrize("p", [0.5, 0.0, -1.0, math.nan])
def test_wrong_p(p):
    with pytest.raises(ValueError, match="p must be at least 1"):
        Lp(p)


@pytest.mark.parametrize("scale", [[1.0, 0.0], [-1.0], [math.nan], [math.inf], [[1.0, 2.0]], "widths"])
def test_wrong_scale(scale):
    with pytest.raises(ValueError, match="scale must"):
        Lp(2, scale)


def test_scale_of_another_length():
    with pytest.raises(ValueError, match="metric: scale has 3 entries, but states have 2 coordinates"):
        Lp(2, [1, 2, 3]).space(LOW[:2], HIGH[:2])


@pytest.mark.parametrize("end", [math.inf, 0.0, float(np.finfo(np.float32).max)])
def test_box_scale_needs_a_box(end):
    """The message names the coordinates, and says how to find a scale."""
    with pytest.raises(
        ValueError, match=r'metric: scale="box" needs a state space that is bounded on every axis'
    ) as caught:
        Lp(1, "box").space(np.zeros(4), np.array([1.0, end, 2.0, end]))
    said = f"coordinate 1 goes from 0 to {end:g}, coordinate 3 goes from 0 to {end:g} (counting from 0)"
    for words in (said, "for each of the 4 coordinates", "Lp(1, scale=[…])", "in a few episodes of random actions"):
        assert words in str(caught.value)


def test_the_scale_that_is_suggested_works():
    """Cart-pole's velocities have no bounds: the spread of random episodes is taken."""
    env = gym.make("CartPole-v1")
    with pytest.raises(ValueError, match=r"coordinate 1 goes from -inf to inf, coordinate 3 goes from"):
        Lp(2, "box").space(env.observation_space.low, env.observation_space.high)
    env.action_space.seed(0)
    states = []
    for seed in range(5):
        states.append(env.reset(seed=seed)[0])
        ended = False
        while not ended:
            state, _, terminated, truncated, _ = env.step(env.action_space.sample())
            states.append(state)
            ended = terminated or truncated
    spread = np.ptp(states, axis=0)
    space = Lp(2, spread).space(env.observation_space.low, env.observation_space.high)
    assert_allclose(space.inverse_scale, 1 / spread)


def test_fold_of_something_else():
    with pytest.raises(ValueError, match="metric must be an Lp metric"):
        Folded(mirror, Folded(mirror))


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled with the JIT disabled")
def test_functions_must_be_compiled():
    with pytest.raises(TypeError, match=r"Custom: function must be a compiled function.*@numba\.njit"):
        resolve_metric(lambda x, y: 0.0)
    with pytest.raises(TypeError, match=r"Folded: map must be a compiled function.*@numba\.njit"):
        Folded(lambda x, out: None)


@pytest.mark.parametrize("wrong", [None, 3, [1, 2]])
def test_neither_name_nor_function(wrong):
    with pytest.raises(TypeError, match="must be a compiled function"):
        resolve_metric(wrong)
