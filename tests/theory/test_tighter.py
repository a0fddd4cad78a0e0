"""What makes certificates tighter: the range of values that the bounds leave, and the empirical-Bernstein form.

Both against the equations on random problems, and against the optimal values. Each of the latter tests also shows that
it would see a bonus that is too small.
"""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents.guarantees import Bounds
from kernelrl.planning.together import highest_over
from kernelrl.theory.bernstein import bernstein_rule, bernstein_term, radius_of_rule
from kernelrl.theory.bonuses import Problem
from naive.bonuses import TheoryBonus
from naive.certified import Rules, naive_bounds
from naive.estimates import Data, Related, lipschitz_constants
from naive.kernels import gaussian
from naive.metrics import euclidean
from naive.ramp import RampValues
from naive.representatives import NaiveRepresentatives
from theory.test_certificates import SMALL, check_widths, widths_in
from theory.test_guarantees import NOISY, STATES, H, learner, ramp
from theory.test_joint_coverage import BETA, DELTA, GRID, RUNS, SIGMA, SLOPE, T, mean_reward

START = [0.5]
TIGHT = krl.bonuses.Joint(0.05, bernstein=True)


# ------------------------------------------------------------------------------------------------ against the equations


def some_agent(stationary, merge, sigmas, scale, ends, L, pair, related=None):
    """An agent for three steps on [0, 1], started, and the rules that its bounds follow."""
    beta, delta, g = 1.0, 0.5, krl.kernels.Gaussian()
    actions = {} if related is None else {"action_bandwidth": related, "action_metric": "euclidean"}
    agent = krl.KernelUCBVI(
        bandwidth=sigmas[0] if len(sigmas) == 1 else krl.schedules.Bandwidths(sigmas), regularization=beta,
        bonus=krl.bonuses.Joint(delta, bernstein=True), bonus_scale=scale, lipschitz=L if ends else pair,
        representatives=merge, stationary=stationary, replan="doubling", reward_range=(0, 1),
        **actions,
    )  # fmt: skip
    agent.start(gym.spaces.Box(0.0, 1.0, (1,), np.float64), gym.spaces.Discrete(2), len(L), 0)
    share = delta / 2 / len(sigmas)
    problems = {
        sigma: Problem(len(L), 2, (1.0,), sigma, beta, g.C1, g.C2, tuple(L), None, stationary, merge or 0.0)
        for sigma in sigmas
    }
    bonuses = {sigma: TheoryBonus(problem, share, None, "self-normalised") for sigma, problem in problems.items()}
    bernstein = {sigma: (problem, share, radius_of_rule) for sigma, problem in problems.items()}
    rules = Rules(bonuses, L, beta, bernstein, scale, ends=ends, by_sample=merge is None)
    if related is None:
        return agent, rules
    return agent, rules._replace(related=Related.of(np.array([[0.0, 1.0], [1.0, 0.0]]), related))


def compare(agent, rules, stationary, merge, episodes):
    """The bounds of the agent after these episodes, and what the equations give; `episodes` are lists of samples."""
    data, L = Data(3, stationary), rules.L
    visit = (lambda x: x) if merge is None else NaiveRepresentatives(merge, euclidean).visit
    for samples in episodes:
        agent.begin_episode()
        for h, (x, a, r, y, over) in enumerate(samples):
            agent.observe(x, a, r, y, h, terminated=over)
            data.add(visit(x), a, r, visit(y), h, over)
        agent.end_episode()
    expected = naive_bounds(data, rules, widths_in(agent))
    check_widths(agent, expected.widths, L)
    states = np.linspace(0.0, 1.0, 9)[:, None]
    lower, upper = expected.lower(states), expected.upper(states)
    assert_allclose([agent.certified_bounds().at(x) for x in states], np.stack([lower, upper], axis=1), atol=1e-7)


def random_episodes(rng, number, lattice, spread, ends):
    """Lists of samples: x, a, r, y, and whether the episode ended."""
    for k in range(number):
        samples = []
        for h in range(2 if ends and k % 7 == 3 else 3):
            x, y = np.round(rng.random((2, 1)) * lattice) / lattice
            a, r = int(rng.random() < 0.6), float(np.clip(0.5 + spread * (rng.random() - 0.5), 0, 1))
            samples.append((x, a, r, y, bool(ends and k % 7 == 3 and h == 1)))
        yield samples


@pytest.mark.parametrize(
    ("merge", "sigmas"), [(None, (0.3,)), (0.0, (0.3,)), (0.05, (0.3,)), (0.02, (0.6, 0.2))], ids=str
)
@settings(max_examples=30)
@given(
    stationary=st.booleans(),
    ends=st.booleans(),
    scale=st.sampled_from([1.0, 0.1, 0.01]),
    number=st.sampled_from([0, 1, 2, 5, 30, 120]),
    lattice=st.sampled_from([2, 5, 1000]),  # few places: ties and duplicates
    spread=st.sampled_from([0.0, 0.05, 1.0]),
    seed=st.integers(0, 10**6),
)
def test_against_the_equations(merge, sigmas, stationary, ends, scale, number, lattice, spread, seed):
    rng, pair = np.random.default_rng(seed), (0.2, 0.8)
    L = lipschitz_constants(pair, 3)
    agent, rules = some_agent(stationary, merge, sigmas, scale, ends, L, pair)
    compare(agent, rules, stationary, merge, random_episodes(rng, number, lattice, spread, ends))


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_related_actions(scale, stationary):
    """Samples of one action count for the other with the weight K_A, whose square is in Σw²."""
    rng, pair = np.random.default_rng(0), (0.2, 0.8)
    agent, rules = some_agent(stationary, 0.02, (0.3,), scale, False, lipschitz_constants(pair, 3), pair, related=0.8)
    compare(agent, rules, stationary, 0.02, random_episodes(rng, 150, 1000, 0.5, False))


@settings(max_examples=50)
@given(
    d=st.integers(1, 3),
    n=st.integers(1, 8),
    p=st.sampled_from([1.0, 2.0, np.inf]),
    slope=st.sampled_from([0.0, 0.3, 2.0]),
    seed=st.integers(0, 10**6),
)
def test_the_highest_value_on_a_box(d, n, p, slope, seed):
    """Lowest cones above a few points: never too low, and hardly too high."""
    rng = np.random.default_rng(seed)
    low, high = -rng.random(d), rng.random(d)
    tips, heights = low + (high - low) * rng.random((n, d)), rng.random(n)

    def values(x):
        apart = np.linalg.norm(x[:, None] - tips, p, axis=-1) if np.size(x) else np.zeros((0, n))
        return np.minimum(1.5, (heights + slope * apart).min(axis=1))

    found = highest_over(values, low, high, p, slope, 0.01, 1.5)
    axes = [np.linspace(a, b, {1: 2001, 2: 101, 3: 25}[d]) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, d)
    best, between = values(grid).max(), slope * np.linalg.norm((high - low) / (len(axes[0]) - 1), p)
    assert best - 1e-12 <= found <= min(1.5, best + 0.5 * between + (0.01 if d < 3 else 0.2)) + 1e-12


# ------------------------------------------------------------------------------------------------------ the inequality


def violated(scale, seed=0):
    """The share of runs in which the empirical-Bernstein bound fails anywhere at any time, where states are chosen
    against it (`theory.test_joint_coverage`); rewards are 0 or 1, so V̂ is exact."""
    rng, g = np.random.default_rng(seed), krl.kernels.Gaussian()
    problem = Problem(1, 1, (1.0,), SIGMA, BETA, g.C1, g.C2, (SLOPE,))
    radius = radius_of_rule(problem, T, DELTA)
    C, S, D, W2, S2 = (np.full((RUNS, GRID.size), value) for value in (BETA, 0.0, 0.0, 0.0, 0.0))
    failed, error, bound = np.zeros(RUNS, bool), -mean_reward(GRID) * BETA / C, np.ones_like(C)
    for t in range(1, T + 1):
        i = np.where(rng.random(RUNS) < 0.9, (np.abs(error) / bound).argmax(axis=1), rng.integers(GRID.size, size=RUNS))
        x = GRID[i]
        r = (rng.random(RUNS) < mean_reward(x)).astype(float)
        rho = np.abs(x[:, None] - GRID)
        w = gaussian(rho / SIGMA)
        C, S, D, W2, S2 = C + w, S + w * r[:, None], D + w * rho, W2 + w * w, S2 + w * w * r[:, None]
        rule = bernstein_rule(problem, 0, t + 1, radius, DELTA)
        squares = S2 - S2**2 / np.maximum(W2, 1e-300) + W2 * rule[0, 3] ** 2  # r² = r
        bound = scale * (bernstein_term(rule, C, squares) + (BETA + SLOPE * D) / C)
        error = S / C - mean_reward(GRID)
        failed |= (np.abs(error) > bound).any(axis=1)
    return failed.mean()


def test_the_bernstein_form_holds():
    assert violated(1.0) <= DELTA


def test_a_fifth_of_it_does_not():
    assert violated(0.2) > DELTA


# ------------------------------------------------------------------------------------------------- the optimal values


def misses(agent, optimal, slack=0.0):
    """How many of the bounds at several states and both sides do not hold."""
    found = np.array([agent.certified_bounds().at(x) for x in STATES[::4]])
    truth = optimal.values(STATES[::4], 0)
    return int((found[:, 0] > truth + slack).sum() + (found[:, 1] < truth - slack).sum())


@pytest.mark.parametrize("noise", [{}, NOISY], ids=["calm", "noisy"])
@pytest.mark.parametrize("bonus", [krl.bonuses.Joint(0.05), TIGHT], ids=["range", "bernstein"])
def test_the_truth_is_inside(bonus, noise):
    optimal, gaps = RampValues(H, **noise), []
    for seed in range(60):
        agent = learner(True, bonus, representatives=0.005, **SMALL)
        agent.fit(ramp(**noise), 600, seed=seed)
        assert misses(agent, optimal) == 0
        lower, upper = agent.certificate(START)
        gaps.append(upper - lower)
    assert max(gaps) < (1.1 if bonus.bernstein and not noise else 1.5)


@pytest.mark.parametrize("merge", [None, 0.005])
def test_a_shrunken_bonus_is_caught(merge):
    """The same check fails with a twentieth of the bonus."""
    optimal, found = RampValues(H, **NOISY), 0
    for seed in range(5):
        agent = learner(True, TIGHT, representatives=merge, bonus_scale=0.05, **SMALL)
        agent.fit(ramp(**NOISY), 600, seed=seed)
        found += misses(agent, optimal, 1e-3)
    assert found > 0


@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("merge", [None, 0.005])
def test_each_makes_the_gap_smaller(merge, stationary):
    gaps = []
    for bonus in (krl.bonuses.Joint(0.05), TIGHT):
        agent = learner(True, bonus, representatives=merge, stationary=stationary, **SMALL)
        agent.fit(ramp(), 2000, seed=0)
        bounds = agent.certified_bounds()
        plain = Bounds(*agent._keeping.planned_together(agent.model, None, None, merge or 0.0))
        (low, high), (lower, upper) = (each.at(np.array(START)) for each in (plain, bounds))
        assert low <= lower and upper <= high and upper - lower < high - low - 0.01
        gaps.append(upper - lower)
    assert gaps[0] > gaps[1]


def test_an_agent_is_saved_with_its_squares(tmp_path):
    agents = [learner(True, TIGHT, representatives=0.005, **SMALL) for _ in range(2)]
    for agent in agents:
        agent.fit(ramp(), 200, seed=0)
    agents[0].save(tmp_path / "a.krl")
    agents[0] = krl.load(tmp_path / "a.krl")
    for agent in agents:
        agent.fit(ramp(), 150)
    assert agents[0].bonus == TIGHT and agents[0].certificate(START) == agents[1].certificate(START)


def test_half_of_delta_is_for_each_form():
    half, tight = (learner(True, bonus) for bonus in (krl.bonuses.Joint(0.025), TIGHT))
    for agent in (half, tight):
        agent.fit(ramp(), 100, seed=0)
    assert np.array_equal(half.bonuses(STATES, 0), tight.bonuses(STATES, 0))
    with pytest.raises(ValueError, match="Joint: bernstein must be True or False, got 2"):
        krl.bonuses.Joint(0.05, bernstein=2)
