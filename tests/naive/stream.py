"""xoshiro256++ and splitmix64 in Python's own integers, a line for each line of their definitions."""

import math

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def splitmix64(seed, n):
    """The first `n` outputs of splitmix64."""
    return [mix((seed + i * GOLDEN) & MASK) for i in range(1, n + 1)]


def rotate_left(word, n):
    return (word << n | word >> (64 - n)) & MASK


class Stream:
    """xoshiro256++ from four words, or seeded as the package seeds it."""

    def __init__(self, words):
        self.s = list(words)

    @classmethod
    def seeded(cls, seed):
        return cls(splitmix64(seed, 4))

    def bits(self):
        s = self.s
        result = (rotate_left((s[0] + s[3]) & MASK, 23) + s[0]) & MASK
        t = s[1] << 17 & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotate_left(s[3], 45)
        return result

    def uniform(self):
        return (self.bits() >> 11) / 2**53

    def index_below(self, n):
        return int(self.uniform() * n)

    def normal(self):
        while True:
            u, v = 2 * self.uniform() - 1, 2 * self.uniform() - 1
            if 0 < u * u + v * v < 1:
                return u * math.sqrt(-2 * math.log(u * u + v * v) / (u * u + v * v))


def episode_seed(seed, k):
    return mix((mix((seed + GOLDEN) & MASK) + k * GOLDEN) & MASK) >> 33
