"""The four moves of the environments on a plane, compiled and as a table."""
# Annotations of compiled functions are for readers; numba infers its own.
# mypy: allow-untyped-decorators

import numpy as np
from numpy.typing import NDArray

from kernelrl.jit.compile import compiled

__all__ = ["NAMES", "SHIFTS", "shift"]

NAMES = ("right", "left", "up", "down")
SHIFTS: NDArray[np.float64] = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


@compiled
def shift(action: int, length: float) -> tuple[float, float]:
    """By how much a move of that length changes x and y; any other action stays."""
    if action == 0:
        return length, 0.0
    if action == 1:
        return -length, 0.0
    if action == 2:
        return 0.0, length
    return 0.0, -length if action == 3 else 0.0
