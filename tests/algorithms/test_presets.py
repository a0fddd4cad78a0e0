"""The presets."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.agents import presets

both = pytest.mark.parametrize("greedy", [False, True])
NAMES = ("text", "analysed")


def agent_class(greedy):
    return krl.GreedyKernelUCBVI if greedy else krl.KernelUCBVI


@both
@pytest.mark.parametrize("name", NAMES)
def test_presets_can_be_made_and_changed(name, greedy):
    agent = agent_class(greedy).preset(name, bonus_scale=0.3)
    assert (agent.bandwidth, agent.regularization, agent.bonus_scale) == (0.025, 0.01, 0.3)
    history = agent.fit(gym.make("kernelrl/TwinRooms-v0"), 3, seed=0, progress=False)
    assert len(history) == 3


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
    assert krl.UCBVI.preset("text").minimum is False


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("agent", sorted(presets.PRESETS))
def test_presets_spell_out_every_argument(agent, name):
    """So no default reaches them."""
    assert set(presets.options(agent, name)) == set(getattr(krl, agent).hyper_parameters)


def test_unknown_preset():
    with pytest.raises(ValueError, match=r"preset: KernelUCBVI has text, analysed, not 'best'"):
        krl.KernelUCBVI.preset("best")


def test_the_constant_of_adaptive_q_learning():
    """200 by the Euclidean norm is 200·√5 by the maximum norm in the box scaled to [0, 1]², the largest ratio."""
    box = gym.make("kernelrl/TwinRooms-v0").observation_space
    x, y = np.random.default_rng(0).uniform(box.low, box.high, (2, 20_000, 2))
    x[0], y[0] = box.low, box.high
    euclidean = np.linalg.norm(x - y, axis=1)
    scaled = np.abs((x - y) / (box.high - box.low)).max(axis=1)
    assert_allclose(200.0 * (euclidean / scaled).max(), krl.AdaptiveQL.preset("analysed").lipschitz)
