"""Kernel-UCBVI (paper, algorithms 1 and 2): optimistic planning on a kernel estimate of the environment.

Backwards in h, with V_H = 0,

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)
    Q_h(x, a)  = min_s [Q̃_h(x_s, a_s) + L_h·ρ(x, x_s)]             or, without interpolation, Q̃_h(x, a) itself
    V_h(x)     = min(R_h, max_a Q_h(x, a))

where with several bandwidths at once Q̃_h is the smallest of theirs,
on representative states (`planning/smoothed.py`; paper, section 6) or on all samples (`planning/incremental.py`). The
action maximises Q_h; read-outs are those of the last plan.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.kernel import KernelAgent
from kernelrl.algorithms.kernel_model import HERE, NEXT, Q, absorb, implement_shared_verbs
from kernelrl.episodes.verbs import (
    begin_episode,
    catch_up,
    choose,
    pick,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.geometry.kernels import Kernel
from kernelrl.geometry.masks import drop_forbidden, restricts
from kernelrl.jit.fields import Field, Rows
from kernelrl.planning.between_actions import highest_of_all
from kernelrl.planning.entries import new_incremental
from kernelrl.planning.incremental import Incremental
from kernelrl.planning.interface import (
    PLANS,
    has_doubled,
    q_at,
    renew,
)
from kernelrl.planning.reading import plan_again
from kernelrl.planning.replan import BEGUN, DOUBLING, DUE, EACH_STEP, begins_with_plan, check_replan, next_due
from kernelrl.planning.sides import UPPER
from kernelrl.planning.smoothed import Smoothed, new_smoothed
from kernelrl.stores.interface import add
from kernelrl.stores.log import Log
from kernelrl.stores.merged import Merged
from kernelrl.stores.samples import Samples, Settings, place, places

__all__ = ["KernelUCBVI", "KernelUCBVIModel"]


@implement_shared_verbs
class KernelUCBVIModel(NamedTuple):
    """The state of Kernel-UCBVI."""

    settings: Settings
    store: Merged | Samples
    plan: Smoothed | Incremental
    log: Log
    begun: Annotated[np.ndarray, Rows(Field(""), Field(""))]  # BEGUN: number of episodes; DUE: that of the next plan
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # HERE: an embedded state, NEXT: an embedded next state, Q of each action
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]


@rescaled.implement_plain(KernelUCBVIModel)
def rescale_kernel(model, settings, keep):
    model = model._replace(settings=settings)
    catch_up(model)
    return model


@catch_up.implement_plain(KernelUCBVIModel)
def plan_kernel_now(model):
    plan_again(model.plan, model.settings, model.store)
    model.begun[DUE] = next_due(model.settings, model.begun[BEGUN])


@begin_episode.implement(KernelUCBVIModel)
def begin_kernel(model):
    if begins_with_plan(model.settings, model.begun, model.plan.clock[PLANS]):
        renew(model.plan, model.settings, model.store)


@choose.implement(KernelUCBVIModel)
def choose_kernel(model, state, h):
    x, q = model.scratch[HERE, : places(model.settings, state)], model.scratch[Q, : model.settings.actions]
    place(model.settings, state, h, x)
    q_at(model.plan, model.settings, model.store, UPPER, x, h, q)
    return pick(model.settings.mask, state, q, model.stream)


@absorb.implement(KernelUCBVIModel)
def absorb_kernel(model, state, action, reward, next_state, h, terminated):
    plan, settings, store = model.plan, model.settings, model.store
    n = places(settings, state)
    x, y = model.scratch[HERE, :n], model.scratch[NEXT, :n]
    place(settings, state, h, x)
    place(settings, next_state, h + 1, y)
    add(store, settings, x, action, reward, y, h, terminated)
    replan = settings.replan
    if replan == EACH_STEP or (replan == DOUBLING and has_doubled(plan, settings, store, x, h, action)):
        renew(plan, settings, store)


@read_values.implement(KernelUCBVIModel)
def read_values_kernel(model, state, h):
    settings, q = model.settings, model.scratch[Q, : model.settings.actions]
    read_q(model, state, h, q)
    if restricts(settings.mask):
        drop_forbidden(settings.mask, state, q)
    return highest_of_all(settings.between, UPPER, settings.lipschitz[h], q, np.float64(settings.horizon - h))


class KernelUCBVI(KernelAgent):
    """Kernel-UCBVI: optimistic planning on a kernel estimate of the environment.

    Args:
        bandwidth: σ, in the units of the metric; or a schedule (`krl.schedules`), or any function of the episode;
            or several at once, `krl.schedules.Bandwidths([σ_1, …])`, of whose upper bounds the lowest counts; "auto"
            chooses it from the data that are seen, with the metric's scale and the merge distance.
        regularization: β, added to every count.
        horizon: number of steps of an episode; None takes the environment's time limit.
        kernel: name or object of `krl.kernels`.
        metric: name, object of `krl.metrics`, or a compiled function of two states; "auto" is Euclidean, with
            coordinates scaled by their steps while `bandwidth` is "auto", as they are otherwise.
        bonus: name of the exploration bonus, or an object of `krl.bonuses`; "auto" is Simplified(root=0.05,
            count=0.01), with root=0.02 for a net of related actions and local bandwidths, and there, in episodes of at
            most 15 steps, with a root between 0 and 0.04 that follows the data.
        bonus_scale: factor of the bonus.
        lipschitz: L_h as a number or an array of length H, or the tuple (λ_r, λ_p); with None there is no
            interpolation. "log" is for unknown constants: every L_h is log k times high - low, where k is the number
            of the episode rounded up to the next 2^j - 1.
        stationary: pool the data of all steps.
        representatives: merge distance of states; None keeps every sample (exact); "auto" is chosen with the
            bandwidth, or twice a bandwidth that is given, or twice the narrowest of several.
        max_representatives: the largest number of representatives; further states are merged into the nearest one at
            any distance.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        reading: "nearest" takes values at a state from its representative, "blend" from a mean of those around it;
            "auto" is "blend" where values are not interpolated.
        action_bins: for a continuous action space, the number of actions along each axis of its box, or one number for
            each axis; "auto" chooses fewer where episodes are long.
        action_bandwidth: σ_A, how far what is learnt about one action counts for others, in the units of
            `action_metric`; "auto" chooses it with the bandwidth of states; None: not at all.
        action_metric: the distance between actions, a name or object as for `metric`; "auto" is Euclidean in the box
            scaled to [0, 1], and relates Discrete actions not at all. For these it is one of their numbers.
        replan: "episode", "step", "doubling", or the factor by which the number of episodes grows from plan to plan;
            "auto" is 1.005, which plans before each of the first 400 episodes, or 1.0005, each of the first 4,000, with
            continuous actions in short episodes.
        mask: a compiled function (state, action) → bool, which Discrete actions are allowed in a state; it needs
            representatives, and a metric that is not folded (docs/masks.md).
    """

    hyper_parameters = (*KernelAgent.hyper_parameters, "replan")
    exact_plan, merged_plan = staticmethod(new_incremental), staticmethod(new_smoothed)

    def __init__(
        self, *, bandwidth: Any = "auto", regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "auto", bonus: Any = "auto",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "auto",
        max_representatives: int | None = None, reward_range: tuple[float, float] | str = "auto",
        reading: str = "auto", action_bins: Any = "auto", action_bandwidth: Any = "auto", action_metric: Any = "auto",
        replan: str | float = "auto", mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, max_representatives, reward_range, reading, action_bins, action_bandwidth, action_metric,
            mask,
        )  # fmt: skip
        self.replan = check_replan(replan)

    def model_of(self, settings: Settings, store: Any, plan: Any, log: Any, stream: Any, d: int) -> Any:
        """The algorithm's NamedTuple, for states of `d` coordinates."""
        scratch = np.zeros((3, max(d + 1, settings.actions)))
        return KernelUCBVIModel(settings, store, plan, log, np.zeros(2, np.int64), stream, scratch)
