"""The parts of `make soak` in small numbers, and that they notice what they look for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numba
import numpy as np
import polars
import pytest

import kernelrl as krl
import soak
from experiment_parts import environment
from soak_parts import disk, files, hand, kills, memory
from soak_parts.outcome import Outcome
from test_interface import AGENTS

compiled_only = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="is about compiled runs")


@compiled_only
def test_kills(tmp_path):
    """Four of an experiment; what is promised for 200 of them holds for these."""
    outcome = kills.run(1.0, tmp_path, 4)
    assert outcome.tried["kills"] == 4
    assert not outcome.failed and not outcome.lost, outcome


def test_calls_by_hand():
    """In a process without machine code, where an index out of bounds is an error."""
    command = [sys.executable, "-m", "soak_parts.hand", "1", "100"]
    done = subprocess.run(
        command, env=environment() | {"NUMBA_DISABLE_JIT": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    tried, _, _ = json.loads(done.stdout.splitlines()[-1])
    assert tried["sequences"] == len(AGENTS) and tried["refused calls"] > 3 * len(AGENTS)


@compiled_only
@pytest.mark.parametrize("name", ["optql", "merged", "greedy-exact"])  # one of each kind; the others in the soak
def test_memory(name):
    outcome = Outcome()
    memory.check(outcome, name, {"optql": 20_000, "merged": 4_000, "greedy-exact": 600}[name])
    assert not outcome.failed, outcome.failed


def test_saving_to_a_full_disk(tmp_path):
    outcome = Outcome()
    disk.save_with_limits(outcome, tmp_path, 5)
    assert outcome.tried == {"saves to a full disk": 5}
    assert not outcome.failed and not outcome.lost, outcome


# ---------------------------------------------------------------------------------------------- faults that are noticed


def test_memory_that_leaks_is_noticed(monkeypatch):
    found = [2**20 * k for k in range(memory.PIECES)]
    done = subprocess.CompletedProcess([], 0, json.dumps(found), "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    outcome = Outcome()
    memory.check(outcome, "optql", 10_000)
    assert len(outcome.failed) == 1 and "optql: grew by" in outcome.failed[0]


class Broken(krl.RandomAgent):
    """Fails in one of its verbs now and then, in a way that is not documented."""

    error: type[Exception] | None = IndexError

    def observe(self, *arguments, **options):
        super().observe(*arguments, **options)
        if self.error is not None:
            raise self.error("out of bounds")


class Forgetful(krl.RandomAgent):
    """Takes in a transition and refuses it."""

    def observe(self, *arguments, **options):
        self.episodes += 1
        raise ValueError("observe does not work today")


@pytest.mark.parametrize(("broken", "words"), [(Broken, "IndexError"), (Forgetful, "has left a trace")])
def test_faults_of_calls_by_hand_are_noticed(broken, words, tmp_path, monkeypatch):
    monkeypatch.setitem(hand.AGENTS, "RandomAgent", (broken, {}))
    outcome = Outcome()
    for seed in range(5):
        hand.try_sequence(outcome, "RandomAgent", seed, 100, tmp_path)
    assert words in str(outcome.failed + outcome.lost)


class CarelessByHand(krl.RandomAgent):
    """Destroys the older file and says nothing."""

    def save(self, path):
        path.write_bytes(b"")


def test_a_full_disk_that_costs_the_older_file_is_noticed(tmp_path):
    (tmp_path / "agent.krl").write_bytes(b"older")
    assert not disk.refuses(CarelessByHand(), tmp_path / "agent.krl", 10)
    assert disk.refuses(krl.RandomAgent(), tmp_path / "agent.krl", 10)


def test_what_kills_lose_is_noticed(tmp_path):
    outcome = Outcome()
    kills.check_stored(outcome, tmp_path, {"greedy": 7}, "all killed")
    assert outcome.lost == ["all killed: greedy had 7 episodes, then {}"]


@pytest.mark.parametrize("other", [{"agent.krl": b"other"}, {}, {"agent.krl": b"same", "more.krl": b""}])
def test_other_results_are_noticed(other, tmp_path, monkeypatch):
    frame, same = polars.DataFrame({"return": [1.0]}), {"agent.krl": b"same"}
    monkeypatch.setattr(kills, "results", lambda out: (frame, same))
    kills.check_results(tmp_path, (frame, same))
    for expected in ((frame, other), (frame.with_columns(polars.lit(2.0).alias("return")), same)):
        outcome = Outcome()
        outcome.attempt("killed", kills.check_results, tmp_path, expected)
        assert len(outcome.lost) == 1 and not outcome.failed


def test_edited_files_that_fail_are_noticed(tmp_path, monkeypatch):
    trials = [files.edited_files.Trial(0, "x: 1", "works"), files.edited_files.Trial(1, "x: 2", "crashed: status 139")]
    monkeypatch.setattr(files.edited_files, "soak", lambda *_, **__: {"optql": trials})
    outcome = files.run(1.0, tmp_path, 2)
    assert outcome.tried == {"files": 2, "works": 1, "crashed": 1} and len(outcome.failed) == 1


def test_the_table_and_the_exit_status(tmp_path, monkeypatch, capsys):
    rows = {
        "files": {"tried": {"files": 4000}, "failed": [], "lost": []},
        "kills": {"tried": {"kills": 3}, "failed": ["hung"], "lost": []},
    }
    monkeypatch.setattr(soak, "RESULTS", tmp_path)
    monkeypatch.setattr(
        soak,
        "start_part",
        lambda name, *_: {"part": name, "words": soak.PARTS[name].words, **rows[name], "seconds": 1},
    )
    assert soak.soak(["files"], 1.0) == 0
    assert "| edited files | 4,000 files | 0 | 0 | 1 |" in capsys.readouterr().out
    assert soak.soak(["files", "kills"], 1.0) == 1
    assert "kills, failed: hung" in capsys.readouterr().out
    assert [row["part"] for row in json.loads((tmp_path / "soak.json").read_text())["parts"]] == ["files", "kills"]


def test_a_part_that_dies_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setitem(soak.PARTS, "files", soak.Part("edited files", "files", options={"count": 1}))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    row = soak.start_part("files", 1.0, tmp_path)
    assert row["failed"] and "exit status 1" in row["failed"][0]


@pytest.mark.parametrize("part", soak.PARTS.values(), ids=soak.PARTS)
def test_every_part_can_be_found(part):
    module = __import__(f"soak_parts.{part.module}", fromlist=[part.function])
    assert callable(getattr(module, part.function))
    assert np.all([isinstance(number, int) for number in part.options.values()]) and os.path.exists(soak.__file__)
