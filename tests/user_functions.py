"""Compiled functions of a user's, in a module that can be imported."""

from numba import njit
from numba.extending import register_jitable


@njit
def around(x, y):
    across = abs(x[0] - y[0])
    return min(across, 2 - across)


@register_jitable
def difference(a, b):
    return abs(a - b)


@njit
def overloaded(x, y):
    """Uses a function that numba knows by an overload only, which no cache key stands for."""
    return difference(x[0], y[0])


@njit
def mirror(state, out):
    for j in range(state.size):
        out[j] = abs(state[j])


class Namespace:
    """Functions may lie deeper."""

    around = around


@njit
def only_right_of_half(state, action):
    """A mask: action 0 only where the first coordinate is above 0.5."""
    return action != 0 or state[0] > 0.5


@njit
def each_on_its_side(state, action):
    """A mask: action 0 not at the left, the others not at the right."""
    return state[0] > 0.4 if action == 0 else state[0] < 0.8
