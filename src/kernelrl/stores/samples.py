"""The settings of a kernel agent, and the store of an exact one: every sample.

Steps h count from 0 in code: R_h = H - h is the largest value left at step h, and V_H = 0.

`Samples` is the log of embedded states in order of arrival. The algorithms work on two sets of buckets: `S`, the states
x_s by pool and action, and `Y`, the next states y_s by pool. With data per step, step h uses pool h of `S`, and V_h is
needed at the next states of step h-1, which are pool h of `Y`. When data are pooled (`stationary`) there is one pool,
and each next state has a value for every step. Arrays that belong to points have one row per step in the stationary
case and one row otherwise: `pool` and `row` give the indices.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.geometry.buckets import check_memory, lengthen
from kernelrl.geometry.metrics import embed
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field, Rows
from kernelrl.stores.units import Units, after_end, mapped

__all__ = [
    "ACTION",
    "FROM",
    "LOGGED",
    "STEP",
    "TERMINATED",
    "TO",
    "Samples",
    "Settings",
    "action_list",
    "append_sample",
    "cell_widths",
    "embedded_box",
    "grow_samples",
    "has_next",
    "lone_target",
    "new_samples",
    "pool",
    "row",
    "sample_room",
]

FROM, TO = range(2)  # of `states`
STEP, ACTION, TERMINATED = range(3)  # of `labels`
LOGGED = 0  # of `number`


class Settings(NamedTuple):
    """The hyper-parameters of a kernel agent, as compiled code takes them; made by `Settings.of` only."""

    horizon: int  # H
    actions: int  # A
    beta: float
    inverse_sigma2: float  # 1/σ²
    reach: float  # distance beyond which a weight cannot change a count in double precision
    stationary: bool
    interpolate: bool
    lipschitz: np.ndarray  # (H,) L_h
    replan: int
    promises: bool  # with this bonus values are upper bounds with high probability
    kernel: Any  # see `kernelrl.geometry.kernels`
    bonus: Any  # see `kernelrl.bonuses.interface`
    units: Units
    space: Any  # see `kernelrl.geometry.metrics`

    @classmethod
    def of(cls, **given: Any) -> "Settings":
        """Settings with every field cast to the type that compiled functions take."""
        casts = {"int": int, "float": float, "bool": bool}
        return cls(
            **{
                name: casts[kind.__name__](given[name]) if kind.__name__ in casts else given[name]
                for name, kind in cls.__annotations__.items()
            }
        )


class Samples(NamedTuple):
    """All transitions in order of arrival."""

    states: Annotated[np.ndarray, Field("2 N d", fill=0)]  # FROM: x; TO: y; embedded
    # STEP, ACTION, TERMINATED
    labels: Annotated[np.ndarray, Rows(Field("N", index="H"), Field("N", index="A"), Field("N", most=1))]
    reward: Annotated[np.ndarray, Field("N", least="Lowest", most="Highest")]  # in the environment's units
    number: Annotated[np.ndarray, Field("1", np.int64, counts="N")]  # LOGGED: how many there are


def new_samples(d, capacity):
    """An empty log for embeddings of `d` coordinates."""
    check_memory((2, capacity, max(d, 2)))
    labels = np.zeros((3, capacity), np.int64)
    return Samples(np.zeros((2, capacity, d)), labels, np.zeros(capacity), np.zeros(1, np.int64))


def grow_samples(samples, capacity):
    """The same log with room for `capacity` transitions."""
    return samples._replace(
        states=lengthen(samples.states, capacity, 1),
        labels=lengthen(samples.labels, capacity, 1),
        reward=lengthen(samples.reward, capacity, 0),
    )


def embedded_box(space, low, high):
    """The box spanned by the embeddings of the lowest corner, the highest corner and the middle of [low, high] (d,).

    A user's map may send states outside it; they then belong to the outermost cells of a grid, which does no harm.
    """
    bounded = np.isfinite(low) & np.isfinite(high)
    middle = np.where(bounded, 0.5 * np.where(bounded, low, 0.0) + 0.5 * np.where(bounded, high, 0.0), 0.0)
    corners = np.array([low, high, middle])
    images = np.empty_like(corners)
    for corner, image in zip(corners, images, strict=True):
        embed(space, corner, image)
    unknown = np.isnan(images).any(axis=0)
    return np.where(unknown, -np.inf, images.min(axis=0)), np.where(unknown, np.inf, images.max(axis=0))


def cell_widths(settings, bounded):
    """Widths of cells for weights and for cones: 2/3 of the reach, and 1/3 of the largest radius of a cone.

    Smaller cells cost more to visit than they save. `bounded` says whether the metric allows a grid at all.
    """
    if not bounded:
        return np.inf, np.inf
    weights = settings.reach / 1.5
    if not settings.interpolate or not settings.lipschitz.all():
        return weights, weights
    caps = settings.horizon - np.arange(settings.horizon)
    return weights, min(weights, float((caps / settings.lipschitz).max()) / 3.0)


@inner
def append_sample(samples, u, action, reward, v, step, terminated):
    """Add a transition between embedded states to the log."""
    t = samples.number[LOGGED]
    for j in range(u.size):
        samples.states[FROM, t, j] = u[j]
        samples.states[TO, t, j] = v[j]
    samples.labels[STEP, t] = step
    samples.labels[ACTION, t] = action
    samples.labels[TERMINATED, t] = terminated
    samples.reward[t] = reward
    samples.number[LOGGED] = t + 1


@compiled
def sample_room(samples):
    """How many more transitions fit."""
    return samples.reward.size - samples.number[LOGGED]


@inner
def pool(settings, h):
    """The pool of data that step `h` uses."""
    return 0 if settings.stationary else h


@inner
def row(settings, h):
    """The row of step `h` in arrays that belong to points."""
    return h if settings.stationary else 0


@inner
def action_list(settings, h, a):
    """The list of `S` with the samples that step `h` has of action `a`."""
    return pool(settings, h) * settings.actions + a


@inner
def has_next(settings, h, terminated):
    """Whether a sample of step `h` is followed by a state whose value is planned."""
    return not terminated and (settings.stationary or h + 1 < settings.horizon)


@inner
def lone_target(settings, h, reward, terminated):
    """G at step `h` of a sample without next state: m(r) and, after a termination, the value of the remaining steps."""
    target = mapped(settings.units, reward)
    if terminated:
        target += after_end(settings.units, settings.horizon, h)
    return target
