"""Experiments' files: what they mean, and what is said about those that mean nothing."""

from __future__ import annotations

import math

import pytest

import kernelrl as krl
from experiment_parts import GREEDY, RANDOM, write_toml
from kernelrl.envs.making import make_environment
from kernelrl.envs.wrapping import time_limit
from kernelrl.experiments.config import AgentEntry, Experiment, ExperimentError, catalogue, read_experiment
from kernelrl.experiments.objects import build_agent, build_environment, listing, public_agents
from kernelrl.experiments.plan import Plan

EXAMPLE = """
name = "my-comparison"
episodes = 4000
seeds = 3                      # 0, 1, 2; or a list: [1, 2, 7]

[environment]
id = "kernelrl/TwinRooms-v0"   # and keyword arguments of the environment beside it

[[agents]]
label = "greedy"
agent = "GreedyKernelUCBVI"    # a public name, or an import path
bandwidth = 0.025
representatives = 0.05
"""


def read(tmp_path, text, **options):
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return read_experiment(path, **options)


def agent(**table):
    return build_agent(AgentEntry(**{"label": "it", "agent": "KernelUCBVI", "representatives": "none", **table}))


def test_the_example(tmp_path):
    experiment = read(tmp_path, EXAMPLE)
    assert (experiment.name, experiment.episodes, experiment.seeds) == ("my-comparison", 4000, [0, 1, 2])
    assert experiment.environment.id == "kernelrl/TwinRooms-v0" and experiment.environment.others == {}
    assert experiment.agents[0].others == {"bandwidth": 0.025, "representatives": 0.05}
    assert Experiment.checked(experiment.to_json(), "again") == experiment


def test_a_list_of_seeds_and_overriding(tmp_path):
    text = EXAMPLE.replace("seeds = 3", "seeds = [1, 2, 7]")
    assert read(tmp_path, text).seeds == [1, 2, 7]
    changed = read(tmp_path, text, episodes=5, seeds=2)
    assert (changed.episodes, changed.seeds) == (5, [0, 1])


def test_sweeps(tmp_path):
    experiment = read(tmp_path, EXAMPLE + "[agents.sweep]\nbonus_scale = [0.1, 1]\nstationary = [true, false]\n")
    assert [entry.label for entry in experiment.agents] == [
        "greedy bonus_scale=0.1 stationary=true",
        "greedy bonus_scale=0.1 stationary=false",
        "greedy bonus_scale=1 stationary=true",
        "greedy bonus_scale=1 stationary=false",
    ]
    assert experiment.agents[1].others == {
        "bandwidth": 0.025, "representatives": 0.05, "bonus_scale": 0.1, "stationary": False,
    }  # fmt: skip
    tables = EXAMPLE + '[agents.sweep]\nmetric = ["euclidean", {name = "lp", p = 3, scale = [1, 2]}]\n'
    assert read(tmp_path, tables).agents[1].label == "greedy metric=lp(p=3, scale=[1, 2])"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("seeds = 3", "seeds = [1, 2, 1]"), ["seeds", "seed 1 occurs twice"]),
        (("seeds = 3", "seeds = 3\nseeds = 4"), ["not TOML", "line 5"]),
        (("seeds = 3", "seeds = 0"), ["seeds", "at least 1"]),
        (("seeds = 3", "seeds = []"), ["seeds"]),
        (("seeds = 3", "seeds = [-1]"), ["seeds", "from 0"]),
        (("seeds = 3", "seeds = [1.5]"), ["seeds"]),
        (("seeds = 3", 'seeds = "three"'), ["seeds"]),
        (("seeds = 3", "seeds = true"), ["seeds"]),
        (("episodes = 4000", "episodes = 0"), ["episodes", "greater than or equal to 1", "got 0"]),
        (("episodes = 4000", 'episodes = "many"'), ["episodes", "integer", "'many'"]),
        (("episodes = 4000", "episodes = true"), ["episodes", "integer"]),
        (("episodes = 4000", ""), ["episodes is missing"]),
        (("episodes = 4000", "episodes = 4000\nepisode = 3"), ['"episode"', "did you mean episodes?", "seeds"]),
        (("[environment]", "[enviroment]"), ['"enviroment"', "environment is missing"]),
        (("id = ", "name = "), ["environment.id is missing"]),
        (("[[agents]]", "[agents]"), ["agents", "list"]),
        (('label = "greedy"', ""), ["agents number 1 label is missing"]),
        (('label = "greedy"', 'label = ""'), ["agents number 1 label"]),
        (('label = "greedy"', 'label = " greedy"'), ['agents " greedy" label', "spaces"]),
        (('agent = "GreedyKernelUCBVI"', ""), ['agents "greedy" agent is missing']),
        (("bandwidth = 0.025", "bandwidth = nan"), ["nan"]),
        (("bandwidth = 0.025", "bandwidth = 1979-05-27"), ['agents "greedy" bandwidth']),
        (("bandwidth = 0.025", "bandwidth = "), ["not TOML"]),
    ],
)
def test_wrong_shapes(tmp_path, change, words):
    assert change[0] in EXAMPLE
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path, EXAMPLE.replace(*change))
    for word in [*words, "experiment.toml"]:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ('[[agents]]\nlabel = "greedy"\nagent = "RandomAgent"', ['label "greedy" occurs twice']),
        ('[[agents]]\nlabel = "Greedy"\nagent = "RandomAgent"', ["greedy and Greedy", "capital"]),
        ("[agents.sweep]\nbandwidth = [1, 2]", ['"greedy"', "sweep.bandwidth", "also given"]),
        ("[agents.sweep]\nbonus_scale = []", ["sweep.bonus_scale", "empty"]),
        ("[agents.sweep]\nbonus_scale = [1, 2, 1.0]", ["sweep.bonus_scale", "twice"]),
        ("[agents.sweep]\nbonus_scale = 1", ['agents "greedy" sweep bonus_scale', "list"]),
        ('[agents.sweep]\nlabel = ["a"]', ["sweep.label"]),
    ],
)
def test_wrong_additions(tmp_path, more, words):
    with pytest.raises(ExperimentError) as caught:
        read(tmp_path, EXAMPLE + more)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("deep", [30, 500, 5000])
def test_nested_deeply(tmp_path, deep):
    texts = [f"bandwidth = {'[' * deep}{']' * deep}", f"bandwidth{'.a' * deep} = 1", f"bandwidth{'.a' * deep} = [nan]"]
    texts.append(f"bandwidth = {'{a = ' * deep}1{'}' * deep}")
    for text in texts:
        with pytest.raises(ExperimentError, match=r"experiment\.toml: .*nested more than 20 deep"):
            read(tmp_path, EXAMPLE.replace("bandwidth = 0.025", text))


def test_no_such_experiment(tmp_path):
    with pytest.raises(ExperimentError, match=r"no experiment of that name.*paper, quick"):
        read_experiment("papper")
    with pytest.raises(ExperimentError, match="no such file"):
        read_experiment(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ExperimentError, match="not TOML"):
        read_experiment(tmp_path / "binary.toml")


def test_objects_from_tables():
    folded = {"name": "folded", "map": "kernelrl.envs:twin_rooms_fold", "metric": {"name": "lp", "scale": "box"}}
    assert agent(bandwidth=0.1, metric={"name": "lp", "p": 2, "scale": "box"}).metric == krl.metrics.Lp(2, "box")
    assert agent(bandwidth=0.1, metric={"name": "lp", "p": math.inf}).metric == krl.metrics.Lp(math.inf)
    assert agent(bandwidth=0.1, metric=folded).metric == krl.metrics.Folded(
        krl.envs.twin_rooms_fold, krl.metrics.Lp(2, "box")
    )
    assert agent(bandwidth=0.1, metric={"name": "custom", "function": "user_functions:around"}).metric.function
    assert agent(bandwidth=0.1, metric="manhattan").metric == krl.metrics.Lp(1)
    kernel = agent(bandwidth=0.1, kernel={"name": "exponential-power", "p": 3}).kernel
    assert kernel == krl.kernels.ExponentialPower(3)
    assert agent(bandwidth=0.1, lipschitz={"name": "recursion", "reward": 10, "transition": 1}).lipschitz == (10, 1)
    joint = {
        "bonus": {"name": "joint", "delta": 0.1, "episodes": 50, "self_normalised": False},
        "lipschitz": [1.0] * 20,
        "reward_range": [0, 1],
    }
    assert agent(bandwidth=0.1, **joint).bonus == krl.bonuses.Joint(0.1, 50, False)
    assert agent(bandwidth=0.1, bonus={"name": "simplified", "scale": 0.5}).bonus == krl.bonuses.Simplified(scale=0.5)
    factors = {"name": "simplified", "root": 0.05, "count": 0.01}
    assert agent(bandwidth=0.1, bonus=factors).bonus == krl.bonuses.Simplified(0.05, 0.01)
    assert agent(bandwidth=0.1, lipschitz="none").lipschitz is None
    power = {"name": "power", "start": 0.05, "minimum": 0.012, "exponent": 0.25}
    assert agent(bandwidth=power, representatives=0.02).bandwidth == krl.schedules.Power(0.05, 0.012, 0.25)
    several = {"name": "bandwidths", "sigmas": [0.02, 0.1]}
    assert agent(bandwidth=several, representatives=0.02).bandwidth == krl.schedules.Bandwidths([0.1, 0.02])
    assert agent(bandwidth=0.1, reward_range=[-1, 2]).reward_range == (-1, 2)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, ["bandwidth"]),
        ({"bandwith": 0.1}, ['"bandwith"', "did you mean bandwidth?", "regularization"]),
        ({"bandwidth": -1}, ["bandwidth must be", "-1"]),
        ({"bandwidth": "wide"}, ["bandwidth must be", "wide"]),
        ({"bandwidth": 0.1, "metric": "euclidian"}, ["metric", "euclidian", "euclidean"]),
        ({"bandwidth": 0.1, "metric": {"p": 2}}, ["metric", "needs a name", "lp, folded, custom"]),
        ({"bandwidth": 0.1, "metric": {"name": "pl"}}, ["metric", '"pl"', "custom, folded, lp"]),
        ({"bandwidth": 0.1, "metric": {"name": "lp", "q": 2}}, ["metric: lp", '"q"', "p, scale"]),
        ({"bandwidth": 0.1, "metric": {"name": "lp", "p": 0.5}}, ["metric", "p must be at least 1"]),
        ({"bandwidth": 0.1, "metric": {"name": "folded"}}, ["metric: folded: map is missing"]),
        ({"bandwidth": 0.1, "metric": {"name": "folded", "map": "nowhere:f"}}, ["metric", "nowhere:f", "imported"]),
        ({"bandwidth": 0.1, "metric": {"name": "folded", "map": "f"}}, ["metric", "module:name"]),
        ({"bandwidth": 0.1, "metric": {"name": "folded", "map": 3}}, ["metric", "module:name", "3"]),
        ({"bandwidth": 0.1, "metric": {"name": ["lp"]}}, ["metric", "needs a name"]),
        ({"bandwidth": 0.1, "metric": {"name": "mine"}}, ["metric", "mine", 'from = "module"']),
        (
            {"bandwidth": 0.1, "metric": {"name": "mine", "from": "math"}},
            ["metric", "math registers no metric", "mine"],
        ),
        ({"bandwidth": 0.1, "metric": {"name": "mine", "from": "nowhere"}}, ["metric: from", "nowhere", "imported"]),
        ({"bandwidth": 0.1, "metric": {"name": "mine", "from": 3}}, ["metric", "from must be", "3"]),
        ({"bandwidth": 0.1, "metric": {"name": "lp", "kind": "norm"}}, ["metric", '"norm"', "kernel"]),
        ({"bandwidth": {"name": "powr"}}, ["bandwidth", "did you mean power?", "function"]),
        ({"bandwidth": {"name": "function"}}, ["bandwidth: function: function is missing"]),
        ({"bandwidth": 0.1, "lipschitz": {"name": "tuple", "items": 3}}, ["lipschitz", "list of items", "3"]),
        ({"bandwidth": 0.1, "bonus": {"name": "joint", "episodes": math.inf}}, ["bonus", "whole number"]),
        ({"bandwidth": 0.1, "kernel": {"name": "exponential-power", "p": 1}}, ["kernel", "above 2"]),
        ({"bandwidth": 0.1, "bonus": {"name": "joint", "delta": 2}}, ["bonus", "delta must lie between 0 and 1"]),
        ({"bandwidth": 0.1, "bonus": {"name": "joint"}}, ["lipschitz", "needs Lipschitz constants"]),
        ({"bandwidth": 0.1, "stationary": {"name": "yes"}}, ["stationary", "table is not allowed"]),
        ({"bandwidth": 0.1, "agent": "KernelUBCVI"}, ['"KernelUBCVI"', "did you mean KernelUCBVI?", "module:Class"]),
        ({"bandwidth": 0.1, "agent": "math:sin"}, ["math:sin", "subclass"]),
        ({"bandwidth": 0.1, "agent": "nowhere.Agent"}, ["nowhere:Agent", "cannot be imported"]),
        ({"agent": "RandomAgent"}, ['"representatives"', "horizon, mask, reward_range"]),
        ({"agent": "GreedyKernelUCBVI", "bandwidth": 0.1}, ["lipschitz"]),
    ],
)
def test_wrong_agents(table, words):
    with pytest.raises(ExperimentError) as caught:
        agent(**table)
    for word in ['agents "it"', *words]:
        assert word in str(caught.value)


def test_an_agent_of_the_users_own():
    made = build_agent(AgentEntry(label="it", agent="experiment_parts:Dying", marks="/nowhere", times=0))
    assert type(made).__name__ == "Dying" and made.times == 0
    dotted = build_agent(AgentEntry(label="it", agent="experiment_parts.Dying", marks="/nowhere", times=0))
    assert type(dotted) is type(made)


def test_presets():
    made = build_agent(AgentEntry(label="it", agent="KernelUCBVI", preset="text", max_representatives=7))
    expected = krl.KernelUCBVI.preset("text", max_representatives=7)
    assert repr(made) == repr(expected) and made.max_representatives == 7
    with pytest.raises(ExperimentError, match=r'agents "it": preset: KernelUCBVI has text, analysed, not'):
        build_agent(AgentEntry(label="it", agent="KernelUCBVI", preset="tetx"))
    with pytest.raises(ExperimentError, match=r'agents "it": preset: RandomAgent has none, not'):
        build_agent(AgentEntry(label="it", agent="RandomAgent", preset="text"))


def test_wrong_for_the_environment(tmp_path):
    """What shows only when an agent meets the environment is found before anything runs."""
    with pytest.raises(ExperimentError, match=r'agents "greedy": lipschitz: .* length 20'):
        Plan.of(read_experiment(write_toml(tmp_path / "a.toml", GREEDY.replace("= 2", "= [1, 2]"))))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('id = "kernelrl/TwoRooms-v0"', ["kernelrl/TwoRooms-v0", "kernelrl/TwinRooms-v0"]),
        ('id = "nowhere:Rooms-v0"', ["nowhere:Rooms-v0"]),
        ('id = "kernelrl/TwinRooms-v0"\nwalls = 3', ['"walls"', "did you mean wall?", "goal", "noise"]),
        ('id = "nowhere:Rooms-v0"\nwalls = 3', ["nowhere:Rooms-v0"]),
        ('id = "kernelrl/TwinRooms-v0"\nwall = 3', ["wall must be"]),
    ],
)
def test_wrong_environments(tmp_path, table, words):
    experiment = read(tmp_path, EXAMPLE.replace('id = "kernelrl/TwinRooms-v0"', table))
    with pytest.raises(ExperimentError) as caught:
        build_environment(experiment.environment)
    for word in ["environment", *words]:
        assert word in str(caught.value)


BROKEN = {
    "syntax": ("x = 1\nif x\n    y = 2\n", r"broken_syntax\.py, line 2: SyntaxError: expected ':'$"),
    "error": ("import math\n\nx = math.sqrt(-1)\n", r"broken_error\.py, line 3: ValueError: "),
    "inner": ("import json\n\njson.loads('{')\n", r"broken_inner\.py, line 3: JSONDecodeError: "),
    "lines": ("raise RuntimeError('two\\nlines')\n", r"broken_lines\.py, line 1: RuntimeError: two lines$"),
    "exit": ("import sys\n\nsys.exit(3)\n", r"broken_exit\.py, line 3: SystemExit: 3$"),
    "missing": ("import not_installed\n", r"broken_missing\.py, line 1: ModuleNotFoundError: .*not_installed"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_modules_that_cannot_be_imported(tmp_path, monkeypatch, kind):
    """One line names the file and the line, whether an environment or an agent asks for it."""
    content, words = BROKEN[kind]
    (tmp_path / f"broken_{kind}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ExperimentError, match=rf"^environment: .*{words}"):
        build_environment(read(tmp_path, EXAMPLE.replace("kernelrl/TwinRooms-v0", f"broken_{kind}:A-v0")).environment)
    with pytest.raises(ExperimentError, match=rf'^agents "it": .*{words}'):
        agent(agent=f"broken_{kind}:Agent")


def test_environments_named_by_class_or_function(tmp_path, monkeypatch):
    (tmp_path / "named_envs.py").write_text(
        "from gymnasium.wrappers import TimeLimit\nfrom kernelrl.envs import Ramp\n\n"
        "def short(steps=3):\n    return TimeLimit(Ramp(), steps)\n\nnumber = 3\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert time_limit(make_environment("named_envs:Ramp", {"max_episode_steps": 7})) == 7
    assert time_limit(make_environment("named_envs:short")) == 3
    assert time_limit(make_environment("named_envs:short", {"steps": 5})) == 5
    with pytest.raises(ValueError, match=r'no keyword argument "stepz" .did you mean steps'):
        make_environment("named_envs:short", {"stepz": 5})
    for name in ("named_envs:number", "named_envs:Nothing"):
        with pytest.raises(ValueError, match="there is no environment"):
            make_environment(name)


MODEL = '[model]\nkind = "displacement"\nreward_lipschitz = 10.0\nreward_range = [0.0, 1.0]\n'


def test_a_declared_model(tmp_path):
    experiment = read(tmp_path, EXAMPLE + MODEL)
    assert experiment.model.kind == "displacement" and experiment.model.others == {"reward_lipschitz": 10.0}
    assert Experiment.checked(experiment.to_json(), "again") == experiment
    named = read(tmp_path, 'model = "twin-rooms"' + EXAMPLE).to_json()
    assert len(named["model"]["rooms"]) == 2 and named["model"]["reward_range"] == [0.0, 1.0]
    (tmp_path / "mine.toml").write_text(MODEL.removeprefix("[model]"))
    assert read(tmp_path, 'model = "mine.toml"' + EXAMPLE) == experiment
    assert read(tmp_path, EXAMPLE).to_json().get("model") is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('model = "no-model"' + EXAMPLE, "no-model: there is no such file, and no model of that name"),
        (EXAMPLE + MODEL.replace("kind", "sort"), "model.kind is missing"),
        (EXAMPLE + MODEL + "cell = -1.0", "model.cell: .*, got -1.0"),
        (EXAMPLE + MODEL + "lipschitz = 1.0", 'model: there is no key "lipschitz"'),
        (EXAMPLE + MODEL.replace("10.0", '"steep"'), "model: reward_lipschitz"),
        (EXAMPLE.replace("[environment]", "[[environments]]") + MODEL, "model: it is declared of one .environment."),
    ],
)
def test_wrong_models(tmp_path, text, words):
    with pytest.raises(ExperimentError, match=words):
        Plan.of(read(tmp_path, text))


def test_the_catalogue():
    assert list(catalogue()) == ["paper", "quick", "suite", "suite-peers", "suite-quick"]
    for name in catalogue():
        assert read_experiment(name).name == name
    paper = read_experiment("paper")
    assert paper.episodes == 50_000 and len(paper.seeds) == 8 and len(paper.agents) == 6


@pytest.mark.parametrize(("name", "agents"), [("paper", 6), ("quick", 4), ("suite", 159), ("suite-quick", 9)])
def test_the_catalogue_can_be_run(name, agents):
    """So many pairs of a problem and an agent."""
    assert len(Plan.of(read_experiment(name)).configurations) == agents


def test_the_suites():
    """Every environment of the package is in it, and every public agent; the peers have the same problems."""
    suite, peers = read_experiment("suite"), read_experiment("suite-peers")
    assert len(suite.environments) == 28 and len(suite.seeds) == len(peers.seeds) == 8
    own = {entry.id for entry in suite.environments if entry.id.startswith("kernelrl/")}
    assert own == set(krl.envs.ENVIRONMENTS) - {"kernelrl/Ramp-v0"}
    assert {entry.agent for entry in suite.agents} == set(public_agents())
    lengths = [
        [(entry.label, entry.steps or entry.episodes or experiment.episodes) for entry in experiment.environments]
        for experiment in (suite, peers)
    ]
    assert lengths[0] == lengths[1]
    for _, problem, entry in peers.pairs():
        env = make_environment(*next((e.id, e.others) for e in suite.environments if e.label == problem))
        continuous = hasattr(env.action_space, "low")
        assert entry.label not in (("SAC", "TD3"), ("DQN",))[continuous]


def test_listing():
    everything = listing()
    assert set(everything) == {
        "agents", "peers", "environments", "kernels", "metrics", "bonuses", "schedules", "lipschitz",
    }  # fmt: skip
    assert {"KernelUCBVI", "GreedyKernelUCBVI", "RandomAgent"} <= set(everything["agents"])
    assert "kernelrl/TwinRooms-v0" in everything["environments"]
    assert set(krl.kernels.KERNELS) < set(everything["kernels"])
    for kernel in krl.kernels.KERNELS:
        krl.kernels.resolve_kernel(kernel)
    assert all(text and "\n" not in text for entries in everything.values() for text in entries.values())


def test_kinds_of_machine_code(tmp_path):
    """Agents that differ in numbers only are compiled once."""
    agents = RANDOM + GREEDY + GREEDY.replace('"greedy"', '"other"').replace("0.1", "0.2")
    plan = Plan.of(read_experiment(write_toml(tmp_path / "a.toml", agents)))
    greedy, other, random = (plan.kinds["kernelrl/TwinRooms-v0", label] for label in ("greedy", "other", "random"))
    assert greedy == other != random
