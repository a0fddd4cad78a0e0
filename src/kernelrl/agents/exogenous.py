"""Certificates for systems with exogenous noise: the net of actions, and transitions as plans take them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from kernelrl.agents.action_net import LIMIT, ActionNet
from kernelrl.agents.rows import Rows
from kernelrl.agents.spaces import Spaces
from kernelrl.certifying.exogenous_making import ExogenousPlan, Moves, Net, check_cells, plan_exogenous
from kernelrl.models.exogenous import ALL, Exogenous

__all__ = ["check_sizes", "finer_net", "net_bins", "plan_rows"]

Floats = npt.NDArray[np.float64]


def net_bins(model: Exogenous, space: gym.Space[Any], cell: float) -> tuple[int, ...] | None:
    """How many actions the net has on each axis: neighbours are at most `action_cell` apart; None: Discrete actions."""
    if not isinstance(space, gym.spaces.Box):
        return None
    if model.noise_of != ALL:
        raise ValueError(
            'noise_of: "action" is one law for each action, of which a Box has too many; with noise_of="all" the noise '
            "has the same law for all of them"
        )
    low, high = (np.asarray(bound, np.float64).reshape(-1) for bound in (space.low, space.high))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise ValueError(f"env: a net needs bounded actions, and these are {space}")
    apart = model.action_cell or cell
    bins = tuple(max(2, math.ceil(width / apart - 1e-6) + 1) for width in (high - low).tolist())
    if math.prod(bins) > LIMIT:
        raise ValueError(
            f"action_cell: actions at most {apart:g} apart are {math.prod(bins):,}, more than {LIMIT:,}; give a larger "
            "action_cell"
        )
    return bins


def check_sizes(model: Exogenous, spaces: Spaces, cell: float) -> None:
    """Refuse state spaces without cells, and cells that are too small, before there are data."""
    actions = spaces.actions if spaces.net is None else math.prod(net_bins(model, spaces.net.space, cell) or ())
    check_cells(model, spaces.low, spaces.high, actions, spaces.horizon, cell)


def finer_net(
    model: Exogenous, spaces: Spaces, rows: Rows, cell: float, played: Any = None
) -> tuple[Spaces, Rows, Any]:
    """Spaces and rows with the net of the plan in place of theirs, and the actions as they were played.

    These are `played`, or else those of the net of `spaces`, which is that of an agent.
    """
    if spaces.net is None:
        return spaces, rows, rows.actions + spaces.first_action
    space = spaces.net.space
    net = ActionNet.of(space, net_bins(model, space, cell), spaces.horizon)
    played = spaces.net.points[rows.actions] if played is None else played
    return (
        replace(spaces, actions=net.size, net=net), rows._replace(actions=net.numbers(played)), played,
    )  # fmt: skip


def plan_rows(
    model: Exogenous, spaces: Spaces, rows: Rows, played: Any, reward_range: tuple[float, float], delta: float,
    cell: float, progress: bool | None,
) -> ExogenousPlan:  # fmt: skip
    """The plan from checked rows; `played` are the actions as they were, which those of `rows` are near to."""
    moves = Moves(rows.states, rows.actions, played, rows.rewards, rows.next_states, rows.steps, rows.terminated)
    return plan_exogenous(
        model, spaces.low, spaces.high, net_of(spaces), moves, spaces.horizon, reward_range, delta, cell, progress
    )


def net_of(spaces: Spaces) -> Net:
    """The actions of the plan."""
    net = spaces.net
    if net is None:
        return Net(np.arange(spaces.actions) + spaces.first_action, 0.0, 0.0)
    apart = [(b - a) / (n - 1) if n > 1 else 0.0 for a, b, n in zip(net.low, net.high, net.bins, strict=True)]
    widest = np.abs([net.low, net.high]).max().astype(net.dtype)
    return Net(net.points, 0.5 * float(max(apart)), 4.0 * float(np.spacing(widest)))
