"""Q̃ of greedy values from sums at nodes, once there are many samples in one pool.

    Q̃_h(x, a) = T/C + B_h,   C = β + Σ_s w_s,   T = Σ_s w_s·G_s          sums over all samples of action a near x

Computing these sums from the samples takes a time that grows with their number. With the Gaussian kernel on the plane
they can be read from nodes (`kernelrl.geometry.nodes`) in a time that does not. The sums at the nodes have a layer for
the counts and one for each row of G. A value that falls changes G, and the change is added at the nodes around its
sample.

New samples wait in a list. A layer takes them in when it is next read or changed, all of them together: then its
nodes are in the cache.

The error of C is at most N·MISSED + 2.3e-15·C, that of T at most max|G| times as much, apart from rounding. Where
fewer than LEAST samples are near, sums are computed from the samples: an action that was hardly tried has a large
bonus, and tiny differences decide which of two such actions is taken.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.interface import value
from kernelrl.geometry.buckets import SIZE, WIDTH, Buckets
from kernelrl.geometry.nodes import (
    Nodes,
    add_at_nodes,
    aim,
    has_nodes,
    new_nodes,
    no_nodes,
    read_at_nodes,
    suit_nodes,
)
from kernelrl.jit.compile import compiled, in_both, inner
from kernelrl.jit.fields import Field, checks, require
from kernelrl.jit.handles import hand_over
from kernelrl.jit.prefetch import prefetch_place
from kernelrl.stores.estimates import list_targets, sums_at
from kernelrl.stores.samples import action_list

__all__ = [
    "INVERSE_SIGMA2",
    "PER_LIST",
    "NodeSums",
    "add_change_at_nodes",
    "add_sample_at_nodes",
    "check_node_sums",
    "filled",
    "is_time_for_nodes",
    "new_node_sums",
    "node_targets",
    "refilled",
    "without_nodes",
]

LEAST = 1.0
PER_LIST = 2500  # nodes are made when there are so many samples for each list
ROOM = 1024  # samples that wait
START, OUTSIDE, INVERSE_SIGMA2, BOX = 0, 1, 2, 3  # of `limits`
WAITING, TAKEN = 0, 1  # of `clock`
COUNTS, TARGETS = 0, 1  # layers; that of row r is TARGETS + r


class NodeSums(NamedTuple):
    """Sums at nodes, and the samples that some of them do not include yet."""

    nodes: Nodes
    waiting: Annotated[np.ndarray, Field("1024", np.int64)]  # slots in S
    # WAITING: how many wait; TAKEN + layer: how many of them the layer includes
    clock: Annotated[np.ndarray, Field("any", np.int64, most=ROOM)]
    # START: the number of samples from which on there are nodes; OUTSIDE: 1 if a sample was outside of the BOX, whose
    # corners are the last four; INVERSE_SIGMA2: 1/σ²
    limits: Annotated[np.ndarray, Field("7", infinite=True)]


class Summed(NamedTuple):
    """What sums are of: points of `S`, the list of each chunk, and values `G` (rows, chunks, WIDTH)."""

    sums: NodeSums
    S: Buckets
    owner: np.ndarray
    G: np.ndarray


def new_node_sums(settings, low, high, lists, rows, moments):
    """Without nodes yet; they come when they pay, or never if they would not fit."""
    limits = np.zeros(7)
    limits[START], limits[INVERSE_SIGMA2] = np.inf, settings.inverse_sigma2
    if settings.stationary and not moments and suit_nodes(settings, low, high, lists, rows + 1):
        limits[START] = PER_LIST * lists
        limits[BOX:] = low[0], low[1], high[0], high[1]
    return NodeSums(no_nodes(), np.zeros(ROOM, np.int64), np.zeros(1, np.int64), limits)


def check_node_sums(where, sums, lists, rows, used):
    """Require arrays that fit the lists, the rows and the slots in `used` (bool) of S."""
    shape, number, taken = sums.nodes.sums.shape, int(sums.clock[WAITING]), sums.clock[TAKEN:]
    wanted = (lists, rows + 1) if shape[0] else (0, 0)
    require(shape[:2] == wanted, f"{where}nodes.sums", f"its shape is {shape}, and it begins with {wanted}")
    require(taken.size == wanted[1], f"{where}clock", f"it has {taken.size} layers, not {wanted[1]}")
    require((taken <= number).all(), f"{where}clock", "a layer has taken in more samples than there are")
    slots = sums.waiting[:number]
    require((slots < used.size).all() and used[slots].all(), f"{where}waiting", "an index is of nothing in S")


@checks(NodeSums)
def check_limits(where, sums):
    """There is a box if there are nodes."""
    limits = sums.limits
    bounded = np.isfinite(limits[OUTSIDE:]).all() and (limits[BOX : BOX + 2] <= limits[BOX + 2 :]).all()
    require(bounded and limits[START] >= 0.0 and limits[OUTSIDE] in (0, 1), f"{where}limits", "there is no such box")


@in_both
def is_time_for_nodes(sums, number):
    """Whether nodes are to be made, now that there are `number` samples."""
    return number >= sums.limits[START] and sums.clock.size == TAKEN


def filled(sums, S, owner, G):
    """With nodes, for the samples that are in S now."""
    limits, rows = sums.limits, G.shape[0]
    lists = S.ends.shape[1]
    nodes = new_nodes(limits[BOX : BOX + 2], limits[BOX + 2 :], limits[INVERSE_SIGMA2] ** -0.5, lists, rows + 1)
    sums = sums._replace(nodes=nodes, clock=np.zeros(TAKEN + rows + 1, np.int64))
    add_all(hand_over(Summed(sums, S, owner, G)))
    return sums


def refilled(sums, S, owner, G):
    """With the nodes computed again from the samples, if there are any."""
    return filled(sums, S, owner, G) if sums.clock.size > TAKEN else sums


def without_nodes(sums):
    """From now on without nodes: the bandwidth has changed."""
    limits = sums.limits.copy()
    limits[START] = np.inf
    return NodeSums(no_nodes(), sums.waiting, np.zeros(1, np.int64), limits)


@compiled
def add_all(summed):
    """Add all samples to all layers."""
    sums, S, owner, G = summed.sums, summed.S, summed.owner, summed.G
    for chunk in range(S.used[0]):
        for j in range(S.chain[SIZE, chunk]):
            at = aim(sums.nodes, S.points[chunk, 0, j], S.points[chunk, 1, j])
            if at < 0:
                sums.limits[OUTSIDE] = 1.0
                return
            add_at_nodes(sums.nodes, owner[chunk], COUNTS, at, 1.0)
            for r in range(G.shape[0]):
                add_at_nodes(sums.nodes, owner[chunk], TARGETS + r, at, G[r, chunk, j])


@inner
def are_used(sums):
    """Whether there are nodes, and all samples so far are inside."""
    return has_nodes(sums.nodes) and sums.limits[OUTSIDE] == 0.0


@inner
def take_in(sums, S, owner, G, layer):
    """Add the samples that wait to a layer."""
    clock = sums.clock
    for i in range(clock[TAKEN + layer], clock[WAITING]):
        s = sums.waiting[i]
        prefetch_place(S.points, G, max(0, layer - TARGETS), s // WIDTH, s % WIDTH)
    for i in range(clock[TAKEN + layer], clock[WAITING]):
        s = sums.waiting[i]
        chunk, j = s // WIDTH, s % WIDTH
        at = aim(sums.nodes, S.points[chunk, 0, j], S.points[chunk, 1, j])
        if at < 0:
            sums.limits[OUTSIDE] = 1.0
            return
        amount = 1.0 if layer == COUNTS else G[layer - TARGETS, chunk, j]
        add_at_nodes(sums.nodes, owner[chunk], layer, at, amount)
    clock[TAKEN + layer] = clock[WAITING]


@inner
def add_sample_at_nodes(sums, S, owner, G, s):
    """Note that there is a new sample in slot `s`."""
    clock = sums.clock
    if not are_used(sums):
        return
    if clock[WAITING] == sums.waiting.size:
        for layer in range(TARGETS + G.shape[0]):
            take_in(sums, S, owner, G, layer)
        for i in range(clock.size):
            clock[i] = 0
    sums.waiting[clock[WAITING]] = s
    clock[WAITING] += 1


@inner
def add_change_at_nodes(sums, S, owner, G, r, s, value):
    """G[r] of the sample in slot `s` becomes `value`, also at the nodes."""
    chunk, j = s // WIDTH, s % WIDTH
    if are_used(sums):
        take_in(sums, S, owner, G, TARGETS + r)
        at = aim(sums.nodes, S.points[chunk, 0, j], S.points[chunk, 1, j])
        if at >= 0:
            add_at_nodes(sums.nodes, owner[chunk], TARGETS + r, at, value - G[r, chunk, j])
    G[r, chunk, j] = value


@inner
def node_targets(settings, sums, S, owner, G, r, x, h, q):
    """Q̃_h(x, ·) into `q` (A,), for an embedded state, with row `r` of G; from the nodes if there are any."""
    at = -1
    if are_used(sums):
        take_in(sums, S, owner, G, COUNTS)
        take_in(sums, S, owner, G, TARGETS + r)
        if are_used(sums):
            at = aim(sums.nodes, x[0], x[1])
    if at < 0:
        list_targets(settings, S, G[r], x, h, False, q)
        return
    for a in range(q.size):
        which = action_list(settings, h, a)
        C, T = read_at_nodes(sums.nodes, which, COUNTS, at), 0.0
        if C >= LEAST:
            C, T = C + settings.beta, read_at_nodes(sums.nodes, which, TARGETS + r, at)
        else:
            C, T = sums_at(settings, S, which, x, G[r])
        q[a] = T / C + value(settings.bonus, h, C, 0.0, 0.0)
