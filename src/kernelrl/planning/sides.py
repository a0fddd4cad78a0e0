"""The three sides on which values are planned, and what each of them does with an estimate r̂ + P̂V.

    side       Q̃ =                    V =               interpolated
    UPPER      r̂ + P̂V + B             min(R_h, ·)       min_s [Q̃(x_s) + L_h·ρ(x, x_s)], if the agent does so
    DEPLOYED   r̂ + P̂V                 ·                 never
    LOWER      r̂ + P̂V - B'            max(0, ·)         max_s [Q̃(x_s) - L_h·ρ(x, x_s)]

With several bandwidths at once there are M estimates q_j = r̂_j + P̂_jV of a pair, with bonuses B_j, and (`one_of_all`)

    UPPER      Q̃ = min_j [q_j + B_j]
    DEPLOYED   Q̃ = the q_j with the smallest B_j, moved into the intervals q_j ± B_j of all others in turn, the
               narrowest bandwidth last: where it has data enough to contradict, it is right
    LOWER      Q̃ = max_j [q_j - B'_j]

UPPER is for exploration, DEPLOYED for the deployed policy, LOWER for certificates. A side is a NamedTuple without
fields, only a type: its functions are resolved while compiling.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.bonuses.interface import add_values, lower_value, own_lower_value, own_value, value
from kernelrl.jit.compile import generic, inner

__all__ = [
    "DEPLOYED", "LOWER", "UPPER", "clip", "cone", "explores", "highest", "interpolates", "no_cone", "one_of_all",
    "target", "targets", "targets_of_all", "upright",
]  # fmt: skip


class Upper(NamedTuple):
    """Optimistic."""


class Deployed(NamedTuple):
    """No bonus and no bounds: the defaults below."""


class Lower(NamedTuple):
    """Pessimistic."""


UPPER, DEPLOYED, LOWER = Upper(), Deployed(), Lower()


@generic
def explores(side):
    """Whether a bonus is added."""
    return False


@generic
def targets(side, bonus, h, T, C, inverse, moments, Q, rows):
    """Q̃_h in some `rows` (n,) of (U, columns); the arguments are those of `add_values`."""
    for u in rows:
        for c in range(Q.shape[1]):
            Q[u, c] = T[u, c] * inverse[0, u, c]


@generic
def target(side, bonus, h, T, C, D, W2):
    """Q̃_h of one pair."""
    return T / C


@inner
def estimate(T, C, moments, e, c):
    """q, C, Σwρ and Σw² of row `e` and column `c`; the last two are 0 where they are not kept."""
    D, W2 = (moments[0, e, c], moments[1, e, c]) if moments.shape[0] > 0 else (0.0, 0.0)
    return T[e, c] / C[e, c], C[e, c], D, W2


@generic
def one_of_all(side, bonus, h, T, C, moments, u, M, c):
    """Q̃_h of the pair of `u` and column `c` from its `M` estimates, rows u·M … u·M+M-1, the widest bandwidth first."""
    best, least = T[u * M, c] / C[u * M, c], math.inf
    if M == 1:
        return best
    for j in range(M):
        q, count, D, W2 = estimate(T, C, moments, u * M + j, c)
        B = own_value(bonus, j, h, count, D, W2)
        if B < least:
            best, least = q, B
    for j in range(M):
        q, count, D, W2 = estimate(T, C, moments, u * M + j, c)
        B = own_value(bonus, j, h, count, D, W2)
        best = min(max(best, q - B), q + B)
    return best


@generic
def targets_of_all(side, bonus, h, T, C, inverse, moments, each, Q, rows, M):
    """Q̃_h of all representatives, for `rows` (U·M,) of all but `Q`; `each` (U·M, columns) is scratch."""
    for u in range(rows.size // M):
        for c in range(Q.shape[1]):
            Q[u, c] = one_of_all(side, bonus, h, T, C, moments, u, M, c)


@generic
def clip(side, best, R):
    """V_h from max_a Q_h."""
    return best


@generic
def interpolates(side, settings):
    """Whether Q is interpolated between targets."""
    return False


@generic
def no_cone(side):
    """Q where there is no target."""
    return 0.0


@generic
def cone(side, best, height, rise):
    """Q after one more target of that height, at a distance ρ with L·ρ = `rise`."""
    return best


@generic
def upright(side, height):
    """A height turned so that the lowest cone is wanted on every side; also turns it back."""
    return height


@explores.implement(Upper)
def explores_upper(side):
    return True


@targets.implement(Upper)
def targets_upper(side, bonus, h, T, C, inverse, moments, Q, rows):
    add_values(bonus, h, T, C, inverse, moments, Q, rows)


@target.implement(Upper)
def target_upper(side, bonus, h, T, C, D, W2):
    return T / C + value(bonus, h, C, D, W2)


@one_of_all.implement(Upper)
def one_of_all_upper(side, bonus, h, T, C, moments, u, M, c):
    best = math.inf
    for j in range(M):
        q, count, D, W2 = estimate(T, C, moments, u * M + j, c)
        best = min(best, q + own_value(bonus, j, h, count, D, W2))
    return best


@targets_of_all.implement(Upper)
def targets_of_all_upper(side, bonus, h, T, C, inverse, moments, each, Q, rows, M):
    add_values(bonus, h, T, C, inverse, moments, each, rows)
    for u in range(rows.size // M):
        for c in range(Q.shape[1]):
            Q[u, c] = each[u * M, c]
        for e in range(u * M + 1, u * M + M):
            for c in range(Q.shape[1]):
                Q[u, c] = min(Q[u, c], each[e, c])


@clip.implement(Upper)
def clip_upper(side, best, R):
    return min(R, best)


@interpolates.implement(Upper)
def interpolates_upper(side, settings):
    return settings.interpolate


@no_cone.implement(Upper)
def no_cone_upper(side):
    return math.inf


@cone.implement(Upper)
def cone_upper(side, best, height, rise):
    return min(best, height + rise)


@targets.implement(Lower)
def targets_lower(side, bonus, h, T, C, inverse, moments, Q, rows):
    kept = moments.shape[0] > 0
    for u in rows:
        for c in range(Q.shape[1]):
            D, W2 = (moments[0, u, c], moments[1, u, c]) if kept else (0.0, 0.0)
            Q[u, c] = T[u, c] / C[u, c] - lower_value(bonus, h, C[u, c], D, W2)


@target.implement(Lower)
def target_lower(side, bonus, h, T, C, D, W2):
    return T / C - lower_value(bonus, h, C, D, W2)


@one_of_all.implement(Lower)
def one_of_all_lower(side, bonus, h, T, C, moments, u, M, c):
    best = -math.inf
    for j in range(M):
        q, count, D, W2 = estimate(T, C, moments, u * M + j, c)
        best = max(best, q - own_lower_value(bonus, j, h, count, D, W2))
    return best


@clip.implement(Lower)
def clip_lower(side, best, R):
    return max(0.0, best)


@interpolates.implement(Lower)
def interpolates_lower(side, settings):
    return True


@no_cone.implement(Lower)
def no_cone_lower(side):
    return -math.inf


@cone.implement(Lower)
def cone_lower(side, best, height, rise):
    return max(best, height - rise)


@upright.implement(Lower)
def upright_lower(side, height):
    return -height


@inner
def highest(side, q, R):
    """V_h from Q_h of all actions (A,)."""
    best = q[0]
    for a in range(1, q.size):
        best = max(best, q[a])
    return clip(side, best, np.float64(R))
