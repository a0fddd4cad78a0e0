"""The random agent: every action with the same probability. It learns nothing, so it is what others must leave behind.

Its optimistic Q_h is the only bound that needs no data, R_h.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.episodes.verbs import (
    begin_episode,
    choose,
    end_episode,
    grow,
    has_room,
    observe,
    read_bonuses,
    read_counts,
    read_q,
    read_values,
    rescaled,
)
from kernelrl.jit.fields import Field
from kernelrl.jit.stream import index_below

__all__ = ["Uniform"]


class Uniform(NamedTuple):
    """The state of the random agent."""

    horizon: int
    actions: int
    stream: Annotated[np.ndarray, Field("4", np.uint64)]


@has_room.implement(Uniform)
def has_room_uniform(model):
    return True


@grow.implement_plain(Uniform)
def grow_uniform(model):
    return model


@rescaled.implement_plain(Uniform)
def rescale_uniform(model, settings, keep):
    return model


@begin_episode.implement(Uniform)
def begin_uniform(model):
    return None


@choose.implement(Uniform)
def choose_uniform(model, state, h):
    return index_below(model.stream, model.actions)


@observe.implement(Uniform)
def observe_uniform(model, state, action, reward, next_state, h, terminated):
    return None


@end_episode.implement(Uniform)
def end_uniform(model):
    return None


@read_q.implement(Uniform)
def read_q_uniform(model, state, h, out):
    for a in range(out.size):
        out[a] = model.horizon - h


@read_values.implement(Uniform)
def read_values_uniform(model, state, h):
    return np.float64(model.horizon - h)


@read_counts.implement(Uniform)
def read_counts_uniform(model, state, h, out):
    for a in range(out.size):
        out[a] = 0.0


@read_bonuses.implement(Uniform)
def read_bonuses_uniform(model, state, h, out):
    for a in range(out.size):
        out[a] = 0.0
