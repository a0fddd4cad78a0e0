"""Simulated episodes, in which plans to deploy are compared, against plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents import deploying
from kernelrl.planning import rehearsal as module
from kernelrl.planning.rehearsal import Rehearsal, better_than
from kernelrl.stores.log import Log
from kernelrl.stores.own_steps import Displacement
from kernelrl.stores.units import units_of
from naive.deploying import rehearsed
from pools import make_settings

H, A = 4, 3


def policy(state, h):
    """Some policy of embedded states."""
    return int(np.floor(10.0 * state[0]) + h) % A


def play_by_policy(planned, states, h, q, actions):
    """In place of the policy of a plan."""
    actions[:] = [policy(state, h) for state in states]


@pytest.mark.parametrize("related", [False, True])
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 60), grid=st.booleans(), same=st.booleans(), known=st.integers(1, A),
    ending=st.sampled_from([0.0, 0.2, 1.0]), scales=st.sampled_from([(1.0, 1.0), (0.5, 4.0)]),
)  # fmt: skip
def test_against_naive(related, seed, n, grid, same, known, ending, scales):
    """Also with ties, duplicates, one sample, actions that were never tried, and samples that all end an episode."""
    rng, scale = np.random.default_rng(seed), np.array(scales)
    x = np.round(rng.random((n, 2)), 1 if grid else 9)
    if same:
        x[:] = x[0]
    y = x + 0.1 * rng.normal(size=(n, 2)) * (not same)
    a, r = rng.integers(known, size=n), rng.choice([-1.0, 0.5, 2.0], size=n)
    end, step = rng.random(n) < ending, rng.integers(H, size=n)
    places = rng.random((A, 1)) if related else np.zeros((A, 0))
    keeps, bends = rng.integers(2, size=(2, 2)).astype(float)
    metric = krl.metrics.Lp(2.0, scales)
    given_settings = make_settings("gaussian", metric, 2)
    given_settings = given_settings._replace(horizon=H, actions=A, units=units_of(-1.0, 2.0))
    log = Log(np.array([x, y]), np.array([step, a, end.astype(np.int64)]), r, np.array([n]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "choose_actions", play_by_policy)
        patch.setattr(module, "hand_over", lambda planned: planned)
        found = Rehearsal(given_settings, log, Displacement(keeps, bends, places)).returns(None)
    rows = list(zip(x, a, (r + 1.0) / 3.0, y, step, end, strict=True))
    ways = (keeps, bends, places if related else None, scale)
    expected = rehearsed(lambda state, h: policy(state / scale, h), rows, H, A, 1.0 / 3.0, *ways)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_which_is_better():
    usual = np.array([1.0, 2.0, 3.0, 4.0])
    assert better_than(usual, [usual, usual]) is None
    assert better_than(usual, [usual - 1.0, usual + 0.5, usual + 1.0]) == 2
    unsure = usual + np.array([9.0, -8.0, 9.0, -8.0])  # 0.5 more, with a standard error of 4.9
    assert better_than(usual, [unsure]) is None
    assert better_than(usual, [unsure, usual + 0.1]) == 1


def square_world(**options):
    agent = krl.KernelUCBVI(**options)
    agent.fit("kernelrl/SquareWorld-v0", 25, seed=1, progress=False)
    return agent


def test_a_bad_plan_does_not_spoil_the_policy(monkeypatch):
    """The first plan is turned into the worst one: the mean is bad then, and one of the others is deployed."""
    good = square_world().evaluate("kernelrl/SquareWorld-v0", 50).mean
    plan_merged, made = deploying.plan_merged, []

    def spoilt(plan, *others):
        planned = plan_merged(plan, *others)
        made.append(planned)
        if len(made) == 1:
            planned.plan.Q[:] *= -10.0
        return planned

    monkeypatch.setattr(deploying, "plan_merged", spoilt)
    assert square_world().evaluate("kernelrl/SquareWorld-v0", 50).mean > 0.8 * good
    assert len(made) == 4  # the one that is deployed was made again
    made.clear()
    monkeypatch.setattr(deploying, "better_than", lambda usual, others: None)
    assert square_world().evaluate("kernelrl/SquareWorld-v0", 50).mean < 0.5 * good


@pytest.mark.parametrize(("horizon", "episodes"), [(1, 64), (500, 64), (1000, 32), (10**5, 8)])
def test_number_of_episodes(horizon, episodes):
    log = Log(np.zeros((2, 1, 1)), np.zeros((3, 1), np.int64), np.zeros(1), np.array([1]))
    some = make_settings("gaussian", "euclidean", 1)._replace(horizon=horizon)
    assert len(Rehearsal(some, log, Displacement(np.ones(1), np.zeros(1), np.zeros((A, 0))))._first) == episodes
