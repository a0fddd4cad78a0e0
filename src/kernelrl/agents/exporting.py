"""`Agent.export`: the policy to deploy as tables in a C header or a JSON file (see `kernelrl.portable`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelrl.agents.checks import as_whole, flag, one_of, whole_number
from kernelrl.agents.files import as_path, replacing
from kernelrl.agents.hooks import tells_policy
from kernelrl.portable.document import PolicyFile, is_name
from kernelrl.portable.forms import Form

if TYPE_CHECKING:
    from kernelrl.agents.base import Agent

__all__ = ["Exported", "export", "policy_file"]

SUFFIXES = (".h", ".json")


@dataclass(frozen=True)
class Exported:
    """What `export` wrote, or would write."""

    path: Path
    """The file."""
    bytes: int
    """How much memory the tables take."""
    file_bytes: int
    """How long the file is."""
    kind: str
    """The kind of tables (docs/export.md)."""
    description: str
    """The same in a few words."""

    def __str__(self) -> str:
        return f"{self.path}: {self.description}, tables of {self.bytes:,} bytes"


def export(
    agent: Agent, path: Any, name: str, precision: str, steps: Any, labels: Any, environment: str | None,
    max_bytes: int | None, map_code: str | None, write: bool,
) -> Exported:  # fmt: skip
    """What `agent.export` does."""
    target, write = as_path("path", path, "policy.h"), flag("write", write)
    if target.suffix not in SUFFIXES:
        raise ValueError(f"path: must end with .h (C) or .json, got {str(target)!r}")
    if not is_name(name):
        raise ValueError(f"name: names in C begin with it, so it consists of letters, digits and _; got {name!r}")
    precision = one_of("precision", precision, ("double", "float"))
    if target.suffix == ".json" and precision == "float":
        raise ValueError('precision: numbers in JSON are as they are; "float" is for C')
    limit = None if max_bytes is None else whole_number("max_bytes", max_bytes, 1)
    file = policy_file(agent, steps, labels, environment, map_code)
    size = file.bytes(precision)
    if limit is not None and size > limit:
        raise ValueError(too_large(file, size, limit, precision, target.suffix))
    text = file.json() if target.suffix == ".json" else file.header(name, precision)
    content = text.encode()
    if write:
        with replacing(target) as opened:
            opened.write(content)
    return Exported(target, size, len(content), file.form.kind, file.form.described())


def policy_file(agent: Agent, steps: Any, labels: Any, environment: str | None, map_code: str | None) -> PolicyFile:
    """Everything that stands in the file."""
    from kernelrl import __version__

    agent.check_started()
    check_hooks(agent)
    spaces, form = agent.spaces, form_of(agent, map_code)
    kept = check_steps(steps, spaces.horizon)
    low, high = spaces.finite_box()
    about = {
        "agent": type(agent).__name__, "environment": str(environment or agent.env_id or "not known"),
        "horizon": f"{spaces.horizon} steps", "learnt from": f"{agent.episodes:,} episodes",
        "kernelrl": __version__,
    }  # fmt: skip
    file = PolicyFile(
        form, about, low, high, spaces.horizon, spaces.actions, spaces.first_action, axes_of(spaces.net), None,
        check_labels(labels, agent),
    )  # fmt: skip
    return file if kept is None else at_steps(file, kept)


def form_of(agent: Agent, map_code: str | None) -> Form:
    """The policy as tables; with a mask of the agent's own, one action for each Discrete state."""
    if agent.mask is None:
        return agent.policy_form(map_code)
    if not agent.spaces.discrete:
        raise ValueError(
            "export: mask is a function of states in a Box, which tables cannot hold; use agent.policy(), or export an "
            "agent that was made without mask"
        )
    agent.policy_form(map_code)  # it says so if nothing has been learnt
    return agent.table_of_states()


def check_hooks(agent: Agent) -> None:
    """Raise TypeError if a subclass deploys something else than what `policy_form` of a class above it says."""
    if not tells_policy(type(agent), "policy_form") and not agent.spaces.discrete:
        raise TypeError(
            f"export: {type(agent).__name__} has its own policy to deploy; write a method policy_form() for it, which "
            "returns a form of krl.portable, as docs/export.md shows"
        )


def axes_of(net: Any) -> tuple[Any, ...] | None:
    """The values of a net of actions along each axis."""
    if net is None:
        return None
    n = len(net.bins)
    points = net.points.reshape(*net.bins, n)
    return tuple(points[(0,) * j + (slice(None),) + (0,) * (n - 1 - j) + (j,)].copy() for j in range(n))


def check_steps(given: Iterable[int] | int | None, horizon: int) -> tuple[int, ...] | None:
    """The argument `steps` as steps in order; None: all."""
    if given is None:
        return None
    one = as_whole(given) if not isinstance(given, Iterable) else None
    found = [as_whole(h) for h in given] if isinstance(given, Iterable) else list(range(one or 0))
    if not found or any(h is None or not 0 <= h < horizon for h in found):
        raise ValueError(
            f"steps must be steps among 0 … {horizon - 1}, or how many of the first, 1 … {horizon}; got {given!r}"
        )
    kept = tuple(sorted({h for h in found if h is not None}))
    return None if len(kept) == horizon else kept


def check_labels(given: Iterable[str] | None, agent: Agent) -> tuple[str, ...]:
    """The argument `labels`, by default as the environment calls its actions."""
    if given is None:
        return agent.action_names
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise TypeError(f"labels: give a list of texts, one for each action, got {given!r}")
    labels = tuple(map(str, given))
    if agent.spaces.net is not None or len(labels) != agent.spaces.actions:
        raise ValueError(
            f"labels: give one for each of {agent.spaces.actions} Discrete actions, got {len(labels)}"
            if agent.spaces.net is None else "labels: actions of a Box are numbers, and have no labels"
        )  # fmt: skip
    return labels


def too_large(file: PolicyFile, size: int, limit: int, precision: str, suffix: str) -> str:
    """The message for tables that take more than `max_bytes`."""
    largest, table = max(file.tables().items(), key=lambda item: item[1].nbytes)
    shape = " × ".join(f"{n:,}" for n in table.shape)
    remedies = [f"max_bytes={size}"]
    if suffix == ".h" and precision == "double" and file.bytes("float") <= limit:
        remedies.append(f'precision="float" ({file.bytes("float"):,} bytes)')
    every = fewer_steps(file, limit, precision)
    if every:
        smaller = at_steps(file, range(0, file.horizon, every)).bytes(precision)
        remedies.append(f"steps=range(0, {file.horizon}, {every}), tables for some steps only ({smaller:,} bytes)")
    remedies.append(file.form.smaller())
    return (
        f"max_bytes: the tables take {size:,} bytes, more than {limit:,}; the largest, {largest}, has {shape} entries. "
        f"What would work: {'; '.join(remedies)}"
    )


def fewer_steps(file: PolicyFile, limit: int, precision: str) -> int | None:
    """The smallest power of 2 such that tables of every so many steps are small enough; None: there is none."""
    every = 2
    while file.steps is None and every < file.horizon:
        if at_steps(file, range(0, file.horizon, every)).bytes(precision) <= limit:
            return every
        every *= 2
    return None


def at_steps(file: PolicyFile, steps: Iterable[int]) -> PolicyFile:
    """The same file with the tables of these steps only."""
    kept = tuple(steps)
    return replace(file, form=file.form.at_steps(list(kept)), steps=kept)
