"""What experiments' tests use from outside the package, as a user's own module would have it, and helpers for them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym

import kernelrl as krl
from kernelrl.envs import TwinRooms

HERE = Path(__file__).parent


class Rooms(TwinRooms):
    """TwinRooms with the goal near, as someone else's environment, which runs in Python; `pause` is slept each step."""

    def __init__(self, pause: float = 0.0) -> None:
        super().__init__(goal=(0.3, 0.3), radius=0.3)
        self._pause = pause

    def step(self, action: Any) -> Any:
        time.sleep(self._pause)
        return super().step(action)


gym.register("Rooms-v0", entry_point=Rooms, max_episode_steps=20)


class Failing(krl.RandomAgent):
    """Raises an error after 30 episodes."""

    def fit(self, *arguments: Any, **options: Any) -> Any:
        history = super().fit(*arguments, **options)
        if self.episodes >= 30:
            raise ZeroDivisionError("thirty is too many")
        return history


class Tripping(krl.RandomAgent):
    """Raises an error in the call of `fit` that would bring it to `after` episodes."""

    hyper_parameters = ("horizon", "reward_range", "after")

    def __init__(self, *, after: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.after = after

    def fit(self, *arguments: Any, **options: Any) -> Any:
        history = super().fit(*arguments, **options)
        if self.episodes >= self.after:
            raise ZeroDivisionError(f"{self.after} is too many")
        return history


class Dying(krl.RandomAgent):
    """Kills its process after 30 episodes, as often as `times` says, counting in the file `marks`."""

    hyper_parameters = ("horizon", "reward_range", "marks", "times")

    def __init__(self, *, marks: str, times: int = 1, **options: Any) -> None:
        super().__init__(**options)
        self.marks, self.times = marks, times

    def fit(self, *arguments: Any, **options: Any) -> Any:
        history = super().fit(*arguments, **options)
        marks = Path(self.marks)
        seen = len(marks.read_text()) if marks.exists() else 0
        if self.episodes >= 30 and seen < self.times:
            marks.write_text("x" * (seen + 1))
            print("these are my last words", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return history


class DyingAt(krl.RandomAgent):
    """Kills its process once, at the end of the run with the seed `deadly`, and leaves the file `mark`."""

    hyper_parameters = ("horizon", "reward_range", "mark", "deadly")

    def __init__(self, *, mark: str, deadly: int, **options: Any) -> None:
        super().__init__(**options)
        self.mark, self.deadly = mark, deadly

    def fit(self, *arguments: Any, **options: Any) -> Any:
        history = super().fit(*arguments, **options)
        if self.seed == self.deadly and self.episodes >= 10 and not Path(self.mark).exists():
            Path(self.mark).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return history


RANDOM = """
[[agents]]
label = "random"
agent = "RandomAgent"
"""
GREEDY = """
[[agents]]
label = "greedy"
agent = "GreedyKernelUCBVI"
bandwidth = 0.1
bonus = "simplified"
bonus_scale = 0.02
reading = "nearest"
lipschitz = 2
representatives = "none"
"""


def tripping(after: int, label: str = "bad") -> str:
    """The entry of an agent that fails after so many episodes."""
    return f'\n[[agents]]\nlabel = "{label}"\nagent = "experiment_parts:Tripping"\nafter = {after}\n'


def write_toml(path: Path, agents: str, episodes: int = 60, seeds: Any = 2, pause: float | None = None) -> Path:
    """An experiment's file; with a `pause`, of the environment above."""
    environment = '"kernelrl/TwinRooms-v0"\ngoal = [0.3, 0.3]\nradius = 0.3'
    if pause is not None:
        environment = f'"experiment_parts:Rooms-v0"\npause = {pause}'
    path.write_text(
        f'name = "test"\nepisodes = {episodes}\nseeds = {seeds}\n\n[environment]\nid = {environment}\n{agents}'
    )
    return path


def command(*arguments: Any) -> list[str]:
    return [sys.executable, "-m", "kernelrl", *map(str, arguments)]


def environment() -> dict[str, str]:
    paths = [str(Path(krl.__file__).parent.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def start(*arguments: Any) -> subprocess.Popen[str]:
    """`kernelrl …` begun."""
    return subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )


def call(*arguments: Any) -> subprocess.CompletedProcess[str]:
    """`kernelrl …` to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, env=environment(), check=False)


def wait_for(condition: Any, seconds: float = 120.0) -> None:
    """Wait until `condition()` holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


def table(path: Path) -> Any:
    """All runs but for the time they took, which is never the same twice."""
    from kernelrl import experiments

    return experiments.load(path).drop("seconds").sort("label", "seed", "episode")
