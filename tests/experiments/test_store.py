"""The store: its layout, what is read from it, and what is said where a file is damaged."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars
import pytest

import kernelrl as krl
from experiment_parts import GREEDY, RANDOM, table, write_toml
from kernelrl import experiments
from kernelrl.experiments.store import FORMAT, FORMAT_SEVERAL, safe_name
from plain import plain


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished experiment, not to be changed."""
    folder = tmp_path_factory.mktemp("store")
    file = write_toml(folder / "a.toml", RANDOM + GREEDY, episodes=60, seeds=[3, 1])
    result = experiments.run(file, folder / "out", workers=1)
    assert result.finished
    return folder / "out"


@pytest.fixture
def copy(made, tmp_path):
    """One that may be changed."""
    import shutil

    return shutil.copytree(made, tmp_path / "copy")


def test_layout(made):
    found = sorted(str(path.relative_to(made)) for path in made.rglob("*") if path.is_file())
    runs = [f"runs/{label}/seed-{seed}" for label in ("greedy", "random") for seed in (1, 3)]
    files = [f"{run}/{name}" for run in runs for name in ("agent.krl", "history.parquet", "run.json")]
    kept = [f"runs/{label}/seed-3/agent-{k}.krl" for label in ("greedy", "random") for k in (1, 3, 12, 30, 60)]
    assert found == sorted([*files, *kept, "experiment.json", ".lock"])
    content = json.loads((made / "experiment.json").read_text())
    assert content["format"] == FORMAT and content["kernelrl"] == krl.__version__
    assert content["experiment"]["seeds"] == [3, 1]
    run = json.loads((made / "runs/greedy/seed-1/run.json").read_text())
    assert run["format"] == FORMAT and run["episodes"] == 60 and run["finished"] is True
    assert (run["label"], run["seed"]) == ("greedy", 1)
    assert run["seconds"] > 0 and run["versions"]["numba"] and run["machine"]["cores"]
    assert run["configuration"]["hyper_parameters"]["bandwidth"] == 0.1
    assert run["configuration"]["environment"]["radius"] == 0.3


def test_one_table(made):
    frame = experiments.load(made)
    assert frame.columns == ["problem", "label", "seed", "episode", "return", "steps", "seconds", "value"]
    assert frame.schema["episode"] == frame.schema["steps"] == polars.Int64
    assert frame.schema["seconds"] == frame.schema["value"] == frame.schema["return"] == polars.Float64
    assert len(frame) == 4 * 60
    assert frame["label"].unique(maintain_order=True).to_list() == ["random", "greedy"]


def test_a_run_is_what_fit_gives(made):
    import gymnasium as gym

    agent = plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, bonus_scale=0.02, lipschitz=2, representatives=None)
    history = agent.fit(gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3), 60, seed=1)
    run = next(run for run in experiments.open_store(made).runs() if (run.label, run.seed) == ("greedy", 1))
    stored = run.history()
    assert np.array_equal(stored["return"], history.returns) and history.returns.max() > 0
    assert np.array_equal(stored["steps"], history.lengths)
    assert np.array_equal(stored["value"], history.optimistic_values)
    assert stored["seconds"].is_sorted() and stored["seconds"][0] > 0
    states = [[0.1, 0.1], [0.5, 0.5]]
    assert np.array_equal(run.agent().values(states, 3), agent.values(states, 3))


def test_runs(made):
    store = experiments.open_store(made)
    assert store.experiment["name"] == "test"
    runs = store.runs()
    assert [(run.label, run.seed) for run in runs] == [("random", 3), ("random", 1), ("greedy", 3), ("greedy", 1)]
    assert all(run.finished and run.episodes == 60 for run in runs)
    assert runs[2].config["agent"] == "GreedyKernelUCBVI"
    assert [episode for episode, _ in runs[2].snapshots()] == [1, 3, 12, 30, 60]
    assert [krl.load(path).episodes for _, path in runs[2].snapshots()] == [1, 3, 12, 30, 60]
    assert runs[3].snapshots() == []
    assert 60 * 20 * 2 * 8 < runs[2].size() < 100e6  # at least the states


def test_others_open_it_directly(made):
    import duckdb
    import pandas

    file = made / "runs/greedy/seed-1/history.parquet"
    expected = polars.read_parquet(file)["return"].sum()
    assert pandas.read_parquet(file)["return"].sum() == pytest.approx(expected)
    rows = duckdb.sql(f"select sum(\"return\"), count(*) from '{file}'").fetchall()
    assert rows[0][0] == pytest.approx(expected) and rows[0][1] == 60


@pytest.mark.parametrize("name", ["history.parquet", "agent.krl", "run.json"])
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_damage_is_named_and_the_others_stay_readable(copy, name, damage):
    file = copy / "runs/greedy/seed-1" / name
    content = file.read_bytes()
    noise = np.random.default_rng(0).integers(0, 256, len(content), np.uint8).tobytes()
    file.write_bytes({"cut": content[: len(content) // 2], "noise": noise, "empty": b""}[damage])
    broken = []
    for run in experiments.open_store(copy).runs():
        try:
            assert len(run.history()) == 60 and run.finished and run.config
        except experiments.StoreError as error:
            assert str(file) in str(error)
            broken.append((run.label, run.seed))
    assert broken == [("greedy", 1)]
    if name != "run.json":
        with pytest.raises(experiments.StoreError, match=f"seed-1/{name}"):
            experiments.load(copy)


def test_a_missing_history_is_named(copy):
    (copy / "runs/greedy/seed-1/history.parquet").unlink()
    with pytest.raises(experiments.StoreError, match=r"seed-1/history\.parquet is missing"):
        experiments.load(copy)


def test_a_history_with_a_gap_is_damaged(copy):
    file = copy / "runs/greedy/seed-1/history.parquet"
    frame = polars.read_parquet(file)
    polars.concat([frame[:10], frame[11:]]).write_parquet(file)
    with pytest.raises(experiments.StoreError, match=r"history\.parquet is damaged"):
        experiments.load(copy)


def test_newer_formats(copy):
    file = copy / "runs/greedy/seed-1/run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": FORMAT + 1}))
    runs = {(run.label, run.seed): run for run in experiments.open_store(copy).runs()}
    with pytest.raises(experiments.StoreError, match=r"run\.json was written by a newer version.*upgrade"):
        _ = runs["greedy", 1].config
    assert runs["greedy", 3].config
    file = copy / "experiment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": FORMAT_SEVERAL + 1}))
    with pytest.raises(experiments.StoreError, match=r"experiment\.json was written by a newer version"):
        experiments.open_store(copy)
    file.write_text("{")
    with pytest.raises(experiments.StoreError, match=r"experiment\.json is damaged"):
        experiments.open_store(copy)


def test_older_formats(copy):
    """Format 1 had values in other units, format 2 other forms of hyper-parameters."""
    file = copy / "runs/greedy/seed-1/run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 2}))
    with pytest.raises(experiments.StoreError, match=r"run\.json was .* older .*hyper-parameters in another form: run"):
        _ = experiments.open_store(copy).run("greedy", 1).config
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 1}))
    with pytest.raises(experiments.StoreError, match=r"run\.json was written by an older version.*another folder"):
        _ = experiments.open_store(copy).run("greedy", 1).config
    file = copy / "experiment.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 1}))
    with pytest.raises(experiments.StoreError, match=r"experiment\.json was written by an older.*another folder"):
        experiments.open_store(copy)
    with pytest.raises(experiments.StoreError, match=r"older version"):
        experiments.run(write_toml(copy / "a.toml", RANDOM + GREEDY, seeds=[3, 1]), copy)


NESTED = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize(
    "content", ["null", "3", "[]", '{"format": null}', '{"format": "2"}', '{"format": true}', NESTED]
)
@pytest.mark.parametrize("name", ["experiment.json", "runs/greedy/seed-1/run.json"])
def test_json_of_another_shape(copy, name, content):
    (copy / name).write_text(content)
    with pytest.raises(experiments.StoreError, match=name.replace(".", r"\.")) as caught:
        _ = experiments.open_store(copy).run("greedy", 1).config
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["experiment"], None),
        (["experiment", "name"], None),
        (["experiment", "episodes"], 1.5),
        (["experiment", "episodes"], None),
        (["experiment", "seeds"], 3),
        (["experiment", "seeds"], [3, None]),
        (["experiment", "environment"], "kernelrl/TwinRooms-v0"),
        (["experiment", "environment"], {}),
        (["experiment", "agents"], None),
        (["experiment", "agents"], [None]),
        (["experiment", "agents"], [{"label": None, "agent": "RandomAgent"}]),
    ],
)
def test_nulls_and_wrong_shapes_in_the_experiment(copy, path, value):
    replace_in(copy / "experiment.json", path, value)
    for reading in (experiments.open_store, lambda folder: experiments.run(copy / "a.toml", folder)):
        write_toml(copy / "a.toml", RANDOM + GREEDY, seeds=[3, 1])
        with pytest.raises(experiments.StoreError, match=rf"experiment\.json is damaged: {path[-1]}|{'.'.join(path)}"):
            reading(copy)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["configuration"], None),
        (["configuration", "agent"], None),
        (["configuration", "hyper_parameters"], [1]),
        (["configuration", "environment", "id"], 3),
        (["episodes"], None),
    ],
)
def test_nulls_and_wrong_shapes_in_a_run(copy, path, value):
    """The run is named and left out; the others are finished."""
    replace_in(copy / "runs/greedy/seed-1/run.json", path, value)
    run = experiments.open_store(copy).run("greedy", 1)
    with pytest.raises(experiments.StoreError, match=rf"seed-1/run\.json is damaged: {'.'.join(path)} must be"):
        _ = run.config
    with pytest.raises(experiments.StoreError, match=r"seed-1/run\.json is damaged"):
        _ = run.finished
    result = experiments.run(write_toml(copy / "a.toml", RANDOM + GREEDY, seeds=[3, 1]), copy)
    assert set(result.failed) == result.unreadable == {("greedy", 1)}


def replace_in(file, path, value):
    content = json.loads(file.read_text())
    inner = content
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    file.write_text(json.dumps(content))


@pytest.mark.parametrize("column", ["return", "steps", "seconds", "value"])
def test_nulls_in_a_history(copy, column):
    file = copy / "runs/greedy/seed-1/history.parquet"
    frame = polars.read_parquet(file)
    frame.with_columns(polars.when(polars.col("episode") != 7).then(polars.col(column))).write_parquet(file)
    with pytest.raises(experiments.StoreError, match=rf"history\.parquet is damaged: .*null. in column {column}"):
        experiments.load(copy)


def test_not_a_store(tmp_path):
    with pytest.raises(experiments.StoreError, match=r"no such folder"):
        experiments.load(tmp_path / "nothing")
    with pytest.raises(experiments.StoreError, match=r"has no experiment\.json.*kernelrl run NAME"):
        experiments.load(tmp_path)
    (tmp_path / "runs").mkdir()  # `run` would refuse it
    with pytest.raises(experiments.StoreError, match=r"has no experiment\.json$"):
        experiments.load(tmp_path)
    with pytest.raises(experiments.StoreError, match=r"--out '.*with a space'"):
        experiments.load(tmp_path / "with a space")


def test_an_empty_store(made, tmp_path):
    """An experiment of which nothing has run yet."""
    (tmp_path / "experiment.json").write_bytes((made / "experiment.json").read_bytes())
    assert experiments.open_store(tmp_path).runs() == []
    frame = experiments.load(tmp_path)
    assert len(frame) == 0 and frame.schema == experiments.load(made).schema


def test_planned_runs_are_finished_against_the_experiment(made):
    run = experiments.open_store(made).runs()[0]
    assert run.finished and not replace(run, planned=61).finished


def test_damaged_runs_are_not_run_and_do_not_stop_others(copy):
    """`run` names the file and what to do; the other runs go on."""
    (copy / "runs/greedy/seed-1/agent.krl").write_bytes(b"broken")
    (copy / "runs/random/seed-3/history.parquet").write_bytes(b"broken")
    file = write_toml(copy / "a.toml", RANDOM + GREEDY, episodes=70, seeds=[3, 1])
    result = experiments.run(file, copy, workers=1)
    assert set(result.failed) == {("greedy", 1), ("random", 3)}
    assert "seed-1/agent.krl" in result.failed["greedy", 1] and "remove" in result.failed["greedy", 1]
    assert "seed-3/history.parquet" in result.failed["random", 3]
    others = [run for run in experiments.open_store(copy).runs() if (run.label, run.seed) not in result.failed]
    lengths = {(run.label, run.seed): len(run.history()) for run in others}
    assert lengths == {("random", 1): 70, ("greedy", 3): 70}
    (copy / "runs/random/seed-3/history.parquet").unlink()
    for name in ("agent.krl", "run.json"):
        (copy / "runs/greedy/seed-1" / name).unlink()
        (copy / "runs/random/seed-3" / name).unlink()
    assert experiments.run(file, copy, workers=1).finished
    assert table(copy)["episode"].max() == 69


def test_names_of_folders():
    plain = ["greedy", "Kernel-UCBVI", "greedy bandwidth=0.01", "Kernel-UCBVI, rooms alike"]
    assert [safe_name(label) for label in plain] == plain
    awkward = [
        "..",
        ".",
        "a/b",
        "a_b",
        "a\\b",
        "a:b",
        "π",
        "ρ",
        "x" * 300,
        "x" * 301,
        "-a",
        ".a",
        "a.",
        "CON/",
        "a-0123abcd",
        "a~",
    ]
    names = [safe_name(label) for label in awkward]
    assert len(set(names)) == len(awkward)
    for label, name in zip(awkward, names, strict=True):
        assert "/" not in name and "\\" not in name and name[0] not in ".-" and len(name) < 100, label
    # what a label was turned into is not another label's own name
    assert safe_name(safe_name("a/b")) != safe_name("a/b")
