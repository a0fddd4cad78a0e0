"""The log of samples, the settings as compiled code wants them, and where they place the cells."""

from __future__ import annotations

import math

import numpy as np
import pytest

from from_python import callable_from_python
from kernelrl.geometry.metrics import Lp
from kernelrl.stores import samples as module
from kernelrl.stores.interface import add, grown_for, has_ended, has_room_for, samples_in, start_states
from kernelrl.stores.samples import (
    ACTION,
    STEP,
    TERMINATED,
    Settings,
    cell_widths,
    embedded_box,
    new_samples,
)
from pools import make_settings

pool, row, action_list, has_next = (
    callable_from_python(getattr(module, name)) for name in ("pool", "row", "action_list", "has_next")
)


def test_the_log_keeps_everything_in_order_and_grows():
    rng = np.random.default_rng(0)
    x, y, r = rng.random((7, 3)), rng.random((7, 3)), rng.random(7)
    log = new_samples(3, 2)
    for t in range(7):
        assert samples_in(log) == t and has_room_for(log, None, 1) == (t < log.reward.size)
        log = grown_for(log, None, 1)
        assert has_room_for(log, None, 1) and has_ended(log) == (t > 5)
        assert not add(log, None, x[t], t % 3, r[t], y[t], t % 2, t == 5)
    assert samples_in(log) == log.number[0] == 7 and has_ended(log)
    assert np.array_equal(start_states(log), x[::2])
    assert np.array_equal(log.states[:, :7], [x, y]) and np.array_equal(log.reward[:7], r)
    assert log.labels[STEP, :7].tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert log.labels[ACTION, :7].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert log.labels[TERMINATED, :7].tolist() == [0, 0, 0, 0, 0, 1, 0]


def test_where_the_data_of_a_step_are():
    pooled = make_settings("gaussian", "euclidean", 1, horizon=4, actions=3, stationary=True)
    apart = make_settings("gaussian", "euclidean", 1, horizon=4, actions=3, stationary=False)
    assert [pool(pooled, h) for h in range(4)] == [0] * 4 and [pool(apart, h) for h in range(4)] == [0, 1, 2, 3]
    assert [row(pooled, h) for h in range(4)] == [0, 1, 2, 3] and [row(apart, h) for h in range(4)] == [0] * 4
    assert [action_list(pooled, 3, a) for a in range(3)] == [0, 1, 2]
    assert [action_list(apart, 2, a) for a in range(3)] == [6, 7, 8]
    for settings in (pooled, apart):
        assert not has_next(settings, 0, True) and has_next(settings, 0, False) and has_next(settings, 2, False)
    # data of the last step lead nowhere, unless they serve other steps as well
    assert has_next(pooled, 3, False) and not has_next(apart, 3, False)


def test_settings_have_one_type_each():
    """Or each of them would make everything be compiled again."""
    plain = make_settings("gaussian", "euclidean", 2)
    cast = Settings.of(
        **{
            **plain._asdict(),
            "horizon": np.int32(4),
            "beta": 1,
            "stationary": np.bool_(True),
            "replan": np.int64(0),
        }
    )
    assert [type(value) for value in cast] == [type(value) for value in plain]
    assert cast.beta == 1.0 and cast.stationary is True and cast.horizon == 4


def test_box_of_embeddings():
    low, high = np.array([-1.0, 0.0, -math.inf]), np.array([1.0, 4.0, 5.0])
    space = Lp(2, scale=[0.5, 2.0, 1.0]).space(low, high)
    bottom, top = embedded_box(space, low, high)
    assert bottom.tolist() == [-2.0, 0.0, -math.inf] and top.tolist() == [2.0, 2.0, 5.0]


@pytest.mark.parametrize("interpolate", [True, False])
def test_cells(interpolate):
    settings = make_settings("gaussian", "euclidean", 2, interpolate=interpolate, lipschitz=np.full(4, 40.0))
    assert cell_widths(settings, bounded=False) == (math.inf, math.inf)  # a metric without coordinates has no grid
    weights, cones = cell_widths(settings, bounded=True)
    assert 0 < weights <= settings.reach
    assert 0 < cones <= (4 / 40.0 if interpolate else weights)
    flat = make_settings(
        "gaussian", "euclidean", 2, interpolate=interpolate, lipschitz=np.array([40.0, 40.0, 40.0, 0.0])
    )
    assert cell_widths(flat, bounded=True) == (weights, weights)  # a flat cone reaches everywhere
