"""Certified bounds in reports: the section, its numbers and its words."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import kernelrl as krl
from kernelrl.experiments.certifying import first_episodes, logged_in
from kernelrl.experiments.declared import declared
from kernelrl.experiments.entries import ModelEntry
from kernelrl.reporting import learnt, report_of
from kernelrl.reporting.certified import Intervals, caption, read_intervals, sentence
from kernelrl.reporting.summary import summarize
from report_pages import Page, numbers_in, opened
from rooms_walked import ROOMS
from stand_in_store import make_store

MODEL = {
    "kind": "displacement", "rooms": [[list(end) for end in room] for room in ROOMS],
    "reward_lipschitz": 1 / 0.3 + 1e-9, "reward_range": [0.0, 1.0], "cell": 0.05, "delta": 0.1,
}  # fmt: skip
AGENTS = {"automatic <1>": lambda: krl.KernelUCBVI(), "random": lambda: krl.RandomAgent()}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = make_store(tmp_path_factory.mktemp("certified"), AGENTS, seeds=(0,))
    file = made.path / "experiment.json"
    content = json.loads(file.read_text())
    content["experiment"]["model"] = MODEL
    file.write_text(json.dumps(content))
    return made


@pytest.fixture(scope="module")
def summary(store, quick):
    return summarize(store)


@pytest.fixture(scope="module")
def report(store, quick):
    return report_of(store, store.path / "report")


def test_bounds_are_those_of_the_first_episodes(summary, store):
    found = summary.certified["automatic <1>"]
    assert found.episodes == [2, 5, 10, 20, 40] and found.delta == 0.1 and found.cell == 0.05 and found.seed == 0
    model = krl.models.Displacement(rooms=ROOMS, reward_lipschitz=MODEL["reward_lipschitz"])
    for k, lower, upper in zip(found.episodes, found.lower, found.upper, strict=True):
        agent = krl.KernelUCBVI()
        env = learnt.make_from_table(store.experiment["environment"])
        agent.fit(env, k, seed=0)
        expected = agent.certify(model, delta=0.1, cell=0.05, reward_range=(0.0, 1.0))
        assert expected.bounds(found.state) == (lower, upper)


def test_the_section(report, summary):
    page, found = Page(report.read_text()), summary.certified["automatic <1>"]
    rows = page.tables["table-certified"]
    assert rows[0] == ["algorithm", "episodes", "lower", "upper", "gap", "V*"]
    assert [row[0] for row in rows[1:]] == ["automatic <1>, seed 0"] * 5
    numbers = np.array([[numbers_in(cell)[0] for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_allclose(numbers[:, 0], found.episodes)
    np.testing.assert_allclose(numbers[:, 1:4].T, [found.lower, found.upper, found.upper - found.lower], atol=6e-4)
    best = summary.optimal.values(found.state[None], 0)[0]
    np.testing.assert_allclose(numbers[:, 4], best, atol=6e-4)
    assert "after 40 episodes the optimal value at" in page.text and "lies inside all these bounds" in page.text
    assert "random: it has no transitions: add transitions = true" in page.text and "`" not in page.text
    assert "<code>transitions = true</code>" in report.read_text()
    assert "probability 90\xa0%" in page.text and "sides of 0.05" in page.text
    assert all((report.parent / f"certified.{kind}").exists() for kind in ("png", "pdf", "svg"))


@pytest.mark.parametrize("width", [1200, 400])
def test_in_a_browser(browser, report, width):
    with opened(browser, report, width, drawn="#chart-certified .scatterlayer .trace") as (page, wrong):
        assert page.locator("#chart-certified .scatterlayer .trace").count() == 3  # lower, upper and V*
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        assert not wrong


def test_a_second_process_reads_the_same(store, quick, summary, monkeypatch):
    monkeypatch.setattr(learnt, "MUCH", 0)
    monkeypatch.setattr(learnt.os, "cpu_count", lambda: 2)
    both = summarize(store).certified
    assert both["random"] == summary.certified["random"]
    one, other = both["automatic <1>"], summary.certified["automatic <1>"]
    assert np.array_equal(one.lower, other.lower) and np.array_equal(one.upper, other.upper)


def test_without_a_model_there_is_no_section(store, quick, monkeypatch):
    experiment = {key: value for key, value in store.experiment.items() if key != "model"}
    found = summarize(SimpleNamespace(experiment=experiment, runs=store.runs))
    assert found.certified == {}


def test_refined(store, summary):
    run = store.runs()[0]
    found, coarse = read_intervals(run, run.agent(), MODEL | {"refine": True}), summary.certified["automatic <1>"]
    assert found.refined and not coarse.refined
    assert "bounds between their corners" in caption(found) and "corners" not in caption(coarse)
    logged = first_episodes(logged_in(run), found.episodes[-1])
    expected = logged.certify(declared(ModelEntry.model_validate(MODEL), ""), refine=True)
    assert expected.bounds(found.state) == (found.lower[-1], found.upper[-1])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rooms": [[[0.0, 0.0], [0.5, 0.5]]]}, "lies in none of the rooms"),
        ({"reward": "no_such:function"}, "model: .*no_such:function.* cannot be imported"),
        ({"cell": 1e-8}, "cell=1e-08: .* fits"),
        ({"refine": True, "variation": 0.5}, "refine=True .* variation=0.5"),
    ],
)
def test_why_there_are_no_bounds(store, changes, said):
    run = store.runs()[0]
    assert re.search(said, read_intervals(run, run.agent(), MODEL | changes))


def test_what_sentences_say(summary):
    found = summary.certified["automatic <1>"]
    assert isinstance(found, Intervals)
    wrong = sentence(summary, "a & b", replace(found, upper=found.upper * 0.0))
    assert wrong.startswith("<b>a &amp; b</b>") and "NOT inside" in wrong and "declaration is probably wrong" in wrong
    assert "contradict the declaration: moves < 1" not in sentence(summary, "a", found)
    assert "contradict the declaration: moves &lt; 1" in sentence(
        summary, "a", replace(found, contradicted="moves < 1")
    )
    unknown = sentence(replace(summary, optimal=None), "a", found)
    assert "itself" not in unknown
