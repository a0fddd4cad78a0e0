"""Metrics on states: ρ(x, x') and everything the neighbour search needs of it.

A metric is a map of states followed by a distance between their images ("embeddings"). Each state is embedded once,
when it arrives; from then on only embeddings are compared.

    Lp(p, scale)          embed(x) = x/scale,  ρ = ‖embed(x) - embed(x')‖_p
    Folded(map, metric)   embed(x) = map(x)/scale: states that `map` sends to one place are one place
    Custom(function)      embed(x) = x,  ρ = function(x, x')

ρ((x,a),(x',a')) = ρ_X(x,x') + ρ_A(a,a') with ρ_A = 0 or ∞ for finite actions: samples of other actions weigh nothing,
so they are kept apart and ρ_A appears nowhere.

The compiled form of a metric (a "space") is a NamedTuple with the verbs below, of which `squared_distances` must be
implemented. A user's own function makes a space class of its own, for which everything is compiled once more, and again
when the function has changed; a user's own class of metrics has a space class of the user's (docs/extending.md).
"""

import functools
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from kernelrl.arguments import positive
from kernelrl.geometry.axioms import Bounds, Floats, check_axioms, check_least, some_states
from kernelrl.jit.compile import generic, keep

__all__ = [
    "BLOCK",
    "CLASSES",
    "METRICS",
    "Bounds",
    "Custom",
    "Folded",
    "Lp",
    "LpSpace",
    "Metric",
    "embed",
    "gap_squared",
    "implement_fold",
    "is_plane",
    "resolve_metric",
    "space_of_fold",
    "squared_distances",
    "squares_in_block",
]

BLOCK = 16  # columns of a block, see `squares_in_block`
UNBOUNDED = 1e30  # widths from here on stand for "no bound": Gymnasium's environments write the largest float32


@generic
def embed(space: Any, x: Any, out: Any) -> Any:
    """Write the embedding of state `x` (d,) into `out` (d,)."""
    for j in range(x.size):
        out[j] = x[j]


@generic(required=True)
def squared_distances(space: Any, points: Any, chunk: Any, size: Any, n: Any, u: Any, out: Any) -> Any:
    """out[:size] = ρ² between `u` (d,) and the first columns of points[chunk] (d, WIDTH), out[size:n] = ∞.

    Columns from `size` on hold 1e150, so they may be treated like the others where that makes distances above 1e145.
    """
    # `points` comes whole, since cutting a piece out of an array costs as much as working on it.


@generic
def squares_in_block(space: Any, blocks: Any, block: Any, size: Any, u: Any, out: Any) -> Any:
    """The same as `squared_distances`, for a block of BLOCK columns of which `size` are in use; return the smallest."""
    squared_distances(space, blocks, block, size, BLOCK, u, out)
    least = out[0]
    for i in range(1, BLOCK):
        least = out[i] if out[i] < least else least
    return least


@generic
def gap_squared(space: Any, box: Any, chunk: Any, u: Any) -> Any:
    """A lower bound of ρ² between `u` and any embedding in the box from box[0, chunk] to box[1, chunk] (each (d,))."""
    return 0.0


@generic
def is_plane(space: Any, u: Any) -> Any:
    """Whether embeddings lie in the Euclidean plane, for which there are faster ways."""
    return False


class LpSpace(NamedTuple):
    """x/scale under the p-norm."""

    p: float
    inverse_scale: np.ndarray  # (d,)


@is_plane.implement(LpSpace)
def is_plane_lp(space, u):
    return space.p == 2.0 and u.size == 2


@embed.implement(LpSpace)
def embed_lp(space, x, out):
    for j in range(x.size):
        out[j] = x[j] * space.inverse_scale[j]


@squared_distances.implement(LpSpace)
def squared_lp(space, points, chunk, size, n, u, out):
    p = space.p
    if is_plane(space, u):
        a, b = u[0], u[1]
        for i in range(n):
            e, f = points[chunk, 0, i] - a, points[chunk, 1, i] - b
            out[i] = e * e + f * f
        return
    for i in range(n):
        out[i] = 0.0
    for j in range(u.size):
        a = u[j]
        if p == 2.0:
            for i in range(n):
                out[i] += (points[chunk, j, i] - a) * (points[chunk, j, i] - a)
        elif p == 1.0:
            for i in range(n):
                out[i] += abs(points[chunk, j, i] - a)
        elif p == math.inf:
            for i in range(n):
                out[i] = max(out[i], abs(points[chunk, j, i] - a))
        else:
            for i in range(n):
                out[i] += abs(points[chunk, j, i] - a) ** p
    if p == 1.0 or p == math.inf:
        for i in range(n):
            out[i] = out[i] * out[i]
    elif p != 2.0:
        for i in range(n):
            out[i] = out[i] ** (2.0 / p)


@squares_in_block.implement(LpSpace)
def squares_in_block_lp(space, blocks, block, size, u, out):
    if space.p != 2.0:
        squared_distances(space, blocks, block, size, BLOCK, u, out)
    else:
        for i in range(BLOCK):
            out[i] = (blocks[block, 0, i] - u[0]) * (blocks[block, 0, i] - u[0])
        for j in range(1, u.size):
            for i in range(BLOCK):
                out[i] += (blocks[block, j, i] - u[j]) * (blocks[block, j, i] - u[j])
    least = out[0]
    for i in range(1, BLOCK):
        least = out[i] if out[i] < least else least
    return least


@gap_squared.implement(LpSpace)
def gap_lp(space, box, chunk, u):
    # ‖·‖_p ≥ ‖·‖_2 for p ≤ 2, and ≥ ‖·‖_∞ always.
    total, largest = 0.0, 0.0
    for j in range(u.size):
        gap = max(0.0, max(box[0, chunk, j] - u[j], u[j] - box[1, chunk, j]))
        total += gap * gap
        largest = max(largest, gap)
    return total if space.p <= 2.0 else largest * largest


@functools.cache
def space_of_fold(function: Callable[..., Any]) -> type[Any]:
    """A space class for states mapped by the compiled `function(state, out)`."""

    class FoldedSpace(NamedTuple):
        base: LpSpace

    def embed_folded(space, x, out):
        function(x, out)
        for j in range(x.size):
            out[j] = out[j] * space.base.inverse_scale[j]

    return implement_fold(FoldedSpace, embed_folded)


def implement_fold(cls: type[Any], embed_function: Callable[..., Any]) -> type[Any]:
    """Give `cls`, a NamedTuple with a field `base`, its verbs: its own embedding and its base's distances."""

    def squared_folded(space, points, chunk, size, n, u, out):
        squared_distances(space.base, points, chunk, size, n, u, out)

    def squares_in_block_folded(space, blocks, block, size, u, out):
        return squares_in_block(space.base, blocks, block, size, u, out)

    def gap_folded(space, box, chunk, u):
        return gap_squared(space.base, box, chunk, u)

    def is_plane_folded(space, u):
        return is_plane(space.base, u)

    is_plane.implement(cls)(is_plane_folded)
    embed.implement(cls)(embed_function)
    squared_distances.implement(cls)(squared_folded)
    squares_in_block.implement(cls)(squares_in_block_folded)
    gap_squared.implement(cls)(gap_folded)
    return cls


@functools.cache
def space_of_function(function: Callable[..., Any]) -> type[Any]:
    """A space class for the compiled distance `function(x, y)`."""

    class CustomSpace(NamedTuple):
        nothing: float

    @squared_distances.implement(CustomSpace)
    def squared_custom(space, points, chunk, size, n, u, out):
        for i in range(size):
            rho = function(u, points[chunk, :, i])
            out[i] = rho * rho
        for i in range(size, n):
            out[i] = math.inf

    return CustomSpace


class Metric:
    """What all metrics have in common. One of a user's own is a subclass, a frozen dataclass of its parameters."""

    bounded: bool = False
    """Whether ρ is at least the difference of each coordinate of embeddings, so that a grid can be searched."""

    def space(self, low: Bounds, high: Bounds) -> Any:
        """The compiled form for a box with these bounds: a NamedTuple that implements `squared_distances`."""
        raise NotImplementedError(f"{type(self).__name__} must have a method space(low, high)")

    def check(self, low: Bounds, high: Bounds) -> None:
        """Reject functions that violate the metric axioms on sampled states; pseudometrics are allowed."""
        states, space = some_states(low, high), self.space(low, high)
        n, d = states.shape
        points, between, gaps, square = np.zeros((n, d, 1)), np.zeros((n, n)), np.zeros((n, n)), np.zeros(1)
        for i in range(n):
            u = np.zeros(d)
            embed(space, states[i].copy(), u)
            points[i, :, 0] = u
        box = np.array([points[:, :, 0], points[:, :, 0]])  # each point by itself
        for i, j in np.ndindex(n, n):
            u = points[i, :, 0].copy()
            squared_distances(space, points, j, 1, 1, u, square)
            between[i, j], gaps[i, j] = square[0], gap_squared(space, box, j, u)
        with np.errstate(invalid="ignore"):
            check_axioms(states, np.sqrt(between))
        if self.bounded:
            apart = abs(points[:, None, :, 0] - points[None, :, :, 0]).max(axis=2, initial=0.0)
            check_least(states, between, apart**2, "a coordinate differs by more, so that `bounded` must be False")
        check_least(states, between, gaps, "gap_squared says that it is more, and must never be above it")


@dataclass(frozen=True)
class Lp(Metric):
    """‖(x-x')/scale‖_p; `scale` is None, an array of a positive number a coordinate, or "box" for the box's widths."""

    p: float = 2.0
    scale: str | float | Sequence[float] | np.ndarray | tuple[float, ...] | None = None
    bounded = True

    def __post_init__(self) -> None:
        p = float(self.p)
        if not p >= 1.0:
            raise ValueError(f"Lp: p must be at least 1 (or infinite), got {self.p}")
        object.__setattr__(self, "p", p)
        if isinstance(self.scale, str) and self.scale != "box":
            raise ValueError(f'Lp: scale must be None, "box" or an array of positive numbers, got {self.scale!r}')
        if self.scale is not None and not isinstance(self.scale, str):
            scale = np.atleast_1d(np.asarray(self.scale, float))
            if scale.ndim != 1 or not (np.all(np.isfinite(scale)) and np.all(scale > 0)):
                raise ValueError(f"Lp: scale must hold positive finite numbers, got {self.scale}")
            object.__setattr__(self, "scale", tuple(scale.tolist()))

    def inverse_scale(self, low: Bounds, high: Bounds) -> Floats:
        """1/scale for a box with these bounds (d,)."""
        if self.scale is None:
            return np.ones(len(low))
        if self.scale == "box":
            widths = np.asarray(high, float) - np.asarray(low, float)
            unusable = np.flatnonzero(~((widths > 0) & (widths < UNBOUNDED))).tolist()
            if unusable:
                bounds = ", ".join(f"coordinate {j} goes from {low[j]:g} to {high[j]:g}" for j in unusable)
                raise ValueError(
                    'metric: scale="box" needs a state space that is bounded on every axis and wider than 0, but '
                    f"{bounds} (counting from 0). Give a number for each of the {len(widths)} coordinates, "
                    f"krl.metrics.Lp({self.p:g}, scale=[…]): how much each varies, such as the highest less the lowest "
                    "value in a few episodes of random actions"
                )
            return 1.0 / widths
        scale = np.array(self.scale, float)
        if scale.size not in (1, len(low)):
            raise ValueError(f"metric: scale has {scale.size} entries, but states have {len(low)} coordinates")
        return np.array(np.broadcast_to(1.0 / scale, (len(low),)))  # a copy: a view is read-only, another type

    def check(self, low: Bounds, high: Bounds) -> None:
        """Nothing can be wrong with this one."""

    def space(self, low: Bounds, high: Bounds) -> Any:
        """The compiled form for a box with these bounds."""
        return LpSpace(self.p, self.inverse_scale(low, high))


@dataclass(frozen=True)
class Folded(Metric):
    """The metric `metric` between states mapped by `map`, a compiled function `map(state, out)`.

    States that the map makes one need not be worth the same. `defect` is the most by which Q* may differ between them,
    at any step, in the environment's units of reward; the bonuses with guarantees need it, and 0 is a promise.
    """

    map: Callable[..., Any]
    metric: Any = Lp()
    defect: float | None = None
    bounded = True

    def __post_init__(self) -> None:
        require_compiled("Folded: map", self.map, "map(state, out)")
        object.__setattr__(self, "metric", resolve_metric(self.metric))
        if not isinstance(self.metric, Lp):
            raise ValueError(f"Folded: metric must be an Lp metric, got {self.metric!r}")
        if self.defect is not None:
            object.__setattr__(self, "defect", positive("Folded: defect", self.defect, zero=True))

    def check(self, low: Bounds, high: Bounds) -> None:
        """Reject a map that returns NaN or infinities."""
        for x in some_states(low, high):
            image = np.zeros(len(x))
            self.map(x.copy(), image)
            if not np.isfinite(image).all():
                raise ValueError(f"metric: the map sends {x} to {image}, which is no state")

    def space(self, low: Bounds, high: Bounds) -> Any:
        """The compiled form for a box with these bounds."""
        cls = SHIPPED_FOLDS.get(self.map) or space_of_fold(self.map)
        self.map(np.zeros(len(low)), np.zeros(len(low)))  # compiled by itself first, it may allocate
        return cls(self.metric.space(low, high))


@dataclass(frozen=True)
class Custom(Metric):
    """A metric of one's own: a compiled function `function(x, y)` of two states (d,) that returns a float."""

    function: Callable[..., Any]

    def __post_init__(self) -> None:
        require_compiled("Custom: function", self.function, "function(x, y)")

    def check(self, low: Bounds, high: Bounds) -> None:
        """Reject functions that violate the metric axioms on sampled states; pseudometrics are allowed."""
        states = some_states(low, high)
        check_axioms(states, np.array([[self.function(x.copy(), y.copy()) for y in states] for x in states]))

    def space(self, low: Bounds, high: Bounds) -> Any:
        """The compiled form for a box with these bounds."""
        self.function(np.zeros(len(low)), np.zeros((len(low), 2))[:, 0])  # compiled by itself first, it may allocate
        return space_of_function(self.function)(0.0)


SHIPPED_FOLDS: dict[Any, Any] = {}  # maps that come with the package
CLASSES = {"lp": Lp, "folded": Folded, "custom": Custom}
METRICS = {"euclidean": Lp(2.0), "manhattan": Lp(1.0), "chebyshev": Lp(math.inf)}


def require_compiled(argument: str, function: Any, form: str) -> None:
    """Refuse what is not a function of two arguments, compiled by numba (or any, when the JIT is disabled)."""
    import numba

    if not callable(function) or not (numba.config.DISABLE_JIT or hasattr(function, "py_func")):  # type: ignore[attr-defined]
        raise TypeError(
            f"{argument} must be a compiled function {form}: decorate it with @numba.njit; got {function!r}"
        )
    takes = inspect.signature(getattr(function, "py_func", function))
    try:
        takes.bind(None, None)
    except TypeError:
        name = getattr(function, "__name__", repr(function))
        raise TypeError(f"{argument} must be a compiled function {form}; got {name}{takes}") from None
    keep(function)


def resolve_metric(metric: Any, argument: str = "metric") -> Any:
    """A metric object from a name, an object or a compiled function of two states; errors name the argument.

    An object of a user's own class is a `Metric`, or has what one has: `space`, `check` and `bounded`.
    """
    if all(hasattr(metric, part) for part in ("space", "check", "bounded")) and not isinstance(metric, type):
        return metric
    if isinstance(metric, str):
        if metric in METRICS:
            return METRICS[metric]
        raise ValueError(
            f"{argument}: {metric!r} is not known; use one of {', '.join(METRICS)}, krl.metrics.Lp, "
            "krl.metrics.Folded, krl.metrics.Custom or a subclass of krl.metrics.Metric"
        )
    return Custom(metric)
