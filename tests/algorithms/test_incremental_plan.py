"""The incremental plan of exact Kernel-UCBVI on enough data that changes go through strips and entries rest."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelrl as krl
from kernelrl.geometry.strips import SUM
from kernelrl.planning.entries import AWAKE
from pairs import Pair
from problems import Log, Transition

H, A = 3, 2


def transitions(rng, episodes, hidden):
    """Episodes on the unit square; rewards are found only near one corner, and only from episode `hidden` on."""
    for k in range(episodes):
        x, episode = np.array([0.5, 0.5]), []
        for h in range(H):
            a = int(rng.integers(A))
            y = np.clip(x + [[0.2, 0.0], [0.0, 0.2]][a] + 0.15 * rng.normal(size=2), 0.0, 1.0)
            r = float(k >= hidden and y.sum() > 1.3) * rng.random()
            episode.append(Transition(x, a, r, y, h, bool(rng.random() < 0.05)))
            x = y
            if episode[-1].terminated:
                break
        yield episode


def play(pair, rng, episodes, hidden, every):
    """Play, and compare with full plans now and then."""
    for k, episode in enumerate(transitions(rng, episodes, hidden)):
        pair.begin_episode()
        if k % every == every - 1:
            pair.agent.model.plan.drift[:] = (k % (2 * every)) / every  # every other time T is computed from scratch
            pair.check(np.vstack([rng.random((10, 2)), [t.y for t in episode]]))
        for t in episode:
            pair.observe(t)
    pair.begin_episode()
    pair.check(rng.random((30, 2)))


@settings(max_examples=4, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    lipschitz=st.sampled_from([None, 3.0]),
    stationary=st.booleans(),
    scale=st.sampled_from([0.05, 1.0]),
    hidden=st.sampled_from([0, 250]),
)
def test_every_plan_is_within_its_error_of_a_full_plan(seed, lipschitz, stationary, scale, hidden):
    log = Log(H, A, 2, [])
    pair = Pair(False, log, sigma=0.08, lipschitz=lipschitz, stationary=stationary, bonus_scale=scale)
    play(pair, np.random.default_rng(seed), 400, hidden, 80)


@pytest.mark.parametrize("lipschitz", [None, 3.0])
@pytest.mark.parametrize("hidden", [0, 500])
def test_strips_and_rest_are_used(lipschitz, hidden):
    log = Log(H, A, 2, [])
    pair = Pair(False, log, sigma=0.08, lipschitz=lipschitz, stationary=False, bonus_scale=0.05)
    play(pair, np.random.default_rng(1), 700, hidden, 175)
    plan = pair.agent.model.plan
    assert plan.strips[SUM].any()
    assert (plan.rest != AWAKE).any() == (lipschitz is None)


def test_fit_in_two_parts_with_saving_is_the_same(tmp_path):
    def agent():
        return krl.KernelUCBVI.preset("text", bandwidth=0.05, representatives=None, stationary=True, lipschitz=None)

    env = gym.make("kernelrl/TwinRooms-v0")
    whole, parts = agent(), agent()
    whole.fit(env, 60, seed=3, progress=False)
    parts.fit(env, 35, seed=3, progress=False)
    parts.save(tmp_path / "agent.krl")
    parts = krl.load(tmp_path / "agent.krl")
    parts.fit(env, 25, progress=False)
    assert whole.model.plan.strips[SUM].any()
    for name in ("V", "P", "T", "Q", "rest", "rises", "drift"):
        used = whole.model.plan.Y.used[0]
        one, other = (getattr(a.model.plan, name)[..., :used, :] if name not in ("rises", "drift")
                      else getattr(a.model.plan, name) for a in (whole, parts))  # fmt: skip
        np.testing.assert_array_equal(one, other, err_msg=name)
