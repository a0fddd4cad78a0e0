"""Minari datasets as tables: the episodes of a dataset, one row for each transition.

Minari is an extra, `pip install 'kernelrl[data]'`. It is imported when a dataset is named by its id.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import numpy as np
import numpy.typing as npt

from kernelrl.imports import one_line

__all__ = ["PREFIX", "columns_of", "is_dataset", "load"]

PREFIX = "minari:"
INSTALL = "pip install 'kernelrl[data]'"


def load(name: str) -> Any:
    """The dataset of that id; a ValueError says what to install or to download."""
    if importlib.util.find_spec("minari") is None:
        raise ValueError(f"table: {PREFIX}{name} needs Minari, which is not installed: {INSTALL}")
    try:
        return importlib.import_module("minari").load_dataset(name)
    except Exception as error:  # a broken installation, a missing or damaged dataset
        raise ValueError(
            f"table: the Minari dataset {name} cannot be loaded ({one_line(error)}); `minari list local` shows those "
            f"on this machine, `minari download {name}` gets it"
        ) from error


def is_dataset(table: Any) -> bool:
    """Whether `table` is a dataset."""
    return hasattr(table, "iterate_episodes")


def columns_of(dataset: Any) -> dict[str, npt.NDArray[Any]]:
    """The columns of all its episodes, with the step of each transition; states and actions are (n, k)."""
    parts: dict[str, list[npt.NDArray[Any]]] = {}
    for episode in dataset.iterate_episodes():
        states, actions = (plain(what, getattr(episode, what)) for what in ("observations", "actions"))
        n = len(episode.rewards)
        if len(states) != n + 1 or len(actions) != n:
            raise ValueError(
                f"table: episode {episode.id} of the Minari dataset has {len(states)} observations and {len(actions)} "
                f"actions for {n} rewards; {n + 1} and {n} are needed"
            )
        columns = {
            "state": states[:-1], "action": actions, "reward": episode.rewards, "next_state": states[1:],
            "terminated": episode.terminations, "truncated": episode.truncations,
            "step": np.arange(n), "episode": np.full(n, episode.id),
        }  # fmt: skip
        for name, column in columns.items():
            parts.setdefault(name, []).append(np.asarray(column))
    if not parts:
        raise ValueError("table: the Minari dataset has no episodes")
    return {name: np.concatenate(each) for name, each in parts.items()}


def plain(what: str, given: Any) -> npt.NDArray[Any]:
    """Observations or actions as one array, the first axis of which is time."""
    if isinstance(given, dict | tuple):
        raise ValueError(
            f"table: the {what} of the Minari dataset are a {type(given).__name__}, and agents need numbers; flatten "
            "them and give a mapping of arrays"
        )
    return np.asarray(given)
