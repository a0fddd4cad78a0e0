"""The tables of an experiment's file: environments, problems and agents (`config` shows a file).

A table has named keys and others, which are passed on to a constructor.
"""

from __future__ import annotations

import fnmatch
import itertools
import math
from collections.abc import Iterable
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictInt,
    field_validator,
    model_validator,
)

from kernelrl.imports import no_such

__all__ = [
    "AgentEntry",
    "Environment",
    "ExperimentError",
    "ModelEntry",
    "ProblemEntry",
    "distinct",
    "finite",
    "repeated",
]


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

    @property
    def table(self) -> dict[str, Any]:
        """The id and the keyword arguments."""
        return {"id": self.id, **self.others}


class Labelled(Entry):
    """A table with a label, which is shown and names a folder."""

    label: str = Field(min_length=1)

    @field_validator("label")
    @classmethod
    def _visible(cls, label: str) -> str:
        if not label.isprintable() or label != label.strip():
            raise ValueError("must be printable, without spaces around it")
        return label


class ProblemEntry(Labelled, Environment):
    """One of several environments."""

    episodes: StrictInt | None = Field(default=None, ge=1)
    steps: StrictInt | None = Field(default=None, ge=1)
    best: float | None = Field(default=None, strict=True, allow_inf_nan=False)
    worst: float | None = Field(default=None, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _labelled(cls, table: Any) -> Any:
        if isinstance(table, dict) and "id" in table and "label" not in table:
            return {"label": table["id"], **table}
        return table

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.episodes is not None and self.steps is not None:
            raise ValueError("episodes and steps are both given; leave one out")
        if self.best is not None and self.best <= (self.worst or 0.0):
            raise ValueError(f"best must be above worst, got {self.best:g} and {self.worst or 0.0:g}")
        return self


class ModelEntry(Entry):
    """What is declared about the environment, for certificates: see `declared`."""

    kind: str
    reward_range: list[float] | None = Field(default=None, min_length=2, max_length=2)
    delta: float | None = Field(default=None, strict=True, gt=0.0, lt=1.0)
    cell: float | None = Field(default=None, strict=True, gt=0.0, allow_inf_nan=False)
    refine: StrictBool | None = None

    @field_validator("reward_range")
    @classmethod
    def _ordered(cls, pair: list[float] | None) -> list[float] | None:
        if pair is not None and not (math.isfinite(pair[1] - pair[0]) and pair[0] < pair[1]):
            raise ValueError(f"must be [lowest, highest], two finite numbers, got {pair}")
        return pair


class AgentEntry(Labelled):
    """One curve of the experiment."""

    agent: str = Field(min_length=1)
    preset: str | None = None
    monitor: StrictBool = False
    transitions: StrictBool = False
    sweep: dict[str, list[JsonValue]] = Field(default_factory=dict)
    on: list[str] | None = Field(default=None, min_length=1)
    not_on: list[str] = Field(default_factory=list)
    at: dict[str, dict[str, JsonValue]] = Field(default_factory=dict)

    def expanded(self) -> list[AgentEntry]:
        """One entry for each combination of the sweep's values."""
        for key, values in self.sweep.items():
            if key in NOT_TUNED or key in ("monitor", "transitions"):
                raise ValueError(f"sweep.{key}: sweeps go over hyper-parameters and presets")
            if key in self.others or (key == "preset" and self.preset is not None):
                raise ValueError(f"sweep.{key}: {key} is also given beside the sweep; leave one out")
            if where := next((name for name, table in self.at.items() if key in table), None):
                raise ValueError(f'sweep.{key}: {key} is also given in at."{where}"; leave one out')
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

    def placed(self, problems: list[str]) -> AgentEntry:
        """The entry with labels of problems in place of patterns: `on` names all, `at` has one table for each."""
        for key, names in (("on", self.on or []), ("not_on", self.not_on), ("at", list(self.at))):
            for name in names:
                if not any(matches(label, name) for label in problems):
                    raise ValueError(f"{key}: " + no_such("problem", name, problems))
        for name, table in self.at.items():
            if wrong := [key for key in table if key in NOT_TUNED]:
                raise ValueError(f'at."{name}": {wrong[0]} is the same on all problems')
        on = [
            label
            for label in problems
            if (self.on is None or any(matches(label, name) for name in self.on))
            and not any(matches(label, name) for name in self.not_on)
        ]
        if not on:
            raise ValueError("on and not_on leave no problem")
        tables = {label: [table for name, table in self.at.items() if matches(label, name)] for label in on}
        at = {label: dict(itertools.chain(*(t.items() for t in found))) for label, found in tables.items() if found}
        return self.model_copy(update={"on": on, "not_on": [], "at": at})

    def on_problem(self, label: str) -> AgentEntry:
        """The entry as it is on one problem."""
        table = self.model_dump(exclude={"on", "not_on", "at"}, exclude_none=True)
        return AgentEntry.model_validate({**table, **self.at.get(label, {})})


NOT_TUNED = ("label", "agent", "sweep", "on", "not_on", "at")  # keys of an agent's table that have one value


def matches(label: str, pattern: str) -> bool:
    """Whether a pattern such as "Oil *" is or fits a label."""
    return label == pattern or fnmatch.fnmatchcase(label, pattern)


def distinct(labels: list[str], of: str) -> None:
    """Reject labels that occur twice, or nearly."""
    if twice := repeated(labels):
        raise ValueError(f'the label "{twice[0]}" occurs twice; give each {of} its own label')
    # Folders are named after labels, and not every file system distinguishes A from a.
    if twice := repeated(label.casefold() for label in labels):
        alike = [label for label in labels if label.casefold() == twice[0]]
        raise ValueError(f"the labels {' and '.join(alike)} differ in capital letters only")


def repeated(values: Iterable[Any]) -> list[Any]:
    """The values that occurred before."""
    seen: set[Any] = set()
    return [value for value in values if value in seen or seen.add(value)]  # type: ignore[func-returns-value]
