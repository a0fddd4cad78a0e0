"""examples/tank.py works as it stands, outside the package."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import kernelrl as krl


def test_the_tank_is_an_environment(tank):
    check_env(tank.TankEnv(), skip_render_check=True)
    krl.testing.check_environment(TimeLimit(tank.TankEnv(), 30))
    krl.testing.check_environment(tank.TankEnv(noise=0), horizon=10)


def test_the_tank_does_what_it_says(tank):
    env = tank.TankEnv(inflow=0.2, outflow=0.1, noise=0)
    env.reset(seed=0)
    for x, action, y, reward, ended in (
        (0.49, 0, 0.49 - 0.07, 1 - 2 * (0.7 - 0.42), False),
        (0.49, 1, 0.52, 1 - 2 * (0.7 - 0.52), False),
        (0.49, 2, 0.62, 1 - 2 * (0.7 - 0.62), False),
        (1.0, 2, 1.0, -1.0, True),
        (0.0, 0, 0.0, 1 - 2 * 0.7, False),
    ):
        env.state = [x]
        state, r, terminated, truncated, _ = env.step(action)
        assert state[0] == pytest.approx(y) and r == pytest.approx(reward)
        assert terminated is ended and truncated is False


def test_an_agent_learns_to_keep_the_level(tank):
    env = TimeLimit(tank.TankEnv(), 30)
    agents = [krl.OptQL(bins=10, bonus_scale=0.01) for _ in range(2)]
    histories = [agents[0].fit(env, 1000, seed=0), agents[1].fit(env, 300, seed=0, driver="python")]
    assert np.array_equal(histories[0].returns[:300], histories[1].returns)
    chance = krl.RandomAgent().fit(env, 200, seed=0).returns.mean()
    assert histories[0].returns[-100:].mean() > chance + 3
    assert agents[0].evaluate(env, 50).mean > chance + 3
