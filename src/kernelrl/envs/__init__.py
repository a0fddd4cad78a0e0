"""Environments with compiled dynamics, one file each, and what is needed to write another.

`CompiledEnv`, with the verbs `reset` and `advance`, is for your own environments (see docs/extending.md). `register`
registers this package's environments with Gymnasium as `kernelrl/…`; nothing is compiled, and numba is not imported,
until one of them is made or accessed by name.
"""

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from kernelrl.envs.ambulance import Ambulance
    from kernelrl.envs.compiled import CompiledEnv
    from kernelrl.envs.finite import FiniteValues, solve_finite
    from kernelrl.envs.interface import advance, reset
    from kernelrl.envs.oil import Oil
    from kernelrl.envs.optimal import OptimalValues, solve
    from kernelrl.envs.pball import PBall2D
    from kernelrl.envs.puddle_world import PuddleWorld
    from kernelrl.envs.ramp import Ramp
    from kernelrl.envs.sampled import SampledValues
    from kernelrl.envs.square_world import SquareWorld
    from kernelrl.envs.twin_rooms import TwinRooms, twin_rooms_fold

__all__ = [
    "Ambulance",
    "CompiledEnv",
    "FiniteValues",
    "Oil",
    "OptimalValues",
    "PBall2D",
    "PuddleWorld",
    "Ramp",
    "SampledValues",
    "SquareWorld",
    "TwinRooms",
    "advance",
    "register",
    "reset",
    "solve",
    "solve_finite",
    "twin_rooms_fold",
]

# Gymnasium's name → entry point and time limit.
ENVIRONMENTS = {
    "kernelrl/Ambulance-v0": ("kernelrl.envs.ambulance:Ambulance", 5),
    "kernelrl/Oil-v0": ("kernelrl.envs.oil:Oil", 5),
    "kernelrl/PBall2D-v0": ("kernelrl.envs.pball:PBall2D", 30),
    "kernelrl/PuddleWorld-v0": ("kernelrl.envs.puddle_world:PuddleWorld", 50),
    "kernelrl/Ramp-v0": ("kernelrl.envs.ramp:Ramp", 2),
    "kernelrl/SquareWorld-v0": ("kernelrl.envs.square_world:SquareWorld", 20),
    "kernelrl/TwinRooms-v0": ("kernelrl.envs.twin_rooms:TwinRooms", 20),
}


def register() -> None:
    """Register the environments with Gymnasium; a second call does no harm."""
    for name, (entry_point, steps) in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=entry_point, max_episode_steps=steps)


# Names that are imported when first used → their modules.
WHERE = {
    "Ambulance": "ambulance",
    "CompiledEnv": "compiled",
    "FiniteValues": "finite",
    "Oil": "oil",
    "OptimalValues": "optimal",
    "PBall2D": "pball",
    "PuddleWorld": "puddle_world",
    "Ramp": "ramp",
    "SampledValues": "sampled",
    "SquareWorld": "square_world",
    "TwinRooms": "twin_rooms",
    "advance": "interface",
    "reset": "interface",
    "solve": "optimal",
    "solve_finite": "finite",
    "twin_rooms_fold": "twin_rooms",
}


def __getattr__(name: str) -> Any:
    if name not in WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
