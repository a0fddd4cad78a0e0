"""`fit(env, steps=…)`: the call ends with the episode in which that number of steps is reached."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl

ENV = "kernelrl/PuddleWorld-v0"  # episodes end in the goal


def agent(**changes):
    return krl.OptQL(bins=5, **changes)


@pytest.mark.parametrize("driver", ["compiled", "python"])
@pytest.mark.parametrize("steps", [1, 57, 1000])
def test_it_ends_with_the_episode_that_reaches_the_number(driver, steps):
    env = gym.make(ENV, max_episode_steps=30)
    history = agent().fit(env, steps=steps, seed=0, driver=driver, progress=False)
    assert history.lengths.sum() >= steps > history.lengths[:-1].sum()
    same = agent().fit(env, len(history), seed=0, driver=driver, progress=False)
    assert np.array_equal(same.returns, history.returns)


def test_it_goes_on():
    env, one = gym.make(ENV, max_episode_steps=30), agent()
    first = one.fit(env, steps=100, seed=0, progress=False)
    second = one.fit(env, steps=100, progress=False)
    assert second.first_episode == len(first) and second.lengths.sum() >= 100
    assert not len(one.fit(env, steps=0, progress=False))


def test_bad_input():
    for arguments, message in (
        ({}, "neither was given"),
        ({"episodes": 3, "steps": 3}, "both were given"),
        ({"steps": -1}, "steps"),
        ({"steps": 1.5}, "steps"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            agent().fit(ENV, **arguments)
