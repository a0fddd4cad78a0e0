"""The policy to deploy of an agent that chooses its settings itself, and so has its raw transitions.

Which states become representatives depends on the order in which they arrive. Plans of the same data differ for that
reason alone, much so in four dimensions and more. So PLANS plans are made, each from all transitions in another order
(the first in theirs), with bandwidths from all data. The policy is greedy in the mean of their Q_h, which is read at
the representatives of the first plan and, between these, as usual. A single plan can be so bad that it spoils the mean.
So the plans and their mean play simulated episodes (`kernelrl.planning.rehearsal`), and if a plan is better
there than the mean, it is deployed instead.

In each plan a step leads where it would lead from the representative itself (`kernelrl.stores.landing`): by the
displacement y - x in those coordinates in which it differs less between a transition and the nearest one with the same
action than y does, in the mean square over at most POOL transitions. If there are such coordinates and data are pooled,
each representative has its own steps, those of the samples around it (`kernelrl.stores.own_steps`), and other pairs
count without a limit. A user's own metric may not be linear; with one, steps lead to y.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.agents.dependence import labelled, nearest
from kernelrl.console import track
from kernelrl.planning.interface import Planned, complete_plan
from kernelrl.planning.reading import add_plan, plan_merged
from kernelrl.planning.rehearsal import Rehearsal, better_than
from kernelrl.planning.sides import DEPLOYED
from kernelrl.planning.smoothed import new_smoothed
from kernelrl.stores.log import Log
from kernelrl.stores.own_steps import Displacement, landed, with_slopes
from kernelrl.stores.samples import ACTION, FROM, LOGGED, TO, Settings

__all__ = ["deployed_plan", "displaces"]

Floats = npt.NDArray[np.float64]
PLANS = 3
POOL = 4000  # transitions at most are compared with their nearest ones
LONG = 20_000  # planning from at least so many transitions shows a bar


def displaces(log: Log, scale: Floats, net: Any = None) -> Floats:
    """(d,) for each coordinate 1 if steps resemble each other by their displacement, 0 if by the place they lead to."""
    n = int(log.number[LOGGED])
    some = np.random.default_rng(n).permutation(n)[:POOL]  # the data determine it, so it is the same in all runs
    x, y, actions = log.states[FROM, some] / scale, log.states[TO, some] / scale, log.labels[ACTION, some]
    actions, places = labelled(actions, net)
    near = nearest(np.hstack([x, places]), actions)[:, 0]
    pairs = actions[near] == actions  # else there is no other one with that action
    start, place = (x - x[near])[pairs], (y - y[near])[pairs]
    return np.where(((place - start) ** 2).sum(axis=0) < (place**2).sum(axis=0), 1.0, 0.0)


def deployed_plan(
    settings: Settings, log: Log, new_store: Callable[[int], Any], representatives: int, keeps: Floats,
    action_places: Floats,
) -> Planned:  # fmt: skip
    """The plan whose policy is deployed; `keeps` (places,) is of `displaces`, `action_places` that of `Displacement`.

    `new_store` makes an empty store with room for a number of representatives, of which there are about as many as
    given.
    """
    n, d = int(log.number[LOGGED]), log.states.shape[2]
    moves = Displacement(keeps, np.zeros(len(keeps)), action_places)
    if settings.stationary and keeps[:d].any():
        settings = settings._replace(own_steps=True, others=math.inf)
        moves = with_slopes(settings, log, keeps, action_places)

    def plan_in_order(number: int) -> Planned:
        order = np.random.default_rng((n, number)).permutation(n) if number else np.arange(n)
        store = landed(settings, log, order, new_store, representatives + representatives // 4 + 1, moves)
        plan, store = complete_plan(new_smoothed(settings, store), settings, store)
        planned: Planned = plan_merged(plan, settings, store, DEPLOYED)
        return planned

    rehearsal = Rehearsal(settings, log, moves) if settings.own_steps and not settings.by_step else None
    returns, mean = [], None
    with track("Planning the policy to deploy", PLANS, show=n >= LONG) as tick:
        for number in range(PLANS):
            planned = plan_in_order(number)
            if rehearsal is not None:
                returns.append(rehearsal.returns(planned))
            if mean is None:
                mean = planned
            else:
                add_plan(mean, planned)
            tick()
    assert mean is not None
    mean.plan.Q[:] /= PLANS
    best = None if rehearsal is None else better_than(rehearsal.returns(mean), returns)
    return mean if best is None else plan_in_order(best)
