"""The policy to deploy: greedy in r̂ + P̂V, planned on all data without bonus and without interpolation.

    Q_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a),   V_h(y) = max_a Q_h(y, a),   V_H = 0

Where nothing is known C = β, so r̂ = P̂V = 0: an untried action counts for nothing. Ties go to the lowest action.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import WIDTH, Buckets, add_point, new_buckets, payload
from kernelrl.geometry.metrics import embed
from kernelrl.jit.compile import compiled
from kernelrl.stores.estimates import sums_at
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

__all__ = ["Deployed", "deployed_action", "new_deployed", "plan_deployed"]


class Deployed(NamedTuple):
    """The samples with the deployed policy's values."""

    settings: Settings
    samples: Samples
    S: Buckets  # states by pool and action
    G: np.ndarray  # (rows, chunks of S, WIDTH) r + V_{h+1}(y)
    slot: np.ndarray  # (N,) slot of each sample in S
    u: np.ndarray  # (d,) scratch


def new_deployed(settings, samples, low, high, cell):
    """All samples, with values of zero."""
    H, N = settings.horizon, int(samples.number[0])
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * settings.actions, low, high, cell)
    S = new_buckets(pools * settings.actions, low, high, cell, chunks=N // WIDTH + min(N, S.ends[0].size) + 1)
    deployed = Deployed(settings, samples, S, payload(S, rows), np.zeros(N, np.int64), np.zeros(low.size))
    fill(deployed)
    return deployed


@compiled
def fill(deployed):
    """Put all samples into S."""
    samples = deployed.samples
    for t in range(deployed.slot.size):
        which = action_list(deployed.settings, samples.labels[STEP, t], samples.labels[ACTION, t])
        s = add_point(deployed.S, which, samples.states[0, t])
        deployed.slot[t] = s
        for r in range(deployed.G.shape[0]):
            h = r if deployed.settings.stationary else samples.labels[STEP, t]
            ended = samples.labels[TERMINATED, t] != 0
            deployed.G[r, s // WIDTH, s % WIDTH] = lone_target(deployed.settings, h, samples.reward[t], ended)


@compiled
def plan_deployed(deployed, h, first, last):
    """Add V_h(y), h ≥ 1, to G of samples `first` … `last`-1; steps must be taken from H-1 down to 1."""
    settings, samples = deployed.settings, deployed.samples
    G = deployed.G[row(settings, h)]
    for t in range(first, last):
        step = samples.labels[STEP, t]
        if pool(settings, step + 1) != pool(settings, h) or not has_next(
            settings, step, samples.labels[TERMINATED, t] != 0
        ):
            continue
        value = 0.0
        for a in range(settings.actions):
            C, T = sums_at(settings, deployed.S, action_list(settings, h, a), samples.states[1, t], G)
            value = max(value, T / C)
        s = deployed.slot[t]
        deployed.G[row(settings, h - 1), s // WIDTH, s % WIDTH] = mapped(settings.units, samples.reward[t]) + value


@compiled
def deployed_action(deployed, state, h):
    """argmax_a Q_h(state, a)."""
    settings = deployed.settings
    u = deployed.u
    embed(settings.space, state, u)
    best, choice = -1.0, 0
    for a in range(settings.actions):
        which = action_list(settings, h, a)
        C, T = sums_at(settings, deployed.S, which, u, deployed.G[row(settings, h)])
        if T / C > best:
            best, choice = T / C, a
    return choice
