"""Brute-force, vectorised loops over all samples, for comparison.

Arguments `xs`, `ys`, `values` are one-dimensional: coordinates in the plane and their values. Loops start at 0, since
the compiler does not vectorise loops whose index might be negative.
"""

import math

from kernelrl.geometry.kernels import exp_negative
from kernelrl.jit.compile import SUMS, inner

BLOCK = 256


@inner(fastmath=SUMS | {"contract"})
def scan(xs, ys, values, x, y, factor):
    """Σw and Σw·value of all samples at (x, y), w = exp(factor·ρ²)."""
    C, T = 0.0, 0.0
    for i in range(xs.size):
        dx, dy = xs[i] - x, ys[i] - y
        w = exp_negative(factor * (dx * dx + dy * dy))
        C += w
        T += w * values[i]
    return C, T


@inner(fastmath=SUMS | {"contract"})
def any_lower(xs, ys, heights, x, y, best, L2):
    """Positive if any of the cones lies below `best` at (x, y)."""
    total = 0.0
    for i in range(xs.size):
        dx, dy, below = xs[i] - x, ys[i] - y, max(0.0, best - heights[i])
        total += max(0.0, below * below - L2 * (dx * dx + dy * dy))
    return total


@inner
def lowest(xs, ys, heights, x, y, best, L):
    """The smaller of `best` and the lowest cone at (x, y), block by block."""
    n = xs.size
    for first in range(0, n, BLOCK):
        last = min(n, first + BLOCK)
        if any_lower(xs[first:last], ys[first:last], heights[first:last], x, y, best, L * L) > 0.0:
            for i in range(first, last):
                dx, dy = xs[i] - x, ys[i] - y
                best = min(best, heights[i] + L * math.sqrt(dx * dx + dy * dy))
    return best
