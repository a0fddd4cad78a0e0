"""The settings of a kernel agent, and the store of an exact one: every sample.

Steps h count from 0 in code: R_h = H - h is the largest value left at step h, and V_H = 0.

`Samples` is the log of embedded states in order of arrival. The algorithms work on two sets of buckets: `S`, the states
x_s by pool and action, and `Y`, the next states y_s by pool. With data per step, step h uses pool h of `S`, and V_h is
needed at the next states of step h-1, which are pool h of `Y`. When data are pooled (`stationary`) there is one pool,
and each next state has a value for every step. Arrays that belong to points have one row per step in the stationary
case and one row otherwise: `pool` and `row` give the indices.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.geometry.actions import Apart
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.masks import EVERYTHING
from kernelrl.geometry.metrics import embed
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, Rows
from kernelrl.stores.interface import add, grown_for, has_ended, has_room_for, pool, samples_in, start_states
from kernelrl.stores.units import Units, after_end, mapped

__all__ = [
    "ACTION",
    "BLEND",
    "FROM",
    "LOGGED",
    "NEAREST",
    "STARTS",
    "STEP",
    "TERMINATED",
    "TO",
    "Samples",
    "Settings",
    "action_list",
    "cell_widths",
    "embedded_box",
    "has_next",
    "implement_log_verbs",
    "lone_target",
    "new_samples",
    "place",
    "placed_box",
    "places",
    "row",
]

FROM, TO = range(2)  # of `states`
STEP, ACTION, TERMINATED = range(3)  # of `labels`
LOGGED = 0  # of `number`
NEAREST, BLEND = range(2)  # `reading`: values at a state are those of its representative, or a mean of those around it
STARTS = 32  # number of start states that are of interest


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
    growth: float  # with GROWING, the factor by which episodes grow between plans
    ready: bool  # data count; before, they are only logged, and actions are random
    logs: bool  # raw transitions are kept, too
    step_scale: float  # embedded states have step_scale·h as their last coordinate; 0: they do not
    by_step: bool  # rewards depend on the step, though the data are pooled
    own_steps: bool  # transitions belong to the estimate of a representative, not to the samples at it (`own_steps`)
    reading: int  # NEAREST or BLEND
    least_sigma: float  # σ_min of local bandwidths
    exponent: float  # by which they fall with the count
    by_state: bool  # one bandwidth for all actions
    promises: bool  # with this bonus values are upper bounds with high probability
    tolerance: float  # how far values may be from those of a full plan, see `kernelrl.planning.changes`
    others: float  # what the samples of all other pairs together count for a pair at most; infinite: no limit
    action_weights: np.ndarray  # (kinds, A, columns) K_A, and what moments need; no kinds where actions are unrelated
    between: Any  # how bounds of actions bound others, see `kernelrl.planning.between_actions`
    kernel: Any  # see `kernelrl.geometry.kernels`
    bonus: Any  # see `kernelrl.bonuses.interface`
    units: Units
    space: Any  # see `kernelrl.geometry.metrics`
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)
    raw: np.ndarray  # (d,) scratch, a raw state for the mask

    @classmethod
    def of(cls, **given: Any) -> "Settings":
        """Settings with every field cast to the type that compiled functions take.

        By default all actions are allowed and unrelated, other pairs count without limit, and every plan is a full one.
        """
        usual = {"action_weights": np.zeros((0, 0, 0)), "between": Apart(), "tolerance": 0.0, "others": math.inf}
        usual |= {"mask": EVERYTHING, "raw": np.zeros(0)}
        given = {**usual, **given}
        casts = {"int": int, "float": float, "bool": bool}
        return cls(
            **{
                name: casts[kind.__name__](given[name]) if kind.__name__ in casts else given[name]
                for name, kind in cls.__annotations__.items()
            }
        )


def has_room_for_samples(store, settings, samples):
    return store.reward.size - store.number[LOGGED] >= samples


def grown_samples(store, settings, samples):
    if store.reward.size - store.number[LOGGED] >= samples:
        return store
    capacity = more(max(store.reward.size, int(store.number[LOGGED]) + samples))
    return store._replace(
        states=lengthen(store.states, capacity, 1),
        labels=lengthen(store.labels, capacity, 1),
        reward=lengthen(store.reward, capacity, 0),
    )


def samples_logged(store):
    return store.number[LOGGED]


def sample_has_ended(store):
    return bool(store.labels[TERMINATED, : store.number[LOGGED]].any())


def logged_starts(store):
    first = np.flatnonzero(store.labels[STEP, : store.number[LOGGED]] == 0)
    return store.states[FROM, first[-STARTS:]]


def add_sample(store, settings, x, action, reward, y, h, terminated):
    t = store.number[LOGGED]
    for j in range(x.size):
        store.states[FROM, t, j] = x[j]
        store.states[TO, t, j] = y[j]
    store.labels[STEP, t] = h
    store.labels[ACTION, t] = action
    store.labels[TERMINATED, t] = terminated
    store.reward[t] = reward
    store.number[LOGGED] = t + 1
    return False


def implement_log_verbs(cls):
    """Implement the verbs of stores for a class with the fields of `Samples`."""
    add.implement(cls)(add_sample)
    has_room_for.implement(cls)(has_room_for_samples)
    grown_for.implement_plain(cls)(grown_samples)
    samples_in.implement(cls)(samples_logged)
    samples_in.implement_plain(cls)(samples_logged)
    has_ended.implement_plain(cls)(sample_has_ended)
    start_states.implement_plain(cls)(logged_starts)
    return cls


@implement_log_verbs
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
def places(settings, state):
    """The number of coordinates of an embedded state: one more than those of the raw `state` if the step is one."""
    return state.size + (settings.step_scale > 0.0)


@inner
def place(settings, state, h, out):
    """Embed a raw state of step `h` into `out` (places,)."""
    d = state.size
    embed(settings.space, state, out[:d])
    if out.size > d:
        out[d] = h * settings.step_scale


def placed_box(settings, low, high):
    """The box of embedded states (see `embedded_box`), including the step where it is a coordinate."""
    box = embedded_box(settings.space, low, high)
    if settings.step_scale == 0.0:
        return box
    return np.append(box[0], 0.0), np.append(box[1], settings.horizon * settings.step_scale)


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
