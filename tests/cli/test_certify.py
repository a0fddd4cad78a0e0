"""`kernelrl certify`: of folders, tables and agents, with models from files."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import exogenous_envs
import kernelrl as krl
from experiment_parts import call
from kernelrl.agents.certificates import Reader
from kernelrl.agents.reward_range import RewardRange
from kernelrl.agents.rows import rows_of
from kernelrl.agents.tables import read_table
from kernelrl.cli import app
from kernelrl.experiments.certifying import Logged, logged_in, together
from kernelrl.experiments.declared import model_files, read_model
from kernelrl.experiments.runner import run
from kernelrl.experiments.store import open_store
from kernelrl.reporting.certified import read_intervals
from logged_rows import logged

ENV = "kernelrl/TwinRooms-v0"
EXPERIMENT = f"""
name = "small"
episodes = 30
seeds = 2
environment = {{ id = "{ENV}" }}

[[agents]]
label = "random"
agent = "RandomAgent"
transitions = true

[[agents]]
label = "automatic"
agent = "KernelUCBVI"

[[agents]]
label = "forgetful"
agent = "RandomAgent"
"""


def invoke(*arguments):
    return CliRunner().invoke(app, ["certify", *map(str, arguments)], catch_exceptions=False)


def as_json(*arguments):
    return json.loads(invoke(*arguments, "--cell", 0.05, "--json").stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    file = tmp_path_factory.mktemp("experiment") / "small.toml"
    file.write_text(EXPERIMENT)
    assert run(file, file.parent / "results", workers=1).finished
    return file.parent / "results"


@pytest.fixture
def table(tmp_path):
    logged(ENV, 30).write_parquet(tmp_path / "log.parquet")
    return tmp_path / "log.parquet"


def model(tmp_path, **changes):
    keys = {"kind": '"displacement"', "reward_lipschitz": "10.0", "reward_range": "[0.0, 1.0]"} | changes
    (tmp_path / "model.toml").write_text("\n".join(f"{key} = {value}" for key, value in keys.items() if value))
    return tmp_path / "model.toml"


def test_a_folder(folder):
    found = as_json(folder, "--model", "twin-rooms")
    assert [one["run"] for one in found["certificates"]] == [
        f"{label}, seed {seed}" for label in ("random", "automatic") for seed in (0, 1)
    ]
    assert [one["run"] for one in found["without"]] == ["forgetful, seed 0", "forgetful, seed 1"]
    assert "transitions = true" in found["without"][0]["reason"]
    for one in found["certificates"]:
        assert one["episodes"] == 30 and one["transitions"] == 600 and one["possible"] == [0.0, 20.0]
        assert len(one["kept"]) == len(one["censored"]) == 4 and not one["declaration"]["contradicted"]
        for state in one["states"]:
            assert state["lower"] <= state["optimal"] <= state["upper"]
            assert state["optimal"] == pytest.approx(2.925, abs=0.01)


def test_it_is_what_python_says(folder, table):
    declared = read_model("twin-rooms").model
    agent = krl.load(folder / "runs" / "automatic" / "seed-0" / "agent.krl")
    expected = agent.certify(declared, delta=0.1, cell=0.05, reward_range=(0, 1))
    file = folder / "runs" / "automatic" / "seed-0" / "agent.krl"
    by_file = as_json(file, "--model", "twin-rooms", "--delta", 0.1)["certificates"][0]
    by_folder = as_json(folder, "--model", "twin-rooms", "--delta", 0.1)["certificates"][2]
    for found in (by_file, by_folder):
        assert found["gap"] == expected.gap and found["kept"] == expected.kept.tolist()
    from_table = as_json(table, "--model", "twin-rooms", "--env", ENV, "--state", "0.3,0.3", "--step", 4)
    one = from_table["certificates"][0]["states"][0]
    expected = krl.certify(logged(ENV, 30), declared, env=ENV, cell=0.05, reward_range=(0, 1))
    assert (one["lower"], one["upper"]) == expected.bounds([0.3, 0.3], 4)
    assert one["step"] == 4 and one["optimal"] == pytest.approx(
        krl.envs.solve(gym.make(ENV)).values([[0.3, 0.3]], 4)[0]
    )


def test_runs_together(folder):
    alone = as_json(folder, "--model", "twin-rooms")["certificates"]
    found = as_json(folder, "--model", "twin-rooms", "--pool")
    (pooled,) = found["certificates"]
    assert pooled["run"] == "2 runs together"
    assert pooled["transitions"] == sum(one["transitions"] for one in alone[:2]) and pooled["episodes"] == 60
    assert min(pooled["kept"]) > max(min(one["kept"]) for one in alone[:2])
    reasons = {one["run"]: one["reason"] for one in found["without"]}
    assert "--pool has random, seed 1; runs of one seed have the same random" in reasons["automatic, seed 1"]


def test_runs_of_one_seed_are_not_independent(folder):
    """They move by the same displacements wherever their actions are the same, so that they are no more samples."""
    moves = {}
    for label, seed in (("random", 0), ("automatic", 0), ("automatic", 1)):
        rows = logged_in(open_store(folder).run(label, seed)).rows
        moves[label, seed] = rows.next_states - rows.states, rows.actions
    (D, a), alike = moves["random", 0], {}
    for seed in (0, 1):
        E, b = moves["automatic", seed]
        off = np.abs(D - E)[a == b].max(axis=1)  # where neither is clipped by a wall
        alike[seed] = int((off < 1e-12).sum())
    assert alike[0] > 50 and alike[1] == 0


def test_for_people(folder, table):
    said = invoke(folder, "--model", "twin-rooms", "--cell", 0.05)
    assert said.exit_code == 0
    for part in ("random, seed 1", "(0.1, 0.1)", "2.925", "95 %", "from 0 to 20", "Left out: forgetful, seed 0"):
        assert part in " ".join(said.stdout.split())
    said = invoke(table, "--model", "twin-rooms", "--cell", 0.05, "--horizon", 20, "--actions", 4, "--state", "0.3,0.3")
    assert "(0.3, 0.3)" in said.stdout and "V*" not in said.stdout


def test_functions_beside_the_model(table, tmp_path):
    (tmp_path / "my_rewards.py").write_text("import numpy as np\n\ndef none(x, a):\n    return np.zeros(len(x))\n")
    file = model(tmp_path, reward='"my_rewards:none"', reward_lipschitz="0.0", delta="0.2", cell="0.1")
    assert read_model(file).delta == 0.2 and read_model(file).cell == 0.1
    found = json.loads(invoke(table, "--env", ENV, "--model", file, "--json").stdout)["certificates"][0]
    assert found["delta"] == 0.2 and found["cells"] == [[0.1, 0.1]]
    expected = krl.certify(logged(ENV, 30), read_model(file).model, env=ENV, cell=0.1, delta=0.2, reward_range=(0, 1))
    assert found["gap"] == expected.gap < 20.0


def test_refined(table, tmp_path):
    file = model(tmp_path, rooms="[[[0.0, 0.0], [0.95, 1.0]], [[1.05, 0.0], [2.0, 1.0]]]", refine="true")
    expected = krl.certify(
        logged(ENV, 30), read_model(file).model, env=ENV, cell=0.05, refine=True, reward_range=(0, 1)
    )
    by_file = as_json(table, "--env", ENV, "--model", file)["certificates"][0]
    by_option = as_json(table, "--env", ENV, "--model", "twin-rooms", "--refine")["certificates"][0]
    assert by_file["gap"] == by_option["gap"] == expected.gap and by_file["refined"] is True
    coarse = as_json(table, "--env", ENV, "--model", file, "--no-refine")["certificates"][0]
    assert coarse["refined"] is False
    said = invoke(table, "--env", ENV, "--model", file, "--cell", 0.1)
    assert "0.09895 × 0.1" not in said.stdout and "bounds between their corners" in " ".join(said.stdout.split())


CALLS = """
import numpy as np

def place(x, a, z):
    return z

def of_call(x, a, y):
    return y

def waiting(x, a, z):
    return 1 - 0.25 * np.abs(x - a)[:, 0] - 0.75 * np.abs(a - z)[:, 0]
"""
EXOGENOUS = {
    "kind": '"exogenous"', "function": '"calls:place"', "recover": '"calls:of_call"', "reward": '"calls:waiting"',
    "noise": "[0.0, 1.0]", "lipschitz": "[0.0, 0.0, 1.0]", "reward_lipschitz": "[0.25, 1.0, 0.75]", "cell": "0.05",
}  # fmt: skip
AMBULANCE = "kernelrl/Ambulance-v0"


@pytest.fixture
def calls(tmp_path):
    """A model of exogenous noise, with its functions in a module beside the file."""
    (tmp_path / "calls.py").write_text(CALLS)
    return lambda **changes: model(tmp_path, **(EXOGENOUS | changes))


def test_exogenous_noise(calls, tmp_path):
    """Actions of a table are those played, and no multiple of the plan's net."""
    data = exogenous_envs.logged(gym.make(AMBULANCE, arrivals="beta", alpha=0.25), 60, 0)
    pl.DataFrame(data).write_parquet(tmp_path / "calls.parquet")
    file = calls()
    found = json.loads(invoke(tmp_path / "calls.parquet", "--env", AMBULANCE, "--model", file, "--json").stdout)
    expected = krl.certify(data, read_model(file).model, env=AMBULANCE, cell=0.05, reward_range=(0, 1))
    assert found["certificates"][0]["gap"] == expected.gap < 4.0
    assert found["certificates"][0]["kept"] == expected.kept.tolist()


def test_exogenous_noise_of_an_experiment(calls, tmp_path):
    text = EXPERIMENT.replace(ENV, AMBULANCE).replace("seeds = 2", 'seeds = 1\nmodel = "inner/model.toml"')
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "inner_calls.py").write_text(CALLS)
    file = calls(**{key: value.replace("calls:", "inner_calls:") for key, value in EXOGENOUS.items()})
    file.rename(tmp_path / "inner" / "model.toml")
    (tmp_path / "calls.toml").write_text(text)
    assert run(tmp_path / "calls.toml", tmp_path / "results", workers=1).finished
    found = as_json(tmp_path / "results", "--model", tmp_path / "inner" / "model.toml")["certificates"]
    assert [one["run"] for one in found] == ["random, seed 0", "automatic, seed 0"]
    store = open_store(tmp_path / "results")
    agent = store.runs()[1].agent()
    expected = agent.certify(read_model(tmp_path / "inner" / "model.toml").model, cell=0.05, reward_range=(0, 1))
    assert found[1]["gap"] == expected.gap
    shown = read_intervals(store.runs()[1], agent, store.experiment["model"])
    assert shown.upper[-1] - shown.lower[-1] == expected.gap


def test_runs_with_different_nets_together(calls):
    """Actions are pooled as they were played, and not by their numbers in each agent's net."""
    agents, tables = [krl.KernelUCBVI(action_bins=n) for n in (5, 8)], []
    for agent in agents:
        tables.append(agent.fit(AMBULANCE, 30, seed=0, transitions=True).transitions)
    parts = [
        Logged(rows_of(Reader(agent.spaces, RewardRange.of("auto")), read_table(table)), agent.spaces, None)
        for agent, table in zip(agents, tables, strict=True)
    ]
    declared = read_model(calls())
    expected = krl.certify(pl.concat(tables), declared.model, env=AMBULANCE, cell=0.05, reward_range=(0, 1))
    assert together(parts).certify(declared).kept.tolist() == expected.kept.tolist()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"recover": None, "noise": None}, 'recover is missing; a model of kind "exogenous" needs recover, noise'),
        ({"function": '"place"'}, "function: it must be a function, as a text \"module:function\"; got 'place'"),
        ({"function": "3"}, "function: it must be a function, as a text .*; got 3"),
        ({"recover": '"calls:no_such"'}, '"calls:no_such" cannot be imported'),
        ({"lipschitz": "1.0"}, "lipschitz must be three numbers"),
        ({"refine": "true"}, "refine=True is for displacements, and a model of the kind Exogenous"),
        ({"reward_range": None}, "reward_range: .* in the model's file"),
        ({"rooms": "[[0.0, 1.0]]"}, 'there is no key "rooms"'),
    ],
)
def test_models_of_noise_that_cannot_be(changes, said, calls, tmp_path):
    pl.DataFrame(exogenous_envs.logged(AMBULANCE, 2, 0)).write_parquet(tmp_path / "calls.parquet")
    with pytest.raises(ValueError, match=said):
        invoke(tmp_path / "calls.parquet", "--env", AMBULANCE, "--model", calls(**changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": None}, "kind is missing"),
        ({"kind": '"teleport"'}, 'kind: there is no kind of model "teleport"; allowed: displacement, exogenous'),
        ({"reward_lipschitz": None}, "reward_lipschitz is needed"),
        ({"lipschitz": "1.0"}, 'there is no key "lipschitz" .*allowed: .*reward_lipschitz'),
        ({"reward": '"no_such:function"'}, '"no_such:function" cannot be imported'),
        ({"reward": '"math:pi"'}, 'reward: "math:pi" is not a function'),
        ({"reward_range": "[1.0, 0.0]"}, "reward_range: must be"),
        ({"reward_range": None, "reward": '"noisy"'}, "reward_range: .* in the model's file"),
        ({"cell": '"small"'}, "cell: .*, got 'small'"),
        ({"delta": "2.0"}, "delta: .*, got 2.0"),
        ({"refine": '"yes"'}, "refine: .*, got 'yes'"),
        ({"refine": "true", "variation": "0.5"}, "refine=True is for .* variation=0.5"),
        ({"refine": "true", "reward": '"noisy"'}, 'refine=True is for .* reward="noisy"'),
        ({"rooms": "[[[0.0, 0.0], [0.5, 0.5]]]"}, "log.parquet: rooms: .* lies in none of the rooms"),
        ({"cell": "1e-7"}, "cell=1e-07: .* fits"),
    ],
)
def test_models_that_cannot_be(changes, said, table, tmp_path):
    with pytest.raises(ValueError, match=said):
        invoke(table, "--env", ENV, "--model", model(tmp_path, **changes))


def test_requests_that_cannot_be(folder, table, tmp_path):
    krl.RandomAgent().save(tmp_path / "new.krl")
    forgetful = folder / "runs" / "forgetful" / "seed-0" / "agent.krl"
    for arguments, said in [
        ([table, "--model", "no-model"], "no-model: there is no such file, and no model of that name; .*: twin-rooms"),
        ([table, "--model", "twin-rooms"], "--env: give an environment's id"),
        ([table, "--model", "twin-rooms", "--env", ENV, "--pool"], "--pool: it does not apply to a single file"),
        ([table, "--model", "twin-rooms", "--env", "kernelrl/Oil-v0"], "Discrete actions"),
        ([table, "--model", "twin-rooms", "--env", ENV, "--state", "1"], "--state 1: states have 2 numbers"),
        ([folder, "--model", "twin-rooms", "--env", ENV], "--env: it does not apply to a folder"),
        ([folder, "--model", "twin-rooms", "--problem", "Oil"], 'problem: there is no problem "Oil"'),
        ([tmp_path, "--model", "twin-rooms"], "is not a store of an experiment"),
        ([tmp_path / "none.csv", "--model", "twin-rooms", "--env", ENV], "none.csv"),
        ([tmp_path / "new.krl", "--model", "twin-rooms"], "has not been started"),
        ([forgetful, "--model", "twin-rooms"], "agent.krl: this RandomAgent does not keep its transitions"),
    ]:
        with pytest.raises((ValueError, OSError), match=said):
            invoke(*arguments, "--cell", 0.1)
    for option in ("--delta", "--cell"):  # 0 is not the same as nothing
        with pytest.raises(ValueError, match=f"{option[2:]} must"):
            invoke(table, "--model", "twin-rooms", "--env", ENV, option, 0)


def test_errors_are_one_line_with_status_2(table):
    said = call("certify", str(table), "--model", "no-model")
    assert said.returncode == 2 and said.stderr.startswith("kernelrl: no-model: there is no such file")


def test_shipped_models_are_true():
    """The declaration of TwinRooms is that of its environment."""
    env = gym.make(ENV).unwrapped
    motion, declared = env.motion(), read_model("twin-rooms")
    assert list(model_files()) == ["twin-rooms"]
    rooms = zip(motion.low.tolist(), motion.high.tolist(), strict=True)
    assert declared.model.rooms == tuple((tuple(low), tuple(high)) for low, high in rooms)
    assert declared.model.reward_lipschitz == pytest.approx(env.lipschitz_constants[0])
    assert declared.reward_range == (0.0, 1.0)
