"""The range of rewards that an agent maps to [0, 1] internally: given by the user, or taken from the rewards seen.

A reward outside a range given as a pair is an error if guarantees depend on the range (`strict`); otherwise it widens
the range. "auto" begins without a range and takes the lowest and the highest reward seen, always including 0. In both
cases the range changes only between episodes (docs/units.md says what happens to what was learnt).

If all rewards seen are costs, and then a whole episode costs nothing, "auto" takes the largest cost as the highest
reward, too: otherwise nothing could be better than doing nothing, and exploration would end.

Internally rewards are mapped from the range to [0, 1] (`kernelrl.stores.units`); users see the environment's units: a
value v of a step with n steps left is v·(high - low) + low·n in these.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.stores.units import Units, units_of

__all__ = ["RewardRange", "check_range"]

SLACK = 1e-9  # rounding allowed at the ends of a given range, as a share of its width
NARROWEST, WIDEST = 1e-100, 1e100


def check_range(given: Any) -> tuple[float, float] | str:
    """`reward_range` as "auto" or a pair of floats, or an error that names it."""
    if isinstance(given, str) and given == "auto":
        return "auto"
    form = '"auto" or a pair (lowest, highest)'
    try:
        low, high = (float(bound) for bound in given) if not isinstance(given, str) else (math.nan, math.nan)
    except (TypeError, ValueError):
        raise ValueError(f"reward_range must be {form}, got {given!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise ValueError(f"reward_range must be {form} of two finite numbers, the lower one first, got {given!r}")
    if not NARROWEST <= high - low <= WIDEST:
        raise ValueError(
            f"reward_range: its width must lie between {NARROWEST:g} and {WIDEST:g}, got {given!r}; rescale the rewards"
        )
    return low, high


@dataclass(frozen=True)
class RewardRange:
    """The current range."""

    low: float
    high: float
    given: bool
    """Whether the user gave it as a pair."""
    strict: bool = False
    """Whether a reward outside is an error."""
    empty: bool = False
    """Only rewards of 0 have been seen: [low, high] = [0, 1] is a placeholder."""

    @classmethod
    def of(cls, given: tuple[float, float] | str, strict: bool = False) -> RewardRange:
        """The range before any reward."""
        if isinstance(given, str):
            return cls(0.0, 1.0, given=False, empty=True)
        return cls(*given, given=True, strict=strict)

    @property
    def width(self) -> float:
        """high - low."""
        return self.high - self.low

    @property
    def limits(self) -> tuple[float, float]:
        """Rewards below the first or above the second lie outside."""
        if self.empty:
            return 0.0, 0.0
        slack = SLACK * self.width if self.given else 0.0
        return self.low - slack, self.high + slack

    @property
    def holds_zero(self) -> bool:
        """Whether 0, the reward after a termination, lies inside."""
        return self.limits[0] <= 0.0 <= self.limits[1]

    @property
    def units(self) -> Units:
        """The mapping of rewards to [0, 1]."""
        units: Units = units_of(self.low, self.high, self.empty)
        return units

    def in_own_units(self, values: Any, steps_left: int) -> Any:
        """Values of a step with `steps_left` steps left, including itself, in the environment's units."""
        return values * self.width + self.low * steps_left

    @property
    def hoped_for(self) -> float:
        """The reward to be hoped for once a whole episode has cost nothing; 0 where that makes no difference."""
        return -self.low if not self.given and not self.empty and self.high == 0.0 else 0.0

    def for_loop(self, horizon: int) -> npt.NDArray[np.float64]:
        """(6,) the `limits` of the episode loop (see `kernelrl.episodes.loop`); a whole episode has `horizon` steps."""
        return np.array([*self.limits, self.strict, self.holds_zero, self.hoped_for, horizon], np.float64)

    def holds(self, reward: float) -> bool:
        """Whether the reward lies inside."""
        floor, ceiling = self.limits
        return floor <= reward <= ceiling

    def widened(self, lowest: float, highest: float) -> tuple[RewardRange, float]:
        """The range with these rewards inside, and the factor by which distances from the cap shrink in mapped units.

        Values that only fall keep their distance from the cap in the environment's units. The cap rises with the upper
        end, so (H-h)·(rise) is added to them. The first range resets them to the cap.
        """
        if self.empty and max(abs(lowest), abs(highest)) < NARROWEST:
            return self, 1.0
        low, high = min(lowest, 0.0 if self.empty else self.low), max(highest, 0.0 if self.empty else self.high)
        before = 0.0 if self.empty else self.width
        new = RewardRange(low, high, given=self.given, strict=self.strict)
        return new, before / new.width

    def warn(self, lowest: float, highest: float, stacklevel: int) -> None:
        """Warn that these rewards have widened this range."""
        reward = lowest if lowest < self.low else highest
        warnings.warn(
            f"reward_range: the reward {reward} is outside {(self.low, self.high)}; the range was widened and all data "
            "kept",
            UserWarning,
            stacklevel=stacklevel + 1,
        )

    def outside_error(self, reward: float) -> ValueError:
        """The error for a reward outside a strict range."""
        return ValueError(
            f"reward: {reward!r} is outside reward_range={(self.low, self.high)}, on which the bonus's guarantees "
            "depend; make the agent with reward_range=(lowest, highest) such that every reward lies inside"
        )

    def end_error(self) -> ValueError:
        """The error for a termination where 0 lies outside the range."""
        return ValueError(
            f"reward_range: {(self.low, self.high)} excludes 0, but the environment has terminated, and then every "
            "step left brings 0; make the agent with a range that includes 0"
        )
