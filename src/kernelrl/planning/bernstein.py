"""The empirical-Bernstein form in plans of bounds: it takes the place of the joint bonus where it is smaller.

At each pair of the plan, with V̂ and the rule of `kernelrl.theory.bernstein`,

    Q̃↑ = min(Q̃↑, T↑/C + B),    Q̃↓ = max(Q̃↓, T↓/C - B + βR_h/C)

Samples that were moved to representatives up to m away have half widths larger by L_{h+1}·m. A store of counts knows
the sums of r, of r², of the middles of [V↓_{h+1}(y), V↑_{h+1}(y)] and of their squares, but not of products of both, so
there √Σw²(m_s - m̄)² is replaced by the sum of the roots for rewards and for next values, which is at least as large.
"""

import math

import numpy as np

from kernelrl.geometry.buckets import WIDTH, found, near, size_of
from kernelrl.geometry.representatives import list_of, lists_each
from kernelrl.jit.compile import compiled, generic, inner
from kernelrl.planning.full import InPieces
from kernelrl.planning.in_steps import InSteps
from kernelrl.planning.smoothed import PLANNED
from kernelrl.stores.estimates import weights_in
from kernelrl.stores.interface import pool
from kernelrl.stores.merged import OF_SQUARES, SQUARES, relates
from kernelrl.stores.samples import ACTION, FROM, STEP, action_list, row
from kernelrl.stores.transitions import pass_back
from kernelrl.stores.units import after_end, mapped_sum

__all__ = ["tighten"]

REWARD, REWARD_2, MIDDLE, MIDDLE_2, HALF_2 = range(5)  # sums at a pair; those with _2 are of squares


@generic(required=True)
def tighten(lower, upper, h, rules, wider):
    """Improve Q̃_h of both plans; `rules` (M, 24, 4), and half widths are larger by `wider` (plain Python)."""


@inner
def deviation(total, squares, W2):
    """√Σw²(z - z̄)² from Σw²z and Σw²z²."""
    return math.sqrt(max(0.0, squares - total * total / W2)) if W2 > 0.0 else 0.0


@inner
def term(settings, h, rule, C, D, W2, spread, half_2):
    """B without shrinkage; `spread` is √Σw²(m - m̄)²."""
    off = rule[0, 3]
    root = math.sqrt(spread * spread + W2 * off * off) + math.sqrt(half_2)
    best = math.inf
    for j in range(rule.shape[0]):
        best = min(best, (rule[j, 0] + rule[j, 1] * root * root) / C + rule[j, 2])
    return settings.bonus.scale * (best + settings.lipschitz[h] * D / C)


@inner
def shrinkage(settings, h, C):
    """βR_h/C."""
    return settings.bonus.scale * settings.beta * np.float64(settings.horizon - h) / C


# ---------------------------------------------------------------------------------------------------- representatives


@inner
def sums_of_pairs(lower, upper, h, wider, raw):
    """Write the five sums over the samples of each pair into `raw` (5, U, columns)."""
    settings, store, U = lower.settings, lower.store, lower.plan.clock[PLANNED]
    p, M, units = pool(settings, h), lists_each(store.reps), settings.units
    after = after_end(units, settings.horizon, h)
    for v in range(U):
        for c in range(raw.shape[2]):
            raw[REWARD, v, c] = mapped_sum(units, store.rewards[p, v, c], store.N[p, v, c])
            raw[REWARD_2, v, c] = store.moments[SQUARES, p, v * M, c]
            raw[MIDDLE, v, c] = after * store.ended[p, v, c]
            raw[MIDDLE_2, v, c] = after * after * store.ended[p, v, c]
            raw[HALF_2, v, c] = 0.0
    size = raw.shape[1] * raw.shape[2]
    for y in range(U if h + 1 < settings.horizon else 0):
        up, low = upper.plan.V[h + 1, y], lower.plan.V[h + 1, y]
        middle, half = 0.5 * (up + low), 0.5 * (up - low) + wider
        pass_back(store.transitions, p, y, middle, raw[MIDDLE].reshape(size))
        pass_back(store.transitions, p, y, middle * middle, raw[MIDDLE_2].reshape(size))
        pass_back(store.transitions, p, y, half * half, raw[HALF_2].reshape(size))


@inner
def relate(settings, raw, U, scratch):
    """Sums over related actions, with K_A²; `scratch` (columns,)."""
    K = settings.action_weights
    for k in range(raw.shape[0]):
        for v in range(U):
            for c in range(settings.actions):
                scratch[c] = 0.0
                for b in range(settings.actions):
                    scratch[c] += raw[k, v, b] * K[OF_SQUARES, b, c]
            for c in range(settings.actions):
                raw[k, v, c] = scratch[c]


@compiled
def tighten_smoothed(lower, upper, h, rules, wider, raw, sums):
    """`tighten` on representatives; `raw` (5, U, columns) and `sums` (5, columns) are scratch."""
    settings, store, U = lower.settings, lower.store, lower.plan.clock[PLANNED]
    p, M, near_by = pool(settings, h), lists_each(store.reps), store.reps.weights
    sums_of_pairs(lower, upper, h, wider, raw)
    if relates(settings):
        relate(settings, raw, U, sums[0])
    for e in range(U * M):
        for k in range(sums.shape[0]):
            for c in range(sums.shape[1]):
                sums[k, c] = 0.0
        start, end = list_of(near_by, e)
        for i in range(start, end):
            v, w = near_by.index[i], near_by.amount[i, 0]
            for k in range(sums.shape[0]):
                for c in range(sums.shape[1]):
                    sums[k, c] += w * w * raw[k, v, c]
        for c in range(settings.actions):
            C, D, W2 = store.C[p, e, c], store.moments[0, p, e, c], store.moments[1, p, e, c]
            spread = deviation(sums[REWARD, c], sums[REWARD_2, c], W2)
            spread += deviation(sums[MIDDLE, c], sums[MIDDLE_2, c], W2)
            B = term(settings, h, rules[e % M], C, D, W2, spread, sums[HALF_2, c])
            high, low, u = upper.plan.Q[h], lower.plan.Q[h], e // M
            high[u, c] = min(high[u, c], upper.plan.T[e, c] / C + B + shrinkage(settings, h, C))
            low[u, c] = max(low[u, c], lower.plan.T[e, c] / C - B)


@tighten.implement_plain(InSteps)
def tighten_steps(lower, upper, h, rules, wider):
    U, columns = lower.planned.plan.Q.shape[1:]
    tighten_smoothed(lower.handle, upper.handle, h, rules, wider, np.zeros((5, U, columns)), np.zeros((5, columns)))


# ---------------------------------------------------------------------------------------------------- every sample


@compiled
def tighten_part(lower, upper, h, rule, first, last):
    """`tighten` at the pairs of samples `first` … `last`-1."""
    settings, samples, plan, r = lower.settings, lower.store, lower.plan, row(lower.settings, h)
    for t in range(first, last):
        if pool(settings, samples.labels[STEP, t]) != pool(settings, h):
            continue
        u, which = samples.states[FROM, t], action_list(settings, h, samples.labels[ACTION, t])
        low, high, middle, middle_2, half_2 = 0.0, 0.0, 0.0, 0.0, 0.0
        for i in range(near(plan.S, settings.space, which, u, settings.reach)):
            chunk = found(plan.S, i)
            weights_in(settings, plan.S, chunk, u)
            for k in range(size_of(plan.S, chunk)):
                w, down, up = plan.S.buffer[k], plan.G[r, chunk, k], upper.plan.G[r, chunk, k]
                m, g = 0.5 * (up + down), 0.5 * (up - down)
                low, high = low + w * down, high + w * up
                middle, middle_2, half_2 = middle + w * w * m, middle_2 + w * w * m * m, half_2 + w * w * g * g
        C, D, W2 = plan.C[t], plan.moments[0, t], plan.moments[1, t]
        B = term(settings, h, rule, C, D, W2, deviation(middle, middle_2, W2), half_2)
        lower_cone(plan, t, B - low / C)  # upside down, as they are stored
        lower_cone(upper.plan, t, high / C + B + shrinkage(settings, h, C))


@inner
def lower_cone(plan, t, height):
    """Lower the cone of sample `t` to `height` if it is higher."""
    chunk, place = plan.slot[t] // WIDTH, plan.slot[t] % WIDTH
    plan.height[chunk, place] = min(plan.height[chunk, place], height)
    plan.lowest[chunk] = min(plan.lowest[chunk], plan.height[chunk, place])


@tighten.implement_plain(InPieces)
def tighten_pieces(lower, upper, h, rules, wider):
    for first, last in lower.blocks:
        tighten_part(lower.handle, upper.handle, h, rules[0], first, last)
