"""Portable forms of the plans that kernel agents deploy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.bonuses.interface import EPOCH, FULL, SIMPLIFIED, CodedBonus
from kernelrl.geometry.buckets import AXIS, CELLS, FOLLOWING, HEAD, ORIGIN, PER_WIDTH, SIZE, new_grid
from kernelrl.geometry.kernels import CLASSES, Kernel
from kernelrl.geometry.metrics import Custom, Folded, Lp
from kernelrl.geometry.representatives import KNOWN, REACH, SCALE
from kernelrl.planning.full import FullPlan
from kernelrl.planning.interface import Planned
from kernelrl.portable.elsewhere import Estimates, LocalBandwidths
from kernelrl.portable.forms import Form
from kernelrl.portable.places import Places, Weights
from kernelrl.portable.representatives import RepresentativeStates
from kernelrl.portable.samples import AllSamples
from kernelrl.portable.translate import TranslationError, translated
from kernelrl.stores.merged import GOT, OF_WEIGHTS, TRIED, USUAL
from kernelrl.stores.samples import BLEND

__all__ = ["form_of_plan"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def form_of_plan(planned: Planned, metric: Any, kernel: Kernel, map_code: str | None) -> Form:
    """The form of a plan; `map_code` are C statements for a metric's function that is not translated."""
    exact = isinstance(planned.plan, FullPlan)
    size = planned.store.states.shape[2] if exact else planned.store.reps.points.shape[1]
    places = places_of(planned.settings, metric, size, map_code)
    if exact:
        return samples_of(planned, places, kernel)
    return representatives_of(planned, places, kernel, bool(metric.bounded))


def places_of(settings: Any, metric: Any, size: int, map_code: str | None) -> Places:
    """How states are embedded and compared."""
    if isinstance(metric, Lp):
        return Places(settings.space.inverse_scale, settings.step_scale, settings.space.p)
    if isinstance(metric, Folded):
        space = settings.space
        scale = space.base.inverse_scale
        fold = function_of(metric.map, "@fold", len(scale), map_code, "void @fold(const REAL *state_, REAL *out_)")
        return Places(scale, settings.step_scale, space.base.p, fold=fold)
    if isinstance(metric, Custom) and settings.step_scale == 0.0:
        head = "REAL @distance(const REAL *x_, const REAL *y_)"
        distance = function_of(metric.function, "@distance", size, map_code, head)
        return Places(np.ones(size), 0.0, 2.0, distance=distance)
    raise ValueError(
        f"metric: {type(metric).__name__} is a class whose distances cannot be written in C; an agent with "
        "krl.metrics.Lp, Folded or Custom can be exported"
    )


def function_of(function: Any, name: str, d: int, map_code: str | None, head: str) -> str:
    """The C function for a user's function."""
    if map_code is not None:
        body = "".join(f"    {line}\n" for line in map_code.strip().splitlines())
        return f"static inline {head.replace('_,', ',').replace('_)', ')')}\n{{\n{body}}}\n\n"
    try:
        return translated(function, name, d) + "\n"
    except TranslationError as error:
        raise ValueError(
            f"metric: its function cannot be written in C: {error}; write it with arithmetic, conditions, loops over "
            "range(…) and functions of math, or give map_code=, the C statements of its body"
        ) from error


def weights_of(kernel: Kernel) -> Weights:
    """The kernel, or an error for a user's own."""
    if type(kernel) not in CLASSES.values():
        raise ValueError(
            f"kernel: {type(kernel).__name__} is a class of your own, whose weights cannot be written in C; an agent "
            "with a kernel of krl.kernels can be exported"
        )
    return Weights(kernel.name, float(getattr(kernel, "power", 2.0)))


def samples_of(planned: Planned, places: Places, kernel: Kernel) -> AllSamples:
    """The form of a plan on all samples."""
    plan, settings, S = planned.plan, planned.settings, planned.plan.S
    order, lists = [], [0]
    for which in range(S.ends.shape[1]):
        for cell in range(S.ends.shape[2] - 1):
            chunk = int(S.ends[HEAD, which, cell])
            while chunk >= 0:
                order.append(chunk)
                chunk = int(S.chain[FOLLOWING, chunk])
        lists.append(len(order))
    sizes = S.chain[SIZE, order]
    which_chunk = np.repeat(np.array(order, np.int64), sizes)
    ends = np.cumsum([0, *sizes])
    place = np.arange(len(which_chunk)) - np.repeat(ends[:-1], sizes)
    return AllSamples(
        places, weights_of(kernel), settings.beta, settings.inverse_sigma2, settings.reach,
        S.box[:, order].transpose(1, 0, 2).copy(), ends, np.array(lists), S.points[which_chunk, :, place],
        plan.G[:, which_chunk, place], settings.actions, bool(settings.stationary),
    )  # fmt: skip


def representatives_of(planned: Planned, places: Places, kernel: Kernel, bounded: bool) -> RepresentativeStates:
    """The form of a plan on representative states."""
    plan, settings, reps = planned.plan, planned.settings, planned.store.reps
    U, A = int(reps.number[KNOWN]), settings.actions
    points = reps.points[:U, :, 0].copy()
    grid, start, order = cells_of(points, reps.merge, bounded)
    elsewhere = None if settings.own_steps else estimates_of(planned, kernel, U, A)
    return RepresentativeStates(
        places, points, reps.merge, grid, start, order, plan.Q[:, :U, :A].copy(), settings.reading == BLEND, elsewhere,
    )  # fmt: skip


def cells_of(points: Floats, width: float, bounded: bool) -> tuple[Floats, Integers, Integers]:
    """(grid, start, order): cells at least so wide, no more than points, on the two axes on which these differ most."""
    low, high = points.min(axis=0), points.max(axis=0)
    cell = max(width, float((high - low).max()) / len(points), 1e-300) if bounded else math.inf
    grid = new_grid(low, high, cell)
    while grid[CELLS].prod() > len(points):
        cell *= 1.25
        grid = new_grid(low, high, cell)
    at = [(points[:, int(grid[AXIS, i])] - grid[ORIGIN, i]) * grid[PER_WIDTH, i] for i in range(2)]
    one, two = (np.clip(at[i], 0.0, grid[CELLS, i] - 1.0).astype(np.int64) for i in range(2))
    key = one * int(grid[CELLS, 1]) + two
    order = np.argsort(key, kind="stable")
    start = np.searchsorted(key[order], np.arange(int(grid[CELLS].prod()) + 1))
    return grid, start, order


def estimates_of(planned: Planned, kernel: Kernel, U: int, A: int) -> Estimates:
    """The estimates where no representative is near."""
    plan, settings, store = planned.plan, planned.settings, planned.store
    N = (store.S[OF_WEIGHTS] if len(store.S) else store.N)[:, :U, :A].copy()
    scales, local = store.reps.scales, store.reps.local.shape[1] > 0
    bonus, full = coefficients_of(settings, scales.shape[1], len(store.moments) > 0)
    return Estimates(
        weights_of(kernel), settings.beta, scales[SCALE].copy(), scales[REACH].copy(), plan.W[:, :U, :A].copy(), N,
        bonus, full, local_of(settings, store, N, U, A) if local else None,
    )  # fmt: skip


def coefficients_of(settings: Any, bandwidths: int, moments: bool) -> tuple[Floats, bool]:
    """(rows, M, 3) the coefficients of bonuses that choose between several bandwidths, and whether they are Full's."""
    bonus, H = settings.bonus, settings.horizon
    if bandwidths == 1:
        return np.zeros((0, 1, 3)), False
    if not isinstance(bonus, CodedBonus) or moments:
        raise ValueError(
            "bandwidth: with several bandwidths this bonus decides which of them counts, and it cannot be written in "
            "C; an agent with one bandwidth, or with the bonus Simplified or Full, can be exported"
        )
    table = np.zeros((H, bandwidths, 3))
    for h in range(H):
        for j in range(bandwidths):
            if bonus.code == SIMPLIFIED:
                table[h, j] = 0.0, bonus.scale * bonus.per_root, bonus.scale * bonus.per_count * (H - h)
            else:
                table[h, j] = bonus.scale * bonus.table[bonus.progress[EPOCH, h], j * H + h]
    return table, bonus.code == FULL


def local_of(settings: Any, store: Any, N: Floats, U: int, A: int) -> LocalBandwidths:
    """What the bandwidths of a state are made of."""
    units, H = settings.units, settings.horizon
    steps, usual = np.zeros((2, 0, U, A)), np.zeros(0)
    if settings.by_step:
        tried, got = store.steps[TRIED, :, :U, :A], store.steps[GOT, :, :U, :A]
        steps = np.array([tried, (got - units.low * tried) * units.factor])
        total, number = store.of_step[GOT, :H], store.of_step[TRIED, :H]
        mean = (total - units.low * number) * units.factor / np.where(number > 0.0, number, 1.0)
        usual = USUAL * np.where(number > 0.0, mean, units.nothing)
    return LocalBandwidths(
        settings.inverse_sigma2, settings.least_sigma, settings.exponent, settings.by_state, settings.others,
        N.mean(axis=0), steps, usual, USUAL,
    )  # fmt: skip
