"""What a bonus may depend on besides the data."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.kernels import Kernel

__all__ = ["BonusProblem"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class BonusProblem:
    """What a bonus is for. Rewards are mapped to [0, 1], so the largest value left at step h is R_h = H-h."""

    horizon: int
    """H."""
    actions: int
    """A."""
    beta: float
    """The agent's `regularization` β: a pair without samples has the count C = β."""
    sigma: float
    """The bandwidth in use; the widest of several."""
    stationary: bool
    """Whether all steps share their data: one pool of samples, not one per step."""
    lipschitz: Floats
    """(H,) L_h; 0 where the agent has none."""
    rates: tuple[float, float] | None
    """λ_r and λ_p, where they were given."""
    merge: float
    """The merge distance of representative states; 0 where every sample is kept."""
    kernel: Kernel
    metric: Any
    width: float
    """The width of the range of rewards, in the environment's units."""
    box: tuple[Floats, Floats]
    """The lowest and the highest embedded state, each (d,)."""
    bandwidths: tuple[float, ...] = ()
    """Several bandwidths at once, the widest first; nothing where there is one."""

    def full_table(self, delta: float, episodes: int | None, reward_term: str) -> Floats:
        """The coefficients of the full bonus (see `kernelrl.theory.bonuses`).

        M bandwidths at once have a table each, at δ/M and side by side.
        """
        raise NotImplementedError

    def joint_table(self, delta: float, episodes: int | None, self_normalised: bool) -> Floats:
        """The coefficients of the joint bonus."""
        raise NotImplementedError

    def bernstein_rules(self, delta: float, episodes: int | None, epochs: Any) -> Floats:
        """(H, M, 24, 4) its empirical-Bernstein form (see `kernelrl.theory.bernstein`) in the epochs (H,)."""
        raise NotImplementedError
