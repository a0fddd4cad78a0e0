"""Both concentration lemmas, simulated over all times with weights chosen from the past, and cases that must fail."""

from __future__ import annotations

import numpy as np
import pytest

from kernelrl.theory.concentration import bernstein_bound, hoeffding_bound, hoeffding_simple_bound, kernel_bias_bound
from naive import kernels

PATHS, T = 3000, 400
BETAS = (0.05, 1.0, 20.0)
DELTA = 0.2


def steady(S, W, bound, rng):
    return np.ones(len(S))


def fickle(S, W, bound, rng):
    return rng.random(len(S))


def stopping(S, W, bound, rng):
    """Stops for good where the sum is nearly over the bound, so that any excess stays."""
    return np.where(np.abs(S) < 0.97 * bound, 1.0, 0.0)


def pressing(S, W, bound, rng):
    """Bets much where the sum is large already, little elsewhere: as few other weights as can be in the denominator."""
    return np.clip(np.abs(S) / (bound + 1e-12), 0.05, 1.0)


def sign_following(S, W, bound, rng):
    return np.where(S >= 0.0, 1.0, 0.3)


ADVERSARIES = (steady, fickle, stopping, pressing, sign_following)


def rademacher(rng, n):
    return rng.choice([-1.0, 1.0], size=n), 1.0


def skewed(rng, n):
    """Rare and large: values 0.9 and -0.1, mean zero."""
    return np.where(rng.random(n) < 0.1, 0.9, -0.1), 0.09


def tiny(rng, n):
    """Of a variance far below the range."""
    u = rng.random(n)
    return np.where(u < 0.01, 1.0, np.where(u > 0.99, -1.0, 0.0)), 0.02


def simulate(noise, adversary, bound_of, beta, seed=0, peek=False):
    """The share of paths on which |S_t|/(W_t+β) exceeds the bound at any t."""
    rng = np.random.default_rng(seed)
    S, W, V2, Vy = np.zeros(PATHS), np.zeros(PATHS), np.zeros(PATHS), np.zeros(PATHS)
    violated = np.zeros(PATHS, bool)
    bound = bound_of(W, V2, Vy, 1) * (W + beta)
    for t in range(1, T + 1):
        w = adversary(S, W, bound, rng)  # before the noise is drawn
        Y, variance = noise(rng, PATHS)
        if peek:
            w = np.where(Y > 0.0, 1.0, 0.1)
        S, W, V2, Vy = S + w * Y, W + w, V2 + w * w, Vy + w * w * variance
        bound = bound_of(W, V2, Vy, t) * (W + beta)
        violated |= np.abs(S) > bound
    return violated.mean()


def hoeffding(c, beta, delta):
    return lambda W, V2, Vy, t: hoeffding_bound(W, V2, c, beta, delta)


def simple(c, beta, delta):
    return lambda W, V2, Vy, t: hoeffding_simple_bound(W, t, c, beta, delta)


def bernstein(b, beta, delta):
    return lambda W, V2, Vy, t: bernstein_bound(W, Vy, t, b, beta, delta)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda f: f.__name__)
def test_hoeffding(adversary, beta):
    assert simulate(rademacher, adversary, hoeffding(1.0, beta, DELTA), beta) <= DELTA
    # a variable in an interval of length R has c = R/2, whatever its mean
    assert simulate(skewed, adversary, hoeffding(0.5, beta, DELTA), beta) <= DELTA
    assert simulate(rademacher, adversary, simple(1.0, beta, DELTA), beta) <= DELTA


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda f: f.__name__)
def test_bernstein(adversary, beta):
    for noise, b in ((rademacher, 1.0), (skewed, 0.9), (tiny, 1.0)):
        assert simulate(noise, adversary, bernstein(b, beta, DELTA), beta) <= DELTA


@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
def test_hoeffding_is_not_vacuous(delta):
    """The bound is violated on some paths: were it far too large, the tests above would see nothing."""
    rate = simulate(rademacher, steady, hoeffding(1.0, 1.0, delta), 1.0)
    assert 0.1 * delta < rate <= delta


def test_bounds_written_out():
    """The lemmas once more, with numbers: what is too large by a factor would pass every simulation."""
    W, V, t, c, beta, delta = 7.0, 5.0, 30, 1.5, 2.0, 0.1
    log_term = np.log(10) + 0.5 * np.log(7 / 2)
    assert hoeffding_bound(W, V, c, beta, delta) == pytest.approx(np.sqrt(2 * 1.5**2 * log_term * 7) / 9)
    simple_bound = np.sqrt(2 * 1.5**2 * np.log(np.sqrt(1 + 30 / 2) / 0.1) / 9)
    assert hoeffding_simple_bound(W, t, c, beta, delta) == pytest.approx(simple_bound)
    u = np.log(4 * np.e * 61 / 0.1)
    expected = np.sqrt(2 * u * (5 + 1.5**2)) / 9 + 2 * 1.5 * u / (3 * 9)
    assert bernstein_bound(W, V, t, c, beta, delta) == pytest.approx(expected)
    assert kernel_bias_bound(40, 0.3, 2.0, 1.5) == pytest.approx(0.6 * (1 + np.sqrt(np.log(30 + np.e))))


def test_bernstein_gains_from_a_small_variance():
    t = 100_000
    W = float(t)
    assert bernstein_bound(W, 0.02 * t, t, 1.0, 1.0, 0.05) < 0.5 * hoeffding_bound(W, W, 1.0, 1.0, 0.05)


# ------------------------------------------------------------------------------------------- an assumption broken


@pytest.mark.parametrize("make", [hoeffding, simple, bernstein], ids=lambda f: f.__name__)
def test_weights_that_peek_at_the_future(make):
    assert simulate(rademacher, steady, make(1.0, 1.0, DELTA), 1.0, peek=True) > 0.9


@pytest.mark.parametrize("make", [hoeffding, simple], ids=lambda f: f.__name__)
def test_a_range_larger_than_told(make):
    assert simulate(rademacher, steady, make(0.3, 1.0, DELTA), 1.0) > DELTA


@pytest.mark.parametrize("make", [hoeffding, bernstein], ids=lambda f: f.__name__)
def test_no_range_at_all(make):
    def cauchy(rng, n):
        return rng.standard_cauchy(n), 1.0

    assert simulate(cauchy, steady, make(1.0, 1.0, DELTA), 1.0) > 0.9


@pytest.mark.parametrize("make", [hoeffding, bernstein], ids=lambda f: f.__name__)
def test_a_mean_that_is_not_zero(make):
    def biased(rng, n):
        return rng.choice([-0.4, 1.0], size=n), 1.0

    assert simulate(biased, steady, make(1.0, 1.0, DELTA), 1.0) > 0.9


def test_a_bound_for_positive_lambda_only():
    """Erratum: E exp(λY) ≤ exp(λ²c²/2) for λ > 0 holds for Y = -2 with any c, but |S_t| then grows like 2t."""

    def sinking(rng, n):
        return np.full(n, -2.0), 4.0

    assert simulate(sinking, steady, hoeffding(1.0, 1.0, DELTA), 1.0) == 1.0


def test_a_variance_smaller_than_told():
    """Bernstein with half the range but the right variance still holds; with a tenth of the variance it must not."""

    def understated(rng, n):
        return rademacher(rng, n)[0], 0.01

    assert simulate(understated, steady, bernstein(0.1, 1.0, DELTA), 1.0) > DELTA


# ---------------------------------------------------------------------------------------------------- kernel bias


@pytest.mark.parametrize(("name", "C1"), [("gaussian", 1.0), ("compact", 184.685)])
def test_kernel_bias(name, C1):
    g, rng = kernels.BY_NAME[name], np.random.default_rng(1)
    closest = 0.0
    for _ in range(300):
        t, beta, sigma = int(rng.integers(1, 400)), 10 ** rng.uniform(-4, 2), 10 ** rng.uniform(-2, 1)
        z = np.full(t, sigma * 10 ** rng.uniform(-1, 0.9))  # all at one distance, which is the worst there is
        if rng.random() < 0.5:
            z = sigma * 10 ** rng.uniform(-1, 0.9, size=t)
        w = g(z / sigma)
        bias = (w * z).sum() / (beta + w.sum())
        bound = kernel_bias_bound(t, sigma, beta, C1)
        assert bias <= bound
        closest = max(closest, bias / bound)
    assert closest > 0.3  # the bound is of the right size


def test_kernel_bias_needs_a_light_tail():
    """A kernel like 1/(1+z) fails g(z) ≤ C1·exp(-z²/2), and no bound of this form holds for it."""
    t, beta, sigma = 10_000, 0.01, 1.0
    z = np.full(t, 1000.0)
    w = 1.0 / (1.0 + z)
    assert (w * z).sum() / (beta + w.sum()) > kernel_bias_bound(t, sigma, beta, 1.0)
