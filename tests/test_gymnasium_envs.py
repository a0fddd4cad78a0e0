"""Gymnasium's own environments and wrappers, with nothing set by hand."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import wrappers

import kernelrl as krl
from small_envs import Line

LAKE = "FrozenLake-v1"
TAXI = max(name for name in gym.registry if name.startswith("Taxi-v"))
TABULAR = [krl.UCBVI, krl.GreedyUCBVI, krl.OptQL, krl.RandomAgent]
every_table = pytest.mark.parametrize("cls", TABULAR)


class Allowed(gym.Wrapper):
    """Raises if an action is taken that the mask forbids; None is no mask."""

    def reset(self, **given: Any) -> Any:
        x, info = self.env.reset(**given)
        self.mask = info.get("action_mask")
        return x, info

    def step(self, action: Any) -> Any:
        assert self.mask is None or self.mask[action] == 1, f"{action} is forbidden"
        *result, info = self.env.step(action)
        self.mask = info.get("action_mask")
        return *result, info


def make(name: str, **options: Any) -> gym.Env:
    return Allowed(gym.make(name, **options))


# --------------------------------------------------------------------------------------------------------------- tables


@every_table
@pytest.mark.parametrize("name", [LAKE, TAXI])
def test_tables_run_save_and_continue(cls, name, tmp_path):
    """The horizon is the registered time limit, rewards are those seen, and no forbidden action is taken."""
    whole = cls()
    returns = whole.fit(make(name), 30, seed=1, progress=False).returns
    parts = cls()
    parts.fit(make(name), 12, seed=1, progress=False)
    parts.save(tmp_path / "a.krl")
    loaded = krl.load(tmp_path / "a.krl")
    assert np.array_equal(loaded.fit(make(name), 18, progress=False).returns, returns[12:])
    states = np.arange(16)
    for h in (0, 7):
        assert np.array_equal(loaded.q_values(states, h), whole.q_values(states, h))
    used = whole.settings_used()
    assert used["horizon"] == gym.spec(name).max_episode_steps
    assert used["reward_range"] == ((0.0, 1.0) if name == LAKE else (-1.0, used["reward_range"][1]))
    assert np.isfinite(whole.evaluate(make(name), 3).mean)
    assert 0 <= whole.act(3, 0) < whole.spaces.actions


def test_the_lake_is_learnt():
    """0.74 is the best; at random it is 0.01."""
    agent = krl.UCBVI()
    agent.fit(gym.make(LAKE), 300, seed=0, progress=False)
    assert agent.evaluate(gym.make(LAKE), 200).mean > 0.4


def test_the_taxi_is_learnt():
    """Few steps per episode, so that it is quick; at random it is about -58."""
    env = make(TAXI, max_episode_steps=60)
    agent = krl.GreedyUCBVI()
    agent.fit(env, 1000, seed=0, progress=False)
    assert agent.evaluate(env, 100).mean > -30


def test_agents_of_boxes_say_who_takes_discrete_states():
    for cls in (krl.KernelUCBVI, krl.AdaptiveQL):
        with pytest.raises(TypeError, match=r"^observation_space must be .* krl.UCBVI, krl.GreedyUCBVI and krl.OptQL"):
            cls().fit(LAKE, 1, seed=0, progress=False)


# ------------------------------------------------------------------------------------------------------------- wrappers


def line(**options: Any) -> gym.Env:
    return wrappers.TimeLimit(Line(**options), 6)


def learnt(env: gym.Env, **options: Any) -> Any:
    agent = krl.OptQL(bins=4, **options)
    return agent, agent.fit(env, 5, seed=0, progress=False)


def test_the_shortest_time_limit_counts():
    agent, history = learnt(wrappers.TimeLimit(line(), 4))
    assert history.lengths.tolist() == [4] * 5 and agent.settings_used()["horizon"] == 4


def test_episodes_longer_than_the_horizon_end_there():
    _, history = learnt(line(), horizon=3)
    assert history.lengths.tolist() == [3] * 5
    _, history = learnt(line(), horizon=50)
    assert history.lengths.tolist() == [6] * 5


def test_rewards_and_observations_are_those_of_the_wrapper():
    _, plain = learnt(line())
    agent, tenfold = learnt(wrappers.TransformReward(line(), lambda r: 10 * r))
    assert np.allclose(tenfold.returns, 10 * plain.returns)
    assert agent.settings_used()["reward_range"][1] > 2
    scaled, history = learnt(wrappers.RescaleObservation(line(), np.float64(-3), np.float64(5)))
    assert (scaled.spaces.low, scaled.spaces.high) == (-3, 5) and np.array_equal(history.returns, plain.returns)
    counted = wrappers.RecordEpisodeStatistics(line())
    assert np.array_equal(learnt(counted)[1].returns, plain.returns) and len(counted.return_queue) == 5


def test_normalised_observations_have_no_bounds():
    env = wrappers.NormalizeObservation(line())
    with pytest.raises(ValueError, match=r"^observation_space: .*unbounded in dimension 0"):
        learnt(env)
    krl.KernelUCBVI().fit(env, 3, seed=0, progress=False)


def test_actions_are_those_of_the_wrapper():
    car = gym.make("MountainCarContinuous-v0", max_episode_steps=5)
    agent = krl.KernelUCBVI(action_bins=3)
    agent.fit(wrappers.RescaleAction(car, np.float32(0), np.float32(10)), 2, seed=0, progress=False)
    assert agent.action_net.tolist() == [[0.0], [5.0], [10.0]]
    discrete = wrappers.TransformAction(car, lambda a: np.array([a - 1.0], np.float32), gym.spaces.Discrete(3))
    krl.OptQL(bins=3).fit(discrete, 2, seed=0, progress=False)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: gym.make("Blackjack-v1", max_episode_steps=5), "^observation_space.*FlattenObservation"),
        (lambda: gym.vector.SyncVectorEnv([line, line]), "^env: agents learn from one environment at a time"),
        (lambda: wrappers.FrameStackObservation(gym.make(LAKE), 2), "^observation_space.*FlattenObservation"),
        (lambda: wrappers.AddRenderObservation(gym.make("CartPole-v1", render_mode="rgb_array")), "images|pygame"),
    ],
    ids=["tuple", "vector", "multi-discrete", "image"],
)
def test_environments_that_need_a_wrapper(env, message):
    try:
        made = env()
    except gym.error.DependencyNotInstalled:
        pytest.skip("pictures of CartPole need pygame")
    with pytest.raises((TypeError, ValueError), match=message):
        krl.KernelUCBVI().fit(made, 1, seed=0, progress=False)


def test_actions_of_a_loop_of_ones_own():
    agent = krl.KernelUCBVI(action_bins=3)
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Box(-1.0, 1.0, (1,)), 5, seed=0)
    agent.begin_episode()
    for action in ([np.nan], [np.inf], [1.5]):
        with pytest.raises(ValueError, match=r"^action must lie in the box"):
            agent.observe([0.5], action, 0.0, [0.5], 0)
    with pytest.raises(ValueError, match=r"^step must be one of 0 … 4, got 5"):
        agent.observe([0.5], [0.0], 0.0, [0.5], 5)
