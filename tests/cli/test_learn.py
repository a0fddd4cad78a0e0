"""`kernelrl learn`."""

from __future__ import annotations

import json
import zipfile

import polars
import pytest
from typer.testing import CliRunner

import kernelrl as krl
from experiment_parts import call
from kernelrl.cli import app
from kernelrl.cli.learn import read_settings
from logged_rows import logged

ENV = "kernelrl/TwinRooms-v0"


@pytest.fixture
def table(tmp_path):
    logged(ENV, 20).write_parquet(tmp_path / "log.parquet")
    logged(ENV, 20).write_csv(tmp_path / "log.csv")
    return tmp_path / "log.parquet"


def invoke(*arguments):
    return CliRunner().invoke(app, ["learn", *map(str, arguments)], catch_exceptions=False)


def test_an_agent_from_a_table(table, tmp_path):
    out = tmp_path / "agent.krl"
    said = invoke(table, "--env", ENV, "--out", out, "--agent", "UCBVI", "--set", "bins=4", "--seed", 3)
    assert said.exit_code == 0
    assert said.stdout.startswith("UCBVI has learnt from 400 transitions in ") and "bins = 4" in said.stdout
    assert f"Written: {out}" in said.stdout
    agent = krl.UCBVI(bins=4)
    agent.learn_from(logged(ENV, 20), env=ENV, seed=3)
    agent.save(tmp_path / "own.krl")
    assert out.read_bytes() == (tmp_path / "own.krl").read_bytes()


def test_json_and_ignored_columns(table, tmp_path):
    out = tmp_path / "agent.krl"
    options = ["--env", ENV, "--out", out, "--set", "bins=[2, 3]", "--agent", "UCBVI", "--json"]
    said = json.loads(invoke(tmp_path / "log.csv", *options, "--ignore", "episode", "--ignore", "truncated").stdout)
    assert said["rows"] == 400 and said["agent"] == "UCBVI" and said["environment"] == ENV
    assert said["path"] == str(out) and said["seconds"] > 0 and said["settings_used"]["bins"]["items"] == [2, 3]


def test_ignored_columns_may_hold_anything(table, tmp_path):
    noted = logged(ENV, 20).with_columns(
        at=polars.lit("2026-01-01 10:00:00").str.to_datetime(), note=polars.when(polars.col("step") > 3).then(1.0)
    )
    noted.write_csv(tmp_path / "noted.csv")
    options = ["--env", ENV, "--set", "bins=4", "--agent", "UCBVI"]
    invoke(tmp_path / "noted.csv", *options, "--out", tmp_path / "a.krl", "--ignore", "at", "--ignore", "note")
    invoke(table, *options, "--out", tmp_path / "b.krl")
    assert (tmp_path / "a.krl").read_bytes() == (tmp_path / "b.krl").read_bytes()


def test_only_agents_are_overwritten(table, tmp_path):
    options = ["--env", ENV, "--set", "bins=4", "--agent", "UCBVI", "--out"]
    invoke(table, *options, tmp_path / "a.krl")
    (tmp_path / "old.krl").write_bytes(b"no agent")
    (tmp_path / "link.krl").symlink_to(table)
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as other:
        other.writestr("a.txt", "a")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for out, said in [
        ("log.parquet", "--out: .*log.parquet is the table itself"),
        ("link.krl", "--out: .*link.krl is the table itself"),
        ("log.csv", "--out: .*log.csv exists and is no saved agent"),
        ("old.krl", "--out: .*old.krl exists and is no saved agent"),
        ("other.zip", "--out: .*other.zip exists and is no saved agent"),
        (".", "--out: .* is a folder"),
    ]:
        with pytest.raises(ValueError, match=said):
            invoke(table, *options, tmp_path / out)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert invoke(table, *options, tmp_path / "a.krl").exit_code == 0  # an agent's file is replaced


def test_mistakes_are_told_without_a_traceback(table, tmp_path):
    out = tmp_path / "agent.krl"
    logged(ENV, 20).drop("reward").write_csv(tmp_path / "bad.csv")
    logged(ENV, 20).head(0).write_csv(tmp_path / "empty.csv")
    base = ["--env", ENV, "--out", out, "--agent", "UCBVI"]
    for arguments, said in [
        ([tmp_path / "bad.csv", *base, "--set", "bins=4", "--json"], 'table: the column "reward" is missing'),
        ([tmp_path / "empty.csv", *base, "--set", "bins=4"], "table: it has no rows"),
        ([tmp_path / "none.csv", *base, "--set", "bins=4"], "table: there is no file"),
    ]:
        done = call("learn", *arguments)
        assert done.returncode == 2 and said in done.stderr and "Traceback" not in done.stderr
        if "--json" in arguments:
            assert said in json.loads(done.stdout)["error"]
    assert not out.exists()
    for arguments, said in [
        (["--env", "FrozenLake-v1", *base[2:4]], "observation_space must be a gymnasium Box of states"),
        ([*base, "--set", "bins=4", "--ignore", "rain"], 'ignore: there is no column "rain"'),
        ([*base[:4], "--agent", "UCBVII"], 'there is no agent "UCBVII" (did you mean UCBVI?)'),
        ([*base, "--set", "bin=4"], 'there is no hyper-parameter "bin" (did you mean bins?)'),
        ([*base, "--set", "bins"], "--set bins: give each hyper-parameter once, as NAME=VALUE"),
        ([*base[:2], "--out", tmp_path / "none" / "agent.krl"], "--out: there is no folder"),
        (["--env", "Taxi-v9", *base[2:], "--set", "bins=4"], "env: there is no environment"),
    ]:
        with pytest.raises(ValueError, match=r".") as caught:
            invoke(table, *arguments)
        assert said in str(caught.value)


def test_settings():
    given = ["bandwidth=0.5", "bonus=simplified", 'metric="euclidean"', 'kernel={name = "lp"}', "representatives=none"]
    assert read_settings(given) == {
        "bandwidth": 0.5, "bonus": "simplified", "metric": "euclidean", "kernel": {"name": "lp"},
        "representatives": "none",
    }  # fmt: skip
    for wrong in (["a=1", "a=2"], ["=3"], ["label=x"]):
        with pytest.raises(ValueError, match="--set"):
            read_settings(wrong)
