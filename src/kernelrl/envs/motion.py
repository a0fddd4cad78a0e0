"""`Motion`: what must be known of an environment for computing with it instead of playing it.

In each of its rooms (boxes of the state space that are never left) an action moves the state by a known function, noise
is added, and the result is clipped into the room:

    y = clip(m(x, a) + ε),   ε ~ N(0, diag(noise²)),   reward r(x, a),

until the time limit. Where `ends` is given, an episode is also over on arrival at a state y for which it is true, and
nothing is collected after that. A part of the reward may depend on where the step leads to: `reward_after(y, a)` where
the episode goes on, `reward_at_end(y, a)` where it ends. An example, with -1 a step, +1 on reaching the half-space, and
a cost of the place that is reached:

    ends=lambda y: y[:, 0] + y[:, 1] > 1.9,   reward=lambda x, a: np.full(len(x), -1.0),
    reward_after=lambda y, a: -cost(y),       reward_at_end=lambda y, a: np.full(len(y), 1.0)

A `CompiledEnv` that moves like this says so in a method `motion()`, and `kernelrl.envs.solve` and the reports
then know its optimal values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Motion"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Motion:
    """How an environment moves; functions take states (n, d)."""

    low: Floats
    """(rooms, d) the lowest corner of each room."""
    high: Floats
    """(rooms, d) the highest."""
    noise: Floats
    """(d,) standard deviation of the noise in each coordinate."""
    actions: tuple[str, ...]
    """The names of the actions."""
    room: Callable[[Floats], NDArray[np.int64]]
    """The room (n,) that each state is in; for a state in a wall, that of a state nearby."""
    move: Callable[[Floats, int], Floats]
    """m(x, a) (n, d): where an action leads before noise and clipping."""
    reward: Callable[[Floats, int], Floats]
    """r(x, a) (n,)."""
    starts: Floats
    """(s, d) where an episode may start, all equally likely."""
    ends: Callable[[Floats], NDArray[np.bool_]] | None = None
    """(n,) whether an episode is over on arrival at a state: boxes, balls, half-spaces, walls, unions of them."""
    reward_after: Callable[[Floats, int], Floats] | None = None
    """(n,) added to r(x, a) on arrival at a state y where the episode goes on."""
    reward_at_end: Callable[[Floats, int], Floats] | None = None
    """(n,) added to r(x, a) on arrival at a state y where it ends.

    The solver evaluates `move` and all rewards at every state of a room, also at those where an episode is over. Each
    should be continuous: what jumps where episodes end is the difference of `reward_after` and `reward_at_end`.
    """
