"""Raw counts of transitions between representatives, and sums over them.

n(v, a, y) is the number of samples of action a from states of representative v to states of representative y, or a sum
of shares where a sample leads to several (`kernelrl.stores.landing`). For each
pool of data and each y there is a list of the pairs (v, a) that led there, in chained blocks of BLOCK entries. So V(y)
is passed to all pairs that need it, without look-ups:

    W[v, a] += Σ_y n(v, a, y)·V[y]       (`pass_back`, for one y)

This is done for AT_ONCE entries at a time. So a list is continued to a multiple of that by entries with a count of 0.
Their pairs are earlier ones of the list, not all the same one: a sum that is changed twice in a row has to be waited
for.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import lengthen, more
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, Rows, check_lists, checks
from kernelrl.jit.scatter import AT_ONCE, add_multiple

__all__ = [
    "FIRST",
    "FOLLOWING",
    "SIZE",
    "Transitions",
    "blocks_left",
    "count_transition",
    "entries_of",
    "grow_transitions",
    "lengthen_transitions",
    "mark_origins",
    "new_transitions",
    "pass_back",
    "pass_changes_back",
]

BLOCK = 32
FIRST, LAST = range(2)
FOLLOWING, SIZE = range(2)


class Transitions(NamedTuple):
    """Lists of pairs by pool and next state (see the module's docstring)."""

    # FIRST and LAST block of a list, or -1
    ends: Annotated[np.ndarray, Field("2 pools U", np.int64, index="blocks", none=True, fill=-1)]
    # FOLLOWING block, or -1; SIZE: number of entries
    chain: Annotated[np.ndarray, Rows(Field("blocks", index="blocks", none=True), Field("blocks", most=BLOCK))]
    pair: Annotated[np.ndarray, Field("blocks 32", np.uint32, index="U*Columns", fill=0)]  # v·(columns of W) + a
    count: Annotated[np.ndarray, Field("blocks 32", least=0, fill=0)]  # n
    used: Annotated[np.ndarray, Field("1", np.int64, counts="blocks")]


@checks(Transitions)
def check_transitions(where, transitions):
    """Chains end."""
    ends, chain = transitions.ends, transitions.chain[:, : transitions.used[0]]
    check_lists(f"{where}chain", ends[FIRST], chain[FOLLOWING], ends[LAST])


def new_transitions(pools, capacity, blocks=16):
    """No transitions yet, between at most `capacity` representatives."""
    return Transitions(
        np.full((2, pools, capacity), -1, np.int64), np.zeros((2, blocks), np.int64),
        np.zeros((blocks, BLOCK), np.uint32), np.zeros((blocks, BLOCK)), np.zeros(1, np.int64),
    )  # fmt: skip


def grow_transitions(transitions, coming):
    """The same lists with room for `coming` more blocks."""
    blocks = transitions.chain.shape[1]
    if transitions.used[0] + coming > blocks:
        blocks = more(max(blocks, int(transitions.used[0]) + coming))
    return transitions._replace(
        chain=lengthen(transitions.chain, blocks, 1),
        pair=lengthen(transitions.pair, blocks, 0),
        count=lengthen(transitions.count, blocks, 0),
    )


def lengthen_transitions(transitions, capacity):
    """The same lists for at most `capacity` representatives."""
    return transitions._replace(ends=lengthen(transitions.ends, capacity, 2, -1))


def entries_of(transitions, p):
    """All entries of pool `p`: next states y (n,), pairs (n,) and their counts (n,). Plain Python."""
    block, owner = transitions.ends[FIRST, p], np.arange(transitions.ends.shape[2])
    blocks, owners = [], []
    while (there := block >= 0).any():
        block, owner = block[there], owner[there]
        blocks.append(block)
        owners.append(owner)
        block = transitions.chain[FOLLOWING, block]
    blocks = np.concatenate([np.zeros(0, np.int64), *blocks])
    owners = np.concatenate([np.zeros(0, np.int64), *owners])
    used = np.arange(BLOCK) < transitions.chain[SIZE, blocks][:, None]  # (blocks, BLOCK)
    y = np.broadcast_to(owners[:, None], used.shape)[used]
    return y, transitions.pair[blocks][used].astype(np.int64), transitions.count[blocks][used]


@inner
def blocks_left(transitions):
    """How many blocks are unused."""
    return transitions.chain.shape[1] - transitions.used[0]


@inner
def count_transition(transitions, p, pair, y, amount):
    """n(pair, y) += amount in pool `p`."""
    ends, chain = transitions.ends, transitions.chain
    block = ends[FIRST, p, y]
    while block >= 0:
        for i in range(chain[SIZE, block]):
            if transitions.pair[block, i] == pair:
                transitions.count[block, i] += amount
                return
        block = chain[FOLLOWING, block]
    block = ends[LAST, p, y]
    if block < 0 or chain[SIZE, block] == BLOCK:
        new = transitions.used[0]
        transitions.used[0] = new + 1
        chain[FOLLOWING, new], chain[SIZE, new] = -1, 0
        if block < 0:
            ends[FIRST, p, y] = new
        else:
            chain[FOLLOWING, block] = new
        ends[LAST, p, y] = block = new
    i = chain[SIZE, block]
    transitions.pair[block, i], transitions.count[block, i] = pair, amount
    chain[SIZE, block] = i + 1
    for j in range(i + 1, i + AT_ONCE if i % AT_ONCE == 0 else 0):  # nothing is counted there yet
        transitions.pair[block, j] = transitions.pair[block, max(j - AT_ONCE, 0)]


@inner
def pass_back(transitions, p, y, value, W):
    """W[pair] += n(pair, y)·value for all pairs that led to `y`; `W` is flat."""
    chain = transitions.chain
    block = transitions.ends[FIRST, p, y]
    while block >= 0:
        add_multiple(transitions.pair, transitions.count, block * BLOCK, chain[SIZE, block], value, W)
        block = chain[FOLLOWING, block]


@inner
def pass_changes_back(transitions, p, changed, change, W):
    """`pass_back` for all next states in `changed` (n,), with their values in `change` (n,)."""
    chain, ends, pair, count = transitions.chain, transitions.ends, transitions.pair, transitions.count
    for k in range(changed.size):
        block, value = ends[FIRST, p, changed[k]], change[k]
        while block >= 0:
            add_multiple(pair, count, block * BLOCK, chain[SIZE, block], value, W)
            block = chain[FOLLOWING, block]


@inner
def mark_origins(transitions, p, y, columns, marks):
    """Mark the representatives v of all pairs (v, a) that led to `y` in `marks` (U,); W has so many `columns`."""
    block = transitions.ends[FIRST, p, y]
    while block >= 0:
        for i in range(transitions.chain[SIZE, block]):
            marks[transitions.pair[block, i] // columns] = True
        block = transitions.chain[FOLLOWING, block]
