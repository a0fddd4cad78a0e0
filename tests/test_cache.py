"""Compiled code on disk: never stale, never another's, whole or compiled again; and not needed."""

from __future__ import annotations

import errno
import importlib.util
import itertools
import json
import os
import pickle
import subprocess
import sys
import threading
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba.core.registry import cpu_target

import kernelrl as krl
from cache_race import race
from kernelrl.episodes import verbs
from kernelrl.jit import code_cache
from kernelrl.jit.code_cache import CodeCache
from kernelrl.jit.code_key import UnknownError
from kernelrl.jit.compile import cache_dir, compiled
from listening import LISTEN
from prepared import Prepared, user_environment

pytestmark = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache for this test; the folder in which entries come to lie."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(code_cache, "said", set())
    cache_dir.cache_clear()
    yield cache_dir()
    cache_dir.cache_clear()


def times(factor, **options):
    """A function that multiplies; every call makes a new one, which has nothing but the disk to go by."""

    def multiply(x):
        return x * factor

    return compiled(multiply, **options)


def came_from_disk(function):
    """How many signatures of a function were found on disk."""
    return sum(function.stats.cache_hits.values())


def entries(home):
    """The files with machine code."""
    return sorted(home.glob("*.code"))


class Bomb:
    """Ends the process when it is unpickled."""

    def __reduce__(self):
        return os._exit, (3,)


def test_code_is_found_again(home):
    assert [times(3)(2), times(3)(1.5)] == [6, 4.5]
    assert len(entries(home)) == 2
    again = times(3)
    assert [again(2), again(1.5)] == [6, 4.5]
    assert came_from_disk(again) == 2
    assert len(entries(home)) == 2


DAMAGES = {
    "empty": lambda data: b"",
    "beginning only": lambda data: data[:10],
    "cut in the digest": lambda data: data[:40],
    "no payload": lambda data: data[:56],
    "half": lambda data: data[: len(data) // 2],
    "last byte missing": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "one bit": lambda data: data[:-100] + bytes([data[-100] ^ 1]) + data[-99:],
    "zeros": lambda data: bytes(len(data)),
    "another kind": lambda data: pickle.dumps(Bomb()),
    "pickle behind a good beginning": lambda data: data[:56] + pickle.dumps(Bomb()),
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_compiled_again(home, damage):
    times(3)(2)
    (entry,) = entries(home)
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    function = times(3)
    assert function(2) == 6
    assert came_from_disk(function) == 0
    assert entries(home) == [entry]  # in its place
    again = times(3)
    assert again(2) == 6
    assert came_from_disk(again) == 1


def test_a_damaged_entry_is_deleted(home, monkeypatch):
    times(3)(2)
    (entry,) = entries(home)
    entry.write_bytes(b"nonsense")
    monkeypatch.setattr(CodeCache, "save_overload", lambda self, sig, data: None)
    assert times(3)(2) == 6
    assert entries(home) == []


def test_an_entry_that_cannot_be_loaded_is_compiled_again(home):
    """Whole as far as the digest goes, but of no use."""
    function = times(3)
    key = function._cache.key((numba.int64,), cpu_target.target_context.codegen())
    other = times(5)
    other(1.5)
    good = code_cache.read(entries(home)[0], other._cache.key((numba.float64,), cpu_target.target_context.codegen()))
    for payload in (b"nonsense", pickle.dumps((1, 2, 3, 4)), good):
        code_cache.write(function._cache.path(key), key, payload)
        fresh = times(3)
        assert fresh(2) == 6
        assert came_from_disk(fresh) == 0


def test_swapped_entries_are_compiled_again(home):
    """Whole, each in the place of another: another function, another constant, another type."""

    def name(x, y):
        return x - y

    def functions():
        return times(2), times(3), compiled(name)

    def results(two, three, difference):
        return [two(2), two(1.5), three(2), three(1.5), difference(5.0, 1.0)]

    right = results(*functions())
    assert right == [4, 3.0, 6, 4.5, 4.0]
    files = entries(home)
    assert len(files) == 5
    data = [file.read_bytes() for file in files]
    for shift in range(1, 5):
        for file, content in zip(files, data[shift:] + data[:shift], strict=True):
            file.write_bytes(content)
        these = functions()
        assert results(*these) == right
        assert [came_from_disk(function) for function in these] == [0, 0, 0]
    these = functions()
    assert results(*these) == right
    assert [came_from_disk(function) for function in these] == [2, 2, 1]


def test_a_folder_that_cannot_be_made_is_said_once(home, tmp_path, capsys):
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert [times(2)(2), times(3)(2), times(3)(1.5)] == [4, 6, 4.5]
    said = capsys.readouterr().err
    assert said.count("compiled code cannot be kept") == 1
    assert str(home) in said
    assert "XDG_CACHE_HOME" in said


def test_a_full_disk_is_said_once_and_leaves_nothing(home, monkeypatch, capsys):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(code_cache.os, "replace", full)
    assert [times(2)(2), times(3)(2)] == [4, 6]
    assert capsys.readouterr().err.count("No space left on device") == 1
    assert [file.name for file in home.iterdir()] == ["lock"]


def test_a_folder_that_is_read_only_serves_what_it_has(home, monkeypatch, capsys):
    times(2)(2)
    monkeypatch.setattr(code_cache, "write", lambda *arguments: pytest.fail("nothing is to be written"))
    function = times(2)
    assert function(2) == 4
    assert came_from_disk(function) == 1
    assert capsys.readouterr().err == ""


def refuse_to_lock(*arguments):
    raise OSError(errno.ENOLCK, "No locks available")


@pytest.mark.parametrize("broken", ["no module", "no locks"])
def test_works_where_files_cannot_be_locked(home, monkeypatch, broken):
    if broken == "no module":
        monkeypatch.setattr(code_cache, "fcntl", None)
    else:
        monkeypatch.setattr(code_cache.fcntl, "flock", refuse_to_lock)
    times(2)(2)
    function = times(2)
    assert function(2) == 4
    assert came_from_disk(function) == 1


def test_what_another_process_compiles_is_waited_for(home):
    """Two open files of one process lock each other out, too."""
    path, got = home / "some.code", []
    held = code_cache.claim(path)
    waiting = threading.Thread(target=lambda: got.append(code_cache.claim(path)))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive() and not got
    held.close()
    waiting.join(10.0)
    assert len(got) == 1
    got[0].close()


def test_waiting_ends(home, monkeypatch):
    monkeypatch.setattr(code_cache, "WAIT", 0.2)
    path = home / "some.code"
    with code_cache.claim(path), code_cache.claim(path) as other:
        assert other is not None  # it compiles, too


def test_claims_end_with_compiling(home):
    works, fails = compiled(lambda x: x + 1), compiled(lambda x: x.no_such_thing)
    assert works(1) == 2
    with pytest.raises(numba.TypingError):
        fails(1)
    adopted = numba.njit(cache=True)(lambda x: x + 2)
    code_cache.adopt([adopted], home)
    assert adopted(1) == 3
    assert not list(home.glob("*.busy"))


def test_an_entry_that_appears_ends_waiting(home):
    path = home / "some.code"
    with code_cache.claim(path):
        threading.Timer(0.2, path.write_bytes, [b"x"]).start()
        code_cache.claim(path).close()
        assert path.exists()


def test_saving_waits_for_the_lock(home):
    home.mkdir(parents=True)
    with code_cache.locked(home):
        saving = threading.Thread(target=code_cache.write, args=(home / "x.code", "key", b"payload"))
        saving.start()
        saving.join(0.2)
        assert saving.is_alive()
        assert not (home / "x.code").exists()
    saving.join()
    assert code_cache.read(home / "x.code", "key") == b"payload"


# ------------------------------------------------------------------------------------------------------------- the key

HELPER = """
from numba import njit
LIMIT = 5.0
@njit
def helper(x):
    return x + 1
"""
SOURCE = """
import math
import sys
from enum import IntEnum
from typing import NamedTuple
import numba, numpy as np
import {helper} as elsewhere
from {helper} import helper
from kernelrl.episodes.verbs import read_bonuses, read_counts
from kernelrl.geometry.metrics import embed, is_plane
GAIN = 2.0
TABLE = np.array([1.0, 2.0])
class Mode(IntEnum):
    SLOW = 1
class Pair(NamedTuple):
    left: float
    right: float = 0.0
@is_plane.implement(Pair)
def is_plane_pair(space, x):
    return True
@embed.implement(Pair)
def embed_pair(space, x, out):
    out[0] = 1.0
@read_counts.implement(Pair)
def read_pair(model, state, h, out):
    out[0] = 3.0
@numba.njit(fastmath=False)
def inside(x):
    return math.sqrt(x) + elsewhere.LIMIT
def make(k):
    def function(x, shift=1.0):
        pair = Pair(x, 1.0)
        return GAIN * x + TABLE[0] + Mode.SLOW + inside(x) + helper(x) + elsewhere.helper(x) + shift + k + pair.left
    return function
function = make(3)
"""
EDITS = {
    "global": ("GAIN = 2.0", "GAIN = 3.0"),
    "type of a global": ("GAIN = 2.0", "GAIN = 2"),
    "array": ("1.0, 2.0]", "1.0, 2.5]"),
    "type of an array": ("2.0])", "2.0], np.float32)"),
    "enum": ("SLOW = 1", "SLOW = 4"),
    "default": ("shift=1.0", "shift=2.0"),
    "closure": ("make(3)", "make(4)"),
    "own code": ("GAIN * x", "GAIN / x"),
    "constant": ("Pair(x, 1.0)", "Pair(x, 2.0)"),
    "function": ("math.sqrt(x)", "math.cos(x)"),
    "option": ("fastmath=False", "fastmath=True"),
    "verb of a class": ("out[0] = 1.0", "out[0] = 2.0"),
    "which verb": ("@read_counts.implement", "@read_bonuses.implement"),
    "field": ("right: float = 0.0", "other: float = 0.0"),
    "default of a field": ("right: float = 0.0", "right: float = 1.0"),
}
HELPER_EDITS = {
    "constant": ("x + 1", "x + 2"),
    "global": ("LIMIT = 5.0", "LIMIT = 6.0"),
    "options": ("@njit\n", "@njit(fastmath=True)\n"),
}


class Modules:
    """Makes modules of sources, which are gone from the disk once they are imported: only what they hold counts."""

    def __init__(self, tmp_path, monkeypatch):
        self._folder, self._patch, self._numbers = tmp_path, monkeypatch, itertools.count()

    def make(self, name, source):
        file = self._folder / f"{name}.py"
        file.write_text(source)
        spec = importlib.util.spec_from_file_location(name, file)
        module = importlib.util.module_from_spec(spec)
        self._patch.setitem(sys.modules, name, module)
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            spec.loader.exec_module(module)
        finally:
            sys.dont_write_bytecode = before
        file.unlink()
        return module


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """A maker of modules."""
    return Modules(tmp_path, monkeypatch)


def key_of(function):
    """The key of a function of one float."""
    return CodeCache(function, {}, "nowhere").key((numba.float64,), cpu_target.target_context.codegen())


def key_of_sources(modules, source=SOURCE, helper=HELPER):
    modules.make("cache_helper", helper)
    return key_of(modules.make("cache_user", source.replace("{helper}", "cache_helper")).function)


def test_the_key_stays_the_same(modules):
    assert key_of_sources(modules) == key_of_sources(modules)


@pytest.mark.parametrize(("old", "new"), EDITS.values(), ids=EDITS)
def test_the_key_covers_what_is_compiled(modules, old, new):
    assert SOURCE.count(old) == 1
    assert key_of_sources(modules) != key_of_sources(modules, SOURCE.replace(old, new))


@pytest.mark.parametrize(("old", "new"), HELPER_EDITS.values(), ids=HELPER_EDITS)
def test_the_key_covers_other_files(modules, old, new):
    assert HELPER.count(old) == 1
    assert key_of_sources(modules) != key_of_sources(modules, helper=HELPER.replace(old, new))
    only_as_module = SOURCE.replace("helper(x) + elsewhere", "elsewhere")
    assert key_of_sources(modules, only_as_module) != key_of_sources(modules, only_as_module, HELPER.replace(old, new))


def test_the_key_covers_options_and_types():
    def function(x):
        return x

    codegen = cpu_target.target_context.codegen()
    keys = {
        CodeCache(function, options, "nowhere").key(signature, codegen)
        for options in ({}, {"fastmath": True}, {"fastmath": {"nsz"}}, {"fastmath": {"nsz", "reassoc"}})
        for signature in ((numba.int64,), (numba.float64,), (numba.float64[::1],), (numba.float64[:],))
    }
    assert len(keys) == 16


def test_the_key_covers_the_rest_of_a_users_file(tmp_path, modules):
    """The compiler may come to use things in it that nothing here follows, such as an overloaded attribute."""
    function = modules.make("cache_file", "def function(x):\n    return x\n").function
    keys = [key_of(function)]
    for text in ("anything", "anything else"):
        (tmp_path / "cache_file.py").write_text(text)
        keys.append(key_of(function))
    assert len(set(keys)) == 3


UNKNOWN = {
    "a generator": "G = np.random.default_rng(0)\n@numba.njit\ndef function(x):\n    return x + G.random()",
    "an overload": "def plain(x):\n    return x\n@overload(plain)\ndef ol(x):\n    return lambda x: x\n"
    "@numba.njit\ndef function(x):\n    return plain(x)",
    "an intrinsic": "@intrinsic\ndef same(context, x):\n    return x(x), lambda c, b, s, a: a[0]\n"
    "@numba.njit\ndef function(x):\n    return same(x)",
    "a universal function": "@numba.vectorize\ndef up(x):\n    return x + 1\n"
    "@numba.njit\ndef function(x):\n    return up(x)",
    "an empty cell": "def make():\n    def function(x):\n        return x + later\n    return function\n    later = 1\n"
    "function = make()",
}


@pytest.mark.parametrize("source", UNKNOWN.values(), ids=UNKNOWN)
def test_what_no_key_can_stand_for_is_not_kept(modules, source):
    start = "import numba, numpy as np\nfrom numba.extending import intrinsic, overload\n"
    module = modules.make("cache_unknown", start + source)
    function = getattr(module.function, "py_func", module.function)
    with pytest.raises(UnknownError):
        key_of(function)
    assert CodeCache(function, {}, "nowhere").why_not_kept((numba.float64,))


def test_what_is_not_known_works(home, modules):
    source = UNKNOWN["an overload"]
    module = modules.make("cache_works", "import numba\nfrom numba.extending import overload\n" + source)
    assert compiled(module.function.py_func)(2.5) == 2.5
    assert entries(home) == []


# --------------------------------------------------------------------------------------------------- a user's own files

MINE = """
from typing import NamedTuple
import numpy as np
from kernelrl.episodes import verbs as verbs
from kernelrl.jit.stream import seed_stream
from kernelrl.envs.interface import advance, reset
from numba import njit
from my_helper import reward_of

class Mine(NamedTuple):
    level: float

class Tank(NamedTuple):
    inflow: float

@verbs.choose.implement(Mine)
def choose(model, state, h):
    return 2

@verbs.has_room.implement(Mine)
def has_room(model):
    return True

@verbs.begin_episode.implement(Mine)
@verbs.end_episode.implement(Mine)
def nothing(model):
    return None

@verbs.observe.implement(Mine)
def observe(model, state, action, reward, next_state, h, terminated):
    return None

@verbs.read_values.implement(Mine)
def read_values(model, state, h):
    return model.level

@verbs.read_q.implement(Mine)
@verbs.read_counts.implement(Mine)
@verbs.read_bonuses.implement(Mine)
def read(model, state, h, out):
    out[:] = model.level

@reset.implement(Tank)
def start(env, seed, stream, state):
    seed_stream(stream, seed)
    state[0] = env.inflow

@advance.implement(Tank)
def step(env, stream, state, action, next_state):
    next_state[0] = state[0]
    return reward_of(action), False, False

@njit
def distance(x, y):
    return 1.0 * abs(x[0] - y[0])

@njit
def fold(state, out):
    out[0] = 0.5 * state[0]
"""
MY_HELPER = """
from numba import njit

@njit(cache=True)
def reward_of(action):
    return 1.0 * factor(action)

from my_constants import factor
"""
MY_CONSTANTS = """
from numba import njit

@njit
def factor(action):
    return 10.0 * action
"""
RUN = (
    """
import json
import numpy as np
import kernelrl as krl
from kernelrl.geometry import metrics
from kernelrl.episodes.loop import run_compiled

"""
    + LISTEN
    + """

def run():
    x, y, stream, returns = np.zeros(1), np.zeros(1), np.zeros(4, np.uint64), np.zeros(1)
    box, limits = np.array([[-1e9], [1e9]]), np.array([-1e9, 1e9, 0.0, 1.0])
    arrays = (returns, np.zeros(1, np.int64), np.zeros(1), np.array([np.inf, -np.inf]), np.zeros(3))
    run_compiled(Mine(0.0), Tank(0.5), stream, x, y, 0, 0, 1, 1, box, limits, *arrays)
    out = np.zeros(1)
    custom = krl.metrics.Custom(distance).space(np.zeros(1), np.ones(1))
    metrics.squared_distances(custom, np.full((1, 1, 1), 3.0), 0, 1, 1, np.zeros(1), out)
    folded = np.zeros(1)
    metrics.embed(krl.metrics.Folded(fold).space(np.zeros(1), np.ones(1)), np.ones(1), folded)
    chosen = verbs.choose(Mine(0.0), x, 0)
    ours = [name for name in compiled if name.split(".")[-1] not in ("distance", "fold")]  # these numba keeps nowhere
    print(json.dumps([chosen, returns[0], x[0], out[0], folded[0], ours]))

event.register("numba:compile", Listener())
run()
"""
)
START = [2, 20.0, 0.5, 9.0, 0.5]
USER_EDITS = (  # file, old text, new text, results
    ("mine.py", "    return 2\n", "    return 3\n", [3, 30.0, 0.5, 9.0, 0.5]),
    ("mine.py", "state[0] = env.inflow", "state[0] = env.inflow + 0.25", [3, 30.0, 0.75, 9.0, 0.5]),
    ("mine.py", "1.0 * abs", "2.0 * abs", [3, 30.0, 0.75, 36.0, 0.5]),
    ("mine.py", "out[0] = 0.5 *", "out[0] = 0.25 *", [3, 30.0, 0.75, 36.0, 0.25]),
    ("my_helper.py", "1.0 * factor", "2.0 * factor", [3, 60.0, 0.75, 36.0, 0.25]),
    ("my_constants.py", "10.0 * action", "7.0 * action", [3, 42.0, 0.75, 36.0, 0.25]),
)


def write_user_files(folder):
    (folder / "mine.py").write_text(MINE)
    (folder / "my_helper.py").write_text(MY_HELPER)
    (folder / "my_constants.py").write_text(MY_CONSTANTS)
    (folder / "run.py").write_text("from mine import *\nfrom mine import verbs\n" + RUN)


def edit(file, old, new):
    """Edit a file; its time goes on by a second, since Python's own cache looks at whole seconds and the size."""
    text = file.read_text()
    assert text.count(old) == 1
    time = file.stat().st_mtime + 1
    file.write_text(text.replace(old, new))
    os.utime(file, (time, time))


def start_user(folder, program="run.py"):
    return subprocess.Popen(
        [sys.executable, program],
        cwd=folder,
        env=user_environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def result_of(process):
    out, error = process.communicate()
    assert process.returncode == 0, error
    *results, compiled_again = json.loads(out)
    return results, compiled_again


def test_an_edited_file_is_compiled_again(tmp_path):
    """A user's algorithm, environment, metric and map, and functions in other files that they call."""
    write_user_files(tmp_path)
    with Prepared(tmp_path) as prepared:
        assert prepared.run()[0] == START
        for file, old, new, right in USER_EDITS:
            edit(tmp_path / file, old, new)
            assert prepared.run()[0] == right, (file, old)
    assert result_of(start_user(tmp_path)) == (right, [])
    edit(tmp_path / "my_constants.py", "7.0 * action", "10.0 * action")  # an earlier state, which is on disk, too
    edit(tmp_path / "my_helper.py", "2.0 * factor", "1.0 * factor")
    assert result_of(start_user(tmp_path)) == ([3, 30.0, 0.75, 36.0, 0.25], [])


def test_an_edited_script_is_compiled_again(tmp_path):
    """The same in `__main__`, and with all classes and functions made inside a function."""
    write_user_files(tmp_path)
    inside = "def all_inside():\n" + "".join(f"    {line}\n" for line in (MINE + RUN).splitlines()) + "all_inside()\n"
    with Prepared(tmp_path) as prepared:
        for program, source in (("script.py", MINE + RUN), ("inside.py", inside)):
            file = tmp_path / program
            file.write_text(source)
            assert prepared.run(program)[0] == START
            edit(file, "    return 2\n", "    return 3\n")
            edit(file, "1.0 * abs", "2.0 * abs")
            right = [3, 30.0, 0.5, 36.0, 0.5]
            assert prepared.run(program)[0] == right
            assert result_of(start_user(tmp_path, program)) == (right, [])


POOL = """
from typing import NamedTuple
import gymnasium as gym
import numpy as np
import kernelrl as krl
import pool_physics
from pool_physics import drop

LEVEL = 0.5

class Pool(NamedTuple):
    inflow: float

@krl.envs.reset.implement(Pool)
def start(env, seed, stream, state):
    state[0] = LEVEL

@krl.envs.advance.implement(Pool)
def step(env, stream, state, action, next_state):
    next_state[0] = state[0] + 0.0 * krl.random.normal(stream)
    return 1.0 * drop(state[0]) + pool_physics.EXTRA, False, False

class PoolEnv(krl.envs.CompiledEnv):
    def __init__(self):
        space = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        super().__init__(Pool(0.1), observation_space=space, action_space=gym.spaces.Discrete(2))
"""
POOL_PHYSICS = """
from numba import njit
EXTRA = 0.0

@njit
def drop(level):
    return 2.0 * level
"""
RUN_POOL = (
    """
import json
"""
    + LISTEN
    + """

event.register("numba:compile", Listener())
returns = [krl.RandomAgent(horizon=2).fit(PoolEnv(), 1, seed=0, driver=driver).returns[0]
           for driver in ("compiled", "python")]
print(json.dumps([*returns, compiled]))
"""
)
POOL_EDITS = (  # what, file, old text, new text, the return of two steps
    ("a constant", "pool.py", "LEVEL = 0.5", "LEVEL = 0.25", 1.0),
    ("a function of another file", "pool_physics.py", "2.0 * level", "4.0 * level", 2.0),
    ("a constant of another file", "pool_physics.py", "EXTRA = 0.0", "EXTRA = 1.0", 4.0),
    ("advance", "pool.py", "1.0 * drop", "3.0 * drop", 8.0),
    ("reset", "pool.py", "state[0] = LEVEL", "state[0] = LEVEL + 0.25", 14.0),
)


@pytest.mark.parametrize("program", ["run.py", "pool.py"])
def test_an_edited_environment_is_compiled_again(tmp_path, program):
    """A user's `CompiledEnv`, in a module or in the very script that is run, with either driver."""
    (tmp_path / "pool_physics.py").write_text(POOL_PHYSICS)
    (tmp_path / "pool.py").write_text(POOL if program == "run.py" else POOL + RUN_POOL)
    (tmp_path / "run.py").write_text("from pool import PoolEnv, krl\n" + RUN_POOL)
    with Prepared(tmp_path) as prepared:
        assert prepared.run(program)[0] == [2.0, 2.0]
        for what, file, old, new, right in POOL_EDITS:
            edit(tmp_path / file, old, new)
            assert prepared.run(program)[0] == [right, right], what
    assert result_of(start_user(tmp_path, program)) == ([right, right], [])


CELL = """
from typing import NamedTuple
from kernelrl.geometry.metrics import embed

class Cell(NamedTuple):
    scale: float

@embed.implement(Cell)
def embed_cell(space, x, out):
    out[0] = space.scale + FACTOR * x[0]
"""


def test_cells_of_a_notebook(home):
    """One name stands for what the cell was when it was last run; what is on disk is found again."""
    namespace = {"__name__": "__main__"}
    counts = []
    for factor in (2.0, 3.0, 2.0):
        exec(compile(CELL.replace("FACTOR", str(factor)), "<cell>", "exec"), namespace)
        out = np.zeros(1)
        namespace["embed"](namespace["Cell"](1.0), np.ones(1), out)
        assert out[0] == 1.0 + factor
        counts.append(len(entries(home)))
    assert counts == [1, 2, 2]


def test_cells_of_a_notebook_with_an_environment():
    """The compiled loop is one for all environments; numba knows a NamedTuple by its name, which is the same again."""
    namespace = {"__name__": "__main__"}
    cell = POOL.replace("import pool_physics\nfrom pool_physics import drop\n", "").replace("pool_physics.", "")
    cell = cell.replace("drop(state[0])", "EXTRA").replace("LEVEL = 0.5", "LEVEL, EXTRA = 0.5, FACTOR")
    for factor in (1.0, 2.0, 1.0):
        exec(compile(cell.replace("FACTOR", str(factor)), "<cell>", "exec"), namespace)
        env = namespace["PoolEnv"]()
        assert type(env.dynamics).__qualname__ == "Pool"
        for driver in ("compiled", "python"):
            history = krl.RandomAgent(horizon=3).fit(env, 2, seed=0, driver=driver)
            assert history.returns.tolist() == [6.0 * factor] * 2


def test_cells_of_a_notebook_with_an_algorithm():
    """The same where Python calls a verb through the one function for all models."""
    cell = "class Mine(NamedTuple):\n    level: float\n" + "".join(
        f"@verbs.{verb}.implement(Mine)\ndef {verb}({arguments}):\n    {body}\n"
        for verb, arguments, body in (
            ("has_room", "model", "return True"),
            ("begin_episode", "model", "return None"),
            ("end_episode", "model", "return None"),
            ("choose", "model, state, h", "return FACTOR"),
            ("observe", "model, state, action, reward, next_state, h, terminated", "return None"),
            ("read_values", "model, state, h", "return model.level"),
            *((f"read_{name}", "model, state, h, out", "out[:] = 0.0") for name in ("q", "counts", "bonuses")),
        )
    )
    for factor in (1, 2, 1):
        namespace = {"NamedTuple": NamedTuple, "verbs": verbs, "__name__": "__main__"}
        exec(compile(cell.replace("FACTOR", str(factor)), "<cell>", "exec"), namespace)
        assert verbs.choose(namespace["Mine"](0.0), np.zeros(1), 0) == factor


SAME_NAME = """
import json, sys
from numba import njit
from kernelrl.jit.compile import compiled

def make(k):
    @njit
    def down(x):
        return k if x < 2 else 2 * down(x - 1) + k * down(x - 2)

    @compiled
    def entry(x):
        return down(x) + down(x + 1)

    return entry

functions = [make(int(k)) for k in sys.argv[1:]]
print(json.dumps([[function(10) for function in functions], [len(f.stats.cache_hits) for f in functions]]))
"""


def test_functions_of_one_name_stay_apart(tmp_path):
    """Compiled in two processes, loaded into a third, where the machine code of both has a name."""
    (tmp_path / "program.py").write_text(SAME_NAME)
    results = []
    for factors in ("1", "2", "12"):
        run = subprocess.run(
            [sys.executable, "program.py", *factors], cwd=tmp_path, check=True, capture_output=True, text=True,
            env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        )  # fmt: skip
        results.append(json.loads(run.stdout))
    (one, _), (two, _), (both, found) = results
    assert one != two
    assert both == one + two
    assert found == [1, 1]


AGAIN = """
import json
import kernelrl as krl
from kernelrl.episodes.verbs import ask_for_room

agent = krl.RandomAgent()
for _ in range(3):
    agent.fit("kernelrl/TwinRooms-v0", 2, seed=0, driver="python", progress=False)
print(json.dumps([list(ask_for_room.stats.cache_misses.values()), list(ask_for_room.stats.cache_hits.values())]))
"""


def test_code_is_loaded_once(tmp_path):
    """What is loaded is found under the types of this process, which have other hashes than where it was compiled."""
    (tmp_path / "run.py").write_text(AGAIN)
    assert result_of(start_user(tmp_path)) == ([[1]], [])
    assert result_of(start_user(tmp_path)) == ([[]], [1])


OUTSIDE = """
import json, sys
import numpy as np
from kernelrl.jit.code_cache import adopt
from kernelrl.jit.compile import cache_dir, compiled
from numba import njit

@compiled
def alone(x):
    return 2.0 * x[0]

@compiled
def algebra(x):
    return np.dot(x, x)

@njit(cache=True)
def arrays(x):
    return np.sort(x + np.ones(2))[0]

adopt([arrays], cache_dir())
functions = [alone, algebra, arrays]
results = [(function(np.array([3.0, 4.0])), "numba.np.linalg" in sys.modules) for function in functions]
print(json.dumps([results, [len(function.stats.cache_hits) for function in functions]]))
"""


def test_numba_is_prepared_only_for_code_that_needs_it(tmp_path):
    """Code that calls linear algebra or allocates arrays needs functions that numba provides when it is prepared."""
    (tmp_path / "run.py").write_text(OUTSIDE)
    right = [6.0, 25.0, 4.0]
    assert result_of(start_user(tmp_path)) == ([[[value, True] for value in right]], [0, 0, 0])
    results, found = result_of(start_user(tmp_path))
    assert results == [[[6.0, False], [25.0, True], [4.0, True]]]
    assert found == [1, 1, 1]


# ----------------------------------------------------------------------------------------------- processes side by side


def test_two_processes_starting_cold_at_once(tmp_path):
    write_user_files(tmp_path)
    both = [start_user(tmp_path), start_user(tmp_path)]
    assert [result_of(process)[0] for process in both] == [START, START]
    assert result_of(start_user(tmp_path)) == (START, [])
    assert not list((tmp_path / "cache").rglob("unfinished-*"))


def test_race():
    outcome = race(5)
    assert outcome["failures"] == 0, outcome
    assert outcome["from_disk"] == outcome["read"] == 30
