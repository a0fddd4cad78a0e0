"""Hyper-parameters through agents' files, experiments' files and reports: one registry, one form, nothing is lost."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
import zipfile
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelrl as krl
import user_functions
import user_objects
from experiment_parts import HERE, call, environment
from kernelrl.agents import codec
from kernelrl.agents.registry import NAMES, PACKAGE, REGISTRY, Recursion, kind_of, registered
from kernelrl.experiments.config import AgentEntry, read_experiment
from kernelrl.experiments.objects import build_agent, configuration
from kernelrl.reporting import tables

# ------------------------------------------------------------------------------------------------ objects of each class

positive = st.floats(1e-9, 1e9)
lp = st.builds(
    krl.metrics.Lp,
    st.sampled_from([1.0, 2.0, float("inf")]) | st.floats(1, 50),
    st.none() | st.just("box") | positive | st.lists(positive, min_size=1, max_size=3),
)
confidence = {"delta": st.floats(0.001, 0.999), "episodes": st.none() | st.integers(1, 10**9)}
texts = st.text(st.characters(codec="utf-8", exclude_characters="\x7f"), max_size=8) | st.sampled_from(
    ["none", "inf", "-inf", "auto", 'say "no"', "a = [1, {b}] # c"]
)
numbers = st.integers() | st.floats(allow_nan=False)
plain = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=5,
)
FUNCTIONS = [user_functions.around, user_functions.mirror]
OBJECTS = {
    krl.metrics.Lp: lp,
    krl.metrics.Folded: st.builds(
        krl.metrics.Folded,
        st.sampled_from([user_functions.mirror, krl.envs.twin_rooms_fold]),
        lp | st.sampled_from(["euclidean", "chebyshev"]),
        st.none() | st.floats(0, 9),
    ),
    krl.metrics.Custom: st.just(krl.metrics.Custom(user_functions.around)),
    krl.kernels.ExponentialPower: st.builds(krl.kernels.ExponentialPower, st.floats(2.01, 50)),
    **{cls: st.just(cls()) for cls in PACKAGE["kernel"].values() if cls is not krl.kernels.ExponentialPower},
    krl.bonuses.Full: st.builds(
        krl.bonuses.Full, **confidence, reward_term=st.sampled_from(["corrected", "printed"])
    ),
    krl.bonuses.Joint: st.builds(
        krl.bonuses.Joint, **confidence, self_normalised=st.booleans(), bernstein=st.booleans()
    ),
    krl.schedules.Power: st.builds(
        lambda minimum, more, exponent: krl.schedules.Power(minimum + more, minimum, exponent),
        st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 3),
    ),
    krl.schedules.Local: st.builds(
        lambda minimum, more, exponent, by: krl.schedules.Local(minimum + more, minimum, exponent, by),
        st.floats(0.01, 1), st.floats(0, 1), st.floats(0, 3), st.sampled_from(["action", "state"]),
    ),
    krl.schedules.Bandwidths: st.builds(
        krl.schedules.Bandwidths, st.lists(st.floats(0.01, 1), min_size=2, max_size=4, unique=True)
    ),
    Recursion: st.builds(Recursion, st.floats(0, 9), st.floats(0, 9)),
    user_objects.Halving: st.builds(user_objects.Halving, st.floats(0.1, 1), st.just(0.05), st.integers(1, 99)),
    user_objects.Weighted: st.builds(user_objects.Weighted, st.lists(positive, min_size=1, max_size=4).map(tuple)),
    user_objects.Laplace: st.just(user_objects.Laplace()),
    user_objects.Anything: st.builds(
        user_objects.Anything, number=numbers, word=st.none() | texts, pairs=st.lists(st.tuples(positive)).map(tuple),
        either=plain.filter(lambda value: isinstance(value, list | tuple)), rule=st.sampled_from([None, *FUNCTIONS]),
        rules=st.lists(st.sampled_from(FUNCTIONS), max_size=2).map(tuple), inner_metric=st.none() | lp,
        other=plain | lp | st.just(krl.kernels.Compact()) | st.sampled_from(FUNCTIONS) | st.just(krl.bonuses.Joint()),
    ),
}  # fmt: skip
for _cls in [*PACKAGE["bonus"].values(), user_objects.Half]:
    if _cls not in OBJECTS:
        OBJECTS[_cls] = st.builds(_cls, **({"scale": st.floats(0, 9)} if hasattr(_cls(), "scale") else {}))
MORE = {"lipschitz": (0.5, 1.0), "reward_range": (0, 1)}  # what the bonuses with guarantees need

every_class = pytest.mark.parametrize("cls", OBJECTS, ids=lambda cls: cls.__name__)
few = settings(max_examples=25, deadline=None)


def test_every_registered_class_is_tried():
    found = {cls for names in REGISTRY.values() for cls in names.values()}  # other tests may have registered their own
    assert set(OBJECTS) == {cls for cls in found if cls.__module__.partition(".")[0] in ("kernelrl", "user_objects")}


def held(value):
    """The object as an agent holds it."""
    return (value.reward, value.transition) if isinstance(value, Recursion) else value


def agent_with(value):
    """An agent with that object among its hyper-parameters, and under which name."""
    kind = NAMES[type(value)][0]
    options = {"bandwidth": 0.1, **(MORE if kind == "bonus" else {}), kind: held(value)}
    return krl.KernelUCBVI(**options, representatives=0.1), kind


def toml(value):
    """A value as TOML, by hand: what a user would type."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str | bool) else repr(value)


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[(),=\[\]]|[^\s(),=\[\]"]+')


def parsed(said):
    """The table that `codec.text` says, without `from`; its grammar is that of calls, lists and tuples."""
    tokens = TOKEN.findall(said)

    def items(end, one):
        found = []
        while tokens[0] != end:
            found.append(one())
            if tokens[0] == ",":
                tokens.pop(0)
        tokens.pop(0)
        return found

    def pair():
        key = tokens.pop(0)
        assert tokens.pop(0) == "="
        return key, value()

    def value():
        first = tokens.pop(0)
        if first == "(":
            return {"name": "tuple", "items": items(")", value)}
        if first == "[":
            return items("]", value)
        if tokens and tokens[0] == "(":
            tokens.pop(0)
            return {"name": first, **dict(items(")", pair))}
        if first.startswith('"'):
            word = json.loads(first)
            return {"name": "text", "text": word} if word in codec.WORDS else word
        return first if first in codec.WORDS else json.loads(first)

    found = value()
    assert not tokens
    return found


def same(one, other):
    """Equal, and of the same types all the way down."""
    assert one == other and repr(one) == repr(other)


# ------------------------------------------------------------------------------------------------------- there and back


@every_class
@given(data=st.data())
@few
def test_tables(cls, data):
    value = data.draw(OBJECTS[cls])
    kind, name = NAMES[cls]
    table = codec.encode(kind, value)
    assert table["name"] == name and "kind" not in table
    assert table.get("from") == (None if cls.__module__.startswith("kernelrl.") else "user_objects")
    same(codec.decode(kind, table), held(value))
    same(codec.decode(kind, json.loads(json.dumps(table, allow_nan=False))), held(value))
    same(codec.decode(kind, tomllib.loads(f"it = {toml(table)}")["it"]), held(value))
    elsewhere = codec.encode("thing", value)  # a hyper-parameter whose name says nothing about its kind
    assert elsewhere["kind"] == kind
    same(codec.decode("thing", elsewhere), held(value))
    assert codec.encode(f"action_{kind}", value) == table


@every_class
@given(data=st.data())
@few
def test_files(cls, data, tmp_path_factory):
    value = data.draw(OBJECTS[cls])
    agent, kind = agent_with(value)
    path = tmp_path_factory.mktemp("files") / "agent.krl"
    agent.save(path)
    with zipfile.ZipFile(path) as archive:
        stored = json.loads(archive.read("kernelrl.json"))["hyper_parameters"]
    twin = krl.load(path, trust=True)
    same(getattr(twin, kind), getattr(agent, kind))
    assert repr(twin) == repr(agent)
    assert stored[kind] == codec.encode(kind, value)
    # The header's tables are those of an experiment, and the run's configuration has them, too.
    text = "\n".join(f"{name} = {toml(table)}" for name, table in stored.items())
    entry = AgentEntry(label="it", agent="KernelUCBVI", **tomllib.loads(text))
    made = build_agent(entry)
    assert repr(made) == repr(agent)
    assert configuration(made, entry, SimpleNamespace(table={"id": ""}))["hyper_parameters"] == stored


@every_class
@given(data=st.data())
@few
def test_reports(cls, data, tmp_path_factory):
    value = data.draw(OBJECTS[cls])
    agent, kind = agent_with(value)
    stored = codec.encode_all({name: getattr(agent, name) for name in agent.hyper_parameters})
    said = codec.text(stored[kind])
    if cls is not user_objects.Anything:  # whose `other` may be of a kind that is not said
        same(codec.decode(kind, parsed(said)), held(value))
    folder = tmp_path_factory.mktemp("run")
    made = {"configuration": {"agent": "KernelUCBVI", "hyper_parameters": stored}}
    (folder / "run.json").write_text(json.dumps(made), encoding="utf-8")
    curve = SimpleNamespace(label="it", place=0, runs=[SimpleNamespace(seed=0, path=folder)])
    page = tables.hyper_parameters(SimpleNamespace(curves=[curve]))
    assert tables.escape(f"{kind} = {said}") in page


@given(value=plain)
@few
def test_plain_values(value):
    """Whatever a hyper-parameter of a user's own agent is."""
    table = codec.encode("amount", value)
    same(codec.decode("amount", json.loads(json.dumps(table, allow_nan=False))), value)
    same(codec.decode("amount", tomllib.loads(f"it = {toml(table)}")["it"]), value)
    same(codec.decode("amount", parsed(codec.text(table))), value)


def test_the_words():
    assert codec.encode("metric", krl.metrics.Lp(2, "box")) == {"name": "lp", "p": 2.0, "scale": "box"}
    assert codec.encode("metric", krl.metrics.Lp(float("inf"))) == {"name": "lp", "p": "inf", "scale": "none"}
    assert codec.encode("lipschitz", (10, 1)) == {"name": "recursion", "reward": 10, "transition": 1}
    assert codec.encode("bandwidth", user_objects.quarter) == {
        "name": "function", "function": "user_objects:quarter",
    }  # fmt: skip
    weighted = codec.encode("metric", user_objects.Weighted((1.0, 2.0)))
    assert weighted == {"name": "weighted", "from": "user_objects", "weights": [1.0, 2.0]}
    assert codec.text(weighted) == "weighted(weights=[1.0, 2.0])"
    settings_used = {"bandwidth": 0.1, "metric": krl.metrics.Lp(2, "box"), "reward_range": (0.0, 1.0), "horizon": None}
    assert codec.describe(codec.encode_all(settings_used)) == (
        'bandwidth = 0.1, metric = lp(p=2.0, scale="box"), reward_range = (0.0, 1.0), horizon = none'
    )
    assert codec.text({"name": "lp", "scale": "box"}, quoted=False) == "lp(scale=box)"


@pytest.mark.parametrize("value", [float("nan"), [1.0, float("nan")], {"a": 1}, {1, 2}, b"", 1j, object()])
def test_what_is_no_value(value):
    with pytest.raises(ValueError, match=r"^amount: .* cannot be saved"):
        codec.encode("amount", value)


# ------------------------------------------------------------------------------------------------- a user's own objects

OWN = {
    "bandwidth": user_objects.Halving(0.2, 0.05, 3),
    "metric": user_objects.Weighted((1.0, 4.0)),
    "kernel": user_objects.Laplace(),
    "bonus": user_objects.Half(scale=0.1),
}
EXPERIMENT = """
name = "own"
episodes = 12
seeds = 1
environment = {id = "kernelrl/TwinRooms-v0"}

[[agents]]
label = "mine"
agent = "KernelUCBVI"
representatives = 0.1
bandwidth = {name = "halving", from = "own_objects", start = 0.2, minimum = 0.05, every = 3}
metric = {name = "weighted", from = "own_objects", weights = [1.0, 4.0]}
kernel = {name = "laplace", from = "own_objects"}
bonus = {name = "half", from = "own_objects", scale = 0.1}
"""


def test_an_agent_of_own_objects(tmp_path):
    """It learns by them, and goes on from a file to the last bit."""
    whole, agent = (krl.KernelUCBVI(**OWN, representatives=0.1) for _ in range(2))
    history = whole.fit("kernelrl/TwinRooms-v0", 12, seed=3)
    agent.fit("kernelrl/TwinRooms-v0", 7, seed=3)
    agent.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl")  # no trust: the module has been imported
    assert repr(twin) == repr(agent) and twin.metric == OWN["metric"]
    assert twin.fit("kernelrl/TwinRooms-v0", 5).returns.tolist() == history.returns[7:].tolist()
    plain_metric = krl.KernelUCBVI(**{**OWN, "metric": krl.metrics.Lp(2, scale=[1.0, 0.5])}, representatives=0.1)
    assert plain_metric.fit("kernelrl/TwinRooms-v0", 12, seed=3).returns.tolist() == history.returns.tolist()


def test_an_experiment_with_own_objects(tmp_path):
    """By the command line, in processes that know of the module from the file only: run, go on, report."""
    (tmp_path / "own_objects.py").write_text((HERE / "user_objects.py").read_text())
    (tmp_path / "own.toml").write_text(EXPERIMENT)
    out = tmp_path / "results"
    done = call("run", tmp_path / "own.toml", "--out", out)
    assert done.returncode == 0, done.stderr
    configured = json.loads((out / "runs/mine/seed-0/run.json").read_text())["configuration"]["hyper_parameters"]
    assert configured["metric"] == {"name": "weighted", "from": "own_objects", "weights": [1.0, 4.0]}
    (tmp_path / "own.toml").write_text(EXPERIMENT.replace("episodes = 12", "episodes = 15"))
    done = call("run", tmp_path / "own.toml", "--out", out)  # from the checkpoint
    assert done.returncode == 0, done.stderr
    program = "import sys; sys.path.append(sys.argv[1])\nfrom kernelrl import experiments\n"
    program += "run, = experiments.open_store(sys.argv[2]).runs()\nprint(run.agent().episodes, run.agent().metric)"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path, out], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.stdout == "15 Weighted(weights=(1.0, 4.0))\n", done.stderr
    curve = SimpleNamespace(label="mine", place=0, runs=[SimpleNamespace(seed=0, path=out / "runs/mine/seed-0")])
    page = tables.hyper_parameters(SimpleNamespace(curves=[curve]))
    assert "bandwidth = halving(start=0.2, minimum=0.05, every=3), " in page
    assert (
        "metric = weighted(weights=[1.0, 4.0]), bonus = half(root=1.0, count=1.0, scale=0.1)" in page
        and "kernel = laplace()" in page
    )


def test_experiments_use_what_is_registered(tmp_path):
    """A module that has been imported already, by whatever part of the experiment, need not be named."""
    for text in (EXPERIMENT.replace("own_objects", "user_objects"), EXPERIMENT.replace(', from = "own_objects"', "")):
        (tmp_path / "own.toml").write_text(text)
        made = build_agent(read_experiment(tmp_path / "own.toml").agents[0])
        assert {name: getattr(made, name) for name in OWN} == OWN


def test_listing_has_own_objects():
    assert registered("metric")["weighted"] == "√Σ weight_j·(x_j-x'_j)²."
    assert registered("bandwidth")["halving"] == "σ_k halves every so many episodes, down to a minimum."
    assert list(registered("metric"))[:3] == ["lp", "folded", "custom"] and "function" in registered("bandwidth")


@pytest.fixture
def untouched():
    """The registry as it was, afterwards."""
    tables = [NAMES, *REGISTRY.values()]
    before = [dict(table) for table in tables]
    yield
    for table, content in zip(tables, before, strict=True):
        table.clear()
        table.update(content)


@pytest.fixture
def forgotten(monkeypatch, untouched):
    """As in a process that has not imported `user_objects`."""
    for kind, name in [("metric", "weighted"), ("bandwidth", "halving")]:
        del REGISTRY[kind][name]
    monkeypatch.delitem(sys.modules, "user_objects")


def test_files_do_not_import_by_themselves(tmp_path, forgotten):
    path = tmp_path / "agent.krl"
    krl.KernelUCBVI(bandwidth=0.1, metric=OWN["metric"]).save(path)
    words = r'agent\.krl was saved with the metric "weighted" as metric, which the module user_objects registers'
    with pytest.raises(ValueError, match=rf"{words}, .*; import user_objects before loading.*trust=True") as caught:
        krl.load(path)
    assert "user_objects" not in sys.modules and "damaged" not in str(caught.value)
    supplied = krl.load(path, metric=OWN["metric"])
    assert supplied.metric is OWN["metric"]
    trusted = krl.load(path, trust=True).metric
    assert repr(trusted) == repr(OWN["metric"]) and type(trusted) is sys.modules["user_objects"].Weighted


@pytest.mark.parametrize("module", ["__main__", "no_such_module", "math", "user_functions"])
def test_modules_that_register_nothing(tmp_path, forgotten, module, monkeypatch):
    path = tmp_path / "agent.krl"
    monkeypatch.setattr(user_objects.Weighted, "__module__", module)
    krl.KernelUCBVI(bandwidth=0.1, metric=OWN["metric"]).save(path)
    with pytest.raises(ValueError, match=f"import {module} before loading"):
        krl.load(path)
    with pytest.raises(ValueError, match=rf"agent\.krl .*module {module} registers.*(krl\.load|krl\.register)\("):
        krl.load(path, trust=True)
    assert krl.load(path, metric=OWN["metric"]).metric is OWN["metric"]


def test_functions_within_own_objects_need_trust(tmp_path):
    path = tmp_path / "agent.krl"
    krl.KernelUCBVI(bandwidth=0.1, metric=user_objects.Anything(rule=user_functions.around)).save(path)
    with pytest.raises(ValueError, match=r"was saved with the function user_functions:.* as metric, .*metric=…"):
        krl.load(path)
    assert krl.load(path, trust=True).metric.rule is user_functions.around


# -------------------------------------------------------------------------------------------------------- registering


def make(name="Mine", /, frozen=True, **fields):
    cls = dataclass(frozen=frozen)(type(name, (), {"__annotations__": fields, "__module__": "somewhere"}))
    cls.__qualname__ = name
    return cls


def test_registering_twice(untouched):
    one = krl.register("metric", "mine")(make(size=int))
    assert REGISTRY["metric"]["mine"] is one
    assert krl.register("metric", "mine")(one) is one
    again = krl.register("metric", "mine")(make(size=float))  # the same module, run again
    assert REGISTRY["metric"]["mine"] is again
    assert codec.encode("metric", one(3)) == codec.encode("metric", again(3)) != codec.encode("metric", again(3.5))
    with pytest.raises(ValueError, match=r'the metric "mine" is somewhere:Mine already; give somewhere:Other another'):
        krl.register("metric", "mine")(make("Other"))
    with pytest.raises(ValueError, match=r'"lp" is kernelrl\.geometry\.metrics:Lp already'):
        krl.register("metric", "lp")(make())
    with pytest.raises(ValueError, match=r'somewhere:Mine is already the metric "mine"; one name is enough'):
        krl.register("bonus", "mine")(again)
    assert krl.register("bonus", "mine")(make("Other"))


def test_what_cannot_be_registered(untouched):
    with pytest.raises(ValueError, match=r'no kind "metrik" \(did you mean metric\?\); allowed: bandwidth, bonus'):
        krl.register("metrik", "mine")
    for name in ("", "a b", "a:b", "(x)", "function", "tuple", "text", "none", 3):
        with pytest.raises(ValueError, match="register: name must begin with a letter"):
            krl.register("metric", name)

    class Bare:
        pass

    class Undecorated(krl.metrics.Lp):
        more: float = 1.0

    for cls in (Bare, Undecorated, make(frozen=False), user_functions.around, krl.metrics.Lp()):
        with pytest.raises(TypeError, match=r"is not a frozen dataclass; put @dataclass\(frozen=True\) between"):
            krl.register("metric", "mine")(cls)
    for field in ("name", "kind"):
        with pytest.raises(TypeError, match=f'has a field "{field}", a key that tables need'):
            krl.register("metric", "mine")(make(**{field: str}))
    assert "mine" not in REGISTRY["metric"]


def test_kinds_by_names_of_arguments():
    assert [kind_of(name) for name in ("metric", "action_metric", "bonus_scale", "x")] == [
        "metric",
        "metric",
        None,
        None,
    ]
