"""Covering numbers, Lipschitz constants, kernel constants and bonuses, each against a computation of another kind."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.theory import bonuses, lipschitz
from kernelrl.theory.bonuses import Problem, best_radius, full_bonus, joint_bonus, joint_coefficients
from kernelrl.theory.covering import greedy_net, log_box_covering, log_data_covering, log_lipschitz_covering
from kernelrl.theory.kernel_constants import check_kernel, moments, qualifying_kernels
from naive import kernels

GAUSSIAN = krl.kernels.Gaussian()


def twin_rooms(pooled=False, **changes):
    """The paper's experiment."""
    given = {
        "horizon": 20, "actions": 4, "widths": (2.0, 1.0), "sigma": 0.025, "beta": 0.01, "C1": 1.0, "C2": GAUSSIAN.C2,
        "lipschitz": tuple(lipschitz.wasserstein_lipschitz(10.0, 1.0, 20).tolist()), "constants": (10.0, 1.0),
        "pooled": pooled,
    }  # fmt: skip
    return Problem(**{**given, **changes})


# ------------------------------------------------------------------------------------------------------- covering


@given(
    st.lists(st.floats(0.1, 3.0), min_size=1, max_size=3),
    st.floats(0.15, 2.0),
    st.sampled_from([1.0, 2.0, math.inf]),
    st.integers(1, 4),
)
def test_the_bound_on_boxes_is_that_of_a_covering(widths, radius, p, actions):
    """The grid of cubes that the bound counts covers the box."""
    d = len(widths)
    side = 2.0 * radius / d ** (1.0 / p)
    axes = [width / (n := max(1, math.ceil(width / side - 1e-12))) * (np.arange(n) + 0.5) for width in widths]
    centres = np.array(list(itertools.product(*axes)))
    assert len(centres) * actions <= math.exp(log_box_covering(widths, radius, actions, p)) * (1.0 + 1e-9)
    points = np.random.default_rng(0).random((50, d)) * widths
    gaps = np.linalg.norm(points[:, None] - centres[None], ord=p, axis=2).min(axis=1)
    assert (gaps <= radius * (1.0 + 1e-9)).all()


def test_tiny_radii_do_not_overflow():
    value = log_box_covering([1.0, 1.0], 1e-300, 2)
    assert_allclose(value, math.log(2) + 2 * (math.log(math.sqrt(2) / 2) + 300 * math.log(10)), rtol=1e-9)
    assert log_box_covering([0.0, 1.0], 10.0) == 0.0


@pytest.mark.parametrize(("widths", "radius"), [([1.0], 0.0), ([1.0], math.nan), ([math.inf], 0.1), ([-1.0], 0.1)])
def test_bad_boxes(widths, radius):
    with pytest.raises(ValueError, match=r"radius must|widths must"):
        log_box_covering(widths, radius)


@pytest.mark.parametrize("p", [1.0, 2.0, math.inf])
def test_greedy_net(p):
    points = np.random.default_rng(0).random((200, 2))
    for radius in (0.05, 0.2, 0.7):
        net = points[greedy_net(points, radius, p)]
        gaps = np.linalg.norm(points[:, None] - net[None], ord=p, axis=2)
        assert (gaps.min(axis=1) <= radius).all()
        apart = np.linalg.norm(net[:, None] - net[None], ord=p, axis=2)[~np.eye(len(net), dtype=bool)]
        assert (apart > radius).all()
        assert log_data_covering(points, radius, p) == math.log(len(net))
        # a packing at distance ε has at most as many points as a covering at ε/2
        assert len(net) <= math.exp(log_box_covering([1.0, 1.0], radius / 2, 1, p)) * (1.0 + 1e-9)


def test_lipschitz_functions_on_a_line():
    """8·height/ε choices at each of N(ε/(4L)) places."""
    L, height, radius = 2.0, 1.0, 0.5
    log_net = log_box_covering([1.0], radius / (4 * L))
    assert_allclose(log_lipschitz_covering(log_net, L, height, radius), 8 * math.log(16.0))


# ------------------------------------------------------------------------------------------------------ Lipschitz


@given(st.floats(0, 3), st.floats(0, 2), st.integers(1, 12))
def test_wasserstein_constants_are_both_printed_sums(reward, transition, H):
    L = lipschitz.wasserstein_lipschitz(reward, transition, H)
    for h in range(1, H + 1):  # the paper's steps
        assert_allclose(L[h - 1], sum(reward * transition ** (H - i) for i in range(h, H + 1)), rtol=1e-9, atol=1e-12)
        assert_allclose(L[h - 1], sum(reward * transition ** (i - h) for i in range(h, H + 1)), rtol=1e-9, atol=1e-12)


def test_total_variation_constants():
    """V_2 is any function into [0, 1]: the worst is 1 on one side and 0 on the other."""
    assert_allclose(lipschitz.total_variation_lipschitz(0.5, 2.0, 3), [4.5, 2.5, 0.5])
    rng = np.random.default_rng(0)
    for _ in range(50):
        mu, nu, V = rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)), 3 * rng.random(5)
        assert abs((mu - nu) @ V) <= 3 * 0.5 * np.abs(mu - nu).sum() + 1e-12


def test_only_the_last_reward():
    """Erratum: x' = 2x and r_H(x) = x have Q_h(x) = 2^{H-h}·x, which is not 1-Lipschitz."""
    H, x = 4, 0.01
    L = lipschitz.final_reward_lipschitz(1.0, 2.0, H)
    slopes = [2 ** (H - h) * x / x for h in range(1, H + 1)]
    assert_allclose(L, slopes)
    assert L[0] > 1.0


def test_unknown_constant():
    assert lipschitz.unknown_lipschitz(1) == 0.0
    assert lipschitz.unknown_lipschitz(math.ceil(math.exp(3.0))) >= 3.0
    with pytest.raises(ValueError, match="episode must be at least 1"):
        lipschitz.unknown_lipschitz(0)
    with pytest.raises(ValueError, match="transition must be a finite number"):
        lipschitz.wasserstein_lipschitz(1.0, math.nan, 3)


# -------------------------------------------------------------------------------------------------------- kernels


@pytest.mark.parametrize("kernel", ["gaussian", "compact", *(krl.kernels.ExponentialPower(p) for p in (3, 4, 7.5))])
def test_kernel_constants(kernel):
    known = krl.kernels.resolve_kernel(kernel)
    found = check_kernel(kernel)
    assert found.admissible and known.admissible
    assert_allclose(found.C1, known.C1, rtol=1e-5)
    assert_allclose(found.C2, known.C2, rtol=1e-4)
    assert found.g4 == known.g4


@pytest.mark.parametrize("kernel", sorted(set(kernels.BY_NAME) - {"gaussian", "compact"}))
def test_kernels_outside_the_theory(kernel):
    assert not check_kernel(kernel).admissible
    assert kernel not in " ".join(qualifying_kernels())


def test_moments_of_the_gaussian():
    """Mean distance of a d-dimensional normal deviate, and 2^{-d/2}."""
    for d in (1, 2, 3):
        distance, square = moments("gaussian", d)
        assert_allclose(distance, math.sqrt(2) * math.gamma((d + 1) / 2) / math.gamma(d / 2), rtol=1e-5)
        assert_allclose(square, 2 ** (-d / 2), rtol=1e-5)


# -------------------------------------------------------------------------------------------------------- bonuses


def test_full_bonus_of_the_experiment():
    """Far over the cap of 20 at a count of a million, as printed and as corrected."""
    problem, K = twin_rooms(), 50_000
    assert_allclose(full_bonus(problem, 0, K, K, 0.05, 1e6, "printed"), 884, atol=1)
    assert_allclose(full_bonus(problem, 0, K, K, 0.05, 1e6, "corrected"), 394, atol=1)


def test_full_bonus_term_by_term():
    """The definition written out once more, with numbers in place of names."""
    H, beta, sigma, K, k, delta, C = 3, 0.5, 0.2, 100, 40, 0.1, 7.0
    reward, transition = 0.7, 1.2
    L1 = reward * (1 + transition + transition**2)
    problem = Problem(H, 2, (1.0,), sigma, beta, 1.5, 0.8, (L1, 0.0, 0.0), (reward, transition))
    cover = 2 * math.ceil(1.0 / (2 * sigma**2 / (K * H)))
    v = 2 * math.log(H * cover * math.sqrt(1 + k / beta) / (delta / 6))
    spread = 1 + math.sqrt(math.log(1.5 * k / beta + math.e))
    shared = 4 * 0.8 / beta + math.sqrt(v) * 0.8 / beta**1.5
    b_p = shared + 2 * transition * L1 * spread
    for term, slope in (("corrected", reward), ("printed", reward * L1)):
        b_r = shared + 2 * slope * spread
        expected = H * math.sqrt(v / C) + beta * H / C + b_p * sigma + math.sqrt(v / C) + beta / C + b_r * sigma
        assert_allclose(full_bonus(problem, 1, k, K, delta, C, term), expected, rtol=1e-9)


@pytest.mark.parametrize("normalised", [False, True])
def test_joint_bonus_term_by_term(normalised):
    H, h, beta, sigma, k, delta, radius = 3, 1, 0.5, 0.2, 40, 0.1, 1e-3
    R, L, C1, C2 = 2.0, (0.9, 0.6, 0.3), 1.5, 0.8
    w, rho = np.array([1.0, 0.6, 0.2]), np.array([0.0, 0.1, 0.3])
    C = beta + w.sum()
    problem = Problem(H, 2, (1.0,), sigma, beta, C1, C2, L, merge=0.05)
    v = 2 * math.log(H * 2 * 500 * math.sqrt(1 + k / beta) / delta)
    c = R / 2
    root = math.sqrt(beta + (w**2).sum()) / C if normalised else 1 / math.sqrt(C)
    slope = C2 / sigma * (k * beta**-1.5 + beta**-0.5) if normalised else C2 * k / (2 * sigma * beta**1.5)
    expected = (
        c * math.sqrt(v) * root + beta * R / C + L[h] * (w * rho).sum() / C
        + radius * (2 * C2 * k * R / (beta * sigma) + c * math.sqrt(v) * slope) + (L[h] + L[h + 1]) * 0.05
    )  # fmt: skip
    actual = joint_bonus(problem, h, k, radius, delta, C, (w * rho).sum(), (w**2).sum(), normalised)
    assert_allclose(actual, expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["gaussian", "compact"])
def test_what_the_covering_argument_needs(name):
    """Σw̃Y, √(1/C) and √(β+Σw²)/C move by no more than the ε-terms say when all distances move by at most ε."""
    kernel, g = krl.kernels.resolve_kernel(name), kernels.BY_NAME[name]
    rng, tight = np.random.default_rng(2), np.zeros(3)
    for _ in range(4000):
        n, beta, sigma, R = int(rng.integers(1, 6)), 10 ** rng.uniform(-2, 0.5), 10 ** rng.uniform(-1, 0.5), 2.0
        epsilon = 1e-4 * sigma
        z = sigma * rng.uniform(0, 3, n)
        moved = np.abs(z + epsilon * rng.choice([-1.0, 1.0], n))
        Y = rng.choice([-R, R], n)

        def parts(z, n=n, beta=beta, sigma=sigma, Y=Y):
            w = g(z / sigma)
            C = beta + w.sum()
            return np.array([(w * Y).sum() / C, 1 / math.sqrt(C), math.sqrt(beta + (w**2).sum()) / C])

        change = np.abs(parts(moved) - parts(z))
        problem = Problem(1, 1, (1.0,), sigma, beta, kernel.C1, kernel.C2, (1.0,))
        allowed = []
        for normalised in (False, True):
            c = joint_coefficients(problem, 0, n, 1e-6, 0.1, normalised)  # R = 1 there, and c = ½
            first = 2 * kernel.C2 * n / (beta * sigma)
            allowed.append((c.constant / 1e-6 - first) / c.root)
        limits = epsilon * np.array([2 * kernel.C2 * n * R / (beta * sigma), *allowed])
        assert (change <= limits * (1 + 1e-3) + 1e-12).all()
        tight = np.maximum(tight, change / limits)
    assert (tight > 0.15).all()  # the terms are of the right size


def test_the_radius_is_a_good_one():
    problem, most = twin_rooms(), 50_000
    best = best_radius(problem, most, 0.05)

    def height(radius):
        c = joint_coefficients(problem, 0, most, radius, 0.05)
        return c.constant + c.root / math.sqrt(most)

    assert height(best) <= 1.001 * min(height(best * 10.0**power) for power in np.arange(-6, 6, 0.25))
    c = joint_coefficients(problem, 0, most, best, 0.05)
    assert c.constant < 0.1 * c.root / math.sqrt(most)  # what is lost on the covering is little


def test_joint_is_far_tighter_than_full():
    problem, K = twin_rooms(), 50_000
    C = np.array([10.0, 1e3, 1e6])
    radius = best_radius(problem, K, 0.05)
    joint = joint_bonus(problem, 0, K, radius, 0.05, C, 0.025 * 1.25 * C, 0.5 * C)
    assert (joint < 0.1 * full_bonus(problem, 0, K, K, 0.05, C)).all()
    assert joint[-1] < 20.0 < full_bonus(problem, 0, K, K, 0.05, 1e6)


@pytest.mark.parametrize("pooled", [False, True])
@pytest.mark.parametrize("episodes", [None, 300])
def test_tables(episodes, pooled):
    problem = twin_rooms(pooled)
    full, joint = bonuses.full_table(problem, 0.1, episodes), bonuses.joint_table(problem, 0.1, episodes)
    assert full.shape == joint.shape == (bonuses.EPOCHS, 20, 3)
    assert (np.diff(full[:, :, :2], axis=0) >= 0).all() and (np.diff(joint[:, :, 1], axis=0) >= 0).all()
    j = 6  # k = 64 … 127
    most = 300 * (20 if pooled else 1)
    if episodes is None:
        share = 0.1 * 6 / (math.pi**2 * 49)
        expected = bonuses.full_coefficients(problem, 3, 127, 127, share)
        radius = best_radius(problem, 127, share)
        assert_allclose(joint[j, 3], joint_coefficients(problem, 3, 127, radius, share))
    else:
        expected = bonuses.full_coefficients(problem, 3, 127, most, 0.1)
        assert_allclose(joint[j, 3], joint_coefficients(problem, 3, 127, best_radius(problem, most, 0.1), 0.1))
        assert_allclose(joint[-1], joint[20])  # nothing grows beyond the last episode
    assert_allclose(full[j, 3], expected)


def test_shares_of_delta_sum_to_delta():
    shares = [bonuses.epoch(twin_rooms(), j, 0.1, None)[2] for j in range(bonuses.EPOCHS)]
    assert 0.095 < sum(shares) < 0.1


# ------------------------------------------------------------------------------------- the reward term as printed


def test_printed_reward_term_is_too_small():
    """One step, r(x) = λ_r·|x| with λ_r = L_1 = 0.1, all samples three bandwidths away from x = 0.

    The reward there is 0 and its estimate far from 0; the corrected bound allows for that, the printed one does not.
    """
    slope, sigma, beta, n, delta = 0.1, 3.0, 20.0, 400_000, 0.05
    problem = Problem(1, 1, (10.0,), sigma, beta, GAUSSIAN.C1, GAUSSIAN.C2, (slope,), (slope, 0.0))
    rho, w = 3.0 * sigma, math.exp(-4.5)
    C = beta + n * w
    estimate = n * w * slope * rho / C  # noiseless: the true reward at 0 is 0
    H1 = {term: full_bonus(problem, 0, n, n, delta, C, term) for term in ("printed", "corrected")}
    # of the full bonus, half of the statistical terms and one of the two biases are those of the reward
    v = bonuses.log_v(problem, n, sigma**2 / n, delta / 6)
    shared = (4 * GAUSSIAN.C2 / beta + math.sqrt(v) * GAUSSIAN.C2 / beta**1.5) * sigma
    rest = math.sqrt(v / C) + beta / C + shared
    reward = {term: bonus - rest for term, bonus in H1.items()}  # what is left is the reward's part (λ_p = 0)
    assert estimate > reward["printed"]
    assert estimate <= reward["corrected"]
