"""The two verbs of an environment: `reset` and `advance`.

An environment with compiled dynamics is a NamedTuple of its parameters with a compiled function for each verb; the
Gymnasium class around it is a `CompiledEnv` (see `kernelrl.envs.compiled`). Any other Gymnasium environment is wrapped
in a `GymEnvironment` (see `kernelrl.episodes.adapter`), whose functions are plain Python. The episode loop calls the
verbs in the same way for both.
"""

from typing import Any

from kernelrl.jit.compile import generic

__all__ = ["advance", "reset"]


@generic(required=True)
def reset(env: Any, seed: Any, stream: Any, state: Any) -> None:
    """Begin an episode: write a start state into `state` (d,).

    `stream` (uint64[4]) has been seeded with `seed` (int64), so its seed determines an episode; seeding it again does
    no harm.
    """


@generic(required=True)
def advance(env: Any, stream: Any, state: Any, action: Any, next_state: Any) -> Any:
    """Take `action` (0 … A-1) in `state`, write `next_state` (d,) and return (reward, terminated, truncated)."""
