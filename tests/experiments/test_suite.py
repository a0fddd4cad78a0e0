"""The small suite of the catalogue runs from the command line and is extended, and its returns are on one scale."""

from __future__ import annotations

import json

import polars

from experiment_parts import call
from kernelrl import experiments


def test_the_small_suite(tmp_path):
    done = call("run", "suite-quick", "--out", tmp_path / "out", "--seeds", "1", "--json")
    assert done.returncode == 0, done.stderr
    done = call("run", "suite-quick", "--out", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert summary["finished"] and len(summary["runs"]) == 3 * 3 * 2
    frame = experiments.load(tmp_path / "out")
    store = experiments.open_store(tmp_path / "out")
    assert frame["problem"].unique(maintain_order=True).to_list() == [problem.label for problem in store.problems]
    for problem in store.problems:
        returns = frame.filter(problem=problem.label).group_by("label").agg(polars.col("return").mean())
        collected = {label: float(problem.fraction(mean)) for label, mean in returns.iter_rows()}
        assert collected["random"] < collected["Kernel-UCBVI"] < 1, problem.label
