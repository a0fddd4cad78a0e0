"""What several bandwidths promise with the joint bonus: all inequalities at once, optimism, and V* between the bounds.

Each test also shows that values moved, or that it would see a bonus that is too small.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.theory.bonuses import Problem, best_radius, joint_coefficients
from naive.bonuses import TheoryBonus
from naive.certified import Rules, naive_bounds
from naive.estimates import Data, lipschitz_constants
from naive.kernels import gaussian
from naive.metrics import euclidean
from naive.ramp import RampValues
from naive.representatives import NaiveRepresentatives
from theory.test_certificates import check_widths, widths_in
from theory.test_guarantees import NOISY, STATES, H, learner, ramp, rounds
from theory.test_joint_coverage import BETA, DELTA, GRID, RUNS, SLOPE, T, mean_reward

SIGMAS = (0.4, 0.1, 0.05)
START, CAP = [0.5], float(H)
SEVERAL = {"bandwidth": krl.schedules.Bandwidths(SIGMAS), "regularization": 5.0, "representatives": 0.005}


def violated(scale, share, seed=0):
    """The share of runs in which an inequality fails for any bandwidth, state and time; each is taken at `share`."""
    rng, g = np.random.default_rng(seed), krl.kernels.Gaussian()
    problems = [Problem(1, 1, (1.0,), sigma, BETA, g.C1, g.C2, (SLOPE,)) for sigma in SIGMAS]
    radii = [best_radius(problem, T, share) for problem in problems]
    shape, sigma = (len(SIGMAS), RUNS, GRID.size), np.array(SIGMAS)[:, None, None]
    C, S, D, W2 = (np.full(shape, value) for value in (BETA, 0.0, 0.0, 0.0))
    failed, error, bound = np.zeros(RUNS, bool), -mean_reward(GRID) * BETA / C, np.ones(shape)
    for t in range(1, T + 1):
        worst = (np.abs(error) / bound).max(axis=0).argmax(axis=1)  # where some estimate is worst
        x = GRID[np.where(rng.random(RUNS) < 0.9, worst, rng.integers(GRID.size, size=RUNS))]
        r = (rng.random(RUNS) < mean_reward(x)).astype(float)
        rho = np.abs(x[:, None] - GRID)
        w = gaussian(rho / sigma)
        C, S, D, W2 = C + w, S + w * r[:, None], D + w * rho, W2 + w * w
        rules = [joint_coefficients(p, 0, t + 1, radius, share) for p, radius in zip(problems, radii, strict=True)]
        constant, root, inverse = np.array([(c.constant, c.root, c.inverse) for c in rules]).T[..., None, None]
        bound = scale * (constant + (root * np.sqrt(BETA + W2) + inverse + SLOPE * D) / C)
        error = S / C - mean_reward(GRID)
        failed |= (np.abs(error) > bound).any(axis=(0, 2))
    return failed.mean()


def test_all_inequalities_hold_together():
    assert violated(1.0, DELTA / len(SIGMAS)) <= DELTA


def test_a_fifth_of_the_bonus_is_caught():
    assert violated(0.2, DELTA / len(SIGMAS)) > DELTA


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("greedy", [True, False])
def test_optimism(greedy, stationary):
    optimal = RampValues(H, **NOISY)
    options = {**SEVERAL, "regularization": 1.0, "stationary": stationary}
    agent, moved = learner(greedy, krl.bonuses.Joint(0.1, 1000), **options), np.zeros(H, bool)
    for _ in rounds(agent, 240, 4, **NOISY):
        for h in range(H):
            V = agent.values(STATES, step=h)
            assert (V >= optimal.values(STATES, h) - 1e-9).all()
            assert (agent.q_values(STATES, step=h) >= optimal.q_values(STATES, h) - 1e-9).all()
            moved[h] |= (V < H - h - 1e-3).any()
    assert moved.all()


@pytest.mark.parametrize("greedy", [True, False])
def test_a_shrunken_bonus_is_caught(greedy):
    """The same check as in `test_optimism` fails with a twentieth of the bonus."""
    optimal = RampValues(H, **NOISY)
    agent = learner(greedy, krl.bonuses.Joint(0.1, 1000), **{**SEVERAL, "regularization": 1.0}, bonus_scale=0.05)
    short = [
        (agent.values(STATES, step=h) < optimal.values(STATES, h) - 1e-3).any()
        for _ in rounds(agent, 240, 2, **NOISY)
        for h in range(H)
    ]
    assert any(short)


def test_the_truth_is_inside():
    """δ = 0.05 would allow a miss or so in 30 seeds; the inequalities are not that tight, so there are none."""
    optimal = RampValues(H)
    for seed in range(30):
        agent = learner(True, krl.bonuses.Joint(0.05, 1200), **SEVERAL)
        agent.fit(ramp(), 1200, seed=seed)
        for x in (*START, 0.0, 0.3, 0.9):
            lower, upper = agent.certificate([x])
            assert lower <= optimal.values([[x]], 0)[0] <= upper
        lower, upper = agent.certificate(START)
        assert 0.0 < lower and upper < CAP and upper - lower < 0.5 * CAP


def test_bounds_are_tighter_than_with_each_bandwidth_alone():
    """In spite of δ/M."""
    found = {}
    for bandwidth in (SEVERAL["bandwidth"], *SIGMAS):
        agent = learner(True, krl.bonuses.Joint(0.05), **{**SEVERAL, "bandwidth": bandwidth})
        agent.fit(ramp(), 2500, seed=1)
        lower, upper = agent.certificate(START)
        found[bandwidth] = upper - lower
    several = found.pop(SEVERAL["bandwidth"])
    assert several < min(found.values())


@pytest.mark.parametrize("stationary", [True, False])
def test_bounds_against_the_equations(stationary):
    """V↓ = max_j and V↑ = min_j, by the equations, after random episodes of which some terminate."""
    rng, sigmas = np.random.default_rng(0), (0.6, 0.2)
    steps, beta, merge, L = 3, 1.0, 0.02, lipschitz_constants((0.2, 0.8), 3)
    g = krl.kernels.Gaussian()
    agent = krl.KernelUCBVI(
        bandwidth=krl.schedules.Bandwidths(sigmas), regularization=beta, bonus=krl.bonuses.Joint(0.5), lipschitz=L,
        representatives=merge, stationary=stationary, replan="doubling", reward_range=(0, 1),
    )  # fmt: skip
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(2), steps, 0)
    data, visit = Data(steps, stationary), NaiveRepresentatives(merge, euclidean).visit
    for k in range(500 if stationary else 1500):
        agent.begin_episode()
        for h in range(steps):
            x, a, r, y = rng.random(1), int(rng.random() < 0.6), rng.uniform(0.4, 0.7), np.round(rng.random(1), 1)
            ends = k % 7 == 0 and h == 1
            agent.observe(x, a, r, y, h, terminated=ends)
            data.add(visit(x), a, r, visit(y), h, ends)
            if ends:
                break
        agent.end_episode()
    problems = [
        Problem(steps, 2, (1.0,), sigma, beta, g.C1, g.C2, tuple(L), None, stationary, merge) for sigma in sigmas
    ]
    rules = [TheoryBonus(problem, 0.5 / 2, None, "self-normalised") for problem in problems]
    states = np.linspace(0.0, 1.0, 9)[:, None]
    rules = Rules(dict(zip(sigmas, rules, strict=True)), L, beta)
    expected = naive_bounds(data, rules, widths_in(agent))
    check_widths(agent, expected.widths, L)
    lower, upper = expected.lower(states), expected.upper(states)
    assert_allclose([agent.certified_bounds().at(x) for x in states], np.stack([lower, upper], axis=1), rtol=1e-9)
    assert (lower > 0.0).all() and (upper < steps).all()
