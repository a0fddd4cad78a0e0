"""The theory as code that runs: what the paper's guarantees mean in numbers for a given problem.

Imported when first used, like the rest of the package; nothing here is compiled except the kernels that it evaluates.
"""

from kernelrl.theory import bonuses, concentration, covering, kernel_constants, lipschitz, regret
from kernelrl.theory.bonuses import Problem
from kernelrl.theory.summary import summarise

__all__ = [
    "Problem",
    "bonuses",
    "concentration",
    "covering",
    "kernel_constants",
    "lipschitz",
    "regret",
    "summarise",
]
