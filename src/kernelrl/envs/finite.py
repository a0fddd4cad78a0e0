"""Optimal values of a finite problem, by backward induction.

With T the terminal states, where an episode ends on arrival,

    Q_h(x,a) = Σ_y P_h(y|x,a)·(r(x,a,y) + 1(y ∉ T)·V_{h+1}(y)),   V_h(x) = max_a Q_h(x,a),   V_H = 0

and V_h = Q_h = 0 in T: nothing is collected there.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["FiniteValues", "solve_finite"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ROUNDING = 1e-9  # by which the sum of a row's probabilities may differ from 1


@dataclass(frozen=True)
class FiniteValues:
    """The optimal values of a finite problem; steps count from 0, states and actions too."""

    horizon: int
    """H, the number of steps of an episode."""
    table: Floats = field(repr=False)
    """(H, X, A) Q*_h(x, a)."""

    def q_values(self, states: ArrayLike, step: int) -> Floats:
        """(n, A) Q*_h at `states`, numbers of states (n,) or (n, 1)."""
        if not 0 <= step < self.horizon or step != int(step):
            raise ValueError(f"step must be one of 0 … {self.horizon - 1}, got {step!r}")
        Q: Floats = self.table[int(step), self._check(states)]
        return Q

    def values(self, states: ArrayLike, step: int) -> Floats:
        """(n,) V*_h at `states`."""
        best: Floats = self.q_values(states, step).max(axis=1)
        return best

    def actions(self, states: ArrayLike, step: int) -> Integers:
        """(n,) an optimal action at `states`; the lowest if several are equal."""
        best: Integers = self.q_values(states, step).argmax(axis=1)
        return best

    def _check(self, states: ArrayLike) -> Integers:
        x, X = np.asarray(states), self.table.shape[1]
        if x.ndim == 2 and x.shape[1] == 1:
            x = x[:, 0]
        if x.ndim != 1 or x.dtype.kind not in "iuf" or not np.all((x >= 0) & (x < X) & (x == np.floor(x))):
            raise ValueError(f"states must be an array (n,) of numbers of states, 0 … {X - 1}, got {states!r}")
        return x.astype(np.int64)


def solve_finite(P: ArrayLike, r: ArrayLike, horizon: int, terminal: ArrayLike | None = None) -> FiniteValues:
    """The optimal values of a problem with X states and A actions.

    Args:
        P: P(y | x, a) as (A, X, X), or (H, A, X, X) where it depends on the step; the last axis is y.
        r: rewards r(x, a) as (X, A), or r(x, a, y) as (X, A, X).
        horizon: H, the number of steps of an episode.
        terminal: (X,) bool, the states where an episode ends on arrival: the reward of the step that leads there is
            collected, and nothing after it. P and r of steps from there do not matter.
    """
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or horizon < 1:
        raise ValueError(f"horizon must be a whole number of at least 1, got {horizon!r}")
    H = int(horizon)
    P = check_probabilities(P, H)
    A, X = P.shape[1:3]
    over = check_terminal(terminal, X)
    check_rows(P, over)
    P = np.where(over[:, None], 0.0, P)
    r = check_rewards(r, X, A, over)
    table, V = np.zeros((H, X, A)), np.zeros(X)
    for h in range(H - 1, -1, -1):
        step = P[h if len(P) > 1 else 0]  # (A, X, X)
        collected = r if r.ndim == 2 else np.einsum("axy,xay->xa", step, r)
        table[h] = collected + (step @ V).T  # 0 in terminal states, since r and P are
        V = table[h].max(axis=1)
    return FiniteValues(H, table)


def check_probabilities(P: ArrayLike, H: int) -> Floats:
    """P as (1, A, X, X) or (H, A, X, X)."""
    p = as_numbers("P", P)
    if p.ndim == 3:
        p = p[None]
    if p.ndim != 4 or p.shape[2] != p.shape[3] or len(p) not in (1, H) or 0 in p.shape:
        raise ValueError(f"P must have the shape (A, X, X) or ({H}, A, X, X) for horizon={H}, got {np.shape(P)}")
    return p


def check_rows(P: Floats, over: NDArray[np.bool_]) -> None:
    """Raise ValueError unless each P(· | x, a) is a distribution, except in terminal states."""
    off = ((P < 0.0).any(axis=-1) | ~(abs(P.sum(axis=-1) - 1.0) <= ROUNDING)) & ~over  # (…, A, X)
    if off.any():
        h, a, x = np.argwhere(off)[0]
        raise ValueError(
            f"P must hold probabilities that sum to 1 over next states; those of state {x}, action {a}, step {h} do "
            f"not: {P[h, a, x]} (sum {P[h, a, x].sum():.12g})"
        )


def check_terminal(terminal: ArrayLike | None, X: int) -> NDArray[np.bool_]:
    """`terminal` as booleans (X,)."""
    over = np.zeros(X, np.bool_) if terminal is None else np.asarray(terminal)
    if over.dtype != np.bool_ or over.shape != (X,):
        raise ValueError(f"terminal must be True or False for each of the {X} states, got {terminal!r}")
    return over


def check_rewards(r: ArrayLike, X: int, A: int, over: NDArray[np.bool_]) -> Floats:
    """`r` as finite numbers, 0 in terminal states."""
    rewards = as_numbers("r", r)
    if rewards.shape not in ((X, A), (X, A, X)):
        raise ValueError(f"r must have the shape ({X}, {A}) or ({X}, {A}, {X}), states first, got {rewards.shape}")
    rewards = rewards.copy()
    rewards[over] = 0.0
    if not np.isfinite(rewards).all():
        raise ValueError("r must hold finite numbers; it has some that are infinite or NaN")
    return rewards


def as_numbers(name: str, given: ArrayLike) -> Floats:
    """`given` as floats."""
    try:
        return np.asarray(given, np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of numbers, got {given!r}") from error
