"""Optimal values of finite problems, with ends and without."""

from __future__ import annotations

import numpy as np
import pytest

import kernelrl as krl
from naive.optimal import finite_values
from terminating import REWARDS, CorridorCells, Stop, optimal_values


def random_problem(seed, H=5, A=3, X=6):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(X, 0.5), (H, A, X))
    return P, rng.normal(size=(X, A, X)), rng.random(X) < 0.4


@pytest.mark.parametrize("seed", range(4))
def test_like_naive(seed):
    P, r, terminal = random_problem(seed)
    found = krl.envs.solve_finite(P, r, 5, terminal)
    np.testing.assert_allclose(found.table, finite_values(P, r, 5, terminal), atol=1e-12)
    never = np.zeros(6, bool)
    np.testing.assert_allclose(krl.envs.solve_finite(P, r, 5).table, finite_values(P, r, 5, never), atol=1e-12)
    same = np.repeat(P[:1], 5, axis=0)
    of_pairs = np.repeat(r[:, :, :1], 6, axis=2)
    found = krl.envs.solve_finite(P[0], r[:, :, 0], 5, terminal)
    np.testing.assert_allclose(found.table, finite_values(same, of_pairs, 5, terminal), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_absorbing_twin_of_a_random_problem(seed):
    """Nothing after a terminal state, or a state that is never left and pays 0: the same."""
    P, r, terminal = random_problem(seed)
    found = krl.envs.solve_finite(P, r, 5, terminal)
    P[:, :, terminal], r[terminal] = np.eye(6)[terminal], 0.0
    np.testing.assert_allclose(krl.envs.solve_finite(P, r, 5).table, found.table, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rewards", REWARDS.values(), ids=map(str, REWARDS))
def test_environments_and_their_twins(rewards):
    for make, options in ((CorridorCells, rewards["corridor"]), (Stop, rewards["stop"])):
        values = [optimal_values(make(**options, twin=twin), 10) for twin in (False, True)]
        np.testing.assert_allclose(values[0].table, values[1].table, rtol=0, atol=1e-9)


def test_stopping_is_free_of_what_would_follow():
    """Stop now costs 1, going on 10."""
    found = optimal_values(Stop(), 10)
    np.testing.assert_array_equal(found.values([0, 1, 2], 0), [-1.0, -1.0, 0.0])
    np.testing.assert_array_equal(found.q_values([0], 0), [[-1.0, -2.0]])
    np.testing.assert_array_equal(found.actions([0, 1, 2], 0), [0, 0, 0])
    paid = optimal_values(Stop(stop=1.0, go=0.05), 10)  # best stopped at last
    np.testing.assert_allclose(paid.values([[0.0]], 0), [1.45])
    assert [paid.actions([0], h)[0] for h in range(10)] == [1] * 9 + [0]


def test_corridor_by_hand():
    found = optimal_values(CorridorCells(cells=4, slip=0.0, step=-1.0, arrival=0.5), 5)
    np.testing.assert_array_equal(found.values(np.arange(4), 0), [-1.5, -0.5, 0.5, 0.0])
    np.testing.assert_array_equal(found.values(np.arange(4), 4), [-1.0, -1.0, 0.5, 0.0])


def test_what_is_said_of_terminal_states_does_not_matter():
    P, r, terminal = random_problem(1)
    found = krl.envs.solve_finite(P, r, 5, terminal)
    P[:, :, terminal], r[terminal] = np.nan, np.inf
    np.testing.assert_array_equal(krl.envs.solve_finite(P, r, 5, terminal).table, found.table)


def test_refusals():
    P, r = np.full((2, 3, 3), 1 / 3), np.zeros((3, 2))
    solve = krl.envs.solve_finite
    for horizon in (0, 1.5, True, "two"):
        with pytest.raises(ValueError, match="horizon must be"):
            solve(P, r, horizon)
    with pytest.raises(ValueError, match=r"P must have the shape \(A, X, X\) or \(4, A, X, X\).* got \(2, 3, 2\)"):
        solve(P[:, :, :2], r, 4)
    with pytest.raises(ValueError, match="P must have the shape"):
        solve(np.stack([P, P]), r, 4)
    with pytest.raises(ValueError, match=r"P must be an array of numbers"):
        solve("uniform", r, 4)
    bad = P.copy()
    bad[1, 2] = [0.5, 0.5, 0.5]
    with pytest.raises(ValueError, match="state 2, action 1, step 0 do not"):
        solve(bad, r, 4)
    bad[1, 2] = [1.5, -0.5, 0.0]
    with pytest.raises(ValueError, match="state 2, action 1"):
        solve(bad, r, 4)
    with pytest.raises(ValueError, match=r"r must have the shape \(3, 2\) or \(3, 2, 3\), states first, got \(2, 3\)"):
        solve(P, r.T, 4)
    with pytest.raises(ValueError, match="r must hold finite numbers"):
        solve(P, r + np.nan, 4)
    for terminal in ([True, False], [0, 0, 1], 2):
        with pytest.raises(ValueError, match="terminal must be True or False for each of the 3 states"):
            solve(P, r, 4, terminal)
    found = solve(P, r, 4)
    for step in (-1, 4, 0.5):
        with pytest.raises(ValueError, match="step must be one of 0 … 3"):
            found.values([0], step)
    for states in ([3], [-1], [0.5], 0, [[0, 1]], ["0"], [np.nan]):
        with pytest.raises(ValueError, match="states must be"):
            found.values(states, 0)
