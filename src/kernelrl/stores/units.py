"""Units of reward inside the core: every reward r of the environment is mapped from the range [low, high] to [0, 1].

    m(r) = (r - low)/(high - low)

so that R_h = H - h (steps from 0) is the largest value left at step h, as in the paper. Data are kept raw, in the
environment's units, and mapped where they are used: the range may widen while an agent learns.

After a termination nothing more is collected: 0 in the environment's units. For a step h that is being planned, H-h-1
steps remain after the transition, each worth m(0) = -low/(high - low), and so

    V_{h+1}(terminated) = m(0)·(H-h-1)                                                            (`after_end`)

where h is the planned step, not the step at which the sample was taken. A value v of step h in mapped units is
v·(high - low) + low·(H-h) in the environment's units.

While all rewards seen are 0 the range is `empty`, and [0, 1] is used instead. The first reward above 0 may then be
mapped to a wrong value until its episode ends. After that, stored values are reset to the cap, except those of
Q-learning, which would take too long to fall again: there `learnt` maps such a reward to 1.
"""

from typing import Any, NamedTuple

from kernelrl.jit.compile import inner

__all__ = ["Units", "after_end", "learnt", "mapped", "mapped_sum", "units_of"]


class Units(NamedTuple):
    """The mapping of rewards; made by `units_of` only."""

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
    """V_{h+1} after a termination, in mapped units, when step `h` is planned."""
    return units.nothing * (horizon - h - 1)
