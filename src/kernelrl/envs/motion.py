"""`Motion`: what must be known of an environment of ours for computing with it instead of playing it.

In each of its rooms (boxes of the state space that are never left) an action moves the state by a known function, noise
is added, and the result is clipped into the room:

    y = clip(m(x, a) + ε),   ε ~ N(0, diag(noise²)),   reward r(x, a),

and nothing ends an episode but its time limit. A Gymnasium class of ours that moves like this says so in a method
`motion()`, and `kernelrl.envs.solve` and the reports then know its optimal values.
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
