"""The compiled copy of the authors' program in benchmarks/as_run.py against plain NumPy."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from naive import metrics
from naive.as_run import NaiveAsRun
from naive.kernels import gaussian
from problems import random_log

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
WIDTHS = (2.0, 1.0)
both = pytest.mark.parametrize("greedy", [False, True])


@pytest.fixture
def as_run(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("as_run")


@both
@pytest.mark.parametrize("limit", [6, 40])
def test_against_naive(as_run, limit, greedy):
    rng = np.random.default_rng(limit)
    log = random_log(rng, H=3, A=3, d=2, transitions=400, sites=4, noise=0.08)
    naive = NaiveAsRun(log.H, log.A, 0.06, 0.01, gaussian, metrics.lp(2, np.array(WIDTHS)), 0.07, limit, 0.5, greedy)
    program = as_run.new_program(log.H, log.A, 0.06, 0.01, WIDTHS, 0.07, limit, 0.5, greedy)
    chosen = []
    for episode in log.episodes:
        as_run.begin_episode(program)
        naive.begin_episode()
        for t in episode:
            chosen.append(as_run.choose(program, t.x, t.h))
            assert chosen[-1] == naive.choose(t.x, t.h)
            as_run.observe(program, t.x, t.a, t.r, t.y, t.h, t.terminated)
            naive.observe(*t)
    M = len(naive.states)
    assert program.number[0] == M and (M == 6 if limit == 6 else 6 < M < 40)
    for name in ("weight", "reward", "next", "V"):
        assert_allclose(getattr(program, name), getattr(naive, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert all((naive.V[h, :M] < log.H - 1e-3).any() for h in range(log.H)), "no value has moved"
    assert set(chosen) == {0, 1, 2}


@both
def test_runs_in_twin_rooms(as_run, greedy):
    first, again, other = (as_run.play_theirs(greedy, 30, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert 0 <= first[0] < 30 * 20 and 5 < first[1] < as_run.MOST
