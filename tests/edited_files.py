"""Edited files of agents, and what comes of loading them: an error that names the file, or an agent that works.

`edits` makes them, `soak` tries many on every kind of agent. Each is tried in a process of its own, so that a crash or
an endless loop is a finding and not the end of the test.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import gc
import io
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import numba
import numpy as np

import kernelrl as krl

HEADER = "kernelrl.json"
SECONDS = 300  # after which a process is taken to hang
MEMORY = 8 * 2**30  # bytes that a process may take
FEW, MANY = 8, 60  # episodes of training without and with machine code

KERNEL = {"bonus": "simplified", "reading": "nearest", "bandwidth": 0.1, "bonus_scale": 0.1}
EXACT = {**KERNEL, "representatives": None}
JOINT = krl.bonuses.Joint(0.1)

AGENTS: dict[str, Callable[[], krl.Agent]] = {
    "random": lambda: krl.RandomAgent(),
    "ucbvi": lambda: krl.UCBVI(bins=(5, 2)),
    "ucbvi-steps": lambda: krl.UCBVI(bins=(5, 2), stationary=False, replan="doubling"),
    "greedy-ucbvi": lambda: krl.GreedyUCBVI(bins=(5, 2)),
    "optql": lambda: krl.OptQL(bins=(5, 2)),
    "optql-after": lambda: krl.OptQL(bins=4, bonus_place="after"),
    "adaptive": lambda: krl.AdaptiveQL(),
    "adamb": lambda: krl.AdaMB(),
    "adamb-lipschitz": lambda: krl.AdaMB(lipschitz=1.0, split_exponent=1.0),
    "kernel-exact": lambda: krl.KernelUCBVI(**EXACT),
    "kernel-exact-cones": lambda: krl.KernelUCBVI(**EXACT, lipschitz=2.0),
    "kernel-exact-joint": lambda: krl.KernelUCBVI(
        bandwidth=0.1, representatives=None, lipschitz=2.0, stationary=False, bonus=JOINT, reward_range=(0, 1)
    ),
    "kernel-merged": lambda: krl.KernelUCBVI(**KERNEL),
    "kernel-merged-joint": lambda: krl.KernelUCBVI(
        bandwidth=0.1, lipschitz=2.0, bonus=JOINT, replan="doubling", reward_range=(0, 1)
    ),
    "kernel-merged-steps": lambda: krl.KernelUCBVI(
        **{**KERNEL, "bonus": krl.bonuses.Simplified(0.5, 2.0)}, stationary=False
    ),
    "kernel-several-joint": lambda: krl.KernelUCBVI(
        bandwidth=krl.schedules.Bandwidths([0.2, 0.05]), lipschitz=2.0, bonus=JOINT, reward_range=(0, 1)
    ),
    "greedy-exact": lambda: krl.GreedyKernelUCBVI(**EXACT, lipschitz=2.0),
    "greedy-merged": lambda: krl.GreedyKernelUCBVI(**KERNEL, lipschitz=2.0),
    "greedy-merged-steps": lambda: krl.GreedyKernelUCBVI(**KERNEL, stationary=False),
}


def make_env() -> gym.Env:
    return gym.make("kernelrl/TwinRooms-v0", max_episode_steps=5)


def train(name: str, path: Path) -> None:
    """Save an agent that has learnt a little, and is in the middle of an episode."""
    agent = AGENTS[name]()
    agent.fit(make_env(), FEW if numba.config.DISABLE_JIT else MANY, seed=3, driver="python", progress=False)
    by_hand(agent, np.random.default_rng(4), steps=3, ends=False)
    agent.save(path)


# ---------------------------------------------------------------------------------------------------------------- edits


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    with zipfile.ZipFile(path) as archive:
        arrays = {
            name.removesuffix(".npy"): np.lib.format.read_array(io.BytesIO(archive.read(name)))
            for name in archive.namelist()
            if name != HEADER
        }
        return json.loads(archive.read(HEADER)), arrays


def write(path: Path, header: Any, arrays: list[tuple[str, np.ndarray]]) -> None:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that occur twice
        archive.writestr(HEADER, header if isinstance(header, str) else json.dumps(header))
        for name, array in arrays:
            file = io.BytesIO()
            np.lib.format.write_array(file, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", file.getvalue())


@dataclasses.dataclass
class Edit:
    """A file in the making: what to write, and in words what was done to it."""

    header: Any
    arrays: list[tuple[str, np.ndarray]]
    words: list[str]


def edits(path: Path, seed: int, count: int) -> Iterator[Edit]:
    """Edits of the file at `path`; the same every time, and number i does not depend on `count`."""
    header, arrays = read(path)
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        edit = Edit(json.loads(json.dumps(header)), [(name, array.copy()) for name, array in arrays.items()], [])
        for _ in range(1 if rng.random() < 0.85 else 2):
            if not edit.arrays:
                break
            kind = EDITS[rng.choice(len(EDITS), p=np.array(WEIGHTS) / sum(WEIGHTS))]
            with contextlib.suppress(OverflowError):
                kind(edit, rng)
        yield edit


def pick(edit: Edit, rng: np.random.Generator, kinds: str, most: float = np.inf) -> int:
    """The place of an array of these kinds; -1 if there is none."""
    places = [i for i, (_, a) in enumerate(edit.arrays) if a.dtype.kind in kinds and 0 < a.size <= most]
    return int(rng.choice(places)) if places else -1


def some(array: np.ndarray, rng: np.random.Generator) -> Any:
    """One entry, a few of them, or all, as indices of the flat array."""
    share = rng.integers(3)
    return slice(None) if share == 2 else rng.integers(array.size, size=1 if share == 0 else 4)


def change_integers(edit: Edit, rng: np.random.Generator, most: float = np.inf) -> None:
    i = pick(edit, rng, "iub", most)
    if i < 0:
        return
    name, array = edit.arrays[i]
    flat, where, way = array.reshape(-1), some(array, rng), rng.integers(9)
    limits = np.iinfo(array.dtype if array.dtype.kind in "iu" else np.uint8)
    if way < 5:
        value = int(rng.choice([-1, -2, 10**8, limits.max, limits.min, 0, 1, 2**40]))
        value = int(np.clip(value, limits.min, limits.max))
        (flat if array.dtype.kind != "b" else flat.view(np.uint8))[where] = value
        edit.words.append(f"{name}: {value} in {where}")
    elif way == 5 and array.dtype.kind != "b":
        with np.errstate(over="ignore"):
            flat[where] += array.dtype.type(1)
        edit.words.append(f"{name}: one more in {where}")
    elif way == 6 and array.dtype.kind != "b":
        with np.errstate(over="ignore"):
            flat[where] -= array.dtype.type(1)
        edit.words.append(f"{name}: one less in {where}")
    elif way == 7:
        flat[:] = rng.permutation(flat)
        edit.words.append(f"{name}: shuffled")
    else:
        a, b = rng.integers(flat.size, size=2)
        flat[[a, b]] = flat[[b, a]]
        edit.words.append(f"{name}: {a} and {b} exchanged")


def change_counters(edit: Edit, rng: np.random.Generator) -> None:
    change_integers(edit, rng, most=5)


def change_floats(edit: Edit, rng: np.random.Generator) -> None:
    i = pick(edit, rng, "f")
    if i < 0:
        return
    name, array = edit.arrays[i]
    flat, where = array.reshape(-1), some(array, rng)
    if rng.random() < 0.2:
        flat[:] = rng.permutation(flat)
        edit.words.append(f"{name}: shuffled")
        return
    value = float(rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1.0, 1e308, -1e308, 1e-308, 1e6, -1e6]))
    flat[where] = value
    edit.words.append(f"{name}: {value} in {where}")


def change_shape(edit: Edit, rng: np.random.Generator) -> None:
    i = int(rng.integers(len(edit.arrays)))
    name, array = edit.arrays[i]
    axis = int(rng.integers(max(array.ndim, 1)))
    way = rng.integers(8)
    if way == 0:
        array = np.ascontiguousarray(array.T)
    elif way == 1:
        array = array.reshape(-1)
    elif way == 2:
        array = array[None]
    elif way == 3:
        array = array[..., :0]
    elif way == 4:
        array = np.asfortranarray(np.atleast_2d(array))
    elif way == 5:
        array = np.concatenate([array, array], axis)
    else:  # the same cut in all arrays that are as long, so that they still fit together
        length = array.shape[axis]
        cut = int(rng.integers(length + 1))
        for j, (other, values) in enumerate(edit.arrays):
            if way == 6 and j != i:
                continue
            for k in range(values.ndim):
                if values.shape[k] == length:
                    values = np.ascontiguousarray(np.take(values, range(cut), k))
            edit.arrays[j] = other, values
        edit.words.append(f"{name}: cut to {cut} of {length} on axis {axis}{', and others' if way == 7 else ''}")
        return
    edit.arrays[i] = name, array
    edit.words.append(f"{name}: shape {array.shape}")


def change_type(edit: Edit, rng: np.random.Generator) -> None:
    i = int(rng.integers(len(edit.arrays)))
    name, array = edit.arrays[i]
    kind = str(rng.choice(["<f4", "<i4", "<i8", "<f8", ">i8", ">f8", "<u8", "<u4", "|u1", "|b1", "<c16", "|S8"]))
    with np.errstate(invalid="ignore", over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same_size = np.dtype(kind).itemsize == array.dtype.itemsize
        edit.arrays[i] = name, array.view(kind) if same_size and rng.random() < 0.5 else array.astype(kind)
    edit.words.append(f"{name}: type {kind}")


def move_arrays(edit: Edit, rng: np.random.Generator) -> None:
    i, j = (int(k) for k in rng.integers(len(edit.arrays), size=2))
    way = rng.integers(5)
    if way == 0:
        edit.words.append(f"{edit.arrays[i][0]}: dropped")
        del edit.arrays[i]
    elif way == 1:
        edit.words.append(f"{edit.arrays[i][0]}: also as another")
        name = str(rng.choice([edit.arrays[i][0], "other", "../other", "samples.more", ""]))
        edit.arrays.append((name, edit.arrays[i][1]))
    else:  # preferably of one type and shape, which is harder to see
        array = edit.arrays[i][1]
        alike = [k for k, (_, a) in enumerate(edit.arrays) if a.dtype == array.dtype and a.shape == array.shape]
        j = int(rng.choice(alike)) if way == 2 else j
        (one, first), (other, second) = edit.arrays[i], edit.arrays[j]
        edit.arrays[i], edit.arrays[j] = (one, second), (other, first)
        edit.words.append(f"{one} and {other}: exchanged")


VALUES = (
    None, True, False, 0, 1, -1, 2, 7, 10**6, 10**12, 2**63, 10**30, 0.5, -0.5, 1e-300, 1e300, 1e400, "", "x", "inf",
    "nan", "os:_exit", [], [1], [0.5, 2], ["0.0", "1.0"], {}, {"name": "tuple", "items": [0, 1]}, {"name": "x"},
    {"name": "function", "function": "os:_exit"}, {"name": "function", "function": 3}, "none", "-inf",
    {"kind": "bonus", "name": "joint"}, {"name": "text", "text": "none"}, {"name": "tuple", "items": 3},
    {"name": "custom", "function": "os:_exit"}, {"name": "folded", "map": "os:_exit", "metric": {"name": "lp"}},
    {"name": "folded", "map": "kernelrl.envs.twin_rooms:twin_rooms_fold"}, {"name": "lp", "p": 1, "scale": [1, 2, 3]},
    {"name": "tricube"}, {"kind": "kernel"}, {"name": "power", "start": 1, "minimum": 0.1}, {"kind": [], "name": {}},
    {"name": "mine", "from": "os"}, {"name": "recursion", "reward": "x", "transition": [1]},
)  # fmt: skip


def change_header(edit: Edit, rng: np.random.Generator) -> None:
    if not isinstance(edit.header, dict):
        return
    place, path = edit.header, []
    while True:  # down to some key
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return
        key = keys[rng.integers(len(keys))]
        path.append(str(key))
        below = place[key]
        if not isinstance(below, dict | list) or not below or rng.random() < 0.15:
            break
        place = below
    way, name = rng.integers(8), ".".join(path)
    if way == 0:
        del place[key]
        edit.words.append(f"{name}: dropped")
    elif way == 1 and isinstance(place, dict):
        place[str(rng.choice(["other", f"{key}s", ""]))] = place.pop(key)
        edit.words.append(f"{name}: renamed")
    elif way == 2 and type(place[key]) in (int, float):
        place[key] = place[key] + (1 if rng.random() < 0.5 else -1)
        edit.words.append(f"{name}: {place[key]}")
    elif way == 3:
        edit.header = str(rng.choice(["", "[]", "null", "{", "[" * 5000, "{}", "NaN", '{"format": 3}']))
        edit.words.append(f"the header: {edit.header[:20]}")
    else:
        place[key] = VALUES[rng.integers(len(VALUES))]
        edit.words.append(f"{name}: {place[key]!r}")


EDITS = (change_integers, change_counters, change_floats, change_shape, change_type, move_arrays, change_header)
WEIGHTS = (6, 3, 3, 2, 1, 2, 4)


# -------------------------------------------------------------------------------------------------- what comes of them


def by_hand(agent: krl.Agent, rng: np.random.Generator, steps: int | None = None, ends: bool = True) -> None:
    """Part of an episode at random states, whatever the agent's spaces are."""
    low, high = (np.clip(bound, -1e6, 1e6) for bound in (agent.spaces.low, agent.spaces.high))
    states = low + (high - low) * rng.random((1 + agent.spaces.horizon, low.size))
    states = np.floor(states) if agent.spaces.discrete else states
    states = np.clip(states, agent.spaces.low, agent.spaces.high).reshape(-1, *agent.spaces.shape)
    least, most = agent.settings_used()["reward_range"]
    reward = 0.5 * least + 0.5 * most
    agent.begin_episode()
    for h in range(min(steps or agent.spaces.horizon, agent.spaces.horizon, 20)):
        action = agent.choose(states[h], h)
        agent.observe(states[h], action, reward, states[h + 1], h, terminated=h == 3 and least <= 0 <= most)
    if ends:
        agent.end_episode()


def use(path: Path, out: Path) -> str:
    """Load a file and do everything that can be done with the agent; return "refused: why" or "works"."""
    try:
        agent = krl.load(path)
    except ValueError as error:
        assert str(path) in str(error), f"the error does not name the file: {error}"
        return f"refused: {error}"
    rng = np.random.default_rng(0)
    if agent.episode is not None:
        other = krl.load(path)
        other.abandon_episode()
        by_hand(other, rng)
        agent.end_episode()
    try:
        agent.fit(make_env(), 2, driver="python", progress=False)
    except ValueError as error:  # other spaces, or another range, than those of the environment
        assert str(error).startswith(("env:", "reward", "episodes:", "horizon:", "seed:", "metric:")), str(error)
    if agent.model is None:
        return "works: not started"
    for _ in range(2):
        by_hand(agent, rng)
    low, high = (np.clip(bound, -1e6, 1e6) for bound in (agent.spaces.low, agent.spaces.high))
    states = np.clip(low + (high - low) * rng.random((4, low.size)), agent.spaces.low, agent.spaces.high)
    states = (np.floor(states) if agent.spaces.discrete else states).reshape(-1, *agent.spaces.shape)
    for step in (0, agent.spaces.horizon - 1):
        for name in ("q_values", "values", "counts", "bonuses"):
            if hasattr(agent, name):
                found = getattr(agent, name)(states, step)
                assert not np.isnan(found).any(), f"{name} are {found}"
        agent.act(states[0], step)
    if hasattr(agent, "partition"):
        agent.partition(0, agent.spaces.first_action)
    if hasattr(agent, "certificate"):
        try:
            agent.certificate(states[0])
        except ValueError as error:
            assert str(error).startswith(("certificate", "lipschitz", "reward")), str(error)
    agent.save(out)
    try:
        krl.load(out)
    except ValueError as error:  # numbers that did not fit together at first can end where no agent comes
        assert str(out) in str(error), f"the error does not name the file: {error}"
        return f"works: but what it saves is refused: {error}"
    return "works"


def in_child(path: Path, out: Path, pipe: int) -> None:
    """What a process does that tries one file; it never returns."""
    try:
        gc.freeze()  # collecting garbage would touch, and so copy, all of the parent's memory
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
        warnings.simplefilter("ignore")
        faulthandler.disable()  # a crash is reported by the parent
        try:
            result = use(path, out)
        except BaseException as error:
            result = f"failed: {type(error).__name__}: {error}\n{''.join(traceback.format_exc()[-1500:])}"
        os.write(pipe, result.encode()[:4000])
    finally:
        os._exit(0)


@dataclasses.dataclass
class Trial:
    """One file that was tried."""

    number: int
    words: str
    result: str

    @property
    def kind(self) -> str:
        return self.result.partition(":")[0]


KINDS = {"refused": 9, "works": 7, "failed": 8, "crashed": 9, "hangs": 7}  # and the widths of columns


def attempt(path: Path, out: Path) -> str:
    """`use` in a process of its own."""
    receive, send = os.pipe()
    sys.stdout.flush(), sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside threads; the child only computes
        child = os.fork()
    if child == 0:
        in_child(path, out, send)
    os.close(send)
    try:
        if not select.select([receive], [], [], SECONDS)[0]:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hangs"
        result = os.read(receive, 4096).decode(errors="replace")
        status = os.waitpid(child, 0)[1]
        return result or f"crashed: status {status}, signal {os.WTERMSIG(status)}"
    finally:
        os.close(receive)


def try_edits(path: Path, folder: Path, seed: int, count: int, first: int = 0) -> list[Trial]:
    """Try edits number `first` … `count`-1 of the file at `path`."""
    trials = []
    for i, edit in enumerate(edits(path, seed, count)):
        if i < first:
            continue
        edited, out = folder / f"edited-{i}.krl", folder / "again.krl"
        write(edited, edit.header, edit.arrays)
        trials.append(Trial(i, "; ".join(edit.words), attempt(edited, out)))
        if trials[-1].kind in ("refused", "works"):
            edited.unlink()
        out.unlink(missing_ok=True)
    return trials


def soak(folder: Path, count: int, seed: int = 0, names: list[str] | None = None) -> dict[str, list[Trial]]:
    """Try `count` edits of every kind of agent and print a table; the files of failures stay in `folder`."""
    found = {}
    print(f"{'agent':24}{'tried':>8}{''.join(f'{kind:>{width}}' for kind, width in KINDS.items())}{'seconds':>9}")
    for name in names or AGENTS:
        began, path = time.monotonic(), folder / f"{name}.krl"
        train(name, path)
        assert use(path, folder / "again.krl") == "works", name  # which also compiles all that the children need
        (folder / name).mkdir(exist_ok=True)
        trials = found[name] = try_edits(path, folder / name, seed, count)
        columns = "".join(f"{sum(trial.kind == kind for trial in trials):>{width}}" for kind, width in KINDS.items())
        print(f"{name:24}{len(trials):>8}{columns}{time.monotonic() - began:>9.0f}", flush=True)
        for trial in trials:
            if trial.kind not in ("refused", "works"):
                print(f"    {trial.number}: {trial.words}\n        {trial.result[:1500]}", flush=True)
    return found


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.mkdir(parents=True, exist_ok=True)
    soak(target, int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0, sys.argv[4:] or None)
