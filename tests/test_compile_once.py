"""Each entry function is compiled once for each algorithm, whatever the hyper-parameters, and then never again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter

import gymnasium as gym
import numba
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.console import CompileNotice
from kernelrl.envs import TwinRooms
from kernelrl.episodes.loop import run_compiled
from kernelrl.episodes.verbs import ask_for_room, perform
from kernelrl.geometry import grid
from kernelrl.geometry.actions import Apart
from kernelrl.geometry.masks import Everything
from kernelrl.geometry.metrics import LpSpace
from kernelrl.jit.compile import ROOT, WHERE_COMPILED
from kernelrl.planning import cells, full, reading
from small_envs import Line
from user_functions import around, overloaded

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")

ENTRIES = {
    "run_compiled": run_compiled,
    "perform": perform,
    "fill": full.fill,
    "targets_part": full.targets_part,
    "values_part": full.values_part,
    "fill_q": reading.fill_q,
    "plan_in_one_go": reading.plan_in_one_go,
    "plan_cells": cells.plan_cells,
    "cell_of": grid.cell_of,
}


def classes_in(kind):
    """The NamedTuple classes of a numba type and of its parts."""
    found = []
    if hasattr(kind, "instance_class"):
        found = [kind.instance_class, *(cls for part in kind.types for cls in classes_in(part))]
    return tuple(found)


def signatures(entry):
    """How many signatures the entry has for each combination of classes."""
    return Counter(tuple(cls for kind in signature for cls in classes_in(kind)) for signature in entry.signatures)


def model_of(agent):
    """The class of the NamedTuple behind an agent."""
    agent.start(gym.spaces.Box(0, 1, (2,), np.float64), gym.spaces.Discrete(2), 4)
    return type(agent.model)


def use(make, envs=("twin", "line"), drivers=("python", "compiled")):
    """Everything that can be done with an agent."""
    for name in envs:
        for driver in drivers:
            agent = make()
            if name == "twin":
                agent.fit(gym.make("kernelrl/TwinRooms-v0"), 2, seed=1, driver=driver)
            else:
                agent.fit(Line(actions=3, first=np.int64(2)), np.int64(2), seed=np.int32(1))
            x = np.zeros(len(agent.spaces.low), np.float32)
            agent.act(x, step=np.int32(1))
            for verb in ("q_values", "values", "counts", "bonuses"):
                if hasattr(agent, verb):
                    getattr(agent, verb)([x.tolist()], step=1)
            agent.begin_episode()
            a = agent.choose([0] * len(x), np.int64(0))
            agent.observe([0] * len(x), np.int32(a), 1, np.zeros(len(x), int), 0, terminated=np.bool_(True))
            agent.end_episode()


def variants():
    """Agents that between them use every hyper-parameter, whole numbers included where floats are meant."""
    shared = {"bandwidth": 1, "regularization": 1, "bonus_scale": 1, "representatives": None, "reward_range": (-1, 2)}
    shared["horizon"] = np.int64(4)
    for options in (
        {},
        {"kernel": "compact", "metric": "manhattan", "stationary": False},
        {"kernel": krl.kernels.ExponentialPower(3), "metric": krl.metrics.Lp(3, scale=2), "replan": "step"},
        {"kernel": "cosine", "metric": krl.metrics.Lp(np.inf, scale="box"), "replan": "doubling", "lipschitz": 1},
        {"bandwidth": np.float32(0.5), "lipschitz": [1, 2, 3, 4], "stationary": np.bool_(False), "bonus_scale": 0},
        {"regularization": np.float64(0.5), "lipschitz": np.arange(4), "metric": krl.metrics.Lp(1.5)},
        {"lipschitz": (1, 2), "bandwidth": np.array(0.25)},
    ):
        yield lambda options=options: krl.KernelUCBVI(**{**shared, **options})
        greedy = {"lipschitz": 1, **{key: value for key, value in options.items() if key != "replan"}}
        yield lambda greedy=greedy: krl.GreedyKernelUCBVI(**{**shared, **greedy})
    yield lambda: krl.RandomAgent(horizon=4, reward_range=(-1, 2))
    baseline = {"horizon": np.int64(4), "reward_range": (-1, 2)}
    hoeffding = {"bonus": "hoeffding", "total_episodes": np.int32(9), "delta": np.float32(0.1)}
    for options in ({"bins": 3}, {"bins": np.int8(2), "bonus_scale": 1, **hoeffding}):
        yield lambda options=options: krl.UCBVI(**baseline, **options, stationary=np.bool_(False), replan="step")
        yield lambda options=options: krl.GreedyUCBVI(**baseline, **options)
        yield lambda options=options: krl.OptQL(**baseline, **options, bonus_place="after")
    yield lambda: krl.AdaptiveQL(**baseline, **hoeffding, lipschitz=1)
    yield lambda: krl.AdaptiveQL(**baseline)
    yield lambda: krl.AdaMB(**baseline)
    yield lambda: krl.AdaMB(**baseline, bonus_scale=1, lipschitz=np.float32(1), split_exponent=np.int8(3))
    yield lambda: krl.UCBVI(**baseline, bins=np.int64(3), replan="doubling", minimum=np.bool_(True))
    yield lambda: krl.GreedyUCBVI(**baseline, bins=3.0, stationary=False)
    yield lambda: krl.OptQL(**baseline, bins=3, bonus_scale=0)
    yield lambda: krl.KernelUCBVI(**{**shared, "representatives": 1, "replan": 2})
    local = {"bandwidth": krl.schedules.Local(1, 1, 0), "representatives": 1, "reading": "blend"}
    for cls in (krl.KernelUCBVI, krl.GreedyKernelUCBVI):
        yield lambda cls=cls: cls(horizon=4)
        yield lambda cls=cls: cls(horizon=4, reward_range=(-1, 2), metric="manhattan", max_representatives=9)
        yield lambda cls=cls: cls(**{**shared, **local})
        yield lambda cls=cls: cls(**{**shared, **local, "bandwidth": krl.schedules.Bandwidths(np.array([1, 2, 4]))})
    yield lambda: krl.KernelUCBVI(**shared)


def test_one_signature_whatever_the_hyper_parameters():
    for make in variants():
        use(make)
    for name, entry in ENTRIES.items():
        found = signatures(entry)
        assert found, f"{name} was never called"
        assert set(found.values()) == {1}, f"{name} was compiled twice for {[key for key, n in found.items() if n > 1]}"
    ours = TwinRooms().dynamics
    models = {model_of(make()) for make in variants()}
    assert len(models) >= 3
    for model in models:
        assert sum(key[0] is model and type(ours) in key for key in signatures(run_compiled)) >= 1
        assert sum(key[0] is model for key in signatures(perform)) >= 1
    kernel = model_of(next(variants())())
    spaces = [key for key in signatures(perform) if key[0] is kernel and {LpSpace, Apart, Everything} <= {*key}]
    folded = [key for key in spaces if any("base" in getattr(cls, "_fields", ()) for cls in key)]
    assert len(spaces) - len(folded) == 2  # one for all of Lp, on all samples and on representatives


def test_counting_sees_a_second_signature():
    """The test above can fail."""

    @numba.njit
    def entry(space):
        return space.p

    space = krl.metrics.Lp(2).space(np.zeros(2), np.ones(2))
    entry(space)
    entry(space._replace(p=2.5))
    assert signatures(entry) == {(LpSpace,): 1}
    entry(space._replace(p=2))
    assert signatures(entry) == {(LpSpace,): 2}


def test_a_new_process_compiles_nothing():
    """Everything comes from the cache on disk, which this process has filled."""
    for make in variants():
        use(make)
    program = f"""
import json, sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
from test_compile_once import ENTRIES, use, variants

for make in list(variants())[-14:]:
    use(make)
stats = {{name: (sum(e.stats.cache_hits.values()), sum(e.stats.cache_misses.values())) for name, e in ENTRIES.items()}}
print(json.dumps([stats, compiled]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    stats, compiled = json.loads(run.stdout)
    assert {name: misses for name, (_, misses) in stats.items()} == dict.fromkeys(ENTRIES, 0)
    assert all(hits >= 1 for hits, _ in stats.values())
    assert compiled == []
    assert "Compiling" not in run.stderr


MODELS = {
    "KernelUCBVI": {}, "GreedyKernelUCBVI": {}, "UCBVI": {"bins": 2}, "GreedyUCBVI": {"bins": 2}, "OptQL": {"bins": 2},
    "AdaptiveQL": {}, "AdaMB": {}, "RandomAgent": {},
}  # fmt: skip


@pytest.mark.parametrize("names", [list(MODELS), list(MODELS)[::-1]], ids=["", "the other way round"])
def test_keys_do_not_depend_on_what_was_imported(names):
    """They would if a module implemented a verb for a class that agents have without that module.

    All machine code with such a class would be compiled twice: by processes that have imported the module, and others.
    """
    program = f"""
import importlib, json
import gymnasium as gym, numba
import kernelrl as krl
from kernelrl.jit.code_key import Ingredients
from kernelrl.jit.compile import ROOT, WHERE_COMPILED
from kernelrl.jit.handles import hand_over

def lines(agent):
    made_of = Ingredients()
    made_of.add_type(numba.typeof(hand_over(agent.model)))
    return made_of.lines

models, before = {MODELS}, {{}}
for name in {names}:
    agent = getattr(krl, name)(**models[name])
    agent.start(gym.spaces.Box(0, 1, (2,)), gym.spaces.Discrete(2), 4)
    before[agent] = lines(agent)
for file in sorted(file for place in WHERE_COMPILED for file in (ROOT / place).rglob("*.py")):
    importlib.import_module(".".join(["kernelrl", *file.relative_to(ROOT).with_suffix("").parts]))
print(json.dumps([[type(agent).__name__, old, lines(agent)] for agent, old in before.items()]))
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    for name, old, new in json.loads(run.stdout):
        verbs, later = ([line for line in lines if line.startswith("'verb'")] for lines in (old, new))
        assert len(verbs) > 3 and verbs == later, name
        assert old == new, name


class Started:
    """The event that numba sends when it sets about compiling `entry` for a model."""

    def __init__(self, entry, metric):
        agent = krl.KernelUCBVI(bandwidth=1, representatives=None, horizon=2)
        agent.start(gym.spaces.Box(0, 1, (2,), np.float64), gym.spaces.Discrete(2), 2)
        space = krl.metrics.resolve_metric(metric).space(np.zeros(2), np.ones(2))
        model = agent.model._replace(settings=agent.model.settings._replace(space=space))
        self.data = {"dispatcher": entry, "args": (numba.typeof(model), numba.int64)}


def start_and_end(notice, event):
    """The compilation of an entry function, from beginning to end."""
    notice.on_start(event)
    notice.on_end(event)


def test_compiling_is_announced(capsys):
    """Before the pause, once per algorithm, and with the reason."""
    notice = CompileNotice()
    start_and_end(notice, Started(perform, "euclidean"))
    assert capsys.readouterr().err == "Compiling KernelUCBVI (once; the result is kept) …\n"
    start_and_end(notice, Started(run_compiled, "manhattan"))  # the same pause, as the user sees it
    assert capsys.readouterr().err == ""
    start_and_end(CompileNotice(), Started(perform, around))  # a user's function is kept as well
    assert capsys.readouterr().err == "Compiling KernelUCBVI (once; the result is kept) …\n"
    start_and_end(CompileNotice(), Started(perform, overloaded))
    assert "(in each process again, since it uses difference, a function)" in capsys.readouterr().err


def test_what_an_entry_function_calls_is_not_announced(capsys):
    notice = CompileNotice()
    notice.on_start(Started(ask_for_room, "euclidean"))
    notice.on_start(Started(perform, "euclidean"))
    assert capsys.readouterr().err == ""


def test_little_things_are_not_announced(capsys):
    event = Started(perform, "euclidean")
    event.data = {"dispatcher": around, "args": (numba.float64[:], numba.float64[:])}
    CompileNotice().on_start(event)
    event.data = {"dispatcher": around, "args": ()}
    CompileNotice().on_start(event)
    assert capsys.readouterr().err == ""


def test_everything_compiled_is_part_of_the_cache_key():
    for file in ROOT.rglob("*.py"):
        inside = file.relative_to(ROOT).parts[0] in WHERE_COMPILED
        assert inside or "core.compile import" not in file.read_text(), file
