"""The report in a browser: nothing fails, curves are drawn, sliders move the maps, and it fits a phone and paper."""

from __future__ import annotations

import re

import pytest

from report_pages import opened


def heat(page, name):
    """The numbers of a map."""
    return page.evaluate(f"JSON.stringify(document.getElementById('map-{name}').data[0].z)")


def test_no_error_and_all_curves(browser, report):
    with opened(browser, report) as (page, wrong):
        for chart, extra in (("total-reward", 1), ("regret", 0), ("regret-log", 0), ("return", 1), ("time", 0)):
            drawn = page.locator(f"#chart-{chart} .scatterlayer path.js-line").count()
            assert drawn >= 3 + extra, chart
        assert page.locator("#chart-total-reward .scatterlayer path.js-line[d*='L']").count() >= 4
        assert wrong == []


def test_sliders_move_the_maps(browser, report):
    with opened(browser, report) as (page, wrong):
        assert page.locator("#map-label option").all_inner_texts() == ["greedy", "random", "dividing"]
        first = {name: heat(page, name) for name in ("value", "count", "bonus", "policy")}
        page.locator("#map-episode").press("Home")
        page.wait_for_function("document.getElementById('map-episode-value').textContent === '4'")
        earlier = {name: heat(page, name) for name in first}
        assert all(earlier[name] != first[name] for name in ("value", "count", "bonus"))
        page.locator("#map-step").press("End")
        assert page.locator("#map-step-value").inner_text().startswith("19")
        assert heat(page, "value") != earlier["value"]
        assert wrong == []


def test_another_algorithm_is_shown_at_the_same_step_and_episode(browser, report):
    with opened(browser, report) as (page, wrong):
        page.locator("#map-episode").press("Home")
        page.locator("#map-step").press("End")
        page.select_option("#map-label", label="random")
        assert page.locator("#map-step-value").inner_text().startswith("19")
        assert page.locator("#map-episode-value").inner_text() == "4"
        assert wrong == []


def test_maps_name_their_axes_and_scales(browser, report):
    with opened(browser, report) as (page, _):
        for name, letter in (("value", "V"), ("count", "C"), ("bonus", "B")):
            said = page.locator(f"#map-{name}").text_content()
            assert "x₁" in said and "x₂" in said and letter in said


def test_the_policy_has_signs(browser, report):
    """Each sign stands on its action, and the legend has all of them."""
    with opened(browser, report) as (page, wrong):
        legend = page.locator("#map-figure-policy .swatch").all_inner_texts()
        assert legend == ["→", "←", "↑", "↓"]
        drawn = page.evaluate(
            """(() => {
              const [map, signs] = document.getElementById("map-policy").data;
              return signs.x.map((x, n) => [map.z[map.y.indexOf(signs.y[n])][map.x.indexOf(x)], signs.text[n]]);
            })()"""
        )
        assert len(drawn) > 20 and all(legend[action] == sign for action, sign in drawn)
        assert wrong == []


def test_partition_follows_action_and_step(browser, report):
    with opened(browser, report) as (page, wrong):
        assert page.locator("#map-figure-partition").is_hidden()
        page.select_option("#map-label", label="dividing")
        assert page.locator("#map-figure-partition").is_visible()
        assert page.locator("#map-figure-count").is_hidden()
        assert "no count" in page.locator("#map-missing").inner_text()
        outlines = "document.getElementById('map-partition').data[1].x.length / 6"
        assert page.evaluate(outlines) == 2  # as `Dividing` has it
        page.select_option("#map-action", label="down")
        assert page.evaluate(outlines) == 5
        page.locator("#map-step").press("End")
        assert page.evaluate(outlines) == 5 + 19
        assert wrong == []


def test_legend_hides_a_curve(browser, report):
    with opened(browser, report) as (page, wrong):
        lines = page.locator("#chart-return .scatterlayer path.js-line")
        before = lines.count()
        page.locator("#return .legend button", has_text="greedy").click()
        page.wait_for_timeout(300)
        assert lines.count() < before
        page.locator("#return .legend button", has_text="greedy").click()
        page.wait_for_timeout(300)
        assert lines.count() == before
        assert wrong == []


@pytest.mark.parametrize("width", [320, 390, 800])
def test_fits_a_phone(browser, report, width):
    with opened(browser, report, width) as (page, wrong):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert wrong == []


def test_paper_has_the_static_figures(browser, report):
    with opened(browser, report) as (page, _):
        assert not page.locator("img.static").first.is_visible()
        page.emulate_media(media="print")
        figures = page.locator("img.static")
        assert figures.count() == 4 + 3
        assert all(figures.nth(i).is_visible() for i in range(figures.count()))
        assert not page.locator(".chart").first.is_visible()
        assert not page.locator(".controls").is_visible()
        assert page.evaluate("[...document.images].every((image) => image.naturalWidth > 0)")


def test_tool_bars_cover_nothing(browser, report):
    with opened(browser, report) as (page, _):
        tops = page.evaluate(
            """[...document.querySelectorAll(".js-plotly-plot")].filter((div) => div.clientWidth).map((div) => {
              const top = (name) => div.querySelector(name)?.getBoundingClientRect();
              const drawn = [".nsewdrag", ".cbbg", ".cbtitle"].map(top).filter(Boolean).map((box) => box.top);
              return [top(".modebar-group").bottom, Math.min(...drawn)];
            })"""
        )
        assert len(tops) > 5 and all(bar <= drawn + 1 for bar, drawn in tops), tops


def test_tool_bars_send_nothing_elsewhere(browser, report):
    """Every chart has the same few buttons: none shares, uploads or edits elsewhere, whatever plotly.js would add."""
    wanted = ["toImage", "zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]
    with opened(browser, report) as (page, wrong):
        page.select_option("#map-label", label="dividing")
        bars = page.evaluate(
            """[...document.querySelectorAll(".js-plotly-plot")].filter((div) => div.clientWidth).map((div) => ({
              names: div._fullLayout._modeBar.buttonsNames,
              titles: [...div.querySelectorAll(".modebar-btn")].map((button) => button.dataset.title),
            }))"""
        )
        assert len(bars) > 5
        for bar in bars:
            assert bar["names"] == wanted and len(bar["titles"]) == len(wanted)
            assert not re.search("share|upload|cloud|edit|studio|send", " ".join(bar["titles"]), re.I), bar
        assert page.locator("a.modebar-btn[href]").count() == 0
        assert wrong == []


def test_axes_have_plain_numbers(browser, report):
    with opened(browser, report) as (page, _):
        ticks = page.locator(".xtick text, .ytick text").all_text_contents()
        assert len(ticks) > 20 and not [text for text in ticks if "×" in text]


def test_dark_mode(browser, report):
    """The page and its charts follow the reader's system, at once, and paper stays white."""
    back = "getComputedStyle(document.body).backgroundColor"
    chart = "document.querySelector('#chart-return .main-svg').style.background"
    with opened(browser, report) as (page, wrong):
        assert page.evaluate(back) == "rgb(255, 255, 255)"
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(f"{chart} === 'rgb(20, 23, 26)'")
        assert page.evaluate(back) == "rgb(20, 23, 26)"
        page.emulate_media(color_scheme="dark", media="print")
        assert page.evaluate(back) == "rgb(255, 255, 255)"
        assert wrong == []


def test_everything_is_named_and_reached_by_keys(browser, report):
    with opened(browser, report) as (page, _):
        assert page.evaluate("[...document.querySelectorAll('.chart, .map')].every((d) => d.ariaLabel.length > 10)")
        assert page.evaluate("[...document.images].every((image) => image.alt.length > 5)")
        button = page.locator(".legend button").first
        button.focus()
        page.keyboard.press("Enter")
        assert button.get_attribute("aria-pressed") == "false"
        assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
