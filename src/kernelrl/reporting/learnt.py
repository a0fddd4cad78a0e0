"""What the agents of an experiment learnt: the values of their deployed policies, and their maps.

This takes longer than everything else in a report. Where there is much of it, every second label is read in a second
process, if there are two cores, and it begins while optimal values are computed.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np

from kernelrl.envs.making import make_environment
from kernelrl.experiments.local import python_path
from kernelrl.reporting.certified import Intervals, read_intervals
from kernelrl.reporting.maps import MOST_NUMBERS, Maps, Plane, can_be_read, read_maps, run_of_maps
from kernelrl.reporting.statistics import Floats

__all__ = ["EVALUATION_EPISODES", "Learnt", "make_from_table", "reading"]

EVALUATION_EPISODES = 1000
EVALUATION_SEED = 0
MUCH = 2000  # episodes in all runs together
SERVE = "from kernelrl.reporting.learnt import serve; serve()"


@dataclass(frozen=True)
class Learnt:
    """What the runs of one label learnt."""

    values: Floats  # (n,) of each seed's deployed policy; NaN if it cannot be estimated
    maps: Maps | None
    notes: list[str]
    certified: Intervals | str | None = None
    """Bounds on V* of one of them, or why there are none; None if the experiment declares no model."""


@dataclass(frozen=True)
class Label:
    """The runs of one label."""

    name: str
    runs: tuple[Any, ...]
    file: str
    """Name of the figure of its maps."""


def make_from_table(table: dict[str, Any]) -> gym.Env[Any, Any]:
    """The environment of an experiment."""
    return make_environment(table["id"], {key: value for key, value in table.items() if key != "id"})


@contextlib.contextmanager
def reading(
    labels: list[tuple[str, tuple[Any, ...]]], table: dict[str, Any], env: gym.Env[Any, Any] | None,
    plane: Plane | None, say: Callable[[str], None], model: dict[str, Any] | None = None,
) -> Iterator[Callable[[], list[Learnt]]]:  # fmt: skip
    """Begin to read what the runs of each label learnt in the environment `env` of an experiment's `table`.

    `model` is the table of its declared model, if it has one.

    Gives a function that returns it, with maps on `plane`. Until it is called only the second process works.
    """
    if env is None:
        yield lambda: [Learnt(np.full(len(runs), np.nan), None, []) for _, runs in labels]
        return
    work = [
        Label(name, runs, f"maps-{i + 1}-{re.sub('[^a-z0-9]+', '-', name.lower()).strip('-')[:40]}")
        for i, (name, runs) in enumerate(labels)
    ]
    share = MOST_NUMBERS // len(work)
    much = sum(run.episodes for label in work for run in label.runs) >= MUCH and (os.cpu_count() or 1) > 1
    elsewhere = work[::2] if much and len(work) > 1 else []

    def finish() -> list[Learnt]:
        here = [label for label in work if label not in elsewhere]
        found = {label.name: read_label(label, env, plane, share, say, model) for label in here}
        if elsewhere:
            say(f"Playing the policies of {', '.join(label.name for label in elsewhere)}")
        found |= answer()
        for label in elsewhere:
            if label.name not in found:  # the second process failed; an error will show again here
                found[label.name] = read_label(label, env, plane, share, say, model)
        return [found[label.name] for label in work]

    with second_process((table, elsewhere, plane, share, model)) as answer:
        yield finish


def read_label(
    label: Label, env: gym.Env[Any, Any], plane: Plane | None, share: int, say: Callable[[str], None],
    model: dict[str, Any] | None,
) -> Learnt:  # fmt: skip
    """What the runs of one label learnt; what cannot be read is left out with a note."""
    values, maps, notes, certified = np.full(len(label.runs), np.nan), None, [], None
    shown, last = run_of_maps(label.runs), None
    say(f"Playing the policies of {label.name}")
    for i, run in enumerate(label.runs):
        try:
            agent = run.agent()
            last = agent if run is shown else last
            values[i] = agent.evaluate(env, EVALUATION_EPISODES, EVALUATION_SEED).mean
        except Exception as error:  # a damaged file, a function that cannot be imported: the rest is reported
            notes.append(f"{label.name}, seed {run.seed}: its policy cannot be played: {error}")
    if plane is not None:
        say(f"Reading maps of {label.name}")
        try:
            last = last or shown.agent()
            maps = read_maps(shown, last, label.file, plane, share) if can_be_read(last) else None
        except Exception as error:  # a damaged snapshot must not hide the rest
            notes.append(f"{label.name}: its maps cannot be read: {error}")
    if model is not None and last is not None:
        say(f"Certifying {label.name}")
        certified = read_intervals(shown, last, model)
    return Learnt(values, maps, notes, certified)


# --------------------------------------------------------------------------------------------------- a second process


@contextlib.contextmanager
def second_process(work: tuple[Any, list[Label], Any, int, Any]) -> Iterator[Callable[[], dict[str, Learnt]]]:
    """Let a second process read labels; give a function that waits for what it has read, or nothing if it failed."""
    if not work[1]:
        yield dict
        return
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", SERVE],  # -P: not from the current folder
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": python_path()},
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    with process:
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin as stream:  # if it has ended, there is no answer
                pickle.dump(work, stream)
            yield lambda: answer_of(process)
        finally:
            process.kill()


def answer_of(process: subprocess.Popen[bytes]) -> dict[str, Learnt]:
    """What the process has read; nothing if it failed."""
    assert process.stdout is not None
    content = process.stdout.read()
    return pickle.loads(content) if process.wait() == 0 else {}


def serve() -> None:
    """What the second process does: read labels from standard input, and write what they learnt to standard output."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)  # what an environment prints must not mix with the answer
        table, labels, plane, share, model = pickle.load(sys.stdin.buffer)
        env = make_from_table(table)
        found = {label.name: read_label(label, env, plane, share, lambda text: None, model) for label in labels}
        pickle.dump(found, out)
