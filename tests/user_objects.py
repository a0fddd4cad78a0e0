"""Objects of a user's own, registered as in a module outside the package."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import kernelrl as krl
from kernelrl.geometry.kernels import EXPONENTIAL, KernelWithCode
from kernelrl.geometry.metrics import LpSpace


@krl.register("bandwidth", "halving")
@dataclass(frozen=True)
class Halving:
    """σ_k halves every so many episodes, down to a minimum."""

    start: float
    minimum: float
    every: int = 1000

    def __call__(self, k: int) -> float:
        return max(self.minimum, self.start * 0.5 ** (k // self.every))


@krl.register("metric", "weighted")
@dataclass(frozen=True)
class Weighted:
    """√Σ weight_j·(x_j-x'_j)²."""

    weights: tuple[float, ...]
    bounded = True

    def check(self, low: np.ndarray, high: np.ndarray) -> None:
        if len(self.weights) != len(low):
            raise ValueError(f"metric: there are {len(self.weights)} weights for {len(low)} coordinates")

    def space(self, low: np.ndarray, high: np.ndarray) -> LpSpace:
        return LpSpace(2.0, np.sqrt(self.weights))


@krl.register("kernel", "laplace")
@dataclass(frozen=True)
class Laplace(KernelWithCode):
    """exp(-z/2): outside the theory, since it falls too slowly."""

    name, code, power = "laplace", EXPONENTIAL, 1.0
    C1, C2, admissible = np.inf, 0.5, False


@krl.register("bonus", "half")
@dataclass(frozen=True)
class Half(krl.bonuses.Simplified):
    """Half the simplified bonus."""

    scale: float = 0.5


@krl.register("metric", "anything")
@dataclass(frozen=True)
class Anything:
    """A metric with fields of every sort, for the codec only."""

    number: float = 1.0
    word: str | None = None
    pairs: tuple[tuple[float, ...], ...] = ()
    either: tuple | list = ()
    rule: Callable[..., float] | None = None
    rules: tuple[Callable[..., float], ...] = ()
    inner_metric: object = None
    other: object = None
    bounded = True

    def check(self, low: np.ndarray, high: np.ndarray) -> None:
        pass

    def space(self, low: np.ndarray, high: np.ndarray) -> LpSpace:
        return LpSpace(2.0, np.ones(len(low)))


def quarter(k: int) -> float:
    """A plain function as a schedule."""
    return 0.25
