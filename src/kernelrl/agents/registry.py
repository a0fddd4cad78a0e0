"""The classes of hyper-parameter objects by kind and name: kernels, metrics, bonuses, schedules of the bandwidth.

A class that is registered once works wherever hyper-parameters are written or read (see `kernelrl.agents.codec`). This
package's classes are registered below, a user's own by the decorator `krl.register`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

from kernelrl.agents import schedules
from kernelrl.bonuses import smoothed as bonuses
from kernelrl.geometry import kernels, metrics
from kernelrl.imports import no_such

__all__ = [
    "AS_TUPLE", "KEYS", "KINDS", "NAMES", "REGISTRY", "Recursion", "kind_of", "parts_of", "path_of", "register",
    "registered",
]  # fmt: skip

C = TypeVar("C")
KINDS = ("kernel", "metric", "bonus", "bandwidth", "lipschitz")
KEYS = ("kind", "name", "from")  # of tables, besides the fields
RESERVED = ("tuple", "function", "text", "none")  # names of tables that are not objects

REGISTRY: dict[str, dict[str, type[Any]]] = {kind: {} for kind in KINDS}
NAMES: dict[type[Any], tuple[str, str]] = {}  # class → kind, name


def register(kind: str, name: str) -> Callable[[type[C]], type[C]]:
    """Register a class as `name`, so that its objects can be saved, named in experiments' files and reported.

    `kind` is "kernel", "metric", "bonus", "bandwidth" (a schedule) or "lipschitz". The class is a frozen dataclass:

        @krl.register("bandwidth", "halving")
        @dataclass(frozen=True)
        class Halving:
            start: float
            every: int = 1000

            def __call__(self, k: int) -> float:
                return self.start * 0.5 ** (k // self.every)
    """
    if kind not in KINDS:
        raise ValueError("register: " + no_such("kind", str(kind), KINDS))
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][\w.-]*", name) or name in RESERVED:
        raise ValueError(
            f"register: name must begin with a letter, go on with letters, digits and . - _, and be none of "
            f"{', '.join(RESERVED)}; got {name!r}"
        )

    def add(cls: type[C]) -> type[C]:
        check_class(cls)
        known, other = REGISTRY[kind].get(name), NAMES.get(cls, (kind, name))
        if known is not None and path_of(known) != path_of(cls):  # with the same path, a module or cell was run again
            raise ValueError(
                f'register: the {kind} "{name}" is {path_of(known)} already; give {path_of(cls)} another name'
            )
        if other != (kind, name):
            raise ValueError(f'register: {path_of(cls)} is already the {other[0]} "{other[1]}"; one name is enough')
        REGISTRY[kind][name] = cls
        NAMES[cls] = kind, name
        return cls

    return add


def check_class(cls: Any) -> None:
    """Raise TypeError unless objects of `cls` can be written field by field."""
    parameters = vars(cls).get("__dataclass_params__") if isinstance(cls, type) else None
    if parameters is None or not parameters.frozen:
        raise TypeError(
            f"register: {cls!r} is not a frozen dataclass; put @dataclass(frozen=True) between @krl.register and the "
            "class"
        )
    for part in parts_of(cls):
        if part in KEYS:
            raise TypeError(f'register: {path_of(cls)} has a field "{part}", a key that tables need; rename it')


def path_of(thing: Any) -> str:
    """`module:name` of a class or function."""
    return f"{thing.__module__}:{thing.__qualname__}"


def parts_of(cls: type[Any]) -> dict[str, dataclasses.Field[Any]]:
    """The fields that the constructor takes, by name."""
    return {field.name: field for field in dataclasses.fields(cls) if field.init}


def registered(kind: str) -> dict[str, str]:
    """The names of a kind, each with the first line of its class's docstring."""
    found = {name: (inspect.getdoc(cls) or "").partition("\n")[0] for name, cls in REGISTRY[kind].items()}
    if kind == "bandwidth":
        found["function"] = 'A function of the number of the episode, given as "module:function".'
    return found


def kind_of(argument: str) -> str | None:
    """The kind of objects that a hyper-parameter or field of that name takes: `action_metric` takes metrics."""
    last = argument.rpartition("_")[2]
    return last if last in KINDS else None


# ------------------------------------------------------------------------------------------ what comes with the package


@dataclasses.dataclass(frozen=True)
class Recursion:
    """L_h = λ_r + λ_p·L_{h+1} from the constants of rewards and transitions; in Python the tuple (λ_r, λ_p)."""

    reward: float
    transition: float


AS_TUPLE: dict[str | None, type[Any]] = {"lipschitz": Recursion}  # objects that agents hold as a tuple of their fields

PACKAGE: dict[str, dict[str, type[Any]]] = {
    "kernel": kernels.CLASSES,
    "metric": metrics.CLASSES,
    "bonus": bonuses.BONUSES,
    "bandwidth": {
        "power": schedules.Power,
        "local": schedules.Local,
        "bandwidths": schedules.Bandwidths,
    },
    "lipschitz": {"recursion": Recursion},
}
for _kind, _classes in PACKAGE.items():
    for _name, _cls in _classes.items():
        register(_kind, _name)(_cls)
