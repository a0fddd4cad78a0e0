"""The deployed plan on many samples: its sums are read from nodes.

    V_h(y) = max_a T/C at the next states y,   C = β + Σw,   T = Σw·G with G_s = r_s + V_{h+1}(y_s)

With the Gaussian kernel on the plane, all samples of a step are first added at the nodes around them, and then C and T
are read at each next state from the nodes around it (`kernelrl.geometry.nodes`), so the time is linear in the number of
samples. C is the same at all steps if data are pooled, and is then read once.

C is off by at most N·MISSED + 2.3e-15·C, and T by at most max|G| times that. So T/C is off by at most
2·max|G|·(N·MISSED/β + 2.3e-15) at each step; nodes are used only if the first part adds up to less than MOST_ERROR.
"""

from typing import NamedTuple

import numpy as np

from kernelrl.geometry.buckets import WIDTH
from kernelrl.geometry.nodes import (
    MISSED,
    Nodes,
    add_at_nodes,
    aim,
    has_nodes,
    new_nodes,
    no_nodes,
    read_at_nodes,
    suit_nodes,
)
from kernelrl.jit.compile import inner
from kernelrl.planning import node_sums
from kernelrl.stores.interface import pool
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TO

__all__ = ["PlanNodes", "add_samples", "best_at_nodes", "clear_nodes", "new_plan_nodes", "no_plan_nodes", "uses_nodes"]

MOST_ERROR = 1e-8
COUNTS, TARGETS = range(2)  # layers


class PlanNodes(NamedTuple):
    """Sums at nodes of one step."""

    nodes: Nodes  # a list for each action, with the layers COUNTS and TARGETS
    order: np.ndarray  # (N,) samples, neighbours together
    counts: np.ndarray  # (N, A) C at the next states; 0 where it is not known yet


def no_plan_nodes():
    """For a plan that has no nodes."""
    return PlanNodes(no_nodes(), np.zeros(0, np.int64), np.zeros((0, 0)))


def new_plan_nodes(settings, samples, low, high, slot):
    """Nodes for a plan of all samples, in slots `slot` (N,) of buckets, or none if they would not pay."""
    N, H, A, states = int(samples.number[LOGGED]), settings.horizon, settings.actions, samples.states
    many = N >= node_sums.PER_LIST * A * (1 if settings.stationary else H)
    exact = H * H * N * MISSED / settings.beta <= MOST_ERROR
    if not (many and exact and suit_nodes(settings, low, high, A, 2)):
        return no_plan_nodes()
    if not ((states[:, :N] >= low) & (states[:, :N] <= high)).all():
        return no_plan_nodes()
    nodes = new_nodes(low, high, settings.inverse_sigma2**-0.5, A, 2)
    return PlanNodes(nodes, np.argsort(slot, kind="stable"), np.zeros((N, A)))


@inner
def uses_nodes(plan_nodes):
    """Whether the plan has nodes."""
    return has_nodes(plan_nodes.nodes)


@inner
def counts_change(settings, h):
    """Whether the counts of step `h` differ from those of the step planned before."""
    return not settings.stationary or h == settings.horizon - 1


@inner
def clear_nodes(plan_nodes, settings, h):
    """Forget the sums of the step planned before, as far as they differ."""
    sums = plan_nodes.nodes.sums
    for a in range(sums.shape[0]):
        for layer in range(COUNTS if counts_change(settings, h) else TARGETS, TARGETS + 1):
            sums[a, layer] = 0.0


@inner
def add_samples(plan_nodes, settings, samples, slot, G, h, first, last):
    """Add the samples of step `h` among those from place `first` to `last`-1 of the order; `G` (chunks, WIDTH)."""
    nodes = plan_nodes.nodes
    for i in range(first, last):
        t = plan_nodes.order[i]
        if pool(settings, samples.labels[STEP, t]) == pool(settings, h):
            a, x = samples.labels[ACTION, t], samples.states[FROM, t]
            at = aim(nodes, x[0], x[1])
            if counts_change(settings, h):
                add_at_nodes(nodes, a, COUNTS, at, 1.0)
            add_at_nodes(nodes, a, TARGETS, at, G[slot[t] // WIDTH, slot[t] % WIDTH])


@inner
def best_at_nodes(plan_nodes, settings, samples, t):
    """max_a T/C at the next state of sample `t`."""
    nodes, counts, y = plan_nodes.nodes, plan_nodes.counts, samples.states[TO, t]
    at, best = aim(nodes, y[0], y[1]), -np.inf
    for a in range(counts.shape[1]):
        if counts[t, a] == 0.0:
            counts[t, a] = settings.beta + read_at_nodes(nodes, a, COUNTS, at)
        best = max(best, read_at_nodes(nodes, a, TARGETS, at) / counts[t, a])
    return best
