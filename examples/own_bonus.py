"""A bonus of one's own: like that of UCB1 (Auer et al. 2002), it grows with the logarithm of the number of samples.

With n samples so far (of the step, or of all steps where these share their data), the generalized count C = β + Σw and
R_h = H-h, the most that the steps left can bring when rewards are mapped to [0, 1],

    B_h = scale·√(log(1+n)/C) + R_h·β/C

The second term is the most that the regularization β takes from an estimate; where nothing was tried it is R_h.

    python examples/own_bonus.py
"""

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray

import kernelrl as krl


class LogForm(NamedTuple):
    """The bonus as compiled code has it."""

    scale: float
    beta: float
    horizon: int
    pooled: bool
    samples: Annotated[NDArray[np.int64], krl.Field("pools", np.int64)]  # n of each pool; what is declared is saved


@krl.bonuses.value.implement(LogForm)
def value(bonus: LogForm, h: int, C: float, D: float, W2: float) -> float:
    n = bonus.samples[0 if bonus.pooled else h]
    return bonus.scale * math.sqrt(math.log(1.0 + n) / C) + (bonus.horizon - h) * bonus.beta / C


@krl.bonuses.count.implement(LogForm)
def count(bonus: LogForm, h: int) -> bool:
    bonus.samples[0 if bonus.pooled else h] += 1
    return True  # B has changed


@krl.register("bonus", "log")
@dataclass(frozen=True)
class LogBonus(krl.bonuses.Bonus):
    """scale·√(log(1+n)/C) + R_h·β/C with n samples so far."""

    scale: float = 1.0

    def compiled(self, scale: float, problem: krl.bonuses.BonusProblem) -> LogForm:
        """The NamedTuple that compiled code uses, before any data; the agent's `bonus_scale` is `scale`."""
        pools = 1 if problem.stationary else problem.horizon
        samples = np.zeros(pools, np.int64)
        return LogForm(float(scale * self.scale), problem.beta, problem.horizon, problem.stationary, samples)


def main() -> None:
    for bonus in (krl.bonuses.Simplified(root=0.05, count=0.01), LogBonus(scale=0.02)):
        agent = krl.KernelUCBVI(bandwidth=0.025, bonus=bonus)
        history = agent.fit("kernelrl/TwinRooms-v0", 1_000, seed=0)
        print(f"{bonus!r:50} {history.returns.sum():8.1f} collected in 1,000 episodes")


if __name__ == "__main__":
    main()
