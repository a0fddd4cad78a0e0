"""Bandwidths that fall as data arrive: σ_k for the k-th episode, k from 0.

An agent takes a schedule, or any function of k, as its `bandwidth`. Counts are kept raw, so nothing is lost when σ
changes; weights are computed again when σ_k differs by more than 5 % from the bandwidth in use.
"""

from dataclasses import dataclass

from kernelrl.agents.checks import positive

__all__ = ["Power"]


@dataclass(frozen=True)
class Power:
    """σ_k = max(minimum, start·(1 + k/100)^-exponent)."""

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
