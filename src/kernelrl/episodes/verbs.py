"""The verbs that every algorithm implements, each dispatched on the class of the algorithm's NamedTuple.

An algorithm is a NamedTuple ("model") of settings and arrays, and a function for each verb below. `state` and
`next_state` are float64 (d,), `h` counts steps from 0, actions are 0 … A-1, rewards are raw, in the environment's
units. Read-outs are in mapped units (see `kernelrl.stores.units`). `choose` and `observe` must be implemented; the
others have defaults, the bodies of their declarations; a read-out that an algorithm does not implement is NaN.
The episode loop is (see `kernelrl.episodes.loop`)

    begin_episode(model)
    for h in range(H):
        a = choose(model, x, h)
        …
        observe(model, x, a, r, y, h, terminated)
    end_episode(model)

Transitions also come without episodes, from tables (`kernelrl.episodes.rows`): `observe` for each, then `catch_up`.

Arrays never grow inside compiled code. `has_room` says whether one more episode fits; if not, Python calls the plain
function `grow`, which returns a model with longer arrays.

In compiled callers the verbs are compiled as part of the caller. Python's calls go through two compiled functions,
`perform` for learning and `read_at` for read-outs, so that code which these verbs share is compiled only once.
"""

import math
from typing import Any

import numpy as np

from kernelrl.geometry.masks import NOTHING_ALLOWED, Everything, allows, largest_allowed
from kernelrl.jit.compile import compiled, compiled_as, generic, in_both, inner
from kernelrl.jit.handles import Handle, hand_over
from kernelrl.jit.policy_verb import deployed_action
from kernelrl.jit.stream import index_below

__all__ = [
    "READ_BONUSES",
    "READ_COUNTS",
    "READ_Q",
    "READ_VALUES",
    "begin_episode",
    "catch_up",
    "check_model",
    "choose",
    "deployed_action",
    "end_episode",
    "grow",
    "has_room",
    "largest",
    "next_action",
    "observe",
    "pick",
    "pick_largest",
    "read_bonuses",
    "read_counts",
    "read_q",
    "read_rows",
    "read_values",
    "rescaled",
    "turn",
    "value_of",
]

BEGIN, CHOOSE, OBSERVE, END, TURN = range(5)
READ_Q, READ_VALUES, READ_COUNTS, READ_BONUSES = range(4)
NOTHING = np.zeros(0)


def via_perform(verb):
    """How Python calls a verb that takes at most a state and a step."""

    def call(model, state=NOTHING, h=0):
        return perform(hand_over(model), verb, state, 0, 0.0, NOTHING, h, False, False)

    return call


def via_read(verb):
    """How Python calls a read-out at one state."""

    def call(model, state, h, out=NOTHING):
        return read_at(hand_over(model), verb, state, 1, h, out)

    return call


def observe_from_python(model, state, action, reward, next_state, h, terminated):
    """How Python calls `observe`."""
    perform(hand_over(model), OBSERVE, state, action, reward, next_state, h, terminated, False)


def has_room_from_python(model):
    """How Python calls `has_room`: through its own entry point, which needs none of the other verbs' code."""
    return ask_for_room(hand_over(model))


@generic(from_python=has_room_from_python)
def has_room(model):
    """Whether the transitions of one more episode fit into the arrays."""
    return True


@generic(required=True)
def grow(model):
    """A model with twice the room (plain Python, not compiled); needed where `has_room` may be False."""


@generic
def rescaled(model, settings, keep):
    """The model with all its data under `settings`, which have other units of reward (plain Python, not compiled).

    Values that only fall get `keep` times their distance from the cap; an algorithm that plans plans again.
    `settings` is None if the model has none.
    """
    return model if settings is None else model._replace(settings=settings)


@generic(from_python=via_perform(BEGIN))
def begin_episode(model):
    """Called before an episode's first choice."""


@generic(from_python=via_perform(CHOOSE), required=True)
def choose(model, state, h):
    """The action of the learning policy."""


@generic(from_python=observe_from_python, required=True)
def observe(model, state, action, reward, next_state, h, terminated):
    """Learn from one transition."""


@generic(from_python=via_perform(END))
def end_episode(model):
    """Called after an episode's last transition."""


@generic
def catch_up(model):
    """Bring values up to date with transitions that came without episodes (plain Python, not compiled).

    Called once after all rows of a table (`Agent.learn_from`). An algorithm that plans plans here; by default it does
    so in `begin_episode`. An algorithm that learns in `end_episode` must say what is to be done instead.
    """
    begin_episode(model)


@generic(from_python=via_read(READ_Q))
def read_q(model, state, h, out):
    """Write the optimistic Q_h(state, ·) into `out` (A,), as the algorithm uses it to choose."""
    for a in range(out.size):
        out[a] = math.nan


@generic(from_python=via_read(READ_VALUES))
def read_values(model, state, h):
    """The optimistic V_h(state)."""
    return math.nan


@generic(from_python=via_read(READ_COUNTS))
def read_counts(model, state, h, out):
    """Write the generalized counts C_h(state, ·) into `out` (A,)."""
    for a in range(out.size):
        out[a] = math.nan


@generic(from_python=via_read(READ_BONUSES))
def read_bonuses(model, state, h, out):
    """Write the bonuses B_h(state, ·) into `out` (A,)."""
    for a in range(out.size):
        out[a] = math.nan


def check_model(model: Any) -> None:
    """Raise TypeError, naming the verb, unless the model is a NamedTuple that implements all required verbs."""
    cls = type(model)
    if not (isinstance(model, tuple) and hasattr(model, "_fields")):
        raise TypeError(f"new_model must return a NamedTuple, the state of the algorithm, got {model!r:.200}")
    for verb in (choose, observe, *([grow] if has_room.is_implemented(cls) else [])):
        if not verb.is_implemented(cls):
            how = f"{verb.__name__}.implement{'_plain' if verb is grow else ''}({cls.__name__})"
            raise TypeError(f"{cls.__name__} does not implement {verb.__name__}: write a function for @krl.verbs.{how}")


NOT_YET = -1  # in place of an action that has not been chosen


def choose_when_asked(model, state, h, ahead):
    """`next_action` in compiled callers."""
    return choose(model, state, h)


@compiled_as(choose_when_asked, inline=True)
def next_action(model, state, h, ahead):
    """The action at step `h`, unless `turn` has chosen it `ahead`."""
    return choose(model, state, h) if ahead == NOT_YET else ahead


@in_both
def observe_and_end(model, state, action, reward, next_state, h, terminated, over):
    """`turn` in compiled callers."""
    observe(model, state, action, reward, next_state, h, terminated)
    if over:
        end_episode(model)
    return NOT_YET


@compiled_as(observe_and_end, inline=True)
def turn(model, state, action, reward, next_state, h, terminated, over):
    """Learn from one transition, and end the episode if it is `over`; return the next action, or NOT_YET.

    From Python this is one compiled call that also chooses the next action: a call costs as much as most verbs do.
    A model that is wrapped for masks (`kernelrl.episodes.masked`) is called like this while there is no mask.
    """
    direct = model if isinstance(model, Handle) else getattr(model, "unmasked", None)
    if isinstance(direct, Handle):
        return perform(direct, TURN, state, action, reward, next_state, h, terminated, over)
    return observe_and_end(model, state, action, reward, next_state, h, terminated, over)


@compiled
def ask_for_room(model):
    """`has_room` for Python."""
    return has_room(model)


@compiled
def perform(model, verb, state, action, reward, next_state, h, terminated, over):
    """Call the verb with that code and return its result, if it has one, as a float."""
    if verb == TURN:
        observe_and_end(model, state, action, reward, next_state, h, terminated, over)
        return np.float64(NOT_YET if over else choose(model, next_state, h + 1))
    if verb == BEGIN:
        begin_episode(model)
    elif verb == CHOOSE:
        return np.float64(choose(model, state, h))
    elif verb == OBSERVE:
        observe(model, state, action, reward, next_state, h, terminated)
    else:
        end_episode(model)
    return 0.0


@compiled
def read_at(model, verb, states, n, h, out):
    """Read at `n` states, one after the other in `states` (n·d,), into `out` (n·m,); return the last value."""
    d, m = states.size // n, out.size // n
    value = 0.0
    for i in range(n):
        x, entries = states[i * d : (i + 1) * d], out[i * m : (i + 1) * m]
        if verb == READ_Q:
            read_q(model, x, h, entries)
        elif verb == READ_VALUES:
            value = read_values(model, x, h)
            entries[:] = value  # `entries` has at most one entry
        elif verb == READ_COUNTS:
            read_counts(model, x, h, entries)
        else:
            read_bonuses(model, x, h, entries)
    return value


def read_rows(model: Any, verb: int, states: Any, h: int, out: Any) -> None:
    """Read at all `states` (n, d) in one call; `verb` is a READ_…; row i of `out`, (n, A) or (n, 1), is for state i."""
    if len(states):
        read_at(hand_over(model), verb, states.reshape(-1), len(states), h, out.reshape(-1))


@inner
def largest(q: Any) -> Any:
    """max(q)."""
    best = q[0]
    for a in range(1, q.size):
        best = max(best, q[a])
    return best


@inner
def pick_largest(q: Any, stream: Any) -> Any:
    """The index of the largest entry of `q` (A,); ties are broken by the stream, which is used only then."""
    best, choice, ties = q[0], 0, 1
    for a in range(1, q.size):
        # Selections, not branches, since the best action is hard to predict.
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


@generic
def pick(mask: Any, state: Any, q: Any, stream: Any) -> Any:
    """The index of the largest entry of `q` (A,) among the actions that `mask` allows in `state`; ties as above."""
    best, choice, ties = -math.inf, -1, 0
    for a in range(q.size):
        if allows(mask, state, a):
            if choice < 0 or q[a] > best:
                best, choice, ties = q[a], a, 1
            elif q[a] == best:
                ties += 1
    if choice < 0:
        raise ValueError(NOTHING_ALLOWED)
    if ties == 1:
        return choice
    skip = index_below(stream, ties)
    for a in range(choice, q.size):
        if q[a] == best and allows(mask, state, a):
            if skip == 0:
                return a
            skip -= 1
    return choice


@pick.implement(Everything, inline=True)
def pick_of_all(mask, state, q, stream):
    return pick_largest(q, stream)


@generic
def value_of(mask: Any, state: Any, q: Any) -> Any:
    """The largest entry of `q` (A,) among the actions that `mask` allows in `state`."""
    return largest_allowed(mask, state, q)


@value_of.implement(Everything, inline=True)
def value_of_all(mask, state, q):
    return largest(q)
