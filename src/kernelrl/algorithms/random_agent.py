"""The random agent: every action with the same probability. It learns nothing, so it is what others must leave behind.

Its optimistic Q_h is the only bound that needs no data, R_h.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.episodes.verbs import (
    choose,
    observe,
    read_q,
    read_values,
)
from kernelrl.jit.fields import Field
from kernelrl.jit.stream import index_below

__all__ = ["Uniform"]


class Uniform(NamedTuple):
    """The state of the random agent."""

    horizon: int
    actions: int
    stream: Annotated[np.ndarray, Field("4", np.uint64)]


@choose.implement(Uniform)
def choose_uniform(model, state, h):
    return index_below(model.stream, model.actions)


@observe.implement(Uniform)
def observe_uniform(model, state, action, reward, next_state, h, terminated):
    return None


@read_q.implement(Uniform)
def read_q_uniform(model, state, h, out):
    for a in range(out.size):
        out[a] = model.horizon - h


@read_values.implement(Uniform)
def read_values_uniform(model, state, h):
    return np.float64(model.horizon - h)
