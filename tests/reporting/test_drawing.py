"""Figures come out the same whichever process draws them."""

from __future__ import annotations

import os

import pytest
from matplotlib.figure import Figure

from kernelrl.reporting import drawing

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
