"""kernelrl: sample-efficient exploration in continuous state spaces by optimistic kernel-based reinforcement learning.

Importing it registers the environments with Gymnasium. Agents are imported when first used, so that this is quick.
"""

from typing import TYPE_CHECKING, Any

from kernelrl.envs import register as _register

if TYPE_CHECKING:
    from kernelrl import envs as envs
    from kernelrl import presets as presets
    from kernelrl import schedules as schedules
    from kernelrl import theory as theory
    from kernelrl.agent import Agent
    from kernelrl.agents import GreedyKernelUCBVI, KernelUCBVI, RandomAgent
    from kernelrl.core import bonuses, kernels, metrics
    from kernelrl.grid_agents import UCBVI, AdaptiveQL, GreedyUCBVI, OptQL
    from kernelrl.history import History
    from kernelrl.loading import load

__version__ = "0.1.0"
__all__ = [
    "UCBVI",
    "AdaptiveQL",
    "Agent",
    "GreedyKernelUCBVI",
    "GreedyUCBVI",
    "History",
    "KernelUCBVI",
    "OptQL",
    "RandomAgent",
    "bonuses",
    "envs",
    "kernels",
    "load",
    "metrics",
    "presets",
    "schedules",
    "theory",
]

_WHERE = {
    "AdaptiveQL": "kernelrl.grid_agents",
    "Agent": "kernelrl.agent",
    "GreedyKernelUCBVI": "kernelrl.agents",
    "GreedyUCBVI": "kernelrl.grid_agents",
    "History": "kernelrl.history",
    "KernelUCBVI": "kernelrl.agents",
    "OptQL": "kernelrl.grid_agents",
    "RandomAgent": "kernelrl.agents",
    "UCBVI": "kernelrl.grid_agents",
    "load": "kernelrl.loading",
}
_MODULES = {
    "bonuses": "kernelrl.core.bonuses",
    "kernels": "kernelrl.core.kernels",
    "metrics": "kernelrl.core.metrics",
    "presets": "kernelrl.presets",
    "schedules": "kernelrl.schedules",
    "theory": "kernelrl.theory",
}

_register()


def __getattr__(name: str) -> Any:
    import importlib

    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _WHERE:
        value = getattr(importlib.import_module(_WHERE[name]), name)
    else:
        raise AttributeError(f"module 'kernelrl' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
