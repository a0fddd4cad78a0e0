"""The cache of machine code: races, damaged entries, processes that start cold at once (see `test_cache`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import test_cache
from cache_race import race
from soak_parts.outcome import Outcome

PROGRAM = """
import json
import gymnasium as gym
import kernelrl as krl
agent = krl.OptQL(bins=5)
returns = agent.fit(gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3), 20, seed=1).returns
print(json.dumps([returns.tolist(), agent.q_values([[0.1, 0.1]], 0).tolist()]))
"""


def run(scale: float, folder: Path, races: int, damaged: int, cold: int) -> Outcome:
    """So many of each, scaled."""
    outcome = Outcome()
    races, damaged, cold = (max(1, round(count * scale)) for count in (races, damaged, cold))
    found = race(races)
    outcome.count("races", races)
    outcome.failed += found["wrong"]
    if found["from_disk"] != found["read"]:
        outcome.lost.append(f"races: {found['read'] - found['from_disk']} functions were not found on disk")
    damage_caches(outcome, folder / "damaged", damaged)
    for i in range(cold):
        outcome.attempt(f"cold start {i}", start_cold, folder / f"cold-{i}")
        outcome.count("cold starts of two")
    return outcome


def start_cold(folder: Path) -> None:
    folder.mkdir()
    test_cache.test_two_processes_starting_cold_at_once(folder)


def damage_caches(outcome: Outcome, folder: Path, count: int) -> None:
    """Damage many entries of a cache at once and use it: results as before."""
    right, rng, damages = output(folder), np.random.default_rng(0), list(test_cache.DAMAGES.values())
    for i in range(count):
        entries = sorted((folder / "kernelrl").rglob("*.code"))
        content = [entry.read_bytes() for entry in entries]
        for j in rng.choice(len(entries), size=rng.integers(1, len(entries) + 1), replace=False):
            way = rng.integers(len(damages) + 2)
            if way < len(damages):
                entries[j].write_bytes(damages[way](content[j]))
            else:  # the whole entry of another function
                entries[j].write_bytes(content[rng.integers(len(entries))])
        outcome.count("damaged caches")
        outcome.attempt(f"damaged cache {i}", compare, folder, right)


def compare(folder: Path, right: str) -> None:
    assert output(folder) == right


def output(folder: Path) -> str:
    """What the program prints with its cache in `folder`."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=os.environ | {"XDG_CACHE_HOME": str(folder)}, text=True,
        capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr[-1500:]}")
    json.loads(done.stdout)
    return done.stdout
