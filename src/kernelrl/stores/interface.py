"""The interface of a store: verbs dispatched on its class.

    Samples   every sample                          `stores/samples.py`
    Merged    counts at representative states       `stores/merged.py`
    Counts    counts in the cells of a grid         `stores/counts.py`

A store keeps transitions, and a plan (see `kernelrl.planning.interface`) computes values from them. The estimates that
a plan reads have a shape of their own in each store: sums over samples, smoothed counts, counts.

States are embedded, (d,), or, for `Counts`, the numbers of cells. Data of all steps are in one pool (`stationary`) or
in one pool for each step.
"""

from kernelrl.jit.compile import generic, inner

__all__ = ["add", "grown_for", "has_ended", "has_room_for", "pool", "samples_in", "start_states"]


@generic(required=True)
def add(store, settings, x, action, reward, y, h, terminated):
    """Add a transition from `x` to `y` at step `h`; return whether it led somewhere new, where that is known."""


@generic(required=True)
def has_room_for(store, settings, samples):
    """Whether so many more transitions fit."""


@generic(required=True)
def grown_for(store, settings, samples):
    """The same data with room for so many more transitions (plain Python, not compiled)."""


@generic(required=True)
def samples_in(store):
    """How many transitions have been added."""


@generic(required=True)
def has_ended(store):
    """Whether any transition ended its episode by a termination (plain Python)."""


@generic(required=True)
def start_states(store):
    """(n, d) embedded start states of the last episodes (plain Python)."""


@inner
def pool(settings, h):
    """The pool of data that step `h` uses."""
    return 0 if settings.stationary else h
