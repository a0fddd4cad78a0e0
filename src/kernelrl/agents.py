"""The agents that users make: hyper-parameters, their checks, and the algorithm each of them runs."""

from __future__ import annotations

import hashlib
import math
import sys
import warnings
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernelrl.agent import Agent, Floats, load
from kernelrl.algorithms import interface
from kernelrl.algorithms.greedy_kernel_ucbvi import new_greedy_exact
from kernelrl.algorithms.kernel_ucbvi import new_kernel_exact
from kernelrl.algorithms.random_agent import Uniform
from kernelrl.core.bonuses import bonus_object
from kernelrl.core.certified import Certified, bounds_at
from kernelrl.core.deployed import Deployed, deployed_action, new_deployed, plan_deployed
from kernelrl.core.kernels import Kernel, resolve_kernel
from kernelrl.core.metrics import embed, resolve_metric
from kernelrl.core.samples import Settings, cell_widths, embedded_box
from kernelrl.guarantees import bonus_settings, certify, check_bonus, check_certificate, start_gap

__all__ = ["GreedyKernelUCBVI", "KernelUCBVI", "RandomAgent", "load"]

MOST_SAMPLES = 2.0**20
REPLAN = ("episode", "step", "doubling")


class KernelAgent(Agent):
    """What Kernel-UCBVI and Greedy-Kernel-UCBVI share."""

    _shared: ClassVar[tuple[str, ...]] = (
        "bandwidth", "regularization", "horizon", "kernel", "metric", "bonus", "bonus_scale", "lipschitz", "stationary",
        "representatives", "reward_range",
    )  # fmt: skip

    def __init__(
        self, bandwidth: float, regularization: float, horizon: int | None, kernel: str | Kernel, metric: Any,
        bonus: Any, bonus_scale: float, lipschitz: Any, stationary: bool, representatives: Any,
        reward_range: tuple[float, float],
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        self.bandwidth = positive("bandwidth", bandwidth, least=1e-100, most=1e100)
        self.regularization = positive("regularization", regularization, least=1e-100, most=1e100)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.kernel = kernel
        self.metric = resolve_metric(metric)
        self.bonus = bonus
        self.lipschitz = check_lipschitz(lipschitz)
        self.stationary = flag("stationary", stationary)
        self.representatives = representatives
        if representatives is not None:
            raise NotImplementedError(
                "representatives: merging states is not available yet; pass representatives=None to keep every sample"
            )
        resolve_kernel(kernel)
        check_bonus(bonus, kernel, self.metric, self.lipschitz, representatives is None)
        self._deployed: tuple[int, Deployed] | None = None
        self._certified: tuple[int, Certified] | None = None

    def _settings(self, low: Floats, high: Floats, actions: int, horizon: int, replan: int) -> Settings:
        kernel = resolve_kernel(self.kernel)
        space = self.metric.space(low, high)
        # Smaller weights, were there MOST_SAMPLES of them, would not change β in double precision.
        reach = kernel.reach(self.regularization * 2.0**-53 / MOST_SAMPLES) * self.bandwidth
        L = lipschitz_constants(self.lipschitz, horizon)
        return Settings.of(
            horizon=horizon, actions=actions, beta=self.regularization, inverse_sigma2=1.0 / self.bandwidth**2,
            kernel=kernel.code, power=kernel.power, reach=reach, compact=math.isfinite(kernel.support),
            bonus_scale=self.bonus_scale * getattr(bonus_object(self.bonus), "scale", 1.0), stationary=self.stationary,
            interpolate=L is not None, lipschitz=np.zeros(horizon) if L is None else L, replan=replan, space=space,
            **bonus_settings(
                self.bonus, kernel, self.metric, embedded_box(space, low, high), actions, horizon, self.bandwidth,
                self.regularization, self.lipschitz, L, self.stationary, 0.0,
            ),
        )  # fmt: skip

    def _new_exact(
        self, new: Any, low: Floats, high: Floats, actions: int, horizon: int, stream: Any, replan: int
    ) -> Any:
        self._warn_of_axes(low, high)
        settings = self._settings(low, high, actions, horizon, replan)
        self._box = embedded_box(settings.space, low, high)
        self._cells = cell_widths(settings, self.metric.bounded)
        return new(settings, stream, *self._box, *self._cells)

    def _warn_of_axes(self, low: Floats, high: Floats) -> None:
        with np.errstate(over="ignore"):
            widths = high - low
        if getattr(self.metric, "scale", 0) is not None or not (np.isfinite(widths) & (widths > 0)).all():
            return
        if widths.max() > 10 * widths.min():
            remedy = 'krl.metrics.Lp(2, scale="box") divides each by its width'
            if widths.max() > 1e30:
                remedy = "krl.metrics.Lp(2, scale=[…]) divides each by a number of yours"
            warnings.warn(
                "metric: the state space's axes differ more than tenfold in width, and the metric takes them as they "
                f"are; metric={remedy}",
                UserWarning,
                stacklevel=2,
            )

    def counts(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) generalized counts C = β + Σw at `states` (n, d)."""
        return self._read(interface.read_counts, states, step)

    def bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) exploration bonuses B_h at `states` (n, d)."""
        return self._read(interface.read_bonuses, states, step)

    def certificate(self, state: npt.ArrayLike) -> tuple[float, float]:
        """(lower, upper) bounds on V*_1 at `state`, from all data, in mapped units of reward.

        With the bonus `krl.bonuses.Joint(delta)` all bounds of a run, at all states and times, hold at once with
        probability 1-δ, provided that the Lipschitz constants are right and, where data are pooled over the steps, that
        the environment does not change with the step. It is planned when first asked for and kept until data change.
        """
        self._started()
        check_certificate("certificate", self.bonus, self.bonus_scale, self.representatives is None)
        x = self._check_state("state", state)
        certified, u, out = self._certify(), np.zeros(x.size), np.zeros(2)
        embed(self._model.settings.space, x, u)
        bounds_at(certified, u, out)
        # What the agent itself has planned is an upper bound, too.
        return float(out[0]), float(min(out[1], interface.read_values(self._model, x, 0)))

    def _certify(self) -> Certified:
        from rich.console import Console
        from rich.progress import track

        samples = self._model.samples
        number = int(samples.number[0])
        if self._certified is None or self._certified[0] != number:
            quiet = not sys.stderr.isatty() or number * self._steps < 20_000
            certified = certify(
                self._model.settings, samples, self._box, self._cells[0],
                lambda work: track(work, "Planning the certificate", console=Console(stderr=True), disable=quiet),
            )  # fmt: skip
            self._certified = number, certified
        return self._certified[1]

    def _check_episodes(self, more: int) -> None:
        most = getattr(bonus_object(self.bonus), "episodes", None)
        if most is not None and self._episodes + more > most:
            raise ValueError(
                f"episodes: the bonus {self.bonus} holds for {most} episodes, and {self._episodes} have been played; "
                "make the agent with more, or with episodes=None for any number"
            )

    def _check_gap(self, until_gap: Any) -> None:
        positive("until_gap", until_gap)
        check_certificate("until_gap", self.bonus, self.bonus_scale, self.representatives is None)

    def _gap(self) -> float:
        return start_gap(self._certify())

    def _deployed_action(self, state: Floats, step: int) -> int:
        samples = self._model.samples
        number = int(samples.number[0])
        if self._deployed is None or self._deployed[0] != number:
            low, high = self._box
            deployed = new_deployed(self._model.settings, samples, low, high, self._cells[0])
            plan_all(deployed, number)
            self._deployed = number, deployed
        return int(deployed_action(self._deployed[1], state, step))


def plan_all(deployed: Deployed, number: int) -> None:
    """Plan the deployed policy, with a bar on a terminal if that takes long."""
    from rich.console import Console
    from rich.progress import track

    block = 1000
    work = [(h, t) for h in range(deployed.settings.horizon - 1, 0, -1) for t in range(0, number, block)]
    quiet = not sys.stderr.isatty() or number * deployed.settings.horizon < 100_000
    for h, t in track(work, "Planning the policy to deploy", console=Console(stderr=True), disable=quiet):
        plan_deployed(deployed, h, t, min(number, t + block))


class KernelUCBVI(KernelAgent):
    """Kernel-UCBVI: optimistic planning on a kernel estimate of the environment.

    Args:
        bandwidth: σ, in the units of the metric.
        regularization: β, added to every count.
        horizon: number of steps of an episode; None takes the environment's time limit.
        kernel: name or object of `kernelrl.kernels`.
        metric: name, object of `kernelrl.metrics`, or a compiled function of two states.
        bonus: name of the exploration bonus, or an object of `kernelrl.bonuses`.
        bonus_scale: factor of the bonus.
        lipschitz: L_h as a number or an array of length H, or the tuple (λ_r, λ_p); None does not interpolate.
        stationary: pool the data of all steps.
        representatives: merge distance of states; None keeps every sample (exact).
        reward_range: lowest and highest reward of the environment.
        replan: "episode", "step" or "doubling".
    """

    _hyper_parameters = (*KernelAgent._shared, "replan")

    def __init__(
        self, *, bandwidth: float, regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "euclidean", bonus: Any = "simplified",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "default",
        reward_range: tuple[float, float] = (0.0, 1.0), replan: str = "episode",
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, reward_range,
        )  # fmt: skip
        if replan not in REPLAN:
            raise ValueError(f"replan must be one of {', '.join(REPLAN)}, got {replan!r}")
        self.replan = replan

    def _new_model(self, low: Floats, high: Floats, actions: int, horizon: int, stream: Any) -> Any:
        return self._new_exact(new_kernel_exact, low, high, actions, horizon, stream, REPLAN.index(self.replan))


class GreedyKernelUCBVI(KernelAgent):
    """Greedy-Kernel-UCBVI: Kernel-UCBVI with one step of planning at each visited state.

    The arguments are those of `KernelUCBVI` except `replan`. Without representatives the values of states are tied
    together only by `lipschitz`, which is then required.
    """

    _hyper_parameters = KernelAgent._shared

    def __init__(
        self, *, bandwidth: float, regularization: float = 0.01, horizon: int | None = None,
        kernel: str | Kernel = "gaussian", metric: Any = "euclidean", bonus: Any = "simplified",
        bonus_scale: float = 1.0, lipschitz: Any = None, stationary: bool = True, representatives: Any = "default",
        reward_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:  # fmt: skip
        super().__init__(
            bandwidth, regularization, horizon, kernel, metric, bonus, bonus_scale, lipschitz, stationary,
            representatives, reward_range,
        )  # fmt: skip
        if representatives is None and self.lipschitz is None:
            raise ValueError(
                "lipschitz: Greedy-Kernel-UCBVI without representatives and without interpolation can learn nothing, "
                "since no state is visited twice; give lipschitz=… or representatives=…"
            )

    def _new_model(self, low: Floats, high: Floats, actions: int, horizon: int, stream: Any) -> Any:
        return self._new_exact(new_greedy_exact, low, high, actions, horizon, stream, 0)


class RandomAgent(Agent):
    """Takes every action with the same probability.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment.
    """

    _hyper_parameters = ("horizon", "reward_range")

    def __init__(self, *, horizon: int | None = None, reward_range: tuple[float, float] = (0.0, 1.0)) -> None:
        super().__init__(horizon, reward_range)

    def _new_model(self, low: Floats, high: Floats, actions: int, horizon: int, stream: Any) -> Any:
        return Uniform(horizon, actions, stream)

    def _deployed_action(self, state: Floats, step: int) -> int:
        # Deploying changes nothing, so the draw is a function of the seed, the state and the step.
        key = np.append(state, step).tobytes()
        digest = hashlib.blake2b(key, digest_size=8, key=self._seed.to_bytes(8, "little")).digest()
        return int.from_bytes(digest, "little") % self._actions


def positive(name: str, value: Any, zero: bool = False, least: float = 0.0, most: float = math.inf) -> float:
    """`value` as a finite float above 0 (or from 0 on), or an error that names it."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and (number > 0 or (zero and number == 0))):
        raise ValueError(f"{name} must be a finite number {'of at least' if zero else 'above'} 0, got {value!r}")
    if not least <= number <= most:
        raise ValueError(f"{name} must lie between {least} and {most}, got {value!r}")
    return number


def flag(name: str, value: Any) -> bool:
    """`value` as a bool, or an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_lipschitz(lipschitz: Any) -> Any:
    """The argument as None, a float, a tuple of two floats or a list, or an error that names it."""
    if lipschitz is None:
        return None
    form = "a number, an array of L_h of length H, a tuple (λ_r, λ_p), or None; all finite and at least 0"
    try:
        numbers = np.asarray(lipschitz, float)
    except (TypeError, ValueError):
        raise ValueError(f"lipschitz must be {form}; got {lipschitz!r}") from None
    is_pair = isinstance(lipschitz, tuple)
    if numbers.ndim > 1 or (is_pair and numbers.size != 2) or not (np.isfinite(numbers).all() and (numbers >= 0).all()):
        raise ValueError(f"lipschitz must be {form}; got {lipschitz!r}")
    if numbers.ndim == 0:
        return float(numbers)
    return tuple(numbers.tolist()) if is_pair else numbers.tolist()


def lipschitz_constants(lipschitz: Any, H: int) -> Floats | None:
    """L_h (H,): L_{H+1} = 0 and L_h = λ_r + λ_p·L_{h+1} from a pair (λ_r, λ_p) (paper, lemma 1)."""
    if lipschitz is None:
        return None
    if isinstance(lipschitz, tuple):
        L = np.zeros(H)
        following = 0.0
        for h in range(H - 1, -1, -1):
            L[h] = following = lipschitz[0] + lipschitz[1] * following
        if not np.isfinite(L).all():
            raise ValueError(
                f"lipschitz: L_1 = Σ λ_r·λ_p^h overflows for {lipschitz} and {H} steps; give L_h as an array"
            )
        return L
    if isinstance(lipschitz, list):
        if len(lipschitz) != H:
            raise ValueError(
                f"lipschitz: an array of L_h must have length {H}, the horizon; got length {len(lipschitz)}"
            )
        return np.array(lipschitz)
    return np.full(H, lipschitz)
