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
    transitions = true             # optional: store every transition (docs/logged_data.md)
    bandwidth = 0.025              # hyper-parameters; objects are tables, None is "none" (see `kernelrl.agents.codec`)

    [agents.sweep]                 # optional: an agent for every combination, "greedy bonus_scale=0.1" and so on
    bonus_scale = [0.1, 1.0]

    [model]                        # optional: declares how the environment moves, for certified bounds in the report
    kind = "displacement"          # see `declared`; or model = "twin-rooms", the name or the file of a model
    reward_lipschitz = 10.0

In place of `[environment]` there can be several problems (see `problems`). Labels in `on`, `not_on` and `at` may be
patterns such as "Oil *"; a label itself comes first.

    [[environments]]
    label = "Oil 50"               # unique; default: the id
    id = "kernelrl/Oil-v0"
    steepness = 50                 # keyword arguments
    episodes = 200                 # optional, default: the experiment's; or `steps`, after which a run ends
    best = 4.0                     # optional, the return that counts as 1; default: V*
    worst = 0.0                    # optional, the return that counts as 0

    [[agents]]
    …
    on = ["Oil *"]                 # optional: where the agent runs; or `not_on`, where it does not
    [agents.at."Oil 50"]           # optional: other hyper-parameters there; later tables replace earlier ones
    bonus_scale = 0.3

`problems = "suite"` takes the problems of another experiment instead, of the catalogue or of a file beside this one.

This module checks the form of the file; hyper-parameters are checked by making the agents (see `objects`).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, field_validator, model_validator

from kernelrl.experiments.entries import (
    AgentEntry,
    Environment,
    ExperimentError,
    ModelEntry,
    ProblemEntry,
    distinct,
    finite,
    repeated,
)
from kernelrl.imports import no_such

__all__ = [
    "CATALOGUE", "AgentEntry", "Environment", "Experiment", "ExperimentError", "ProblemEntry", "catalogue",
    "read_experiment",
]  # fmt: skip

CATALOGUE = Path(__file__).parent / "catalogue"
NO_ENVIRONMENT = "environment is missing; or give several, [[environments]]"
DEEPEST = 20  # levels of nested tables and lists


class Experiment(BaseModel):
    """An experiment with its sweeps expanded and its seeds as a list."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    episodes: StrictInt = Field(ge=1)
    seeds: list[StrictInt]
    environment: Environment | None = None
    environments: list[ProblemEntry] | None = Field(default=None, min_length=1)
    model: ModelEntry | None = None
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
        distinct([entry.label for entry in every], "agent")
        return every

    @field_validator("environments")
    @classmethod
    def _distinct_problems(cls, problems: list[ProblemEntry] | None) -> list[ProblemEntry] | None:
        distinct([problem.label for problem in problems or []], "problem")
        return problems

    @model_validator(mode="after")
    def _placed(self) -> Self:
        if self.environments is None:
            if self.environment is None:
                raise ValueError(NO_ENVIRONMENT)
            for entry in self.agents:
                if wrong := [key for key in ("on", "not_on", "at") if getattr(entry, key)]:
                    raise ValueError(f'agents "{entry.label}" {wrong[0]}: it is for several problems, [[environments]]')
            return self
        if self.environment is not None:
            raise ValueError("environment and environments are both given; leave one out")
        if self.model is not None:
            raise ValueError("model: it is declared of one [environment], and there are several; leave it out")
        labels = [problem.label for problem in self.environments]
        for i, entry in enumerate(self.agents):
            try:
                self.agents[i] = entry.placed(labels)
            except ValueError as error:
                raise ValueError(f'agents "{entry.label}" {error}') from error
        return self

    @property
    def several(self) -> bool:
        """Whether the file has `[[environments]]`."""
        return self.environments is not None

    def pairs(self) -> Iterator[tuple[Environment, str, AgentEntry]]:
        """All problems and agents that run on them: the environment, the problem's label, the agent's entry there."""
        if self.environment is not None:
            yield from ((self.environment, self.environment.id, entry) for entry in self.agents)
        for problem in self.environments or []:
            for entry in self.agents:
                if problem.label in (entry.on or []):
                    yield problem, problem.label, entry.on_problem(problem.label)

    @classmethod
    def checked(cls, content: Any, source: str) -> Self:
        """The experiment of a table, or an error that says for each key what is wrong with it."""
        try:
            experiment = cls.model_validate(content)
            finite(experiment.model_dump())
        except ValidationError as error:
            lines = [explain(cls, problem, content) for problem in error.errors()]
            if isinstance(content, dict) and not {"environment", "environments"} & content.keys():
                lines = [*(line for line in lines if line != NO_ENVIRONMENT), NO_ENVIRONMENT]
            raise ExperimentError("\n".join(f"{source}: {line}" for line in lines)) from error
        except ValueError as error:
            raise ExperimentError(f"{source}: {error}") from error
        return experiment

    def to_json(self) -> dict[str, Any]:
        """The whole experiment as JSON; `checked` reads it again."""
        content: dict[str, Any] = finite(self.model_dump(exclude_none=True))
        for entry in content["agents"]:
            for key in ("sweep", "not_on"):
                del entry[key]
            for key in ("monitor", "transitions", "at"):
                if not entry[key]:
                    del entry[key]
        return content


def explain(cls: type[BaseModel], problem: Any, content: Any) -> str:
    """One of pydantic's errors as a line that names the key, what was given and what is allowed."""
    where, given = list(problem["loc"]), problem.get("input")
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".")
    if len(where) > 1 and where[0] in ("agents", "environments") and isinstance(where[1], int):
        entry = content[where[0]][where[1]]
        label = entry.get("label") or entry.get("id") if isinstance(entry, dict) else None
        place = " ".join(
            [where[0], f'"{label}"' if label else f"number {where[1] + 1}"] + [str(part) for part in where[2:]]
        )
    if problem["type"] == "extra_forbidden":
        return no_such("key", str(where[-1]), [*cls.model_fields, "problems"])
    if problem["type"] == "missing":
        return f"{place} is missing"
    said = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return f"{place}: {said}" if place else said
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
    """The experiment of that name in the catalogue or in that file, with other `episodes` or `seeds` if given.

    Given `episodes` also replace the numbers that single problems have.
    """
    path, content = read_toml(source)
    if "problems" in content:
        content["environments"] = problems_from(content, path)
    if isinstance(content.get("model"), str):
        content["model"] = model_from(content["model"], path)
    given = {"episodes": episodes, "seeds": seeds}
    content |= {key: value for key, value in given.items() if value is not None}
    if episodes is not None and isinstance(content.get("environments"), list):
        content["environments"] = [
            {key: value for key, value in table.items() if key not in ("episodes", "steps")}
            if isinstance(table, dict)
            else table
            for table in content["environments"]
        ]
    return Experiment.checked(content, str(path))


def read_toml(
    source: str | Path, named: Mapping[str, Path] | None = None, what: str = "experiment"
) -> tuple[Path, dict[str, Any]]:
    """The path and the content of the experiment of that name or in that file; or of `what`, by its `named` files."""
    path, named = Path(source), catalogue() if named is None else named
    if not path.is_file():
        if str(source) not in named:
            raise ExperimentError(
                f'{source}: there is no such file, and no {what} of that name; those in the catalogue: '
                f'{", ".join(named)}'
            )  # fmt: skip
        path = named[str(source)]
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        too_deep = deeper_than(content, DEEPEST)
    except RecursionError:
        too_deep = True
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        hint = f'; an experiment names an environment of this file by id = "{path.stem}:…"' * (path.suffix == ".py")
        raise ExperimentError(f"{path}: this is not TOML: {error}{hint}") from error
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error
    if too_deep:
        raise ExperimentError(f"{path}: tables and lists are nested more than {DEEPEST} deep; no value needs that")
    return path, content


def model_from(name: str, path: Path) -> dict[str, Any]:
    """The table of the model of that name, or in that file beside the experiment's."""
    from kernelrl.experiments.declared import read_table

    beside = path.parent / name
    return read_table(beside if beside.is_file() else name)[1]


def problems_from(content: dict[str, Any], path: Path) -> list[dict[str, Any]]:
    """The problems of the experiment that `problems` names, with its numbers of episodes; `problems` is removed."""
    name = content.pop("problems")
    if not isinstance(name, str):
        raise ExperimentError(f"{path}: problems must be the name or the file of an experiment, got {name!r}")
    if doubled := [key for key in ("environment", "environments") if key in content]:
        raise ExperimentError(f"{path}: problems and {doubled[0]} are both given; leave one out")
    beside = path.parent / name
    source = beside if beside.is_file() else name
    if "problems" in read_toml(source)[1]:
        raise ExperimentError(
            f'{path}: problems: the experiment "{name}" takes its problems from another one, too; name that one'
        )
    found = read_experiment(source)
    if found.environments is None:
        raise ExperimentError(f'{path}: problems: the experiment "{name}" has no [[environments]]')
    default = {"episodes": found.episodes}
    return [
        {**({} if "steps" in table else default), **table} for table in found.to_json()["environments"]
    ]  # fmt: skip
