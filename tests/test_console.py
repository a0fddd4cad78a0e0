"""What is shown while an experiment runs."""

from __future__ import annotations

import io
import sys
import time

from kernelrl import console
from kernelrl.experiments.learning import Job


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", Terminal())
    job = Job("greedy [x]", 3, 200, {}, {}, "", [], 20.0)
    with console.Runs(200) as shown:
        shown.update(job, 50, None)
        shown.update(job, 100, 1.2345)
        shown.say("by the way [y]")
        shown._live.refresh()
        bars = sys.stderr.getvalue()
        shown.end(job, "finished")
    for word in ("greedy [x], seed 3", "100/200", "mean return 1.23", "by the way [y]", "all"):
        assert word in bars
    assert "greedy [x], seed 3: finished" in sys.stderr.getvalue()


def test_progress_elsewhere_is_sparse(monkeypatch, capsys):
    job = Job("greedy", 3, 200, {}, {}, "", [], 20.0)
    now = [0.0]
    monkeypatch.setattr(console.time, "monotonic", lambda: now[0])
    with console.Runs(200) as shown:
        for episode in range(100):
            now[0] += 1.0
            shown.update(job, episode, 0.5)
        shown.end(job, "finished")
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4 and lines[0] == "greedy, seed 3: episode 30 of 200, mean return 0.5"
    assert lines[-1] == "greedy, seed 3: finished"


def test_waiting(monkeypatch, capsys):
    with console.waiting("Planning", show=True):
        pass
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", Terminal())
    with console.waiting("Nothing", show=False):
        pass
    with console.waiting("Planning", show=True):
        time.sleep(0.2)
    assert "Planning" in sys.stderr.getvalue() and "Nothing" not in sys.stderr.getvalue()
