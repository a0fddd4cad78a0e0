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

In the joint box the maximum is over all balls that contain x with some action, and the action that is played is the
centre of the best of them. It is one of a net (`kernelrl.agents.action_net`) that has the centres of all balls up to
the depth `finest`, beyond which balls do not split.

The ball of a state is found by the binary digits of its position in the box: digit k of each coordinate says in which
half of a ball of depth k it lies. A ball includes its lower faces, and the last ball of an axis also its upper face.
"""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents.base import Floats
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import Baseline
from kernelrl.algorithms.opt_ql import kept
from kernelrl.arguments import positive
from kernelrl.bonuses.counted import Counted, has_width, width_of_adaptive
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    choose,
    grow,
    has_room,
    largest,
    observe,
    pick_largest,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.geometry.buckets import check_memory, lengthen, more
from kernelrl.geometry.grid import check_bounded
from kernelrl.jit.compile import compiled, in_both, inner
from kernelrl.jit.fields import Field, checks, require
from kernelrl.jit.stream import index_below
from kernelrl.stores.units import Units, after_end, learnt

__all__ = ["AdaptiveQL", "AdaptiveQLModel", "Partition", "leaves", "new_adaptive_ql"]

DIGITS = 30  # a ball of depth 30 would need 4^29 visits
VALUE, VISITS, ENOUGH = range(3)  # of `balls`
HERE, NEXT = range(2)  # of `buffer`
MOST_DIMENSIONS = 12  # a ball splits into 2^d
MOST_ACTIONS = 2.0**12  # of a net, about


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
    """The balls form trees: each split ball has 2^d later children, and a ball of depth k splits at 4^k visits."""
    roots, children = model.settings.horizon * model.settings.trees, children_of(model.settings)
    used = int(model.used[0])
    require(used >= roots and (used - roots) % children == 0, f"{where}used", f"{used} balls are no whole families")
    parents = np.flatnonzero(model.child[:used] >= 0)
    firsts = model.child[parents].astype(np.int64)
    families = np.array_equal(np.sort(firsts), np.arange(roots, used, children)) and (firsts > parents).all()
    require(families, f"{where}child", "the children of balls are not all others, each of one ball before it")
    depth = np.zeros(used)
    for parent, first in zip(parents[np.argsort(firsts)], np.sort(firsts), strict=True):
        depth[first : first + children] = depth[parent] + 1
    finest = model.settings.finest
    require(depth.max() <= finest, f"{where}child", f"a ball is deeper than {finest}")
    require(np.array_equal(model.balls[:used, ENOUGH], 4.0**depth), f"{where}balls", "a ball does not split at 4^depth")
    require((model.balls[:used, VISITS] >= 0.0).all(), f"{where}balls", "visits are negative")


@in_both
def children_of(settings):
    """2^d, into how many balls one splits."""
    return 1 << (settings.low.size + settings.axes)


def finest_depth(axes):
    """The depth beyond which balls of a joint box with so many axes of actions do not split."""
    return max(1, int(math.log2(MOST_ACTIONS) / axes) - 1)


def bins_for(axes):
    """How many actions along each axis the net must have that contains the centres of all balls."""
    return 2 ** (finest_depth(axes) + 1) + 1


def new_adaptive_ql(horizon, actions, axes, units, low, high, bonus, stream):
    """The state before any data, for states in the box [low, high] (d,); Discrete actions have 0 `axes`."""
    width, trees = high - low, 1 if axes else actions
    inverse = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    finest = finest_depth(axes) if axes else DIGITS
    settings = AdaptiveSettings(horizon, actions, units, trees, axes, finest, low.copy(), inverse, bonus)
    roots = horizon * trees
    room = roots + 4 * horizon * children_of(settings)
    check_memory((room, 3))
    balls = np.zeros((room, 3))
    balls[:roots, VALUE] = np.repeat(bonus.cap[:-1], trees)
    balls[:roots, ENOUGH] = 1.0
    return AdaptiveQLModel(
        settings, stream, np.full(room, -1, np.int32), balls, np.array([roots]),
        np.zeros((2, low.size + axes), np.int64), np.zeros(actions), np.zeros((finest * 2**axes + 1, 2), np.int64),
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
    roots, children = settings.horizon * settings.trees, children_of(settings)
    step = np.zeros(model.child.size, np.int64)  # the step that each ball belongs to
    step[:roots] = np.repeat(np.arange(settings.horizon), settings.trees)
    for ball in range(int(model.used[0])):  # children have higher numbers than their parents
        first = int(model.child[ball])
        if first >= 0:
            step[first : first + children] = step[ball]
    keep = kept(model.settings.units, settings.units, keep)
    cap, balls = settings.bonus.cap[step], model.balls.copy()
    balls[:, VALUE] = cap - keep * (cap - balls[:, VALUE])
    return model._replace(settings=settings, balls=balls)


@inner
def locate(settings, state, place):
    """Write the first DIGITS binary digits of each coordinate of `state` in the unit box into `place`."""
    for j in range(settings.low.size):
        u = np.int64((state[j] - settings.low[j]) * settings.inverse[j] * 2.0**DIGITS)
        place[j] = min(u, 2**DIGITS - 1)


@inner
def leaf(child, ball, place):
    """The undivided ball inside `ball`, the first of a tree, that contains a located state."""
    ball, k = np.int64(ball), DIGITS
    while child[ball] >= 0:
        k -= 1
        half = 0
        for j in range(place.size):
            half = 2 * half + ((place[j] >> k) & 1)
        ball = child[ball] + half
    return ball


@inner
def locate_action(settings, action, place):
    """Write the digits of an action of the net into the last places of `place`."""
    d, axes = settings.low.size, settings.axes
    last = np.int64(2) << settings.finest  # the number of the last value along an axis
    for j in range(axes - 1, -1, -1):
        number = action % (last + 1)
        action //= last + 1
        place[d + j] = min(number << (DIGITS - settings.finest - 1), 2**DIGITS - 1)


@inner
def ball_of(model, place, h, a):
    """The undivided ball of step `h`, action `a` and a located state."""
    settings = model.settings
    if settings.axes == 0:
        return leaf(model.child, h * settings.actions + a, place)
    locate_action(settings, a, place)
    return leaf(model.child, h, place)


@inner
def best_ball(model, place, h, any_of):
    """The undivided ball with the largest Q of those that contain a located state; the joint box only.

    Its action, the number of its centre in the net, is written to model.stack[-1, 0]. Of equal ones the first is taken,
    or, if `any_of`, one drawn by the agent's stream.
    """
    settings, balls, stack = model.settings, model.balls, model.stack
    d, axes = settings.low.size, settings.axes
    left, best, ties = 1, np.int64(-1), 0
    stack[0, 0], stack[0, 1] = h, 0
    centre = np.int64(0)
    paths = model.scratch  # of each entry of the stack: the number of the centre of its ball
    paths[0] = start_centre(settings)
    while left > 0:
        left -= 1
        ball, depth, path = stack[left, 0], stack[left, 1], np.int64(paths[left])
        first = np.int64(model.child[ball])
        if first < 0:
            if best < 0 or balls[ball, VALUE] > balls[best, VALUE]:
                best, centre, ties = ball, path, 1
            elif balls[ball, VALUE] == balls[best, VALUE]:
                ties += 1
                if any_of and index_below(model.stream, ties) == 0:
                    best, centre = ball, path
            continue
        half = 0
        for j in range(d):
            half = 2 * half + ((place[j] >> (DIGITS - 1 - depth)) & 1)
        for i in range(1 << axes):
            stack[left, 0], stack[left, 1] = first + (half << axes) + i, depth + 1
            paths[left] = moved_centre(settings, path, i, depth)
            left += 1
    stack[stack.shape[0] - 1, 0] = centre
    return best


@inner
def start_centre(settings):
    """The number of the action in the middle of the box."""
    last, number = np.int64(2) << settings.finest, np.int64(0)
    for _ in range(settings.axes):
        number = number * (last + 1) + last // 2
    return number


@inner
def moved_centre(settings, number, child, depth):
    """The number of the centre of a ball's child, whose last digits say in which half it lies along each axis."""
    last, factor = np.int64(2) << settings.finest, np.int64(1)
    shift = np.int64(1) << (settings.finest - 1 - depth)
    for j in range(settings.axes):  # the last axis first
        number += factor * (shift if (child >> j) & 1 else -shift)
        factor *= last + 1
    return number


@inner
def values_at(model, place, h, q):
    """Write Q_h of a located state into `q` (A,)."""
    for a in range(q.size):
        q[a] = model.balls[ball_of(model, place, h, a), VALUE]


@inner
def value_at(model, place, h):
    """V_h of a located state."""
    if model.settings.axes > 0:
        return min(model.settings.bonus.cap[h], model.balls[best_ball(model, place, h, False), VALUE])
    values_at(model, place, h, model.scratch)
    return min(model.settings.bonus.cap[h], largest(model.scratch))


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


@choose.implement(AdaptiveQLModel, inline=True)
def choose_adaptive(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    if model.settings.axes > 0:
        best_ball(model, model.buffer[HERE], h, True)
        return model.stack[model.stack.shape[0] - 1, 0]
    values_at(model, model.buffer[HERE], h, model.scratch)
    return pick_largest(model.scratch, model.stream)


@observe.implement(AdaptiveQLModel, inline=True)
def observe_adaptive(model, state, action, reward, next_state, h, terminated):
    settings, balls, H = model.settings, model.balls, model.settings.horizon
    G = learnt(settings.units, reward)
    if terminated:
        G += after_end(settings.units, H, h)
    elif h + 1 < H:
        locate(settings, next_state, model.buffer[NEXT])
        G += value_at(model, model.buffer[NEXT], h + 1)
    locate(settings, state, model.buffer[HERE])
    ball = ball_of(model, model.buffer[HERE], h, action)
    n = balls[ball, VISITS] + 1.0
    balls[ball, VISITS] = n
    alpha = (H + 1.0) / (H + n)
    balls[ball, VALUE] = (1.0 - alpha) * balls[ball, VALUE] + alpha * (G + value(settings.bonus, h, n, 0.0, 0.0))
    if n >= balls[ball, ENOUGH] and balls[ball, ENOUGH] < 4.0**settings.finest:
        split(model, ball)


@read_q.implement(AdaptiveQLModel)
def read_q_adaptive(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    values_at(model, model.buffer[HERE], h, out)


@read_values.implement(AdaptiveQLModel)
def read_values_adaptive(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    return value_at(model, model.buffer[HERE], h)


@inner
def visits_at(model, place, h, out):
    """Write the visits of the balls that contain a located state into `out` (A,)."""
    for a in range(out.size):
        out[a] = model.balls[ball_of(model, place, h, a), VISITS]


@read_counts.implement(AdaptiveQLModel)
def read_counts_adaptive(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    visits_at(model, model.buffer[HERE], h, out)


@read_bonuses.implement(AdaptiveQLModel)
def read_bonuses_adaptive(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    visits_at(model, model.buffer[HERE], h, out)
    for a in range(out.size):
        out[a] = value(model.settings.bonus, h, out[a], 0.0, 0.0)


@compiled
def deploy_joint(model, states, h, out):
    """Write the centre of the best ball at each of `states` (n, d) into `out` (n,)."""
    for i in range(out.size):
        locate(model.settings, states[i], model.buffer[HERE])
        best_ball(model, model.buffer[HERE], h, False)
        out[i] = model.stack[model.stack.shape[0] - 1, 0]


def leaves(model, ball):
    """The undivided balls of a tree: lower corners (n, d) and sides (n,) in the unit box, and their numbers (n,).

    Plain Python, for read-outs.
    """
    d = model.settings.low.size + model.settings.axes
    waiting, found = [(ball, np.zeros(d), 1.0)], []
    while waiting:
        number, corner, side = waiting.pop()
        first = int(model.child[number])
        if first < 0:
            found.append((corner, side, number))
            continue
        for i in range(2**d):
            digits = np.array([(i >> (d - 1 - j)) & 1 for j in range(d)])
            waiting.append((first + i, corner + 0.5 * side * digits, 0.5 * side))
    corners, sides, numbers = zip(*found, strict=True)
    return np.array(corners), np.array(sides), np.array(numbers)


class Partition(NamedTuple):
    """The balls that the box of states is divided into, for one step and action; or the joint box, for one step."""

    low: Floats
    """(n, d) lower corners."""
    high: Floats
    """(n, d) upper corners."""
    q_values: Floats
    """(n,) Q_h of each ball."""
    visits: Floats
    """(n,) visits of each ball, including those of the balls it was split from."""


class AdaptiveQL(Baseline):
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
    """

    hyper_parameters = (*Baseline.hyper_parameters, "lipschitz")
    action_bins = staticmethod(bins_for)

    def __init__(
        self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus: str = "simplified", bonus_scale: float = 1.0, delta: float = 0.05, total_episodes: int | None = None,
        lipschitz: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(horizon, reward_range, bonus, bonus_scale, delta, total_episodes)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz, zero=True)
        if has_width(bonus) and lipschitz is None:
            raise ValueError('lipschitz: bonus="hoeffding" depends on the Lipschitz constant of Q; give lipschitz=…')

    def _hoeffding_width(self, horizon: int, cells: int, actions: int) -> float:
        return float(width_of_adaptive(horizon, self.total_episodes, self.delta, self.lipschitz, 1.0))

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """One ball for each step and action."""
        low, high, horizon, actions = spaces.low, spaces.high, spaces.horizon, spaces.actions
        axes = 0 if spaces.net is None else len(spaces.net.bins)
        check_bounded(low, high, "AdaptiveQL")
        if low.size + axes > MOST_DIMENSIONS:
            raise ValueError(
                f"observation_space: a ball splits into 2^d, so states, together with continuous actions, may have "
                f"{MOST_DIMENSIONS} dimensions at most; got {low.size + axes}"
            )
        if spaces.net is not None and not (spaces.net.high > spaces.net.low).all():
            raise ValueError(f"action_space: each axis must have a width, got {spaces.net.low} to {spaces.net.high}")
        bonus = self._counted(horizon, 1, actions)
        return new_adaptive_ql(horizon, actions, axes, self.rewards.units, low, high, bonus, stream)

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) actions of the policy that is greedy in Q; continuous ones are the centres of balls."""
        if self.spaces.net is None:
            return super().deployed_actions(states, step)
        found = np.zeros(len(states), np.int64)
        deploy_joint(self.handle(), states, step, found)
        return found

    def deployed_q(self, states: Floats, step: int) -> Floats:
        """(n, A) Q_h of Discrete actions."""
        return super().deployed_q(states, step)

    def partition(self, step: int, action: int | None = None) -> Partition:
        """The balls of a step (from 0) and an action, for plotting; with continuous actions those of the joint box."""
        model, spaces = self.check_started(), self.spaces
        h, lowest, highest = spaces.check_step(step), spaces.low, spaces.high
        if spaces.net is not None:
            if action is not None:
                raise ValueError(
                    f"action: balls are of the joint box of states and actions; leave it out, got {action}"
                )
            lowest, highest, tree = np.append(lowest, spaces.net.low), np.append(highest, spaces.net.high), h
        else:
            tree = h * spaces.actions + spaces.check_action(action)
        corners, sides, numbers = leaves(model, tree)
        width = highest - lowest
        low = lowest + width * corners
        high = lowest + width * (corners + sides[:, None])
        values = self.in_own_units(model.balls[numbers, VALUE], h)
        return Partition(low, high, values, model.balls[numbers, VISITS])
