"""Compiled dynamics whose action is a number of an interval, played with the actions of a net."""
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from typing import Any, NamedTuple

import numpy as np

from kernelrl.envs.interface import advance, reset

__all__ = ["OnNet", "on_net"]


class OnNet(NamedTuple):
    """Dynamics, and the actions (A,) of the net."""

    env: Any
    actions: np.ndarray


@reset.implement(OnNet)
def reset_on_net(env, seed, stream, state):
    reset(env.env, seed, stream, state)


@advance.implement(OnNet)
def advance_on_net(env, stream, state, action, next_state):
    return advance(env.env, stream, state, env.actions[int(action)], next_state)


def on_net(dynamics: Any, net: Any) -> Any:
    """The dynamics as an agent with that net plays them; None is no net."""
    return dynamics if net is None else OnNet(dynamics, np.ascontiguousarray(net.points[:, 0]))
