"""AdaMB (Sinclair, Wang, Jain, Banerjee and Yu 2020): a model of the environment on an adaptive partition.

The balls are those of adaptive Q-learning (`kernelrl.algorithms.balls`): for each step a partition P_h of the joint box
of states and actions or, with Discrete actions, one of the box of states for each action. A ball B of depth k has the
diameter D(B) = 2^-k in the unit box, S(B) are its states. S(P_h), the partition of the states that P_h induces,
consists of the smallest S(B). Distances are those of the maximum norm.

A ball has its data: n visits, the mean reward r̂, and where its transitions led, T̂(·|B), a distribution over the cells
of its own depth into which the box of states can be divided. When B has

    n ≥ 2^(γ·k)

visits it splits, and its children inherit all its data; what is known of T̂ then spreads evenly over smaller cells.
After each episode, for h = H-1, …, 0,

    Q_h(B) = r̂ + Σ_A T̂(A|B)·mean of Ṽ_{h+1} over A + B_h(n) + L·D(B)         for all B in P_h; R_h without a visit
    V_h(A) ← min(V_h(A), max of Q_h(B) over all B whose S(B) contains A)       for all A in S(P_h); R_h at first
    Ṽ_h(x) = min over A' of V_h(A') + L·d(A, A')                               for x in A, d between centres

and Ṽ_H = 0. With a mask the maximum in V_h(A) is over the balls of actions that are allowed at the centre of A.

The action is that of the best ball that contains the state, as in adaptive Q-learning. In the paper B_h is
the sum of the bonuses of rewards and transitions, L·D(B) stands for its BIAS(B), and Ṽ is the Lipschitz extension from
the centres of cells. Three things are simpler here. Ṽ is constant on each A. A cell A of T̂ has the mean of Ṽ over it,
not Ṽ at its centre, so that coarse cells are as good as the fine ones in them. And B_h(n) = s/√n, as in the authors'
experiments: in the paper's bonus, the factor of the distance between T̂ and the transitions is an unknown constant.
These experiments have no L either, neither L·D nor the extension, which is `lipschitz=None`.

Sums along the trees make a sweep linear in the number of balls, of cells, and of pairs of a ball and a cell that was
reached from it: transitions stay at the ball that had them, and Σ T̂·Ṽ of a ball is its parent's and its own; a maximum
over balls goes down from the cells S(B) to the leaves; means go up. For the extension each leaf searches the tree of
cells, and leaves out those whose lowest V, at the distance of their nearest point, is not below what it has.
"""

import math
from typing import Any

import numpy as np

from kernelrl.agents.base import Agent
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.adamb_model import (
    ENDED,
    EXTENDED,
    KEPT,
    LOWEST,
    MEAN,
    REWARD,
    TOP,
    AdaMBModel,
    add_transition,
    new_adamb,
    split,
)
from kernelrl.algorithms.balls import (
    ENOUGH,
    HERE,
    NEXT,
    VALUE,
    VISITS,
    PartitionAgent,
    ball_of,
    children_of,
    values_at,
)
from kernelrl.arguments import positive
from kernelrl.bonuses.counted import root_only
from kernelrl.bonuses.interface import value
from kernelrl.episodes.verbs import (
    begin_episode,
    catch_up,
    end_episode,
    observe,
    read_bonuses,
    read_values,
    rescaled,
    value_of,
)
from kernelrl.geometry.dyadic import centre, centre_distance, gap_to, leaf_at, locate, parts_of, steps_of
from kernelrl.geometry.masks import check_function, restricts
from kernelrl.jit.compile import compiled, inner
from kernelrl.jit.handles import hand_over
from kernelrl.stores.units import after_end, mapped_sum

__all__ = ["AdaMB"]

MOST_EXPONENT = 24.0  # of splitting


@observe.implement(AdaMBModel, inline=True)
def observe_adamb(model, state, action, reward, next_state, h, terminated):
    settings, balls = model.settings, model.balls
    locate(settings, state, model.buffer[HERE])
    ball = ball_of(model, model.buffer[HERE], h, action)
    balls[ball, VISITS] += 1.0
    balls[ball, REWARD] += reward
    if terminated:
        balls[ball, ENDED] += 1.0
    elif h + 1 < settings.horizon:
        locate(settings, next_state, model.buffer[NEXT])
        add_transition(model, h, ball, model.buffer[NEXT])
    if balls[ball, VISITS] >= balls[ball, ENOUGH] and model.states.depth[model.cell[ball]] < settings.finest:
        split(model, h, ball)
    model.stale[0] = 1


# --------------------------------------------------------------------------------------------------------------- values


@inner
def mapped_lipschitz(settings):
    """L in mapped units, 0 if there is none."""
    return max(0.0, settings.lipschitz) * settings.units.factor


@inner
def margin(model, h, ball):
    """B_h(n) + L·D(B)."""
    bias = mapped_lipschitz(model.settings) * 0.5 ** model.states.depth[model.cell[ball]]
    return value(model.settings.bonus, h, model.balls[ball, VISITS], 0.0, 0.0) + bias


@inner
def renew_balls(model, h):
    """Q_h of all balls, and the largest of those with the same S(B), in TOP."""
    settings, balls, work, total = model.settings, model.balls, model.work, model.total
    end, children = after_end(settings.units, settings.horizon, h), children_of(settings)
    cell = np.int64(h)
    while cell >= 0:
        work[cell, TOP] = -math.inf
        cell = np.int64(model.states.following[cell])
    ball = np.int64(h * settings.trees)
    while ball >= 0:
        reached, e, child = total[ball], np.int64(model.first[ball]), np.int64(model.child[ball])
        while e >= 0:
            reached += model.times[e] * work[model.reached[e], MEAN]
            e = np.int64(model.after[e])
        if child >= 0:
            for i in range(child, child + children):
                total[i] = reached
        else:
            n, cell = balls[ball, VISITS], np.int64(model.cell[ball])
            if n > 0.0:
                collected = mapped_sum(settings.units, balls[ball, REWARD], n) + reached + balls[ball, ENDED] * end
                balls[ball, VALUE] = collected / n + margin(model, h, ball)
            work[cell, TOP] = max(work[cell, TOP], balls[ball, VALUE])
        ball = np.int64(model.following[ball])


@inner
def best_allowed(model, h, cell):
    """The largest Q_h of the balls that contain a leaf, of the actions that are allowed at its centre."""
    states, settings, place, x = model.states, model.settings, model.buffer[HERE], model.centre
    for j in range(x.size):
        place[j] = states.corner[cell, j]
        wide = settings.inverse[j] > 0.0
        x[j] = settings.low[j] + (centre(states, cell, j) / settings.inverse[j] if wide else 0.0)
    values_at(model, place, h, model.scratch)
    return value_of(settings.mask, x, model.scratch)


@inner
def renew_leaves(model, h):
    """V_h of all leaves; cells below them have the same, and an infinite TOP."""
    states, work, values, parts = model.states, model.work, model.values, parts_of(model.states)
    cell = np.int64(h)
    while cell >= 0:
        first, divided = np.int64(states.child[cell]), states.divided[cell]
        if not divided:
            if restricts(model.settings.mask) and work[cell, TOP] < math.inf:
                work[cell, TOP] = best_allowed(model, h, cell)
            values[cell, KEPT] = min(values[cell, KEPT], work[cell, TOP])
            values[cell, EXTENDED] = values[cell, KEPT]
        if first >= 0:
            for i in range(first, first + parts):
                if divided:
                    work[i, TOP] = max(work[i, TOP], work[cell, TOP])
                else:
                    values[i, KEPT], work[i, TOP] = values[cell, KEPT], math.inf
        cell = np.int64(states.following[cell])


@inner
def extended(model, h, cell, L):
    """The smallest V_h(A') + L·d(A, A') over all leaves A', for the leaf A = `cell`."""
    states, work, search, parts = model.states, model.work, model.search, parts_of(model.states)
    best, left = model.values[cell, KEPT], 1
    search[0] = h
    while left > 0:
        left -= 1
        other = search[left]
        if work[other, LOWEST] + L * gap_to(states, cell, other) >= best:
            continue
        if states.divided[other]:
            for i in range(parts):
                search[left] = states.child[other] + i
                left += 1
        else:
            best = min(best, model.values[other, KEPT] + L * centre_distance(states, cell, other))
    return best


@inner
def extend(model, h):
    """Ṽ_h of all leaves; cells below them have the same."""
    states, work, values, parts = model.states, model.work, model.values, parts_of(model.states)
    L, cell = mapped_lipschitz(model.settings), model.states.last[h]
    while cell >= 0:  # parts before what they are part of
        work[cell, LOWEST] = values[cell, KEPT]
        if states.divided[cell]:
            work[cell, LOWEST] = math.inf
            for i in range(parts):
                work[cell, LOWEST] = min(work[cell, LOWEST], work[states.child[cell] + i, LOWEST])
        cell = np.int64(states.preceding[cell])
    cell = np.int64(h)
    while cell >= 0:
        if not states.divided[cell]:
            if work[cell, TOP] < math.inf:
                values[cell, EXTENDED] = extended(model, h, cell, L)
            first = np.int64(states.child[cell])
            if first >= 0:
                for i in range(first, first + parts):
                    values[i, EXTENDED] = values[cell, EXTENDED]
        cell = np.int64(states.following[cell])


@inner
def renew_means(model, h):
    """The mean of Ṽ_h over each cell."""
    states, work, parts = model.states, model.work, parts_of(model.states)
    cell = model.states.last[h]
    while cell >= 0:
        mean = model.values[cell, EXTENDED]
        if states.divided[cell]:
            mean = 0.0
            for i in range(parts):
                mean += work[states.child[cell] + i, MEAN]
            mean /= parts
        work[cell, MEAN] = mean
        cell = np.int64(states.preceding[cell])


@compiled
def renew(model):
    """A sweep: Q_h, V_h and Ṽ_h of all steps, the last one first."""
    for h in range(model.settings.horizon - 1, -1, -1):
        renew_balls(model, h)
        renew_leaves(model, h)
        if model.settings.lipschitz >= 0.0:
            extend(model, h)
        renew_means(model, h)
    model.stale[0] = 0


@rescaled.implement_plain(AdaMBModel)
def rescale_adamb(model, settings, keep):
    states = model.states
    steps = steps_of(states.child, states.child.size, np.arange(settings.horizon), parts_of(states))
    cap = settings.bonus.cap[steps][:, None]
    model = model._replace(settings=settings, values=cap - keep * (cap - model.values))
    renew(hand_over(model))
    return model


@begin_episode.implement(AdaMBModel)
def begin_adamb(model):
    if model.stale[0] != 0:
        renew(model)


@catch_up.implement_plain(AdaMBModel)
def renew_adamb_now(model):
    if model.stale[0] != 0:
        renew(hand_over(model))


@end_episode.implement(AdaMBModel)
def end_adamb(model):
    if model.stale[0] != 0:
        renew(model)


# ------------------------------------------------------------------------------------------------------------- reading


@read_values.implement(AdaMBModel)
def read_values_adamb(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    return model.values[leaf_at(model.states, h, model.buffer[HERE]), EXTENDED]


@read_bonuses.implement(AdaMBModel)
def read_bonuses_adamb(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    for a in range(out.size):
        out[a] = margin(model, h, ball_of(model, model.buffer[HERE], h, a))


class AdaMB(PartitionAgent):
    """AdaMB (Sinclair et al. 2020): a model of the environment on a partition, finer where there are more visits.

    There is one partition of the joint box of states and actions for each step or, if actions are Discrete, one of the
    box of states for each step and action. A ball of depth k, of side 2^-k in units of the box, splits when it has
    2^(γ·k) visits. Values are computed again after each episode, by backward induction over all balls.

    Args:
        horizon: number of steps of an episode; None takes the environment's time limit.
        reward_range: lowest and highest reward of the environment; "auto" takes them from the rewards that are seen.
        bonus_scale: s in the bonus s/√n.
        lipschitz: L, by how much Q and V can differ per unit of the box scaled to [0, 1]: balls get L·2^-k more, and
            values are bounded by those of other states. None, as in the authors' experiments, does neither.
        split_exponent: γ; None takes the number of dimensions of states, but at least 2.
        mask: a compiled function (state, action) → bool, which Discrete actions are allowed in a state (docs/masks.md).
    """

    hyper_parameters = ("horizon", "reward_range", "bonus_scale", "lipschitz", "split_exponent", "mask")

    def __init__(
        self, *, horizon: int | None = None, reward_range: tuple[float, float] | str = "auto",
        bonus_scale: float = 1.0, lipschitz: float | None = None, split_exponent: float | None = None,
        mask: Any = None,
    ) -> None:  # fmt: skip
        Agent.__init__(self, horizon, reward_range)  # the bonus is always the same, and has no δ
        self.mask = check_function(mask)
        self.bonus_scale = positive("bonus_scale", bonus_scale, zero=True)
        self.lipschitz = None if lipschitz is None else positive("lipschitz", lipschitz, zero=True)
        self.split_exponent = None if split_exponent is None else positive("split_exponent", split_exponent)
        if self.split_exponent is not None and not 0.5 <= self.split_exponent <= MOST_EXPONENT:
            raise ValueError(
                f"split_exponent must lie between 0.5 and {MOST_EXPONENT:g}, or be None; got {split_exponent!r}"
            )

    def new_model(self, spaces: Spaces, stream: Any) -> Any:
        """One ball for each step and action."""
        axes, low, high = self._check_box(spaces), spaces.low, spaces.high
        exponent = max(2.0, float(low.size)) if self.split_exponent is None else self.split_exponent
        bonus = root_only(spaces.horizon, self.bonus_scale)
        return new_adamb(
            spaces.horizon, spaces.actions, axes, self.rewards.units, low, high, bonus,
            self.compiled_mask(spaces), self.lipschitz, exponent, stream,
        )  # fmt: skip
