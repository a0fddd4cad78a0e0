"""Saves an agent: its hyper-parameters, its state besides the model, the model's arrays, and an open episode."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from kernelrl.agents import codec, storage

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["save", "state_of"]


def save(agent: Agent, path: str | os.PathLike[str]) -> None:
    """Write the agent to one file."""
    from kernelrl import __version__

    header: dict[str, Any] = {
        "version": __version__,
        "agent": type(agent).__name__,
        "hyper_parameters": codec.encode_all({name: getattr(agent, name) for name in agent.hyper_parameters}),
    }
    arrays = {} if agent.model is None else dict(storage.arrays_of(agent.model))
    if agent.model is not None:
        header["started"] = state_of(agent)
    if agent.running is not None:
        header["open"] = agent.running.to_store()
        arrays |= dict(agent.running.before.arrays())
    if agent.rigs is not None:
        from kernelrl.agents import rig_files

        header["rigs"] = rig_files.to_store(agent.rigs)
        arrays |= rig_files.arrays_of_rigs(agent.rigs, agent)
    storage.write_file(path, header, arrays)


def state_of(agent: Agent) -> dict[str, Any]:
    """The whole state except the model's arrays, as JSON."""
    spaces, rewards = agent.spaces, agent.rewards
    return {
        "low": [str(bound) for bound in spaces.low], "high": [str(bound) for bound in spaces.high],
        "shape": list(spaces.shape), "discrete": spaces.discrete, "actions": spaces.actions,
        "first_action": spaces.first_action, "horizon": spaces.horizon, "seed": agent.seed,
        "episodes": agent.episodes, "action_net": None if spaces.net is None else spaces.net.to_store(),
        "reward_range": [rewards.low, rewards.high, rewards.empty], "beyond": agent.outside,
        "free_steps": agent.free_steps,
        **({"numbers": agent.numbers} if agent.numbers > agent.episodes else {}),
        **agent.to_store(),
    }  # fmt: skip
