"""What the class of an algorithm gives to `Agent`, what it may change, and what its methods can use.

`Agent` (`kernelrl.agents.base`), which users see, is built on this class; its docstring lists the hooks. A policy to
deploy is known in several forms: `deployed_actions` for Python, `policy_rule` for compiled code, `policy_form` for
files. A subclass that changes the first and not the others would inherit forms of another policy; the functions at the
end of this file find that out.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.masking import allowed_at
from kernelrl.agents.reward_range import RewardRange
from kernelrl.agents.rows import Rows
from kernelrl.agents.spaces import Spaces
from kernelrl.episodes import verbs
from kernelrl.episodes.policy import ReadQ
from kernelrl.geometry.masks import mask_of
from kernelrl.jit.handles import hand_over
from kernelrl.portable.forms import Form, GridTable

__all__ = ["Hooks", "maximises_q", "tells_policy"]

Floats = npt.NDArray[np.float64]
POLICY = ("deployed_actions", "deployed_q")


class Hooks:
    """The part of `Agent` that algorithms give or change."""

    hyper_parameters: ClassVar[tuple[str, ...]] = ("horizon", "reward_range")
    takes_discrete: ClassVar[bool] = False
    mask: Any = None  # of an agent that takes one: a compiled function (state, action) → bool
    action_bins: Any = None  # of an agent that takes continuous actions: how many along each axis, or "auto"
    spaces: Spaces
    model: Any
    rewards: RewardRange
    episodes: int
    _handed_over: tuple[Any, Any]  # the model, and the same as compiled code takes it

    # --------------------------------------------------------------------------------------- what their methods can use

    def check_started(self) -> Any:
        """The model, or an error if there is none yet."""
        if self.model is None:
            raise RuntimeError("this agent has not been started: call fit(env, …) or start(…) first")
        return self.model

    def handle(self) -> Any:
        """The model in the form that compiled code takes (see `kernelrl.jit.handles`)."""
        model = self.check_started()
        if self._handed_over[0] is not model:
            self._handed_over = model, hand_over(model)
        return self._handed_over[1]

    def read(self, verb: int, states: npt.ArrayLike, step: int) -> Floats:
        """The read-out `verb` (`krl.verbs.READ_COUNTS`, …) at `states` (n, …), in mapped units."""
        model = self.handle()
        h = self.spaces.check_step(step)
        return self.read_model(model, verb, self.spaces.check_states(states), h)

    def read_model(self, model: Any, verb: int, states: Floats, step: int) -> Floats:
        """The read-out of a model at `states` (n, d) that have been checked: (n, A), or (n, 1) for values."""
        out = np.zeros((len(states), 1 if verb == verbs.READ_VALUES else self.spaces.actions))
        verbs.read_rows(self.handle() if model is self.model else model, verb, states, step, out)
        return out

    def in_own_units(self, values: Any, step: int) -> Any:
        """Values of `step` (from 0) in mapped units, converted to the environment's units."""
        return self.rewards.in_own_units(values, self.spaces.horizon - step)

    def compiled_mask(self, spaces: Spaces) -> Any:
        """`mask` in the form that compiled code takes (see `kernelrl.geometry.masks`)."""
        return mask_of(self.mask, spaces.dimensions)

    def require_data(self, samples: int) -> None:
        """Raise ValueError if there is nothing to export, because nothing has been learnt."""
        if samples == 0:
            raise ValueError(
                f"export: this {type(self).__name__} has no data that count yet; call fit(env, …) or learn_from first"
            )

    def table_of_states(self) -> GridTable:
        """The policy to deploy as tables where states are Discrete: one action for each step and state."""
        self.require_data(self.episodes)
        spaces = self.spaces
        states = np.arange(spaces.low[0], spaces.high[0] + 1.0)[:, None]
        best = [self.deployed_actions(states, h) for h in range(spaces.horizon)]
        return GridTable(spaces.low.copy(), np.ones(1), np.array([len(states)]), np.array(best))

    # ----------------------------------------------------------------------------------------- what they give or change

    def new_model(self, spaces: Spaces, stream: npt.NDArray[np.uint64]) -> Any:
        """The algorithm's NamedTuple before any data; `stream` (4,) is its random stream.

        `self.rewards.units` maps rewards to [0, 1] at first. Raise ValueError for spaces that are not supported.
        """
        raise NotImplementedError(f"{type(self).__name__} must have a method new_model(spaces, stream)")

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) actions of the policy to deploy, counted from 0, at `states` (n, d) that have been checked.

        By default it is greedy in `deployed_q`, among the actions that `mask` allows; of equally good ones it takes
        the lowest.
        """
        if self.mask is not None:
            return self.deployed_among(states, step, allowed_at(self, states))
        return np.asarray(self.deployed_q(states, step).argmax(axis=1), np.int64)

    def deployed_q(self, states: Floats, step: int) -> Floats:
        """(n, A) the values that the policy to deploy maximises, in any units; by default those of `read_q`."""
        return self.read_model(self.handle(), verbs.READ_Q, states, step)

    def deployed_among(self, states: Floats, step: int, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """(n,) the same among the actions that are `allowed` (n, A); each row allows at least one."""
        if not maximises_q(type(self)):
            raise TypeError(
                f"mask: {type(self).__name__} has its own deployed_actions, which knows of no masks; write a method "
                "deployed_q(states, step) or deployed_among(states, step, allowed)"
            )
        return np.asarray(np.where(allowed, self.deployed_q(states, step), -np.inf).argmax(axis=1), np.int64)

    def policy_rule(self) -> Any:
        """What `policy` reads, with arrays of its own: a NamedTuple that implements `deployed_action`."""
        return ReadQ(storage.copied(self.model), self.compiled_mask(self.spaces))

    def policy_form(self, map_code: str | None = None) -> Form:
        """The policy to deploy as tables, a form of `kernelrl.portable`, for `export`.

        `map_code` is that of `export`. By default it is known where states are Discrete: one action for each.
        """
        if not self.spaces.discrete:
            raise TypeError(
                f"export: {type(self).__name__} does not say how its policy is looked up; write a method policy_form() "
                "that returns a form of krl.portable, such as krl.portable.grid_table(grid, q), as docs/export.md shows"
            )
        return self.table_of_states()

    def explained_bonuses(self, state: Floats, step: int) -> Floats | None:
        """(A,) the part of Q_h that is a bonus, in the environment's units; None where there is none."""
        if not hasattr(self, "bonuses"):
            return None
        bonuses: Floats = self.bonuses(state.reshape(1, *self.spaces.shape), step)[0]
        return bonuses

    def deployed_worth(self, state: Floats, step: int) -> Floats | None:
        """(A,) the values that the policy to deploy maximises, in the environment's units; None if it has none."""
        if not maximises_q(type(self)):
            return None
        worth: Floats = self.in_own_units(self.deployed_q(state[None], step)[0], step)
        return worth

    def evidence_at(self, state: Floats, step: int, most: int) -> dict[str, Any] | None:
        """What the values at a state rest on, at most so many entries, as JSON (docs/explain.md); None: not known."""
        return None

    def explained_notes(self) -> list[str]:
        """What else a reader of an explanation should know."""
        return []

    def tried(self, state: Floats, step: int, counts: Floats) -> npt.NDArray[np.bool_]:
        """(A,) whether each action was tried at or near a state, given its `counts` there."""
        return np.asarray(counts > 0.0)

    def plays_at_random(self) -> bool:
        """Whether the learning policy does not use its values yet."""
        return False

    def before_episodes(self, count: int) -> int:
        """Adapt the model before the next episode; return how many of `count` can be played until this is due again."""
        return count

    def check_episodes(self, more: int) -> None:
        """Raise ValueError for more episodes than the hyper-parameters are made for."""

    def needs_step(self) -> bool:
        """Whether what is learnt from a transition depends on its step."""
        return True

    def check_rows(self) -> None:
        """Raise ValueError if the hyper-parameters do not allow transitions without episodes."""

    def before_rows(self) -> None:
        """Adapt the model before many transitions that come without episodes: `observe` makes no plans until then."""

    def between_rows(self) -> None:
        """Adapt the model after some of them; when this is called must not change results."""

    def after_rows(self) -> None:
        """Look at settings that depend on data, and bring values up to date, once."""
        verbs.catch_up(self.model)

    def kept_transitions(self) -> Rows | None:
        """All transitions so far, in order, or None if they are not kept."""
        return None

    def rescaled(self, keep: float) -> Any:
        """The model in the units of `self.rewards`, which has widened (see the verb `rescaled` for `keep`).

        By default the verb is given the model's `settings`, if it has such a part, with new `units`.
        """
        settings = getattr(self.model, "settings", None)
        if settings is not None:
            settings = settings._replace(units=self.rewards.units)
        return verbs.rescaled(self.model, settings, keep)

    def keeps_promises(self) -> bool:
        """Whether guarantees depend on the range of rewards, so that a reward outside a given range is an error."""
        return False

    def to_store(self) -> dict[str, Any]:
        """State that `save` writes besides the model's arrays, as JSON; `new_model` finds it in `stored`."""
        return {}

    def capture(self) -> dict[str, Any]:
        """Copies of all attributes that episodes change, by name (see `kernelrl.agents.recovery`)."""
        return {"model": storage.copied(self.model), "episodes": self.episodes, "rewards": self.rewards}

    def reinstate(self, captured: dict[str, Any]) -> None:
        """Restore the state in which `captured` was made."""
        for name, value in captured.items():
            setattr(self, name, value)

    def check_gap(self, until_gap: Any) -> None:
        """Raise ValueError for `until_gap`, since there are no certificates."""
        raise ValueError(
            f"until_gap: {type(self).__name__} gives no certificates; a kernel agent with the bonus Joint does"
        )

    def gap(self) -> float:
        """The largest gap between certified bounds at recent start states."""
        raise NotImplementedError


def place_of(cls: type[Hooks], names: tuple[str, ...]) -> int:
    """The place, in the order in which methods are looked up, of the class that defines one of these methods."""
    return next(i for i, each in enumerate(cls.__mro__) if each.__dict__.keys() & set(names))


def maximises_q(cls: type[Hooks]) -> bool:
    """Whether the policy to deploy maximises `deployed_q`; it does not if it is given by `deployed_actions` alone."""
    return "deployed_q" in cls.__mro__[place_of(cls, POLICY)].__dict__


def tells_policy(cls: type[Hooks], method: str) -> bool:
    """Whether a method, such as `policy_rule`, is of the policy to deploy, not of that of a class further up."""
    return place_of(cls, (method,)) <= place_of(cls, POLICY)
