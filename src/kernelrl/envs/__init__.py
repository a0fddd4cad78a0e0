"""Environments with compiled dynamics, one file each.

`register` makes them known to Gymnasium under `kernelrl/…`; nothing is compiled, and numba is not even imported, until
one of them is made or asked for by name.
"""

from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from kernelrl.envs.finite import FiniteValues, solve_finite
    from kernelrl.envs.optimal import OptimalValues, solve
    from kernelrl.envs.ramp import Ramp
    from kernelrl.envs.twin_rooms import TwinRooms, twin_rooms_fold

__all__ = [
    "FiniteValues",
    "OptimalValues",
    "Ramp",
    "TwinRooms",
    "register",
    "solve",
    "solve_finite",
    "twin_rooms_fold",
]

# Gymnasium's name → entry point and time limit.
ENVIRONMENTS = {
    "kernelrl/Ramp-v0": ("kernelrl.envs.ramp:Ramp", 2),
    "kernelrl/TwinRooms-v0": ("kernelrl.envs.twin_rooms:TwinRooms", 20),
}


def register() -> None:
    """Register the environments with Gymnasium; again is no harm."""
    for name, (entry_point, steps) in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry_point, max_episode_steps=steps)


def __getattr__(name: str) -> Any:
    if name in ("TwinRooms", "twin_rooms_fold"):
        from kernelrl.envs import twin_rooms

        return getattr(twin_rooms, name)
    if name == "Ramp":
        from kernelrl.envs import ramp

        return ramp.Ramp
    if name in ("FiniteValues", "solve_finite"):
        from kernelrl.envs import finite

        return getattr(finite, name)
    if name in ("OptimalValues", "solve"):
        from kernelrl.envs import optimal

        return getattr(optimal, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
