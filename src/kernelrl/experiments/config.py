"""What an experiment is: its file, read and checked.

An experiment is data: an environment, a number of episodes, seeds, and agents with labels and hyper-parameters.

    name = "my-comparison"
    episodes = 4000
    seeds = 3                      # 0, 1, 2; or a list: [1, 2, 7]

    [environment]
    id = "kernelrl/TwinRooms-v0"   # and keyword arguments of the environment beside it

    [[agents]]
    label = "greedy"
    agent = "GreedyKernelUCBVI"    # a public name, an import path "module:Class", or "sb3:PPO" (see `kernelrl.peers`)
    monitor = true                 # optional: compare values with optimal ones (see `monitor`), where those are known
    bandwidth = 0.025              # hyper-parameters; objects are tables, None is "none" (see `kernelrl.agents.codec`)

    [agents.sweep]                 # optional: an agent for every combination, "greedy bonus_scale=0.1" and so on
    bonus_scale = [0.1, 1.0]

This module checks the form of the file; hyper-parameters are checked by making the agents (see `objects`).
"""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictInt, ValidationError, field_validator

from kernelrl.imports import no_such

__all__ = ["CATALOGUE", "AgentEntry", "Experiment", "ExperimentError", "catalogue", "read_experiment"]

CATALOGUE = Path(__file__).parent / "catalogue"
DEEPEST = 20  # levels of nested tables and lists


class ExperimentError(ValueError):
    """An experiment that cannot be run as asked; the message names what is wrong and what would work."""


def finite(value: Any) -> Any:
    """`value` with infinities as "inf" and "-inf", for JSON; a NaN is an error."""
    if isinstance(value, float) and not math.isfinite(value):
        if math.isnan(value):
            raise ValueError("nan is not a value")
        return str(value)
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return value


class Entry(BaseModel):
    """A table of named keys and of others, which are passed on to a constructor."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue]

    @property
    def others(self) -> dict[str, Any]:
        """The keys besides the named ones."""
        return {key: finite(value) for key, value in (self.__pydantic_extra__ or {}).items()}


class Environment(Entry):
    """Gymnasium's id and keyword arguments."""

    id: str = Field(min_length=1)


class AgentEntry(Entry):
    """One curve of the experiment."""

    label: str = Field(min_length=1)
    agent: str = Field(min_length=1)
    preset: str | None = None
    monitor: StrictBool = False
    sweep: dict[str, list[JsonValue]] = Field(default_factory=dict)

    @field_validator("label")
    @classmethod
    def _visible(cls, label: str) -> str:
        if not label.isprintable() or label != label.strip():
            raise ValueError("must be printable, without spaces around it")
        return label

    def expanded(self) -> list[AgentEntry]:
        """One entry for each combination of the sweep's values."""
        for key, values in self.sweep.items():
            if key in ("label", "agent", "monitor", "sweep"):
                raise ValueError(f"sweep.{key}: sweeps go over hyper-parameters and presets")
            if key in self.others or (key == "preset" and self.preset is not None):
                raise ValueError(f"sweep.{key}: {key} is also given beside the sweep; leave one out")
            if not values:
                raise ValueError(f"sweep.{key}: the list of values is empty")
            if any(value in values[:i] for i, value in enumerate(values)):
                raise ValueError(f"sweep.{key}: a value occurs twice in {values}")
        from kernelrl.agents.codec import text

        fixed = self.model_dump(exclude={"sweep", "label"})
        every = []
        for combination in itertools.product(*self.sweep.values()):
            chosen = dict(zip(self.sweep, combination, strict=True))
            label = " ".join([self.label, *(f"{key}={text(value, quoted=False)}" for key, value in chosen.items())])
            every.append(AgentEntry.model_validate({**fixed, **chosen, "label": label}))
        return every


class Experiment(BaseModel):
    """An experiment with its sweeps expanded and its seeds as a list."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    episodes: StrictInt = Field(ge=1)
    seeds: list[StrictInt]
    environment: Environment
    agents: list[AgentEntry] = Field(min_length=1)

    @field_validator("seeds", mode="before")
    @classmethod
    def _listed(cls, seeds: Any) -> Any:
        if isinstance(seeds, int) and not isinstance(seeds, bool):
            if seeds < 1:
                raise ValueError("must be a number of seeds of at least 1, or a list of seeds")
            return list(range(seeds))
        if not isinstance(seeds, list) or not seeds:
            raise ValueError("must be a number of seeds, or a list of them such as [1, 2, 7]")
        return seeds

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, seeds: list[int]) -> list[int]:
        if twice := repeated(seeds):
            raise ValueError(f"seed {twice[0]} occurs twice in {seeds}")
        if outside := [seed for seed in seeds if not 0 <= seed < 2**63]:
            raise ValueError(f"a seed must be from 0 to 2**63 - 1, got {outside[0]}")
        return seeds

    @field_validator("agents")
    @classmethod
    def _labelled(cls, agents: list[AgentEntry]) -> list[AgentEntry]:
        every = []
        for entry in agents:
            try:
                every += entry.expanded()
            except ValueError as error:
                raise ValueError(f'"{entry.label}": {error}') from error
        if twice := repeated(entry.label for entry in every):
            raise ValueError(f'the label "{twice[0]}" occurs twice; give each agent its own label')
        # Folders are named after labels, and not every file system distinguishes A from a.
        if twice := repeated(entry.label.casefold() for entry in every):
            alike = [entry.label for entry in every if entry.label.casefold() == twice[0]]
            raise ValueError(f"the labels {' and '.join(alike)} differ in capital letters only")
        return every

    @classmethod
    def checked(cls, content: Any, source: str) -> Self:
        """The experiment of a table, or an error that says for each key what is wrong with it."""
        try:
            experiment = cls.model_validate(content)
            finite(experiment.model_dump())
        except ValidationError as error:
            lines = [explain(cls, problem, content) for problem in error.errors()]
            raise ExperimentError("\n".join(f"{source}: {line}" for line in lines)) from error
        except ValueError as error:
            raise ExperimentError(f"{source}: {error}") from error
        return experiment

    def to_json(self) -> dict[str, Any]:
        """The whole experiment as JSON; `checked` reads it again."""
        content: dict[str, Any] = finite(self.model_dump(exclude_none=True))
        for entry in content["agents"]:
            del entry["sweep"]
            if not entry["monitor"]:
                del entry["monitor"]
        return content


def repeated(values: Iterable[Any]) -> list[Any]:
    """The values that occurred before."""
    seen: set[Any] = set()
    return [value for value in values if value in seen or seen.add(value)]  # type: ignore[func-returns-value]


def explain(cls: type[BaseModel], problem: Any, content: Any) -> str:
    """One of pydantic's errors as a line that names the key, what was given and what is allowed."""
    where, given = list(problem["loc"]), problem.get("input")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
    if len(where) > 1 and where[0] == "agents" and isinstance(where[1], int):
        entry = content["agents"][where[1]]
        label = entry.get("label") if isinstance(entry, dict) else None
        place = " ".join(
            ["agents", f'"{label}"' if label else f"number {where[1] + 1}"] + [str(part) for part in where[2:]]
        )
    if problem["type"] == "extra_forbidden":
        return no_such("key", str(where[-1]), cls.model_fields)
    if problem["type"] == "missing":
        return f"{place} is missing"
    said = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{place}: {said}"
    return f"{place}: {said[0].lower()}{said[1:]}, got {given!r}"


def deeper_than(content: Any, levels: int) -> bool:
    """Whether tables and lists are nested more than `levels` deep."""
    inside = [content]
    for _ in range(levels + 1):
        inside = [
            item
            for value in inside
            if isinstance(value, dict | list)
            for item in (value.values() if isinstance(value, dict) else value)
        ]
    return any(isinstance(value, dict | list) for value in inside)


def catalogue() -> dict[str, Path]:
    """The experiments that come with the package, by name."""
    return {path.stem: path for path in sorted(CATALOGUE.glob("*.toml"), key=lambda path: path.stem)}


def read_experiment(source: str | Path, episodes: int | None = None, seeds: int | None = None) -> Experiment:
    """The experiment of that name in the catalogue or in that file, with other `episodes` or `seeds` if given."""
    path = Path(source)
    if not path.is_file():
        if str(source) not in catalogue():
            raise ExperimentError(
                f'{source}: there is no such file, and no experiment of that name; those in the catalogue: '
                f'{", ".join(catalogue())}'
            )  # fmt: skip
        path = catalogue()[str(source)]
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        too_deep = deeper_than(content, DEEPEST)
    except RecursionError:
        too_deep = True
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ExperimentError(f"{path}: this is not TOML: {error}") from error
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error
    if too_deep:
        raise ExperimentError(f"{path}: tables and lists are nested more than {DEEPEST} deep; no value needs that")
    given = {"episodes": episodes, "seeds": seeds}
    return Experiment.checked({**content, **{k: v for k, v in given.items() if v is not None}}, str(path))
