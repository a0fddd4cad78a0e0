"""The raw transitions of an agent whose settings may still change: from them its store can be made again.

The states are those of the environment, not embedded, so that the metric may change, too. The verbs are those of
`kernelrl.stores.samples`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.metrics import embed, squared_distances
from kernelrl.geometry.representatives import KNOWN
from kernelrl.jit.compile import compiled
from kernelrl.jit.fields import Field, Rows
from kernelrl.jit.handles import hand_over
from kernelrl.stores.interface import add, grown_for, has_room_for
from kernelrl.stores.merged import count_waiting
from kernelrl.stores.samples import ACTION, FROM, LOGGED, STEP, TERMINATED, TO, implement_log_verbs, place

__all__ = ["Log", "count_what_waits", "new_log", "relearnt", "steps_in"]


@implement_log_verbs
class Log(NamedTuple):
    """All transitions in order of arrival."""

    states: Annotated[np.ndarray, Field("2 logged d", fill=0)]  # FROM: x; TO: y
    # STEP, ACTION, TERMINATED
    labels: Annotated[np.ndarray, Rows(Field("logged", index="H"), Field("logged", index="A"), Field("logged", most=1))]
    reward: Annotated[np.ndarray, Field("logged", least="Lowest", most="Highest")]  # in the environment's units
    number: Annotated[np.ndarray, Field("1", np.int64, counts="logged")]  # LOGGED: how many there are


def new_log(d):
    """An empty log for states of `d` coordinates."""
    return Log(np.zeros((2, 0, d)), np.zeros((3, 0), np.int64), np.zeros(0), np.zeros(1, np.int64))


@compiled
def fill_steps(log, space, x, y, squares, low, high):
    """ρ²(x, y) of each transition into `squares` (n,), the range of embeddings into `low` and `high` (d,)."""
    for t in range(squares.size):
        embed(space, log.states[FROM, t], x)
        embed(space, log.states[TO, t], y)
        squared_distances(space, y.reshape((1, y.size, 1)), 0, 1, 1, x, squares[t : t + 1])
        for j in range(x.size):
            low[j], high[j] = min(low[j], min(x[j], y[j])), max(high[j], max(x[j], y[j]))


def steps_in(log, space):
    """(n,) ρ²(x, y) of each transition, and the lowest and the highest embedding (d,) of its states."""
    n, d = int(log.number[LOGGED]), log.states.shape[2]
    squares, low, high = np.zeros(n), np.full(d, np.inf), np.full(d, -np.inf)
    fill_steps(log, space, np.zeros(d), np.zeros(d), squares, low, high)
    return squares, low, high


@compiled
def count_logged(settings, store, log, first, most, x, y):
    """Count the samples that wait, then the logged ones from number `first` on; return how many of these are in.

    That is fewer than there are where `store` has no room for the next, and -1 once it has more than `most`
    representatives. `x` and `y` (places,) are scratch.
    """
    known, t = store.reps.number, first
    while True:
        begin = t
        while t < log.number[LOGGED] and known[KNOWN] <= most and has_room_for(store, settings, 1):
            step = log.labels[STEP, t]
            place(settings, log.states[FROM, t], step, x)
            place(settings, log.states[TO, t], step + 1, y)
            add(store, settings, x, log.labels[ACTION, t], log.reward[t], y, step, log.labels[TERMINATED, t] != 0)
            t += 1
        count_waiting(settings, store)
        if t == begin:
            return t if known[KNOWN] <= most else -1


def relearnt(settings, store, log, most):
    """`store`, which has no data yet, after all logged transitions; None for more than `most` representatives."""
    first = 0
    while first < log.number[LOGGED]:
        store = grown_for(store, settings, settings.horizon)
        first = counted(settings, store, log, first, most)
        if first < 0:
            return None
    return store


def count_what_waits(settings, store, log):
    """Count the samples that wait in `store`, with the code that learns again: it need not be compiled twice."""
    counted(settings, store, log, int(log.number[LOGGED]), np.iinfo(np.int64).max)


def counted(settings, store, log, first, most):
    """`count_logged` with scratch."""
    x = np.zeros(store.starts.shape[1])
    parts = hand_over(settings), hand_over(store), hand_over(log)
    return count_logged(*parts, first, most, x, np.zeros_like(x))
