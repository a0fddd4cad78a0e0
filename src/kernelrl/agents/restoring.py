"""Restores the state of an agent from a file, whose content is not trusted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import gymnasium as gym
import numpy as np

from kernelrl.agents import storage
from kernelrl.agents.action_net import LIMIT
from kernelrl.agents.archive import BEFORE, RIGS, Archive
from kernelrl.agents.episode import Running, Snapshot
from kernelrl.agents.reward_range import RewardRange, check_range
from kernelrl.agents.saving import state_of
from kernelrl.jit import fields

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["FIXED", "check_plausible", "read_beyond", "read_range", "read_started", "restore", "restore_open"]

KINDS = {
    "low": list, "high": list, "shape": list, "discrete": bool, "actions": int, "first_action": int, "horizon": int,
    "seed": int, "episodes": int, "free_steps": int,
}  # fmt: skip
LEAST = {"actions": 1, "first_action": -(2**53), "horizon": 1, "seed": 0, "episodes": 0, "free_steps": 0}
MOST = 2**53
FIXED = ("low", "high", "shape", "discrete", "actions", "first_action", "horizon", "seed", "action_net")
"""What never changes once an agent has been started."""


def restore(agent: Agent, started: dict[str, Any], archive: Archive, part: str = "") -> None:
    """Give a new agent the state that `save` wrote; raise ValueError if it is not a valid state.

    `part` says which arrays of the file are its own: "", or BEFORE for those before an open episode.
    """
    arguments = read_started(started)
    outlines = archive.outlines(part)
    check_plausible(started, outlines)
    agent.stored = started
    agent.start(*arguments)
    new, agent.model = agent.model, None  # until the state has been checked
    agent.numbers = read_numbers(started)
    for key in sorted(started.keys() ^ state_of(agent).keys()):
        raise ValueError(f"started has {'no ' if key not in started else ''}{key}")
    agent.outside, agent.free_steps = read_beyond(started["beyond"]), started["free_steps"]
    sizes = {"H": agent.spaces.horizon, "A": agent.spaces.actions, **extremes(agent)}
    archive.check_names([name for name, _ in storage.arrays_of(new)], part)
    fields.check_shapes(storage.with_arrays(new, outlines), new, **sizes)
    model = storage.with_arrays(new, {name: archive.read(part + name) for name in outlines})
    fields.check(model, new, **sizes)
    agent.model = fields.completed(model, new, **sizes)
    agent.episodes = started["episodes"]


def restore_open(agent: Agent, twin: Agent, found: dict[str, Any], archive: Archive) -> None:
    """Give an agent that was restored its open episode; `twin`, a new one, becomes what it was before the episode."""
    kinds = {"step": int, "state": list, "action": int, "mask": list, "over": bool, "before": dict}
    for key, kind in kinds.items():
        if key not in found:
            raise ValueError(f"open has no {key}")
        may_be_none = key in ("state", "action", "mask") and found[key] is None
        if type(found[key]) is not kind and not may_be_none:
            raise ValueError(f"open: {key} must be of type {kind.__name__}, got {found[key]!r:.200}")
    for key in sorted(found.keys() - kinds.keys()):
        raise ValueError(f"open has {key}, which is not expected")
    archive.check_names([], RIGS)
    restore(twin, found["before"], archive, BEFORE)
    for key in (*FIXED, "reward_range", "episodes"):
        if agent.stored[key] != twin.stored[key]:
            raise ValueError(f"open: {key} was {twin.stored[key]!r} before the episode and is {agent.stored[key]!r}")
    spaces, action, mask = agent.spaces, found["action"], found["mask"]
    if not 0 <= found["step"] <= spaces.horizon - (action is not None):
        raise ValueError(f"open: step must be one of 0 … {spaces.horizon}, got {found['step']}")
    if action is not None and (found["state"] is None or found["over"] or not 0 <= action < spaces.actions):
        raise ValueError(f"open: action {action} cannot have been chosen")
    if mask is not None and action is None:
        raise ValueError("open: a mask is kept with the action that was chosen, and there is none")
    state = None if found["state"] is None else check_place(spaces, found["state"])
    allowed = None if mask is None else spaces.check_mask(mask)
    agent.running = Running(Snapshot.of(twin), found["step"], state, action, allowed, found["over"])


def check_place(spaces: Any, state: list[Any]) -> Any:
    """A state (d,) of an open episode."""
    if not all(type(number) is float for number in state) or len(state) != spaces.dimensions:
        raise ValueError(f"open: state must be {spaces.dimensions} numbers, got {state!r:.200}")
    return spaces.check_states(np.array(state).reshape(1, *spaces.shape), "open: state")[0]


def extremes(agent: Agent) -> dict[str, float]:
    """The lowest and the highest reward that the data may contain, and the same for values in mapped units."""
    rewards = agent.rewards
    floor, ceiling = rewards.limits
    low, high = agent.outside or (0.0, 0.0)
    low, high = min(low, floor), max(high, ceiling)
    steps, width = agent.spaces.horizon + 1, rewards.width
    least, most = min(0.0, (low - rewards.low) / width), max(1.0, (high - rewards.low) / width)
    return {"Lowest": low, "Highest": high, "Least": steps * least - 1.0, "Most": steps * most}


def read_started(started: dict[str, Any]) -> tuple[gym.Space[Any], gym.Space[Any], int, int]:
    """The arguments of `Agent.start`, or a ValueError that names what is wrong."""
    for key, kind in KINDS.items():
        if key not in started:
            raise ValueError(f"started has no {key}")
        if type(started[key]) is not kind:
            raise ValueError(f"started: {key} must be of type {kind.__name__}, got {started[key]!r}")
    for key, least in LEAST.items():
        if not least <= started[key] <= (2**63 - 1 if key == "seed" else MOST):
            raise ValueError(f"started: {key} is {started[key]}, which is outside what is possible")
    return read_states(started), read_actions(started), started["horizon"], started["seed"]


def read_numbers(started: dict[str, Any]) -> int:
    """Above which numbers the next episode with a handle comes; a file has it where the number of episodes is lower."""
    if "numbers" not in started:
        return 0
    numbers = started["numbers"]
    if type(numbers) is not int or not started["episodes"] < numbers <= MOST:
        raise ValueError(f"started: numbers is {numbers!r}, which is outside what is possible")
    return numbers


def read_actions(started: dict[str, Any]) -> gym.Space[Any]:
    """The space of actions."""
    net = started.get("action_net")
    if net is None:
        return gym.spaces.Discrete(started["actions"], start=started["first_action"])
    kinds = {"low": list, "high": list, "shape": list, "dtype": str, "bins": list}
    if not isinstance(net, dict) or {key: type(value) for key, value in net.items()} != kinds:
        raise ValueError(f"started: action_net must have {', '.join(kinds)}, got {net!r:.200}")
    low, high, shape, bins = net["low"], net["high"], net["shape"], net["bins"]
    numbers = all(type(bound) is float and math.isfinite(bound) for bound in (*low, *high))
    whole = all(type(length) is int and length >= 1 for length in (*shape, *bins))
    if not (numbers and whole and len(low) == len(high) == len(bins) == math.prod(shape)):
        raise ValueError(f"started: action_net is not that of a Box, got {net!r:.200}")
    if net["dtype"] not in ("float16", "float32", "float64") or any(a > b for a, b in zip(low, high, strict=True)):
        raise ValueError(f"started: action_net is not that of a Box, got {net!r:.200}")
    expected = math.prod(n if a < b else 1 for a, b, n in zip(low, high, bins, strict=True))
    if expected > LIMIT:
        raise ValueError(f"started: action_net has {expected} actions, more than {LIMIT}")
    if started["actions"] != expected or started["first_action"] != 0:
        raise ValueError(f"started: action_net has {expected} actions, and actions is {started['actions']}")
    kind: Any = np.dtype(net["dtype"]).type
    lowest, highest = (np.array(bound).reshape(shape).astype(kind) for bound in (low, high))
    space: gym.Space[Any] = gym.spaces.Box(lowest, highest, dtype=kind)
    return space


def read_states(started: dict[str, Any]) -> gym.Space[Any]:
    """The space of states."""
    shape, low, high = started["shape"], read_bounds(started, "low"), read_bounds(started, "high")
    lengths = all(type(length) is int and length >= 0 for length in shape)
    if not lengths or not low.size == high.size == math.prod(shape):
        raise ValueError(f"started: low and high have {low.size} and {high.size} numbers, and shape is {shape}")
    if not (low <= high).all():
        raise ValueError(f"started: low must not be above high, got {low} and {high}")
    if not started["discrete"]:
        return gym.spaces.Box(low.reshape(shape), high.reshape(shape), dtype=np.float64)
    if shape or not (abs(low[0]) <= MOST and abs(high[0]) <= MOST and low[0] % 1 == high[0] % 1 == 0):
        raise ValueError(f"started: discrete states are whole numbers, got {low} to {high}")
    return gym.spaces.Discrete(int(high[0] - low[0]) + 1, start=int(low[0]))


def read_bounds(started: dict[str, Any], key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The bounds under that key, which are stored as text, since JSON has no infinities."""
    if not all(isinstance(bound, str) for bound in started[key]):
        raise ValueError(f"started: {key} must hold numbers as text, got {started[key]!r}")
    return np.array([float(bound) for bound in started[key]])


def read_range(stored: Any, given: tuple[float, float] | str, strict: bool) -> RewardRange:
    """The current range of rewards of an agent that was made with the range `given`."""
    if not (isinstance(stored, list) and len(stored) == 3 and type(stored[2]) is bool):
        raise ValueError(f"started: reward_range must be [lowest, highest, whether it is empty], got {stored!r}")
    found, auto = check_range(stored[:2]), isinstance(given, str)
    if isinstance(found, str) or (stored[2] and (not auto or found != (0.0, 1.0))):
        raise ValueError(f"started: reward_range is {stored!r}, which the range {given!r} cannot have become")
    inside = found[0] <= 0.0 <= found[1] if isinstance(given, str) else found[0] <= given[0] < given[1] <= found[1]
    if not inside or (strict and found != given):
        raise ValueError(f"started: reward_range is {stored!r}, which the range {given!r} cannot have become")
    return RewardRange(*found, given=not auto, strict=strict and not auto, empty=stored[2])


def read_beyond(stored: Any) -> tuple[float, float] | None:
    """The lowest and the highest reward of an unfinished episode that lay outside the range."""
    if stored is None:
        return None
    if not (isinstance(stored, list) and len(stored) == 2 and all(type(reward) is float for reward in stored)):
        raise ValueError(f"started: beyond must be null or two rewards, got {stored!r}")
    low, high = stored
    if not -1e99 <= low <= high <= 1e99:
        raise ValueError(f"started: beyond must be two rewards, the lower one first, got {stored!r}")
    return low, high


def check_plausible(started: dict[str, Any], outlines: dict[str, Any]) -> None:
    """Raise ValueError if the sizes in the header are too large for the arrays of the file.

    This comes first, because a model of these sizes is made before the arrays are compared with it exactly.
    """
    entries = sum(math.prod(array.shape) for array in outlines.values())
    for key in ("horizon", "actions"):
        limited = key == "actions" and started.get("action_net") is not None  # a net is never large
        if len(outlines) > 1 and started[key] > entries and not limited:  # the random agent has only its stream
            raise ValueError(f"started: {key} is {started[key]}, but all arrays together have {entries} entries")
