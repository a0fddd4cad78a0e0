"""Ranges of rewards that are found from deterministic rewards, and the family that is fixed before the data."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernelrl as krl
from kernelrl.certifying.own_range import NARROWEST, USUAL, bounds_of_rewards, fixed_range, share
from rooms_walked import ROOMS, table

ENV = "kernelrl/TwinRooms-v0"
BOX = np.zeros(1), np.ones(1)


def line(slope):
    return krl.models.Displacement(reward_lipschitz=slope)


def test_shares_add_up_to_less_than_one():
    total = sum(share(k) for k in range(-100_000, 100_001))
    assert 0.74 < total < 0.75


@given(st.floats(-1e6, 1e6), st.floats(0.0, 1e6), st.sampled_from([0.0, 1e-3, 1.0, 40.0]))
def test_the_range_is_one_of_the_family(least, width, slope):
    """It contains the bounds, is not much wider, and its ends and share are those of whole numbers i and k."""
    (start, end), part = fixed_range(line(slope), *BOX, least, least + width)
    assert start <= least and least + width <= end
    unit = slope or 1.0
    k = round(2.0 * math.log2((end - start) / unit))
    i = round(8.0 * start / (unit * 2.0 ** (0.5 * k)))
    assert part == share(k - USUAL) * share(i)
    if k > NARROWEST:
        assert end - start <= 1.62 * width + 1e-9 * abs(least)


@pytest.mark.parametrize("reward_of", ["state", "state-action"])
def test_bounds_of_rewards(reward_of):
    """Above and below the plain bounds at every place, by no more than the cells' sizes allow."""
    rng, slope = np.random.default_rng(0), 3.0
    states, actions = rng.random((30, 1)), np.arange(30) % 2
    rewards = slope * np.abs(states[:, 0] - 0.4)
    model = krl.models.Displacement(reward_lipschitz=slope, reward_of=reward_of)
    least, most = bounds_of_rewards(model, *BOX, states, actions, rewards, states, 2, 5)
    places, below, above = np.linspace(0.0, 1.0, 5001), [], []
    for own in [actions == 0, actions == 1] if reward_of == "state-action" else [actions >= 0]:
        far = slope * np.abs(places[:, None] - states[own, 0])
        below.append((rewards[own] - far).max(axis=1).min())
        above.append((rewards[own] + far).min(axis=1).max())
    assert least <= min(below) <= least + 0.04 and most - 0.04 <= max(above) <= most


def test_an_action_that_was_never_tried():
    model, states = krl.models.Displacement(reward_lipschitz=3.0, reward_of="state-action"), np.full((3, 1), 0.5)
    found = bounds_of_rewards(model, *BOX, states, np.zeros(3, np.int64), np.zeros(3), states, 2, 5)
    assert found == (-math.inf, math.inf)


def test_certificates_without_a_range():
    """They hold, and contain those of the range that is known."""
    rows = table(np.random.default_rng(3), 1000)
    model = krl.models.Displacement(rooms=ROOMS, reward_lipschitz=10.0)
    known, own = (
        krl.certify(rows, model, env=ENV, cell=0.05, progress=False, reward_range=given) for given in ((0, 1), None)
    )
    assert own.reward_range[0] <= 0.0 and own.reward_range[1] >= 1.0
    states = np.array(list(itertools.product((0.1, 0.5, 1.5), (0.1, 0.8))))
    for h in (0, 10, 19):
        for a, b in zip(own.bounds(states, h), known.bounds(states, h), strict=True):
            assert np.isfinite(a).all() and np.isfinite(b).all()
        assert (own.bounds(states, h)[0] <= known.bounds(states, h)[0] + 1e-9).all()
        assert (own.bounds(states, h)[1] >= known.bounds(states, h)[1] - 1e-9).all()


def test_a_room_without_samples():
    rows = table(np.random.default_rng(3), 40)
    left = rows["state"][:, 0] < 1.0
    rows = {name: column[left] if np.ndim(column) else column for name, column in rows.items()}
    model = krl.models.Displacement(rooms=ROOMS, reward_lipschitz=10.0)
    with pytest.raises(ValueError, match=r"reward_range: .* never .* give reward_range=\(lowest, highest\)"):
        krl.certify(rows, model, env=ENV, cell=0.05, progress=False)
