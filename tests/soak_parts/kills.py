"""Experiments that are killed at random moments and run again until they are finished: the results are the same.

The engine on this machine: a worker, the parent or all of them are killed with SIGKILL. On a Ray cluster of two nodes:
the process of a task, a node or the driver.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from experiment_parts import GREEDY, RANDOM, call, start, table, write_toml
from kernelrl import experiments
from soak_parts.outcome import Outcome

MERGED = '\n[[agents]]\nlabel = "merged"\nagent = "KernelUCBVI"\nbandwidth = 0.1\nbonus_scale = 0.02\n'
OPTQL = '\n[[agents]]\nlabel = "optql"\nagent = "OptQL"\nbins = 5\n'
AGENTS = RANDOM + GREEDY + MERGED + OPTQL
PATIENCE = 600  # seconds until a run is taken to hang


def run(scale: float, folder: Path, count: int, each: int = 20, episodes: int = 60) -> Outcome:
    """Kill `count` times, scaled, at most `each` times before an experiment may finish."""
    left = max(1, round(count * scale))
    file, expected = whole_run(folder, episodes)
    outcome, rng = Outcome(), np.random.default_rng(0)
    while left > 0:
        out = folder / f"killed-{left:04d}"
        kills = min(left, each)
        left -= kills
        kill_some(outcome, file, out, kills, rng)
        finish(outcome, file, out, expected)
    return outcome


def whole_run(folder: Path, episodes: int) -> tuple[Path, Any]:
    """The file of an experiment, and its results when nothing happens, which do not depend on the pauses."""
    quick = write_toml(folder / "quick.toml", AGENTS, episodes=episodes, seeds=1, pause=0.0)
    assert experiments.run(quick, folder / "undisturbed", workers=2).finished
    file = write_toml(folder / "slow.toml", AGENTS, episodes=episodes, seeds=1, pause=0.001)
    return file, results(folder / "undisturbed")


def results(out: Path) -> Any:
    """The table, and the content of all files of agents by name."""
    files = {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*.krl"))}
    return table(out), files


def kill_some(outcome: Outcome, file: Path, out: Path, kills: int, rng: np.random.Generator) -> None:
    """Start the experiment and kill something of it at random moments, `kills` times in all."""
    starts = 0
    while kills > 0:
        starts += 1
        assert starts < 50 + 50 * kills, f"{out.name}: the experiment ends again and again before it can be killed"
        with started(file, out) as running:
            while kills > 0 and running.poll() is None:
                what = ("worker", "parent", "all")[rng.integers(3)]
                while what == "worker" and running.poll() is None and not children_of(running.pid):
                    time.sleep(0.01)
                wait_within(running, rng.uniform(0, 2 if what == "worker" else 5))
                before = stored(outcome, out)
                victims = victims_of(running, what, rng)
                for pid in victims:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if victims:
                    kills -= 1
                    outcome.count("kills")
                    outcome.count(what)
                    check_stored(outcome, out, before, f"{out.name}: {what} killed")
        if finished(out):  # before all kills were done: the others in another folder
            out = out.with_name(f"{out.name}-more")


@contextlib.contextmanager
def started(file: Path, out: Path) -> Iterator[Any]:
    """The experiment, running; in the end it is, or it is killed."""
    running = start("run", file, "--out", out, "--workers", "2", "--checkpoint", "0.2")
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()  # until the last of its workers is gone


def wait_within(running: Any, seconds: float) -> None:
    """Wait, but not longer than the process runs."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.01)


def victims_of(running: Any, what: str, rng: np.random.Generator) -> list[int]:
    """What to kill; nothing where there is no worker yet, or all is over."""
    if running.poll() is not None:
        return []
    workers = children_of(running.pid)
    if what == "parent":
        return [running.pid]
    if what == "all":
        return [running.pid, *workers]
    return [int(rng.choice(workers))] if workers else []


def children_of(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def finished(out: Path) -> bool:
    if not (out / "experiment.json").exists():
        return False
    store = experiments.open_store(out)
    goal = store.experiment["episodes"]
    runs = list(store.runs())
    return len(runs) == len(store.experiment["agents"]) and all(run.episodes == goal for run in runs)


def stored(outcome: Outcome, out: Path) -> dict[str, int]:
    """Episodes of each run that are stored."""
    if not (out / "experiment.json").exists():
        return {}
    try:
        return {run.label: run.episodes for run in experiments.open_store(out).runs()}
    except Exception as error:
        outcome.failed.append(f"{out.name}: the store cannot be read: {error!r}")
        return {}


def check_stored(outcome: Outcome, out: Path, before: dict[str, int], words: str) -> None:
    """What was stored before a kill is stored after it."""
    after = stored(outcome, out)
    for label, episodes in before.items():
        outcome.check(after.get(label, 0) >= episodes, f"{words}: {label} had {episodes} episodes, then {after}")


def finish(outcome: Outcome, file: Path, out: Path, expected: Any) -> None:
    """Run what is left of the experiments in `out` and beside it, and compare."""
    for path in sorted(out.parent.glob(f"{out.name}*")):
        done = call("run", file, "--out", path, "--workers", "2")
        outcome.count("experiments")
        if done.returncode:
            outcome.failed.append(f"{path.name}: exit status {done.returncode}: {done.stderr[-1500:]}")
        else:
            outcome.attempt(path.name, check_results, path, expected)


def check_results(out: Path, expected: Any) -> None:
    frame, files = results(out)
    assert frame.equals(expected[0]), "another table"
    assert files.keys() == expected[1].keys(), sorted(files.keys() ^ expected[1].keys())
    different = [name for name, content in files.items() if content != expected[1][name]]
    assert not different, different


# ------------------------------------------------------------------------------------------------------------------ Ray


def run_ray(scale: float, folder: Path, count: int, each: int = 4) -> Outcome:
    """The same on a Ray cluster of two nodes, in this process; `each` kills before an experiment may finish."""
    file, expected = whole_run(folder, 120)
    outcome, rng, left = Outcome(), np.random.default_rng(1), max(2, round(count * scale))
    with ray_cluster() as cluster:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
        cluster.wait_for_nodes()
        while left > 0:
            out = folder / f"ray-{left}"
            left -= kill_on_cluster(outcome, file, out, min(left, each), rng, cluster, nodes)
            outcome.count("experiments")
            outcome.attempt(out.name, check_results, out, expected)
    return outcome


@contextlib.contextmanager
def ray_cluster() -> Iterator[Any]:
    """A cluster with a head that nothing runs on."""
    import ray
    from ray.cluster_utils import Cluster

    from experiment_parts import environment

    os.environ.update(RAY_USAGE_STATS_ENABLED="0", PYTHONPATH=environment()["PYTHONPATH"])
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def kill_on_cluster(
    outcome: Outcome, file: Path, out: Path, kills: int, rng: np.random.Generator, cluster: Any, nodes: list[Any]
) -> int:
    """Run the experiment to its end with so many kills at most; return how many there were."""
    done, deadline = 0, time.monotonic() + PATIENCE
    while not finished(out):
        options = ("--engine", "ray", "--address", cluster.address, "--checkpoint", "0.2")
        running = start("run", file, "--out", out, *options)
        try:
            while running.poll() is None and done < kills:
                wait_within(running, rng.uniform(3, 9))
                before = stored(outcome, out)
                what = ("task", "node", "driver")[rng.integers(3)]
                if running.poll() is None and kill_of_ray(what, running, cluster, nodes, rng):
                    done += 1
                    outcome.count("kills")
                    outcome.count(what)
                    check_stored(outcome, out, before, f"{out.name}: {what} killed")
            _, errors = running.communicate(timeout=PATIENCE)
        finally:
            if running.poll() is None:
                running.kill()
                running.communicate()
        if done >= kills and running.returncode == 2:
            outcome.failed.append(f"{out.name}: {errors[-1500:]}")
            break
        if time.monotonic() > deadline:
            outcome.failed.append(f"{out.name}: not finished after {PATIENCE} s: {errors[-1500:]}")
            break
    return max(done, 1)


def kill_of_ray(what: str, running: Any, cluster: Any, nodes: list[Any], rng: np.random.Generator) -> bool:
    """Kill the process of a task, a node (and add another) or the driver; False if there is none."""
    if what == "driver":
        running.kill()
        return True
    if what == "node":
        cluster.remove_node(nodes.pop(int(rng.integers(len(nodes)))), allow_graceful=False)
        nodes.append(cluster.add_node(num_cpus=1))
        return True
    tasks = [pid for pid in descendants(os.getpid()) if command_of(pid).startswith(b"ray::perform")]
    for pid in tasks[:1]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(tasks)


def descendants(pid: int) -> list[int]:
    """The processes that this one has started, and so on."""
    threads = Path(f"/proc/{pid}/task")
    try:
        files = [thread / "children" for thread in threads.iterdir()]
        children = [int(child) for file in files for child in file.read_text().split()]
    except OSError:
        return []
    return children + [grandchild for child in children for grandchild in descendants(child)]


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
