"""What agents knew: read-outs on a grid of a two-dimensional state space, at some steps and after some episodes.

    value    the optimistic V_h
    count    Σ_a C_h(x, a), the generalized counts of all actions together
    bonus    B_h(x, a) of the action with the largest optimistic Q_h
    policy   the action of the policy to deploy; of a continuous one the first number, in LEVELS levels

and, for agents that partition the space, the leaves of each step and action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernelrl.envs.motion import Motion
from kernelrl.envs.outcomes import Outcomes
from kernelrl.loading import load
from kernelrl.reporting.statistics import Floats

__all__ = ["LEVELS", "Leaves", "Maps", "Plane", "can_be_read", "plane_of", "read_maps", "run_of_maps"]

CELLS = 40  # along the longer side
LEVELS = 33  # of a continuous action
MOST_STEPS = 10
MOST_SNAPSHOTS = 6
MOST_NUMBERS = 1_200_000  # in all maps of a page


@dataclass(frozen=True)
class Plane:
    """The grid on which maps are read."""

    x: Floats  # (w,) centres of the cells
    y: Floats  # (h,)
    low: Floats  # (2,) the box
    high: Floats
    equal: bool  # whether both axes have the same scale
    inside: NDArray[np.bool_]  # (h, w) whether a state can be there

    @property
    def states(self) -> Floats:
        """(h·w, 2), row by row from the lowest y."""
        X, Y = np.meshgrid(self.x, self.y)
        return np.column_stack([X.ravel(), Y.ravel()])


@dataclass(frozen=True)
class Leaves:
    """A partition of the plane for one step and action."""

    low: Floats  # (n, 2)
    high: Floats
    q: Floats  # (n,)


@dataclass(frozen=True)
class Maps:
    """What one label's first seed knew."""

    label: str
    file: str
    """Name of its figure."""
    seed: int
    horizon: int
    episodes: list[int]
    steps: list[int]
    actions: int
    fields: dict[str, Floats]
    """By name: (episodes, steps, h, w), NaN where no state can be."""
    leaves: dict[tuple[int, int, int], Leaves]
    """By index of episode, index of step, and action; empty for agents without a partition."""

    @property
    def value_range(self) -> tuple[float, float]:
        """From 0 to H, or, where values are not of rewards from 0 to 1, from the lowest value to the highest."""
        known = self.fields["value"][~np.isnan(self.fields["value"])]
        if not known.size or (known.min() >= 0.0 and known.max() <= self.horizon):
            return 0.0, float(self.horizon)
        return float(known.min()), float(max(known.max(), known.min() + 1e-9))

    @property
    def highest_q(self) -> float:
        """The largest Q of a leaf, but at least H: the Q by which agents choose is not clipped."""
        return max([float(self.horizon), *(float(leaves.q.max()) for leaves in self.leaves.values())])


def plane_of(env: gym.Env[Any, Any] | None, motion: Motion | Outcomes | None) -> Plane | None:
    """The grid for maps, or None if the states are not of two bounded dimensions."""
    if env is None:
        return None
    space: Any = env.observation_space
    if getattr(space, "shape", None) != (2,) or not hasattr(space, "low"):
        return None
    low, high = np.asarray(space.low, float), np.asarray(space.high, float)
    if not np.isfinite(high - low).all() or (high <= low).any():
        return None
    width, height = high - low
    equal = bool(0.25 <= width / height <= 4)
    w = CELLS if not equal or width >= height else round(CELLS * width / height)
    h = CELLS * 3 // 4 if not equal else CELLS if height >= width else round(CELLS * height / width)
    x, y = (low[j] + (high[j] - low[j]) * (np.arange(n) + 0.5) / n for j, n in enumerate((w, h)))
    plane = Plane(x, y, low, high, equal, np.ones((h, w), bool))
    return Plane(x, y, low, high, equal, possible(motion, plane.states).reshape(h, w))


def possible(motion: Motion | Outcomes | None, states: Floats) -> NDArray[np.bool_]:
    """Which states (n, 2) lie in a room, and are where a projection leaves them."""
    if motion is None:
        return np.ones(len(states), bool)
    inside = (states[:, None] >= motion.low) & (states[:, None] <= motion.high)  # (n, rooms, 2)
    found = np.asarray(np.any(np.all(inside, axis=2), axis=1), bool)
    if isinstance(motion, Motion) and motion.project is not None:
        found &= abs(motion.project(states) - states).max(axis=1) < 1e-9
    return found


def run_of_maps(runs: tuple[Any, ...]) -> Any:
    """The run of a label whose maps are read: the first with snapshots."""
    return next((run for run in runs if run.snapshots()), runs[0])


def can_be_read(agent: Any) -> bool:
    """Whether an agent has anything for maps; those of other libraries have not."""
    return any(hasattr(agent, name) for name in READ_OUT.values())


def read_maps(run: Any, last: Any, file: str, plane: Plane, share: int) -> Maps:
    """The maps of a run, from its snapshots and its `last` agent; `share` is about how many numbers they may have."""
    snapshots: list[tuple[int, Any]] = [(episode, path) for episode, path in run.snapshots() if episode < run.episodes]
    chosen = spread(len(snapshots), MOST_SNAPSHOTS - 1)
    agents = [(snapshots[i][0], load_agent(run, snapshots[i][1])) for i in chosen]
    agents.append((run.episodes, last))
    H, A = agents[-1][1].spaces.horizon, agents[-1][1].spaces.actions
    steps = spread(H, max(3, min(MOST_STEPS, share // (4 * plane.inside.size * 5))))
    names = [name for name in FIELDS if hasattr(agents[-1][1], READ_OUT[name])]
    fields = {name: np.full((len(agents), len(steps), *plane.inside.shape), np.nan) for name in names}
    leaves = {}
    for e, (_, agent) in enumerate(agents):
        for s, h in enumerate(steps):
            for name in names:
                fields[name][e, s][plane.inside] = FIELDS[name](agent, plane.states[plane.inside.ravel()], h)
            if hasattr(agent, "partition") and agent.spaces.net is None:
                for a in range(A):
                    found = agent.partition(h, a + agent.spaces.first_action)
                    leaves[e, s, a] = Leaves(found.low, found.high, found.q_values)
    shown = A if agents[-1][1].spaces.net is None else LEVELS
    return Maps(run.label, file, run.seed, H, [episode for episode, _ in agents], steps, shown, fields, leaves)


def load_agent(run: Any, path: Path) -> Any:
    """The agent of a snapshot; reading the run's last agent first imports a user's own class."""
    try:
        return load(path, trust=True)  # like the experiment's other files
    except ValueError:
        run.agent()
        return load(path, trust=True)


def spread(n: int, most: int) -> list[int]:
    """At most `most` of 0 … n-1, evenly spaced, including the first and the last."""
    return [int(i) for i in np.unique(np.linspace(0, n - 1, min(n, most)).round())] if n else []


def read_count(agent: Any, states: Floats, h: int) -> Floats:
    """Σ_a C_h(x, a)."""
    total: Floats = agent.counts(states, h).sum(axis=1)
    return total


def read_bonus(agent: Any, states: Floats, h: int) -> Floats:
    """B_h of the action with the largest optimistic Q_h."""
    best = agent.q_values(states, h).argmax(axis=1)
    bonus: Floats = agent.bonuses(states, h)[np.arange(len(states)), best]
    return bonus


def read_policy(agent: Any, states: Floats, h: int) -> Floats:
    """The deployed action, from 0, or the level of a continuous one."""
    numbers, net = agent.deployed_actions(agent.spaces.check_states(states), h), agent.spaces.net
    if net is None:
        return np.asarray(numbers, float)
    first = net.points[numbers, 0] - net.low[0]
    return np.asarray(np.rint(first / max(net.high[0] - net.low[0], 1e-300) * (LEVELS - 1)), float)


FIELDS: dict[str, Callable[[Any, Floats, int], Floats]] = {
    "value": lambda agent, states, h: agent.values(states, h),
    "count": read_count,
    "bonus": read_bonus,
    "policy": read_policy,
}
READ_OUT = {"value": "values", "count": "counts", "bonus": "bonuses", "policy": "act"}
