"""Values that only fall: the verbs that Greedy-Kernel-UCBVI (paper, algorithm 3) needs besides `planning/interface.py`.

With V_h = R_h = H-h at first, at each visited state x of step h

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)             `targets_at`, from the data before this transition
    Ṽ          = min(R_h, max_a Q̃_h(x, a))
    V_h(·)     ← min(V_h(·), Ṽ + L_h·ρ(·, x))                      `learn`: a cone, and the transition
"""

import numpy as np

from kernelrl.jit.compile import generic, inner
from kernelrl.planning.between_actions import highest_of_all
from kernelrl.planning.sides import UPPER

__all__ = ["best_of", "learn", "targets_at", "value_at", "with_units"]


@inner
def best_of(settings, h, q):
    """Ṽ from Q̃_h(x, ·) of the actions of the net."""
    return highest_of_all(settings.between, UPPER, settings.lipschitz[h], q, np.float64(settings.horizon - h))


@generic(required=True)
def targets_at(values, settings, store, x, h, q):
    """Write Q̃_h(x, ·) into `q` (A,); return whether `learn` would compute the same."""


@generic(required=True)
def learn(values, settings, store, x, action, reward, y, h, terminated, known, best):
    """Lower V_h to max_a Q̃_h(x, a) at x, which is `best` if `known`, and add the transition."""


@generic(required=True)
def value_at(values, settings, store, x, h):
    """V_h(x)."""


@generic(required=True)
def with_units(values, settings, store, old, keep):
    """The values with `keep` times their distance from the cap, in the units of `settings`; they were in `old` units.

    Plain Python, not compiled.
    """
