"""One small store and its report for all tests of reports, and a browser."""

from __future__ import annotations

import os
import shutil

import pytest
from matplotlib.figure import Figure

from kernelrl.envs import optimal
from kernelrl.reporting import learnt, page, report_of, summary
from stand_in_store import Store, make_store

ARGUMENTS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def quick():
    """Coarse optimal values and few episodes of evaluation: what is tested is that they arrive."""
    patch = pytest.MonkeyPatch()
    solve = optimal.solve
    patch.setattr(summary, "solve", lambda env: solve(env, 0.05))
    patch.setattr(learnt, "EVALUATION_EPISODES", 20)
    yield
    patch.undo()


@pytest.fixture
def no_figures(monkeypatch):
    """Empty figures where they are not what is tested: drawing takes most of a report's time."""
    draw = page.draw_all
    monkeypatch.setattr(page, "draw_all", lambda *given: {name: Figure((1, 1)) for name in draw(*given)})


@pytest.fixture(scope="session")
def store(tmp_path_factory) -> Store:
    return make_store(tmp_path_factory.mktemp("store"), name="Rooms & <tests>")


@pytest.fixture(scope="session")
def report(store, quick):
    """The path of the report's page."""
    return report_of(store, store.path / "report")


@pytest.fixture(scope="session")
def browser():
    """Chromium from the system's packages; where there is none the test is skipped, unless it is required to run."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        if os.environ.get("KERNELRL_REQUIRE_BROWSER") == "1":
            pytest.fail("KERNELRL_REQUIRE_BROWSER=1, and there is no chromium on the PATH")
        pytest.skip("there is no chromium on the PATH")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield opened
        opened.close()
