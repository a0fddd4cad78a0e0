"""`lipschitz="log"`: log k for constants that are not known (paper, footnote of section 3)."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.planning.passing import PLAN_ERROR
from naive import kernels, metrics
from naive.kernel_ucbvi import NaiveKernelUCBVI
from naive.representatives import NaiveRepresentatives
from pairs import some_states
from plain import plain
from problems import random_log
from test_interface import check_equal, make_env, read

KERNEL = {"bandwidth": 0.117, "regularization": 0.0137, "bonus": "simplified", "bonus_scale": 0.05}


def constant(k):
    """log of the largest number below the next power of two, for episode k from 1."""
    end = 1
    while end < k:
        end = 2 * end + 1
    return math.log(end)


@pytest.mark.parametrize("low", [0.0, -2.0])
@pytest.mark.parametrize("replan", ["episode", "doubling"])
@pytest.mark.parametrize("stationary", [True, False])
@pytest.mark.parametrize("merge", [None, 0.0613])
def test_against_the_equations(merge, stationary, replan, low):
    """In units of the range of rewards, here 3 wide."""
    rng = np.random.default_rng(0)
    log = random_log(rng, H=3, A=2, d=2, transitions=120, sites=4, endings=0.0)
    agent = krl.KernelUCBVI(
        **KERNEL, lipschitz="log", representatives=merge, stationary=stationary, replan=replan, horizon=3,
        reward_range=(low, low + 3),
    )  # fmt: skip
    agent.plan_tolerance = 1e-12
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), 3, 0)
    naive = core = NaiveKernelUCBVI(
        3, 2, 0.117, 0.0137, kernels.BY_NAME["gaussian"], metrics.euclidean, np.zeros(3), stationary, replan, 0.05
    )
    if merge is not None:
        naive = NaiveRepresentatives(merge, metrics.euclidean).before(core, ("q_values", "values"))
    states, bound, off = some_states(log, rng), 0, 1e-9 if merge is not None else PLAN_ERROR
    for k, episode in enumerate(log.episodes, start=1):
        if core.L[0] != constant(k):
            core.L = np.full(3, constant(k))
            core._plan()
        agent.begin_episode()
        naive.begin_episode()
        if k in (1, 2, 3, 4, 7, 8, 20, 33):
            for h in range(3):
                expected = 3 * naive.values(states, h) + low * (3 - h)
                assert_allclose(agent.values(states, step=h), expected, rtol=1e-9, atol=off)
                bound += (naive.q_values(states, h) < core.targets(states, h) - 1e-3).any()
        for t in episode:
            agent.observe(t.x, t.a, low + 3 * t.r, t.y, t.h)
            naive.observe(*t)
        agent.end_episode()
    assert bound > 3, "no neighbour's target is the smaller one: nothing was put to the test"


@pytest.mark.parametrize("merge", [None, 0.2])
def test_in_pieces_by_both_drivers_and_across_saving(merge, tmp_path):
    def new():
        return plain(krl.KernelUCBVI)(bandwidth=0.1, bonus_scale=0.01, representatives=merge, lipschitz="log")

    whole, pieces = new(), new()
    history = whole.fit(make_env(), 20, seed=1)
    returns = [pieces.fit(make_env(), 5, seed=1, driver="python").returns]
    for n in (1, 9, 5):
        pieces.save(tmp_path / "a.krl")
        pieces = krl.load(tmp_path / "a.krl")
        returns.append(pieces.fit(make_env(), n).returns)
    assert np.array_equal(np.concatenate(returns), history.returns)
    check_equal(read(whole), read(pieces))
    assert whole.settings_used()["lipschitz"] == "log"


def test_where_it_is_refused():
    with pytest.raises(ValueError, match=r'lipschitz: "log" stands for constants that grow .* only fall'):
        krl.GreedyKernelUCBVI(bandwidth=0.1, lipschitz="log")
    with pytest.raises(ValueError, match=r"lipschitz: the bonus Full needs λ_r and λ_p themselves"):
        krl.KernelUCBVI(bandwidth=0.1, lipschitz="log", bonus="full", reward_range=(0, 1))
    with pytest.raises(ValueError, match="lipschitz must be a number"):
        krl.KernelUCBVI(bandwidth=0.1, lipschitz="lgo")
    agent = krl.KernelUCBVI(bandwidth=0.3, regularization=1.0, lipschitz="log", bonus="joint", reward_range=(0, 1))
    env = gym.make("kernelrl/Ramp-v0")
    with pytest.raises(ValueError, match='until_gap: with lipschitz="log" nothing is certified'):
        agent.fit(env, 5, until_gap=0.5)
    agent.fit(env, 5, seed=0)
    with pytest.raises(ValueError, match='certificate: with lipschitz="log" nothing is certified'):
        agent.certificate([0.5])


@pytest.mark.parametrize("merge", [None, 0.0613])
def test_a_new_constant_counts_no_sample_twice(merge):
    """The joint bonus depends on their number; an exact agent takes all of them in again for a new constant."""
    rng = np.random.default_rng(0)
    agent = krl.KernelUCBVI(
        **KERNEL | {"bonus": krl.bonuses.Joint(0.1)}, lipschitz="log", representatives=merge, reward_range=(0, 1)
    )
    agent.start(gym.spaces.Box(0.0, 1.0, (2,), np.float64), gym.spaces.Discrete(2), 3, 0)
    for _ in range(9):
        agent.begin_episode()
        for h in range(3):
            agent.observe(rng.random(2), 0, 0.5, rng.random(2), h)
        agent.end_episode()
    agent.begin_episode()
    assert agent.model.settings.bonus.progress.tolist() == [[27, 27, 27], [4, 4, 4]]
