"""Smoothing kernels against their definitions, and the constants of the paper's assumption against the functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from kernelrl.geometry import kernels as module
from kernelrl.geometry.kernels import Compact, ExponentialPower, Gaussian, Kernel, exp_negative, resolve_kernel
from naive import kernels as naive

KERNELS = {name: (resolve_kernel(name), g) for name, g in naive.BY_NAME.items()}
for p in (2.5, 3.0, 4.5, 12.0):
    KERNELS[f"exponential-power-{p}"] = (ExponentialPower(p), naive.exponential_power(p))

each_kernel = pytest.mark.parametrize(("kernel", "g"), KERNELS.values(), ids=KERNELS.keys())
GRID = np.concatenate([np.linspace(0.0, 6.5, 2601), [1e-200, 1e-8, 20.0, 1e3, 1e150]])
ADMISSIBLE = {"gaussian", "compact"} | {name for name in KERNELS if name.startswith("exponential")}


def test_every_name_has_a_definition_here():
    assert set(module.KERNELS) == set(naive.BY_NAME)


@each_kernel
def test_values(kernel, g):
    with np.errstate(over="ignore"):
        expected = g(GRID)
    assert_allclose(kernel(GRID), expected, rtol=1e-12, atol=1e-16)


@each_kernel
@settings(max_examples=50, deadline=None)
@given(z=st.floats(0, 8))
def test_value_at_any_point(kernel, g, z):
    # near the end of the support nearly all digits cancel, and what is left is small
    assert kernel(z) == pytest.approx(float(g(np.array(z))), rel=1e-12, abs=1e-15)


@each_kernel
def test_shape_of_results(kernel, g):
    assert isinstance(kernel(0.5), float)
    assert kernel(np.full((2, 3), 0.5)).shape == (2, 3)
    assert kernel([]).shape == (0,)


@each_kernel
def test_falls_from_one_to_zero(kernel, g):
    values = kernel(np.sort(GRID))
    assert values[0] == 1.0
    assert values.min() >= 0.0 and values[-1] < 1e-300
    assert (np.diff(values) <= 0.0).all()


@each_kernel
def test_weighing_in_place_is_the_same_function(kernel, g):
    sigma, n = 0.37, GRID.size - 5  # the last five are not to be touched
    squares = (GRID * sigma) ** 2
    weights = squares.copy()
    module.weigh_in_place(kernel.compiled(), 1.0 / sigma**2, n, weights)
    assert_allclose(weights[:n], kernel(GRID[:n]), rtol=1e-11, atol=1e-13)
    assert np.array_equal(weights[n:], squares[n:])


# ------------------------------------------------------------------------------------------------------ the exponential


def relative_error(x):
    x = np.asarray(x, float)
    exact = np.exp(x.astype(np.longdouble))
    found = np.array([exp_negative(value) for value in x]).astype(np.longdouble)
    return float(np.abs(found / exact - 1).max())


def test_long_doubles_are_longer():
    assert np.finfo(np.longdouble).eps < 1e-18, "the next tests need more digits than a double has"


def test_exponential_is_accurate():
    rng = np.random.default_rng(0)
    halves = 0.5 * math.log(2.0) * np.arange(-2000, 1)  # where the power of two changes
    for x in (
        -708.0 * rng.random(20_000),
        -rng.random(20_000),
        -(10.0 ** rng.uniform(-320, 0, 2000)),
        np.concatenate([halves, np.nextafter(halves, 0), np.nextafter(halves, -np.inf)]),
        np.array([0.0, -0.0, -708.0]),
    ):
        assert relative_error(x) < 1e-15


def test_exponential_of_nothing_is_one():
    assert exp_negative(0.0) == 1.0
    assert exp_negative(-1e-300) == 1.0


@pytest.mark.parametrize("x", [-708.1, -1e5, -1e300, -math.inf])
def test_exponential_far_out_is_as_good_as_zero(x):
    assert exp_negative(x) == exp_negative(-708.0)
    assert 0.0 < exp_negative(x) < 1e-300


# -------------------------------------------------------------------------------------------------------- the constants


@each_kernel
def test_gaussian_envelope(kernel, g):
    """C1 = sup g(z)·exp(z²/2): no smaller constant would do, and this one does."""
    z = np.concatenate([np.linspace(0.0, 6.0, 60_001), [1.0 - 1e-12, 1.0, math.sqrt(19.0)]])
    ratio = g(z) * np.exp(0.5 * z**2)
    assert ratio.max() <= kernel.C1 * (1 + 1e-9)
    assert ratio.max() >= kernel.C1 * (1 - 1e-6)


@each_kernel
def test_steepest_slope(kernel, g):
    """C2 = sup|g'|."""
    if kernel.name == "uniform":
        assert kernel.C2 == math.inf  # it jumps
        return
    step = 1e-5
    z = np.arange(0.0, 5.5, step)
    slopes = np.abs(np.diff(g(z))) / step
    assert slopes.max() <= kernel.C2 * (1 + 1e-6)
    assert slopes.max() >= kernel.C2 * (1 - 1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_assumption_holds_for_those_that_say_so(name):
    kernel, g = KERNELS[name]
    assert kernel.g4 == pytest.approx(float(g(np.array(4.0))), rel=1e-12)
    assert kernel.admissible == (name in ADMISSIBLE)
    if kernel.admissible and kernel.power < 10:
        assert kernel.g4 > 0.0
    if not kernel.admissible:
        assert kernel.g4 == 0.0


@each_kernel
@pytest.mark.parametrize("cut", [0.5, 1e-3, 1e-26])
def test_reach(kernel, g, cut):
    reach = kernel.reach(cut)
    beyond = np.linspace(reach * (1 + 1e-12), 3 * reach, 1000)
    assert (g(beyond) < cut).all()
    if math.isinf(kernel.support):
        assert float(g(np.array(reach))) == pytest.approx(cut, rel=1e-10)  # and not farther than that
    else:
        assert (g(beyond) == 0.0).all()
        assert g(np.array(0.99 * reach)) > 0.0


# ---------------------------------------------------------------------------------------------------- names and objects


def test_resolving():
    assert resolve_kernel("gaussian") == Gaussian()
    assert resolve_kernel("compact") == Compact()
    kernel = ExponentialPower(3)
    assert resolve_kernel(kernel) is kernel
    assert isinstance(kernel, Kernel) and kernel.power == 3.0
    assert resolve_kernel("tricube").support == 1.0


@pytest.mark.parametrize("wrong", ["gauss", "", "exponential-power", None, 3, ["gaussian"]])
def test_unknown_kernel(wrong):
    with pytest.raises(
        ValueError, match=r"^kernel: .* is not known; use one of gaussian, compact, uniform.*Exponential"
    ):
        resolve_kernel(wrong)


@pytest.mark.parametrize("p", [2, 2.0, 1.0, 0.0, -3.0, math.inf, math.nan])
def test_power_must_be_above_two(p):
    with pytest.raises(ValueError, match="p must be a finite number above 2"):
        ExponentialPower(p)
