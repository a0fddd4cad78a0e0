"""Smoothing kernels ψ_σ(u, v) = g(ρ(u, v)/σ) (paper, section 3.1).

Assumption 3 asks of g: [0, ∞) → [0, 1] that it is differentiable and non-increasing, that g(4) > 0, and that there are
constants with g(z) ≤ C1·exp(-z²/2) and sup|g'| ≤ C2. Kernels that satisfy it:

    g(z)                        C1                                      C2
    exp(-z²/2)                  1                                       exp(-1/2)
    exp(-z^p/2), p > 2          exp(½(1-2/p)(2/p)^{2/(p-2)})            (p/2)(2(p-1)/p)^{(p-1)/p} exp(-(p-1)/p)
    (1-z²/25)³ for z < 5        sup (1-z²/25)³ exp(z²/2) = 184.685      0.34346

The last has compact support *and* satisfies the assumption, so its sums stop at 5σ. The usual compact kernels
(support 1) fail g(4) > 0; they can be used, but the guarantees do not cover them (`admissible` is False).

Compiled code takes a kernel as a NamedTuple for which `weight` is implemented, a function of z², so that the Gaussian
needs no square root. A kernel of a user's own is another such class (docs/extending.md).
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from kernelrl.jit.compile import compiled, generic

__all__ = [
    "CLASSES",
    "KERNELS",
    "LOG2E",
    "ROUGH",
    "Compact",
    "Cosine",
    "Epanechnikov",
    "ExponentialPower",
    "Gaussian",
    "Kernel",
    "Outside",
    "Quartic",
    "Triangular",
    "Tricube",
    "Triweight",
    "Uniform",
    "exp_negative",
    "fades_at",
    "is_gaussian",
    "kernel_weight",
    "resolve_kernel",
    "rough_power",
    "weigh_in_place",
    "weight",
]

GAUSSIAN, EXPONENTIAL, COMPACT, UNIFORM, TRIANGULAR, EPANECHNIKOV, QUARTIC, TRIWEIGHT, TRICUBE, COSINE = range(10)

LOG2E = 1.0 / math.log(2.0)
LN2_HIGH = 6.93147180369123816490e-01
LN2_LOW = math.log(2.0) - LN2_HIGH + 2.3190468138462996e-17  # what float64 drops of ln 2 below LN2_HIGH
SHIFTER = 1.5 * 2.0**52  # adding it rounds to an integer, which then stands in the low bits
ROUGH = 5e-11  # the relative error of `rough_power`
SMALLEST = -708.0  # exp of less is below the normal range
PADDING = 1e290  # no squared distance between states is above; places that hold no state are farther away


@intrinsic
def _power_of_two_bits(typingctx, shifted):
    """2^n from n + SHIFTER: the low bits of the float are n, moved into the exponent."""

    def codegen(context, builder, signature, arguments):
        word, real = ir.IntType(64), ir.DoubleType()
        bits = builder.bitcast(arguments[0], word)
        exponent = builder.shl(bits, ir.Constant(word, 52))
        return builder.bitcast(builder.add(exponent, ir.Constant(word, 1023 << 52)), real)

    return types.float64(types.float64), codegen


def power_of_two(shifted: Any) -> Any:
    """2^n from n + SHIFTER."""
    return math.ldexp(1.0, int(shifted - SHIFTER))


@overload(power_of_two)
def _power_of_two(shifted):
    return lambda shifted: _power_of_two_bits(shifted)


@compiled(fastmath={"contract"})
def exp_negative(x: Any) -> Any:
    """exp(x) for x ≤ 0 to a relative error below 1e-15 (exp(-708), which is as good as 0, below -708).

    exp(x) = 2^n·exp(f) with |f| ≤ ½ln 2, where the polynomial is the Chebyshev economisation of degree 11 (3e-18 off).
    Written without a branch so that loops over it vectorise.
    """
    x = max(x, SMALLEST)
    shifted = x * LOG2E + SHIFTER
    n = shifted - SHIFTER
    f = (x - n * LN2_HIGH) - n * LN2_LOW
    p = 2.5114870232064345e-08
    p = p * f + 2.763264069051338e-07
    p = p * f + 2.7557224956072986e-06
    p = p * f + 2.4801485479175668e-05
    p = p * f + 0.00019841269909219884
    p = p * f + 0.0013888888952318084
    p = p * f + 0.008333333333309526
    p = p * f + 0.04166666666648808
    p = p * f + 0.16666666666666702
    p = p * f + 0.5000000000000019
    p = p * f + 1.0
    p = p * f + 1.0
    return p * power_of_two(shifted)


@intrinsic
def _times_power_of_two(typingctx, p, shifted):
    """p·2^n from n + SHIFTER, for p near 1: the low bits of the float are n, added to the exponent of p."""

    def codegen(context, builder, signature, arguments):
        word, real = ir.IntType(64), ir.DoubleType()
        p, shifted = (builder.bitcast(argument, word) for argument in arguments)
        return builder.bitcast(builder.add(p, builder.shl(shifted, ir.Constant(word, 52))), real)

    return types.float64(types.float64, types.float64), codegen


def times_power_of_two(p: Any, shifted: Any) -> Any:
    """p·2^n from n + SHIFTER."""
    return math.ldexp(p, int(shifted - SHIFTER))


@overload(times_power_of_two)
def _times_power_of_two_compiled(p, shifted):
    return lambda p, shifted: _times_power_of_two(p, shifted)


@compiled(fastmath={"contract"})
def rough_power(z: Any) -> Any:
    """2^{-z} for 0 ≤ z ≤ 1000 to a relative error below ROUGH, in half the time of `exp_negative`; nonsense for more.

    2^{-z} = 2^n·2^{-f} with |f| ≤ ½, where the polynomial of degree 7 has the smallest relative error.
    """
    shifted = SHIFTER - z
    f = z + (shifted - SHIFTER)
    p = -1.5201921850139109e-05
    p = p * f + 0.0001546929125124996
    p = p * f - 0.0013333922563403594
    p = p * f + 0.009618027253326774
    p = p * f - 0.05550410353446958
    p = p * f + 0.2402265119816017
    p = p * f - 0.6931471807284476
    p = p * f + 0.9999999999616817
    return times_power_of_two(p, shifted)


@compiled
def kernel_weight(kernel: Any, power: Any, z2: Any) -> Any:
    """g(√z2) for the kernel of that code."""
    if kernel == GAUSSIAN:
        return exp_negative(-0.5 * z2)
    if kernel == EXPONENTIAL:
        return exp_negative(-0.5 * z2 ** (0.5 * power))
    if kernel == COMPACT:
        u = max(0.0, 1.0 - z2 / 25.0)
        return u * u * u
    if z2 >= 1.0:
        return 1.0 if kernel == UNIFORM and z2 == 1.0 else 0.0
    if kernel == UNIFORM:
        return 1.0
    if kernel == TRIANGULAR:
        return 1.0 - math.sqrt(z2)
    u = 1.0 - z2
    if kernel == EPANECHNIKOV:
        return u
    if kernel == QUARTIC:
        return u * u
    if kernel == TRIWEIGHT:
        return u * u * u
    if kernel == TRICUBE:
        v = 1.0 - z2 * math.sqrt(z2)
        return v * v * v
    return math.cos(0.5 * math.pi * math.sqrt(z2))


@generic(required=True)
def weight(kernel: Any, z2: Any) -> Any:
    """g(√z2), between 0 and 1."""


@generic
def weigh_in_place(kernel: Any, inverse_sigma2: Any, n: Any, squares: Any) -> Any:
    """Turn squared distances into weights: squares[:n] = g(√(squares)/σ), 0 where the distance is that of padding."""
    for i in range(n):
        squares[i] = weight(kernel, squares[i] * inverse_sigma2) if squares[i] < PADDING else 0.0


@generic
def is_gaussian(kernel: Any) -> Any:
    """Whether g(z) = exp(-z²/2), for which there are faster ways."""
    return False


@generic
def fades_at(kernel: Any, share: Any) -> Any:
    """A z beyond which g(z) < share; infinite where none is known."""
    return math.inf


class CodedKernel(NamedTuple):
    """A kernel of this package in compiled code: one class for all, so that code compiled for one serves all."""

    code: int
    power: float
    compact: bool


@weight.implement(CodedKernel)
def coded_weight(kernel, z2):
    return kernel_weight(kernel.code, kernel.power, z2)


@is_gaussian.implement(CodedKernel)
def coded_is_gaussian(kernel):
    return kernel.code == GAUSSIAN


@fades_at.implement(CodedKernel)
def coded_fades_at(kernel, share):
    return math.inf if kernel.compact else (-2.0 * math.log(share)) ** (1.0 / kernel.power)


@weigh_in_place.implement(CodedKernel)
def coded_weigh_in_place(kernel, inverse_sigma2, n, squares):
    if kernel.code == GAUSSIAN:
        factor = -0.5 * inverse_sigma2
        for i in range(n):
            squares[i] = exp_negative(factor * squares[i])
    elif kernel.code == COMPACT:
        factor = inverse_sigma2 / 25.0
        for i in range(n):
            u = max(0.0, 1.0 - factor * squares[i])
            squares[i] = u * u * u
    else:
        for i in range(n):
            squares[i] = kernel_weight(kernel.code, kernel.power, squares[i] * inverse_sigma2)


class Kernel:
    """A smoothing kernel g. Each kernel is a frozen dataclass of its parameters; one of a user's own is a subclass."""

    name: str
    """What messages call it; the name of the class unless said otherwise."""
    support: float = math.inf
    """g(z) = 0 beyond; infinite where there is no such z."""
    admissible: bool = False
    """Whether it satisfies Assumption 3, with `C1` and `C2`, so that the bonuses with guarantees may be used."""
    C1: float = math.inf
    C2: float = math.inf

    def __init_subclass__(cls) -> None:
        cls.name = vars(cls).get("name", cls.__name__)

    def __call__(self, z: npt.ArrayLike) -> Any:
        """g(z), elementwise."""
        z2 = np.square(np.asarray(z, float))
        kernel = self.compiled()
        weights = [weight(kernel, value) for value in z2.reshape(-1)]
        return np.array(weights).reshape(z2.shape)[()]

    def compiled(self) -> Any:
        """The kernel as compiled code has it: a NamedTuple for which `krl.kernels.weight` is implemented."""
        raise NotImplementedError(f"{type(self).__name__} must have a method compiled()")

    @property
    def g4(self) -> float:
        """g(4), which the theory needs to be positive."""
        return float(self(4.0))

    def reach(self, cut: float) -> float:
        """A z beyond which g(z) < cut: samples farther away than the reach of a tiny cut are never looked at."""
        return self.support


class KernelWithCode(Kernel):
    """A kernel of this package."""

    code: int
    power: float = 2.0
    admissible = True

    def compiled(self) -> Any:
        """The NamedTuple that compiled code uses."""
        return CodedKernel(self.code, float(self.power), math.isfinite(self.support))

    def reach(self, cut: float) -> float:
        """The z beyond which g(z) < cut."""
        if math.isfinite(self.support):
            return self.support
        return max(0.0, -2.0 * math.log(max(cut, 5e-324))) ** (1.0 / self.power)


@dataclass(frozen=True)
class Gaussian(KernelWithCode):
    """exp(-z²/2)."""

    name, code = "gaussian", GAUSSIAN
    C1, C2 = 1.0, math.exp(-0.5)


@dataclass(frozen=True)
class ExponentialPower(KernelWithCode):
    """exp(-z^p/2) for p > 2."""

    p: float
    name, code = "exponential-power", EXPONENTIAL

    def __post_init__(self) -> None:
        p = float(self.p)
        if not (math.isfinite(p) and p > 2.0):
            raise ValueError(
                f"ExponentialPower: p must be a finite number above 2, got {p}; p = 2 is the Gaussian kernel"
            )
        object.__setattr__(self, "p", p)

    @property
    def power(self) -> float:  # type: ignore[override]
        """p."""
        return self.p

    @property
    def C1(self) -> float:  # type: ignore[override]  # noqa: N802
        """sup g(z)·exp(z²/2)."""
        p = self.p
        return math.exp(0.5 * (1.0 - 2.0 / p) * (2.0 / p) ** (2.0 / (p - 2.0)))

    @property
    def C2(self) -> float:  # type: ignore[override]  # noqa: N802
        """sup|g'|."""
        p = self.p
        return 0.5 * p * (2.0 * (p - 1.0) / p) ** ((p - 1.0) / p) * math.exp(-(p - 1.0) / p)


@dataclass(frozen=True)
class Compact(KernelWithCode):
    """(1-z²/25)³ for z < 5: compact support inside the theory."""

    name, code, support = "compact", COMPACT, 5.0
    # sup (1-z²/25)³·exp(z²/2) is at z² = 19, sup|g'| = (6z/25)(1-z²/25)² at z² = 5.
    C1, C2 = (6.0 / 25.0) ** 3 * math.exp(9.5), 6.0 * math.sqrt(5.0) / 25.0 * 0.64


# The usual compact kernels, with C1 = sup g(z)·exp(z²/2) and C2 = sup|g'|, infinite where g jumps.


@dataclass(frozen=True)
class Uniform(KernelWithCode):
    """1 for z ≤ 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "uniform", UNIFORM, False, 1.0
    C1, C2 = math.exp(0.5), math.inf


@dataclass(frozen=True)
class Triangular(KernelWithCode):
    """1-z for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "triangular", TRIANGULAR, False, 1.0
    C1, C2 = 1.0, 1.0


@dataclass(frozen=True)
class Epanechnikov(KernelWithCode):
    """1-z² for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "epanechnikov", EPANECHNIKOV, False, 1.0
    C1, C2 = 1.0, 2.0


@dataclass(frozen=True)
class Quartic(KernelWithCode):
    """(1-z²)² for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "quartic", QUARTIC, False, 1.0
    C1, C2 = 1.0, 8.0 / (3.0 * math.sqrt(3.0))


@dataclass(frozen=True)
class Triweight(KernelWithCode):
    """(1-z²)³ for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "triweight", TRIWEIGHT, False, 1.0
    C1, C2 = 1.0, 96.0 / (25.0 * math.sqrt(5.0))


@dataclass(frozen=True)
class Tricube(KernelWithCode):
    """(1-z³)³ for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "tricube", TRICUBE, False, 1.0
    C1, C2 = 1.0020569114, 9.0 * 0.25 ** (2.0 / 3.0) * 0.75**2


@dataclass(frozen=True)
class Cosine(KernelWithCode):
    """cos(πz/2) for z < 1; outside the theory, since g(4) = 0."""

    name, code, admissible, support = "cosine", COSINE, False, 1.0
    C1, C2 = 1.0, 0.5 * math.pi


OUTSIDE = {cls.name: cls for cls in (Uniform, Triangular, Epanechnikov, Quartic, Triweight, Tricube, Cosine)}
CLASSES: dict[str, type[Kernel]] = {cls.name: cls for cls in (Gaussian, ExponentialPower, Compact, *OUTSIDE.values())}
NAMED = {name: cls for name, cls in CLASSES.items() if cls is not ExponentialPower}  # those without parameters
KERNELS = tuple(NAMED)


def Outside(name: str) -> Kernel:  # noqa: N802 - a kernel is made like an object of its name
    """One of the usual compact kernels with support 1, outside the theory since g(4) = 0."""
    return OUTSIDE[name]()


def resolve_kernel(kernel: str | Kernel) -> Kernel:
    """A `Kernel` from a name or a `Kernel`."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in NAMED:
        return NAMED[kernel]()
    raise ValueError(
        f"kernel: {kernel!r} is not known; use one of {', '.join(KERNELS)}, krl.kernels.ExponentialPower(p) or a "
        "subclass of krl.kernels.Kernel"
    )
