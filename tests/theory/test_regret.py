"""Regret bounds: their exponents, their sums against random visits, and their terms."""

from __future__ import annotations

import math
from dataclasses import asdict

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.stores.samples import ACTION
from kernelrl.theory.bonuses import Problem
from kernelrl.theory.concentration import uniform_bernstein
from kernelrl.theory.covering import greedy_net
from kernelrl.theory.regret import (
    bandwidth_exponent,
    better_bandwidth_exponent,
    rates,
    regret_bound,
    regret_exponent,
    sum_of_inverse_counts,
    sum_of_inverse_roots,
)
from naive import kernels
from plain import plain
from theory.test_formulas import GAUSSIAN, twin_rooms


@given(st.floats(0.1, 8.0))
def test_exponent_of_the_corollary(d):
    """2d/(2d+1) from d = 1 on, (3d+1)/(4d+2) below, never ½ as printed."""
    found = regret_exponent(bandwidth_exponent(d), d, d)
    assert_allclose(found, max((3 * d + 1) / (4 * d + 2), 2 * d / (2 * d + 1)))
    assert found >= 2 * d / (2 * d + 1) - 1e-12
    if d < 0.99:
        assert found > max(0.5, 2 * d / (2 * d + 1)) + 1e-4


@given(st.floats(0.1, 6.0), st.floats(0.0, 1.0))
def test_the_better_bandwidth_is_the_best(d, share):
    d_states = share * d
    best = regret_exponent(better_bandwidth_exponent(d, d_states), d, d_states)
    others = [regret_exponent(x, d, d_states) for x in np.linspace(0.01, 0.99, 300)]
    assert best <= min(others) + 1e-9
    assert best >= (d + 1) / (d + 2) - 1e-9  # no better than the lower bound
    if d_states <= 1:
        assert_allclose(best, (d + 1) / (d + 2))


def test_rates_in_one_dimension_are_optimal_in_the_number_of_episodes():
    by_name = {rate.name: rate for rate in rates(1.0, 1.0)}
    assert_allclose(by_name["Kernel-UCBVI, Greedy"].episode_power, by_name["lower bound"].episode_power)
    assert by_name["OptQL on a grid"].at(2.0, 8.0) == pytest.approx(2**2.5 * 8 ** (2 / 3))
    with pytest.raises(ValueError, match="d_states must lie between"):
        better_bandwidth_exponent(1.0, 2.0)


K, H = 120, 3


def scattered(beta):
    """Clustered random visits to [0, 1]², (K, H, 3); the last coordinate is the action and keeps pairs apart."""
    rng = np.random.default_rng(0)
    centres = rng.random((4, 2))
    visits = np.clip(centres[rng.integers(4, size=(K, H))] + 0.1 * rng.standard_normal((K, H, 2)), 0, 1)
    return np.concatenate([visits, np.zeros((K, H, 1))], axis=2)


def logged(beta):
    """What Greedy-Kernel-UCBVI visits in TwinRooms' first steps."""
    agent = plain(krl.GreedyKernelUCBVI)(
        bandwidth=0.1, regularization=beta, lipschitz=10.0, representatives=None, horizon=H, stationary=False
    )
    agent.fit(gym.make("kernelrl/TwinRooms-v0", noise=0.05), K, seed=0, driver="python")
    samples = agent.model.store
    n = samples.number[0]
    pairs = np.concatenate([samples.states[0, :n], 1e3 * samples.labels[ACTION, :n, None]], axis=1)
    return pairs.reshape(K, H, 3)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("beta", [0.01, 1.0])
@pytest.mark.parametrize("visits", [scattered, logged], ids=lambda f: f.__name__)
def test_sums_of_bonuses_and_pigeonhole(visits, beta, pooled):
    """Along any sequence of visits: Σ1/√C, Σ1/C at the nearest sample, and the number of far ones, stay below."""
    sigma, pairs = 0.1, visits(beta)
    roots = counts = far = 0.0
    cells = 0
    for x in [pairs.reshape(-1, 3)] if pooled else pairs.swapaxes(0, 1):
        net = len(greedy_net(x, sigma))  # a covering of all that was visited
        cells = max(cells, net)
        rho = np.linalg.norm(x[:, None] - x[None], axis=2)
        for k in range(1, len(x)):
            nearest = int(rho[k, :k].argmin())
            C = beta + kernels.gaussian(rho[nearest, :k] / sigma).sum()
            if rho[k, nearest] <= 2 * sigma:
                roots += 1 / math.sqrt(C)
                counts += 1 / C
            else:
                far += 1
    steps, n = (1, K * H) if pooled else (H, K)
    assert far <= steps * cells
    assert 0 < roots <= sum_of_inverse_roots(cells, n, steps, beta, GAUSSIAN.g4)
    assert 0 < counts <= sum_of_inverse_counts(cells, n, steps, beta, GAUSSIAN.g4)


@pytest.mark.parametrize("beta", [0.5, 10.0, 200.0])
def test_the_sums_of_the_proof(beta):
    """The integrals behind them, visits to one cell after another."""
    g4, K = 0.5, 500
    for cells in (1, 4):
        n = np.concatenate([np.arange(K // cells)] * cells)
        C = beta + g4 * n
        assert (1 / np.sqrt(C)).sum() <= sum_of_inverse_roots(cells, K, 1, beta, g4)
        assert (1 / C).sum() <= sum_of_inverse_counts(cells, K, 1, beta, g4)


def test_the_stationary_sum_as_printed_does_not_hold():
    """Erratum: β^{-1} and 2/g(4) for β^{-1/2} and 2·β^{1/2}/g(4), with one cell and β = 100."""
    beta, g4, K = 100.0, 0.9, 100
    total = (1 / np.sqrt(beta + g4 * np.arange(K))).sum()
    printed = 1 / beta + 2 / g4 + 2 / g4 * math.sqrt(g4 / beta * K)
    assert printed < total <= sum_of_inverse_roots(1, K, 1, beta, g4)


def test_terms():
    problem, K = twin_rooms(), 1000
    bound = regret_bound(problem, K, 0.1, GAUSSIAN.g4)
    greedy = regret_bound(problem, K, 0.1, GAUSSIAN.g4, greedy=True)
    assert bound.updates == 0.0
    states = math.ceil(2 * math.sqrt(2) / 0.05) * math.ceil(math.sqrt(2) / 0.05)
    assert_allclose(greedy.updates, math.e * (400 * states + 2 * 200 * 20 * K * 0.025))
    assert_allclose(greedy.total, bound.total + greedy.updates)
    assert_allclose(bound.new_cells, math.e * 400 * 4 * states)
    assert_allclose(bound.martingale, math.sqrt(8 * math.e**2 * 400 * math.log(20) * K * 20))
    assert bound.total > K * 20  # vacuous, as the summary says


@pytest.mark.parametrize("pooled", [False, True])
def test_every_term_written_out(pooled):
    """The proof's sums once more, with numbers in place of names: 3 cells of states, 2 actions, L_1 = λ_r(1+λ_p)."""
    H, K, sigma, beta, C1, C2, g4, reward, transition, delta = 2, 50, 0.2, 0.7, 1.5, 0.8, 0.1, 0.3, 0.9, 0.1
    L1, n, steps = 0.3 * 1.9, 100 if pooled else 50, 1 if pooled else 2
    problem = Problem(H, 2, (1.0,), sigma, beta, C1, C2, (L1, reward), (reward, transition), pooled)
    v = 2 * math.log(H * 2 * math.ceil(n * H / (2 * sigma**2)) * math.sqrt(1 + n / beta) / (delta / 6))
    spread = 1 + math.sqrt(math.log(C1 * n / beta + math.e))
    b = 2 * (4 * C2 / beta + math.sqrt(v) * C2 / beta**1.5) + 2 * (transition * L1 + reward) * spread
    theta = math.log(4 * math.e * (2 * n + 1) / (delta / 6) * H * 2 * math.ceil(n * H**2 / (2 * sigma**3)))
    theta += 3 * math.log(2 * H / (L1 * sigma))
    power = 4 * transition * L1 * sigma / (n * H**2) + 4 * C2 / (H * beta) + 11 * C2 * theta / beta**2
    uniform = 32 * L1 + 12 * transition * L1 * spread  # 8 + 8/H is 12 here
    near = 2 * (reward + L1 + 2 * transition * L1)  # 1 + 2/H is 2
    roots = steps * ((beta**-0.5 + 2 * beta**0.5 / g4) * 6 + 2 * math.sqrt(6 * n / g4))
    counts = steps * 6 * (1 / beta + math.log(1 + (1 + g4 * n / beta) / 6) / g4)
    expected = {
        "first_order": math.e * 2 * (H + 1) * math.sqrt(v) * roots,
        "second_order": math.e * (2 * beta * (H + 1) + 11 * H**2 * theta + 2 * beta * H) * counts,
        "bias": math.e * K * H * sigma * (2 * b + near + uniform + power * sigma),
        "new_cells": math.e * H * steps * 6,
        "martingale": math.sqrt(8 * math.e**2 * H**2 * math.log(2 / delta) * K * H),
        "updates": math.e * (H**2 * 3 + 2 * L1 * H * K * sigma),
    }
    found = asdict(regret_bound(problem, K, delta, g4, greedy=True))
    for name, value in expected.items():
        assert_allclose(found[name], value, rtol=1e-9, err_msg=name)


def test_stationary_gains_a_factor_of_the_horizon():
    """In the second order term, whose logarithms grow a little."""
    K = 10**20
    per_step, pooled = (regret_bound(twin_rooms(flag), K, 0.1, GAUSSIAN.g4) for flag in (False, True))
    assert 10 < per_step.second_order / pooled.second_order <= 20
    assert_allclose(per_step.new_cells / pooled.new_cells, 20)
    assert 3 < per_step.first_order / pooled.first_order < 20


def test_regret_grows_sublinearly_in_the_end():
    """With σ = K^{-1/(2d+1)} the bound's exponent tends to 2d/(2d+1)."""
    K = [10**40, 10**44]
    totals = [
        regret_bound(twin_rooms(sigma=k**-0.2, pooled=True), k, 0.1, GAUSSIAN.g4).total for k in K
    ]  # fmt: skip
    slope = math.log(totals[1] / totals[0]) / math.log(K[1] / K[0])
    assert 0.8 < slope < 0.84


def test_uniform_bernstein():
    quantities = uniform_bernstein(10, 20, 1, 0.5, 0.1, 0.1, 1.0, 0.6, 2.0, 3.0, 4.0, 5.0)
    v = math.log(4 * math.e * 21 / 0.1) + 4.0 + 5.0 * math.log(2 / (3 * 0.5))
    assert_allclose(quantities.variance, v)
    assert_allclose(quantities.bias_power, 4 * 2 * 3 * 0.5 / 20 + 4 * 0.6 / 0.1 + 11 * 0.6 * v / 0.01)
    assert_allclose(quantities.bias, 96 + 16 * 6 * (1 + math.sqrt(math.log(100 + math.e))))  # 8 + 8/H at H = 1


L = 2.0  # of the functions to be covered


def net_function(f, points, spacing, states):
    """The function of the paper's net that is next to `f`: min_i [y_i + 2L·ρ(x, x_i)], y_i next to f(x_i)."""
    y = np.round(f(points) / spacing) * spacing
    return (y[None] + 2 * L * np.abs(states[:, None] - points[None])).min(axis=1)


def test_functions_of_the_net_are_steeper_than_those_they_cover():
    """With ε = ¼, at most ε away from each of many L-Lipschitz functions, but 2L-Lipschitz themselves."""
    radius, states, rng = 0.25, np.linspace(0, 1, 4001), np.random.default_rng(0)
    points = np.arange(0, 1.001, 2 * radius / (4 * L))  # every state is within ε/(4L) of one
    slopes = []
    for _ in range(50):
        centres, heights = rng.random(5), rng.random(5)
        f = lambda x, c=centres, y=heights: (y[None] + L * np.abs(x[:, None] - c[None])).min(axis=1)  # noqa: E731
        net = net_function(f, points, radius / 4, states)
        assert np.abs(net - f(states)).max() <= radius
        slopes.append(np.abs(np.diff(net) / np.diff(states)).max())
    assert max(slopes) == pytest.approx(2 * L) and min(slopes) > 1.9 * L


@pytest.mark.parametrize("H", [1, 2, 20])
def test_the_bias_of_the_functions_of_the_net(H):
    """Samples at the worst distance, very many of them: 4L_1-Lipschitz functions need more than 4 + 4/H gives."""
    beta, sigma, log_t = 1.0, 1.0, 600.0  # t = e^600
    z = np.linspace(0.0, 40.0, 4001)
    weight = np.exp(log_t - z**2 / 2)
    worst = (z * weight / (beta + weight)).max()  # Σ w̃ρ
    spread = 1.0 + math.sqrt(log_t)  # t/β + e is t
    transition, L1 = 3.0, 0.7
    found = (1 + 1 / H) * transition * 4 * L1 * worst  # bias of the mean and of the variance
    without = uniform_bernstein(math.exp(log_t), math.exp(log_t), H, sigma, beta, 0.1, 1.0, 0.6, 0.0, L1, 1.0, 1.0).bias
    bias = uniform_bernstein(
        math.exp(log_t), math.exp(log_t), H, sigma, beta, 0.1, 1.0, 0.6, transition, L1, 1.0, 1.0
    ).bias
    assert (4 + 4 / H) * transition * L1 * spread < found <= (bias - without) * sigma * (1 + 1e-9)
