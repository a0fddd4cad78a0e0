"""Adaptive Q-learning (Sinclair, Banerjee and Yu 2019), for finitely many actions.

For each step and action the box of states is divided into balls, smaller ones where there are more visits.

Balls are boxes: balls of the maximum norm, after the box of states is scaled to the unit box, whose radius is taken as
1. A ball that splits is halved along every axis, into 2^d balls of half its radius; at depth k the radius is 2^-k. The
first ball has Q = cap_h. After a transition from x to y by action a at step h, the ball of (h, a) that contains x has n
visits, including this one, and with the learning rate α = (H+1)/(H+n)

    Q ← (1-α)·Q + α·[r + V_{h+1}(y) + B_h(n)],   V_h(x) = min(cap_h, max_a Q_h(x, a)),   V_H = 0
    if n ≥ (1/radius)² = 4^k:  the ball splits; its children take over Q and n

so the first ball splits on its first visit. The ball is updated before it splits.

The ball of a state is found by the binary digits of its position in the box: digit k of each coordinate says in which
half of a ball of depth k it lies. A ball includes its lower faces, and the last ball of an axis also its upper face.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

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
from kernelrl.jit.compile import inner
from kernelrl.jit.fields import Field, checks, require
from kernelrl.stores.units import Units, after_end, learnt

__all__ = ["AdaptiveQL", "AdaptiveQLModel", "Partition", "leaves", "new_adaptive_ql"]

DIGITS = 30  # a ball of depth 30 would need 4^29 visits
VALUE, VISITS, ENOUGH = range(3)  # of `balls`
HERE, NEXT = range(2)  # of `buffer`
MOST_DIMENSIONS = 12  # a ball splits into 2^d


class AdaptiveSettings(NamedTuple):
    """The hyper-parameters of adaptive Q-learning; made by `new_adaptive_ql` only."""

    horizon: int  # H
    actions: int  # A
    units: Units
    low: np.ndarray  # (d,)
    inverse: np.ndarray  # (d,) 1/width of the box; 0 where it has none
    bonus: Counted


class AdaptiveQLModel(NamedTuple):
    """The state of adaptive Q-learning: H·A trees of balls. The first ball of (h, a) is number h·A + a."""

    settings: AdaptiveSettings
    stream: Annotated[np.ndarray, Field("4", np.uint64)]  # the agent's own random stream
    # number of the first of the 2^d children, or -1
    child: Annotated[np.ndarray, Field("balls", np.int32, index="balls", none=True, fill=-1)]
    balls: Annotated[np.ndarray, Field("balls 3")]  # VALUE Q, VISITS, ENOUGH: visits at which it splits
    used: Annotated[np.ndarray, Field("1", np.int64, counts="balls")]
    # binary digits of the state (HERE) and of the NEXT one
    buffer: Annotated[np.ndarray, Field("2 d", np.int64, scratch=True)]
    scratch: Annotated[np.ndarray, Field("A", scratch=True)]  # Q of each action


@checks(AdaptiveQLModel)
def check_trees(where, model):
    """The balls form trees: each split ball has 2^d later children, and a ball of depth k splits at 4^k visits."""
    roots, children = model.settings.horizon * model.settings.actions, 1 << model.settings.low.size
    used = int(model.used[0])
    require(used >= roots and (used - roots) % children == 0, f"{where}used", f"{used} balls are no whole families")
    parents = np.flatnonzero(model.child[:used] >= 0)
    firsts = model.child[parents].astype(np.int64)
    families = np.array_equal(np.sort(firsts), np.arange(roots, used, children)) and (firsts > parents).all()
    require(families, f"{where}child", "the children of balls are not all others, each of one ball before it")
    depth = np.zeros(used)
    for parent, first in zip(parents[np.argsort(firsts)], np.sort(firsts), strict=True):
        depth[first : first + children] = depth[parent] + 1
    require(depth.max() <= DIGITS, f"{where}child", f"a ball is deeper than {DIGITS}")
    require(np.array_equal(model.balls[:used, ENOUGH], 4.0**depth), f"{where}balls", "a ball does not split at 4^depth")
    require((model.balls[:used, VISITS] >= 0.0).all(), f"{where}balls", "visits are negative")


def new_adaptive_ql(horizon, actions, units, low, high, bonus, stream):
    """The state before any data, for states in the box [low, high] (d,)."""
    width = high - low
    inverse = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    settings = AdaptiveSettings(horizon, actions, units, low.copy(), inverse, bonus)
    roots = horizon * actions
    room = roots + 4 * horizon * 2**low.size
    check_memory((room, 3))
    balls = np.zeros((room, 3))
    balls[:roots, VALUE] = np.repeat(bonus.cap[:-1], actions)
    balls[:roots, ENOUGH] = 1.0
    return AdaptiveQLModel(
        settings, stream, np.full(room, -1, np.int32), balls, np.array([roots]), np.zeros((2, low.size), np.int64),
        np.zeros(actions),
    )  # fmt: skip


@has_room.implement(AdaptiveQLModel)
def has_room_adaptive(model):
    return model.child.size - model.used[0] >= model.settings.horizon << model.settings.low.size


@grow.implement_plain(AdaptiveQLModel)
def grow_adaptive(model):
    room = more(model.child.size)
    return model._replace(child=lengthen(model.child, room, 0, -1), balls=lengthen(model.balls, room, 0))


@rescaled.implement_plain(AdaptiveQLModel)
def rescale_adaptive(model, settings, keep):
    roots = settings.horizon * settings.actions
    step = np.zeros(model.child.size, np.int64)  # the step that each ball belongs to
    step[:roots] = np.repeat(np.arange(settings.horizon), settings.actions)
    for ball in range(int(model.used[0])):  # children have higher numbers than their parents
        first = int(model.child[ball])
        if first >= 0:
            step[first : first + 2**settings.low.size] = step[ball]
    keep = kept(model.settings.units, settings.units, keep)
    cap, balls = settings.bonus.cap[step], model.balls.copy()
    balls[:, VALUE] = cap - keep * (cap - balls[:, VALUE])
    return model._replace(settings=settings, balls=balls)


@inner
def locate(settings, state, place):
    """Write the first DIGITS binary digits of each coordinate of `state` in the unit box into `place` (d,)."""
    for j in range(place.size):
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
def values_at(model, place, h, q):
    """Write Q_h of a located state into `q` (A,)."""
    for a in range(q.size):
        q[a] = model.balls[leaf(model.child, h * q.size + a, place), VALUE]


@inner
def split(model, ball):
    """Split a ball; its children inherit its value and visits."""
    first, balls = model.used[0], model.balls
    children = 1 << model.settings.low.size
    for i in range(first, first + children):
        balls[i, VALUE], balls[i, VISITS], balls[i, ENOUGH] = (
            balls[ball, VALUE], balls[ball, VISITS], 4.0 * balls[ball, ENOUGH],
        )  # fmt: skip
    model.child[ball] = first
    model.used[0] = first + children


@choose.implement(AdaptiveQLModel, inline=True)
def choose_adaptive(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
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
        values_at(model, model.buffer[NEXT], h + 1, model.scratch)
        G += min(settings.bonus.cap[h + 1], largest(model.scratch))
    locate(settings, state, model.buffer[HERE])
    ball = leaf(model.child, h * settings.actions + action, model.buffer[HERE])
    n = balls[ball, VISITS] + 1.0
    balls[ball, VISITS] = n
    alpha = (H + 1.0) / (H + n)
    balls[ball, VALUE] = (1.0 - alpha) * balls[ball, VALUE] + alpha * (G + value(settings.bonus, h, n, 0.0, 0.0))
    if n >= balls[ball, ENOUGH]:
        split(model, ball)


@read_q.implement(AdaptiveQLModel)
def read_q_adaptive(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    values_at(model, model.buffer[HERE], h, out)


@read_values.implement(AdaptiveQLModel)
def read_values_adaptive(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    values_at(model, model.buffer[HERE], h, model.scratch)
    return min(model.settings.bonus.cap[h], largest(model.scratch))


@inner
def visits_at(model, place, h, out):
    """Write the visits of the balls that contain a located state into `out` (A,)."""
    for a in range(out.size):
        out[a] = model.balls[leaf(model.child, h * out.size + a, place), VISITS]


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


def leaves(model, ball):
    """The undivided balls of a tree: lower corners (n, d) and sides (n,) in the unit box, and their numbers (n,).

    Plain Python, for read-outs.
    """
    d = model.settings.low.size
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
    """The balls that the box of states is divided into, for one step and action."""

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

    There is one partition of the box of states for each step and action. A ball of depth k, of radius 2^-k in units of
    the box, splits when it has 4^k visits.

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
        check_bounded(low, high, "AdaptiveQL")
        if low.size > MOST_DIMENSIONS:
            raise ValueError(
                f"observation_space: a ball splits into 2^d, so states may have {MOST_DIMENSIONS} dimensions at most; "
                f"got {low.size}"
            )
        bonus = self._counted(horizon, 1, actions)
        return new_adaptive_ql(horizon, actions, self.rewards.units, low, high, bonus, stream)

    def partition(self, step: int, action: int) -> Partition:
        """The balls of a step (from 0) and an action, for plotting."""
        model, spaces = self.check_started(), self.spaces
        h, a = spaces.check_step(step), spaces.check_action(action)
        corners, sides, numbers = leaves(model, h * spaces.actions + a)
        width = spaces.high - spaces.low
        low = spaces.low + width * corners
        high = spaces.low + width * (corners + sides[:, None])
        values = self.in_own_units(model.balls[numbers, VALUE], h)
        return Partition(low, high, values, model.balls[numbers, VISITS])
