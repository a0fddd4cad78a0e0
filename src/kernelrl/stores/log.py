"""The raw transitions of an agent whose settings may still change: from them its store can be made again.

The states are those of the environment, not embedded, so that the metric may change, too. The verbs are those of
`kernelrl.stores.samples`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from kernelrl.geometry.metrics import embed, squared_distances
from kernelrl.jit.compile import compiled
from kernelrl.jit.fields import Field, Rows
from kernelrl.stores.samples import FROM, LOGGED, TO, implement_log_verbs

__all__ = ["Log", "first_rows", "new_log", "steps_in"]


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


def first_rows(states, next_states, terminated, steps):
    """The rows (of n) at which episodes begin: those of step 0, in whatever order episodes were told.

    Where steps are unknown, and so all equal: where the state (d,) is not the next state of the row before, or that one
    ended.
    """
    if not len(states):
        return np.zeros(0, np.int64)
    if (steps != steps[0]).any() and (steps == 0).any():
        return np.flatnonzero(steps == 0)
    goes_on = (states[1:] == next_states[:-1]).all(axis=1) & ~terminated[:-1]
    goes_on &= (steps[1:] > steps[:-1]) | (steps[1:] == steps[:-1]).all()
    return np.concatenate([[0], 1 + np.flatnonzero(~goes_on)])
