"""The presets, and the authors' departures from the text against plain NumPy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from naive import metrics
from naive.as_run import NaiveAsRun
from naive.kernels import gaussian
from pairs import BOX, READ_OUTS, some_states
from problems import random_log

both = pytest.mark.parametrize("greedy", [False, True])
NAMES = ("text", "as-run", "analysed")


def agent_class(greedy):
    return krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI


@both
@pytest.mark.parametrize("limit", [6, 40])
@pytest.mark.parametrize("stationary", [True, False])
def test_as_run_against_naive(stationary, limit, greedy):
    rng = np.random.default_rng(limit)
    log = random_log(rng, H=3, A=3, d=2, transitions=600, sites=4, noise=0.08)
    agent = agent_class(greedy).preset(
        "as-run",
        representatives=0.07,
        bandwidth=0.06,
        bonus_scale=0.5,
        max_representatives=limit,
        stationary=stationary,
    )
    box = gym.spaces.Box(BOX[0][:2], BOX[1][:2], dtype=np.float64)
    agent.start(box, gym.spaces.Discrete(log.A), log.H, 0)
    rho = metrics.lp(2, (BOX[1] - BOX[0])[:2])
    naive = NaiveAsRun(log.H, log.A, 0.06, 0.01, gaussian, rho, 0.07, limit, 0.5, stationary, greedy)
    states, warned = some_states(log, rng), []
    for k, episode in enumerate(log.episodes):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda text, *rest, **more: warned.append(text))
            agent.begin_episode()
        naive.begin_episode()
        if k in (1, len(log.episodes) // 2, len(log.episodes) - 1):
            for h in range(log.H):
                for name in READ_OUTS:
                    actual, expected = getattr(agent, name)(states, step=h), getattr(naive, name)(states, h)
                    assert_allclose(actual, expected, rtol=1e-9, atol=1e-9, err_msg=f"{name} at step {h}")
        for t in episode:
            agent.observe(t.x, t.a, t.r, t.y, t.h, terminated=t.terminated)
            naive.observe(*t)
        agent.end_episode()
    assert agent.number_of_representatives == len(naive.states)
    assert all((naive.values(states, h) < log.H - 1e-3).any() for h in range(1, log.H))
    if limit == 6:
        assert len(naive.states) == 6 and len(warned) == 1 and "max_representatives" in warned[0]
    else:
        assert 6 < len(naive.states) < 40 and not warned


@both
@pytest.mark.parametrize("name", NAMES)
def test_presets_can_be_made_and_changed(name, greedy):
    agent = agent_class(greedy).preset(name, bonus_scale=0.3)
    assert (agent.bandwidth, agent.regularization, agent.bonus_scale) == (0.025, 0.01, 0.3)
    history = agent.fit(gym.make("kernelrl/TwinRooms-v0"), 3, seed=0, progress=False)
    assert len(history) == 3


@both
def test_each_departure_changes_what_is_learnt(greedy):
    """Each difference between the text's preset and the authors' is there, and matters."""
    text = krl.presets.options(agent_class(greedy).__name__, "text")
    run = krl.presets.options(agent_class(greedy).__name__, "as-run")
    assert set(krl.presets.DEPARTURES) == {name for name in run if run[name] != text.get(name)}
    env = gym.make("kernelrl/TwinRooms-v0", noise=0.05)

    def returns(**changes):
        agent = agent_class(greedy).preset("text", representatives=0.2, bandwidth=0.1, **changes)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("warnings.warn", lambda *all, **more: None)
            agent.fit(env, 60, seed=1, progress=False)
        return agent.q_values([[0.15, 0.12], [0.47, 0.31], [1.9, 0.9]], step=3)

    usual = returns()
    for name in krl.presets.DEPARTURES:
        value = {"max_representatives": 10}.get(name, run[name])
        assert not np.array_equal(returns(**{name: value}), usual), name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("agent", ["UCBVI", "GreedyUCBVI", "OptQL", "AdaptiveQL"])
def test_presets_of_the_baselines(agent, name):
    made = getattr(krl, agent).preset(name, bonus_scale=0.3)
    assert made.bonus_scale == 0.3
    assert len(made.fit(gym.make("kernelrl/TwinRooms-v0"), 3, seed=0, progress=False)) == 3


def test_ucbvi_as_azar_et_al_have_it():
    """They count pairs whatever the step, and no Q rises (algorithm 2); Greedy-UCBVI is analysed per step."""
    made = krl.UCBVI.preset("analysed")
    assert (made.stationary, made.minimum, made.bonus) == (True, True, "hoeffding")
    assert krl.GreedyUCBVI.preset("analysed").stationary is False
    assert not any(krl.UCBVI.preset(name).minimum for name in ("text", "as-run"))


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"preset: KernelUCBVI has text, as-run, analysed, not 'best'"):
        krl.KernelUCBVI.preset("best")


def test_the_constant_of_adaptive_q_learning():
    """200 by the Euclidean norm is 200·√5 by the maximum norm in the box scaled to [0, 1]², the largest ratio."""
    box = gym.make("kernelrl/TwinRooms-v0").observation_space
    x, y = np.random.default_rng(0).uniform(box.low, box.high, (2, 20_000, 2))
    x[0], y[0] = box.low, box.high
    euclidean = np.linalg.norm(x - y, axis=1)
    scaled = np.abs((x - y) / (box.high - box.low)).max(axis=1)
    assert_allclose(200.0 * (euclidean / scaled).max(), krl.AdaptiveQL.preset("analysed").lipschitz)
