"""The example that draws the figures of docs/theory.md, with few paths and episodes."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

sys.path.append(str(Path(__file__).resolve().parent.parent / "examples"))

import theory_figures


@pytest.fixture(autouse=True)
def no_open_figures():
    yield
    assert not plt.get_fignums()


def test_all_figures_are_drawn(tmp_path):
    theory_figures.draw_bonuses(tmp_path)
    theory_figures.draw_coverage(tmp_path, paths=50, steps=20)
    theory_figures.draw_gap(tmp_path, episodes=20)
    names = {"theory_bonuses.png", "theory_coverage.png", "theory_gap.png"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert all(path.stat().st_size > 10_000 for path in tmp_path.iterdir())


def test_main_writes_them_into_a_folder(tmp_path, monkeypatch, capsys):
    draws = ("draw_bonuses", "draw_coverage", "draw_gap")
    for name in draws:
        monkeypatch.setattr(theory_figures, name, lambda out, name=name: print(name, out.is_dir()))
    monkeypatch.setattr(sys, "argv", ["theory_figures.py", "--out", str(tmp_path / "new" / "figures")])
    theory_figures.main()
    assert capsys.readouterr().out.splitlines() == [f"{name} True" for name in draws]


@pytest.mark.parametrize("kind", ["Hoeffding", "Bernstein"])
def test_violations_are_as_rare_as_the_lemmas_say(kind):
    assert theory_figures.violations(0.3, kind, "weights all 1", paths=500, steps=50) <= 0.3
