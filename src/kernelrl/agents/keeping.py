"""How a kernel agent keeps its data: every sample, or counts at representative states.

The two classes have the same methods. They are the only difference between an exact agent and one on representatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.advice import Advice
from kernelrl.agents.automatic import Smoothing
from kernelrl.bonuses.interface import EPOCH, before_data, with_ranges
from kernelrl.console import track
from kernelrl.episodes import verbs
from kernelrl.geometry.representatives import FAR, KNOWN, relist_cones
from kernelrl.jit.handles import hand_over
from kernelrl.planning.full import InPieces, new_full
from kernelrl.planning.in_steps import InSteps
from kernelrl.planning.interface import Planned, complete_plan, for_settings, for_weights
from kernelrl.planning.reading import plan_merged
from kernelrl.planning.smoothed import new_smoothed
from kernelrl.planning.together import plan_together
from kernelrl.stores.interface import samples_in
from kernelrl.stores.merged import COUNTED, STAYED, WAITING, count_now, new_merged, rebandwidth, renew_local
from kernelrl.stores.samples import Settings, cell_widths, new_samples

__all__ = ["AtRepresentatives", "EverySample"]

Floats = npt.NDArray[np.float64]
Box = tuple[Floats, Floats]
Rules = Callable[[npt.NDArray[np.int64]], Floats] | None
FEW = 10  # with fewer representatives their weights say little
LONG = 20_000  # planning with at least so many samples times steps shows a bar


class EverySample:
    """Every sample is kept."""

    def __init__(self, new_plan: Callable[..., Any], moments: int) -> None:
        """`new_plan` makes a plan; `moments`: how many the bonus needs."""
        self.new_plan, self.moments = new_plan, moments > 0
        self.widths: tuple[float, float] | None = None  # widths of the cells of the buckets

    def new(self, settings: Settings, box: Box, smoothing: Smoothing) -> tuple[Any, Any]:
        """The store and the plan before any data."""
        self.box, self.bounded = box, smoothing.metric.bounded
        if self.widths is None:
            self.widths = self._widths(settings)
        return new_samples(len(box[0]), 4 * settings.horizon), self._empty_plan(settings)

    def _widths(self, settings: Settings) -> tuple[float, float]:
        weights, cones = cell_widths(settings, self.bounded)
        return weights, cones

    def _empty_plan(self, settings: Settings) -> Any:
        assert self.widths is not None
        return self.new_plan(settings, *self.box, *self.widths, self.moments)

    def with_settings(self, model: Any, settings: Settings) -> Any:
        """The model with all its data and another bandwidth, other units or other Lipschitz constants."""

        def new() -> Any:
            nonlocal settings
            settings = settings._replace(bonus=before_data(settings.bonus))  # which will count all samples again
            self.widths = self._widths(settings)
            return self._empty_plan(settings)

        plan = for_settings(model.plan, settings, new)
        return with_room(model._replace(settings=settings, plan=plan))

    def planned(self, model: Any, side: Any, what: str) -> Planned:
        """A plan of all data on that side; `what` is the label of the progress bar if it takes long."""
        settings = model.settings._replace(bonus=before_data(model.settings.bonus))
        cell, _ = self._widths(settings)
        pieces = InPieces(new_full(settings, model.store, *self.box, cell, self.moments))
        long = samples_in(model.store) * settings.horizon >= LONG
        with track(what, pieces.number, show=long) as pieces.tick:
            planned: Planned = pieces.plan(side)
        return planned

    def planned_together(self, model: Any, box: Any, rules: Rules, merge: float) -> tuple[Planned, Planned]:
        """Lower and upper bounds from all data; `box`, `rules` in these epochs and `merge`: see `plan_together`."""
        settings = for_ranges(model.settings._replace(bonus=before_data(model.settings.bonus)))
        cell, _ = self._widths(settings)
        lower = InPieces(new_full(settings, model.store, *self.box, cell, self.moments))
        upper = lower.another()
        long = samples_in(model.store) * settings.horizon >= LONG
        with track("Planning bounds", 2 * lower.number, show=long) as tick:
            lower.tick = upper.tick = tick
            both: tuple[Planned, Planned] = plan_together(lower, upper, box, rules_now(settings, rules), merge)
        return both

    def settle(self, model: Any) -> None:
        """Do nothing: samples wait for the plan where they are kept."""

    def representatives(self, model: Any) -> int:
        """How many representative states there are: none."""
        return 0

    def advise(self, model: Any, advice: Advice, smoothing: Smoothing) -> None:
        """Warn of settings with which little can be learnt."""

    def to_store(self) -> dict[str, Any]:
        """What a file must contain besides the model's arrays."""
        assert self.widths is not None
        return {"widths": [str(width) for width in self.widths]}

    def restore(self, stored: dict[str, Any]) -> None:
        """Restore what `to_store` gave."""
        if "widths" not in stored:
            return
        widths = stored["widths"]
        if not (isinstance(widths, list) and len(widths) == 2 and all(isinstance(width, str) for width in widths)):
            raise ValueError(f"started: widths must be two numbers as text, got {widths!r}")
        weights, cones = (float(width) for width in widths)
        if not (weights > 0.0 and cones > 0.0):
            raise ValueError(f"started: widths must be above 0, got {widths!r}")
        self.widths = weights, cones


class AtRepresentatives:
    """Samples count for representative states."""

    def __init__(self, new_plan: Callable[..., Any], moments: int) -> None:
        """`new_plan` makes a plan; `moments`: see `new_merged`."""
        self.new_plan, self.moments = new_plan, moments

    def new(self, settings: Settings, box: Box, smoothing: Smoothing) -> tuple[Any, Any]:
        """The store and the plan before any data."""
        store = self.new_store(settings, box, smoothing)
        return store, self.new_plan(settings, store)

    def new_store(self, settings: Settings, box: Box, smoothing: Smoothing, capacity: int = 64) -> Any:
        """A store without data, with room for so many representatives."""
        limit, bounded = smoothing.limit or np.iinfo(np.int64).max, smoothing.metric.bounded
        return new_merged(
            settings, *box, smoothing.merge, limit, reach_of_cones(settings), bounded, self.moments,
            scales_of(settings, smoothing), smoothing.local, capacity,
        )  # fmt: skip

    def with_settings(self, model: Any, settings: Settings) -> Any:
        """The model with all its data and another bandwidth, other units or other Lipschitz constants."""
        store, before = model.store, model.settings
        if settings.inverse_sigma2 != before.inverse_sigma2:
            store = rebandwidth(settings, store, settings.horizon)
        if settings.interpolate and not np.array_equal(settings.lipschitz, before.lipschitz):
            store = store._replace(reps=relist_cones(store.reps, settings, reach_of_cones(settings)))
        plan = for_settings(model.plan, settings, lambda: self.new_plan(settings, store))
        return with_room(model._replace(settings=settings, store=store, plan=plan))

    def renewed(self, model: Any) -> Any:
        """The model with local bandwidths renewed from all data."""
        settings = model.settings
        store = renew_local(settings, model.store, settings.horizon)
        model = with_room(model._replace(store=store))
        return model._replace(plan=for_weights(model.plan, settings, model.store))

    def planned(self, model: Any, side: Any, what: str) -> Planned:
        """A plan of all data on that side."""
        settings, store = storage.copied(Planned(None, model.settings, model.store))[1:]
        plan, store = complete_plan(new_smoothed(settings, store), settings, store)
        planned: Planned = plan_merged(plan, settings, store, side)
        return planned

    def planned_together(self, model: Any, box: Any, rules: Rules, merge: float) -> tuple[Planned, Planned]:
        """Lower and upper bounds from all data; `box`, `rules` in these epochs and `merge`: see `plan_together`."""
        settings, store = storage.copied(Planned(None, model.settings, model.store))[1:]
        settings, sides = for_ranges(settings), []
        for _ in range(2):
            plan, store = complete_plan(new_smoothed(settings, store), settings, store)
            sides.append(Planned(plan, settings, store))
        lower, upper = (InSteps(planned) for planned in sides)
        both: tuple[Planned, Planned] = plan_together(lower, upper, box, rules_now(settings, rules), merge)
        return both

    def settle(self, model: Any) -> None:
        """Count samples that wait for a plan."""
        if model.store.clock[WAITING]:
            count_now(hand_over(model.settings), hand_over(model.store))

    def representatives(self, model: Any) -> int:
        """How many representative states there are."""
        return int(model.store.reps.number[KNOWN])

    def advise(self, model: Any, advice: Advice, smoothing: Smoothing) -> None:
        """Warn of settings with which little can be learnt."""
        store, samples, number = model.store, int(samples_in(model.store)), self.representatives(model)
        if smoothing.limit is not None and store.reps.number[FAR]:
            advice.of_limit(smoothing.limit)
        if not smoothing.chosen:  # else the agent itself will choose a larger one
            advice.of_no_neighbours(samples, number, smoothing.merge)
        coarse = smoothing.coarse or not smoothing.chosen  # else states that stay do so by themselves
        if coarse and model.settings.horizon > 1:  # else it does not matter where a step leads
            number_counted, stayed = int(store.clock[COUNTED]), int(store.clock[STAYED])
            advice.of_standing_still(number_counted, stayed, smoothing.merge, smoothing.chosen)
        if not smoothing.local and number >= FEW and advice.is_time_for("bandwidth", samples):
            each = store.reps.scales.shape[1]
            start, degree = store.reps.weights.span[:2, : number * each : each]  # of the widest bandwidth
            total = sum(float(store.reps.weights.amount[i : i + n].sum()) for i, n in zip(start, degree, strict=True))
            advice.of_bandwidth((total - number) / (number * (number - 1)), smoothing.start)

    def to_store(self) -> dict[str, Any]:
        """What a file must contain besides the model's arrays: nothing."""
        return {}

    def restore(self, stored: dict[str, Any]) -> None:
        """Do nothing: there is nothing to restore."""


def for_ranges(settings: Settings) -> Settings:
    """The settings with a bonus that has ranges of its own, if it knows of ranges."""
    bonus = with_ranges(settings.bonus)
    return settings if bonus is None else settings._replace(bonus=bonus)


def rules_now(settings: Settings, rules: Rules) -> Floats | None:
    """The rules in the epochs that the pools of all steps are in."""
    return None if rules is None else rules(settings.bonus.progress[EPOCH])


def with_room(model: Any) -> Any:
    """The model with room for one more episode."""
    while not verbs.has_room(model):
        model = verbs.grow(model)
    return model


def scales_of(settings: Settings, smoothing: Smoothing) -> Floats:
    """(2, M): 1/σ² and the reach of each bandwidth."""
    if not smoothing.several:
        return np.array([[settings.inverse_sigma2], [settings.reach]])
    sigmas = np.array(smoothing.several)
    return np.array([1.0 / sigmas**2, settings.reach / smoothing.start * sigmas])


def reach_of_cones(settings: Settings) -> float:
    """How far from its tip a cone can be below the cap; 0 where values are not interpolated."""
    if not settings.interpolate:
        return 0.0
    with np.errstate(divide="ignore"):
        return float((np.arange(settings.horizon, 0, -1.0) / settings.lipschitz).max())
