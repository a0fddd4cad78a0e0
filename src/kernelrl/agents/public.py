"""The agents that users make: hyper-parameters, and the algorithm each of them runs."""

from __future__ import annotations

from typing import Any

from kernelrl.agents.checks import one_of
from kernelrl.agents.kernel import REPLAN, KernelAgent
from kernelrl.algorithms.greedy_kernel_ucbvi import new_greedy_exact
from kernelrl.algorithms.greedy_merged import new_greedy_merged
from kernelrl.algorithms.kernel_merged import new_kernel_merged
from kernelrl.algorithms.kernel_ucbvi import new_kernel_exact
from kernelrl.episodes import verbs as interface
from kernelrl.geometry.kernels import Kernel
from kernelrl.stores.samples import Settings

__all__ = ["GreedyKernelUCBVI", "KernelUCBVI"]


class KernelUCBVI(KernelAgent):
    """Kernel-UCBVI: optimistic planning on a kernel estimate of the environment.

    Args:
        bandwidth: σ, in the units of the metric; or a schedule (`krl.schedules`), or any function of the episode.
        regularization: β, added to every count.
        horizon: number of steps of an episode; None takes the environment's time limit.
        kernel: name or object of `kernelrl.kernels`.
        metric: name, object of `kernelrl.metrics`, or a compiled function of two states.
        bonus: name of the exploration bonus, or an object of `kernelrl.bonuses`.
        bonus_scale: factor of the bonus.
        lipschitz: L_h as a number or an array of length H, or the tuple (λ_r, λ_p); None does not interpolate. "log"
            is for constants that are not known: log k times high - low in place of every L_h, k being the number of
            the episode rounded up to the next 2^j - 1.
        stationary: pool the data of all steps.
        representatives: merge distance of states, twice the bandwidth by default; None keeps every sample (exact).
        max_representatives: when there are so many, further states are merged into the nearest however far.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        replan: "episode", "step" or "doubling".
    """

    hyper_parameters = (*KernelAgent.hyper_parameters, "replan")
    _exact, _merged = staticmethod(new_kernel_exact), staticmethod(new_kernel_merged)

    def __init__(
        self, *, bandwidth: Any, regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "euclidean", bonus: Any = "simplified",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "default",
        max_representatives: int | None = None, reward_range: tuple[float, float] | str = "auto",
        replan: str = "episode",
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, max_representatives, reward_range,
        )  # fmt: skip
        self.replan = one_of("replan", replan, REPLAN)

    def _exact_with_settings(self, model: Any, settings: Settings) -> Any:
        # C and T of all pairs hang on the weights: the next plan takes in all samples again.
        (low, high), self._widths = self._box, self._cells(settings)
        weights, cones = self._widths
        anew = new_kernel_exact(settings, model.stream, low, high, weights, cones)
        anew = anew._replace(samples=model.samples)  # and no plan, so that the next episode begins with one
        while not interface.has_room(anew):
            anew = interface.grow(anew)
        return anew

    def _exact_rescaled(self, model: Any, settings: Settings, keep: float) -> Any:
        anew = self._exact_with_settings(model, settings)
        interface.begin_episode(anew)
        return anew


class GreedyKernelUCBVI(KernelAgent):
    """Greedy-Kernel-UCBVI: Kernel-UCBVI with one step of planning at each visited state.

    The arguments are those of `KernelUCBVI` except `replan`. Without representatives the values of states are tied
    together only by `lipschitz`, which is then required.
    """

    _exact, _merged = staticmethod(new_greedy_exact), staticmethod(new_greedy_merged)

    def __init__(
        self, *, bandwidth: Any, regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "euclidean", bonus: Any = "simplified",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "default",
        max_representatives: int | None = None, reward_range: tuple[float, float] | str = "auto",
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, max_representatives, reward_range,
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

    def _exact_with_settings(self, model: Any, settings: Settings) -> Any:
        return model._replace(settings=settings)

    def _exact_rescaled(self, model: Any, settings: Settings, keep: float) -> Any:
        return interface.rescaled(model, settings, keep)
