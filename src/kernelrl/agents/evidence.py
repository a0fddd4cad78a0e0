"""What a kernel agent's values at a state rest on, for `explain`: representatives or samples with their weights.

Weights are those with which data count where values are read,

    w(z, v) = g(ρ(z, v)/σ)      z the representative that stands for the state, or the state itself where there is none

so that with the counts n(v, a) of all of them C = β + Σ_v w·n. With blended values several representatives are read,
each with a share λ (`kernelrl.planning.smoothed`); weights are then those of the one with the largest share.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.geometry.kernels import Kernel
from kernelrl.geometry.metrics import Lp, embed, squared_distances
from kernelrl.geometry.representatives import BLEND as BLEND_REACH
from kernelrl.geometry.representatives import CUT, KNOWN, SCALE
from kernelrl.jit.handles import hand_over
from kernelrl.planning.interface import bonuses_at
from kernelrl.planning.smoothed import PLANNED, Smoothed
from kernelrl.stores.merged import OF_WEIGHTS, Merged
from kernelrl.stores.samples import ACTION, BLEND, FROM, LOGGED, STEP, TERMINATED, TO

__all__ = ["blended_bonuses", "evidence_of"]

Floats = npt.NDArray[np.float64]


def placed(settings: Any, x: Floats, step: int) -> Floats:
    """The embedded state (places,)."""
    place = np.zeros(x.size)
    embed(settings.space, x.copy(), place)
    return np.append(place, step * settings.step_scale) if settings.step_scale > 0.0 else place


def distances(settings: Any, metric: Any, points: Floats, place: Floats) -> Floats:
    """(n,) ρ between `points` (n, places) and a place."""
    if isinstance(metric, Lp):
        with np.errstate(over="ignore"):  # of states near the largest numbers: they are infinitely far away
            found: Floats = np.linalg.norm(points - place, ord=metric.p, axis=1) if len(points) else np.zeros(0)
        return found
    square, out = np.zeros(1), np.zeros(len(points))
    for i, point in enumerate(points):
        squared_distances(settings.space, point.reshape(1, -1, 1).copy(), 0, 1, 1, place, square)
        out[i] = math.sqrt(square[0])
    return out


def shares_at(model: Any, rho: Floats) -> Floats:
    """(U,) how much each representative counts where values are read; all 0 where none is near."""
    store, settings = model.store, model.settings
    known = int(model.plan.clock[PLANNED]) if isinstance(model.plan, Smoothed) else len(rho)
    shares, m = np.zeros(len(rho)), store.reps.merge
    if settings.reading == BLEND:
        inside = (rho < BLEND_REACH * m) & (np.arange(len(rho)) < known)
        shares[inside] = (1.0 - rho[inside] / (BLEND_REACH * m)) ** 2
    if not shares.any() and len(rho) and rho.min() <= m and rho.argmin() < known:
        shares[rho.argmin()] = 1.0
    return shares / shares.sum() if shares.any() else shares


def blended_bonuses(model: Any, metric: Any, x: Floats, step: int) -> Floats | None:
    """(A,) Σ λ_u·B_h(u, ·) in mapped units where values are blended; None where they are not."""
    store, settings = model.store, model.settings
    if not isinstance(store, Merged) or settings.reading != BLEND:
        return None
    U = int(store.reps.number[KNOWN])
    points = store.reps.points[:U, :, 0]
    shares = shares_at(model, distances(settings, metric, points, placed(settings, x, step)))
    if not shares.any():
        return None
    parts = [hand_over(part) for part in (model.plan, settings, store)]
    total, own = np.zeros(settings.actions), np.zeros(settings.actions)
    for u in np.flatnonzero(shares):
        bonuses_at(*parts, points[u].copy(), step, own)
        total += shares[u] * own
    return total


def evidence_of(model: Any, metric: Any, kernel: Kernel, x: Floats, step: int, most: int) -> dict[str, Any]:
    """The nearest representatives or samples, as JSON."""
    if isinstance(model.store, Merged):
        return of_representatives(model, metric, kernel, x, step, most)
    return of_samples(model, metric, kernel, x, step, most)


def or_none(distance: float) -> float | None:
    """A distance, or None where it overflows, as JSON has no infinite numbers."""
    return float(distance) if math.isfinite(distance) else None


def raw(settings: Any, metric: Any, place: Floats) -> list[float]:
    """The state of a place; where a map cannot be undone, its image."""
    d = place.size - (settings.step_scale > 0.0)
    own = place[:d] / settings.space.inverse_scale if isinstance(metric, Lp) else place[:d]
    return [float(s) for s in own]


def of_representatives(model: Any, metric: Any, kernel: Kernel, x: Floats, step: int, most: int) -> dict[str, Any]:
    """The nearest representatives."""
    store, settings, reps = model.store, model.settings, model.store.reps
    U, A, p = int(reps.number[KNOWN]), settings.actions, 0 if settings.stationary else step
    points, place = reps.points[:U, :, 0], placed(settings, x, step)
    rho = distances(settings, metric, points, place)
    shares = shares_at(model, rho)
    read = int(shares.argmax()) if shares.any() else None
    from_there = rho if read is None else distances(settings, metric, points, points[read].copy())
    weights = weights_from(settings, reps, kernel, read, from_there, A)
    counts, smoothed = store.N[p, :U, :A], store.S[OF_WEIGHTS, p, :U, :A] if len(store.S) else store.N[p, :U, :A]
    means = store.rewards[p, :U, :A] / np.maximum(counts, 1.0)
    rows = [
        {
            "state": raw(settings, metric, points[v]), "distance": or_none(rho[v]), "share": float(shares[v]),
            "weights": weights[v].tolist(), "counts": smoothed[v].tolist(),
            "mean_rewards": [float(r) if n > 0 else None for r, n in zip(means[v], counts[v], strict=True)],
        }
        for v in np.argsort(rho, kind="stable")[:most]
    ]  # fmt: skip
    sigma = (1.0 / np.sqrt(reps.scales[SCALE])).tolist()
    reading = reading_of(settings)
    return {"kind": "representatives", "number": U, "bandwidths": sigma, "reading": reading, "nearest": rows}


def reading_of(settings: Any) -> str:
    """How values are read between representatives."""
    if settings.interpolate:
        return "interpolated"
    return "blend" if settings.reading == BLEND else "nearest"


def weights_from(settings: Any, reps: Any, kernel: Kernel, read: int | None, rho: Floats, A: int) -> Floats:
    """(U, A) the weights with which representatives count, at distances `rho` of what is read."""
    if reps.local.shape[1] == 0 or read is None:
        # With several bandwidths, those of the widest; a state of its own has the bandwidth of a new representative.
        scale = reps.scales[SCALE, 0] if reps.local.shape[1] == 0 else settings.inverse_sigma2
        return np.repeat(np.asarray(kernel(rho * math.sqrt(scale)), float).reshape(-1, 1), A, axis=1)
    z = rho[:, None] * np.sqrt(reps.local[read, :A])
    return np.where(z <= CUT, np.asarray(kernel(z), float).reshape(z.shape), 0.0)


def of_samples(model: Any, metric: Any, kernel: Kernel, x: Floats, step: int, most: int) -> dict[str, Any]:
    """The nearest samples, of all actions."""
    store, settings = model.store, model.settings
    n = int(store.number[LOGGED])
    rho = distances(settings, metric, store.states[FROM, :n], placed(settings, x, step))
    own = np.ones(n, bool) if settings.stationary else store.labels[STEP, :n] == step
    order = np.argsort(rho, kind="stable")
    order = order[own[order]][:most]
    weights = np.asarray(kernel(rho[order] * math.sqrt(settings.inverse_sigma2)), float).reshape(-1)
    rows = [
        {
            "state": raw(settings, metric, store.states[FROM, t]), "action": int(store.labels[ACTION, t]),
            "reward": float(store.reward[t]), "next_state": raw(settings, metric, store.states[TO, t]),
            "step": int(store.labels[STEP, t]), "terminated": bool(store.labels[TERMINATED, t]),
            "distance": or_none(rho[t]), "weight": float(w),
        }
        for t, w in zip(order, weights, strict=True)
    ]  # fmt: skip
    sigma = [1.0 / math.sqrt(settings.inverse_sigma2)]
    reading = "interpolated" if settings.interpolate else "at the state"
    return {"kind": "samples", "number": int(own.sum()), "bandwidths": sigma, "reading": reading, "nearest": rows}
