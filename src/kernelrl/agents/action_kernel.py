"""Weights between actions: what is learnt about one action counts for those near it.

With a distance ρ_A between actions and its bandwidth σ_A, weights are g of ρ = √(ρ_X²/σ² + ρ_A²/σ_A²). The Gaussian
is a product, g(ρ) = g(ρ_X/σ)·K_A with

    K_A(b, a) = exp(-ρ_A(b, a)²/(2·σ_A²))

so data are smoothed over the actions of the net first, then over states (`kernelrl.stores.merged`). Other kernels are
not products, and there K_A is the identity.

"auto": ρ_A is Euclidean, with each axis of the box scaled to [0, 1]. With automatic bandwidths, σ_A is START at first
and then follows the median σ(u, a) of the pairs with data in the last plan: START·median/σ_0, at least LEAST. It is
renewed whenever the settings are looked at. With a bandwidth that is given, σ_A is GIVEN. Discrete actions are related
only if `action_metric` is given, as a metric of their numbers 0 … A-1, whose largest distance is then 1 for "auto".

Where bandwidths are local and actions are those of a net, the samples of all other pairs together count for a pair at
most as OTHERS of its own (`kernelrl.stores.merged`), in short episodes as fewer (`kernelrl.agents.roughness`): what was
seen at the pair itself has no bias, so it prevails as soon as there is enough of it. It does not where rewards depend
on the step.

With episodes of at most SHORT steps and an automatic σ_A on a net, K_A has a tail that does not get narrower,

    K_A(b, a) = max(exp(-ρ_A²/(2·σ_A²)), TAIL·exp(-ρ_A²/(2·START²)))

Otherwise actions that were dismissed long ago would have no samples around them again as soon as σ_A is smaller, and
the agent would try them once more.

With a bonus that has a guarantee, "auto" relates no actions. The joint bonus holds for a given σ_A, too, with Lipschitz
constants in ρ_X + ρ_A: weights are at most 1, they change with x no faster than without K_A, and the bias is at most
L_h·Σw(ρ_X + ρ_A)/C.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.action_net import RELATED
from kernelrl.agents.spaces import Spaces
from kernelrl.arguments import is_auto, positive
from kernelrl.geometry.actions import Among, Apart, Interval, region_of
from kernelrl.geometry.kernels import Gaussian, resolve_kernel
from kernelrl.geometry.metrics import Lp, resolve_metric
from kernelrl.geometry.representatives import KNOWN
from kernelrl.jit.rows import padded
from kernelrl.stores.log import Log, steps_in

__all__ = ["OTHERS", "START", "ActionKernel", "narrowed"]

Floats = npt.NDArray[np.float64]
START, LEAST, GIVEN = 0.06, 0.01, 0.05
OTHERS = 20.0
SHORT, TAIL = 15, 0.03
NOTHING = 1e-12  # weights below it are 0


class ActionKernel:
    """The rule, for the arguments `action_bandwidth` and `action_metric` of an agent with this `kernel`."""

    def __init__(self, bandwidth: Any, metric: Any, kernel: Any) -> None:
        """Reject arguments that do not fit together."""
        try:
            self.metric = metric if metric is None or is_auto(metric) else resolve_metric(metric, "action_metric")
        except TypeError as error:
            raise TypeError(f"action_metric: {error}") from error
        auto = bandwidth is None or is_auto(bandwidth)
        self.bandwidth = bandwidth if auto else positive("action_bandwidth", bandwidth, least=1e-100, most=1e100)
        self.is_product = isinstance(resolve_kernel(kernel), Gaussian)
        if not auto and not self.is_product:
            raise ValueError(
                f"action_bandwidth: only the Gaussian kernel is a product of one for states and one for actions, got "
                f"kernel={kernel!r}; leave action_bandwidth out, which relates no actions"
            )

    def check(self, bonus: Any) -> None:
        """Relate no actions by a rule if the bonus has a guarantee, and reject what has none."""
        if not bonus.promises:
            return
        if self.bandwidth is None or is_auto(self.bandwidth):
            self.bandwidth = None
        elif not bonus.needs_moments:
            raise ValueError(
                f"action_bandwidth: the bonus {bonus} holds for actions that are not related; leave action_bandwidth "
                "out, or use krl.bonuses.Joint"
            )
        elif self.metric is None or is_auto(self.metric):
            raise ValueError(
                f"action_metric: the bonus {bonus} needs the distance between actions in which the Lipschitz constants "
                'hold; give action_metric, such as "euclidean"'
            )

    def relates(self, spaces: Spaces) -> bool:
        """Whether actions are related."""
        given = spaces.net is not None or not (self.metric is None or is_auto(self.metric))
        return given and self.is_product and self.bandwidth is not None and spaces.actions > 1

    def limits_others(self, spaces: Spaces, local: bool) -> bool:
        """Whether the samples of other pairs count only so much; `local`: whether bandwidths are."""
        return local and spaces.net is not None and self.relates(spaces)

    def is_short(self, spaces: Spaces, local: bool) -> bool:
        """Whether the rules for short episodes hold."""
        return self.limits_others(spaces, local) and spaces.horizon <= SHORT

    def distances(self, spaces: Spaces) -> Floats:
        """(A, A) ρ_A."""
        A = spaces.actions
        if A > RELATED:
            raise ValueError(
                f"action_bins: weights between {A:,} actions are too large a matrix; give fewer, at most "
                f"{RELATED:,} actions in all, or action_bandwidth=None, which relates none"
            )
        points = points_of(spaces)
        low, high = points.min(axis=0), points.max(axis=0)
        if self.metric is None or is_auto(self.metric):
            unit = in_unit_box(points)
            found: Floats = np.sqrt(sum(np.subtract.outer(axis, axis) ** 2 for axis in unit.T))
            return found
        pairs = np.stack([np.repeat(points, A, axis=0), np.tile(points, (A, 1))])
        log = Log(pairs, np.zeros((3, A * A), np.int64), np.zeros(A * A), np.array([A * A]))
        squares: Floats = steps_in(log, self.metric.space(low, high))[0]
        return np.sqrt(squares).reshape(A, A)

    def bounds_others(self, spaces: Spaces) -> bool:
        """Whether Lipschitz constants hold for actions, too: only in a distance that is given."""
        return not (self.metric is None or is_auto(self.metric)) and spaces.actions > 1

    def between(self, spaces: Spaces) -> Any:
        """How bounds of actions bound others where values are interpolated (`kernelrl.geometry.actions`).

        In a box, all of its actions count where the distance is an Lp norm, else those of the net.
        """
        if not self.bounds_others(spaces):
            return Apart()
        if spaces.actions > RELATED:
            raise ValueError(
                f"action_bins: bounds between {spaces.actions:,} actions are too large a matrix; give fewer, at most "
                f"{RELATED:,} actions in all, or leave out action_metric, so that actions do not bound each other"
            )
        distances = self.distances(spaces)
        if spaces.net is None or not isinstance(self.metric, Lp):
            return Among(distances)
        points = spaces.net.points
        scale = self.metric.inverse_scale(points.min(axis=0), points.max(axis=0))
        axes = [np.unique(points[:, j]) * scale[j] for j in range(points.shape[1])]
        wide = [axis for axis in axes if len(axis) > 1]
        return Interval(distances) if len(wide) == 1 else region_of(distances, self.metric.p, wide)

    def unit(self, spaces: Spaces) -> float:
        """The length that counts as 1 for "auto"."""
        automatic = self.metric is None or is_auto(self.metric)
        return 1.0 if automatic else float(self.distances(spaces).max())

    def sigma(self, spaces: Spaces, chosen: float | None) -> float:
        """σ_A: that given, that `chosen` by the rule, or GIVEN if the bandwidth of states is given."""
        if not (self.bandwidth is None or is_auto(self.bandwidth)):
            return float(self.bandwidth)
        return (GIVEN if chosen is None else chosen) * self.unit(spaces)

    def weights(self, spaces: Spaces, chosen: float | None, moments: bool) -> Floats:
        """(kinds, A, columns) K_A and, if the bonus needs `moments`, K_A·ρ_A and K_A²; no kinds if K_A = 1."""
        A, columns = spaces.actions, padded(spaces.actions)
        if not self.relates(spaces):
            return np.zeros((0, A, columns))
        rho = self.distances(spaces)
        K = np.exp(-0.5 * (rho / self.sigma(spaces, chosen)) ** 2)
        if chosen is not None and is_auto(self.bandwidth) and self.is_short(spaces, local=True):
            K = np.maximum(K, TAIL * np.exp(-0.5 * (rho / (START * self.unit(spaces))) ** 2))
        K[K < NOTHING] = 0.0
        kinds = [K, K * rho, K**2] if moments else [K]
        found = np.zeros((len(kinds), A, columns))
        found[:, :, :A] = kinds
        return found

    def places(self, spaces: Spaces, chosen: float | None, sigma: float) -> Floats:
        """(A, d_A) the actions in coordinates in which σ_A is as long as `sigma` is among states."""
        if not self.relates(spaces):
            return np.zeros((spaces.actions, 0))
        places: Floats = in_unit_box(points_of(spaces)) * (sigma * self.unit(spaces) / self.sigma(spaces, chosen))
        return places


def points_of(spaces: Spaces) -> Floats:
    """(A, d_A) the actions of the net, or the numbers of Discrete ones."""
    return np.arange(float(spaces.actions))[:, None] if spaces.net is None else spaces.net.points


def in_unit_box(points: Floats) -> Floats:
    """The points (A, d_A) with each axis scaled to [0, 1]."""
    width = np.ptp(points, axis=0)
    unit: Floats = (points - points.min(axis=0)) / np.where(width > 0.0, width, 1.0)
    return unit


def narrowed(store: Any, start: float) -> float:
    """σ_A in units of the box: it follows the local bandwidths, the first of which is `start`."""
    known = int(store.reps.number[KNOWN])
    visited = store.N[:, :known].sum(axis=0) > 0.0
    if not visited.any():
        return START
    sigmas = 1.0 / np.sqrt(store.reps.local[:known, : visited.shape[1]][visited])
    return max(LEAST, START * float(np.median(sigmas)) / start)
