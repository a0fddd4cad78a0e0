"""`kernelrl certify`: of folders, tables and agents, with models from files."""

from __future__ import annotations

import json

import gymnasium as gym
import pytest
from typer.testing import CliRunner

import kernelrl as krl
from experiment_parts import call
from kernelrl.cli import app
from kernelrl.experiments.declared import model_files, read_model
from kernelrl.experiments.runner import run
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
    (pooled,) = as_json(folder, "--model", "twin-rooms", "--pool")["certificates"]
    assert pooled["transitions"] == sum(one["transitions"] for one in alone) and pooled["episodes"] == 120
    assert min(pooled["kept"]) > max(min(one["kept"]) for one in alone)


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


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"kind": None}, "kind is missing"),
        ({"kind": '"teleport"'}, 'kind: there is no kind of model "teleport"; allowed: displacement'),
        ({"reward_lipschitz": None}, "reward_lipschitz is needed"),
        ({"lipschitz": "1.0"}, 'there is no key "lipschitz" .*allowed: .*reward_lipschitz'),
        ({"reward": '"no_such:function"'}, '"no_such:function" cannot be imported'),
        ({"reward": '"math:pi"'}, 'reward: "math:pi" is not a function'),
        ({"reward_range": "[1.0, 0.0]"}, "reward_range: must be"),
        ({"reward_range": None, "reward": '"noisy"'}, "reward_range: .* in the model's file"),
        ({"cell": '"small"'}, "cell: .*, got 'small'"),
        ({"delta": "2.0"}, "delta: .*, got 2.0"),
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
