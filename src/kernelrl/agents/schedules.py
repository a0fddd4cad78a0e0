"""Bandwidths that fall as data arrive, or several at once.

`Power`, or any function of k, gives one σ_k for the k-th episode, k from 0. `Local` gives each representative state and
action a bandwidth of its own, from the data around it. `Bandwidths` has several estimates of each pair, one for each of
its bandwidths, which stay as they are.

An agent takes them as its `bandwidth`. Counts are kept raw, so nothing is lost when bandwidths change.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelrl.agents.checks import one_of, positive

__all__ = ["Bandwidths", "Local", "Power"]


@dataclass(frozen=True)
class Power:
    """σ_k = max(minimum, start·(1 + k/100)^-exponent).

    Weights are computed again when σ_k differs by more than 5 % from the bandwidth in use.
    """

    start: float
    minimum: float
    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", positive("start", self.start))
        object.__setattr__(self, "minimum", positive("minimum", self.minimum, most=self.start))
        object.__setattr__(self, "exponent", positive("exponent", self.exponent, zero=True))

    def __call__(self, k: int) -> float:
        """σ_k."""
        return float(max(self.minimum, self.start * (1.0 + k / 100.0) ** -self.exponent))


@dataclass(frozen=True)
class Local:
    """σ(u, a) = max(minimum, start·(1 + C_0(u, a))^-exponent) for each representative state u and action a.

    C_0 is the generalized count at the bandwidth `start`. With by="state" it is the smallest of all actions, so that
    they share one bandwidth. Bandwidths are renewed each time the number of episodes has grown by a fifth; a
    representative that is found in between begins with `start`. Kernels are cut at three bandwidths.
    """

    start: float
    minimum: float
    exponent: float = 0.25
    by: str = "action"

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", positive("start", self.start, least=1e-100, most=1e100))
        object.__setattr__(self, "minimum", positive("minimum", self.minimum, least=1e-100, most=self.start))
        object.__setattr__(self, "exponent", positive("exponent", self.exponent, zero=True))
        one_of("by", self.by, ("action", "state"))


@dataclass(frozen=True)
class Bandwidths:
    """Several bandwidths at once: of the upper bounds that they give for a state and action, the lowest counts.

    Q̃_h = min_j [r̂_j + P̂_jV_{h+1} + B_j], where estimate j has the j-th bandwidth. With a bonus that has a guarantee
    each B_j is taken at δ/M, so that all M hold together with probability 1-δ: the option with a guarantee where no one
    bandwidth is right everywhere. It is for agents on representative states; a merge distance of 0 merges nothing but
    equal states. `sigmas` are kept from the widest to the narrowest.
    """

    sigmas: tuple[float, ...]

    def __post_init__(self) -> None:
        form = "at least two different bandwidths, such as Bandwidths([0.1, 0.03])"
        given = self.sigmas
        is_list = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1)
        if not is_list or len(given) == 0:
            raise ValueError(f"sigmas must be a list of {form}; got {given!r}")
        sigmas = sorted((positive("sigmas", sigma, least=1e-100, most=1e100) for sigma in given), reverse=True)
        if len(sigmas) == 1:
            raise ValueError(f"sigmas must be a list of {form}; got {given!r}: give bandwidth={sigmas[0]:g} instead")
        if len(set(sigmas)) < len(sigmas):
            raise ValueError(f"sigmas must be a list of {form}; one is twice in {given!r}")
        object.__setattr__(self, "sigmas", tuple(sigmas))

    @property
    def minimum(self) -> float:
        """The narrowest."""
        return self.sigmas[-1]
