"""What Kernel-UCBVI and Greedy-Kernel-UCBVI share: hyper-parameters and their checks, read-outs, what is deployed."""

from __future__ import annotations

import math
import warnings
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.base import Agent, Floats
from kernelrl.agents.checks import (
    as_environment,
    check_lipschitz,
    flag,
    lipschitz_constants,
    positive,
    whole_number,
)
from kernelrl.agents.evaluation import PolicyGap, policy_gap
from kernelrl.agents.guarantees import (
    bonus_settings,
    bounds,
    certify,
    check_bonus,
    check_certificate,
    check_order,
    start_gap,
)
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.kernel_merged import ENDED, PENDING, PLANS, KernelMerged, with_merged
from kernelrl.bonuses.smoothed import FULL, NONE, bonus_object
from kernelrl.console import tracked
from kernelrl.episodes import verbs as interface
from kernelrl.geometry.kernels import Kernel, resolve_kernel
from kernelrl.geometry.metrics import embed, resolve_metric
from kernelrl.geometry.representatives import relist_cones
from kernelrl.planning.certified import Certified
from kernelrl.planning.certified_merged import CertifiedMerged, new_certified_merged
from kernelrl.planning.deployed import Deployed, deployed_action, new_deployed, plan_deployed
from kernelrl.planning.incremental import STILL
from kernelrl.stores.merged import rebandwidth
from kernelrl.stores.samples import TERMINATED, Settings, cell_widths, embedded_box
from kernelrl.theory.bonuses import EPOCHS, epoch_end
from kernelrl.theory.lipschitz import unknown_lipschitz

__all__ = ["REPLAN", "KernelAgent"]

MOST_SAMPLES = 2.0**20
MANY_SAMPLES, ALONE = 1000, 0.8  # with so many samples and so many representatives for each, none is near another
REPLAN = ("episode", "step", "doubling")
MOVED = 0.05  # weights are computed anew when a schedule has moved the bandwidth by more than this fraction


class KernelAgent(Agent, abstract=True):
    """What Kernel-UCBVI and Greedy-Kernel-UCBVI share."""

    hyper_parameters: ClassVar[tuple[str, ...]] = (
        "bandwidth", "regularization", "horizon", "kernel", "metric", "bonus", "bonus_scale", "lipschitz", "stationary",
        "representatives", "max_representatives", "reward_range",
    )  # fmt: skip
    _exact: ClassVar[Any]  # make a model of all samples, and one of representatives
    _merged: ClassVar[Any]
    replan = REPLAN[0]

    def __init__(
        self, bandwidth: Any, regularization: float, horizon: int | None, kernel: str | Kernel, metric: Any,
        bonus: Any, bonus_scale: float, lipschitz: Any, stationary: bool, representatives: Any,
        max_representatives: int | None, reward_range: tuple[float, float] | str,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        is_schedule = callable(bandwidth) and not isinstance(bandwidth, Kernel)  # which is callable, too
        self.bandwidth = bandwidth if is_schedule else check_bandwidth(bandwidth)
        self.regularization = positive("regularization", regularization, least=1e-100, most=1e100)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.kernel = kernel
        self.metric = resolve_metric(metric)
        self.bonus = bonus
        self.lipschitz = check_lipschitz(lipschitz)
        self.stationary = flag("stationary", stationary)
        self.representatives = merge_distance(representatives, self.bandwidth)
        if max_representatives is not None:
            max_representatives = whole_number("max_representatives", max_representatives, 1)
        self.max_representatives = max_representatives
        resolve_kernel(kernel)
        self._check_combination()
        self._deployed: tuple[Any, Any] | None = None
        self._certified: tuple[int, Certified | CertifiedMerged] | None = None
        self._warned_of_limit = self._warned_of_strangers = False

    def _check_combination(self) -> None:
        """Refuse options that need representatives where there are none, or that contradict each other."""
        if self.representatives is None and self.max_representatives is not None:
            raise ValueError("max_representatives is for representative states, but representatives is None")
        check_bonus(self.bonus, self.kernel, self.metric, self.lipschitz)
        if bonus_object(self.bonus).code >= FULL:
            if self.max_representatives is not None:
                raise ValueError(
                    f"max_representatives: the bonus {self.bonus} holds with max_representatives=None only"
                )
            if callable(self.bandwidth):
                raise ValueError(f"bandwidth: the bonus {self.bonus} holds for one bandwidth, not for a schedule")
            if self.reward_range == "auto":
                raise ValueError(
                    f"reward_range: the bonus {self.bonus} holds for a range of rewards that is known beforehand; give "
                    "reward_range=(lowest, highest)"
                )

    def keeps_promises(self) -> bool:
        """Whether the bonus is one of the theory."""
        return bool(bonus_object(self.bonus).code >= FULL)

    # ----------------------------------------------------------------------------------------------------- the model

    def _mapped_lipschitz(self) -> Any:
        """`lipschitz` for rewards mapped to [0, 1]: what is given is in the environment's units."""
        width = self.rewards.width
        if self.lipschitz == "log":
            return unknown_lipschitz(epoch_end(self._log_epoch))
        if isinstance(self.lipschitz, tuple):
            return self.lipschitz[0] / width, self.lipschitz[1]
        if isinstance(self.lipschitz, list):
            return [L / width for L in self.lipschitz]
        return None if self.lipschitz is None else self.lipschitz / width

    def _settings(self, low: Floats, high: Floats, actions: int, horizon: int, sigma: float) -> Settings:
        kernel = resolve_kernel(self.kernel)
        space = self.metric.space(low, high)
        lipschitz = self._mapped_lipschitz()
        L, bonus = lipschitz_constants(lipschitz, horizon), bonus_object(self.bonus)
        return Settings.of(
            horizon=horizon, actions=actions, beta=self.regularization, **self._smoothing(sigma),
            kernel=kernel.code, power=kernel.power, compact=math.isfinite(kernel.support),
            bonus_scale=self.bonus_scale * getattr(bonus, "scale", 1.0), bonus_root=getattr(bonus, "root", 0.0),
            bonus_count=getattr(bonus, "count", 0.0), stationary=self.stationary,
            interpolate=L is not None, lipschitz=np.zeros(horizon) if L is None else L,
            replan=REPLAN.index(self.replan), units=self.rewards.units, space=space,
            **bonus_settings(
                self.bonus, kernel, self.metric, self.rewards.width, embedded_box(space, low, high), actions, horizon,
                sigma, self.regularization, lipschitz, L, self.stationary, self.representatives or 0.0,
            ),
        )  # fmt: skip

    def _smoothing(self, sigma: float) -> dict[str, float]:
        """What the settings hold of the bandwidth."""
        # Smaller weights, were there MOST_SAMPLES of them, would not change β in double precision.
        reach = resolve_kernel(self.kernel).reach(self.regularization * 2.0**-53 / MOST_SAMPLES) * sigma
        return {"inverse_sigma2": 1.0 / sigma**2, "reach": reach}

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """All samples, or representatives, before any data."""
        low, high = spaces.low, spaces.high
        self._warn_of_axes(low, high)
        self.metric.check(low, high)
        self._sigma = check_bandwidth(self.stored["sigma"]) if "sigma" in self.stored else self._bandwidth_of(0)
        self._log_epoch = whole_number("log_epoch", self.stored.get("log_epoch", 0), 0)
        if self._log_epoch >= EPOCHS:
            raise ValueError(f"log_epoch must be below {EPOCHS}, got {self._log_epoch}")
        settings = self._settings(low, high, spaces.actions, spaces.horizon, self._sigma)
        self._box = embedded_box(settings.space, low, high)
        if self.representatives is None:
            self._widths = self._stored_widths() or self._cells(settings)
            return self._exact(settings, stream, *self._box, *self._widths)
        cone_reach = reach_of_cones(settings)
        limit = self.max_representatives or np.iinfo(np.int64).max
        return self._merged(settings, stream, *self._box, self.representatives, limit, cone_reach, self.metric.bounded)

    def _cells(self, settings: Settings) -> tuple[float, float]:
        """Widths of cells for sums of weights and for cones."""
        weights, cones = cell_widths(settings, self.metric.bounded)
        return weights, cones

    def _stored_widths(self) -> tuple[float, float] | None:
        """The widths that samples were arranged with when the agent was saved, if it comes out of a file."""
        if "widths" not in self.stored:
            return None
        widths = self.stored["widths"]
        if not (isinstance(widths, list) and len(widths) == 2 and all(isinstance(width, str) for width in widths)):
            raise ValueError(f"started: widths must be two numbers as text, got {widths!r}")
        weights, cones = (float(width) for width in widths)
        if not (weights > 0.0 and cones > 0.0):
            raise ValueError(f"started: widths must be above 0, got {widths!r}")
        return weights, cones

    def to_store(self) -> dict[str, Any]:
        """The bandwidth in use, and how samples are arranged."""
        kept: dict[str, Any] = {"sigma": self._sigma, "log_epoch": self._log_epoch}
        return kept if self.representatives is not None else kept | {"widths": [str(width) for width in self._widths]}

    def _bandwidth_of(self, k: int) -> float:
        """σ_k."""
        return check_bandwidth(self.bandwidth(k)) if callable(self.bandwidth) else float(self.bandwidth)

    def before_episodes(self, count: int) -> int:
        """Take the bandwidth and the Lipschitz constant of the next episode into use."""
        self._warn_of_limit()
        self._warn_of_strangers()
        if self.lipschitz == "log":
            count = min(count, self._renew_log())
        if not callable(self.bandwidth):
            return count
        k = self.episodes
        sigma = self._bandwidth_of(k)
        if abs(sigma / self._sigma - 1.0) > MOVED:
            self._sigma = sigma
            settings = self.model.settings._replace(**self._smoothing(sigma))
            self.model = self._with_settings(self.model, settings)
        for j in range(1, count):
            if abs(self._bandwidth_of(k + j) / self._sigma - 1.0) > MOVED:
                return j
        return count

    def _renew_log(self) -> int:
        """Take the Lipschitz constant of this episode into use; return for how many episodes it holds."""
        k = self.episodes + 1
        epoch = k.bit_length() - 1
        if epoch != self._log_epoch:
            self._log_epoch = epoch
            before = self.model.settings
            settings = self._settings(
                self.spaces.low, self.spaces.high, self.spaces.actions, self.spaces.horizon, self._sigma
            )
            self.model = self._with_settings(self.model, settings._replace(progress=before.progress))
        return epoch_end(epoch) - self.episodes

    def _with_settings(self, model: Any, settings: Settings) -> Any:
        """The model with all its data and another bandwidth or other Lipschitz constants."""
        if self.representatives is None:
            return self._exact_with_settings(model, settings)
        merged = model.merged
        if settings.inverse_sigma2 != model.settings.inverse_sigma2:
            merged = rebandwidth(settings, merged, settings.horizon)
        if settings.interpolate and not np.array_equal(settings.lipschitz, model.settings.lipschitz):
            merged = merged._replace(reps=relist_cones(merged.reps, settings, reach_of_cones(settings)))
        model = model._replace(settings=settings, merged=merged)
        if isinstance(model, KernelMerged):
            model.plans[PLANS] = 0  # so that the next episode begins with a plan
        while not interface.has_room(model):
            model = interface.grow(model)
        return model

    def _exact_with_settings(self, model: Any, settings: Settings) -> Any:
        raise NotImplementedError

    def rescaled(self, keep: float) -> Any:
        """The model in the units of the range in force; Lipschitz constants are in them, too."""
        settings = self.model.settings
        L = lipschitz_constants(self._mapped_lipschitz(), settings.horizon)
        settings = settings._replace(units=self.rewards.units, lipschitz=settings.lipschitz if L is None else L)
        if self.representatives is not None:
            return interface.rescaled(self._with_settings(self.model, settings), settings, keep)
        return self._exact_rescaled(self.model, settings, keep)

    def _exact_rescaled(self, model: Any, settings: Settings, keep: float) -> Any:
        raise NotImplementedError

    def capture(self) -> dict[str, Any]:
        """With the bandwidth in use."""
        names = ("_sigma", "_log_epoch", *(("_widths",) if self.representatives is None else ()))
        return super().capture() | {name: getattr(self, name) for name in names}

    def reinstate(self, captured: dict[str, Any]) -> None:
        """With nothing planned."""
        super().reinstate(captured)
        self._deployed = self._certified = None

    # ------------------------------------------------------------------------------------------------------- warnings

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

    def _warn_of_strangers(self) -> None:
        """Say once that hardly any two states are near each other, so that nothing can be learnt."""
        if self.representatives is None or self._warned_of_strangers:
            return
        number, samples = int(self.model.merged.reps.number[0]), self._samples_merged()
        if samples < MANY_SAMPLES or number < ALONE * samples:
            return
        self._warned_of_strangers = True
        warnings.warn(
            f"bandwidth: {samples} samples have made {number} representative states, so hardly any state is within "
            f"representatives={self.representatives:g} of another, and nothing is learnt from one about the next; make "
            "bandwidth and representatives as large as a few steps of the environment, or scale the metric",
            UserWarning,
            stacklevel=3,
        )

    def _warn_of_limit(self) -> None:
        """Say once that states are being merged from farther away than the merge distance."""
        if self.max_representatives is None or self._warned_of_limit or not self.model.merged.reps.number[1]:
            return
        self._warned_of_limit = True
        warnings.warn(
            f"max_representatives: there are {self.max_representatives} representatives, so further states are merged "
            "into the nearest however far; a larger merge distance or limit avoids that",
            UserWarning,
            stacklevel=3,
        )

    # ---------------------------------------------------------------------------------------------------- reading out

    def counts(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) generalized counts C = β + Σw at `states` (n, d)."""
        return self.read(interface.READ_COUNTS, states, step)

    def bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) exploration bonuses B_h at `states` (n, d)."""
        bonuses: Floats = self.read(interface.READ_BONUSES, states, step) * self.rewards.width
        return bonuses

    @property
    def number_of_representatives(self) -> int:
        """How many representative states there are; an agent that keeps every sample has none."""
        return 0 if self.representatives is None else int(self.check_started().merged.reps.number[0])

    def certificate(self, state: npt.ArrayLike) -> tuple[float, float]:
        """(lower, upper) bounds on V*_1 at `state`, from all data.

        They bound the value of the best policy there is. They do not bound the value of the policy that this agent
        deploys, which may be below `lower`: that one is measured by `evaluate`, and how far it is from the best one is
        bounded by `policy_gap`.

        With the bonus `krl.bonuses.Joint(delta)` all bounds of a run, at all states and times, hold at once with
        probability 1-δ, provided that the Lipschitz constants are right and, where data are pooled over the steps, that
        the environment does not change with the step. (`Full` is as good, but so large that the bounds are 0 and H.)
        It is planned when first asked for and kept until data change.
        """
        self.check_started()
        check_certificate("certificate", self.bonus, self.bonus_scale, self.lipschitz)
        x = self.spaces.check_state("state", state)
        certified, u = self._certify(), np.zeros(x.size)
        embed(self.model.settings.space, x, u)
        lower, upper = bounds(certified, u)
        # What the agent itself has planned is an upper bound, too, up to changes that it has not passed on.
        planned = interface.read_values(self.model, x, 0) + 2.0 * self.spaces.horizon * STILL
        upper = float(min(upper, planned))
        check_order(lower, upper, 2.0 * self.spaces.horizon * STILL)
        return self.in_own_units(lower, 0), self.in_own_units(upper, 0)

    def policy_gap(
        self, env: gym.Env[Any, Any] | str, episodes: int = 1000, delta: float = 0.05, seed: int = 0
    ) -> PolicyGap:
        """An upper bound on the mean over start states of V*_1(x_1) - V^π(x_1), π being the policy to deploy.

        It plays `episodes` episodes of π in `env`, which teach the agent nothing, and compares each episode's return G
        with the certified upper bound V↑_1 at its start (see `certificate`). Two things must hold:

        - the certificate: V↑_1 ≥ V*_1 everywhere. It does with probability 1-δ', where δ' is the `delta` of the
          agent's bonus and the probability is that of learning, under the assumptions named at `certificate`;
        - the sampling: whatever was learnt, with probability 1-`delta` over the episodes played here the mean of
          V↑_1(x_1) - V^π(x_1) lies in `interval`, half of `delta` being allowed for each side.

        So `bound` holds with probability at least 1-δ'-`delta`/2, and all that is returned with at least 1-δ'-`delta`.
        The environment must draw its episodes independently. This is for one call: for the bounds of m calls to hold at
        once, give each `delta`/m.
        """
        episodes, seed = whole_number("episodes", episodes, 1), whole_number("seed", seed, 0)
        self.check_started()
        check_certificate("policy_gap", self.bonus, self.bonus_scale, self.lipschitz)
        return policy_gap(self, as_environment(env), episodes, seed, delta)

    def _certify(self) -> Certified | CertifiedMerged:
        if isinstance(self.lipschitz, tuple) and self._has_terminated():
            raise ValueError(
                "lipschitz: episodes have terminated, so Q* may jump where they end and L_h does not follow "
                f"from (λ_r, λ_p) = {self.lipschitz}; make the agent with L_h themselves, as a number or an array"
            )
        if self.representatives is not None:
            number = self._samples_merged()
            if self._certified is None or self._certified[0] != number:
                self._certified = number, new_certified_merged(self._copy_merged(self.model.settings))
            return self._certified[1]
        samples = self.model.samples
        number = int(samples.number[0])
        if self._certified is None or self._certified[0] != number:
            quiet = number * self.spaces.horizon < 20_000
            certified = certify(
                self.model.settings, samples, self._box, self._cells(self.model.settings)[0],
                lambda work: tracked(work, "Planning the certificate", quiet),
            )  # fmt: skip
            self._certified = number, certified
        return self._certified[1]

    def check_episodes(self, more: int) -> None:
        """Refuse more episodes than the bonus holds for."""
        most = getattr(bonus_object(self.bonus), "episodes", None)
        if most is not None and self.episodes + more > most:
            raise ValueError(
                f"episodes: the bonus {self.bonus} holds for {most} episodes, and {self.episodes} have been played; "
                "make the agent with more, or with episodes=None for any number"
            )

    def check_gap(self, until_gap: Any) -> None:
        """Refuse `until_gap` where there are no certificates."""
        positive("until_gap", until_gap)
        check_certificate("until_gap", self.bonus, self.bonus_scale, self.lipschitz)

    def gap(self) -> float:
        """The largest gap between certified bounds at recent start states, in the environment's units."""
        gap: float = start_gap(self._certify(), 2.0 * self.spaces.horizon * STILL) * self.rewards.width
        return gap

    def _has_terminated(self) -> bool:
        """Whether any sample ended its episode by a termination."""
        if self.representatives is None:
            samples = self.model.samples
            return bool(samples.labels[TERMINATED, : samples.number[0]].any())
        waiting = isinstance(self.model, KernelMerged) and self.model.pending[ENDED, : self.model.plans[PENDING]].any()
        return bool(waiting or self.model.merged.ended.any())

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) actions of the best policy of the estimated environment, without bonus and interpolation."""
        if self.representatives is None:
            return np.array([self._deployed_exact(x, step) for x in states], np.int64)
        q = self.read_model(self._deployed_merged(), interface.READ_Q, states, step)
        return np.asarray(q.argmax(axis=1), np.int64)

    def _deployed_exact(self, state: Floats, step: int) -> int:
        samples = self.model.samples
        version = int(samples.number[0]), self._sigma
        if self._deployed is None or self._deployed[0] != version:
            low, high = self._box
            deployed = new_deployed(self.model.settings, samples, low, high, self._cells(self.model.settings)[0])
            plan_all(deployed, version[0])
            self._deployed = version, deployed
        return int(deployed_action(self._deployed[1], state, step))

    def _deployed_merged(self) -> KernelMerged:
        """Kernel-UCBVI's model planned on all data without bonus and without interpolation."""
        version = self._samples_merged(), self._sigma
        if self._deployed is None or self._deployed[0] != version:
            planned = self._copy_merged(self.model.settings._replace(bonus=NONE, interpolate=False))
            planned.plans[0] = 0  # so that this plans, whatever `replan` says
            interface.begin_episode(planned)
            self._deployed = version, planned
        deployed: KernelMerged = self._deployed[1]
        return deployed

    def _samples_merged(self) -> int:
        """How many samples there are on representative states, pending ones included."""
        model = self.model
        return int(model.merged.clock[0]) + (int(model.plans[-1]) if isinstance(model, KernelMerged) else 0)

    def _copy_merged(self, settings: Settings) -> KernelMerged:
        """Kernel-UCBVI's model with copies of all data, to be planned anew."""
        model = self.model
        settings = settings._replace(progress=settings.progress.copy())
        if isinstance(model, KernelMerged):
            copy: KernelMerged = storage.copied(model)._replace(settings=settings)
        else:
            copy = with_merged(settings, model.stream, storage.copied(model.merged))
        return copy


def check_bandwidth(bandwidth: Any) -> float:
    """A bandwidth as a float, or an error that names it."""
    return positive("bandwidth", bandwidth, least=1e-100, most=1e100)


def merge_distance(representatives: Any, bandwidth: Any) -> float | None:
    """The merge distance: twice the bandwidth, or twice a schedule's minimum, where it is left to us."""
    if representatives is None:
        return None
    if representatives != "default":
        return positive("representatives", representatives, zero=True, most=1e100)
    if not callable(bandwidth):
        return 2.0 * float(bandwidth)
    if not hasattr(bandwidth, "minimum"):
        raise ValueError(
            "representatives: the default is twice the smallest bandwidth, which a function does not tell; give the "
            "merge distance, or None to keep every sample"
        )
    return 2.0 * float(bandwidth.minimum)


def reach_of_cones(settings: Settings) -> float:
    """How far a cone can reach below the cap; 0 where values are not interpolated."""
    if not settings.interpolate:
        return 0.0
    with np.errstate(divide="ignore"):
        return float((np.arange(settings.horizon, 0, -1.0) / settings.lipschitz).max())


def plan_all(deployed: Deployed, number: int) -> None:
    """Plan the deployed policy, with a bar on a terminal if that takes long."""
    block = 1000
    work = [(h, t) for h in range(deployed.settings.horizon - 1, 0, -1) for t in range(0, number, block)]
    quiet = number * deployed.settings.horizon < 100_000
    for h, t in tracked(work, "Planning the policy to deploy", quiet):
        plan_deployed(deployed, h, t, min(number, t + block))
