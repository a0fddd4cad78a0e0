"""Kernels of one's own: one that the theory covers, and one that it does not.

    Wendland             g(z) = (1-z/5)⁴·(1+4z/5) for z < 5 (Wendland 1995)
    RationalQuadratic    g(z) = (1 + z²/2α)^-α

The first is 0 from z = 5 on, so that samples farther away than 5 bandwidths are never looked at, and satisfies the
theory's assumption: with t = z/5 its slope is -4t(1-t)³, steepest at t = 1/4, and g(z)·exp(z²/2) is largest where
(1-t)(1+4t) = 4/5. The second falls like a power of z, so no C1 with g(z) ≤ C1·exp(-z²/2) exists and every sample counts
everywhere; the bonuses with guarantees are refused with it.

    python examples/own_kernel.py
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import kernelrl as krl


class WendlandForm(NamedTuple):
    """The first as compiled code has it."""

    support: float


@krl.kernels.weight.implement(WendlandForm)
def wendland(kernel: WendlandForm, z2: float) -> float:
    t = math.sqrt(z2) / kernel.support
    return (1.0 - t) ** 4 * (1.0 + 4.0 * t) if t < 1.0 else 0.0


@krl.register("kernel", "wendland")
@dataclass(frozen=True)
class Wendland(krl.kernels.Kernel):
    """(1-z/5)⁴·(1+4z/5) for z < 5."""

    support = 5.0
    admissible = True
    LARGEST_AT = (3.0 + math.sqrt(12.2)) / 8.0
    C1 = (1.0 - LARGEST_AT) ** 4 * (1.0 + 4.0 * LARGEST_AT) * math.exp(12.5 * LARGEST_AT**2)
    C2 = 27.0 / 64.0

    def compiled(self) -> WendlandForm:
        """The NamedTuple that compiled code uses."""
        return WendlandForm(self.support)


class RationalForm(NamedTuple):
    """The second as compiled code has it."""

    alpha: float


@krl.kernels.weight.implement(RationalForm)
def rational(kernel: RationalForm, z2: float) -> float:
    return float((1.0 + 0.5 * z2 / kernel.alpha) ** -kernel.alpha)


@krl.register("kernel", "rational-quadratic")
@dataclass(frozen=True)
class RationalQuadratic(krl.kernels.Kernel):
    """(1 + z²/2α)^-α; outside the theory, since it falls too slowly."""

    alpha: float = 2.0

    def __post_init__(self) -> None:
        if not self.alpha > 0.0:
            raise ValueError(f"RationalQuadratic: alpha must be above 0, got {self.alpha}")

    def compiled(self) -> RationalForm:
        """The NamedTuple that compiled code uses."""
        return RationalForm(float(self.alpha))


def main() -> None:
    for kernel in (krl.kernels.Compact(), Wendland(), RationalQuadratic(4.0)):
        agent = krl.GreedyKernelUCBVI(bandwidth=0.025, kernel=kernel)
        history = agent.fit("kernelrl/TwinRooms-v0", 3_000, seed=0)
        print(f"{kernel!r:30} {history.returns.sum():8.1f} collected in 3,000 episodes")


if __name__ == "__main__":
    main()
