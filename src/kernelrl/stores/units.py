"""Units of reward inside the core: every reward r of the environment is mapped from the range [low, high] to [0, 1].

    m(r) = (r - low)/(high - low)

so that R_h = H - h (steps from 0) is the largest value left at step h, as in the paper. Data are kept raw, in the
environment's units, and mapped where they are used: the range may widen while an agent learns.

After an episode has terminated nothing more is collected, that is 0 in the environment's units. Seen from a step h that
is being planned, H-h-1 steps are left after the transition, each worth m(0) = -low/(high - low), and so

    V_{h+1}(terminated) = m(0)·(H-h-1)                                                            (`after_end`)

where h is the planned step and not the step that the sample was taken at. A value v of step h in mapped units is
v·(high - low) + low·(H-h) in the environment's.

While nothing but 0 has been seen [0, 1] stands in for a range that is `empty`. In the episode of the first reward above
0 that makes it look small, whatever it is. Values that are held are put back to the cap when the episode ends, except
Q-learning's, which would take too long to come down again: there `learnt` takes such a reward for the best there is.
"""

from typing import Any, NamedTuple

from kernelrl.jit.compile import inner

__all__ = ["Units", "after_end", "learnt", "mapped", "mapped_sum", "units_of"]


class Units(NamedTuple):
    """The mapping; made by `units_of` only."""

    low: float
    factor: float  # 1/(high - low)
    nothing: float  # m(0)
    empty: bool


def units_of(low: float, high: float, empty: bool = False) -> Units:
    """The mapping from the range [low, high]."""
    factor = 1.0 / (high - low)
    return Units(float(low), float(factor), float((0.0 - low) * factor), bool(empty))


@inner
def mapped(units: Any, reward: Any) -> Any:
    """m(reward)."""
    return (reward - units.low) * units.factor


@inner
def learnt(units: Any, reward: Any) -> Any:
    """m(reward), or 1 for a reward above 0 while the range is empty."""
    if units.empty:
        return 1.0 if reward > 0.0 else 0.0
    return mapped(units, reward)


@inner
def mapped_sum(units: Any, total: Any, number: Any) -> Any:
    """The sum of m(r) over `number` rewards, or weights, whose sum is `total`."""
    return (total - units.low * number) * units.factor


@inner
def after_end(units: Any, horizon: Any, h: Any) -> Any:
    """V_{h+1} after a termination, in mapped units, as step `h` sees it."""
    return units.nothing * (horizon - h - 1)
