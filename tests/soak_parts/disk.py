"""Disks that fill up while agents are saved and while an experiment runs, and threads that save to one path."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import numpy as np

import kernelrl as krl
from edited_files import make_env
from experiment_parts import GREEDY, call, command, environment, table, write_toml
from kernelrl import experiments
from plain import plain
from soak_parts.outcome import Outcome
from test_files import save_and_load_in_threads


def run(scale: float, folder: Path, saves: int, runs: int, threaded: int) -> Outcome:
    """So many of each, scaled."""
    outcome = Outcome()
    saves, runs, threaded = (max(1, round(count * scale)) for count in (saves, runs, threaded))
    for name in ("saves", "runs", "threads"):
        (folder / name).mkdir()
    save_with_limits(outcome, folder / "saves", saves)
    errors, loads = save_and_load_in_threads(folder / "threads", threaded // 4)
    outcome.count("saves in threads", 4 * (threaded // 4))
    outcome.count("loads beside them", loads)
    outcome.failed += [repr(error) for error in errors]
    run_with_limits(outcome, folder / "runs", runs)
    return outcome


def save_with_limits(outcome: Outcome, folder: Path, count: int) -> None:
    """Save over an older file where files may not grow beyond so many bytes."""
    old, new = (plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, lipschitz=1.0, representatives=None) for _ in range(2))
    old.fit(make_env(), 4, seed=1)
    new.fit(make_env(), 40, seed=2)
    path, rng = folder / "agent.krl", np.random.default_rng(0)
    new.save(path)
    size = path.stat().st_size
    old.save(path)
    before = path.read_bytes()
    for _ in range(count):
        limit = int(rng.integers(size))
        outcome.count("saves to a full disk")
        if not refuses(new, path, limit):
            outcome.failed.append(f"saved {size} bytes where {limit} fit")
        outcome.check(path.read_bytes() == before, f"limit {limit}: the older file is not what it was")
        outcome.check([file.name for file in folder.iterdir()] == ["agent.krl"], f"limit {limit}: something is left")
    new.save(path)
    outcome.check(krl.load(path).episodes == new.episodes, "saving does not work any more")


def refuses(agent: krl.Agent, path: Path, limit: int) -> bool:
    """Whether saving fails with OSError where files may have so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        agent.save(path)
        return False
    except OSError:
        return True
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def run_with_limits(outcome: Outcome, folder: Path, count: int) -> None:
    """Run experiments that meet the end of the disk somewhere, then again without the limit."""
    file = write_toml(folder / "a.toml", GREEDY, episodes=400, seeds=1)
    assert experiments.run(file, folder / "direct").finished
    expected, rng = table(folder / "direct"), np.random.default_rng(0)
    for i in range(count):
        out, blocks = folder / f"full-{i}", int(rng.integers(2, 120))
        limited = ["bash", "-c", f'ulimit -f {blocks} && exec "$@"', "bash"]
        run_ = [*limited, *command("run", file, "--out", out, "--checkpoint", "0.1")]
        done = subprocess.run(run_, capture_output=True, text=True, env=environment(), check=False)
        outcome.count("experiments on a full disk")
        if done.returncode not in (0, 1, 2) or ("Traceback" in done.stderr and "OSError" not in done.stderr):
            outcome.failed.append(f"{blocks} blocks: exit status {done.returncode}: {done.stderr[-1500:]}")
        again = call("run", file, "--out", out)
        if again.returncode:
            outcome.failed.append(f"{blocks} blocks, again: {again.stderr[-1500:]}")
        else:
            outcome.check(table(out).equals(expected), f"{blocks} blocks: another table")
