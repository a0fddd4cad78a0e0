"""Exploration bonuses as users name them.

    Simplified   B = scale·(root/√C + count·R_h/C),  R_h the largest value left at step h: the paper's experiments
    Full         the paper's definition. It holds with probability 1-δ, and at any count anyone will ever have it is far
                 above the cap R_h, so that no value ever moves
    Joint        holds with probability 1-δ, too, and is far smaller

`bonus_scale` multiplies them all; below 1 the guarantees are gone. `kernelrl.bonuses.interface` has them in compiled
code.

A bonus of a user's own is a frozen dataclass, registered with `krl.register("bonus", name)`, with a method
`compiled(scale, problem)` that returns a NamedTuple for which `krl.bonuses.value` is implemented (docs/extending.md).
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelrl.arguments import as_whole
from kernelrl.bonuses.interface import FULL, JOINT, SELF_NORMALISED, SIMPLIFIED, new_coded
from kernelrl.bonuses.problem import BonusProblem

__all__ = ["BONUSES", "Bonus", "Full", "Joint", "Simplified", "bonus_object"]


class Bonus:
    """What all bonuses have in common. A bonus of a user's own is a subclass."""

    promises = False
    """Whether optimistic values hold with high probability."""
    needs_moments = False
    """Whether B depends on Σwρ and Σw² besides C."""
    needs_rates = False
    """Whether B depends on λ_r and λ_p themselves, and not only on L_h."""
    episodes: int | None = None
    """The number of episodes that B holds for; None if it holds for any number."""

    @property
    def certifies(self) -> bool:
        """Whether bounds follow from B."""
        return self.promises

    def changes_slowly(self, scale: float) -> bool:
        """Whether a small change of C may be left for a later plan (`kernelrl.planning.changes`).

        It may if there is no guarantee to lose, and B moves by at most (H + 1)/(C·min(1, C)) times the change. `scale`
        is the agent's `bonus_scale`.
        """
        return False

    def compiled(self, scale: float, problem: BonusProblem) -> Any:
        """The bonus as compiled code has it: a NamedTuple for which `krl.bonuses.value` is implemented.

        `scale` is the agent's `bonus_scale`. It is called again when something in `problem` has changed: the bandwidth
        of a schedule, or the range of rewards. What the bonus has counted is kept.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method compiled(scale, problem)")


@dataclass(frozen=True)
class Simplified(Bonus):
    """scale·(root/√C + count·R_h/C); with 1, 1 and 1 that of the paper's experiments.

    `root` weighs what noise may add to an estimate, `count` what the regularization takes from it.
    """

    root: float = 1.0
    count: float = 1.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        for name in ("root", "count", "scale"):
            given = getattr(self, name)
            try:
                number = float(given)
            except (TypeError, ValueError):
                number = math.nan
            if not (math.isfinite(number) and number >= 0.0):
                raise ValueError(f"Simplified: {name} must be a finite number of at least 0, got {given!r}")
            object.__setattr__(self, name, number)

    def changes_slowly(self, scale: float) -> bool:
        """It does, with factors of at most 1. A subclass may have any bonus."""
        return type(self) is Simplified and scale * self.scale * max(self.root, self.count) <= 1.0

    def compiled(self, scale: float, problem: BonusProblem) -> Any:
        """The NamedTuple that compiled code uses."""
        return new_coded(SIMPLIFIED, scale * self.scale, problem, root=self.root, count=self.count)


@dataclass(frozen=True)
class Full(Bonus):
    """The paper's bonus at confidence `delta`; `reward_term` is "corrected", or "printed" as it stands in the paper.

    `episodes` is K; None holds for any number. As printed, the reward's bias is too small where L_1 < 1. Both are far
    above the cap in any practical case: at the paper's own settings and a count of a million it is 394 (printed: 884)
    where the cap is 20.
    """

    promises = True
    needs_rates = True

    delta: float = 0.05
    episodes: int | None = None
    reward_term: str = "corrected"

    def __post_init__(self) -> None:
        check_confidence(self)
        if self.reward_term not in ("corrected", "printed"):
            raise ValueError(f'Full: reward_term must be "corrected" or "printed", got {self.reward_term!r}')

    def compiled(self, scale: float, problem: BonusProblem) -> Any:
        """The NamedTuple that compiled code uses."""
        return new_coded(FULL, scale, problem, table=problem.full_table(self.delta, self.episodes, self.reward_term))

    @property
    def certifies(self) -> bool:
        """Not as it is printed: its bias may be too small."""
        return self.reward_term == "corrected"


@dataclass(frozen=True)
class Joint(Bonus):
    """The joint bonus at confidence `delta`: one martingale for reward and next value, and the bias seen in the data.

    `episodes` is K; None ("anytime") holds for any number and costs a little. With `bernstein` half of `delta` is for
    the empirical-Bernstein form, which certificates take where it is smaller: much smaller where little is random.
    """

    promises = True
    needs_moments = True

    delta: float = 0.05
    episodes: int | None = None
    self_normalised: bool = True
    bernstein: bool = False

    def __post_init__(self) -> None:
        check_confidence(self)
        for name in ("self_normalised", "bernstein"):
            given = getattr(self, name)
            if not isinstance(given, bool | np.bool_):
                raise ValueError(f"Joint: {name} must be True or False, got {given!r}")
            object.__setattr__(self, name, bool(given))

    @property
    def share(self) -> float:
        """What each of the two forms has of δ."""
        return 0.5 * self.delta if self.bernstein else self.delta

    def compiled(self, scale: float, problem: BonusProblem) -> Any:
        """The NamedTuple that compiled code uses."""
        code = SELF_NORMALISED if self.self_normalised else JOINT
        table = problem.joint_table(self.share, self.episodes, self.self_normalised)
        return new_coded(code, scale, problem, table=table)

    def rules(self, problem: BonusProblem, epochs: Any) -> Any:
        """(H, M, 24, 4) the empirical-Bernstein form at each step, whose pool is in epoch `epochs` (H,)."""
        return problem.bernstein_rules(self.share, self.episodes, epochs)


def check_confidence(bonus: Any) -> None:
    """Refuse a `delta` outside (0, 1) and `episodes` that is no whole number."""
    name = type(bonus).__name__
    try:
        delta = float(bonus.delta)
    except (TypeError, ValueError):
        delta = math.nan
    if not 0.0 < delta < 1.0:
        raise ValueError(f"{name}: delta must lie between 0 and 1, got {bonus.delta!r}")
    object.__setattr__(bonus, "delta", delta)
    if bonus.episodes is None:
        return
    episodes = as_whole(bonus.episodes)
    if episodes is None or episodes < 1 or isinstance(bonus.episodes, bool):
        raise ValueError(f"{name}: episodes must be a whole number of at least 1, or None, got {bonus.episodes!r}")
    object.__setattr__(bonus, "episodes", episodes)


BONUSES = {"simplified": Simplified, "full": Full, "joint": Joint}


def bonus_object(bonus: str | Bonus) -> Bonus:
    """A bonus object from a name or an object."""
    if isinstance(bonus, Bonus):
        return bonus
    if isinstance(bonus, str) and bonus in BONUSES:
        return BONUSES[bonus]()
    raise ValueError(
        f"bonus: {bonus!r} is not known; use one of {', '.join(BONUSES)}, krl.bonuses.Simplified, krl.bonuses.Full, "
        "krl.bonuses.Joint or a subclass of krl.bonuses.Bonus"
    )
