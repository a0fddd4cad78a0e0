"""Balls: what the algorithms on adaptive partitions share (`adaptive_ql`, `adamb`).

With continuous actions there is a tree of balls for each step, of the joint box of states and actions; with Discrete
actions there is one of the box of states for each step and action. Balls are boxes, balls of the maximum norm in the
unit box. One that splits is halved along every axis, into 2^d children that have consecutive numbers.

A model has `settings` with the fields horizon, actions, units, trees, axes, finest, low, inverse, bonus and mask, and
the arrays child, balls, used, buffer, scratch and stack (see `kernelrl.algorithms.adaptive_ql`). The first ball of
(h, a) has the number h·A + a, or h in the joint box.

In the joint box the action that is played is the centre of a ball. It is one of a net (`kernelrl.agents.action_net`)
that has the centres of all balls up to the depth `finest`, beyond which balls do not split.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernelrl.agents import storage
from kernelrl.agents.base import Floats
from kernelrl.agents.spaces import Spaces
from kernelrl.algorithms.grid_agent import Baseline
from kernelrl.episodes.verbs import choose, pick, read_counts, read_q
from kernelrl.geometry.dyadic import DIGITS, depths, leaf, locate
from kernelrl.geometry.grid import check_bounded
from kernelrl.jit.compile import compiled, in_both, inner
from kernelrl.jit.fields import require
from kernelrl.jit.policy_verb import deployed_action
from kernelrl.jit.stream import index_below
from kernelrl.portable.forms import Form
from kernelrl.portable.trees import JointTrees, Trees

__all__ = [
    "ENOUGH", "HERE", "NEXT", "VALUE", "VISITS", "Partition", "PartitionAgent", "ball_of", "best_ball", "bins_for",
    "check_balls", "children_of", "deploy_joint", "finest_depth", "implement_shared_verbs", "leaves", "played_centre",
    "scratch_arrays", "shape_of_box", "values_at", "visits_at",
]  # fmt: skip

VALUE, VISITS, ENOUGH = range(3)  # of `balls`
HERE, NEXT = range(2)  # of `buffer`
MOST_DIMENSIONS = 12  # a ball splits into 2^d
MOST_ACTIONS = 2.0**12  # of a net, about


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


def shape_of_box(low, high, axes, actions):
    """What the settings of a model have for states in the box [low, high] (d,): trees, finest, low, inverse."""
    width = high - low
    inverse = np.where(width > 0, 1.0 / np.where(width > 0, width, 1.0), 0.0)
    return 1 if axes else actions, finest_depth(axes) if axes else DIGITS, low.copy(), inverse


def scratch_arrays(settings):
    """The arrays `buffer`, `scratch` and `stack` of a model."""
    stack = np.zeros((settings.finest * 2**settings.axes + 1, 2), np.int64)
    return np.zeros((2, settings.low.size + settings.axes), np.int64), np.zeros(settings.actions), stack


def check_balls(where, model, exponent):
    """The balls form trees: each split ball has 2^d later children, one of depth k splits at 2^(γ·k) visits."""
    used, settings = int(model.used[0]), model.settings
    roots = settings.horizon * settings.trees
    depth = depths(where, "used", model.child, used, roots, children_of(settings))
    require(depth.max() <= settings.finest, f"{where}child", f"a ball is deeper than {settings.finest}")
    enough = np.allclose(model.balls[:used, ENOUGH], 2.0 ** (exponent * depth), rtol=1e-12, atol=0.0)
    require(enough, f"{where}balls", f"a ball does not split at 2^({exponent:g}·depth)")
    require((model.balls[:used, VISITS] >= 0.0).all(), f"{where}balls", "visits are negative")


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

    `played_centre` then returns its action, the number of its centre in the net. Of equal ones the first is taken,
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
def played_centre(model):
    """The number of the action that is the centre of the ball found by the last call of `best_ball`."""
    return model.stack[model.stack.shape[0] - 1, 0]


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
def visits_at(model, place, h, out):
    """Write the visits of the balls that contain a located state into `out` (A,)."""
    for a in range(out.size):
        out[a] = model.balls[ball_of(model, place, h, a), VISITS]


# ------------------------------------------------------------------------------------------------------ shared verbs


def implement_shared_verbs(cls):
    """Give a model of balls the verbs that are the same for all of them."""
    choose.implement(cls, inline=True)(best_action)
    read_q.implement(cls)(q_of)
    read_counts.implement(cls)(counts_of)
    return cls


def best_action(model, state, h):
    locate(model.settings, state, model.buffer[HERE])
    if model.settings.axes > 0:
        best_ball(model, model.buffer[HERE], h, True)
        return played_centre(model)
    values_at(model, model.buffer[HERE], h, model.scratch)
    return pick(model.settings.mask, state, model.scratch, model.stream)


def q_of(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    values_at(model, model.buffer[HERE], h, out)


def counts_of(model, state, h, out):
    locate(model.settings, state, model.buffer[HERE])
    visits_at(model, model.buffer[HERE], h, out)


@compiled
def deploy_joint(model, states, h, out):
    """Write the centre of the best ball at each of `states` (n, d) into `out` (n,)."""
    for i in range(out.size):
        locate(model.settings, states[i], model.buffer[HERE])
        best_ball(model, model.buffer[HERE], h, False)
        out[i] = played_centre(model)


class JointBalls(NamedTuple):
    """Balls of a joint box, whose policy is deployed."""

    model: Any


@deployed_action.implement(JointBalls)
def best_joint(rule, state, h, q):
    model = rule.model
    locate(model.settings, state, model.buffer[HERE])
    best_ball(model, model.buffer[HERE], h, False)
    return played_centre(model)


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


class PartitionAgent(Baseline, abstract=True):
    """A baseline whose data are in balls."""

    action_bins = staticmethod(bins_for)

    def _check_box(self, spaces: Spaces) -> int:
        """The number of axes of the action space, 0 for Discrete actions; or an error if balls cannot divide a box."""
        axes = 0 if spaces.net is None else len(spaces.net.bins)
        check_bounded(spaces.low, spaces.high, type(self).__name__)
        if spaces.low.size + axes > MOST_DIMENSIONS:
            raise ValueError(
                f"observation_space: a ball splits into 2^d, so states, together with continuous actions, may have "
                f"{MOST_DIMENSIONS} dimensions at most; got {spaces.low.size + axes}"
            )
        if spaces.net is not None and not (spaces.net.high > spaces.net.low).all():
            raise ValueError(f"action_space: each axis must have a width, got {spaces.net.low} to {spaces.net.high}")
        return axes

    def deployed_actions(self, states: Floats, step: int) -> npt.NDArray[np.int64]:
        """(n,) actions of the policy that is greedy in Q; continuous ones are the centres of balls."""
        if self.spaces.net is None:
            return super().deployed_actions(states, step)
        found = np.zeros(len(states), np.int64)
        deploy_joint(self.handle(), states, step, found)
        return found

    def deployed_q(self, states: Floats, step: int) -> Floats:
        """(n, A) Q_h of Discrete actions.

        It stands here so that masks use it, though `deployed_actions` is this class's own.
        """
        return super().deployed_q(states, step)

    def policy_rule(self) -> Any:
        """A copy of the balls."""
        return super().policy_rule() if self.spaces.net is None else JointBalls(storage.copied(self.model))

    def evidence_at(self, state: Floats, step: int, most: int) -> dict[str, Any] | None:
        """The balls that contain the state; of each action, or of the joint box."""
        spaces, boxes = self.spaces, []
        for a in range(1 if spaces.net is not None else spaces.actions):
            found = self.partition(step) if spaces.net is not None else self.partition(step, a + spaces.first_action)
            d = state.size
            inside = (found.low[:, :d] <= state) & ((state < found.high[:, :d]) | (found.high[:, :d] >= spaces.high))
            for i in np.flatnonzero(inside.all(axis=1)):
                box = {"low": found.low[i].tolist(), "high": found.high[i].tolist()}
                action = None if spaces.net is not None else a + spaces.first_action
                data = {"visits": float(found.visits[i]), "q": float(found.q_values[i])}
                boxes.append({"action": action, **box, **data})
        widths = [f"{b['high'][0] - b['low'][0]:.4g}" for b in boxes]
        text = f"{len(boxes)} balls contain the state, of widths {', '.join(widths[:8])} along the first axis"
        return {"kind": "cells", "number": int(self.model.used[0]), "text": text, "boxes": boxes}

    def explained_notes(self) -> list[str]:
        """What the bonus is here."""
        return [f"{type(self).__name__} keeps Q of balls; the bonus shown is that of the ball's visits"]

    def policy_form(self, map_code: str | None = None) -> Form:
        """The trees of balls."""
        model, settings = self.model, self.model.settings
        used, trees, kind = int(model.used[0]), settings.trees, Trees if settings.axes == 0 else JointTrees
        self.require_data(int(model.balls[:used, VISITS].sum()))
        return kind(
            settings.low, settings.inverse, model.child[:used].copy(), model.balls[:used, VALUE].copy(), trees,
            tuple(range(settings.horizon)), settings.axes, settings.finest,
        )  # fmt: skip

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
