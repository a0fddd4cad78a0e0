"""The report's page and figures: every label is there, the numbers are those of the store, and odd stores are told."""

from __future__ import annotations

import base64
import itertools
import json
import os
import re

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scipy import stats

import kernelrl as krl
from kernelrl.reporting import learnt, report_of
from kernelrl.reporting.charts import packed_leaves
from kernelrl.reporting.figures import plain
from kernelrl.reporting.maps import spread
from kernelrl.reporting.summary import summarize
from kernelrl.reporting.tables import shown
from report_pages import Page, numbers_in
from small_envs import Line
from stand_in_store import AGENTS, ENVIRONMENT, Store, make_store

RANDOM = {"one": lambda: krl.RandomAgent(), "two": lambda: krl.RandomAgent()}


@pytest.fixture(scope="module")
def page(report):
    return Page(report.read_text(encoding="utf-8"))


def returns_of(store, label):
    return np.array([run.history()["return"].to_numpy() for run in store.runs() if run.label == label])


def test_title_labels_and_configuration(page, store):
    assert "Rooms & <tests>" in page.text
    for label in AGENTS:
        assert page.text.count(label) >= 3
    assert json.dumps(ENVIRONMENT) in page.text
    assert "0.99" in page.text  # a version that the runs were made with
    assert "a machine" in page.text


def test_table_is_of_the_store(page, store, quick):
    head, *rows = page.tables["table-results"]
    assert [row[0] for row in rows] == list(AGENTS)
    best = summarize(store).optimal.start_value
    for row in rows:
        cells = dict(zip(head, row, strict=True))
        totals = returns_of(store, row[0]).sum(axis=1)
        assert cells["seeds"] == "3"
        assert cells["episodes"] == "40"
        np.testing.assert_allclose(numbers_in(cells["total reward"])[0], totals.mean(), atol=0.051)
        np.testing.assert_allclose(numbers_in(cells["regret"])[0], 40 * best - totals.mean(), atol=0.051)
        np.testing.assert_allclose(
            numbers_in(cells["fraction of ceiling"])[0], 100 * totals.mean() / (40 * best), atol=0.051
        )
        np.testing.assert_allclose(numbers_in(cells["seconds per 1,000 episodes"])[0], 1.0)
        half = 4.302652729911275 * totals.std(ddof=1) / np.sqrt(3)  # t of 2 degrees of freedom
        expected = [totals.mean(), totals.mean() - half, totals.mean() + half]
        np.testing.assert_allclose(numbers_in(cells["total reward"]), expected, atol=0.51)
        env = gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)
        values = [run.agent().evaluate(env, 20, 0).mean for run in store.runs() if run.label == row[0]]
        np.testing.assert_allclose(numbers_in(cells["value of deployed policy"])[0], np.mean(values), atol=5.1e-4)


def test_exponents_have_intervals(page, store, quick):
    exponents = summarize(store).exponents
    rows = page.tables["table-exponents"][1:]
    assert [row[0] for row in rows] == list(AGENTS)
    for label, text in rows:
        np.testing.assert_allclose(numbers_in(text), exponents[label], atol=5.1e-3)
        assert exponents[label][1] <= exponents[label][0] <= exponents[label][2]


def test_hyper_parameters_include_defaults(page):
    rows = dict(page.tables["table-hyper-parameters"])
    assert list(rows) == list(AGENTS)
    assert "GreedyKernelUCBVI(" in rows["greedy"]
    for part in (
        "bandwidth = 0.1",
        "representatives = none",
        "regularization = 0.01",
        'range = "auto"',
        "metric = lp(p=2.0, scale=none)",
    ):
        assert part in rows["greedy"]
    assert re.search(r"chosen by the agent, seed 0: reward_range = \(0, ", rows["greedy"])


@pytest.mark.parametrize(
    ("name", "value", "size", "text"),
    [
        ("total reward", -617.12, 109_737.0, "−617"),  # as the numbers beside it
        ("total reward", 617.12, 617.12, "617.1"),
        ("regret", -0.01, 0.01, "0.0"),
        ("seconds per 1,000 episodes", 1.1, 1.05, "1.10"),
        ("seconds per 1,000 episodes", 0.002794, 0.0028, "0.00279"),
        ("seconds per 1,000 episodes", 1234.5, 1200.0, "1,234"),
        ("seconds per 1,000 episodes", 0.0, 0.0, "0"),
        ("fraction of ceiling", 0.784, 0.784, "78.4 %"),
        ("regret", float("nan"), 1.0, "–"),
    ],
)
def test_numbers_of_a_column(name, value, size, text):
    assert shown(name, value, size) == text


def test_partition_is_not_clipped(store, quick):
    summary = summarize(store, maps=True)
    (maps,) = (entry for entry in summary.maps if entry.leaves)
    packed = packed_leaves(maps, summary.plane)
    assert packed["top"] == 40  # as `Dividing` has it, twice the horizon
    rows = np.frombuffer(base64.b64decode(packed["bdata"]), "<u2").reshape(-1, 5)[: packed["ends"][0], 4]
    np.testing.assert_allclose(rows / 65534 * 40, np.linspace(1, 40, len(rows)), atol=1e-3)


@pytest.mark.parametrize("serve", ["serve()", "1/0"])
def test_a_second_process_reads_the_same(store, quick, monkeypatch, serve):
    here = summarize(store, maps=True)
    monkeypatch.setattr(learnt, "MUCH", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    patches = "from kernelrl.reporting import learnt; learnt.EVALUATION_EPISODES = 20"
    monkeypatch.setattr(learnt, "SERVE", f"{patches}; from kernelrl.reporting.learnt import serve; {serve}")
    answers = []
    answer_of = learnt.answer_of
    monkeypatch.setattr(learnt, "answer_of", lambda process: answers.append(answer_of(process)) or answers[-1])
    both = summarize(store, maps=True)
    assert [set(answer) for answer in answers] == [set(list(AGENTS)[::2]) if serve == "serve()" else set()]
    assert both.notes == here.notes
    for label in AGENTS:
        name = "value of deployed policy"
        assert np.array_equal(both.measures[label][name].values, here.measures[label][name].values)
    for one, other in zip(here.maps, both.maps, strict=True):
        assert (one.label, one.file, one.episodes) == (other.label, other.file, other.episodes)
        assert all(np.array_equal(one.fields[f], other.fields[f], equal_nan=True) for f in one.fields)


def test_comparisons(store, quick):
    found = summarize(store).comparisons
    totals = {label: returns_of(store, label).sum(axis=1) for label in AGENTS}
    raw = []
    for one, other in itertools.combinations(AGENTS, 2):
        same = (totals[one] == totals[other]).all()
        raw.append(1.0 if same else stats.ttest_rel(totals[one], totals[other]).pvalue)
    mine = [c for c in found if c.measure == "total reward"]
    assert [(c.first, c.second) for c in mine] == list(itertools.combinations(AGENTS, 2))
    assert all(c.seeds == 3 for c in found)
    for c, p in zip(mine, raw, strict=True):
        assert p <= c.p_value <= min(1, p * len(found)) + 1e-12
        np.testing.assert_allclose(c.difference, (totals[c.first] - totals[c.second]).mean())


def test_no_network(page, report):
    assert all(address.startswith(("data:", "#")) or (report.parent / address).is_file() for address in page.addresses)
    assert report.stat().st_size < 10e6


def test_figures(report):
    stems = {
        "environment",
        "total-reward",
        "regret",
        "return",
        "time",
        "maps-1-greedy",
        "maps-2-random",
        "maps-3-dividing",
    }
    starts = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}
    files = {path.name for path in report.parent.iterdir()}
    assert files == {f"{stem}.{suffix}" for stem in stems for suffix in starts} | {"report.html"}
    for stem in stems:
        for suffix, start in starts.items():
            assert (report.parent / f"{stem}.{suffix}").read_bytes().startswith(start)


def test_script_cannot_be_broken_out_of(tmp_path, quick):
    label = '</script><script>alert(1)</script> $x_1 & "_"'
    agents = {label: lambda: krl.RandomAgent(), "_hidden": lambda: krl.RandomAgent()}
    page = Page(report_of(make_store(tmp_path, agents, 12, (0, 1)), tmp_path / "report").read_text(encoding="utf-8"))
    rows = page.tables["table-results"]
    assert [row[0] for row in rows[1:]] == list(agents)


def test_plain_labels():
    assert plain("$a$") == r"\$a\$"
    assert plain("_x") == " _x"


def test_one_seed_and_one_label(tmp_path, quick, no_figures):
    store = make_store(tmp_path, {"only": lambda: krl.RandomAgent()}, 10, (4,))
    page = Page(report_of(store, tmp_path / "report").read_text(encoding="utf-8"))
    assert "nothing to compare" in page.text
    assert "one seed gives no intervals" in page.text
    assert "[" not in page.tables["table-results"][1][1]


def test_one_seed_and_two_labels(tmp_path, quick, no_figures):
    text = Page(report_of(make_store(tmp_path, RANDOM, 10, (4,)), tmp_path / "r").read_text(encoding="utf-8")).text
    assert "at least two common seeds" in text


def test_an_environment_that_is_not_ours(tmp_path, quick):
    """No V*, so no regret, and the page says why; one dimension, so no maps."""
    gym.register("tests/Line-v0", entry_point=lambda: Line(), max_episode_steps=6)
    try:
        agents = {name: lambda: krl.RandomAgent(reward_range=(-1, 2)) for name in ("a", "b")}
        env = TimeLimit(Line(), 6)
        store = make_store(tmp_path, agents, 20, (0, 1), {"id": "tests/Line-v0"}, env)
        report = report_of(store, tmp_path / "report")
    finally:
        del gym.registry["tests/Line-v0"]
    page = Page(report.read_text(encoding="utf-8"))
    assert "regret" not in page.tables["table-results"][0]
    assert "The optimal value of this environment is not known" in page.text
    assert "Maps are drawn only for states in a box of two dimensions" in page.text
    assert "There is no drawing of tests/Line-v0" in page.text
    assert not (report.parent / "regret.png").exists()


def test_another_horizon_has_no_regret(tmp_path, quick):
    agents = {"short": lambda: krl.RandomAgent(horizon=5)}
    found = summarize(make_store(tmp_path, agents, 10, (0, 1)))
    assert found.optimal is None
    assert "played 5" in found.no_optimal


def test_damaged_and_unfinished_runs_are_told(tmp_path, quick, no_figures):
    store = make_store(tmp_path, RANDOM, 20, (0, 1))
    runs = store.runs()
    (runs[0].path / "history.parquet").write_bytes(b"damaged")
    (runs[3].path / "agent.krl").write_bytes(b"damaged")
    short = runs[2].history().head(8)
    short.write_parquet(runs[2].path / "history.parquet")
    found = summarize(store)
    notes = "\n".join(found.notes)
    assert "one, seed 0 cannot be read" in notes
    assert "two, seed 1: its policy cannot be played" in notes
    assert "the first 8 are reported" in notes
    assert [(c.label, c.seeds, c.episodes) for c in found.curves] == [("one", (1,), 20), ("two", (0, 1), 8)]
    text = report_of(store, tmp_path / "report").read_text(encoding="utf-8")
    assert "two, seed 1: its policy cannot be played" in Page(text).text


def test_empty_store(tmp_path, quick):
    store = make_store(tmp_path, RANDOM, 20, (0,))
    for run in store.runs():
        (run.path / "history.parquet").unlink()
    with pytest.raises(ValueError, match="no run with an episode"):
        report_of(store, tmp_path / "report")


def test_a_folder_that_cannot_be_made(store, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="cannot be made"):
        report_of(Store(store.path), tmp_path / "file" / "report")


def test_spread():
    assert spread(0, 5) == []
    assert spread(1, 5) == [0]
    assert spread(20, 3) == [0, 10, 19]
    assert spread(4, 10) == [0, 1, 2, 3]
