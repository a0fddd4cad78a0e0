"""The small environments of `terminating`: what they do, and that their twins do the same."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from terminating import REWARDS, Corridor, CorridorCells, Stop, optimal_values

KINDS = {"corridor": Corridor, "cells": CorridorCells, "stop": Stop}


@pytest.mark.parametrize("twin", [False, True], ids=["ends", "twin"])
@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_gymnasium_is_content(make, twin):
    check_env(make(twin=twin), skip_render_check=True)
    krl.testing.check_environment(make(twin=twin), horizon=12)


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
def test_the_twin_does_the_same_and_then_nothing(make):
    ended = 0
    for seed in range(30):
        actions = np.random.default_rng(seed).random(20) < 0.8
        env, twin = make(), make(twin=True)
        assert env.reset(seed=seed) == twin.reset(seed=seed)
        over = False
        for action in actions.astype(int):
            x = twin.state.copy()
            y, reward, terminated, truncated, _ = twin.step(action)
            assert not terminated and not truncated
            if over:
                assert reward == 0.0 and twin.state == x
            else:
                live = env.step(action)
                assert (y, reward) == live[:2]
                over = live[2]
        ended += over
    assert ended > 5


@pytest.mark.parametrize("bounds", REWARDS, ids=map(str, REWARDS))
def test_rewards_lie_in_their_range(bounds):
    for make, kind in ((Corridor, "corridor"), (CorridorCells, "corridor"), (Stop, "stop")):
        env = make(**REWARDS[bounds][kind])
        rewards = []
        for seed in range(20):
            env.reset(seed=seed)
            over, steps = False, 0
            while not over and steps < 30:
                _, reward, over, _, _ = env.step((steps + seed) % 3 % 2 if make is Stop else 1)
                rewards.append(reward)
                steps += 1
        assert bounds[0] <= min(rewards) and max(rewards) <= bounds[1]


@pytest.mark.parametrize("twin", [False, True], ids=["ends", "twin"])
@pytest.mark.parametrize("make", [CorridorCells, Stop])
def test_model_is_the_environment(make, twin):
    """How often each next state is reached, with which reward, and what ends."""
    env = make(twin=twin)
    P, r, terminal = env.model()
    r = r if r.ndim == 3 else np.repeat(r[:, :, None], len(r), axis=2)
    env.reset(seed=1)
    n = 2000
    for x in range(len(r)):
        if terminal[x]:
            continue
        for a in range(2):
            seen = np.zeros(len(r))
            for _ in range(n):
                env.state = np.array([float(x)])
                y, reward, ended, _, _ = env.step(a)
                assert reward == r[x, a, y] and ended == terminal[y]
                seen[y] += 1
            np.testing.assert_allclose(seen / n, P[a, x], atol=0.05)
            assert (seen[P[a, x] == 0] == 0).all()


@pytest.mark.parametrize("twin", [False, True], ids=["ends", "twin"])
def test_playing_it_collects_the_optimal_value(twin):
    env, H = CorridorCells(twin=twin, slip=0.2, arrival=0.0), 12
    best = optimal_values(env, H)
    returns = []
    for seed in range(2000):
        x, _ = env.reset(seed=seed)
        total = 0.0
        for h in range(H):
            x, reward, over, _, _ = env.step(best.actions([x], h)[0])
            total += reward
            if over:
                break
        returns.append(total)
    assert abs(np.mean(returns) - best.values([0], 0)[0]) < 4 * np.std(returns) / np.sqrt(len(returns))


@pytest.mark.parametrize("make", [Corridor, CorridorCells, Stop])
def test_both_drivers(make):
    """The Python driver plays the Gymnasium class, the compiled one the dynamics."""
    histories = []
    for driver in ("python", "compiled"):
        agent = (krl.RandomAgent if make is Corridor else krl.OptQL)(reward_range=(-1, 0))
        histories.append(agent.fit(TimeLimit(make(), 15), 40, seed=3, driver=driver))
    np.testing.assert_array_equal(histories[0].returns, histories[1].returns)
    np.testing.assert_array_equal(histories[0].lengths, histories[1].lengths)
    assert histories[0].lengths.min() < 15
