"""The verbs that every algorithm implements, each dispatched on the class of the algorithm's NamedTuple.

An algorithm is a NamedTuple ("model") of settings and arrays, and a function for each verb below. `state` and
`next_state` are float64 (d,), `h` counts steps from 0, actions are 0 … A-1, rewards are raw, in the environment's
units. Read-outs are in mapped units (see `kernelrl.stores.units`).
The episode loop is (see `kernelrl.episodes.loop`)

    begin_episode(model)
    for h in range(H):
        a = choose(model, x, h)
        …
        observe(model, x, a, r, y, h, terminated)
    end_episode(model)

Arrays never grow inside compiled code. `has_room` tells whether one more episode fits; if not, Python calls the plain
function `grow`, which returns a model with longer arrays.

Compiled callers compile the verbs into themselves. Python's calls go through two compiled functions, `perform` for
what learning needs and `read_at` for the read-outs, so that what the verbs share is compiled once and not once for each
of them. `has_room` only compares sizes: Python runs it as it is.
"""

import numpy as np

from kernelrl.jit.compile import compiled, generic, inner
from kernelrl.jit.stream import index_below

__all__ = [
    "READ_BONUSES",
    "READ_COUNTS",
    "READ_Q",
    "READ_VALUES",
    "begin_episode",
    "choose",
    "end_episode",
    "grow",
    "has_room",
    "largest",
    "observe",
    "pick",
    "pick_largest",
    "read_bonuses",
    "read_counts",
    "read_q",
    "read_rows",
    "read_values",
    "rescaled",
]

BEGIN, CHOOSE, OBSERVE, END, VALUE = range(5)  # what `perform` does
READ_Q, READ_VALUES, READ_COUNTS, READ_BONUSES = range(4)  # what `read_at` does
NOTHING = np.zeros(0)


def via_perform(verb):
    """How Python calls a verb that takes at most a state and a step."""

    def call(model, state=NOTHING, h=0):
        return perform(model, verb, state, 0, 0.0, NOTHING, h, False)

    return call


def via_read(verb):
    """How Python calls a verb that writes what it reads at one state."""

    def call(model, state, h, out):
        read_at(model, verb, state, 1, h, out)

    return call


def observe_from_python(model, state, action, reward, next_state, h, terminated):
    """How Python calls `observe`."""
    perform(model, OBSERVE, state, action, reward, next_state, h, terminated)


@generic(interpreted=True)
def has_room(model):
    """Whether the transitions of one more episode fit into the arrays."""


@generic
def grow(model):
    """A model with twice the room (plain Python, not compiled)."""


@generic
def rescaled(model, settings, keep):
    """The model with all its data under `settings`, whose units of reward are others (plain Python, not compiled).

    Values that only fall have `keep` times their distance from the cap; an algorithm that plans has planned again.
    """


@generic(from_python=via_perform(BEGIN))
def begin_episode(model):
    """Before an episode's first choice."""


@generic(from_python=via_perform(CHOOSE))
def choose(model, state, h):
    """The action the learning policy takes."""


@generic(from_python=observe_from_python)
def observe(model, state, action, reward, next_state, h, terminated):
    """Take in one transition."""


@generic(from_python=via_perform(END))
def end_episode(model):
    """After an episode's last transition."""


@generic(from_python=via_read(READ_Q))
def read_q(model, state, h, out):
    """Write the optimistic Q_h(state, ·) into `out` (A,), as the algorithm uses it to choose."""


@generic(from_python=via_perform(VALUE))
def read_values(model, state, h):
    """The optimistic V_h(state)."""


@generic(from_python=via_read(READ_COUNTS))
def read_counts(model, state, h, out):
    """Write the generalized counts C_h(state, ·) into `out` (A,)."""


@generic(from_python=via_read(READ_BONUSES))
def read_bonuses(model, state, h, out):
    """Write the bonuses B_h(state, ·) into `out` (A,)."""


@compiled
def perform(model, verb, state, action, reward, next_state, h, terminated):
    """Do what the verb of that code does and return its result, if it has one, as a float."""
    if verb == BEGIN:
        begin_episode(model)
    elif verb == CHOOSE:
        return np.float64(choose(model, state, h))
    elif verb == OBSERVE:
        observe(model, state, action, reward, next_state, h, terminated)
    elif verb == END:
        end_episode(model)
    else:
        return read_values(model, state, h)
    return 0.0


@compiled
def read_at(model, verb, states, n, h, out):
    """Read at `n` states, one after the other in `states` (n·d,), into `out` (n·m,)."""
    d, m = states.size // n, out.size // n
    for i in range(n):
        x, entries = states[i * d : (i + 1) * d], out[i * m : (i + 1) * m]
        if verb == READ_Q:
            read_q(model, x, h, entries)
        elif verb == READ_VALUES:
            entries[0] = read_values(model, x, h)
        elif verb == READ_COUNTS:
            read_counts(model, x, h, entries)
        else:
            read_bonuses(model, x, h, entries)


def read_rows(model, verb, states, h, out):
    """Read at all `states` (n, d) in one call; `verb` is a READ_…, row i of `out` (n, A) or (n, 1) is of state i."""
    if len(states):
        read_at(model, verb, states.reshape(-1), len(states), h, out.reshape(-1))


@inner
def largest(q):
    """max(q)."""
    best = q[0]
    for a in range(1, q.size):
        best = max(best, q[a])
    return best


@inner
def pick_largest(q, stream):
    """The index of the largest entry of `q` (A,); equals are told apart by the stream, which is used only then."""
    best, choice, ties = q[0], 0, 1
    for a in range(1, q.size):
        # Selections, not branches: which action is the best cannot be foreseen.
        ties = 1 if q[a] > best else ties + (q[a] == best)
        choice = a if q[a] > best else choice
        best = max(best, q[a])
    if ties == 1:
        return choice
    skip = index_below(stream, ties)
    for a in range(q.size):
        if q[a] == best:
            if skip == 0:
                return a
            skip -= 1
    return choice


@inner
def pick(q, random_ties, stream):
    """The index of the largest entry of `q` (A,), the lowest one of equals unless the stream is to tell them apart."""
    if random_ties:
        return pick_largest(q, stream)
    choice = 0
    for a in range(1, q.size):
        choice = a if q[a] > q[choice] else choice
    return choice
