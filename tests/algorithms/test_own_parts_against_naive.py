"""The examples' bonus, kernels and metric in all kinds of kernel agents against the equations in plain NumPy.

All three are used together, since each combination of classes is compiled by itself.
"""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from naive import metrics
from pairs import PLAN_ERROR, READ_OUTS, TOLERANCE, Pair, some_states
from problems import random_log

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))

from own_bonus import LogBonus
from own_kernel import RationalQuadratic, Wendland
from own_metric import Walled

STATES = np.random.default_rng(1).random((6, 2))


def wendland(z):
    t = np.minimum(z / 5, 1)
    return (1 - t) ** 4 * (1 + 4 * t)


def rational(z):
    return (1 + z**2 / (2 * 1.5)) ** -1.5


def walled(x, y):
    across = (x[:, None, 0] < 0.5) != (y[None, :, 0] < 0.5)
    return metrics.euclidean(x, y) + 0.3 * across


class NaiveLogBonus:
    def __init__(self, H, beta, scale):
        self.H, self.beta, self.scale = H, beta, scale

    def __call__(self, h, samples, C, D, W2):
        return self.scale * np.sqrt(np.log(1 + samples) / C) + (self.H - h) * self.beta / C


def make_pair(greedy, log, **options):
    """A public agent of own parts and its naive counterpart."""
    kernel = (RationalQuadratic(1.5), rational) if greedy else (Wendland(), wendland)
    pair = Pair(
        greedy, log, kernel=kernel, metric=(Walled(0.5, 0.3), walled), bonus=LogBonus(0.25), bonus_scale=0.2, **options
    )
    naive = getattr(pair.naive, "naive", pair.naive)
    naive.bonus, naive.bonus_scale = NaiveLogBonus(log.H, naive.beta, 0.25 * 0.2), 1.0
    return pair


def read(agent):
    return {(name, h): getattr(agent, name)(STATES, h).tolist() for name in READ_OUTS for h in range(3)}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("stationary", [True, False], ids=["pooled", "per step"])
@pytest.mark.parametrize("merge", [None, 0.0613], ids=["exact", "representatives"])
@pytest.mark.parametrize("greedy", [False, True], ids=["kernel", "greedy"])
def test_against_naive(greedy, merge, stationary, seed):
    rng = np.random.default_rng(seed)
    log = random_log(rng, H=3, A=2, d=2, transitions=120, sites=4)
    states = some_states(log, rng)
    lipschitz, low = (0.8 if greedy and merge is None else (None, 0.5)[seed]), -seed
    pair = make_pair(
        greedy, log, merge=merge, stationary=stationary, lipschitz=lipschitz, reward_range=(low, 1), sigma=0.09
    )
    pair.play(states, rng)
    pair.check_moved(states)


@pytest.mark.parametrize("merge", [None, 0.0613], ids=["exact", "representatives"])
@pytest.mark.parametrize("greedy", [False, True], ids=["kernel", "greedy"])
def test_files(greedy, merge, tmp_path):
    """What comes out of a file goes on to the last bit, with what the bonus has counted."""
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=60, sites=4)
    pair = make_pair(greedy, log, merge=merge, lipschitz=0.8, stationary=False)
    agent, half = pair.agent, len(log.episodes) // 2
    for k, episode in enumerate(log.episodes):
        if k == half:
            agent.save(tmp_path / "agent.krl")
            loaded = krl.load(tmp_path / "agent.krl")  # the modules have been imported
            assert repr(loaded) == repr(agent) and read(loaded) == read(agent)
            assert loaded.model.settings.bonus.samples.sum() > 0
        for told in (agent, loaded) if k >= half else (agent,):
            told.begin_episode()
            for t in episode:
                told.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            told.end_episode()
    assert read(loaded) == read(agent)
    samples = [agent.model.settings.bonus.samples.tolist() for agent in (agent, loaded)]
    assert samples[0] == samples[1] and sum(samples[0]) > 30


def tell(agent, log, worth=1.0):
    """Play a log; the last plan has all of it."""
    for episode in log.episodes:
        agent.begin_episode()
        for t in episode:
            agent.observe(t.x, t.a, worth * t.r, t.y, t.h)
        agent.end_episode()
    agent.begin_episode()


def started(**options):
    agent = krl.KernelUCBVI(regularization=0.0137, lipschitz=0.8, **options)
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), 3, 0)
    return agent


@pytest.mark.parametrize("merge", [None, 0.0613], ids=["exact", "representatives"])
def test_samples_are_counted_once(merge):
    """Also where the range of rewards widens, or the bandwidth moves, and an exact agent plans from the beginning."""
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=60, sites=4)
    own = {"kernel": Wendland(), "metric": Walled(0.5, 0.3), "bonus": LogBonus(0.05), "representatives": merge}
    widening = started(bandwidth=0.1, **own)
    tell(widening, log, worth=3.0)
    assert widening.rewards.high > 1.0
    assert widening.model.settings.bonus.samples.tolist() == [len(log.transitions)]
    moving = started(bandwidth=falling, reward_range=(0, 1), **own)
    still = started(bandwidth=0.1, reward_range=(0, 1), **own)
    for agent in (moving, still):
        tell(agent, log)
        assert agent.model.settings.bonus.samples.tolist() == [len(log.transitions)]
    for h in range(3):
        for name in READ_OUTS:
            at_last, always = (getattr(agent, name)(STATES, h) for agent in (moving, still))
            assert_allclose(at_last, always, rtol=TOLERANCE, atol=PLAN_ERROR)


def falling(k):
    """A bandwidth that comes down to 0.1."""
    return 0.1 if k > 4 else 0.3 - 0.04 * k


class Unpromising(krl.bonuses.Joint):
    """A bonus that depends on σ, on Σwρ and Σw² and on the number of samples, and may be used with a schedule."""

    promises = False


@pytest.mark.parametrize("merge", [None, 0.0613], ids=["exact", "representatives"])
def test_moments_follow_the_bandwidth(merge):
    log = random_log(np.random.default_rng(0), H=3, A=2, d=2, transitions=60, sites=4)
    options = {"bonus": Unpromising(0.1), "bonus_scale": 0.05, "reward_range": (0, 1), "representatives": merge}
    agents = [started(bandwidth=bandwidth, **options) for bandwidth in (falling, 0.1)]
    for agent in agents:
        tell(agent, log)
    for h in range(3):
        for name in READ_OUTS:
            at_last, always = (getattr(agent, name)(STATES, h) for agent in agents)
            assert_allclose(at_last, always, rtol=TOLERANCE, atol=PLAN_ERROR, err_msg=f"{name} at step {h}")
    assert agents[0].bonuses(STATES, 0).min() < 3.0
