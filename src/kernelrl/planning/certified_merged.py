"""Upper and lower bounds on the optimal values from representative states: what a bonus of the theory certifies there.

The upper plan is Kernel-UCBVI's own, from all data. The lower one mirrors it (see `kernel_merged`), with V↓_H = 0:

    W↓_h(v, a) = s(v, a) + Σ_y n(v, a, y)·V↓_{h+1}(y)
    Q̃↓_h(u, a) = Σ_v w(u, v)·W↓_h(v, a)/C(u, a) - B'_h(u, a)
    V↓_h(x)    = max(0, max_a max_v [Q̃↓_h(v, a) - L_h·ρ(x, v)])  over pairs with samples

B' is B without its β/C-term. What merging costs, (L_h + L_{h+1})·m, is part of B and of B'. Cones are taken from the
state itself, so nothing is added for reading.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.algorithms.kernel_merged import KernelMerged, look_up
from kernelrl.episodes.verbs import begin_episode
from kernelrl.geometry.groups import smooth
from kernelrl.geometry.representatives import list_of, square_to
from kernelrl.jit.compile import compiled, inner
from kernelrl.stores.merged import after_samples, lower_bonus_of
from kernelrl.stores.samples import pool

__all__ = ["CertifiedMerged", "bounds_at_merged", "new_certified_merged"]


class CertifiedMerged(NamedTuple):
    """Both plans from all data."""

    model: KernelMerged  # the upper one
    below: np.ndarray  # (U, columns) Q̃↓_0


def new_certified_merged(model):
    """Plan both; `model` must be a copy of its own, since its pending samples are taken in."""
    model.plans[0] = 0  # so that this plans, whatever `replan` says
    begin_episode(model)
    W, T, Q = (np.zeros_like(model.merged.C[0]) for _ in range(3))
    plan_lower(model, W, T, np.zeros(len(Q)), Q)
    return CertifiedMerged(model, Q)


@compiled
def plan_lower(model, W, T, V, Q):
    """Write Q̃↓_0 into `Q` (U, columns); `W` and `T` (U, columns) and `V` (U,) are scratch."""
    settings, merged, H = model.settings, model.merged, model.settings.horizon
    U, places = merged.reps.number[0], W.size
    for h in range(H - 1, -1, -1):
        p = pool(settings, h)
        after_samples(settings, merged, h, W.reshape(places))
        if h + 1 < H:
            look_up(model, p, V, U, W.reshape(places))
        smooth(model.groups, W, T)
        for u in range(U):
            for a in range(settings.actions):
                C = merged.C[p, u, a]
                Q[u, a] = T[u, a] / C - lower_bonus_of(settings, merged, h, u, a, C)
        for u in range(U):
            V[u] = highest_near(settings, merged, Q, u, h)


@inner
def highest_near(settings, merged, Q, u, h):
    """V↓_h of representative `u`; no cone reaches farther than the list of its neighbours."""
    near, N, L = merged.reps.cones, merged.N[pool(settings, h)], settings.lipschitz[h]
    value = 0.0
    start, end = list_of(near, u)
    for j in range(start, end):
        v, fall = near.index[j], L * near.amount[j]
        for a in range(settings.actions):
            if N[v, a] > 0.0:
                value = max(value, Q[v, a] - fall)
    return value


@compiled
def bounds_at_merged(certified, u, out):
    """Write V↓_0 and V↑_0 at the embedded state `u` into `out` (2,)."""
    settings, merged, above = certified.model.settings, certified.model.merged, certified.model.Q[0]
    N, L = merged.N[0], settings.lipschitz[0]
    lower, upper = 0.0, 0.0
    for a in range(settings.actions):
        lowest = np.inf
        for v in range(merged.reps.number[0]):
            if N[v, a] > 0.0:
                slope = L * math.sqrt(square_to(merged.reps, settings.space, v, u))
                lowest = min(lowest, above[v, a] + slope)
                lower = max(lower, certified.below[v, a] - slope)
        upper = max(upper, lowest)
    out[0], out[1] = lower, min(upper, np.float64(settings.horizon))
