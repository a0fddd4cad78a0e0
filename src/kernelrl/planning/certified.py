"""Upper and lower bounds on the optimal values from all samples: what the joint bonus B, or the full one, certifies.

Backwards in h, with V↑_H = V↓_H = 0 after the last step,

    Q̃↑_h(x_s, a_s) = r̂ + P̂V↑_{h+1} + B_h        V↑_h(x) = min(R_h, max_a min_s [Q̃↑_h(x_s, a_s) + L_h·ρ(x, x_s)])
    Q̃↓_h(x_s, a_s) = r̂ + P̂V↓_{h+1} - B'_h       V↓_h(x) = max(0, max_a max_s [Q̃↓_h(x_s, a_s) - L_h·ρ(x, x_s)])

where s runs over samples of action a, and B' is B without its β/C-term. On the event that the bonus holds
V↓_h ≤ V*_h ≤ V↑_h everywhere: the concentration inequality is two-sided, so both come at the same δ. An action without
samples is worth R_h above and 0 below.

The lower cones are kept upside down, as heights -Q̃↓, so that both kinds are cones of which the lowest counts.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.bonuses.smoothed import count_sample, joint_bonus, lower_bonus
from kernelrl.geometry.buckets import WIDTH, Buckets, add_point, new_buckets, number_of_chunks, payload
from kernelrl.geometry.interpolation import cones_at
from kernelrl.jit.compile import compiled, inner
from kernelrl.stores.estimates import row_sums_at, spread_at
from kernelrl.stores.samples import (
    ACTION,
    STEP,
    TERMINATED,
    Samples,
    Settings,
    action_list,
    has_next,
    lone_target,
    pool,
    row,
)
from kernelrl.stores.units import mapped

__all__ = ["Certified", "bound_targets", "bound_values", "bounds_at", "fill_certified", "new_certified"]

UPPER, LOWER = range(2)


class Certified(NamedTuple):
    """The samples with bounds on what follows them."""

    settings: Settings
    samples: Samples
    S: Buckets  # states by pool and action
    slot: np.ndarray  # (N,) slot of each sample in S
    G: np.ndarray  # (rows, 2, chunks of S, WIDTH) r + V↑_{h+1}(y) and r + V↓_{h+1}(y)
    height: np.ndarray  # (2, chunks of S, WIDTH) Q̃↑ and -Q̃↓ of the step that was planned last
    lowest: np.ndarray  # (2, chunks of S) the lowest of them
    sums: np.ndarray  # (2,) scratch


def new_certified(settings, samples, low, high, cell):
    """All samples, with nothing known of what follows them."""
    H, N = settings.horizon, int(samples.number[0])
    pools, rows = (1, H) if settings.stationary else (H, 1)
    lists = pools * settings.actions
    S = new_buckets(lists, low, high, cell)
    S = new_buckets(lists, low, high, cell, chunks=N // WIDTH + min(N, S.ends[0].size) + 1)
    settings = settings._replace(progress=np.zeros_like(settings.progress))  # the agent may not have planned on all
    certified = Certified(
        settings, samples, S, np.zeros(N, np.int64), payload(S, rows, 2), payload(S, 2),
        np.zeros((2, number_of_chunks(S))), np.zeros(2),
    )  # fmt: skip
    fill_certified(certified)
    return certified


@compiled
def fill_certified(certified):
    """Put all samples into S, and count them."""
    samples, G = certified.samples, certified.G
    for t in range(certified.slot.size):
        which = action_list(certified.settings, samples.labels[STEP, t], samples.labels[ACTION, t])
        s = add_point(certified.S, which, samples.states[0, t])
        certified.slot[t] = s
        count_sample(certified.settings, samples.labels[STEP, t])
        for r in range(G.shape[0]):
            h = r if certified.settings.stationary else samples.labels[STEP, t]
            ended = samples.labels[TERMINATED, t] != 0
            for side in range(2):
                G[r, side, s // WIDTH, s % WIDTH] = lone_target(certified.settings, h, samples.reward[t], ended)


@compiled
def bound_targets(certified, h, first, last):
    """Q̃↑_h and Q̃↓_h at the pairs of samples `first` … `last`-1, from V↑_{h+1} and V↓_{h+1}."""
    settings, samples, S = certified.settings, certified.samples, certified.S
    height, lowest, sums = certified.height, certified.lowest, certified.sums
    for t in range(first, last):
        if pool(settings, samples.labels[STEP, t]) != pool(settings, h):
            continue
        u, which = samples.states[0, t], action_list(settings, h, samples.labels[ACTION, t])
        C = row_sums_at(settings, S, which, u, certified.G[row(settings, h)], sums)
        D, W2 = spread_at(settings, S, which, u)
        s = certified.slot[t]
        chunk, place = s // WIDTH, s % WIDTH
        height[UPPER, chunk, place] = sums[UPPER] / C + joint_bonus(settings, h, C, D, W2)
        height[LOWER, chunk, place] = lower_bonus(settings, h, C, D, W2) - sums[LOWER] / C
        for side in range(2):
            if place == 0 or height[side, chunk, place] < lowest[side, chunk]:
                lowest[side, chunk] = height[side, chunk, place]


@inner
def bounds(certified, u, h):
    """V↑_h and V↓_h at an embedded state, from the targets of step `h`."""
    settings, S = certified.settings, certified.S
    height, lowest, L = certified.height, certified.lowest, settings.lipschitz[h]
    R = np.float64(settings.horizon - h)
    upper, below = 0.0, 0.0
    for a in range(settings.actions):
        which = action_list(settings, h, a)
        upper = max(upper, cones_at(S, settings.space, which, u, height[UPPER], lowest[UPPER], L, np.inf, R))
        below = cones_at(S, settings.space, which, u, height[LOWER], lowest[LOWER], L, np.inf, below)
    return upper, abs(below)  # which is at most 0; minus would make it -0.0


@compiled
def bound_values(certified, h, first, last):
    """Put V↑_h and V↓_h, h ≥ 1, at the next states of samples `first` … `last`-1 into G, from the targets of `h`."""
    settings, samples = certified.settings, certified.samples
    for t in range(first, last):
        step = samples.labels[STEP, t]
        if pool(settings, step + 1) != pool(settings, h) or not has_next(
            settings, step, samples.labels[TERMINATED, t] != 0
        ):
            continue
        upper, lower = bounds(certified, samples.states[1, t], h)
        s, r = certified.slot[t], row(settings, h - 1)
        reward = mapped(settings.units, samples.reward[t])
        certified.G[r, UPPER, s // WIDTH, s % WIDTH] = reward + upper
        certified.G[r, LOWER, s // WIDTH, s % WIDTH] = reward + lower


@compiled
def bounds_at(certified, u, out):
    """Write V↓_0 and V↑_0 at the embedded state `u` into `out` (2,); all steps must have been planned down to 0."""
    upper, lower = bounds(certified, u, 0)
    out[0], out[1] = lower, upper
