"""Kernel-UCBVI (paper, algorithms 1 and 2), exact: every sample is kept.

Planning goes backwards in h, with V_H = 0:

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)
    Q_h(x, a)  = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)]             or, without interpolation, Q̃_h(x, a) itself
    V_h(x)     = min(R_h, max_a Q_h(x, a))

Between two plans little changes, so nothing is computed anew. An "entry" is a pair at which Q̃ is kept: each sample's
own pair with interpolation (entries are the points of `S`), each next state with every action without it (the points
of `Y`). Of each entry we keep C = β + Σw and T = Σw·G with G_s = r_s + P_s, where P_s is the value V_{h+1}(y_s) that
has been passed on. A plan then

 1. adds the new samples: they lend weight to entries near them, and become entries themselves;
 2. goes backwards in h: where V_{h+1}(y_s) has moved away from P_s by more than STILL, the difference is passed on to
    the T of the entries near x_s; Q̃ = T/C + B is taken anew where T or C changed; and V_h follows.

With interpolation, each next state remembers for each action the lowest cone above it, M, and whose it is
(`kernelrl.geometry.cones`).

Each of the H levels adds at most STILL of error to the next for values and once more for cones, so values are within
2·H·STILL of a full recomputation.
"""

import math

import numpy as np

from kernelrl.algorithms.kernel_model import KernelExact, new_kernel_exact
from kernelrl.episodes.verbs import (
    begin_episode,
    choose,
    largest,
    observe,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
)
from kernelrl.geometry.interpolation import cones_at
from kernelrl.geometry.metrics import embed
from kernelrl.jit.compile import inner
from kernelrl.planning.incremental import plan
from kernelrl.stores.estimates import bonuses_at, counts_at, sums_at, targets_at, weight_between
from kernelrl.stores.samples import ACTION, STEP, action_list, append_sample, pool, row

__all__ = ["KernelExact", "new_kernel_exact"]

EACH_EPISODE, EACH_STEP, DOUBLING = range(3)


@begin_episode.implement(KernelExact)
def begin_kernel(model):
    if model.settings.replan != DOUBLING or model.planned[1] == 0:
        plan(model)


@inner
def q_at(model, u, h, q):
    """Q_h(u, ·) into `q` (A,), for an embedded state."""
    settings, r = model.settings, row(model.settings, h)
    if not settings.interpolate:
        targets_at(settings, model.S, model.G[r], u, h, q)
        return
    L, heights, lowest = settings.lipschitz[h], model.Q[0, r], model.lowest[r]
    for a in range(settings.actions):
        # The near ones first, so that most of the others are ruled out unseen.
        which = action_list(settings, h, a)
        best = cones_at(model.S, settings.space, which, u, heights, lowest, L, 0.1 * settings.reach, math.inf)
        q[a] = cones_at(model.S, settings.space, which, u, heights, lowest, L, math.inf, best)


@choose.implement(KernelExact)
def choose_kernel(model, state, h):
    u, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, u)
    q_at(model, u, h, q)
    return pick_largest(q, model.stream)


@inner
def has_doubled(model, u, h, a):
    """Whether C of the newest sample's pair is at least twice what it is in the last plan."""
    settings, samples = model.settings, model.samples
    C, _ = sums_at(settings, model.S, action_list(settings, h, a), u, model.G[0])
    now = C
    for t in range(model.planned[0], samples.number[0]):
        if samples.labels[ACTION, t] == a and pool(settings, samples.labels[STEP, t]) == pool(settings, h):
            now += weight_between(settings, u, samples.states[0, t], model.S.buffer)
    return now >= 2.0 * C


@observe.implement(KernelExact)
def observe_kernel(model, state, action, reward, next_state, h, terminated):
    u, v = model.scratch[0, : state.size], model.scratch[1, : state.size]
    embed(model.settings.space, state, u)
    embed(model.settings.space, next_state, v)
    append_sample(model.samples, u, action, reward, v, h, terminated)
    replan = model.settings.replan
    if replan == EACH_STEP or (replan == DOUBLING and has_doubled(model, u, h, action)):
        plan(model)


@read_q.implement(KernelExact)
def read_q_kernel(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    q_at(model, u, h, out)


@read_values.implement(KernelExact)
def read_values_kernel(model, state, h):
    u, q = model.scratch[0, : state.size], model.scratch[2, : model.settings.actions]
    embed(model.settings.space, state, u)
    q_at(model, u, h, q)
    return min(np.float64(model.settings.horizon - h), largest(q))


@read_counts.implement(KernelExact)
def read_counts_kernel(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    counts_at(model.settings, model.S, model.G[0], u, h, out)


@read_bonuses.implement(KernelExact)
def read_bonuses_kernel(model, state, h, out):
    u = model.scratch[0, : state.size]
    embed(model.settings.space, state, u)
    bonuses_at(model.settings, model.S, model.G[0], u, h, out)
