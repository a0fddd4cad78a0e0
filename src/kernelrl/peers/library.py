"""Stable-Baselines3: which of its algorithms can be named, and the library itself, if it is installed."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from kernelrl.imports import no_such, one_line

__all__ = ["ALGORITHMS", "algorithm", "is_peer", "listing", "torch", "versions"]

PREFIX = "sb3:"
ALGORITHMS = {
    "A2C": "Advantage Actor Critic",
    "DQN": "Deep Q-Network, for Discrete actions",
    "PPO": "Proximal Policy Optimization",
    "SAC": "Soft Actor-Critic, for a Box of actions",
    "TD3": "Twin Delayed DDPG, for a Box of actions",
}
INSTALL = "pip install 'kernelrl[peers]'"


def is_peer(agent: str) -> bool:
    """Whether an experiment's `agent` names one of another library."""
    return agent.startswith(PREFIX)


def algorithm(agent: str) -> type[Any]:
    """The class of "sb3:PPO" and the like; a ValueError says which there are, or what to install."""
    name = agent.removeprefix(PREFIX)
    if name not in ALGORITHMS:
        raise ValueError(no_such("agent", agent, listing()))
    cls: type[Any] = getattr(imported(agent, "stable_baselines3"), name)
    return cls


def torch() -> Any:
    """PyTorch, on which the library is built."""
    return imported("Stable-Baselines3", "torch")


def imported(who: str, module: str) -> Any:
    """A module of the extra, or a ValueError that says how to install it."""
    if importlib.util.find_spec(module) is None:
        raise ValueError(f"{who} needs Stable-Baselines3, which is not installed: {INSTALL}")
    try:
        return importlib.import_module(module)
    except Exception as error:  # a broken installation fails in many ways
        raise ValueError(
            f"{who} needs Stable-Baselines3, which cannot be imported ({one_line(error)}): {INSTALL}"
        ) from error


def versions() -> dict[str, str]:
    """The versions that results depend on."""
    modules = {"stable-baselines3": "stable_baselines3", "torch": "torch"}
    return {name: str(imported(PREFIX, module).__version__) for name, module in modules.items()}


def listing() -> dict[str, str]:
    """The names of all algorithms, each with one line about it; nothing is imported."""
    return {PREFIX + name: f"{text} (Stable-Baselines3)" for name, text in ALGORITHMS.items()}
