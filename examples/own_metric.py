"""A metric of one's own: as a compiled function of two states, as a map of states, and as a class with parameters.

TwinRooms has two rooms with a wall between them. The Euclidean metric takes states on either side of the wall for
neighbours, though they never meet; `apart` knows better. `alike` goes further and says that the rooms are one place
(the package has it as `krl.envs.twin_rooms_fold`). `Walled` is `apart` as a class: it has parameters, is saved and
named in experiments' files, and its searches take the grid that a function does not allow. Everything that uses such a
function or class is compiled once, for half a minute or so, and again when it has changed.

    python examples/own_metric.py
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import gymnasium as gym
import numba
import numpy as np
from numpy.typing import NDArray

import kernelrl as krl

Floats = NDArray[np.float64]


@numba.njit
def apart(x: Floats, y: Floats) -> float:
    """Euclidean inside a room, and one more across the wall; it must be symmetric and keep the triangle inequality."""
    distance: float = ((x[0] - y[0]) ** 2 + (x[1] - y[1]) ** 2) ** 0.5
    return distance if (x[0] < 1.0) == (y[0] < 1.0) else distance + 1.0


@numba.njit
def alike(state: Floats, out: Floats) -> None:
    """The state of the first room that `state` is like."""
    out[0] = state[0] - 1.0 if state[0] >= 1.0 else state[0]
    out[1] = state[1]


class WalledSpace(NamedTuple):
    """The metric `Walled` as compiled code has it."""

    wall: float
    detour: float


@krl.metrics.squared_distances.implement(WalledSpace)
def squares(space: WalledSpace, points: Floats, chunk: int, size: int, n: int, u: Floats, out: Floats) -> None:
    for i in range(size):
        square = 0.0
        for j in range(u.size):
            square += (points[chunk, j, i] - u[j]) ** 2
        if (points[chunk, 0, i] < space.wall) != (u[0] < space.wall):
            square = (math.sqrt(square) + space.detour) ** 2
        out[i] = square
    for i in range(size, n):
        out[i] = math.inf


@krl.metrics.gap_squared.implement(WalledSpace)
def gap(space: WalledSpace, box: Floats, chunk: int, u: Floats) -> float:
    square = 0.0
    for j in range(u.size):
        square += max(0.0, max(box[0, chunk, j] - u[j], u[j] - box[1, chunk, j])) ** 2
    return square  # without the wall: never above the distance


@krl.register("metric", "walled")
@dataclass(frozen=True)
class Walled(krl.metrics.Metric):
    """Euclidean, and `detour` more between states on either side of x = `wall`."""

    wall: float = 1.0
    detour: float = 1.0
    bounded = True  # it is at least the difference of any coordinate

    def space(self, low: krl.metrics.Bounds, high: krl.metrics.Bounds) -> WalledSpace:
        """The NamedTuple that compiled code uses."""
        return WalledSpace(float(self.wall), float(self.detour))


def main() -> None:
    env = gym.make("kernelrl/TwinRooms-v0")
    for name, metric in (
        ("euclidean", "euclidean"),
        ("rooms apart, a function", krl.metrics.Custom(apart)),
        ("rooms apart, a class", Walled()),
        ("rooms alike, a map", krl.metrics.Folded(alike, "euclidean")),
    ):
        agent = krl.GreedyKernelUCBVI(bandwidth=0.025, metric=metric)
        history = agent.fit(env, 6_000, seed=0)
        total, number = history.returns.sum(), agent.number_of_representatives
        print(f"{name:24} {total:8.1f} collected in 6,000 episodes, {number} representatives")


if __name__ == "__main__":
    main()
