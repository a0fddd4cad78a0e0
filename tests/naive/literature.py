"""The problems of the literature in plain NumPy, with the numbers written out.

Each problem is a class with `start(stream)` and `step(stream, x, a)`, which returns (next state, reward, whether it is
over); `stream` is a `naive.stream.Stream`, and actions of Oil and Ambulance are numbers from 0 to 1.
"""

import numpy as np

RIGHT, LEFT, UP, DOWN = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])


class SquareWorld:
    def start(self, stream):
        return np.array([0.1, 0.1])

    def step(self, stream, x, a):
        reward = np.exp(-np.sum((x - [0.75, 0.75]) ** 2) / 0.02)
        noise = 0.01 * np.array([stream.normal(), stream.normal()])
        return np.clip(x + 0.1 * [RIGHT, LEFT, UP, DOWN][a] + noise, 0, 1), reward, False


class PBall2D:
    def __init__(self, level=1):
        self.noise = {1: 0.01, 2: 0.01, 3: 0.025, 4: 0.01, 5: 0.025}[level]
        wide, narrow = 0.5 * np.sqrt(2), 0.2
        one, two = np.array([0.5, 0.5]), np.array([-0.5, -0.5])
        self.cones = {1: [(1, wide, one)], 2: [(1, narrow, one)], 4: [(1, narrow, two), (0.1, wide, one)]}[
            {3: 2, 5: 4}.get(level, level)
        ]

    def start(self, stream):
        return 0.001 * np.array([stream.normal(), stream.normal()])

    def step(self, stream, x, a):
        reward = sum(b * max(0, 1 - np.linalg.norm(x - at) / c) for b, c, at in self.cones)
        y = x + 0.05 * [0 * RIGHT, RIGHT, LEFT, UP, DOWN][a] + self.noise * np.array([stream.normal(), stream.normal()])
        return y / max(1, np.linalg.norm(y)), reward, False


class Oil:
    def __init__(self, form="laplace", steepness=1.0):
        self.form, self.steepness = form, steepness

    def start(self, stream):
        return np.array([0.5])

    def step(self, stream, x, a):
        f = {
            "laplace": np.exp(-self.steepness * abs(x[0] - 0.75)),
            "quadratic": 1 - self.steepness * (x[0] - 0.75) ** 2,
            "noise": np.exp(-self.steepness * abs(x[0] * a - 0.7)),
        }[self.form]
        noise = np.sqrt(0.1) * (x[0] + a) * stream.normal() if self.form == "noise" else 0.0
        return np.clip([a + noise], 0, 1), np.clip(f - abs(x[0] - a), 0, 1), False


class Ambulance:
    def __init__(self, arrivals="beta", alpha=0.25):
        self.arrivals, self.alpha, self.h = arrivals, alpha, 0

    def start(self, stream):
        self.h = 0
        return np.array([0.5])

    def step(self, stream, x, a):
        if self.arrivals == "beta":
            y = sorted(stream.uniform() for _ in range(6))[-2]
        elif self.arrivals == "uniform":
            y = stream.uniform()
        else:
            low, high = [(0, 0.25), (0.25, 0.3), (0.3, 0.5), (0.5, 0.6), (0.6, 0.65)][min(self.h, 4)]
            y = low + (high - low) * stream.uniform()
        self.h += 1
        return np.array([y]), 1 - (self.alpha * abs(x[0] - a) + (1 - self.alpha) * abs(a - y)), False


class PuddleWorld:
    def __init__(self, noise="shared"):
        self.noise = noise

    def start(self, stream):
        while True:
            x = np.array([stream.uniform(), stream.uniform()])
            if x.sum() <= 1.9:
                return x

    def step(self, stream, x, a):
        first = stream.normal()
        second = first if self.noise == "shared" else stream.normal()
        y = np.clip(x + 0.05 * [RIGHT, LEFT, UP, DOWN][a] + 0.01 * np.array([first, second]), 0, 1)
        if y.sum() > 1.9:
            return y, 0.0, True
        segments = [((0.1, 0.75), (0.45, 0.75)), ((0.45, 0.4), (0.45, 0.8))]
        deep = max(0.1 - distance(y, np.array(p), np.array(q)) for p, q in segments)
        return y, -1 - 400 * max(0, deep), False


def distance(y, p, q):
    """From y to the segment from p to q."""
    t = np.clip(np.dot(y - p, q - p) / np.dot(q - p, q - p), 0, 1)
    return np.linalg.norm(y - (p + t * (q - p)))
