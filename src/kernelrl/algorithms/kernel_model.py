"""The state of exact Kernel-UCBVI: what is kept of each sample, each stored pair and each next state.

`kernelrl.algorithms.kernel_ucbvi` explains how it is used.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.bonuses.smoothed import JOINT
from kernelrl.episodes.verbs import grow, has_room
from kernelrl.geometry.buckets import (
    NARROW,
    WIDTH,
    Buckets,
    chunks_for,
    chunks_left,
    grow_buckets,
    lengthen,
    list_of_slots,
    more,
    new_buckets,
    number_of_chunks,
    payload,
    slots,
)
from kernelrl.geometry.cones import VOID, check_claims
from kernelrl.jit.fields import Field, Rows, checks, completes, require
from kernelrl.stores.samples import Samples, Settings, grow_samples, new_samples, sample_room

__all__ = ["KernelExact", "new_kernel_exact"]


class KernelExact(NamedTuple):
    """The state of Kernel-UCBVI on all samples. `E` below stands for S with interpolation, else for Y."""

    settings: Settings
    samples: Samples
    # number of samples in the plan; number of plans; see `arrival` for the rest
    planned: Annotated[
        np.ndarray,
        Rows(Field("", most="N"), Field(""), Field("", index="Y", none=True), Field("", least=-1, most="H")),
    ]
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    S: Buckets  # states by pool and action
    G: Annotated[np.ndarray, Field("rows S.chunks S.width", of="S", least="Least", most="Most")]  # r + P
    # number of the sample in `samples`
    number: Annotated[np.ndarray, Field("S.chunks S.width", np.int64, of="S", index="N", fill=0)]
    Y: Buckets  # next states by pool
    V: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]  # V_h(y)
    # V_h(y) as it was passed on
    P: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]
    fresh: Annotated[np.ndarray, Field("rows Y.chunks", np.bool_)]  # V may differ from P
    # slot of the sample in S
    sample: Annotated[np.ndarray, Field("Y.chunks Y.width", np.int64, of="Y", index="S", fill=0)]
    C: Annotated[np.ndarray, Field("each E.chunks E.width", of="E", least=0, most="N+1e101")]  # `each` is 1 or A
    T: Annotated[np.ndarray, Field("each rows E.chunks E.width")]
    Q: Annotated[np.ndarray, Field("each rows E.chunks E.width", infinite=True)]  # Q̃
    lowest: Annotated[np.ndarray, Field("rows E.chunks", infinite=True)]  # smallest Q̃ of the chunk
    touched: Annotated[np.ndarray, Field("rows E.chunks", np.bool_)]  # T or C changed since Q was computed
    # slot of Y at the very place of the sample, or -1
    tip: Annotated[np.ndarray, Field("S.chunks S.width", np.int64, of="S", index="Y", none=True, fill=-1)]
    # Interpolation only, see `kernelrl.geometry.cones`:
    # min(R_h, Q̃) as M knows it
    height: Annotated[np.ndarray, Field("levels S.chunks S.width", of="S", least="Least", most="Most")]
    slack: Annotated[np.ndarray, Field("levels S.chunks S.width", of="S")]
    # int32, like owner and links, of which there are many
    first: Annotated[np.ndarray, Field("levels S.chunks S.width", np.int32, of="S", index="Y", none=True, fill=-1)]
    # min(R_h, lowest cone) at y
    M: Annotated[np.ndarray, Field("actions rows Y.chunks Y.width", of="Y", least="Least", most="Most")]
    # slot of that cone in S, or -1
    owner: Annotated[np.ndarray, Field("actions rows Y.chunks Y.width", np.int32, of="Y", index="S", none=True, fill=0)]
    links: Annotated[np.ndarray, Field("actions rows 2 Y.chunks Y.width", np.int32, of="Y", index="Y", none=True)]
    # an embedded state, an embedded next state, Q of each action, sums and targets of rows
    scratch: Annotated[np.ndarray, Field("5 places", scratch=True)]
    # slots that moved; next states whose lowest cone rose
    queues: Annotated[np.ndarray, Field("2 64*max(S.chunks,Y.chunks)", np.int64, scratch=True)]
    # Σwρ and Σw² (joint bonus only)
    spread: Annotated[np.ndarray, Field("moments each E.chunks E.width", least=0)]

    @property
    def E(self):  # noqa: N802
        """The buckets of the entries."""
        return self.S if self.settings.interpolate else self.Y


@checks(KernelExact)
def check_kernel_exact(where, model):
    """Each sample in the plan is in S once; T and C go together; cones and the points that they own know each other."""
    settings, E, S = model.settings, model.E, model.S
    here, entries = slots(S), slots(E)[:, : E.points.shape[2]]
    numbers = np.sort(model.number[here[:, : S.points.shape[2]]])
    require(np.array_equal(numbers, np.arange(model.planned[0])), f"{where}number", "it is not the samples in the plan")
    G = model.G[:, here[:, : S.points.shape[2]]]
    lowest, highest = min(0.0, G.min(initial=0.0)), max(0.0, G.max(initial=0.0))
    C, T, slack = model.C[:, None, entries], model.T[:, :, entries], 1e-6 * settings.horizon
    require((settings.beta <= C * (1.0 + 1e-9)).all(), f"{where}C", f"a count is below {settings.beta}")
    between = (T >= (lowest - slack) * C - slack) & (T <= (highest + slack) * C + slack)
    require(between.all(), f"{where}T", f"an entry is not between {lowest} and {highest} times its count")
    if settings.interpolate:
        check_owners(where, model)


@completes(KernelExact)
def complete_kernel_exact(model):
    """Room for the samples that are not in the plan, whichever lists they belong to."""
    coming = int(model.samples.number[0] - model.planned[0])
    fits = all(chunks_left(buckets) >= chunks_for(buckets, coming) for buckets in (model.S, model.Y))
    return model if fits else grow(model)


def check_owners(where, model):
    """`check_claims` for each step and action."""
    settings, A = model.settings, model.settings.actions
    lists_S, lists_Y = list_of_slots(model.S), list_of_slots(model.Y)[:, : model.Y.points.shape[2]]
    for h in range(1, settings.horizon):
        for a in range(A):
            p, r = (0, h) if settings.stationary else (h, 0)
            parts = model.first[r], model.owner[a, r], model.links[a, r]
            check_claims(f"{where}links", *parts, lists_S == p * A + a, lists_Y == p)


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
