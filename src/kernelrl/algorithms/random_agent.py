"""The random agent takes every action with the same probability and learns nothing: the lowest baseline.

Its optimistic Q_h is R_h, the bound that needs no data.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Agent, Floats
from kernelrl.agents.masking import allowed_at
from kernelrl.agents.spaces import Spaces
from kernelrl.episodes.verbs import choose, observe, read_q, read_values
from kernelrl.geometry.masks import NOTHING_ALLOWED, allows, check_function, restricts
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.fields import Field
from kernelrl.jit.policy_verb import deployed_action
from kernelrl.jit.stream import index_below, mix
from kernelrl.portable.forms import Form

__all__ = ["RandomAgent", "RandomAgentModel"]


class RandomAgentModel(NamedTuple):
    """The state of the random agent."""

    horizon: int
    actions: int
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)
    stream: Annotated[np.ndarray, Field("4", np.uint64)]


@inner
def number_allowed(mask, actions, state):
    """How many actions are allowed in a state; an error if none is."""
    number = 0
    for a in range(actions):
        number += allows(mask, state, a)
    if number == 0:
        raise ValueError(NOTHING_ALLOWED)
    return number


@inner
def nth_allowed(mask, actions, state, n):
    """The allowed action with so many others before it."""
    for a in range(actions):
        if allows(mask, state, a):
            if n == 0:
                return a
            n -= 1
    return actions - 1


@choose.implement(RandomAgentModel)
def choose_uniform(model, state, h):
    if not restricts(model.mask):
        return index_below(model.stream, model.actions)
    number = number_allowed(model.mask, model.actions, state)
    return nth_allowed(model.mask, model.actions, state, index_below(model.stream, number) if number > 1 else 0)


@observe.implement(RandomAgentModel)
def observe_uniform(model, state, action, reward, next_state, h, terminated):
    return None


@read_q.implement(RandomAgentModel)
def read_q_uniform(model, state, h, out):
    for a in range(out.size):
        out[a] = model.horizon - h


@read_values.implement(RandomAgentModel)
def read_values_uniform(model, state, h):
    return np.float64(model.horizon - h)


class RandomRule(NamedTuple):
    """The policy to deploy: actions are functions of the seed, the state and the step."""

    seed: int
    actions: int
    mask: Any


@inner
def draw(seed, state, h):
    """64 bits that depend on the seed, the state (d,) and the step."""
    word, bits = mix(np.uint64(seed)), state.view(np.uint64)
    for j in range(bits.size):
        word = mix(word ^ bits[j])
    return mix(word ^ np.uint64(h))


@deployed_action.implement(RandomRule)
def draw_action(rule, state, h, q):
    number = number_allowed(rule.mask, rule.actions, state)
    return nth_allowed(rule.mask, rule.actions, state, np.int64(draw(rule.seed, state, h) % np.uint64(number)))


@compiled
def draw_all(seed, states, h, out):
    """`draw` for all `states` (n, d), into `out` (n,)."""
    for i in range(out.size):
        out[i] = draw(seed, states[i], h)


class RandomAgent(Agent):
    """Takes every action with the same probability; of a continuous space, every action of a net.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        mask: a compiled function (state, action) → bool, which actions are allowed in a state (docs/masks.md).
    """

    action_bins = "auto"
    takes_discrete = True

    hyper_parameters = ("horizon", "reward_range", "mask")

    def __init__(
        self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto", mask: Any = None
    ) -> None:
        super().__init__(horizon, reward_range)
        self.mask = check_function(mask)

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """Nothing but the stream."""
        return RandomAgentModel(spaces.horizon, spaces.actions, self.compiled_mask(spaces), stream)

    def needs_step(self) -> bool:
        """It learns nothing."""
        return False

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) random actions, each a function of the seed, the state and the step, since deploying changes nothing."""
        if self.mask is not None:
            return self.deployed_among(states, step, allowed_at(self, states))
        return np.array([draw % self.spaces.actions for draw in self._draws(states, step)], np.int64)

    def deployed_among(self, states: Floats, step: int, allowed: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """(n,) the same among the actions that are `allowed` (n, A)."""
        rows = [np.flatnonzero(row) for row in allowed]
        draws = self._draws(states, step)
        return np.array([row[draw % row.size] for row, draw in zip(rows, draws, strict=True)], np.int64)

    def policy_rule(self) -> Any:
        """The seed."""
        return RandomRule(self.seed, self.spaces.actions, self.model.mask)

    def policy_form(self, map_code: str | None = None) -> Form:
        """None: there is nothing to deploy."""
        raise ValueError("export: a RandomAgent has learnt nothing, so there is no policy to export")

    def _draws(self, states: Floats, step: int) -> list[int]:
        out = np.zeros(len(states), np.uint64)
        draw_all(self.seed, np.ascontiguousarray(states), step, out)
        draws: list[int] = out.tolist()
        return draws
