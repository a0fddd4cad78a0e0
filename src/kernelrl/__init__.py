"""kernelrl: sample-efficient exploration in continuous state spaces by optimistic kernel-based reinforcement learning.

Importing it registers the environments with Gymnasium. Agents are imported when first used, so that this is quick.
"""

from typing import TYPE_CHECKING, Any

from kernelrl.envs import register as _register

if TYPE_CHECKING:
    from kernelrl import bonuses as bonuses
    from kernelrl import envs as envs
    from kernelrl import models as models
    from kernelrl import portable as portable
    from kernelrl import random as random
    from kernelrl import testing as testing
    from kernelrl import theory as theory
    from kernelrl.agents import callbacks as callbacks
    from kernelrl.agents import presets as presets
    from kernelrl.agents import schedules as schedules
    from kernelrl.agents.base import Agent
    from kernelrl.agents.certificates import Certificate, certify
    from kernelrl.agents.history import History
    from kernelrl.agents.registry import register
    from kernelrl.agents.spaces import Spaces
    from kernelrl.algorithms.adamb import AdaMB
    from kernelrl.algorithms.adaptive_ql import AdaptiveQL
    from kernelrl.algorithms.greedy_kernel_ucbvi import GreedyKernelUCBVI
    from kernelrl.algorithms.greedy_ucbvi import GreedyUCBVI
    from kernelrl.algorithms.kernel_ucbvi import KernelUCBVI
    from kernelrl.algorithms.opt_ql import OptQL
    from kernelrl.algorithms.random_agent import RandomAgent
    from kernelrl.algorithms.ucbvi import UCBVI
    from kernelrl.episodes import verbs as verbs
    from kernelrl.geometry import grid as grid
    from kernelrl.geometry import kernels as kernels
    from kernelrl.geometry import metrics as metrics
    from kernelrl.jit.fields import Field
    from kernelrl.loading import load
    from kernelrl.stores import units as units

__version__ = "0.2.0"
__all__ = [
    "UCBVI",
    "AdaMB",
    "AdaptiveQL",
    "Agent",
    "Certificate",
    "Field",
    "GreedyKernelUCBVI",
    "GreedyUCBVI",
    "History",
    "KernelUCBVI",
    "OptQL",
    "RandomAgent",
    "Spaces",
    "bonuses",
    "callbacks",
    "certify",
    "envs",
    "grid",
    "kernels",
    "load",
    "metrics",
    "models",
    "portable",
    "presets",
    "random",
    "register",
    "schedules",
    "testing",
    "theory",
    "units",
    "verbs",
]

_WHERE = {
    "AdaMB": "kernelrl.algorithms.adamb",
    "AdaptiveQL": "kernelrl.algorithms.adaptive_ql",
    "Agent": "kernelrl.agents.base",
    "Certificate": "kernelrl.agents.certificates",
    "Field": "kernelrl.jit.fields",
    "GreedyKernelUCBVI": "kernelrl.algorithms.greedy_kernel_ucbvi",
    "GreedyUCBVI": "kernelrl.algorithms.greedy_ucbvi",
    "History": "kernelrl.agents.history",
    "KernelUCBVI": "kernelrl.algorithms.kernel_ucbvi",
    "OptQL": "kernelrl.algorithms.opt_ql",
    "RandomAgent": "kernelrl.algorithms.random_agent",
    "Spaces": "kernelrl.agents.spaces",
    "UCBVI": "kernelrl.algorithms.ucbvi",
    "certify": "kernelrl.agents.certificates",
    "load": "kernelrl.loading",
    "register": "kernelrl.agents.registry",
}
_MODULES = {
    "bonuses": "kernelrl.bonuses",
    "callbacks": "kernelrl.agents.callbacks",
    "grid": "kernelrl.geometry.grid",
    "kernels": "kernelrl.geometry.kernels",
    "metrics": "kernelrl.geometry.metrics",
    "models": "kernelrl.models",
    "portable": "kernelrl.portable",
    "presets": "kernelrl.agents.presets",
    "random": "kernelrl.random",
    "schedules": "kernelrl.agents.schedules",
    "testing": "kernelrl.testing",
    "theory": "kernelrl.theory",
    "units": "kernelrl.stores.units",
    "verbs": "kernelrl.episodes.verbs",
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
