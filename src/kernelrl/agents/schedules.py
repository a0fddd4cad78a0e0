"""Bandwidths that fall as data arrive.

`Power`, or any function of k, gives one σ_k for the k-th episode, k from 0. `Local` gives each representative state and
action a bandwidth of its own, from the data around it.

An agent takes them as its `bandwidth`. Counts are kept raw, so nothing is lost when bandwidths change.
"""

from dataclasses import dataclass

from kernelrl.agents.checks import one_of, positive

__all__ = ["Local", "Power"]


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
