"""`Motion`: the equations of an environment, from which its optimal values can be computed.

In each of its rooms (boxes of the state space that are never left) an action moves the state by a known function, noise
is added, and the result is clipped to the room:

    y = clip(m(x, a) + ε),   ε ~ N(0, diag(noise²)),   reward r(x, a),

until the time limit. `project` replaces the clipping, for example by the nearest point of a disc. With `shared_noise`
one draw of noise, N(0, 1) times `noise`, is added to all coordinates. If `ends` is given, an episode also ends on
arrival at a state y where it is true, and nothing is collected after that. A part of the reward may depend on the next
state: `reward_after(y, a)` where the episode continues, `reward_at_end(y, a)` where it ends. An example, with -1 per
step, +1 on reaching the half-space, and a cost of the next state:

    ends=lambda y: y[:, 0] + y[:, 1] > 1.9,   reward=lambda x, a: np.full(len(x), -1.0),
    reward_after=lambda y, a: -cost(y),       reward_at_end=lambda y, a: np.full(len(y), 1.0)

Dynamics that do not have this form can be described by `kernelrl.envs.outcomes.Outcomes`.

If a `CompiledEnv` has a method `motion()`, `kernelrl.envs.solve` and the reports can compute its optimal values.
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
    """The room (n,) of each state; for a state inside a wall, the room of a nearby state."""
    move: Callable[[Floats, int], Floats]
    """m(x, a) (n, d): where an action leads before noise and clipping."""
    reward: Callable[[Floats, int], Floats]
    """r(x, a) (n,)."""
    starts: Floats
    """(s, d) where an episode may start, all equally likely."""
    ends: Callable[[Floats], NDArray[np.bool_]] | None = None
    """(n,) whether an episode ends on arrival at a state: boxes, balls, half-spaces, walls, unions of them."""
    reward_after: Callable[[Floats, int], Floats] | None = None
    """(n,) added to r(x, a) on arrival at a state y where the episode continues."""
    reward_at_end: Callable[[Floats, int], Floats] | None = None
    """(n,) added to r(x, a) on arrival at a state y where it ends.

    The solver evaluates `move` and all rewards at every state of a room, also where an episode is over. Each function
    should be continuous; a jump where episodes end is the difference between `reward_after` and `reward_at_end`.
    """
    project: Callable[[Floats], Floats] | None = None
    """(n, d) where z + ε, given as (n, d), ends up, instead of clipping; for one room, without `ends`."""
    shared_noise: bool = False
    """Whether all coordinates have the same draw of noise."""
    tolerance: float = 1e-3
    """The tolerance of its values by default: see `kernelrl.envs.solve`."""
