"""What Kernel-UCBVI and Greedy-Kernel-UCBVI share: hyper-parameters and their checks, read-outs, deployed policy."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, ClassVar, TypeGuard

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.action_kernel import ActionKernel, narrowed
from kernelrl.agents.action_net import check_bins
from kernelrl.agents.advice import Advice, warn_of_axes
from kernelrl.agents.automatic import Automatic, Smoothing, next_renewal
from kernelrl.agents.base import Floats
from kernelrl.agents.certified import CertifiedAgent
from kernelrl.agents.checks import (
    check_lipschitz,
    flag,
    is_auto,
    lipschitz_constants,
    one_of,
    positive,
    whole_number,
)
from kernelrl.agents.dependence import NOT
from kernelrl.agents.deploying import deployed_plan, displaces
from kernelrl.agents.evidence import blended_bonuses, evidence_of
from kernelrl.agents.guarantees import (
    TheoryProblem,
    check_bonus,
    check_several,
    defect_of,
    norm_of,
)
from kernelrl.agents.keeping import AtRepresentatives, EverySample, with_room
from kernelrl.agents.parts import check_bonus_form, check_kernel_form, check_space
from kernelrl.agents.roughness import COUNT, Exploring, exploring, some_rows
from kernelrl.agents.rows import Rows
from kernelrl.agents.schedules import Bandwidths, Local
from kernelrl.agents.spaces import Spaces
from kernelrl.bonuses.interface import before_data, with_data_of, with_ranges
from kernelrl.bonuses.smoothed import Bonus, Joint, Simplified, bonus_object
from kernelrl.episodes import verbs
from kernelrl.geometry.actions import Apart
from kernelrl.geometry.kernels import Kernel, resolve_kernel
from kernelrl.geometry.masks import check_function
from kernelrl.geometry.metrics import Custom, Lp, resolve_metric
from kernelrl.geometry.representatives import CUT
from kernelrl.jit.handles import hand_over, model_of
from kernelrl.planning.interface import Planned
from kernelrl.planning.reading import DeployedPlan, read_q
from kernelrl.planning.replan import EACH_EPISODE, REPLAN, replan_code
from kernelrl.planning.sides import DEPLOYED
from kernelrl.planning.together import Box
from kernelrl.portable.forms import Form
from kernelrl.portable.plans import form_of_plan
from kernelrl.stores.interface import samples_in
from kernelrl.stores.landing import relanded, with_representatives
from kernelrl.stores.log import new_log
from kernelrl.stores.samples import BLEND, NEAREST, TERMINATED, TO, Settings, embedded_box, placed_box
from kernelrl.theory.bonuses import EPOCHS, epoch_end
from kernelrl.theory.lipschitz import unknown_lipschitz

__all__ = ["KernelAgent"]

MOST_SAMPLES = 2.0**20  # weights that would not change β in double precision, even this many of them, are left out
READING = ("nearest", "blend")
AUTOMATIC = Simplified(root=0.05, count=COUNT)
Targets = tuple[npt.NDArray[np.int64], Floats]
MOVED = 0.05  # weights are computed again when a schedule has changed the bandwidth by more than this fraction


class KernelAgent(CertifiedAgent, abstract=True):
    """What Kernel-UCBVI and Greedy-Kernel-UCBVI share."""

    hyper_parameters: ClassVar[tuple[str, ...]] = (
        "bandwidth", "regularization", "horizon", "kernel", "metric", "bonus", "bonus_scale", "lipschitz", "stationary",
        "representatives", "max_representatives", "reward_range", "reading", "action_bins", "action_bandwidth",
        "action_metric", "mask",
    )  # fmt: skip
    exact_plan: ClassVar[Any]  # makes a plan (see `kernelrl.planning.interface`) for all samples
    merged_plan: ClassVar[Any]  # makes a plan for representative states
    replan: str | float = REPLAN[0]
    plan_tolerance = 1e-6  # on representatives: how far values in [0, H] may be from those of a full plan

    def __init__(
        self, bandwidth: Any, regularization: float, horizon: int | None, kernel: str | Kernel, metric: Any,
        bonus: Any, bonus_scale: float, lipschitz: Any, stationary: bool, representatives: Any,
        max_representatives: int | None, reward_range: tuple[float, float] | str, reading: str, action_bins: Any,
        action_bandwidth: Any, action_metric: Any, mask: Any,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range)
        self.mask = check_function(mask)

        self.action_bins = check_bins(action_bins)
        self._actions = ActionKernel(action_bandwidth, action_metric, kernel)
        self.action_bandwidth, self.action_metric = self._actions.bandwidth, self._actions.metric
        is_schedule = callable(bandwidth) and not isinstance(bandwidth, Kernel)
        is_object = is_auto(bandwidth) or is_schedule or isinstance(bandwidth, Local | Bandwidths)
        self.bandwidth = bandwidth if is_object else check_given_bandwidth(bandwidth)
        self.regularization = positive("regularization", regularization, least=1e-100, most=1e100)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.kernel = kernel
        self.metric = metric if is_auto(metric) else resolve_metric(metric)
        self.bonus = bonus
        self.lipschitz = check_lipschitz(lipschitz)
        self.stationary = flag("stationary", stationary)
        self.representatives = check_merge_distance(representatives, self.bandwidth)
        if max_representatives is not None:
            max_representatives = whole_number("max_representatives", max_representatives, 1)
        self.max_representatives = max_representatives
        self.reading = one_of("reading", reading, ("auto", *READING))
        resolve_kernel(kernel)
        self._given_bonus: Bonus | None = None if is_auto(bonus) else bonus_object(bonus)
        self._automatic: Automatic | None = None
        self._limited = False  # whether the samples of other pairs count only so much
        self._actions.check(self.bonus_in_use)
        self._check_combination()
        kind = EverySample if self.representatives is None else AtRepresentatives
        new_plan = self.exact_plan if self.representatives is None else self.merged_plan
        self._keeping: EverySample | AtRepresentatives = kind(new_plan, number_of_moments(self.bonus_in_use))
        if is_auto(self.bandwidth):
            given = None if is_auto(self.metric) else self.metric
            merge = None if isinstance(self.representatives, str) else self.representatives
            self._automatic = Automatic(given, merge, max_representatives)
        self._deployed: tuple[Any, Any] | None = None  # for which data, and the plan's handle
        self._changes = 0  # of settings, so far
        self._advice = Advice()

    def _check_mask(self) -> None:
        """Refuse a mask where plans do not know of masks."""
        if self.mask is None:
            return
        if self.representatives is None:
            raise ValueError(
                "mask: an agent that keeps every sample (representatives=None) does not plan with a mask; give "
                "representatives=0, which merges equal states only and has the same values"
            )
        if self.bonus_in_use.promises and self.representatives != 0:
            raise ValueError(
                f"mask: with states that are merged the bonus {self.bonus} does not hold, since they may allow other "
                "actions; give representatives=0"
            )
        if not is_auto(self.metric) and not isinstance(self.metric, Lp | Custom):
            raise ValueError(
                f"mask: it is a function of raw states, and {self.metric!r} keeps others; give a metric krl.metrics.Lp "
                "or krl.metrics.Custom"
            )

    def _check_combination(self) -> None:
        """Reject options that need representatives where there are none, or that contradict each other."""
        self._check_representatives()
        self._check_mask()
        if self.reading == "blend" and self.lipschitz is not None:
            raise ValueError(
                "reading: with lipschitz=… values at a state are interpolated from the targets around it; leave out "
                'reading, or lipschitz for reading="blend"'
            )
        check_bonus(self.bonus_in_use, self.kernel, Lp() if is_auto(self.metric) else self.metric, self.lipschitz)
        if isinstance(self.bandwidth, Bandwidths):
            check_several(self.bonus_in_use, self.bandwidth)
        if self.bonus_in_use.promises:
            if is_auto(self.bandwidth) or isinstance(self.bandwidth, Local):
                raise ValueError(
                    f"bandwidth: the bonus {self.bonus} holds for bandwidths that do not depend on the data; give a "
                    "number, or several as krl.schedules.Bandwidths([…])"
                )
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

    def _check_representatives(self) -> None:
        """Reject options that are for representative states where there are none."""
        if self.representatives is not None:
            return
        if self.max_representatives is not None:
            raise ValueError("max_representatives is for representative states, but representatives is None")
        if self.reading == "blend":
            raise ValueError('reading: "blend" is between representative states, but representatives is None')
        if is_auto(self.bandwidth):
            raise ValueError(
                "bandwidth: an agent that keeps every sample (representatives=None) needs one; give a number"
            )
        if isinstance(self.bandwidth, Local):
            raise ValueError(
                f"bandwidth: {self.bandwidth} gives representative states their own bandwidths, but representatives is "
                "None; give a number, or krl.schedules.Power"
            )
        if isinstance(self.bandwidth, Bandwidths):
            raise ValueError(
                f"bandwidth: {self.bandwidth} is for representative states, but representatives is None; give "
                "representatives=0, which merges equal states only and has the same values, or one bandwidth"
            )

    def keeps_promises(self) -> bool:
        """Whether the bonus has a guarantee."""
        return bool(self.bonus_in_use.promises)

    def model_of(self, settings: Settings, store: Any, plan: Any, log: Any, stream: Any, d: int) -> Any:
        """The algorithm's NamedTuple, for states of `d` coordinates."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------------------------------- the model

    def _mapped_lipschitz(self) -> Any:
        """`lipschitz` for rewards mapped to [0, 1]; users give it in the environment's units."""
        width = self.rewards.width
        if self.lipschitz == "log":
            return unknown_lipschitz(epoch_end(self._log_epoch))
        if isinstance(self.lipschitz, tuple):
            return self.lipschitz[0] / width, self.lipschitz[1]
        if isinstance(self.lipschitz, list):
            return [L / width for L in self.lipschitz]
        return None if self.lipschitz is None else self.lipschitz / width

    def smoothing(self, d: int) -> Smoothing:
        """The metric, bandwidths and merge distance in use, for states of `d` coordinates."""
        if self._automatic is not None:
            return self._automatic.smoothing(d)
        bandwidth, metric = self.bandwidth, Lp() if is_auto(self.metric) else self.metric
        merge = merge_distance(self.representatives, bandwidth)
        if merge is None and isinstance(self._keeping, AtRepresentatives):
            merge = 0.0
        several = bandwidth.sigmas if isinstance(bandwidth, Bandwidths) else ()
        if isinstance(bandwidth, Local):
            start, least, by_state = bandwidth.start, bandwidth.minimum, bandwidth.by == "state"
            exponent, local = bandwidth.exponent, True
        else:
            start = several[0] if several else self._sigma
            least, exponent, by_state, local = start, 0.0, False, False
        return Smoothing(
            metric, start, least, exponent, by_state, local, merge, self.max_representatives, several=several
        )

    def _bonus_problem(self, spaces: Spaces) -> TheoryProblem:
        """What the bonus is for."""
        low, high, horizon, smoothing = spaces.low, spaces.high, spaces.horizon, self.smoothing(spaces.low.size)
        lipschitz, metric = self._mapped_lipschitz(), smoothing.metric
        L = lipschitz_constants(lipschitz, horizon)
        return TheoryProblem(
            horizon, spaces.actions, self.regularization, smoothing.start, self.stationary,
            np.zeros(horizon) if L is None else L, lipschitz if isinstance(lipschitz, tuple) else None,
            smoothing.merge or 0.0, resolve_kernel(self.kernel), metric, self.rewards.width,
            embedded_box(metric.space(low, high), low, high), smoothing.several,
        )  # fmt: skip

    def _settings(self, spaces: Spaces) -> Settings:
        low, high, actions, horizon = spaces.low, spaces.high, spaces.actions, spaces.horizon
        smoothing, kernel, lipschitz = self.smoothing(low.size), resolve_kernel(self.kernel), self._mapped_lipschitz()
        metric, sigma = smoothing.metric, smoothing.start
        space, L = metric.space(low, high), lipschitz_constants(lipschitz, horizon)
        constants, bonus = np.zeros(horizon) if L is None else L, self.bonus_in_use
        form, made = kernel.compiled(), bonus.compiled(self.bonus_scale, self._bonus_problem(spaces))
        if self.model is None:
            check_kernel_form(kernel, form)
            check_bonus_form(bonus, made, self.regularization, horizon)
        reach = CUT if smoothing.local else kernel.reach(self.regularization * 2.0**-53 / MOST_SAMPLES)
        blends = self.reading != "nearest" and L is None and bool(smoothing.merge)
        replan, growth = replan_code(self.replan, self._is_short(spaces))
        return Settings.of(
            horizon=horizon, actions=actions, beta=self.regularization, inverse_sigma2=1.0 / sigma**2,
            reach=reach * sigma, stationary=self.stationary, interpolate=L is not None, lipschitz=constants,
            replan=replan, growth=growth, ready=smoothing.ready, logs=self._automatic is not None,
            step_scale=smoothing.step_scale, by_step=smoothing.by_step, own_steps=False,
            reading=BLEND if blends else NEAREST, least_sigma=smoothing.least, exponent=smoothing.exponent,
            by_state=smoothing.by_state, promises=bonus.promises,
            tolerance=self.plan_tolerance if bonus.changes_slowly(self.bonus_scale) else 0.0,
            others=self._exploring().others if self._limited and not smoothing.by_step else np.inf,
            action_weights=self._actions.weights(spaces, self._chosen_for_actions(), bonus.needs_moments),
            between=Apart() if L is None else self._actions.between(spaces), kernel=form, bonus=made,
            units=self.rewards.units, space=space, mask=self.compiled_mask(spaces), raw=np.zeros(low.size),
        )  # fmt: skip

    @property
    def bonus_in_use(self) -> Bonus:
        """The bonus that was given, or the one chosen for "auto"."""
        if self._given_bonus is not None:
            return self._given_bonus
        return Simplified(root=self._exploring().root, count=COUNT) if self._limited else AUTOMATIC

    def _exploring(self) -> Exploring:
        """The bonus and the limit on other pairs, where they count only so much for a pair."""
        return Exploring() if self._automatic is None else self._automatic.exploring

    def _is_short(self, spaces: Spaces) -> bool:
        """Whether settings are chosen by the rules for short episodes with continuous actions."""
        return self._automatic is not None and self._actions.is_short(spaces, local=True)

    def _chosen_for_actions(self) -> float | None:
        """σ_A as the agent chose it; None where the bandwidth is given."""
        return None if self._automatic is None else self._automatic.action_sigma

    def _settings_now(self) -> Settings:
        """The settings for the bandwidth, the units of reward and the Lipschitz constants in use now."""
        settings = self._settings(self.spaces)
        return settings._replace(bonus=with_data_of(settings.bonus, self.model.settings.bonus))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """The model before any data."""
        low, high = spaces.low, spaces.high
        if self._automatic is None:
            warn_of_axes(self.metric, low, high)
        self._sigma, self._log_epoch, self._renewal = self._bandwidth_of(0), 0, 0
        if self._automatic is not None:
            self._automatic.horizon, self._automatic.short = spaces.horizon, self._is_short(spaces)
        if self.stored:
            self._restore(low.size)
        self._limited = self._actions.limits_others(spaces, self.smoothing(low.size).local)
        between = self.lipschitz is not None and self._actions.bounds_others(spaces)
        if isinstance(self._keeping, EverySample) and (between or self._actions.relates(spaces)):
            # Representatives that merge equal states only have the same values.
            self._keeping = AtRepresentatives(self.merged_plan, number_of_moments(self.bonus_in_use))
        metric = self.smoothing(low.size).metric
        check_space(metric, metric.space(low, high), low.size)
        metric.check(low, high)
        settings = self._settings(spaces)
        store, plan = self._keeping.new(settings, placed_box(settings, low, high), self.smoothing(low.size))
        return with_room(self.model_of(settings, store, plan, new_log(low.size), stream, low.size))

    def _restore(self, d: int) -> None:
        """Restore what `to_store` gave."""
        stored = self.stored
        self._sigma = check_bandwidth(stored.get("sigma", self._sigma))
        self._log_epoch = whole_number("log_epoch", stored.get("log_epoch", 0), 0)
        self._renewal = whole_number("renewal", stored.get("renewal", 0), 0)
        if self._log_epoch >= EPOCHS:
            raise ValueError(f"log_epoch must be below {EPOCHS}, got {self._log_epoch}")
        if self._automatic is not None:
            self._automatic.restore(stored.get("automatic"), d)
        self._keeping.restore(stored)

    def to_store(self) -> dict[str, Any]:
        """The settings in use that depend on the data."""
        chosen = {} if self._automatic is None else {"automatic": self._automatic.to_store()}
        own = {"sigma": self._sigma, "log_epoch": self._log_epoch, "renewal": self._renewal}
        return own | chosen | self._keeping.to_store()

    def _bandwidth_of(self, k: int) -> float:
        """σ_k, or the widest of several bandwidths for all states; else 1."""
        if is_auto(self.bandwidth) or isinstance(self.bandwidth, Local):
            return 1.0
        if isinstance(self.bandwidth, Bandwidths):
            return self.bandwidth.sigmas[0]
        return check_bandwidth(self.bandwidth(k)) if callable(self.bandwidth) else float(self.bandwidth)

    def kept_transitions(self) -> Rows | None:
        """Those of an agent with automatic settings."""
        if not self.model.settings.logs:
            return None
        log, n = self.model.log, int(self.model.log.number[0])
        steps, actions, ended = (label[:n].copy() for label in log.labels)
        states = log.states[:, :n]
        return Rows(states[0].copy(), actions, log.reward[:n].copy(), states[1].copy(), steps, ended.astype(np.bool_))

    def before_episodes(self, count: int) -> int:
        """Start to use the bandwidths and the Lipschitz constant of the next episode."""
        self._keeping.advise(self.model, self._advice, self.smoothing(self.spaces.low.size))
        if self.lipschitz == "log":
            count = min(count, self._renew_log())
        if self._automatic is not None:
            return min(count, self._look_again(self._automatic))
        if isinstance(self.bandwidth, Local):
            return min(count, self._renew_local())
        if not callable(self.bandwidth):
            return count
        k = self.episodes
        sigma = self._bandwidth_of(k)
        if abs(sigma / self._sigma - 1.0) > MOVED:
            self._sigma = sigma
            self.model = self._keeping.with_settings(self.model, self._settings_now())
            self._note_change()
        for j in range(1, count):
            if abs(self._bandwidth_of(k + j) / self._sigma - 1.0) > MOVED:
                return j
        return count

    def needs_step(self) -> bool:
        """Whether data are kept per step, or rewards or the motion have been seen to depend on it."""
        settings = self.model.settings
        return not self.stationary or settings.by_step or settings.step_scale > 0.0

    def before_rows(self) -> None:
        """No plans."""
        self._take_in(replan=EACH_EPISODE)

    def between_rows(self) -> None:
        """Count samples that wait for a plan, since they take memory; with too many representatives, only log rows."""
        self._keeping.settle(self.model)
        if self._has_far_too_many():
            self._take_in(ready=False)

    def after_rows(self) -> None:
        """Look at automatic settings, or renew local bandwidths, and plan."""
        automatic, too_many = self._automatic, self._has_far_too_many()
        self.model = self.model._replace(settings=self._settings_now())
        self._keeping.settle(self.model)  # all rows count when settings are looked at
        if automatic is not None:
            seen = self._targets(automatic)
            if too_many:  # some rows may be in the log only
                self._represent_again(automatic)
                if self._actions.relates(self.spaces):  # their bandwidth follows from the data there
                    self._land_again(automatic)
            automatic.due = min(automatic.due, self.episodes)
            self._look_again(automatic, seen)
        elif isinstance(self.bandwidth, Local):
            self._renewal = self.episodes
            self._renew_local()
        self.model = with_room(self.model)
        super().after_rows()
        self._keeping.advise(self.model, self._advice, self.smoothing(self.spaces.low.size))

    def _take_in(self, **changes: Any) -> None:
        """Change settings until `after_rows`."""
        self.model = self.model._replace(settings=self.model.settings._replace(**changes))

    def _has_far_too_many(self) -> bool:
        """Whether rows have made many more representatives than a plan can afford, of which fewer will be made."""
        automatic = self._automatic
        if automatic is None or automatic.scale is None or automatic.merge is not None:
            return False
        return self.number_of_representatives >= 2 * automatic.limit

    def _note_change(self) -> None:
        """Weights or representatives have changed, and with them all estimates."""
        self._changes += 1

    def _renew_local(self) -> int:
        """Renew local bandwidths if that is due; return in how many episodes it is due again."""
        assert isinstance(self._keeping, AtRepresentatives)
        if self.episodes >= self._renewal:
            self.model = self._keeping.renewed(self.model)
            self._note_change()
            self._renewal = next_renewal(self.episodes)
        return self._renewal - self.episodes

    def _look_again(self, automatic: Automatic, seen: Targets | None = None) -> int:
        """Renew automatic settings if that is due; return in how many episodes it is due again.

        `seen` are targets of the last plan that was made, if it was lost since.
        """
        spaces, log, horizon = self.spaces, self.model.log, self.spaces.horizon
        if automatic.scale is None and samples_in(log) < automatic.random_steps:
            return 1
        number, due = self.number_of_representatives, self.episodes >= automatic.due
        if due and seen is None:
            seen = self._targets(automatic)
        full = automatic.scale is not None and number >= max(2, automatic.limit) and automatic.merge is None
        if full:
            automatic.coarsen()
            self._represent_again(automatic)
        related = self._actions.relates(spaces)
        if due and related and automatic.scale is not None:
            automatic.action_sigma = narrowed(self.model.store, self.smoothing(spaces.low.size).start)
        again = due and automatic.look(log, spaces, number, self.stationary, self._number_of_actions())
        if seen is not None and automatic.scale is not None:
            automatic.exploring = exploring(log, *seen, automatic.scale, spaces.net, self.rewards.width)
        if again:
            self._represent_again(automatic)
        if automatic.depends != NOT:
            self._advice.of_dependence(automatic.depends)
        if due or full:
            self._land_again(automatic)
            self._renewal = self.episodes
            self._renew_local()
        if due:
            automatic.due = self._renewal
        left = (automatic.limit - self.number_of_representatives) // (2 * horizon)
        return min(automatic.due - self.episodes, max(1, left if automatic.merge is None else automatic.due))

    def _targets(self, automatic: Automatic) -> Targets | None:
        """Rows of the log (n,), and of each the reward and the value of its next state, (n,).

        None if the bonus does not follow them: a metric that is given measures states in units of its own.
        """
        if not automatic.short or automatic.metric is not None:
            return None
        log = self.model.log
        rows = some_rows(log)
        targets = log.reward[rows].copy()
        goes_on = log.labels[TERMINATED, rows] == 0
        if automatic.scale is not None and self.spaces.horizon > 1 and goes_on.any():
            values = self.read_model(self.model, verbs.READ_VALUES, log.states[TO, rows[goes_on]], 1)
            targets[goes_on] += self.in_own_units(values[:, 0], 1)
        return rows, targets

    def _represent_again(self, automatic: Automatic) -> None:
        """Make the representatives again from the logged states, with the settings that were chosen; no data yet."""
        log, order = self.model.log, np.arange(samples_in(self.model.log))
        while True:
            settings = self._settings_now()
            store = with_representatives(settings, log, order, self._new_store(settings), 64, automatic.most)
            if store is not None:
                plan = self._keeping.new_plan(settings, store)
                self.model = with_room(self.model._replace(settings=settings, store=store, plan=plan))
                self._note_change()
                return
            automatic.coarsen()

    def _new_store(self, settings: Settings) -> Callable[[int], Any]:
        """A function that makes an empty store with room for a number of representatives."""
        assert isinstance(self._keeping, AtRepresentatives)
        low, high = self.spaces.low, self.spaces.high
        box, smoothing = placed_box(settings, low, high), self.smoothing(low.size)
        return functools.partial(self._keeping.new_store, settings, box, smoothing)

    def _number_of_actions(self) -> float | None:
        """Related actions count less, together as many as do not overlap; None if they are not related."""
        K = self.model.settings.action_weights
        return self.spaces.actions / float(K[0].sum(axis=1).mean()) if len(K) else None

    def _land_again(self, automatic: Automatic) -> None:
        """Count all transitions again with the representatives there are now, from which steps are taken."""
        settings = self._settings_now()
        settings = settings._replace(bonus=before_data(settings.bonus))  # which will count all samples again
        store = relanded(settings, self.model.store, self.model.log, self._displaces(automatic))
        self.model = self.model._replace(settings=settings, store=store)

    def _displaces(self, automatic: Automatic) -> Floats:
        """(places,) for each coordinate whether steps resemble each other by their displacement: 1 or 0.

        A user's own metric may not be linear; with one, it is 0 for all.
        """
        assert automatic.scale is not None
        given, d = automatic.metric is not None, self.spaces.low.size
        keeps = np.zeros(d) if given else displaces(self.model.log, automatic.scale, self.spaces.net)
        if self.model.settings.step_scale > 0.0:
            keeps = np.append(keeps, 1.0)  # each step is one step later
        return keeps

    def _renew_log(self) -> int:
        """Start to use the Lipschitz constant of this episode; return for how many episodes it stays."""
        k = self.episodes + 1
        epoch = k.bit_length() - 1
        if epoch != self._log_epoch:
            self._log_epoch = epoch
            self.model = self._keeping.with_settings(self.model, self._settings_now())
        return epoch_end(epoch) - self.episodes

    def rescaled(self, keep: float) -> Any:
        """The model in the units of the current range, including the Lipschitz constants."""
        before = self.model.settings
        model = self._keeping.with_settings(self.model, self._settings_now())
        return verbs.rescaled(model._replace(settings=before), model.settings, keep)

    def capture(self) -> dict[str, Any]:
        """Also the bandwidth in use and the widths of cells."""
        return super().capture() | {
            "_sigma": self._sigma,
            "_log_epoch": self._log_epoch,
            "_renewal": self._renewal,
            "_keeping": copy.copy(self._keeping),
            "_automatic": copy.copy(self._automatic),
        }

    def reinstate(self, captured: dict[str, Any]) -> None:
        """Also drop separate plans."""
        super().reinstate(captured | {name: copy.copy(captured[name]) for name in ("_keeping", "_automatic")})
        self._deployed = None

    # ---------------------------------------------------------------------------------------------------- reading out

    def settings_used(self) -> dict[str, Any]:
        """The hyper-parameters in use: those given, and those that the agent chose or changed itself.

        While actions are still random, what is chosen from data is left as "auto".
        """
        used, smoothing = super().settings_used(), self.smoothing(self.spaces.low.size)
        if is_auto(self.bonus):
            used["bonus"] = self.bonus_in_use
        if is_auto(self.replan):
            used["replan"] = replan_code(self.replan, self._is_short(self.spaces))[1]
        if self.spaces.net is not None:
            used["action_bins"] = self.spaces.net.bins
        if not smoothing.ready:
            return used
        if self._actions.relates(self.spaces):
            used["action_bandwidth"] = self._actions.sigma(self.spaces, self._chosen_for_actions())
        bandwidth: Any = smoothing.start
        if smoothing.local:
            by = "state" if smoothing.by_state else "action"
            bandwidth = Local(smoothing.start, smoothing.least, smoothing.exponent, by)
        elif callable(self.bandwidth) or smoothing.several:
            bandwidth = self.bandwidth
        reading = READING[self.model.settings.reading]
        return used | {
            "bandwidth": bandwidth, "metric": smoothing.metric, "representatives": smoothing.merge, "reading": reading
        }  # fmt: skip

    def counts(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) generalized counts C = β + Σw at `states` (n, d)."""
        return self.read(verbs.READ_COUNTS, states, step)

    def bonuses(self, states: npt.ArrayLike, step: int) -> Floats:
        """(n, A) exploration bonuses B_h at `states` (n, d)."""
        bonuses: Floats = self.read(verbs.READ_BONUSES, states, step) * self.rewards.width
        return bonuses

    @property
    def number_of_representatives(self) -> int:
        """How many representative states there are; an agent that keeps every sample has none."""
        return self._keeping.representatives(self.check_started())

    def planned(self, side: Any, what: str) -> Planned:
        """A plan of all data on that side; `what` is the label of the progress bar if it takes long."""
        return self._keeping.planned(self.model, side, what)

    def planned_together(self) -> tuple[Planned, Planned]:
        """Lower and upper bounds from all data, with the range of values that they leave at each step."""
        settings, spaces, box = self.model.settings, self.spaces, None
        if with_ranges(settings.bonus) is not None and self.mask is None:  # with a mask V* may jump
            ends = not isinstance(self.lipschitz, tuple)  # from λ_r and λ_p nothing is certified once an episode ended
            metric = self.smoothing(spaces.low.size).metric
            defect = defect_of(metric, self.rewards.width)
            low, high = placed_box(settings, spaces.low, spaces.high)
            box = Box(low, high, norm_of(metric), defect, ends)
        bonus, rules, merge = self.bonus_in_use, None, self.smoothing(spaces.low.size).merge or 0.0
        if uses_bernstein(bonus):
            rules = functools.partial(bonus.rules, self._bonus_problem(spaces))
        return self._keeping.planned_together(self.model, box, rules, merge)

    def deployed_q(self, states: Floats, step: int) -> Floats:
        """(n, A) Q_h of the best policy of the estimated environment, without bonus and interpolation."""
        q: Floats = read_q(self._deployed_plan(), DEPLOYED, states, step)
        return q

    def policy_rule(self) -> Any:
        """A copy of the plan to deploy."""
        planned = storage.copied(model_of(self._deployed_plan()))
        return DeployedPlan(planned, np.zeros(self.spaces.dimensions + 1))

    def explained_bonuses(self, state: Floats, step: int) -> Floats | None:
        """(A,) the bonuses, blended as values are."""
        blended = blended_bonuses(self.model, self.smoothing(state.size).metric, state, step)
        return super().explained_bonuses(state, step) if blended is None else blended * self.rewards.width

    def evidence_at(self, state: Floats, step: int, most: int) -> dict[str, Any] | None:
        """The nearest representatives or samples."""
        metric, kernel = self.smoothing(state.size).metric, resolve_kernel(self.kernel)
        found: dict[str, Any] = evidence_of(self.model, metric, kernel, state, step, most)
        return found

    def explained_notes(self) -> list[str]:
        """How values between targets come about."""
        found = []
        if self.model.settings.interpolate:
            found.append(
                "q is the lowest cone of the targets around; estimate is what is left of it beside the bonus here"
            )
        if isinstance(self.bandwidth, Bandwidths):
            found.append("q is the smallest of several bandwidths; count and bonus are those of the smallest bonus")
        return found

    def tried(self, state: Floats, step: int, counts: Floats) -> npt.NDArray[np.bool_]:
        """(A,) whether samples of each action count here, more than a thousandth of one."""
        return np.asarray(counts - self.regularization > 1e-3)

    def plays_at_random(self) -> bool:
        """Whether settings have not been chosen yet."""
        return not self.model.settings.ready

    def policy_form(self, map_code: str | None = None) -> Form:
        """The tables of the plan to deploy."""
        self.require_data(int(samples_in(self.model.store)))
        metric = self.smoothing(self.spaces.low.size).metric
        return form_of_plan(model_of(self._deployed_plan()), metric, resolve_kernel(self.kernel), map_code)

    def _deployed_plan(self) -> Any:
        """The handle of the plan to deploy, made again when there are new data."""
        version = int(samples_in(self.model.store)), self._changes
        if self._deployed is None or self._deployed[0] != version:
            self._deployed = version, hand_over(self._plan_to_deploy())
        return self._deployed[1]

    def _plan_to_deploy(self) -> Planned:
        """A plan of all data without bonus and interpolation; from the raw transitions where they are kept."""
        automatic, settings = self._automatic, self.model.settings
        if automatic is None or automatic.scale is None:
            return self.planned(DEPLOYED, "Planning the policy to deploy")
        settings = settings._replace(bonus=before_data(settings.bonus))  # which will count all samples again
        new_store, number = self._new_store(settings), self.number_of_representatives
        places = self._actions.places(self.spaces, automatic.action_sigma, settings.least_sigma)
        return deployed_plan(settings, self.model.log, new_store, number, self._displaces(automatic), places)


def uses_bernstein(bonus: Bonus) -> TypeGuard[Joint]:
    """Whether certificates take the empirical-Bernstein form where it is smaller."""
    return isinstance(bonus, Joint) and bonus.bernstein


def number_of_moments(bonus: Bonus) -> int:
    """How many moments a store keeps for a bonus."""
    return 2 + uses_bernstein(bonus) if bonus.needs_moments else 0


def check_bandwidth(bandwidth: Any) -> float:
    """A bandwidth as a float, or an error that names it."""
    return positive("bandwidth", bandwidth, least=1e-100, most=1e100)


def check_given_bandwidth(bandwidth: Any) -> float:
    """The argument `bandwidth` as a float, or an error that also says how several are given."""
    if isinstance(bandwidth, list | tuple) or (isinstance(bandwidth, np.ndarray) and bandwidth.ndim > 0):
        raise ValueError(
            f"bandwidth must be a finite number above 0, got {bandwidth!r}; several at once are "
            "krl.schedules.Bandwidths([…])"
        )
    return check_bandwidth(bandwidth)


def check_merge_distance(representatives: Any, bandwidth: Any) -> float | str | None:
    """The argument `representatives` in its one form, or an error that names it."""
    if representatives is None:
        return None
    if not is_auto(representatives):
        return positive("representatives", representatives, zero=True, most=1e100)
    if callable(bandwidth) and not hasattr(bandwidth, "minimum"):
        raise ValueError(
            'representatives: "auto" is twice the smallest bandwidth, which is not known for a function; give the '
            "merge distance, or None to keep every sample"
        )
    return "auto"


def merge_distance(representatives: float | str | None, bandwidth: Any) -> float | None:
    """The merge distance; "auto" is twice the bandwidth, or twice the smallest of a schedule or of several."""
    if not isinstance(representatives, str):
        return representatives
    return 2.0 * float(getattr(bandwidth, "minimum", bandwidth))
