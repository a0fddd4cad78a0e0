"""Random settings and filled buckets for the tests of what works on them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from from_python import callable_from_python
from kernelrl.bonuses import Simplified
from kernelrl.geometry import buckets as module
from kernelrl.geometry.buckets import NARROW, WIDTH, new_buckets
from kernelrl.geometry.kernels import resolve_kernel
from kernelrl.geometry.metrics import resolve_metric
from kernelrl.stores.samples import NEAREST, Settings
from kernelrl.stores.units import units_of
from naive import kernels, metrics

add_point = callable_from_python(module.add_point)

LISTS, H = 3, 4
SIGMA, BETA = 0.15, 0.05

# kernel, metric, number of coordinates and width of chunks; the first is the one with code of its own
CASES = {
    "plane": ("gaussian", "euclidean", 2, WIDTH),
    "narrow": ("gaussian", "euclidean", 2, NARROW),
    "line": ("gaussian", "euclidean", 1, NARROW),
    "space": ("gaussian", "euclidean", 3, WIDTH),
    "manhattan": ("gaussian", "manhattan", 2, NARROW),
    "compact": ("compact", "chebyshev", 2, WIDTH),
    "tricube": ("tricube", "euclidean", 2, NARROW),
}


def make_settings(kernel: Any, metric: Any, d: int, **changes: Any) -> Settings:
    kernel = resolve_kernel(kernel)
    low, high = np.zeros(d), np.ones(d)
    given = {
        "horizon": H,
        "actions": LISTS,
        "beta": BETA,
        "inverse_sigma2": 1 / SIGMA**2,
        "reach": kernel.reach(BETA * 2.0**-79) * SIGMA,
        "kernel": kernel.compiled(),
        "promises": False,
        "stationary": True,
        "interpolate": True,
        "lipschitz": np.array([4.0, 2.0, 1.0, 0.0]),
        "replan": 0,
        "growth": 1.0,
        "ready": True,
        "logs": False,
        "step_scale": 0.0,
        "by_step": False,
        "own_steps": False,
        "reading": NEAREST,
        "least_sigma": SIGMA,
        "exponent": 0.0,
        "by_state": False,
        "units": units_of(0.0, 1.0),
        "space": resolve_metric(metric).space(low, high),
    }
    given |= changes
    problem = SimpleNamespace(**{name: given[name] for name in ("beta", "horizon", "stationary", "lipschitz")})
    return Settings.of(**{"bonus": Simplified().compiled(0.3, problem), **given})


class Pool:
    """Random points in a few lists, as buckets and as plain arrays; `slots` says which is where."""

    def __init__(self, case: str, n: int = 150, seed: int = 0, cell: float = 0.2, **changes: Any) -> None:
        kernel, metric, d, self.width = CASES[case]
        self.settings = make_settings(kernel, metric, d, **changes)
        self.g = kernels.BY_NAME[kernel]
        self.rho = getattr(metrics, metric)
        rng = np.random.default_rng(seed)
        self.points = rng.random((n, d))
        self.points[n // 2 :] = np.round(self.points[n // 2 :] * 4) / 4  # duplicates
        self.which = rng.choice(LISTS, size=n, p=[0.6, 0.4, 0.0])  # the last list is empty
        chunks = n + 1
        self.buckets = new_buckets(LISTS, np.zeros(d), np.ones(d), cell, self.width, chunks)
        pairs = zip(self.which, self.points, strict=True)
        self.slots = np.array([add_point(self.buckets, which, u) for which, u in pairs], int)
        self.rng, self.chunks, self.d = rng, chunks, d

    def at(self, u: np.ndarray) -> np.ndarray:
        """ρ between `u` and all points, (n,)."""
        return self.rho(u[None], self.points)[0]

    def weights(self, u: np.ndarray, which: int) -> np.ndarray:
        """Weights of all points at `u`, (n,); zero for those of other lists."""
        return self.g(self.at(u) / SIGMA) * (self.which == which)

    def spread(self, values: np.ndarray, fill: float = 0.0) -> np.ndarray:
        """Values (…, n) of the points laid out by slots, (…, chunks, width)."""
        out = np.full((*values.shape[:-1], self.chunks, self.width), fill, values.dtype)
        out[..., self.slots // WIDTH, self.slots % WIDTH] = values
        return out

    def gather(self, array: np.ndarray) -> np.ndarray:
        """The values of the points out of such an array."""
        return array[..., self.slots // WIDTH, self.slots % WIDTH]

    def places(self, n: int = 6) -> np.ndarray:
        """A few states, some of them points, one of them outside the box, (n, d)."""
        states = self.rng.random((n, self.d))
        states[: n // 2] = self.points[self.rng.integers(len(self.points), size=n // 2)]
        states[-1] += 1.3
        return states
