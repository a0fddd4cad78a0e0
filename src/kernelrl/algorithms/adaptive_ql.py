"""Adaptive Q-learning (Sinclair, Banerjee and Yu 2019).

With continuous actions, as in the paper, for each step the joint box of states and actions is divided into balls,
smaller ones where there are more visits. With Discrete actions there is such a partition of the box of states for each
step and action.

Balls are boxes: balls of the maximum norm, after the box of states is scaled to the unit box, whose radius is taken as
1. A ball that splits is halved along every axis, into 2^d balls of half its radius; at depth k the radius is 2^-k. The
first ball has Q = cap_h. After a transition from x to y by action a at step h, the ball of (h, a) that contains x has n
visits, including this one, and with the learning rate α = (H+1)/(H+n)

    Q ← (1-α)·Q + α·[r + V_{h+1}(y) + B_h(n)],   V_h(x) = min(cap_h, max_a Q_h(x, a)),   V_H = 0
    if n ≥ (1/radius)² = 4^k:  the ball splits; its children take over Q and n

so the first ball splits on its first visit. The ball is updated before it splits.

With a mask the maximum in V_h is over the actions that are allowed in the state itself.

In the joint box the maximum is over all balls that contain x with some action, and the action that is played is the
centre of the best of them. It is one of a net (`kernelrl.agents.action_net`) that has the centres of all balls up to
the depth `finest`, beyond which balls do not split.

The ball of a state is found by the binary digits of its position in the box: digit k of each coordinate says in which
half of a ball of depth k it lies. A ball includes its lower faces, and the last ball of an axis also its upper face.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.balls import (
    ENOUGH,
    HERE,
    NEXT,
    VALUE,
    VISITS,
    PartitionAgent,
    ball_of,
    best_ball,
    check_balls,
    children_of,
    implement_shared_verbs,
    scratch_arrays,
    shape_of_box,
    values_at,
    visits_at,
)
from kernelrl.algorithms.grid_agent import Baseline
from kernelrl.algorithms.opt_ql import kept
from kernelrl.arguments import positive
from kernelrl.bonuses.counted import Counted, has_width, width_of_adaptive
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    grow,
    has_room,
    observe,
    read_bonuses,
    read_values,
    rescaled,
    value_of,
)
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.dyadic import locate, steps_of
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, checks
from kernelrl.stores.units import Units, after_end, learnt

__all__ = ["AdaptiveQL", "AdaptiveQLModel", "new_adaptive_ql"]


class AdaptiveSettings(NamedTuple):
    """The hyper-parameters of adaptive Q-learning; made by `new_adaptive_ql` only."""

    horizon: int  # H
    actions: int  # A
    units: Units
    trees: int  # partitions of a step: one for each action, or one of the joint box
    axes: int  # of actions in the joint box, d_A; 0 for Discrete actions
    finest: int  # depth beyond which balls do not split
    low: np.ndarray  # (d,)
    inverse: np.ndarray  # (d,) 1/width of the box; 0 where it has none
    bonus: Counted
    mask: Any  # which actions are allowed (see `kernelrl.geometry.masks`)


@implement_shared_verbs
class AdaptiveQLModel(NamedTuple):
    """The state of adaptive Q-learning: trees of balls. The first ball of (h, a) is number h·A + a, or h if joint."""

    settings: AdaptiveSettings
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # number of the first of the 2^d children, or -1; d is that of the joint box
    child: Annotated[np.ndarray, Field("balls", np.int32, index="balls", none=True, fill=-1)]
    balls: Annotated[np.ndarray, Field("balls 3")]  # VALUE Q, VISITS, ENOUGH: visits at which it splits
    used: Annotated[np.ndarray, Field("1", np.int64, counts="balls")]
    # binary digits of the state (HERE) and of the NEXT one, each with those of an action
    buffer: Annotated[np.ndarray, Field("2 d", np.int64, scratch=True)]
    scratch: Annotated[np.ndarray, Field("A", scratch=True)]  # Q of each action
    stack: Annotated[np.ndarray, Field("any 2", np.int64, scratch=True)]  # balls to be looked at: number and depth


@checks(AdaptiveQLModel)
def check_trees(where, model):
    """The balls form trees."""
    check_balls(where, model, 2.0)


def new_adaptive_ql(horizon, actions, axes, units, low, high, bonus, mask, stream):
    """The state before any data, for states in the box [low, high] (d,); Discrete actions have 0 `axes`."""
    trees, *box = shape_of_box(low, high, axes, actions)
    settings = AdaptiveSettings(horizon, actions, units, trees, axes, *box, bonus, mask)
    roots = horizon * trees
    room = roots + 4 * horizon * children_of(settings)
    check_memory((room, 3))
    balls = np.zeros((room, 3))
    balls[:roots, VALUE] = np.repeat(bonus.cap[:-1], trees)
    balls[:roots, ENOUGH] = 1.0
    return AdaptiveQLModel(
        settings, stream, np.full(room, -1, np.int32), balls, np.array([roots]),
        *scratch_arrays(settings),
    )  # fmt: skip


@has_room.implement(AdaptiveQLModel)
def has_room_adaptive(model):
    return model.child.size - model.used[0] >= model.settings.horizon * children_of(model.settings)


@grow.implement_plain(AdaptiveQLModel)
def grow_adaptive(model):
    room = more(model.child.size)
    return model._replace(child=lengthen(model.child, room, 0, -1), balls=lengthen(model.balls, room, 0))


@rescaled.implement_plain(AdaptiveQLModel)
def rescale_adaptive(model, settings, keep):
    roots = np.repeat(np.arange(settings.horizon), settings.trees)
    step = steps_of(model.child, model.child.size, roots, children_of(settings))
    keep = kept(model.settings.units, settings.units, keep)
    cap, balls = settings.bonus.cap[step], model.balls.copy()
    balls[:, VALUE] = cap - keep * (cap - balls[:, VALUE])
    return model._replace(settings=settings, balls=balls)


@inner
def value_at(model, state, place, h):
    """V_h of a state, which is located."""
    if model.settings.axes > 0:
        return min(model.settings.bonus.cap[h], model.balls[best_ball(model, place, h, False), VALUE])
    values_at(model, place, h, model.scratch)
    return min(model.settings.bonus.cap[h], value_of(model.settings.mask, state, model.scratch))


@inner
def split(model, ball):
    """Split a ball; its children inherit its value and visits."""
    first, balls = model.used[0], model.balls
    children = children_of(model.settings)
    for i in range(first, first + children):
        balls[i, VALUE], balls[i, VISITS], balls[i, ENOUGH] = (
            balls[ball, VALUE], balls[ball, VISITS], 4.0 * balls[ball, ENOUGH],
        )  # fmt: skip
    model.child[ball] = first
    model.used[0] = first + children


@observe.implement(AdaptiveQLModel, inline=True)
def observe_adaptive(model, state, action, reward, next_state, h, terminated):
    settings, balls, H = model.settings, model.balls, model.settings.horizon
    G = learnt(settings.units, reward)
    if terminated:
        G += after_end(settings.units, H, h)
    elif h + 1 < H:
        locate(settings, next_state, model.buffer[NEXT])
        G += value_at(model, next_state, model.buffer[NEXT], h + 1)
    locate(settings, state, model.buffer[HERE])
    ball = ball_of(model, model.buffer[HERE], h, action)
    n = balls[ball, VISITS] + 1.0
    balls[ball, VISITS] = n
    alpha = (H + 1.0) / (H + n)
    balls[ball, VALUE] = (1.0 - alpha) * balls[ball, VALUE] + alpha * (G + value(settings.bonus, h, n, 0.0, 0.0))
    if n >= balls[ball, ENOUGH] and balls[ball, ENOUGH] < 4.0**settings.finest:
        split(model, ball)


@read_values.implement(AdaptiveQLModel)
def read_values_adaptive(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    return value_at(model, state, model.buffer[HERE], h)


@read_bonuses.implement(AdaptiveQLModel)
def read_bonuses_adaptive(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    visits_at(model, model.buffer[HERE], h, out)
    for a in range(out.size):
        out[a] = value(model.settings.bonus, h, out[a], 0.0, 0.0)


class AdaptiveQL(PartitionAgent):
    """Adaptive Q-learning (Sinclair et al. 2019): Q-learning on a partition that is finer where there are more visits.

    There is one partition of the joint box of states and actions for each step or, if actions are Discrete, one of the
    box of states for each step and action. A ball of depth k, of radius 2^-k in units of the box, splits when it has
    4^k visits.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        bonus: "simplified", s·(1/√n + R_h/n), where R_h is the number of steps left; "hoeffding",
            s·(2·√(H³·log(4·H·K/δ)) + 4·L)/√n with K = total_episodes and L = lipschitz.
        bonus_scale: the factor s.
        delta: δ, the probability of failure in the Hoeffding bonus.
        total_episodes: the number of episodes to be played, for the Hoeffding bonus only.
        lipschitz: L, by how much Q can differ across the box, for the Hoeffding bonus only.
        mask: a compiled function (state, action) → bool, which Discrete actions are allowed in a state (docs/masks.md).
    """

    hyper_parameters = (*Baseline.hyper_parameters, "lipschitz")

    def __init__(
        self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05, total_episodes: int | None = None,
        lipschitz: float | None = None, mask: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range, bonus, bonus_scale, delta, total_episodes, mask)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz, zero=True)
        if has_width(bonus) and lipschitz is None:
            raise ValueError('lipschitz: bonus="hoeffding" depends on the Lipschitz constant of Q; give lipschitz=…')

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_adaptive(horizon, self.total_episodes, self.delta, self.lipschitz, 1.0))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """One ball for each step and action."""
        low, high, horizon, actions = spaces.low, spaces.high, spaces.horizon, spaces.actions
        axes = self._check_box(spaces)
        bonus = self._counted(horizon, 1, actions)
        mask = self.compiled_mask(spaces)
        return new_adaptive_ql(horizon, actions, axes, self.rewards.units, low, high, bonus, mask, stream)
