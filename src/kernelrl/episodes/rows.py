"""The loop over logged transitions, the rows of a table: `observe` for each, and nothing else.

There is no choice, no episode and no plan. As in the episode loop, arrays never grow inside compiled code: the loop
ends early when room runs out, and Python calls `grow`.
"""

from typing import Any

from kernelrl.episodes.verbs import has_room, observe
from kernelrl.jit.compile import compiled

__all__ = ["take_compiled", "take_rows"]


def take_rows(
    model: Any, states: Any, actions: Any, rewards: Any, next_states: Any, steps: Any, terminated: Any,
    first: Any, last: Any,
) -> Any:  # fmt: skip
    """Learn from rows `first` to `last`-1; return the number of the first one that was not taken in.

    `states` and `next_states` are (n, d), the others (n,); actions count from 0.
    """
    for i in range(first, last):
        if not has_room(model):
            return i
        observe(model, states[i], actions[i], rewards[i], next_states[i], steps[i], terminated[i])
    return last


take_compiled = compiled(take_rows)
