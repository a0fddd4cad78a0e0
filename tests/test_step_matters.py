"""The test whether rewards or the motion depend on the step: silent where they do not, and it finds where they do.

The problems are those of benchmarks/step_test.py, which measures the rates; here are a few of them.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kernelrl.agents.automatic import Automatic
from kernelrl.agents.dependence import MOTION, NOT, REWARDS, dependence
from kernelrl.stores.log import Log
from naive.automatic import NaiveAutomatic

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
EXPECTED = {
    "pay-off": REWARDS, "tariff": REWARDS, "weak tariff": REWARDS,
    "disturbance": MOTION, "reversal": MOTION, "weak wind": MOTION,
}  # fmt: skip


@pytest.fixture(scope="module")
def bench():
    """benchmarks/step_test.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        return importlib.import_module("step_test")


def log_of(x, a, r, y, h):
    labels = np.stack([h, a, np.zeros_like(a)]).astype(np.int64)
    return Log(np.stack([x, y]), labels, np.asarray(r, dtype=float), np.array([len(h)]))


@pytest.mark.parametrize("first", range(0, 40, 10))
def test_silent_where_it_does_not_matter(bench, first):
    assert [seed for seed in range(first, first + 10) if bench.of_generated(seed, 2500)] == []


@pytest.mark.parametrize("depends", EXPECTED)
def test_finds_what_depends(bench, depends):
    """In problems with little noise in which all episodes have their full length."""
    problems = [seed for seed in range(300) if easy(bench.Generated(seed, depends))][:8]
    found = [bench.of_generated(seed, 5000, depends) for seed in problems]
    assert len(found) == 8 and [one and one[1] for one in found].count(EXPECTED[depends]) >= 4


def easy(problem):
    little = problem.noise <= 0.5 * problem.size and problem.reward != "noisy"
    return little and not (problem.clock or problem.ends or problem.on_grid) and problem.start != "fixed"


def test_motion_is_found_after_rewards():
    """Each look asks again until it is the motion."""
    automatic, spaces = (
        Automatic(None, None, None),
        SimpleNamespace(low=np.zeros(1), high=np.ones(1), horizon=5, actions=1, net=None),
    )
    rng, h, a = np.random.default_rng(0), np.tile(np.arange(5), 60), np.zeros(300, int)
    x = rng.random((300, 1))
    for reward, motion, found in [(0, 0, NOT), (1, 0, REWARDS), (0, 0, REWARDS), (1, 1, MOTION), (0, 0, MOTION)]:
        log = log_of(x, a, reward * (h == 2), x + motion * 0.1 * (h > 2)[:, None], h)
        automatic.look(log, spaces, 10**9, True)
        assert automatic.depends == found


def test_the_table_of_dependences(bench):
    assert set(bench.DEPENDENCES) == set(EXPECTED)


@pytest.mark.parametrize("depends", [None, "tariff", "reversal", "disturbance", "pay-off"])
@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_against_naive(bench, depends, seed):
    problem = bench.Generated(seed, depends)
    problem.H, data = 8, []
    for x, a, r, y, h in zip(*problem.play("random", 480, seed), strict=True):
        data.append((x, a, r, y, h, False))
    x, a, r, y, h, _ = map(np.array, zip(*data, strict=True))
    low, high = problem.box
    naive = NaiveAutomatic(False, 8, problem.A, low, high)
    naive.log = data
    log = log_of(x, a, r, y, h)
    scale = Automatic(None, None, None)._scale(log, low, high)
    assert dependence(log, scale, 8) == naive._dependence(scale)


def clock(n=100, H=20):
    """n episodes of a clock and a coordinate of noise; actions do nothing."""
    rng, h = np.random.default_rng(0), np.tile(np.arange(H), n)
    x = np.column_stack([h / H, rng.random(n * H)])
    y = np.column_stack([x[:, 0] + 1.0 / H, rng.random(n * H)])
    return rng, x, np.zeros(n * H, int), y, h


@pytest.mark.parametrize("of", [np.float64, np.float32])
def test_rounding_is_no_motion(of):
    """The clock goes on by the same at each step, but for rounding, which is the same at each step."""
    _, x, a, y, h = clock()
    log = log_of(x.astype(of), a, np.zeros(len(a)), y.astype(of), h)
    assert np.unique(log.states[1, :, 0] - log.states[0, :, 0]).size > 1
    assert dependence(log, np.array([0.1, 0.01]), 20) == NOT


def test_what_a_clock_tells_is_not_left_to_the_step():
    """The reward is at one time; among states as near as noise allows that is hidden, but not on the clock alone."""
    _, x, a, y, h = clock()
    reward = 1.0 * (h == 12)
    assert dependence(log_of(x, a, reward, y, h), np.array([0.1, 0.01]), 20) == NOT
    assert dependence(log_of(x[:, 1:], a, reward, y[:, 1:], h), np.array([0.01]), 20) == REWARDS


@pytest.mark.parametrize("seed", range(10))
def test_the_same_state_again_and_again(seed):
    """Five states, and rewards by chance: neighbours must not be the same three for all."""
    rng, h = np.random.default_rng(seed), np.tile(np.arange(10), 60)
    x = rng.integers(5, size=(600, 1)).astype(float)
    log = log_of(x, np.zeros(600, int), rng.random(600) < 0.1, x, h)
    assert dependence(log, np.array([0.3]), 10) == NOT
