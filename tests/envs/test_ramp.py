"""Ramp as Gymnasium and users meet it."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import kernelrl as krl
from kernelrl.envs import Ramp
from naive.ramp import RampValues
from plain import plain


def test_gymnasium_is_content():
    env = gym.make("kernelrl/Ramp-v0")
    assert type(env.unwrapped) is Ramp
    check_env(env.unwrapped, skip_render_check=True)
    krl.testing.check_environment(env)
    krl.testing.check_environment(Ramp(noise=0.3), horizon=5)


def test_moves_rewards_and_walls():
    env = Ramp(noise=0.0, move=0.3, slope=0.8, start=0.9)
    x, _ = env.reset(seed=0)
    assert x == [0.9] and x.dtype == np.float64
    y, r, terminated, truncated, _ = env.step(1)
    assert y == [1.0] and r == pytest.approx(0.72) and not terminated and not truncated
    y, r, *_ = env.step(np.int64(0))
    assert y == pytest.approx([0.7]) and r == pytest.approx(0.8)
    for _ in range(4):
        y, *_ = env.step(0)
    assert y == [0.0]


def test_noise():
    env = Ramp(noise=0.1)
    ends = []
    for seed in range(2000):
        env.reset(seed=seed)
        ends.append(env.step(1)[0][0])
    assert abs(np.mean(ends) - 0.7) < 0.01 and abs(np.std(ends) - 0.1) < 0.01
    env.reset(seed=5)
    assert env.step(1)[0][0] == ends[5]


def test_two_steps_and_both_drivers():
    returns = []
    for driver in ("python", "compiled"):
        agent = plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, lipschitz=(0.5, 1.0), representatives=None)
        history = agent.fit(gym.make("kernelrl/Ramp-v0"), 30, seed=2, driver=driver)
        assert (history.lengths == 2).all()
        returns.append(history.returns)
    assert np.array_equal(*returns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"move": -0.1}, "move must be a number from 0 to 1; got -0.1"),
        ({"noise": float("nan")}, "noise must be a number from 0 to 1"),
        ({"slope": 2}, "slope must be a number from 0 to 1; got 2"),
        ({"start": "middle"}, "start must be a number from 0 to 1; got 'middle'"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        Ramp(**options)


def test_bad_use():
    with pytest.raises(gym.error.ResetNeeded):
        Ramp().step(0)
    env = Ramp()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must be 0 \(left\) or 1 \(right\); got 2"):
        env.step(2)


def test_optimal_values():
    """The solver of the package and the test's own agree, also where the walls matter."""
    env = gym.make("kernelrl/Ramp-v0", noise=0.15)
    found, naive = krl.envs.solve(env), RampValues(2, noise=0.15)
    states = np.linspace(0.0, 1.0, 23)[:, None]
    for h in range(2):
        np.testing.assert_allclose(found.q_values(states, h), naive.q_values(states, h), atol=1e-3)
    assert krl.envs.solve(gym.make("kernelrl/Ramp-v0")).start_value == pytest.approx(0.6, abs=1e-3)
