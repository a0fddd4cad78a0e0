"""The figure of docs/explained.md that readers move: its numbers are those of agents, and keys move it."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGE = """<!DOCTYPE html><title>page</title><body>{box}
<script src="{folder}/explained_samples.js"></script><script src="{folder}/explained.js"></script></body>"""


@pytest.fixture(scope="module")
def drawing():
    spec = importlib.util.spec_from_file_location("draw_explained", DOCS / "draw_explained.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def page(browser, tmp_path):
    box = re.search(r"<div .*</div>", (DOCS / "explained.md").read_text())[0]
    file = tmp_path / "page.html"
    file.write_text(PAGE.format(box=box, folder=(DOCS / "_static").as_uri()))
    opened, wrong = browser.new_page(), []
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda r: None if r.url.startswith("file:") else wrong.append(r.url))
    opened.goto(file.as_uri())
    yield opened
    opened.close()
    assert wrong == []


def outputs(page):
    return [float(text) for text in page.locator("#try-kernel output").all_inner_texts()]


def test_samples_are_those_of_the_pictures(drawing):
    text = (DOCS / "_static" / "explained_samples.js").read_text()
    content = json.loads(re.fullmatch(r"window.explainedSamples = (.*);\n", text)[1])
    x, r = drawing.samples(300)
    assert content["r"] == r.tolist()
    np.testing.assert_allclose(content["x"], x, atol=5e-5)


def test_values_are_those_of_an_agent(page, drawing):
    for place in (0, 40, 100):
        page.locator("#try-kernel input[name=number]").fill(str(place))
        number, bandwidth, times = outputs(page)
        assert times == 1.0
        shown = page.evaluate("document.getElementById('try-kernel').shown")
        exact = 0.01 * 40 ** (float(page.locator("#try-kernel input[name=bandwidth]").input_value()) / 100)
        assert abs(exact - bandwidth) <= 5e-4
        agent = drawing.agent_of(int(number), exact)
        states = np.array(shown["x"])[:, None]
        np.testing.assert_allclose(shown["upper"], agent.values(states, 0), atol=2e-3)


def test_keys_move_it_and_words_say_what_is_shown(page):
    assert page.locator("#try-kernel").is_visible()
    slider, said = page.locator("#try-kernel input[name=number]"), page.locator("#try-kernel [role=status]")
    before, label = said.inner_text(), page.locator("#try-kernel svg").get_attribute("aria-label")
    slider.focus()
    page.keyboard.press("Home")
    assert outputs(page)[0] == 1 and slider.get_attribute("aria-valuetext") == "1"
    assert said.inner_text() != before and page.locator("#try-kernel svg").get_attribute("aria-label") != label
    page.locator("#try-kernel input[name=bonus]").focus()
    page.keyboard.press("Home")
    assert "on 0 % of the states" in said.inner_text()
