"""Makes agents and environments from an experiment's tables, and lists what is available.

Hyper-parameters that are objects in Python are tables with a `name` in a file (see `kernelrl.agents.codec`).
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any, TypeGuard

import gymnasium as gym

import kernelrl
from kernelrl import envs
from kernelrl.agents import codec
from kernelrl.agents.base import Agent
from kernelrl.agents.registry import registered
from kernelrl.envs import ENVIRONMENTS
from kernelrl.envs.making import make_environment
from kernelrl.experiments.config import AgentEntry, Environment, ExperimentError, ProblemEntry
from kernelrl.geometry import metrics
from kernelrl.imports import imported, no_such
from kernelrl.peers import library
from kernelrl.peers.peer import Peer

__all__ = [
    "agent_class", "build_agent", "build_any", "build_environment", "build_peer", "configuration", "listing",
    "optimal_values", "public_agents",
]  # fmt: skip


def public_agents() -> dict[str, type[Agent]]:
    """The agents of this package by name."""
    found = {name: getattr(kernelrl, name) for name in kernelrl.__all__}
    return {name: value for name, value in found.items() if is_agent(value) and value is not Agent}


def is_agent(value: Any) -> TypeGuard[type[Agent]]:
    """Whether something is a class of agents."""
    return inspect.isclass(value) and issubclass(value, Agent)


def agent_class(name: str) -> type[Agent]:
    """The class of that public name or import path; only its own module is imported."""
    cls: Any
    if ":" not in name and "." not in name:
        cls = getattr(kernelrl, name) if name in kernelrl.__all__ else None
        if not is_agent(cls) or cls is Agent:
            raise ValueError(no_such("agent", name, public_agents()) + ', or an import path "module:Class"')
        return cls
    cls = imported(name)
    if not is_agent(cls):
        raise ValueError(f'"{name}" is not a subclass of kernelrl.Agent')
    return cls


def build_agent(entry: AgentEntry) -> Agent:
    """The agent of an entry; an error names the label, the key and what is allowed."""
    try:
        cls = agent_class(entry.agent)
        for key in entry.others:
            if key not in cls.hyper_parameters:
                raise ValueError(no_such("hyper-parameter", key, cls.hyper_parameters))
        values = {key: codec.decode(key, value) for key, value in entry.others.items()}
        if entry.preset is None:
            return cls(**values)
        if not hasattr(cls, "preset"):
            raise ValueError(f"preset: {entry.agent} has no presets; leave preset out")
        agent: Agent = cls.preset(entry.preset, **values)
        return agent
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ExperimentError(f'agents "{entry.label}": {error}') from error


def build_peer(entry: AgentEntry) -> Peer:
    """The agent of another library that an entry names; an error names the label, the key and what is allowed."""
    try:
        peer = Peer(entry.agent, entry.others)
        if entry.preset is not None:
            raise ValueError(f"preset: {entry.agent} has no presets; leave preset out")
        if entry.monitor:
            raise ValueError(f"monitor: {entry.agent} has no optimistic values to compare; leave monitor out")
        if entry.transitions:
            raise ValueError("transitions: they are recorded for kernelrl's own agents only; leave transitions out")
        return peer
    except (TypeError, ValueError) as error:
        raise ExperimentError(f'agents "{entry.label}": {error}') from error


def build_any(entry: AgentEntry) -> Any:
    """The agent of an entry, ours or of another library."""
    return build_peer(entry) if library.is_peer(entry.agent) else build_agent(entry)


def build_environment(environment: Environment) -> gym.Env[Any, Any]:
    """The environment of that table."""
    try:
        return make_environment(environment.id, environment.others)
    except ValueError as error:
        where = f'environments "{environment.label}"' if isinstance(environment, ProblemEntry) else "environment"
        raise ExperimentError(f"{where}: {error}") from error


def optimal_values(agent: Agent, entry: AgentEntry, env: gym.Env[Any, Any]) -> Callable[[Any, int], Any] | None:
    """V*_h, (states, step) → (n,), for an entry with `monitor`; else None."""
    if not entry.monitor:
        return None
    from kernelrl.envs.optimal import motion_of  # which imports SciPy

    name = env.spec.id if env.spec is not None else str(env)
    try:
        if motion_of(env) is None:  # estimates from draws would take each process minutes, and are not exact enough
            raise ValueError("it declares no motion, see docs/environments.md")
        optimal = envs.solve(env)
    except (ValueError, RuntimeError) as error:
        raise ExperimentError(
            f'agents "{entry.label}": monitor: the optimal values of {name} cannot be computed; leave monitor out '
            f"({error})"
        ) from error
    H = optimal.horizon
    if agent.spaces.horizon != H:
        raise ExperimentError(
            f'agents "{entry.label}": monitor: the optimal values of {name} are those of episodes of {H} steps, and '
            f"horizon is {agent.spaces.horizon}; leave horizon or monitor out"
        )
    return optimal.values


def configuration(agent: Agent | Peer, entry: AgentEntry, environment: Environment) -> dict[str, Any]:
    """Everything that determines the results of a run, except its seed, as JSON; includes the agent's defaults."""
    if isinstance(agent, Peer):
        settings = agent.settings
    else:
        settings = codec.encode_all({name: getattr(agent, name) for name in agent.hyper_parameters})
    content = {
        "agent": entry.agent,
        "hyper_parameters": settings,
        "environment": environment.table,
        "monitor": entry.monitor,
        **({"transitions": True} if entry.transitions else {}),
    }
    return dict(json.loads(json.dumps(content)))  # in the form in which it will be read, for comparing


# ---------------------------------------------------------------------------------------------------- what there is


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def listing() -> dict[str, dict[str, str]]:
    """Agents, environments and objects for hyper-parameters, each with one line about it."""
    return {
        "agents": {name: first_line(cls) for name, cls in public_agents().items()},
        "peers": library.listing(),
        "environments": {name: first_line(imported(entry_point)) for name, (entry_point, _) in ENVIRONMENTS.items()},
        "kernels": registered("kernel"),
        "metrics": {
            **{name: f"‖x-x'‖_p with p = {metric.p:g}" for name, metric in metrics.METRICS.items()},
            **registered("metric"),
        },
        "bonuses": registered("bonus"),
        "schedules": registered("bandwidth"),
        "lipschitz": registered("lipschitz"),
    }
