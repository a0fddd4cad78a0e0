"""Greedy-Kernel-UCBVI (paper, algorithm 3): Kernel-UCBVI with one step of planning at each visited state.

With V_h = R_h = H-h at first, at each visited state x of step h

    Q̃_h(x, a) = r̂(x, a) + P̂V_{h+1}(x, a) + B_h(x, a)             from the data before this transition
    a          = argmax Q̃_h(x, ·)
    Ṽ          = min(R_h, max_a Q̃_h(x, a))
    V_h(·)     ← min(V_h(·), Ṽ + L_h·ρ(·, x))                      a cone

on representative states (`planning/greedy_merged.py`; paper, section 6) or on all samples (`planning/greedy_exact.py`).
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.kernel import KernelAgent
from kernelrl.algorithms.kernel_model import HERE, NEXT, Q, absorb, implement_shared_verbs
from kernelrl.episodes.verbs import choose, pick, read_values, rescaled
from kernelrl.geometry.kernels import Kernel
from kernelrl.geometry.masks import restricts
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field
from kernelrl.planning.greedy import best_of, learn, targets_at, value_at, with_units
from kernelrl.planning.greedy_exact import GreedyExact, new_greedy_exact
from kernelrl.planning.greedy_merged import GreedyMerged, new_greedy_merged
from kernelrl.stores.interface import samples_in
from kernelrl.stores.log import Log
from kernelrl.stores.merged import Merged
from kernelrl.stores.samples import Samples, Settings, place, places

__all__ = ["GreedyKernelUCBVI", "GreedyKernelUCBVIModel"]

BEST, STEP, SEEN, STATE = range(4)  # of `memo`; the state begins at STATE


@implement_shared_verbs
class GreedyKernelUCBVIModel(NamedTuple):
    """The state of Greedy-Kernel-UCBVI."""

    settings: Settings
    store: Merged | Samples
    plan: GreedyMerged | GreedyExact
    log: Log
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # HERE: an embedded state, NEXT: an embedded next state, Q of each action
    scratch: Annotated[np.ndarray, Field("3 places", scratch=True)]
    # BEST: the last max_a Q̃; its STEP, the number of transitions SEEN then, and its state
    memo: Annotated[np.ndarray, Field("any", scratch=True, fill=-1)]


@rescaled.implement_plain(GreedyKernelUCBVIModel)
def rescale_greedy(model, settings, keep):
    model.memo[:] = -1.0
    plan = with_units(model.plan, settings, model.store, model.settings.units, keep)
    return model._replace(settings=settings, plan=plan)


@choose.implement(GreedyKernelUCBVIModel)
def choose_greedy(model, state, h):
    x, memo = model.scratch[HERE, : places(model.settings, state)], model.memo
    q = model.scratch[Q, : model.settings.actions]
    place(model.settings, state, h, x)
    known = targets_at(model.plan, model.settings, model.store, x, h, q)
    memo[BEST] = best_of(model.settings, h, q)
    known = known and not restricts(model.settings.mask)  # `learn` takes the mask of the representative
    memo[STEP] = h if known else -1.0
    memo[SEEN] = samples_in(model.store)
    for j in range(x.size):
        memo[STATE + j] = x[j]
    return pick(model.settings.mask, state, q, model.stream)


@inner
def is_known(model, x, h):
    """Whether `choose` has just computed the targets of this state, as usual."""
    memo = model.memo
    known = memo[STEP] == h and memo[SEEN] == samples_in(model.store)
    for j in range(x.size):
        known = known and memo[STATE + j] == x[j]
    return known


@absorb.implement(GreedyKernelUCBVIModel)
def absorb_greedy(model, state, action, reward, next_state, h, terminated):
    plan, settings, store = model.plan, model.settings, model.store
    n = places(settings, state)
    x, y = model.scratch[HERE, :n], model.scratch[NEXT, :n]
    place(settings, state, h, x)
    place(settings, next_state, h + 1, y)
    known = is_known(model, x, h)
    learn(plan, settings, store, x, action, reward, y, h, terminated, known, model.memo[BEST])


@read_values.implement(GreedyKernelUCBVIModel)
def read_values_greedy(model, state, h):
    x = model.scratch[HERE, : places(model.settings, state)]
    place(model.settings, state, h, x)
    return value_at(model.plan, model.settings, model.store, x, h)


class GreedyKernelUCBVI(KernelAgent):
    """Greedy-Kernel-UCBVI: Kernel-UCBVI with one step of planning at each visited state.

    The arguments are those of `KernelUCBVI` except `replan`. Without representatives only `lipschitz` relates the
    values of different states, so it is then required.
    """

    exact_plan, merged_plan = staticmethod(new_greedy_exact), staticmethod(new_greedy_merged)

    def __init__(
        self, *, bandwidth: Any = "auto", regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "auto", bonus: Any = "auto",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "auto",
        max_representatives: int | None = None, reward_range: tuple[float, float] | str = "auto",
        reading: str = "auto", action_bins: Any = "auto", action_bandwidth: Any = "auto", action_metric: Any = "auto",
        mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, max_representatives, reward_range, reading, action_bins, action_bandwidth, action_metric,
            mask,
        )  # fmt: skip
        if self.lipschitz == "log":
            raise ValueError(
                'lipschitz: "log" stands for constants that grow with the episodes, and the values of '
                "Greedy-Kernel-UCBVI only fall: what too small a constant has lowered would never rise again; use "
                "KernelUCBVI"
            )
        if self.representatives is None and self.lipschitz is None:
            raise ValueError(
                "lipschitz: Greedy-Kernel-UCBVI without representatives and without interpolation can learn nothing, "
                "since no state is visited twice; give lipschitz=… or representatives=…"
            )

    def _note_change(self) -> None:
        """Also forget the targets of the last choice."""
        super()._note_change()
        self.model.memo[STEP] = -1.0

    def needs_step(self) -> bool:
        """Values are lowered at the step of a transition; automatic agents compute them again from all data."""
        return self._automatic is None or super().needs_step()

    def model_of(self, settings: Settings, store: Any, plan: Any, log: Any, stream: Any, d: int) -> Any:
        """The algorithm's NamedTuple, for states of `d` coordinates."""
        scratch, memo = np.zeros((3, max(d + 1, settings.actions))), np.full(STATE + d + 1, -1.0)
        return GreedyKernelUCBVIModel(settings, store, plan, log, stream, scratch, memo)
