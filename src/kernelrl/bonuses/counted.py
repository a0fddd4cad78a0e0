"""What makes the baselines optimistic: the cap of each step's values, and the bonus of a pair visited n times.

    V_h ≤ cap_h,   cap_h = R_h = H-h

    B_h(n) = root/√N + share_h/N,   N = max(1, n)

One form serves all bonuses; s is `bonus_scale`:

    simplified      s·(1/√N + cap_h/N), as in the paper's experiments (appendix "Experiments")
    hoeffding       s·w/√N, where w is that of the algorithm's own analysis, with T = K·H steps in K episodes and
                    a probability δ of failure:
                    UCBVI, Greedy-UCBVI   w = 7·H·log(5·X·A·T/δ)                       Azar et al. 2017, UCBVI-CH
                    OptQL                 w = √(H³·log(X·A·T/δ)), s their constant c   Jin et al. 2018
                    AdaptiveQL            w = 2·√(H³·log(4·H·K/δ)) + 4·L·D, L the Lipschitz constant and D the
                                          diameter of the box                          Sinclair et al. 2019
    AdaMB's         s/√N, as in its authors' experiments                               Sinclair et al. 2020
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.bonuses.interface import value

__all__ = [
    "BONUSES",
    "Counted",
    "has_width",
    "new_counted",
    "root_only",
    "width_of_adaptive",
    "width_of_optql",
    "width_of_ucbvi",
]

BONUSES = ("simplified", "hoeffding")


def has_width(bonus):
    """Whether the bonus of that name is that of the algorithm's analysis, with a w of its own."""
    return bonus == "hoeffding"


class Counted(NamedTuple):
    """Caps and bonuses by step; made by `new_counted` only."""

    cap: np.ndarray  # (H+1,) with cap_H = 0
    root: float
    share: np.ndarray  # (H,)


def new_counted(horizon, bonus, scale, width):
    """The caps and the bonus of that name; `width` is w, for "hoeffding" only."""
    cap = np.arange(horizon, -1, -1.0)
    root, share = (width * scale, 0.0) if has_width(bonus) else (scale, scale)
    return Counted(cap, float(root), share * cap[:-1])


def root_only(horizon, scale):
    """The caps and the bonus scale/√N."""
    cap = np.arange(horizon, -1, -1.0)
    return Counted(cap, float(scale), 0.0 * cap[:-1])


@value.implement(Counted)
def counted_value(bonus, h, C, D, W2):
    N = max(1.0, C)
    return bonus.root / math.sqrt(N) + bonus.share[h] / N


def width_of_ucbvi(H, X, A, K, delta):
    """w of UCBVI-CH."""
    return 7.0 * H * math.log(5.0 * X * A * K * H / delta)


def width_of_optql(H, X, A, K, delta):
    """w of Q-learning with UCB-Hoeffding."""
    return math.sqrt(H**3 * math.log(X * A * K * H / delta))


def width_of_adaptive(H, K, delta, lipschitz, diameter):
    """w of adaptive Q-learning."""
    return 2.0 * math.sqrt(H**3 * math.log(4.0 * H * K / delta)) + 4.0 * lipschitz * diameter
