"""Experiments: several agents and seeds on one problem or several, run, resumed and stored without code.

`run` does what `kernelrl run` does; `load` reads all results of a folder as one table, `open_store` run by run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelrl.experiments.config import ExperimentError
    from kernelrl.experiments.problems import Problem
    from kernelrl.experiments.runner import Result, run
    from kernelrl.experiments.store import Run, Store, StoreError, load, open_store

__all__ = ["ExperimentError", "Problem", "Result", "Run", "Store", "StoreError", "load", "open_store", "run"]

_WHERE = {"ExperimentError": "config", "Problem": "problems", "Result": "runner", "run": "runner"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"{__name__}.{_WHERE.get(name, 'store')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
