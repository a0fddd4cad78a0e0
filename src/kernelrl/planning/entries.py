"""What the incremental plan of exact Kernel-UCBVI stores for each sample, each pair with targets and each next state.

`kernelrl.planning.incremental` explains how it is used.
"""

import math
from typing import Annotated, NamedTuple

import numpy as np

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
from kernelrl.jit.fields import Field, Rows, require
from kernelrl.planning.interface import check_plan, complete_plan, for_settings, grown, plan_room
from kernelrl.stores.interface import grown_for, has_room_for
from kernelrl.stores.samples import LOGGED

__all__ = ["ARRIVAL", "ARRIVAL_STEP", "AWAKE", "PLANNED", "Incremental", "new_incremental"]

PLANNED, ARRIVAL, ARRIVAL_STEP = 1, 2, 3
AWAKE = -1.0  # of `rest`


class Incremental(NamedTuple):
    """A plan on all samples that is kept up to date. `E` below stands for S with interpolation, else for Y."""

    # PLANS made; PLANNED: number of samples in the last one; for ARRIVAL and ARRIVAL_STEP see `arrival`
    clock: Annotated[
        np.ndarray,
        Rows(Field(""), Field("", most="N"), Field("", index="Y", none=True), Field("", least=-1, most="H")),
    ]
    S: Buckets  # states by pool and action
    G: Annotated[np.ndarray, Field("rows S.chunks S.width", of="S", least="Least", most="Most")]  # r + P
    # number of the sample in `samples`
    number: Annotated[np.ndarray, Field("S.chunks S.width", np.int64, of="S", index="N", fill=0)]
    Y: Buckets  # next states by pool
    V: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]  # V_h(y)
    # V_h(y) as it was last passed on
    P: Annotated[np.ndarray, Field("rows Y.chunks Y.width", of="Y", least="Least", most="Most")]
    fresh: Annotated[np.ndarray, Field("rows Y.chunks", np.bool_)]  # V may differ from P
    # slot of the sample in S
    sample: Annotated[np.ndarray, Field("Y.chunks Y.width", np.int64, of="Y", index="S", fill=0)]
    C: Annotated[np.ndarray, Field("each E.chunks E.width", of="E", least=0, most="N+1e101")]  # `each` is 1 or A
    T: Annotated[np.ndarray, Field("each rows E.chunks E.width")]
    Q: Annotated[np.ndarray, Field("each rows E.chunks E.width", infinite=True)]  # Q̃
    lowest: Annotated[np.ndarray, Field("rows E.chunks", infinite=True)]  # smallest Q̃ of the chunk
    touched: Annotated[np.ndarray, Field("each rows E.chunks", np.bool_)]  # T or C changed since Q was computed
    drift: Annotated[np.ndarray, Field("H", least=0, most=1)]  # how far T/C of each step may be off by rounding
    # AWAKE, or what `rises` was when T was last up to date, see `kernelrl.planning.resting`
    rest: Annotated[np.ndarray, Field("each rows E.chunks E.width", least=-1)]
    rises: Annotated[np.ndarray, Field("H", least=0)]  # sum of the largest rise of V_{h+1} in each plan
    # slot of a point of Y at exactly the sample's state, or -1
    tip: Annotated[np.ndarray, Field("S.chunks S.width", np.int64, of="S", index="Y", none=True, fill=-1)]
    # Interpolation only, see `kernelrl.geometry.cones`:
    # min(R_h, Q̃) at the time M was computed
    height: Annotated[np.ndarray, Field("levels S.chunks S.width", of="S", least="Least", most="Most")]
    slack: Annotated[np.ndarray, Field("levels S.chunks S.width", of="S")]
    # int32, like owner and links, since there are many
    first: Annotated[np.ndarray, Field("levels S.chunks S.width", np.int32, of="S", index="Y", none=True, fill=-1)]
    # min(R_h, lowest cone) at y
    M: Annotated[np.ndarray, Field("actions rows Y.chunks Y.width", of="Y", least="Least", most="Most")]
    # slot of that cone in S, or -1
    owner: Annotated[np.ndarray, Field("actions rows Y.chunks Y.width", np.int32, of="Y", index="S", none=True, fill=0)]
    links: Annotated[np.ndarray, Field("actions rows 2 Y.chunks Y.width", np.int32, of="Y", index="Y", none=True)]
    # an embedded state; sums and targets of rows, or changes of actions
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]
    # MOVED: slots whose value or cone changed; ORPHANS: next states whose lowest cone rose
    queues: Annotated[np.ndarray, Field("2 64*max(S.chunks,Y.chunks)", np.int64, scratch=True)]
    # Points in strips, see `kernelrl.geometry.strips`
    strips: Annotated[np.ndarray, Field("3 128*max(S.chunks,Y.chunks)", scratch=True)]
    order: Annotated[np.ndarray, Field("3 128*max(S.chunks,Y.chunks)", np.int64, scratch=True)]
    # Σwρ and Σw², if the bonus needs them
    moments: Annotated[np.ndarray, Field("moments each E.chunks E.width", least=0)]

    @property
    def E(self):  # noqa: N802
        """The buckets of the entries."""
        return self.S if self.height.shape[0] > 0 else self.Y


@check_plan.implement_plain(Incremental)
def check_incremental(plan, settings, samples, where):
    # Each planned sample is in S once; T and C are consistent; cones and the points that they own refer to each other.
    E, S, where = plan.E, plan.S, f"{where}plan."
    here, entries = slots(S), slots(E)[:, : E.points.shape[2]]
    numbers = np.sort(plan.number[here[:, : S.points.shape[2]]])
    planned = np.arange(plan.clock[PLANNED])
    require(np.array_equal(numbers, planned), f"{where}number", "it is not the samples in the plan")
    G = plan.G[:, here[:, : S.points.shape[2]]]
    lowest, highest = min(0.0, G.min(initial=0.0)), max(0.0, G.max(initial=0.0))
    C, T, slack = plan.C[:, None, entries], plan.T[:, :, entries], 1e-6 * settings.horizon
    require((settings.beta <= C * (1.0 + 1e-9)).all(), f"{where}C", f"a count is below {settings.beta}")
    between = (T >= (lowest - slack) * C - slack) & (T <= (highest + slack) * C + slack)
    require(between.all(), f"{where}T", f"an entry is not between {lowest} and {highest} times its count")
    if settings.interpolate:
        check_owners(where, plan, settings)


@complete_plan.implement_plain(Incremental)
def complete_incremental(plan, settings, samples):
    # Room for the samples that are not yet in the plan, whatever lists they belong to.
    coming = int(samples.number[LOGGED] - plan.clock[PLANNED])
    fits = all(chunks_left(buckets) >= chunks_for(buckets, coming) for buckets in (plan.S, plan.Y))
    return (plan, samples) if fits else grown(plan, settings, samples)


def check_owners(where, plan, settings):
    """`check_claims` for each step and action."""
    A = settings.actions
    lists_S, lists_Y = list_of_slots(plan.S), list_of_slots(plan.Y)[:, : plan.Y.points.shape[2]]
    for h in range(1, settings.horizon):
        for a in range(A):
            p, r = (0, h) if settings.stationary else (h, 0)
            parts = plan.first[r], plan.owner[a, r], plan.links[a, r]
            check_claims(f"{where}links", *parts, lists_S == p * A + a, lists_Y == p)


def new_incremental(settings, low, high, cell, cone_cell, moments):
    """An empty plan for embeddings in the box [low, high] (d,); cells as given by `cell_widths`."""
    H, A, d = settings.horizon, settings.actions, low.size
    pools, rows = (1, H) if settings.stationary else (H, 1)
    S = new_buckets(pools * A, low, high, cell)
    Y = new_buckets(pools, low, high, cone_cell, NARROW if settings.interpolate else WIDTH)
    E, each = (S, 1) if settings.interpolate else (Y, A)
    some = int(settings.interpolate)
    return Incremental(
        np.array([0, 0, -1, -1]),
        S, payload(S, rows), payload(S, dtype=np.int64),
        Y, payload(Y, rows), payload(Y, rows), np.zeros((rows, number_of_chunks(Y)), np.bool_),
        payload(Y, dtype=np.int64),
        payload(E, each), payload(E, each, rows), payload(E, each, rows, fill=math.inf),
        np.full((rows, number_of_chunks(E)), math.inf), np.zeros((each, rows, number_of_chunks(E)), np.bool_),
        np.zeros(H), payload(E, each, rows, fill=AWAKE), np.zeros(H), payload(S, dtype=np.int64, fill=-1),
        payload(S, rows * some), payload(S, rows * some, fill=VOID),
        payload(S, rows * some, dtype=np.int32, fill=-1), payload(Y, A * some, rows),
        payload(Y, A * some, rows, dtype=np.int32), payload(Y, A * some, rows, 2, dtype=np.int32),
        np.zeros((3, max(d, A + 1, H))), *new_scratch(S, Y),
        payload(E, 2 if moments else 0, each),
    )  # fmt: skip


@plan_room.implement(Incremental)
def incremental_room(plan, settings, store):
    H = settings.horizon
    # Samples of the last episode are not in the buckets yet.
    coming = H + store.number[LOGGED] - plan.clock[PLANNED]
    fits = chunks_left(plan.S) >= chunks_for(plan.S, coming) and chunks_left(plan.Y) >= chunks_for(plan.Y, coming)
    return fits and has_room_for(store, settings, H)


@grown.implement_plain(Incremental)
def grow_incremental(plan, settings, samples):
    samples = grown_for(samples, settings, settings.horizon)
    coming = settings.horizon + samples.number[LOGGED] - plan.clock[PLANNED]
    entries = []
    if chunks_left(plan.S) < chunks_for(plan.S, coming):
        chunks = more(number_of_chunks(plan.S))
        plan = plan._replace(
            S=grow_buckets(plan.S, chunks),
            G=lengthen(plan.G, chunks, 1),
            number=lengthen(plan.number, chunks, 0),
            tip=lengthen(plan.tip, chunks, 0, -1),
            height=lengthen(plan.height, chunks, 1),
            slack=lengthen(plan.slack, chunks, 1, VOID),
            first=lengthen(plan.first, chunks, 1, -1),
        )
        entries += [chunks] if settings.interpolate else []
    if chunks_left(plan.Y) < chunks_for(plan.Y, coming):
        chunks = more(number_of_chunks(plan.Y))
        plan = plan._replace(
            Y=grow_buckets(plan.Y, chunks),
            V=lengthen(plan.V, chunks, 1),
            P=lengthen(plan.P, chunks, 1),
            fresh=lengthen(plan.fresh, chunks, 1),
            sample=lengthen(plan.sample, chunks, 0),
            M=lengthen(plan.M, chunks, 2),
            owner=lengthen(plan.owner, chunks, 2),
            links=lengthen(plan.links, chunks, 3),
        )
        entries += [] if settings.interpolate else [chunks]
    for chunks in entries:
        plan = plan._replace(
            C=lengthen(plan.C, chunks, 1),
            T=lengthen(plan.T, chunks, 2),
            Q=lengthen(plan.Q, chunks, 2, math.inf),
            lowest=lengthen(plan.lowest, chunks, 1, math.inf),
            touched=lengthen(plan.touched, chunks, 2),
            rest=lengthen(plan.rest, chunks, 2, AWAKE),
            moments=lengthen(plan.moments, chunks, 2),
        )
    queues, in_strips, index = new_scratch(plan.S, plan.Y)
    return plan._replace(queues=queues, strips=in_strips, order=index), samples


def new_scratch(S, Y):
    """The arrays `queues`, `sorted` and `index`."""
    places = WIDTH * max(number_of_chunks(S), number_of_chunks(Y))
    return np.zeros((2, places), np.int64), np.zeros((3, 2 * places)), np.zeros((3, 2 * places), np.int64)


@for_settings.implement_plain(Incremental)
def incremental_for_settings(plan, settings, new):
    return new()  # C and T of all pairs depend on the weights: the next plan adds all samples again
