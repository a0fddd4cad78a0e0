"""The verbs that every algorithm implements, each dispatched on the class of the algorithm's NamedTuple.

An algorithm is a NamedTuple ("model") of settings and arrays, and a compiled function for each verb below. `state` and
`next_state` are float64 (d,), `h` counts steps from 0, actions are 0 … A-1, rewards are already mapped to [0, 1].
The episode loop is (see `kernelrl.rollout`)

    begin_episode(model)
    for h in range(H):
        a = choose(model, x, h)
        …
        observe(model, x, a, r, y, h, terminated)
    end_episode(model)

Arrays never grow inside compiled code. `has_room` tells whether one more episode fits; if not, Python calls the plain
function `grow`, which returns a model with longer arrays.
"""

from kernelrl.core.compile import generic, inner
from kernelrl.core.stream import index_below

__all__ = ["begin_episode", "choose", "end_episode", "grow", "has_room", "largest", "observe", "pick_largest", "read_bonuses",
           "read_counts", "read_q", "read_values"]


@generic
def has_room(model):
    """Whether the transitions of one more episode fit into the arrays."""


@generic
def grow(model):
    """A model with twice the room (plain Python, not compiled)."""


@generic
def begin_episode(model):
    """Before an episode's first choice."""


@generic
def choose(model, state, h):
    """The action the learning policy takes."""


@generic
def observe(model, state, action, reward, next_state, h, terminated):
    """Take in one transition."""


@generic
def end_episode(model):
    """After an episode's last transition."""


@generic
def read_q(model, state, h, out):
    """Write the optimistic Q_h(state, ·) into `out` (A,), as the algorithm uses it to choose."""


@generic
def read_values(model, state, h):
    """The optimistic V_h(state)."""


@generic
def read_counts(model, state, h, out):
    """Write the generalized counts C_h(state, ·) into `out` (A,)."""


@generic
def read_bonuses(model, state, h, out):
    """Write the bonuses B_h(state, ·) into `out` (A,)."""


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
    best, ties = q[0], 1
    for a in range(1, q.size):
        if q[a] > best:
            best, ties = q[a], 1
        elif q[a] == best:
            ties += 1
    skip = index_below(stream, ties) if ties > 1 else 0
    for a in range(q.size):
        if q[a] == best:
            if skip == 0:
                return a
            skip -= 1
    return 0
