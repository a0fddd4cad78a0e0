"""What an agent says about its settings: what it chose, and warnings that name the remedy."""

from __future__ import annotations

import warnings

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.agents.advice import Advice, warn_of_loss
from small_envs import Line


def test_what_was_chosen_is_said_once(capsys):
    """Below the bar of the first fit, what was left to the agent; later fits, and fits without a bar, say nothing."""
    env, agent = gym.make("kernelrl/TwinRooms-v0"), krl.KernelUCBVI(reward_range=(0, 1))
    agent.fit(env, 10, progress=True)
    said = capsys.readouterr().err
    assert said.count("KernelUCBVI chose bandwidth = local(start=0.7, ") == 1 and "metric = lp(p=2, scale=[" in said
    assert "reward_range" not in said
    agent.fit(env, 1, progress=True)
    krl.KernelUCBVI().fit(env, 10, progress=False)
    krl.RandomAgent(reward_range=(0, 1)).fit(env, 10, progress=True)
    assert " chose " not in capsys.readouterr().err


def test_a_loss_is_said():
    past = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_loss(past, "a", 100, (5.0, 6.0))
        warn_of_loss(past, "b", 300, (1.0, 2.0))  # another environment
        warn_of_loss(past, "a", 199, (1.0, 2.0))  # less than twice as many episodes
        warn_of_loss(past, "a", 200, (4.0, 5.0))  # the intervals touch
    with pytest.warns(UserWarning, match=r"after 200 episodes .* 4 to 4\.9, less than after 100, .* 5 to 6; save the"):
        warn_of_loss(past, "a", 200, (4.0, 4.9))


def test_evaluations_are_compared():
    """An agent whose policy got worse is found out by its second evaluation."""
    agent, env = krl.RandomAgent(horizon=6), Line()
    agent.fit(env, 4, progress=False)
    good = agent.evaluate(env, 20)
    assert [(one.env, one.episodes, one.interval) for one in agent.evaluated] == [("Line", 4, good.t_interval)]
    agent.evaluated[0] = agent.evaluated[0]._replace(interval=(1e9, 1e9))
    agent.fit(env, 4, progress=False)
    with pytest.warns(UserWarning, match="after 8 episodes the policy to deploy collects"):
        agent.evaluate(env, 20)


@pytest.mark.parametrize(
    ("automatic", "remedy"), [(False, "make it about half of one"), (True, "a larger max_representatives makes it")]
)
def test_standing_still(automatic, remedy):
    advice = Advice()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice.of_standing_still(999, 999, 0.5, automatic)
        advice.of_standing_still(1000, 700, 0.5, automatic)
    with pytest.warns(UserWarning, match=f"701 of 1000 steps .* representatives=0.5 .*{remedy}"):
        advice.of_standing_still(1000, 701, 0.5, automatic)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advice.of_standing_still(1000, 701, 0.5, automatic)  # once is enough


def test_settings_that_learn_nothing_are_named():
    """A merge distance below, a bandwidth far below, and a merge distance above what happens in this environment."""
    for settings, said in (
        ({"bandwidth": 1e-6}, "hardly any state is within"),
        ({"bandwidth": 1e-3, "representatives": 0.05}, "nothing is learnt from one state about another"),
        ({"bandwidth": 50.0, "representatives": 0.05}, "all states that were visited look the same"),
        ({"bandwidth": 0.1, "representatives": 1.0}, "sees little motion"),
    ):
        agent = krl.GreedyKernelUCBVI(**settings, reward_range=(0, 1))
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            agent.fit("kernelrl/TwinRooms-v0", 120, progress=False)
        assert any(said in str(one.message) for one in given), settings


def test_axes_of_different_widths_are_named():
    env = gym.make("kernelrl/TwinRooms-v0")
    env = gym.wrappers.RescaleObservation(env, np.float64([0.0, 0.0]), np.float64([100.0, 1.0]))
    with pytest.warns(UserWarning, match="differ more than tenfold in width"):
        krl.GreedyKernelUCBVI(bandwidth=0.1, reward_range=(0, 1)).fit(env, 1, progress=False)
