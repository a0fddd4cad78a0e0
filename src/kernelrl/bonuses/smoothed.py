"""Exploration bonuses B_h(x, a) as functions of the generalized count C = β + Σw.

    simplified          B = s·(root/√C + count·R_h/C),  R_h = H-h+1 the largest value left at step h
    full                B = s·(c0 + c1/√C + c2/C): the paper's definition. It holds with probability 1-δ, and at any
                        count anyone will ever have it is far above the cap R_h, so that no value ever moves
    joint               B = s·(c0 + (c1·√C + c2 + L_h·Σwρ)/C): holds with probability 1-δ, too, and is far smaller
    joint, self-normalised   the same with √(β+Σw²) for √C, smaller still

`s` is `bonus_scale`; the paper's experiments have s = root = count = 1. With s below 1 the guarantees are gone. The
theory's coefficients depend on the number of samples through its epoch, ⌊log2(1+n)⌋: `kernelrl.theory.bonuses` makes a
table of them, (epochs, H, 3), and `progress` says which row is in force. Compiled code takes a bonus as a number, its
code.
"""

import math
from dataclasses import dataclass

import numpy as np

from kernelrl.jit.compile import inner

__all__ = [
    "BONUSES",
    "FULL",
    "JOINT",
    "NONE",
    "SELF_NORMALISED",
    "Full",
    "Joint",
    "Simplified",
    "bonus_factors",
    "bonus_object",
    "bonus_value",
    "count_sample",
    "joint_bonus",
    "lower_bonus",
    "no_table",
    "resolve_bonus",
    "table_bonus",
]

# NONE, no bonus at all, plans the policy to deploy. From FULL on a table is used, from JOINT on Σwρ and Σw² besides C.
SIMPLIFIED, NONE, FULL, JOINT, SELF_NORMALISED = range(5)
BONUSES = {"simplified": SIMPLIFIED, "full": FULL, "joint": SELF_NORMALISED}
SAMPLES, EPOCH = range(2)


@inner
def bonus_factors(settings, h):
    """The factors of 1/√C and of 1/C in B_h, for a bonus without a table."""
    if settings.bonus == NONE:
        return 0.0, 0.0
    by_root, by_count = settings.bonus_scale * settings.bonus_root, settings.bonus_scale * settings.bonus_count
    return by_root, by_count * np.float64(settings.horizon - h)


@inner
def bonus_value(settings, h, C):
    """B_h of a bonus without a table at generalized count `C`."""
    by_root, by_count = bonus_factors(settings, h)
    return by_root / math.sqrt(C) + by_count / C


@inner
def table_bonus(settings, h, C):
    """B_h of a bonus with a table at generalized count `C`."""
    j, table = settings.progress[EPOCH, h], settings.table
    return settings.bonus_scale * (table[j, h, 0] + (table[j, h, 1] * math.sqrt(C) + table[j, h, 2]) / C)


@inner
def joint_bonus(settings, h, C, D, W2):
    """B_h of the joint bonus, where Σwρ is `D` and Σw² is `W2`; with the full bonus the same as `table_bonus`."""
    j, table = settings.progress[EPOCH, h], settings.table
    return lower_bonus(settings, h, C, D, W2) + settings.bonus_scale * table[j, h, 2] / C


@inner
def lower_bonus(settings, h, C, D, W2):
    """What is subtracted for a lower bound: the bonus without its β/C-term, since estimates are shrunk towards 0."""
    j, table = settings.progress[EPOCH, h], settings.table
    root = math.sqrt(settings.beta + W2) if settings.bonus == SELF_NORMALISED else math.sqrt(C)
    bias = settings.lipschitz[h] * D if settings.bonus >= JOINT else 0.0  # the full bonus has it in the table
    return settings.bonus_scale * (table[j, h, 0] + (table[j, h, 1] * root + bias) / C)


@inner
def count_sample(settings, h):
    """Count a sample of step `h` in the pools that it belongs to; True if that has changed a bonus."""
    if settings.bonus < FULL:
        return False
    progress, changed = settings.progress, False
    first, last = (0, settings.horizon - 1) if settings.stationary else (h, h)
    for level in range(first, last + 1):
        k = progress[SAMPLES, level] + 2  # one more sample, and k is one more than there are
        progress[SAMPLES, level] = k - 1
        if k & (k - 1) == 0 and progress[EPOCH, level] + 1 < settings.table.shape[0]:
            progress[EPOCH, level] += 1
            changed = True
    return changed


def no_table(horizon):
    """The table and progress of a bonus that has none."""
    return np.zeros((0, 0, 3)), np.zeros((2, horizon), np.int64)


@dataclass(frozen=True)
class Simplified:
    """scale·(root/√C + count·R_h/C); with 1, 1 and 1 that of the paper's experiments.

    `root` weighs what noise may add to an estimate, `count` what the regularization takes from it.
    """

    root: float = 1.0
    count: float = 1.0
    scale: float = 1.0

    def __post_init__(self):
        for name in ("root", "count", "scale"):
            given = getattr(self, name)
            try:
                number = float(given)
            except (TypeError, ValueError):
                number = math.nan
            if not (math.isfinite(number) and number >= 0.0):
                raise ValueError(f"Simplified: {name} must be a finite number of at least 0, got {given!r}")
            object.__setattr__(self, name, number)

    @property
    def code(self):
        """Its code."""
        return BONUSES["simplified"]


@dataclass(frozen=True)
class Full:
    """The paper's bonus at confidence `delta`; `reward_term` is "corrected", or "printed" as it stands in the paper.

    `episodes` is K; None holds for any number. As printed, the reward's bias is too small where L_1 < 1. Both are far
    above the cap in any practical case: at the paper's own settings and a count of a million it is 394 (printed: 884)
    where the cap is 20.
    """

    delta: float = 0.05
    episodes: int | None = None
    reward_term: str = "corrected"

    def __post_init__(self):
        check_confidence(self)
        if self.reward_term not in ("corrected", "printed"):
            raise ValueError(f'Full: reward_term must be "corrected" or "printed", got {self.reward_term!r}')

    @property
    def code(self):
        """Its code."""
        return FULL


@dataclass(frozen=True)
class Joint:
    """The joint bonus at confidence `delta`: one martingale for reward and next value, and the bias seen in the data.

    `episodes` is K; None ("anytime") holds for any number and costs a little.
    """

    delta: float = 0.05
    episodes: int | None = None
    self_normalised: bool = True

    def __post_init__(self):
        check_confidence(self)
        if not isinstance(self.self_normalised, bool | np.bool_):
            raise ValueError(f"Joint: self_normalised must be True or False, got {self.self_normalised!r}")
        object.__setattr__(self, "self_normalised", bool(self.self_normalised))

    @property
    def code(self):
        """Its code."""
        return SELF_NORMALISED if self.self_normalised else JOINT


def check_confidence(bonus):
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
    if isinstance(bonus.episodes, bool) or bonus.episodes != int(bonus.episodes) or bonus.episodes < 1:
        raise ValueError(f"{name}: episodes must be a whole number of at least 1, or None, got {bonus.episodes!r}")
    object.__setattr__(bonus, "episodes", int(bonus.episodes))


def bonus_object(bonus):
    """A bonus object from a name or an object."""
    if isinstance(bonus, Simplified | Full | Joint):
        return bonus
    if isinstance(bonus, str) and bonus in BONUSES:
        return {"simplified": Simplified, "full": Full, "joint": Joint}[bonus]()
    raise ValueError(
        f"bonus: {bonus!r} is not known; use one of {', '.join(BONUSES)}, krl.bonuses.Simplified, krl.bonuses.Full or "
        "krl.bonuses.Joint"
    )


def resolve_bonus(bonus):
    """The code of a bonus given by name or as an object."""
    return bonus_object(bonus).code
