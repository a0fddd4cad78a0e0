"""Figures come out the same whichever process draws them."""

from __future__ import annotations

import itertools
import os

import matplotlib.colors
import numpy as np
import pytest
from matplotlib.figure import Figure

from kernelrl.reporting import drawing
from kernelrl.reporting.across.figures import BLUES, DARKEST
from kernelrl.reporting.actions import action_colours, action_signs, inks
from kernelrl.reporting.maps import LEVELS
from kernelrl.reporting.style import contrast, ink_on

NAMES = ("first", "second", "third")


def figures():
    made = {}
    for i, name in enumerate(NAMES):
        made[name] = Figure(layout="constrained")
        axes = made[name].subplots()
        axes.plot([1, 10, 100], [1, i, 3])
        axes.set_xscale("log")
    return made


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def written(folder, monkeypatch, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    folder.mkdir()
    files = drawing.save_all(figures(), folder)
    assert list(files) == list(NAMES)
    assert {path for paths in files.values() for path in paths} == set(folder.iterdir())
    return contents(folder)


def test_two_processes_write_what_one_does(tmp_path, monkeypatch):
    here = []
    save = drawing.save
    monkeypatch.setattr(drawing, "save", lambda figure, stem: (here.append(stem.name), save(figure, stem)))
    one = written(tmp_path / "one", monkeypatch, 1)
    assert here == list(NAMES) and len(one) == 3 * len(NAMES)
    here.clear()
    assert written(tmp_path / "two", monkeypatch, 2) == one
    assert here == ["first", "third"]


@pytest.mark.parametrize("executable", ["/nowhere/python", "/bin/false"])
def test_a_second_process_that_fails_costs_no_figure(executable, tmp_path, monkeypatch):
    one = written(tmp_path / "one", monkeypatch, 1)
    monkeypatch.setattr(drawing.sys, "executable", executable)
    assert written(tmp_path / "two", monkeypatch, 2) == one


def grey(colour):
    """What a printer in black and white makes of a colour, from 0 to 1."""
    return float(np.dot(matplotlib.colors.to_rgb(colour), (0.299, 0.587, 0.114)))


@pytest.mark.parametrize(("actions", "apart"), [(4, 0.17), (8, 0.05)])
def test_actions_are_told_apart_without_colours(actions, apart):
    greys = [grey(colour) for colour in action_colours(actions)]
    assert min(abs(a - b) for a, b in itertools.combinations(greys, 2)) >= apart
    colours = action_colours(8)
    assert all(contrast(ink, colour) > 4.5 for ink, colour in zip(inks(colours), colours, strict=True))


def test_levels_of_an_action_become_lighter():
    greys = [grey(colour) for colour in action_colours(LEVELS)]
    assert all(np.diff(greys) > 0)


@pytest.mark.parametrize(
    ("names", "signs"),
    [
        (["right", "left", "up", "down"], "→←↑↓"),
        (["action 1", "action 2"], "12"),
        (["Heat", "cool", "nothing"], "HCN"),
        (["heat", "hold", "cool"], "012"),
        ([f"{level}" for level in range(LEVELS)], ""),
    ],
)
def test_every_action_has_its_sign(names, signs):
    assert action_signs(names) == list(signs)


def test_text_on_every_shade_of_the_table_can_be_read():
    shades = [BLUES(value / DARKEST) for value in np.linspace(0, 1, 101)]
    assert min(contrast(ink_on(shade), shade) for shade in shades) >= 4.5
