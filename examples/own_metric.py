"""A metric of one's own, and a symmetry as a map: both are compiled functions of a few lines.

TwinRooms has two rooms with a wall between them. The Euclidean metric takes states on either side of the wall for
neighbours, though they never meet; `apart` knows better. `alike` goes further and says that the rooms are one place
(the package has it as `krl.envs.twin_rooms_fold`). Everything that uses such a function is compiled once, for half a
minute or so, and again when the function has changed.

    python examples/own_metric.py
"""

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


def main() -> None:
    env = gym.make("kernelrl/TwinRooms-v0")
    for name, metric in (
        ("euclidean", "euclidean"),
        ("rooms apart", krl.metrics.Custom(apart)),
        ("rooms alike", krl.metrics.Folded(alike, "euclidean")),
    ):
        agent = krl.GreedyKernelUCBVI(bandwidth=0.025, metric=metric, bonus_scale=0.1)
        history = agent.fit(env, 6_000, seed=0)
        total, number = history.returns.sum(), agent.number_of_representatives
        print(f"{name:12} {total:8.1f} collected in 6,000 episodes, {number} representatives")


if __name__ == "__main__":
    main()
