"""The report of several problems: an overview whose numbers are those of the store, and a page for each problem."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from matplotlib.figure import Figure

import kernelrl as krl
from kernelrl.reporting import page as page_module
from kernelrl.reporting import report_of
from kernelrl.reporting.across import page as across_page
from kernelrl.reporting.across.reading import read_store
from report_pages import Page, numbers_in, opened
from small_envs import Line
from stand_in_store import make_several

AGENTS = {name: lambda: krl.RandomAgent() for name in ("first", "second", "<random>")}
PROBLEMS = {
    "near / goal": {"best": 20.0},
    "far": {"best": 15.0, "worst": -1.0, "agents": ["first", "<random>"], "episodes": 20},
}
ROOT = Path(__file__).resolve().parent.parent.parent
FIGURES = ("problems", "means", "profiles", "improvement", "efficiency", "time")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return make_several(tmp_path_factory.mktemp("several"), AGENTS, PROBLEMS)


@pytest.fixture(scope="module")
def report(store, quick):
    """The overview; the figures of the problems' own pages are tested elsewhere, and are empty here."""
    draw = page_module.draw_all
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_module, "draw_all", lambda *given: {name: Figure((1, 1)) for name in draw(*given)})
        return report_of(store, store.path / "report")


@pytest.fixture(scope="module")
def page(report):
    return Page(report.read_text(encoding="utf-8"))


def test_table_is_of_the_store(page, store):
    head, *rows = page.tables["table-scores"]
    assert head == ["problem", *AGENTS]
    assert [row[0] for row in rows] == ["near / goal", "far", "interquartile mean", "optimality gap", "problems"]
    for row, problem in zip(rows, store.problems, strict=False):
        for cell, label in zip(row[1:], AGENTS, strict=True):
            runs = [run for run in store.only(problem.label).runs() if run.label == label]
            if not runs:
                assert cell == "–"
                continue
            scores = [problem.fraction(run.history()["return"].to_numpy()).mean() for run in runs]
            assert numbers_in(cell)[0] == pytest.approx(np.mean(scores), abs=0.0051)
    assert rows[-1][1:] == ["2 of 2", "1 of 2", "2 of 2"]


def test_every_part_says_what_is_seen(report):
    text = report.read_text(encoding="utf-8")
    assert text.count('<p class="seen">') == 7
    assert "With 3 seeds per problem" in text


def test_files(report, store):
    for name in FIGURES:
        for suffix, start in {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}.items():
            assert (report.parent / f"{name}.{suffix}").read_bytes().startswith(start)
    text = (report.parent / "tables.md").read_text(encoding="utf-8")
    assert "| near / goal |" in text and "![" in text and text.startswith("# several & more\n")
    assert text.count("\n## ") == 7


def test_addresses_lead_to_pages_that_lead_back(page, report):
    from urllib.parse import unquote

    local = [unquote(address) for address in page.addresses if not address.startswith(("data:", "#"))]
    assert all((report.parent / address).is_file() for address in local)
    pages = {address for address in local if address.endswith("/report.html")}
    assert len(pages) == 2
    for address in pages:
        one = Page((report.parent / address).read_text(encoding="utf-8"))
        assert "../report.html" in one.addresses
        assert "table-results" in one.tables


def test_agents_have_the_same_colours_on_all_pages(page, report):
    """ "<random>" is third of all, though "far" has only two agents."""
    (folder,) = (path for path in report.parent.iterdir() if path.is_dir() and path.name == "far")
    text = (folder / "report.html").read_text(encoding="utf-8")
    row = text[text.index('id="table-results"') :].split("<tr>")[3]
    assert "&lt;random&gt;" in row and 'stroke="#009E73"' in row


def test_in_a_browser(browser, report):
    with opened(browser, report, drawn="#chart-profiles .scatterlayer path.js-line") as (page, wrong):
        for name in ("profiles", "learning", "reached"):
            assert page.locator(f"#chart-{name} .scatterlayer path.js-line").count() >= 3, name
        for name, points in (("means", 3), ("improvement", 2), ("time", 8)):
            assert page.locator(f"#chart-{name} .scatterlayer .points path").count() == points, name
        page.locator("#profiles .legend button", has_text="first").click()
        page.wait_for_timeout(300)
        assert page.locator("#chart-profiles .scatterlayer path.js-line").count() < 9
        page.emulate_media(media="print")
        figures = page.locator("img.static")
        assert figures.count() == 5 and all(figures.nth(i).is_visible() for i in range(5))
        assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")
        assert wrong == []


@pytest.mark.parametrize("width", [320, 390, 800])
def test_fits_a_phone(browser, report, width):
    with opened(browser, report, width, drawn="#chart-profiles .scatterlayer path.js-line") as (page, wrong):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert wrong == []


@pytest.fixture
def no_pages(monkeypatch):
    """Without the problems' own pages, which take most of the time."""
    monkeypatch.setattr(across_page, "write_page", lambda *given: None)
    monkeypatch.setattr(across_page, "save_all", lambda figures, out: {})
    monkeypatch.setattr(across_page, "picture", lambda *given: "")
    monkeypatch.setattr(across_page, "section_html", lambda *given: "")


RANDOM = {"one": lambda: krl.RandomAgent(), "two": lambda: krl.RandomAgent()}


def test_what_is_left_out_is_said(tmp_path, no_pages):
    store = make_several(tmp_path, RANDOM, {"a": {"best": 5.0}, "b": {"best": -1.0}, "c": {"best": 5.0}})
    runs = store.only("a").runs()
    (runs[0].path / "history.parquet").write_bytes(b"damaged")
    runs = store.only("c").runs()
    for run in runs:
        run.planned = 31
    store.stores["c"].runs = lambda: runs
    found = read_store(store)
    notes = "\n".join(found.notes)
    assert "a: one, seed 0 cannot be read and is left out" in notes
    assert "b is left out of what is said across problems: its best return, -1, is not above its worst, 0." in notes
    assert "c: not finished, and therefore not in this overview: one seed 0, one seed 1" in notes
    assert [problem.label for problem in found.overview.problems] == ["a"]
    assert found.overview.problems[0].runs["one"].seeds == (1, 2)
    page = Page(report_of(store, tmp_path / "report").read_text(encoding="utf-8"))
    assert "c: not finished" in page.text


def test_an_unknown_ceiling(tmp_path, no_pages):
    gym.register("tests/Line-v0", entry_point=lambda: Line(), max_episode_steps=6)
    try:
        agents = {"one": lambda: krl.RandomAgent(reward_range=(-1, 2))}
        store = make_several(tmp_path, agents, {"line": {"environment": {"id": "tests/Line-v0"}}})
        text = report_of(store, tmp_path / "report").read_text(encoding="utf-8")
    finally:
        del gym.registry["tests/Line-v0"]
    assert (
        "line is left out of what is said across problems. The optimal value of this environment is not known" in text
    )
    assert "there is nothing to compare" in text and "not known</td>" in text
    assert (tmp_path / "report" / "tables.md").read_text(encoding="utf-8").startswith("# several & more")


def test_nothing_has_begun(tmp_path):
    store = make_several(tmp_path, RANDOM, {"a": {"best": 5.0}})
    for run in store.only("a").runs():
        (run.path / "history.parquet").unlink()
    with pytest.raises(ValueError, match="no run with an episode"):
        report_of(store, tmp_path / "report")


def test_only_the_overview(tmp_path, store, report, quick):
    alone = report_of(store, tmp_path / "report", overview=True)
    assert not any(path.is_dir() for path in alone.parent.iterdir())
    page = Page(alone.read_text(encoding="utf-8"))
    assert not any(address.endswith("/report.html") for address in page.addresses)
    with pytest.raises(ValueError, match="overview: this experiment has one problem"):
        report_of(store.only("far"), tmp_path / "other", overview=True)


def test_tables_into_a_document(tmp_path, report):
    """What `make suite` does with docs/benchmarks.md; twice gives the same."""
    copy = runpy.run_path(str(ROOT / "benchmarks" / "_tables_to_docs.py"))
    results = tmp_path / "some"
    shutil.copytree(report.parent, results / "report")
    document = tmp_path / "docs" / "page.md"
    document.parent.mkdir()
    document.write_text("before\n<!-- tables: begin -->\nold\n<!-- tables: end -->\nafter\n")
    for _ in range(2):
        copy["copy"](results, document)
        text = document.read_text(encoding="utf-8")
        assert text.startswith("before\n") and text.endswith("\nafter\n") and "\nold\n" not in text
        assert "\n### Interquartile mean\n" in text and "experiment `several & more`" in text
        named = re.findall(r"\]\((.*?)\)", text)
        assert set(named) == {f"figures/some-{name}.png" for name in FIGURES}
        assert all((document.parent / name).is_file() for name in named)
    with pytest.raises(ValueError, match="needs one line"):
        copy["filled"]("nothing", "", "x")


def test_benchmarks_page_has_its_figures():
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\((figures/.*?)\)", text)
    assert len(named) == len(FIGURES) and all((ROOT / "docs" / name).is_file() for name in named)
