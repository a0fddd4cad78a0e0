"""The history of benchmarks: what is added is found again, and the last two entries are compared."""

from __future__ import annotations

import importlib
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def history():
    """benchmarks/_history.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("_history")


def shown(history, file, *names):
    """What is printed, with single spaces."""
    text = io.StringIO()
    history.compare(names, file, Console(file=text, width=140))
    return " ".join(text.getvalue().replace("│", " ").split())


def test_last_two_side_by_side(history, tmp_path):
    file = tmp_path / "results" / "bench.jsonl"
    for seconds in (9.0, 2.0, 1.5):
        rows = [{"agent": "new one", "seconds": 7.0}] * (seconds < 2) + [{"agent": "UCBVI", "n": 0, "seconds": seconds}]
        history.append("speed", "Seconds of learning", rows, file)
    history.append("once", "Measured once", [{"n": 1}], file)
    text = shown(history, file)
    assert "Seconds of learning" in text and "UCBVI n 0 0 – seconds 2 1.5 0.750" in text
    assert "1 of 2 rows were not there before." in text
    assert "once" not in text and "machines differ" not in text
    assert "no benchmark with two entries" in shown(history, file, "once")


def test_what_an_entry_says(history, tmp_path, monkeypatch):
    file = tmp_path / "bench.jsonl"
    monkeypatch.setattr(history, "version", lambda: ("0123456789abcdef", True))
    history.append("speed", "Seconds", [{"seconds": 1.0}], file)
    (entry,) = map(json.loads, file.read_text().splitlines())
    assert set(entry) == {"name", "title", "date", "commit", "dirty", "machine", "rows"}
    assert set(entry["machine"]) == {"processor", "cores", "python", "numba", "numpy"} and entry["machine"]["processor"]
    other = entry | {"machine": entry["machine"] | {"numba": "0.1"}, "rows": [{"seconds": 2.0}]}
    file.write_text(json.dumps(other) + "\n" + file.read_text() + '{"name": "cut sho')
    text = shown(history, file)
    assert f"The machines differ: numba 0.1 and {entry['machine']['numba']}." in text
    assert "0123456789 with changes" in text and "row 1 seconds 2 1 0.500" in text


def test_without_a_history(history, tmp_path):
    assert "no benchmark with two entries" in shown(history, tmp_path / "none.jsonl")
