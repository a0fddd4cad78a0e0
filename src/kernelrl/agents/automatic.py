"""Automatic settings: the scale of each coordinate, the merge distance and the bandwidths, from the data that are seen.

Actions are random until the end of the episode in which RANDOM_STEPS steps are reached, or RANDOM_SHORT where actions
are a related net and episodes are short. From then on, each time the number of episodes has grown by a fifth,

    width_j = the width of the box, or of what was seen where the box is unbounded
    s_j     = the root mean square of the steps in coordinate j, at least LEAST·width_j and at most MOST·width_j
    unit    = √max(1, d/2)
    m       = MERGE·unit·g        merge distance of representative states
    σ_min   = NARROW·unit·g,   σ_0 = WIDE·unit·max(1, g)        of `krl.schedules.Local`

in coordinates x_j/s_j, where the grain g is 1 at first. It becomes FINER times smaller when there are more than REFINE
steps for each representative and action, unless it is FINEST or less already or the representatives, which then become
FINER^-d times as many, would take more than ROOM of what a plan can afford (`max_representatives`, by default LIMIT).
Related actions of a net have the samples of others to begin with: REFINE_NET steps are enough as long as there are
fewer than FEW representatives. With more, pairs would have hardly any samples of their own.
Before any episode at which they have reached the limit, and as long as more than FULL of it are taken after a change, g
becomes COARSER times larger. When g changes, or any s_j by more than a factor 1.25, in which case g waits, the
representatives are made again from the raw transitions, which are kept for this purpose, and bandwidths are renewed.
In short episodes with a related net no s_j falls: steps are shorter there as soon as the agent knows where to be, and
with narrower bandwidths it would explore once more.

A metric that is given is taken as it is. Then one length s takes the place of the s_j, the root mean square of the
steps in this metric divided by √d; the width is the diagonal of the box of what was seen, also divided by √d. A merge
distance that is given stays, and so does g.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents.action_kernel import START
from kernelrl.agents.dependence import MOTION, NOT, REWARDS, dependence
from kernelrl.agents.roughness import Exploring
from kernelrl.agents.spaces import Spaces
from kernelrl.geometry.metrics import Lp
from kernelrl.stores.log import Log, steps_in
from kernelrl.stores.samples import FROM, LOGGED, TO

__all__ = ["Automatic", "Smoothing", "next_renewal"]

Floats = npt.NDArray[np.float64]
RANDOM_STEPS, RANDOM_SHORT = 100, 25
MERGE, WIDE, NARROW, EXPONENT = 0.42, 0.70, 0.17, 0.25
LEAST, MOST, MOVED = 0.03, 0.10, math.log(1.25)
UNBOUNDED = 1e5  # a box as wide as this is treated as unbounded
LIMIT, COARSER = 3000, 1.15
REFINE, FINER, FINEST = 6.0, 0.8, 0.25
REFINE_NET, FEW = 2.0, 300  # where actions are those of a net and related
FULL = 0.9  # of the limit may be taken after a change
ROOM = 0.8  # of it may be taken, as far as can be foreseen, by a smaller grain


class Smoothing(NamedTuple):
    """The metric, bandwidths and merge distance in use."""

    metric: Any
    start: float  # σ, the widest of several, or σ_0 of local bandwidths
    least: float  # σ_min of local bandwidths
    exponent: float
    by_state: bool
    local: bool  # whether each representative and action has its own bandwidth
    merge: float | None  # None: every sample is kept
    limit: int | None  # on the number of representatives, beyond which states are merged at any distance
    ready: bool = True  # False while actions are random
    step_scale: float = 0.0  # of the step as a coordinate; 0: it is none
    by_step: bool = False  # whether rewards depend on the step
    chosen: bool = False  # whether the merge distance is the agent's choice
    coarse: bool = False  # whether it is larger than it would be without a limit on representatives
    several: tuple[float, ...] = ()  # bandwidths that are used at once, the widest first


def next_renewal(k: int) -> int:
    """The number of episodes at which settings are looked at again after they were at `k`."""
    return max(k + 1, int(1.2 * k))


class Automatic:
    """The rule, and what it has chosen so far."""

    horizon = 1  # of the environment
    short = False  # whether actions are a related net and episodes are short

    def __init__(self, metric: Any, merge: float | None, limit: int | None) -> None:
        """`metric` and `merge` are None unless they are given; `limit` is `max_representatives`."""
        self.metric, self.merge, self.limit = metric, merge, limit or LIMIT
        self.scale: Floats | None = None  # s_j (d,), or s (1,)
        self.grain, self.due, self.action_sigma = 1.0, 0, START
        self.depends = NOT  # on the step: NOT, REWARDS do or MOTION does
        self.exploring = Exploring()

    @property
    def random_steps(self) -> int:
        """After how many steps the first settings are chosen."""
        return RANDOM_SHORT if self.short else RANDOM_STEPS

    def smoothing(self, d: int) -> Smoothing:
        """What is in use now, for states of `d` coordinates."""
        unit, g = math.sqrt(max(1.0, (d + (self.depends == MOTION)) / 2.0)), self.grain
        metric, length, ready = self.metric, 1.0, self.scale is not None
        if metric is None:
            metric = Lp(2.0, tuple(np.ones(d) if self.scale is None else self.scale))
        elif self.scale is not None:
            length = float(self.scale[0])
        start, least = WIDE * unit * max(1.0, g) * length, NARROW * unit * g * length
        merge = MERGE * unit * g * length if self.merge is None else self.merge
        step_scale = length / max(1.0, LEAST * self.horizon) if self.depends == MOTION else 0.0
        return Smoothing(
            metric, start, min(least, start), EXPONENT, False, True, merge, None, ready, step_scale,
            self.depends == REWARDS, self.merge is None, g > 1.0,
        )  # fmt: skip

    def look(self, log: Log, spaces: Spaces, representatives: int, pooled: bool, actions: float | None = None) -> bool:
        """Look at all data; return whether the representatives have to be made again.

        `actions` is their number, where related ones count less; None: they are not related.
        """
        scale = self._scale(log, spaces.low, spaces.high)
        if self.short and self.scale is not None:
            scale = np.maximum(scale, self.scale)
        moved = self.scale is None or np.abs(np.log(scale / self.scale)).max() > MOVED
        if moved:
            self.scale = scale
        if pooled and self.depends != MOTION and self.metric is None:  # the motion may be found later than rewards
            found = dependence(log, scale, spaces.horizon, spaces.net)
            if found not in (NOT, self.depends):
                self.depends, moved = found, True
        if moved:
            return True
        each = spaces.actions if actions is None else actions
        soon = actions is not None and spaces.net is not None and representatives < FEW
        refine = REFINE_NET if soon else REFINE
        enough = log.number[LOGGED] > refine * representatives * each
        fits = representatives * FINER**-spaces.low.size < ROOM * self.limit
        if self.merge is None and enough and fits and self.grain > FINEST:
            self.grain *= FINER
            return True
        return False

    def coarsen(self) -> None:
        """Choose a larger grain."""
        self.grain *= COARSER

    @property
    def most(self) -> int:
        """How many representatives there may be after a change; a given merge distance knows no limit."""
        return max(1, int(FULL * self.limit)) if self.merge is None else np.iinfo(np.int64).max

    def _scale(self, log: Log, low: Floats, high: Floats) -> Floats:
        """s_j, or s."""
        n, d = int(log.number[LOGGED]), len(low)
        if self.metric is None:
            x, y = log.states[FROM, :n], log.states[TO, :n]
            step = np.sqrt(np.mean((y - x) ** 2, axis=0))
            seen = np.maximum(x, y).max(axis=0) - np.minimum(x, y).min(axis=0)
            with np.errstate(over="ignore", invalid="ignore"):
                width = high - low
            width = np.where(width < UNBOUNDED, width, np.where(seen > 0.0, seen, 1.0))
        else:
            squares, lowest, highest = steps_in(log, self.metric.space(low, high))
            step = np.sqrt(np.mean(squares, keepdims=True) / d)
            seen = np.linalg.norm(highest - lowest) / math.sqrt(d)
            width = np.array([seen if seen > 0.0 else 1.0])
        width = np.where(width > 0.0, width, 1.0)
        scale: Floats = np.clip(step, LEAST * width, MOST * width)
        return scale

    # ------------------------------------------------------------------------------------------------------ in a file

    def to_store(self) -> dict[str, Any]:
        """The state, as JSON."""
        scale = None if self.scale is None else self.scale.tolist()
        chosen = {"grain": self.grain, "due": self.due, "depends": self.depends, "action_sigma": self.action_sigma}
        return {"scale": scale, **chosen, **self.exploring._asdict()}

    def restore(self, stored: Any, d: int) -> None:
        """Restore what `to_store` gave."""
        keys = ("scale", "grain", "due", "depends", "action_sigma", *Exploring._fields)
        if not isinstance(stored, dict) or set(stored) != set(keys):
            raise ValueError(f"started: automatic must have {', '.join(keys)}, got {stored!r:.200}")
        if type(stored["action_sigma"]) is not float or not 0.0 < stored["action_sigma"] <= 1.0:
            raise ValueError(f"started: automatic has action_sigma {stored['action_sigma']!r:.200}, which cannot be")
        found = Exploring(stored["root"], stored["others"])
        if not (all(type(number) is float for number in found) and 0.0 <= found.root <= 1.0 <= found.others <= 1e6):
            raise ValueError(f"started: automatic has {found!r:.200}, which cannot be")
        scale, grain, due = stored["scale"], stored["grain"], stored["due"]
        if not isinstance(stored["depends"], str) or stored["depends"] not in (NOT, REWARDS, MOTION):
            raise ValueError(f"started: automatic depends on {stored['depends']!r:.200}, which cannot be")
        numbers = scale is None or (
            isinstance(scale, list)
            and len(scale) == (d if self.metric is None else 1)
            and all(type(s) is float and 1e-100 <= s <= 1e100 for s in scale)
        )
        if not (numbers and type(grain) is float and 1e-3 <= grain <= 1e6 and type(due) is int and 0 <= due <= 2**53):
            raise ValueError(f"started: automatic is {stored!r:.200}, which cannot be")
        self.scale, self.grain, self.due = None if scale is None else np.array(scale), grain, due
        self.depends, self.action_sigma, self.exploring = stored["depends"], stored["action_sigma"], found
