"""A random stream that compiled and interpreted code share: xoshiro256++, seeded by splitmix64.

A stream is a `uint64[4]` array, part of an agent's state like any other array, and saved with it. Passing a
`numpy.random.Generator` to a compiled function costs 10 µs; this costs nothing.

Unsigned constants are written as `np.uint64`: mixing `uint64` with a signed integer gives a float in numba.
"""

import math

import numpy as np
from numpy.typing import NDArray

from kernelrl.jit.compile import compiled

__all__ = ["episode_seed", "index_below", "new_stream", "normal", "seed_stream", "uniform"]

Words = NDArray[np.uint64]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_A = np.uint64(0xBF58476D1CE4E5B9)
MIX_B = np.uint64(0x94D049BB133111EB)
U11, U17, U23, U27, U30, U31, U33, U41, U45, U19 = (np.uint64(n) for n in (11, 17, 23, 27, 30, 31, 33, 41, 45, 19))
TO_UNIT = 2.0**-53


@compiled
def mix(z: np.uint64) -> np.uint64:
    """One output of splitmix64: a bijection of 64 bits that leaves no trace of the input's pattern."""
    z = (z ^ (z >> U30)) * MIX_A
    z = (z ^ (z >> U27)) * MIX_B
    return z ^ (z >> U31)


@compiled
def seed_stream(stream: Words, seed: int) -> None:
    """Set `stream` to the state of the integer `seed`."""
    z = np.uint64(seed)
    for i in range(4):
        z = z + GOLDEN
        stream[i] = mix(z)


def new_stream(seed: int) -> Words:
    """A fresh stream for `seed` (a Python integer of up to 64 bits)."""
    stream = np.empty(4, np.uint64)
    seed_stream(stream, np.uint64(seed))  # type: ignore[arg-type]
    return stream


@compiled
def episode_seed(seed: int, k: int) -> int:
    """The seed with which episode `k` of a run with `seed` resets its environment: 31 bits suit every library."""
    return np.int64(mix(mix(np.uint64(seed) + GOLDEN) + np.uint64(k) * GOLDEN) >> U33)  # type: ignore[return-value]


@compiled
def next_bits(stream: Words) -> np.uint64:
    """The next 64 random bits."""
    s0, s1, s2, s3 = stream[0], stream[1], stream[2], stream[3]
    total = s0 + s3
    bits = ((total << U23) | (total >> U41)) + s0
    shifted = s1 << U17
    s2 = s2 ^ s0
    s3 = s3 ^ s1
    s1 = s1 ^ s2
    s0 = s0 ^ s3
    s2 = s2 ^ shifted
    s3 = (s3 << U45) | (s3 >> U19)
    stream[0], stream[1], stream[2], stream[3] = s0, s1, s2, s3
    return bits


@compiled
def uniform(stream: Words) -> float:
    """A float in [0, 1), uniform over 2^53 values."""
    return np.float64(next_bits(stream) >> U11) * TO_UNIT


@compiled
def index_below(stream: Words, n: int) -> int:
    """An integer in 0 … n-1 (its bias, at most n·2^-53, is too small to detect)."""
    return min(np.int64(uniform(stream) * n), n - 1)  # type: ignore[return-value]


@compiled
def normal(stream: Words) -> float:
    """A standard normal deviate by the polar method (the second of the pair is dropped: a stream has only 4 words)."""
    while True:
        u = 2.0 * uniform(stream) - 1.0
        v = 2.0 * uniform(stream) - 1.0
        s = u * u + v * v
        if 0.0 < s < 1.0:
            return u * math.sqrt(-2.0 * math.log(s) / s)
