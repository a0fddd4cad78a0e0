"""From an experiment's tables to agents and environments, and what there is to choose from.

Hyper-parameters that are objects in Python are tables with a `name` in a file:

    metric = {name = "lp", p = 2, scale = "box"}
    metric = {name = "folded", map = "kernelrl.envs:twin_rooms_fold"}
    metric = {name = "custom", function = "module:function"}
    kernel = {name = "exponential-power", p = 3}
    bonus = {name = "joint", delta = 0.1, episodes = 5000}
    bandwidth = {name = "power", start = 0.05, minimum = 0.012, exponent = 0.25}
    bandwidth = {name = "function", function = "module:function"}
    lipschitz = {name = "recursion", reward = 10, transition = 1}       # the tuple (λ_r, λ_p)

and None, which TOML does not have, is "none": `representatives = "none"`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Any

import gymnasium as gym

import kernelrl
from kernelrl import envs
from kernelrl.agents import storage
from kernelrl.agents.base import Agent
from kernelrl.agents.schedules import Power
from kernelrl.bonuses import smoothed as bonuses
from kernelrl.envs import ENVIRONMENTS
from kernelrl.envs.making import make_environment
from kernelrl.experiments.config import AgentEntry, Environment, ExperimentError
from kernelrl.geometry import kernels, metrics
from kernelrl.imports import imported, no_such

__all__ = [
    "agent_class", "build_agent", "build_environment", "configuration", "listing", "optimal_values", "public_agents",
]  # fmt: skip


def public_agents() -> dict[str, type[Agent]]:
    """The agents of this package by name."""
    found = {name: getattr(kernelrl, name) for name in kernelrl.__all__}
    return {
        name: value
        for name, value in found.items()
        if inspect.isclass(value) and issubclass(value, Agent) and value is not Agent
    }


def agent_class(name: str) -> type[Agent]:
    """The class of that public name or import path."""
    if ":" not in name and "." not in name:
        if name not in public_agents():
            raise ValueError(no_such("agent", name, public_agents()) + ', or an import path "module:Class"')
        return public_agents()[name]
    cls = imported(name)
    if not (inspect.isclass(cls) and issubclass(cls, Agent)):
        raise ValueError(f'"{name}" is not a subclass of kernelrl.Agent')
    return cls


# ---------------------------------------------------------------------------------------------- hyper-parameters


def power_schedule(start: float, minimum: float, exponent: float) -> Any:
    """σ_k = max(minimum, start·(1+k/100)^-exponent)."""
    return Power(start, minimum, exponent)


def own_function(function: str) -> Any:
    """A function of the number of the episode, given as "module:function"."""
    return imported(function)


def lp(p: float | str = 2.0, scale: Any = None) -> Any:
    """‖(x-x')/scale‖_p; scale is "box" or a list of a number a coordinate."""
    return metrics.Lp(float(p), scale)


def folded(map: str, metric: Any = "euclidean", defect: float | None = None) -> Any:
    """A metric between states mapped by a compiled function, given as "module:function"."""
    return metrics.Folded(imported(map), build_value("metric", metric), defect)


def custom(function: str) -> Any:
    """A compiled function of two states, given as "module:function"."""
    return metrics.Custom(imported(function))


def recursion(reward: float, transition: float) -> Any:
    """L_h = λ_r + λ_p·L_{h+1} from the constants of rewards and transitions."""
    return (reward, transition)


# hyper-parameter → name in a table → what makes the object of the table's other keys
TABLES: dict[str, dict[str, Callable[..., Any]]] = {
    "metric": {"lp": lp, "folded": folded, "custom": custom},
    "kernel": {"exponential-power": kernels.ExponentialPower},
    "bonus": {"simplified": bonuses.Simplified, "full": bonuses.Full, "joint": bonuses.Joint},
    "bandwidth": {"power": power_schedule, "function": own_function},
    "lipschitz": {"recursion": recursion},
}


def build_value(key: str, value: Any) -> Any:
    """A hyper-parameter from its value in the file."""
    if value == "none":
        return None
    if not isinstance(value, dict):
        return value
    makers = TABLES.get(key, {})
    if not makers:
        raise ValueError(f"{key}: a table is not allowed here, got {value}")
    name = value.get("name")
    if name not in makers:
        if name is None:
            raise ValueError(f"{key}: a table needs a name, one of {', '.join(makers)}; got {value}")
        raise ValueError(f"{key}: " + no_such("name", str(name), makers))
    others = {part: item for part, item in value.items() if part != "name"}
    allowed = inspect.signature(makers[name]).parameters
    for part in others:
        if part not in allowed:
            raise ValueError(f"{key}: {name}: " + no_such("key", part, allowed))
    for part, parameter in allowed.items():
        if parameter.default is parameter.empty and part not in others:
            raise ValueError(f"{key}: {name}: {part} is missing")
    try:
        return makers[name](**others)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{key}: {error}") from error


def build_agent(entry: AgentEntry) -> Agent:
    """The agent of an entry; an error names the label, the key and what is allowed."""
    try:
        cls = agent_class(entry.agent)
        for key in entry.others:
            if key not in cls.hyper_parameters:
                raise ValueError(no_such("hyper-parameter", key, cls.hyper_parameters))
        values = {key: build_value(key, value) for key, value in entry.others.items()}
        if entry.preset is None:
            return cls(**values)
        if not hasattr(cls, "preset"):
            raise ValueError(f"preset: {entry.agent} has no presets; leave preset out")
        agent: Agent = cls.preset(entry.preset, **values)
        return agent
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ExperimentError(f'agents "{entry.label}": {error}') from error


def build_environment(environment: Environment) -> gym.Env[Any, Any]:
    """The environment of that table."""
    try:
        return make_environment(environment.id, environment.others)
    except ValueError as error:
        raise ExperimentError(f"environment: {error}") from error


def optimal_values(agent: Agent, entry: AgentEntry, env: gym.Env[Any, Any]) -> Callable[[Any, int], Any] | None:
    """V*_h, (states, step) → (n,), for an entry with `monitor`; else None."""
    if not entry.monitor:
        return None
    name = env.spec.id if env.spec is not None else str(env)
    try:
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


def configuration(agent: Agent, entry: AgentEntry, environment: Environment) -> dict[str, Any]:
    """All that decides what a run of a seed computes, as JSON; defaults of the agent included."""
    content = {
        "agent": entry.agent,
        "hyper_parameters": {name: storage.encode(getattr(agent, name)) for name in agent.hyper_parameters},
        "environment": {"id": environment.id, **environment.others},
        "monitor": entry.monitor,
    }
    return dict(json.loads(json.dumps(content)))  # as it will be when read again, so that the two can be compared


# ---------------------------------------------------------------------------------------------------- what there is


def first_line(thing: Any) -> str:
    """The first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def listing() -> dict[str, dict[str, str]]:
    """Agents, environments, kernels and metrics, each with a line about it."""
    environments = {name: first_line(imported(entry_point)) for name, (entry_point, _) in ENVIRONMENTS.items()}
    shapes = {
        name: f"support {kernel.support:g}, outside the theory, since g(4) = 0"
        for name in kernels.OUTSIDE
        for kernel in [kernels.resolve_kernel(name)]
    }
    return {
        "agents": {name: first_line(cls) for name, cls in public_agents().items()},
        "environments": environments,
        "kernels": {
            "gaussian": first_line(kernels.Gaussian),
            "exponential-power": first_line(kernels.ExponentialPower),
            "compact": first_line(kernels.Compact),
            **shapes,
        },
        "metrics": {
            **{name: f"‖x-x'‖_p with p = {metric.p:g}" for name, metric in metrics.METRICS.items()},
            **{name: first_line(make) for name, make in TABLES["metric"].items()},
        },
    }
