"""The state of exact Kernel-UCBVI: what is kept of each sample, each stored pair and each next state.

`kernelrl.algorithms.kernel_ucbvi` explains how it is used.
"""

import math
from typing import NamedTuple

import numpy as np

from kernelrl.algorithms.interface import grow, has_room
from kernelrl.core.bonuses import JOINT
from kernelrl.core.buckets import (
    NARROW,
    WIDTH,
    Buckets,
    chunks_for,
    chunks_left,
    grow_buckets,
    lengthen,
    more,
    new_buckets,
    number_of_chunks,
    payload,
)
from kernelrl.core.cones import VOID
from kernelrl.core.samples import Samples, Settings, grow_samples, new_samples, sample_room

__all__ = ["KernelExact", "new_kernel_exact"]


class KernelExact(NamedTuple):
    """The state of Kernel-UCBVI on all samples. `E` below stands for S with interpolation, else for Y."""

    settings: Settings
    samples: Samples
    planned: np.ndarray  # (4,) number of samples in the plan; number of plans; see `arrival` for the rest
    stream: np.ndarray  # (4,) the agent's own random stream
    S: Buckets  # states by pool and action
    G: np.ndarray  # (rows, chunks of S, WIDTH) r + P
    number: np.ndarray  # (chunks of S, WIDTH) number of the sample in `samples`
    Y: Buckets  # next states by pool
    V: np.ndarray  # (rows, chunks of Y, WIDTH) V_h(y)
    P: np.ndarray  # (rows, chunks of Y, WIDTH) V_h(y) as it was passed on
    fresh: np.ndarray  # (rows, chunks of Y) V may differ from P
    sample: np.ndarray  # (chunks of Y, WIDTH) slot of the sample in S
    C: np.ndarray  # (1 or A, chunks of E, WIDTH)
    T: np.ndarray  # (1 or A, rows, chunks of E, WIDTH)
    Q: np.ndarray  # (1 or A, rows, chunks of E, WIDTH) Q̃
    lowest: np.ndarray  # (rows, chunks of E) smallest Q̃ of the chunk
    touched: np.ndarray  # (rows, chunks of E) T or C changed since Q was computed
    tip: np.ndarray  # (chunks of S, WIDTH) slot of Y at the very place of the sample, or -1
    # Interpolation only, see `kernelrl.core.cones`:
    height: np.ndarray  # (rows, chunks of S, WIDTH) min(R_h, Q̃) as M knows it
    slack: np.ndarray  # (rows, chunks of S, WIDTH)
    first: np.ndarray  # (rows, chunks of S, WIDTH) int32, like owner and links, of which there are many
    M: np.ndarray  # (A, rows, chunks of Y, WIDTH) min(R_h, lowest cone) at y
    owner: np.ndarray  # (A, rows, chunks of Y, WIDTH) slot of that cone in S, or -1
    links: np.ndarray  # (A, rows, 2, chunks of Y, WIDTH)
    scratch: np.ndarray  # (5, …) an embedded state, an embedded next state, Q of each action, sums and targets of rows
    queues: np.ndarray  # (2, places of S or Y) scratch: slots that moved; next states whose lowest cone rose
    spread: np.ndarray  # (2, 1 or A, chunks of E, WIDTH) Σwρ and Σw² (joint bonus only)


def new_kernel_exact(settings, stream, low, high, cell, cone_cell):
    """The state before any data, for embeddings in the box [low, high] (d,); cells as `cell_widths` gives them."""
    H, A, d = settings.horizon, settings.actions, low.size
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    Y = new_buckets(pools, low, high, cone_cell, NARROW if settings.interpolate else WIDTH)
    E, each = (S, 1) if settings.interpolate else (Y, A)
    some = int(settings.interpolate)
    model = KernelExact(
        settings, new_samples(d, 4 * H), np.array([0, 0, -1, -1]), stream,
        S, payload(S, rows), payload(S, dtype=np.int64),
        Y, payload(Y, rows), payload(Y, rows), np.zeros((rows, number_of_chunks(Y)), np.bool_),
        payload(Y, dtype=np.int64),
        payload(E, each), payload(E, each, rows), payload(E, each, rows, fill=math.inf),
        np.full((rows, number_of_chunks(E)), math.inf), np.zeros((rows, number_of_chunks(E)), np.bool_),
        payload(S, dtype=np.int64, fill=-1), payload(S, rows * some), payload(S, rows * some, fill=VOID),
        payload(S, rows * some, dtype=np.int32, fill=-1), payload(Y, A * some, rows),
        payload(Y, A * some, rows, dtype=np.int32), payload(Y, A * some, rows, 2, dtype=np.int32),
        np.zeros((5, max(d, A, H))), np.zeros((2, number_of_chunks(S) * WIDTH), np.int64),
        payload(E, 2 if settings.bonus >= JOINT else 0, each),
    )  # fmt: skip
    while not has_room(model):
        model = grow(model)
    return model


@has_room.implement(KernelExact)
def has_room_kernel(model):
    H = model.settings.horizon
    # What is pending from the last episode is not in the buckets yet.
    coming = H + model.samples.number[0] - model.planned[0]
    fits = chunks_left(model.S) >= chunks_for(model.S, coming) and chunks_left(model.Y) >= chunks_for(model.Y, coming)
    return fits and sample_room(model.samples) >= H


@grow.implement_plain(KernelExact)
def grow_kernel(model):
    if sample_room(model.samples) < model.settings.horizon:
        model = model._replace(samples=grow_samples(model.samples, more(model.samples.reward.size)))
    coming = model.settings.horizon + model.samples.number[0] - model.planned[0]
    entries = []
    if chunks_left(model.S) < chunks_for(model.S, coming):
        chunks = more(number_of_chunks(model.S))
        model = model._replace(
            S=grow_buckets(model.S, chunks),
            G=lengthen(model.G, chunks, 1),
            number=lengthen(model.number, chunks, 0),
            tip=lengthen(model.tip, chunks, 0, -1),
            height=lengthen(model.height, chunks, 1),
            slack=lengthen(model.slack, chunks, 1, VOID),
            first=lengthen(model.first, chunks, 1, -1),
        )
        entries += [chunks] if model.settings.interpolate else []
    if chunks_left(model.Y) < chunks_for(model.Y, coming):
        chunks = more(number_of_chunks(model.Y))
        model = model._replace(
            Y=grow_buckets(model.Y, chunks),
            V=lengthen(model.V, chunks, 1),
            P=lengthen(model.P, chunks, 1),
            fresh=lengthen(model.fresh, chunks, 1),
            sample=lengthen(model.sample, chunks, 0),
            M=lengthen(model.M, chunks, 2),
            owner=lengthen(model.owner, chunks, 2),
            links=lengthen(model.links, chunks, 3),
        )
        entries += [] if model.settings.interpolate else [chunks]
    for chunks in entries:
        model = model._replace(
            C=lengthen(model.C, chunks, 1),
            T=lengthen(model.T, chunks, 2),
            Q=lengthen(model.Q, chunks, 2, math.inf),
            lowest=lengthen(model.lowest, chunks, 1, math.inf),
            touched=lengthen(model.touched, chunks, 1),
            spread=lengthen(model.spread, chunks, 2),
        )
    places = WIDTH * max(number_of_chunks(model.S), number_of_chunks(model.Y))
    return model._replace(queues=np.zeros((2, places), np.int64))
