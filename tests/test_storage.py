"""Saving and loading: everything comes back, nothing is lost when writing fails, and bad files say what is wrong.

`test_edited_files.py` tries many more bad files.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import json
import math
import os
import time
import zipfile

import gymnasium as gym
import numba
import numpy as np
import pytest
from numba import njit

import kernelrl as krl
import user_functions
from kernelrl.agents import archive as archive_module
from kernelrl.agents import registry, storage
from kernelrl.geometry import buckets

KERNEL = {"bonus": "simplified", "reading": "nearest", "bandwidth": 0.1, "representatives": None}


def started(seed=3, **options):
    """An agent with a little data."""
    agent = krl.GreedyKernelUCBVI(**{**KERNEL, "lipschitz": 1.0, "bonus_scale": 0.05, **options})
    agent.fit(gym.make("kernelrl/TwinRooms-v0"), 4, seed=seed)
    return agent


def values(agent):
    return agent.q_values(np.random.default_rng(0).random((5, 2)), step=2).tolist()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "agent.krl"
    started().save(path)
    return path


# ------------------------------------------------------------------------------------------------------ what comes back


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kernel": "tricube", "metric": "manhattan", "bonus": "simplified", "horizon": 9},
        {"kernel": krl.kernels.Gaussian(), "metric": krl.metrics.Lp(math.inf)},
        {"kernel": krl.kernels.ExponentialPower(3.7), "metric": krl.metrics.Lp(1.5, scale=[0.1, 1 / 3])},
        {"kernel": krl.kernels.Outside("cosine"), "metric": krl.metrics.Lp(3, scale="box")},
        {"metric": krl.metrics.Lp(2, scale=0.25), "lipschitz": (0.1, 1 / 3)},
        {"lipschitz": [1, 2, 3], "stationary": False},
        {"lipschitz": np.array([0.1, 0.2, 0.3]), "replan": "doubling"},
        {"lipschitz": 2, "reward_range": (-1.1, 2.3), "regularization": 1 / 3, "bonus_scale": 0.1 + 0.2},
        {"metric": user_functions.around},
        {"metric": krl.metrics.Custom(user_functions.Namespace.around)},
        {"metric": krl.metrics.Folded(user_functions.mirror, krl.metrics.Lp(1, scale=[2.0, 3.0]))},
        {"metric": krl.metrics.Folded(krl.envs.twin_rooms_fold), "replan": "step"},
    ],
)
def test_all_hyper_parameters(options, tmp_path):
    agent = krl.KernelUCBVI(**{**KERNEL, **options})
    agent.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl", trust=True)
    assert type(twin) is krl.KernelUCBVI
    for name in agent.hyper_parameters:
        one, other = getattr(agent, name), getattr(twin, name)
        assert one == other and type(one) is type(other), name
    assert repr(twin) == repr(agent)


@pytest.mark.parametrize("make", [lambda **options: krl.KernelUCBVI(**KERNEL, **options), krl.RandomAgent])
def test_not_started(make, tmp_path):
    make(horizon=5).save(tmp_path / "agent.krl")
    agent = krl.load(tmp_path / "agent.krl")
    assert agent.episodes == 0 and agent.horizon == 5
    with pytest.raises(RuntimeError, match="has not been started"):
        agent.act([0.1, 0.1], step=0)
    history = agent.fit(gym.make("kernelrl/TwinRooms-v0"), 3, seed=1)
    assert np.array_equal(history.returns, make(horizon=5).fit(gym.make("kernelrl/TwinRooms-v0"), 3, seed=1).returns)


def test_unbounded_states(tmp_path):
    low, high = np.array([-math.inf, 0.1]), np.array([math.inf, 1 / 3])
    space = gym.spaces.Box(low, high, dtype=np.float64)
    agent = krl.GreedyKernelUCBVI(**KERNEL, lipschitz=1.0)
    agent.start(space, gym.spaces.Discrete(2, start=-1), 3, seed=5)
    agent.begin_episode()
    agent.observe([-40.0, 0.2], -1, 0.5, [77.0, 0.3], 0)
    agent.end_episode()
    agent.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl")
    assert np.array_equal(twin.spaces.low, low) and np.array_equal(twin.spaces.high, high)
    states = [[-40.0, 0.2], [77.0, 0.3], [1e6, 0.1]]
    assert np.array_equal(agent.q_values(states, step=0), twin.q_values(states, step=0))
    assert twin.choose(states[0], 0) in (-1, 0)


def test_states_of_another_shape(tmp_path):
    agent = krl.RandomAgent(horizon=2)
    agent.start(gym.spaces.Box(0.0, 1.0, (2, 3), np.float32), gym.spaces.Discrete(3), 2, seed=1)
    agent.save(tmp_path / "agent.krl")
    assert krl.load(tmp_path / "agent.krl").values(np.zeros((4, 2, 3)), step=1).shape == (4,)


def test_everything_of_the_state(tmp_path):
    """Every array, the random stream among them."""
    agent = started()
    agent.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl")
    arrays = dict(storage.arrays_of(agent.model))
    others = dict(storage.arrays_of(twin.model))
    assert "stream" in arrays and arrays.keys() == others.keys()
    for name, array in arrays.items():
        assert np.array_equal(array, others[name], equal_nan=True) and array.dtype == others[name].dtype, name
        assert others[name].flags.c_contiguous and others[name].flags.writeable
        assert not np.shares_memory(array, others[name])
    assert twin.episodes == 4 and twin.seed == 3


def test_saving_again_gives_the_same_file(tmp_path, saved):
    agent = krl.load(saved)
    agent.save(tmp_path / "again.krl")
    with zipfile.ZipFile(saved) as one, zipfile.ZipFile(tmp_path / "again.krl") as other:
        assert one.namelist() == other.namelist()
        assert all(one.read(name) == other.read(name) for name in one.namelist())


@pytest.mark.parametrize("kind", [str, os.fspath, lambda path: path])
def test_paths(kind, tmp_path):
    krl.RandomAgent().save(kind(tmp_path / "with space é.krl"))
    assert isinstance(krl.load(kind(tmp_path / "with space é.krl")), krl.RandomAgent)


@pytest.mark.parametrize("wrong", [None, 3])
def test_what_is_no_path_is_named(wrong):
    for call in (krl.RandomAgent().save, krl.load):
        with pytest.raises(TypeError, match=rf'^path must be a path, such as "agent.krl"; got {wrong}'):
            call(wrong)


def test_no_pickle(saved):
    """Only JSON and arrays that NumPy reads without pickle."""
    with zipfile.ZipFile(saved) as archive:
        names = archive.namelist()
        assert names[0] == "kernelrl.json" and all(name.endswith(".npy") for name in names[1:]) and len(names) > 10
        header = json.loads(archive.read("kernelrl.json"))
        for name in names[1:]:
            array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
            assert array.dtype != object
    assert header["format"] == storage.FORMAT and header["version"] == krl.__version__
    assert header["agent"] == "GreedyKernelUCBVI"


# -------------------------------------------------------------------------------------------------------- writing fails


@pytest.mark.parametrize("moment", ["arrays", "sync", "replace"])
def test_a_failure_leaves_the_old_file(moment, tmp_path, monkeypatch):
    path = tmp_path / "agent.krl"
    old = started(seed=1)
    old.save(path)
    before = path.read_bytes()
    new = started(seed=2)

    def fail(*arguments, **options):
        raise OSError("no space left on device")

    if moment == "arrays":
        write = np.lib.format.write_array
        written = []

        def write_some(entry, array, **options):
            written.append(1)
            return fail() if len(written) == 5 else write(entry, array, **options)

        monkeypatch.setattr(np.lib.format, "write_array", write_some)
    else:
        monkeypatch.setattr(os, "fsync" if moment == "sync" else "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        new.save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["agent.krl"]
    assert values(krl.load(path)) == values(old)
    new.save(path)  # and now it works
    assert values(krl.load(path)) == values(new) != values(old)
    assert os.listdir(tmp_path) == ["agent.krl"]


def test_directory_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        krl.RandomAgent().save(tmp_path / "nowhere" / "agent.krl")


# -------------------------------------------------------------------------------------------------------- reading fails


def test_no_such_file(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"path: .* is a folder; give the file of an agent"):
        krl.load(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"path: there is no file .*absent\.krl"):
        krl.load(tmp_path / "absent.krl")


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_short(share, saved, tmp_path):
    content = saved.read_bytes()
    path = tmp_path / "short.krl"
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match=r"path: .*short\.krl is not a saved kernelrl agent, or it is damaged or cut"):
        krl.load(path)


@pytest.mark.parametrize("content", [b"some text\n", b"", b"\x93NUMPY\x01\x00", b"PK\x03\x04 and no more"])
def test_another_kind_of_file(content, tmp_path):
    path = tmp_path / "foreign.krl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"path: .*foreign\.krl is not a saved kernelrl agent"):
        krl.load(path)


def test_another_zip_file(tmp_path):
    np.savez(tmp_path / "arrays.npz", x=np.zeros(3))
    with pytest.raises(ValueError, match=r"path: .*arrays\.npz is a zip file, but not a saved kernelrl agent"):
        krl.load(tmp_path / "arrays.npz")


def state_of(agent):
    """All that the file holds, to compare."""
    arrays = {name: array.tolist() for name, array in storage.arrays_of(agent.model)}
    spaces = agent.spaces
    return repr(agent), agent.episodes, agent.seed, spaces.horizon, spaces.low.tolist(), spaces.high.tolist(), arrays


def damage(path, content, places, expected):
    """Change one byte after the other; return how often that was noticed."""
    noticed = 0
    for place in places:
        for mask in (1 << (place % 8), 0xFF):
            damaged = bytearray(content)
            damaged[place] ^= mask
            path.write_bytes(damaged)
            try:
                agent = krl.load(path)
            except ValueError as error:
                assert str(path) in str(error), f"byte {place}"
                noticed += 1
            else:
                assert state_of(agent) == expected, f"byte {place} changed the agent"
    return noticed


def test_any_damaged_byte_is_noticed_or_harmless(tmp_path):
    """Never another kind of error, and never an agent that differs."""
    agent, path = krl.RandomAgent(), tmp_path / "agent.krl"
    agent.fit(gym.make("kernelrl/TwinRooms-v0"), 4, seed=3)
    agent.save(path)
    content = path.read_bytes()
    assert damage(path, content, range(len(content)), state_of(agent)) > len(content)


def test_damage_to_an_agent_with_data(saved, tmp_path):
    content = saved.read_bytes()
    places = np.random.default_rng(0).integers(len(content), size=15)
    assert damage(tmp_path / "agent.krl", content, places.tolist(), state_of(krl.load(saved))) > 15


def rewritten(saved, path, change=None, drop=None, replace=None):
    """A copy of the file with another header, without an array, or with another one in its place."""
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "kernelrl.json" and change:
                content = json.dumps({**json.loads(content), **change}).encode()
            if replace and name == f"{replace[0]}.npy":
                file = io.BytesIO()
                np.save(file, replace[1])
                content = file.getvalue()
            if name != f"{drop}.npy":
                new.writestr(name, content)
    return path


def test_newer_format(saved, tmp_path):
    path = rewritten(saved, tmp_path / "newer.krl", {"format": storage.FORMAT + 1, "version": "9.8.7"})
    with pytest.raises(
        ValueError, match=r"path: .*newer\.krl was saved by a newer version of kernelrl \(9\.8\.7.*upgrade"
    ):
        krl.load(path)


def test_older_format(saved, tmp_path):
    path = rewritten(saved, tmp_path / "older.krl", {"format": 1})
    with pytest.raises(ValueError, match=r"path: .*older\.krl was saved by an earlier kernelrl .*units; learn again"):
        krl.load(path)
    path = rewritten(saved, tmp_path / "older.krl", {"format": 2})
    words = r"earlier kernelrl \(format 2, .* hyper-parameters in another form; learn again"
    with pytest.raises(ValueError, match=rf"path: .*older\.krl was saved by an {words}"):
        krl.load(path)


def test_unknown_agent(saved, tmp_path):
    path = rewritten(saved, tmp_path / "other.krl", {"agent": "Alphabet"})
    with pytest.raises(ValueError, match=r"path: .*other\.krl holds an agent of class 'Alphabet'"):
        krl.load(path)


def test_missing_array(saved, tmp_path):
    path = rewritten(saved, tmp_path / "partial.krl", drop="store.reward")
    with pytest.raises(ValueError, match=r"path: .*partial\.krl is damaged: .*store\.reward"):
        krl.load(path)


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (np.zeros(80, np.float32), "its type is float32, not float64"),
        (np.zeros((2, 2)), "it has 2 axes, not 1"),
        (np.zeros(3), "its shape is"),
        (np.zeros(2**20), "its shape is"),
        (np.zeros(80, ">f8"), "is not plain numbers in C order"),
    ],
)
def test_array_of_another_type(wrong, why, saved, tmp_path):
    path = rewritten(saved, tmp_path / "partial.krl", replace=("store.reward", wrong))
    with pytest.raises(ValueError, match=rf"path: .*partial\.krl is damaged: array store\.reward:? {why}"):
        krl.load(path)


def test_objects_are_not_unpickled(saved, tmp_path):
    path = rewritten(saved, tmp_path / "pickle.krl", replace=("store.reward", np.array([{}], object)))
    with pytest.raises(ValueError, match=r"path: .*pickle\.krl is damaged: array store\.reward is not plain numbers"):
        krl.load(path)


# ------------------------------------------------------------------------------------------------------------ functions


def local_metric():
    @njit
    def inside(x, y):
        return abs(x[0] - y[0])

    return inside


def of_main():
    """A function as a script would have it."""

    @njit
    def around(x, y):
        return abs(x[0] - y[0])

    plain = getattr(around, "py_func", around)
    plain.__module__, plain.__qualname__ = "__main__", "around"
    return around


def of_a_module_that_is_gone():
    function = local_metric()
    plain = getattr(function, "py_func", function)
    plain.__module__, plain.__qualname__ = "no_such_module", "inside"
    return function


@pytest.mark.parametrize("make", [local_metric, of_main, of_a_module_that_is_gone])
@pytest.mark.parametrize("wrap", [krl.metrics.Custom, None])
def test_functions_that_cannot_be_imported(make, wrap, tmp_path):
    function, path = make(), tmp_path / "agent.krl"
    krl.KernelUCBVI(**KERNEL, metric=function).save(path)
    supply = r"supply it: krl\.load\(path, metric=…\)"
    with pytest.raises(ValueError, match=rf"^path: .*agent\.krl was saved with the function .* as metric, .*{supply}"):
        krl.load(path)
    with pytest.raises(ValueError, match=rf"path: .*agent\.krl .*, which cannot be imported \(.*\); {supply}"):
        krl.load(path, trust=True)
    agent = krl.load(path, metric=wrap(function) if wrap else function)
    assert agent.metric == krl.metrics.Custom(function)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="no function is compiled with the JIT disabled")
def test_functions_are_named_by_where_they_are(tmp_path):
    krl.KernelUCBVI(**KERNEL, metric=user_functions.around).save(tmp_path / "agent.krl")
    with zipfile.ZipFile(tmp_path / "agent.krl") as archive:
        stored = json.loads(archive.read("kernelrl.json"))["hyper_parameters"]["metric"]
    assert stored == {"name": "custom", "function": "user_functions:around"}


def test_only_functions_can_be_given_on_loading(saved):
    with pytest.raises(TypeError, match=r"bandwidth was saved with the agent .* cannot be changed on loading"):
        krl.load(saved, bandwidth=0.3)
    with pytest.raises(TypeError, match="metric was saved with the agent"):
        krl.load(saved, metric="manhattan")
    with pytest.raises(TypeError, match="size is not a hyper-parameter of GreedyKernelUCBVI"):
        krl.load(saved, size=3)


# ------------------------------------------------------------------------------------------------- no code of the file


def test_functions_are_not_imported(saved, tmp_path):
    """Not even looked for: importing runs code, and a bandwidth is called."""
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    header = json.loads(zipfile.ZipFile(saved).read("kernelrl.json"))["hyper_parameters"]
    for function in ("os:_exit", "trap:anything", "__main__:x", "a.b.c", ""):
        for name, value in (
            ("bandwidth", {"name": "function", "function": function}),
            ("metric", {"name": "custom", "function": function}),
            ("metric", {"name": "folded", "map": function, "metric": {"name": "lp", "p": 2, "scale": "none"}}),
            ("metric", {"name": "folded", "map": "os:_exit", "metric": {"name": "custom", "function": function}}),
            ("kernel", {"name": "tuple", "items": [{"name": "function", "function": function}]}),
            ("kernel", [{"name": "function", "function": function}]),
        ):
            path = rewritten(saved, tmp_path / "trap.krl", {"hyper_parameters": {**header, name: value}})
            with pytest.raises(ValueError, match=rf"trap\.krl was saved with the function .* as {name}") as caught:
                krl.load(path)
            assert f"krl.load(path, {name}=…)" in str(caught.value) and "trust=True" in str(caught.value)


def test_functions_are_imported_where_the_file_is_trusted(tmp_path):
    krl.KernelUCBVI(**KERNEL, metric=user_functions.around).save(tmp_path / "agent.krl")
    assert krl.load(tmp_path / "agent.krl", trust=True).metric.function is user_functions.around
    assert krl.load(tmp_path / "agent.krl", metric=user_functions.around).metric.function is user_functions.around


def test_functions_of_this_package_need_no_trust(tmp_path):
    krl.KernelUCBVI(**KERNEL, metric=krl.metrics.Folded(krl.envs.twin_rooms_fold)).save(tmp_path / "agent.krl")
    assert krl.load(tmp_path / "agent.krl").metric.map is krl.envs.twin_rooms_fold


# ----------------------------------------------------------------------------------------------- every hyper-parameter


@pytest.mark.parametrize(
    "options",
    [
        {"bonus": krl.bonuses.Simplified(0.25, 0.5, 2.0)},
        {"bonus": krl.bonuses.Full(0.1, 1000, "printed"), "lipschitz": (0.5, 1.0), "reward_range": (0, 1)},
        {"bonus": krl.bonuses.Joint(0.1, None, False), "lipschitz": 2.0, "reward_range": (0, 1)},
        {"bandwidth": krl.schedules.Power(0.3, 0.1, 0.5)},
        {"bandwidth": krl.schedules.Bandwidths([0.1, 0.3])},
        {"kernel": krl.kernels.Compact()},
        {"kernel": krl.kernels.ExponentialPower(3.5)},
        *({"kernel": krl.kernels.Outside(name)} for name in krl.kernels.OUTSIDE),
    ],
)
def test_all_objects(options, tmp_path):
    agent = krl.KernelUCBVI(**{"bandwidth": 0.1, **options})
    agent.save(tmp_path / "agent.krl")
    assert repr(krl.load(tmp_path / "agent.krl")) == repr(agent)


def test_every_class_of_objects_can_be_saved():
    """One that is added to these modules must be registered, or users meet it when they save."""
    for kind, module in (
        ("bonus", krl.bonuses),
        ("metric", krl.metrics),
        ("bandwidth", krl.schedules),
        ("kernel", krl.kernels),
    ):
        classes = {thing for thing in vars(module).values() if dataclasses.is_dataclass(thing)}
        given = {krl.bonuses.BonusProblem}  # what a bonus is told, not a hyper-parameter
        assert classes - given == set(registry.PACKAGE[kind].values())


def test_what_cannot_be_saved(tmp_path):
    @dataclasses.dataclass(frozen=True)
    class Wide(krl.kernels.Gaussian):
        C1 = 2.0

    register = r'@krl\.register\("kernel", "…"\)'
    with pytest.raises(ValueError, match=rf"kernel: .*Wide\(\) cannot be saved, .* is not registered; .*{register}"):
        krl.KernelUCBVI(**KERNEL, kernel=Wide()).save(tmp_path / "agent.krl")
    with pytest.raises(ValueError, match=r"bandwidth: .* cannot be saved, since it has no name to import it by"):
        krl.KernelUCBVI(bandwidth=functools.partial(max, 0.1), representatives=None).save(tmp_path / "agent.krl")
    assert not os.listdir(tmp_path)


# ------------------------------------------------------------------------------------------------------- what is read


def test_sizes_are_checked_before_reading(saved, tmp_path, monkeypatch):
    """Nothing is inflated that is larger than what was expected."""
    content = zipfile.ZipFile(saved).read("kernelrl.json").decode()
    large = tmp_path / "large.krl"
    with zipfile.ZipFile(large, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("kernelrl.json", content + " " * 2**24)
    with pytest.raises(ValueError, match=r"large\.krl .*its header takes 16,77\d,\d* bytes, and at most 1,048,576"):
        krl.load(large)

    def refuse(*arguments, **options):
        raise AssertionError("an array was read")

    monkeypatch.setattr(np.lib.format, "read_array", refuse)
    path = rewritten(saved, tmp_path / "bomb.krl", replace=("store.states", np.zeros((2, 10**6, 2))))
    with pytest.raises(ValueError, match=r"bomb\.krl is damaged: array store\.\w+: its shape"):
        krl.load(path)
    monkeypatch.setattr(archive_module, "available_memory", lambda: 1000)
    with pytest.raises(ValueError, match=r"its arrays take [\d,]+ bytes, and 1,000 bytes of memory are available"):
        krl.load(saved)


def test_a_shape_that_its_entry_does_not_have(saved, tmp_path):
    path = tmp_path / "lying.krl"
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(path, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content + b"0" * 8 if name == "store.reward.npy" else content)
    with pytest.raises(ValueError, match=r"lying\.krl is damaged: array store\.reward of shape .* takes .* bytes, but"):
        krl.load(path)


@pytest.mark.parametrize("name", ["other.npy", "../other.npy", "store.reward.txt", "model.pkl"])
def test_nothing_else_is_in_the_file(name, saved, tmp_path):
    path = rewritten(saved, tmp_path / "more.krl")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, saved.read_bytes()[:100] if name == "model.pkl" else npy(np.zeros(3)))
    with pytest.raises(ValueError, match=r"more\.krl is damaged: it holds .*, which is not of such an agent"):
        krl.load(path)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_one_name_twice(saved, tmp_path):
    path = rewritten(saved, tmp_path / "twice.krl")
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr("kernelrl.json", "{}")
    with pytest.raises(ValueError, match=r"twice\.krl .*two entries of the same name"):
        krl.load(path)


@pytest.mark.parametrize("key", ["format", "version", "agent", "hyper_parameters", "started", "more"])
def test_keys_of_the_header(key, saved, tmp_path):
    for value in (None, 77, "x", [], {}):
        path = rewritten(saved, tmp_path / "keys.krl", {key: value})
        with pytest.raises(ValueError, match=r"path: .*keys\.krl "):
            krl.load(path)
            assert key == "version" and value == "x"  # which may be anything
            raise ValueError("path: keys.krl ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("horizon", 0), ("horizon", 10**15), ("horizon", "20"), ("actions", 0), ("actions", 10**15), ("actions", True),
        ("seed", -1), ("seed", 2**63), ("episodes", -1), ("episodes", 1.0), ("low", [0.0, 0.0]), ("low", ["0.0"]),
        ("low", ["3", "3"]), ("low", ["nan", "0"]), ("high", "1"), ("shape", [3]), ("shape", [-1, -2]), ("discrete", 1),
        ("discrete", True), ("first_action", 2**62), ("sigma", -1.0), ("sigma", None), ("more", 1),
    ],
)  # fmt: skip
def test_numbers_of_the_header(key, value, saved, tmp_path):
    started = json.loads(zipfile.ZipFile(saved).read("kernelrl.json"))["started"]
    path = rewritten(saved, tmp_path / "numbers.krl", {"started": {**started, key: value}})
    with pytest.raises(ValueError, match=r"path: .*numbers\.krl is damaged: "):
        krl.load(path)


def test_growth_is_bounded_by_memory(monkeypatch):
    with pytest.raises(
        MemoryError, match=r"shape \(2, 1000000000000\) takes 16,000,000,000,000 bytes, and [\d,]+ bytes"
    ):
        buckets.lengthen(np.zeros((2, 3)), 10**12, 1)
    agent = krl.KernelUCBVI(**KERNEL, stationary=False)
    with pytest.raises(MemoryError, match="bytes are available"):
        agent.start(gym.spaces.Box(0.0, 1.0, (2,)), gym.spaces.Discrete(10**7), 10**4)
    assert buckets.lengthen(np.ones((2, 3)), 5, 1).sum() == 6


# ---------------------------------------------------------------------------------------------------------- equal files


def test_equal_agents_make_equal_files(tmp_path, monkeypatch):
    """Whatever the time is and whatever was read out of them in between."""
    one, other = started(), started()
    one.save(tmp_path / "one.krl")
    monkeypatch.setattr(time, "time", lambda: 2e9)
    monkeypatch.setattr(time, "localtime", lambda *_: time.struct_time((2033, 5, 18, 3, 33, 20, 2, 138, 0)))
    values(other), other.act([0.3, 0.3], 1), other.counts([[0.4, 0.2]], 0)
    other.save(tmp_path / "other.krl")
    assert (tmp_path / "one.krl").read_bytes() == (tmp_path / "other.krl").read_bytes()
    krl.load(tmp_path / "one.krl").save(tmp_path / "again.krl")
    assert (tmp_path / "one.krl").read_bytes() == (tmp_path / "again.krl").read_bytes()


def test_a_kernel_is_no_bandwidth():
    with pytest.raises(ValueError, match="bandwidth must be a finite number above 0, got Gaussian"):
        krl.KernelUCBVI(bandwidth=krl.kernels.Gaussian(), representatives=0.1)
