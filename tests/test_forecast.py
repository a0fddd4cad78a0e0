"""Forecasts: an environment made of transitions, and what they say of an agent that goes on."""

from __future__ import annotations

import signal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from numpy.testing import assert_allclose

import kernelrl as krl
from kernelrl.envs.resampled import Resampled, regions_of, walls_of
from kernelrl.stores.log import first_rows

ENV = "kernelrl/SquareWorld-v0"


@pytest.fixture(scope="module")
def trained():
    agent = krl.KernelUCBVI()
    history = agent.fit(ENV, 40, seed=1, driver="python", progress=False, transitions=True)  # no code for this alone
    return agent, history.transitions


def on_a_line(moves, rewards, ends=None):
    """An environment of one episode that goes along a line by these moves, one for each Discrete action."""
    places = np.concatenate([[0.0], np.cumsum(moves)])
    states, following = places[:-1, None], places[1:, None]
    ends = np.zeros(len(moves), bool) if ends is None else np.array(ends)
    return Resampled(
        gym.spaces.Box(-10.0, 10.0, (1,), np.float64), gym.spaces.Discrete(1), np.zeros(len(moves), np.int64), states,
        np.array(rewards, float), following, ends, states[:1], 20, 0,
    )  # fmt: skip


def test_what_happened_happens_again():
    env = on_a_line([1.0, 1.0, 1.0], [5.0, 5.0, 5.0])
    state, _ = env.reset(seed=0)
    assert state == [0.0]
    for expected in (1.0, 2.0, 3.0, 3.0):  # no transition was beyond 3
        state, reward, ended, cut, _ = env.step(0)
        assert state == [expected] and reward == 5.0 and not (ended or cut)


def test_ends_and_limits():
    env = on_a_line([1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [True, True, True])
    env.reset(seed=0)
    assert env.step(0)[2:4] == (True, False)
    env = on_a_line([0.0], [1.0])
    env.reset(seed=0)
    assert [env.step(0)[3] for _ in range(20)] == [False] * 19 + [True]


def test_episodes_are_told_apart():
    x = np.array([[0.0], [1.0], [2.0], [0.0], [0.0], [0.0]])
    y = np.array([[1.0], [2.0], [0.0], [0.0], [0.0], [1.0]])
    ends = np.array([False, False, True, False, False, False])
    steps = np.array([0, 1, 2, 0, 1, 0])
    assert first_rows(x, y, ends, steps).tolist() == [0, 3, 5]
    assert first_rows(x, y, ends, np.full(6, 9)).tolist() == [0, 3]  # without steps an end is all that is seen
    by_turns = np.array([0, 3, 1, 4, 2, 5])  # as several episodes at once are told
    assert first_rows(x[by_turns], y[by_turns], ends[by_turns], steps[by_turns]).tolist() == [0, 1, 5]
    assert first_rows(x[:0], y[:0], ends[:0], steps[:0]).tolist() == []


def test_regions_and_walls():
    x = np.array([[0.0, 0.0], [0.5, 0.0], [2.0, 0.0], [2.5, 1.0]])
    y = np.array([[0.6, 0.0], [0.9, 0.5], [2.6, 0.2], [2.0, 1.0]])
    boxes, region = regions_of(x, y, x[[2]])
    assert region.tolist() == [0, 0, 1, 2, 1]  # the last is alone in its second coordinate
    assert_allclose(boxes[0], [[0.0, 0.0], [0.9, 0.5]])
    hits = np.array([[1.0, 0.1], [1.0, 0.2], [1.0, 0.3], [1.0, 0.4], [1.0, 0.5], [0.3, 0.6]])
    assert walls_of(hits).tolist() == [[True, False]] * 5 + [[False, False]]


def test_it_is_an_environment(trained):
    agent, _ = trained
    rows = agent.kept_transitions()
    first = first_rows(rows.states, rows.next_states, rows.terminated, rows.steps)
    assert len(first) == 40
    space = gym.make(ENV).observation_space
    box = gym.spaces.Box(space.low.astype(float), space.high.astype(float), dtype=np.float64)
    env = Resampled(
        box, gym.spaces.Discrete(agent.spaces.actions), rows.actions, rows.states, rows.rewards, rows.next_states,
        rows.terminated, rows.states[first], agent.spaces.horizon, 0,
    )  # fmt: skip
    check_env(env, skip_render_check=True)


def test_a_forecast(trained):
    agent, transitions = trained
    before = agent.act([0.3, 0.3], 0), agent.episodes, agent.values([[0.2, 0.2]], 0).copy()
    said = agent.forecast([10, 5], resamples=3, evaluations=5, seed=4, progress=False)
    assert said.episodes.tolist() == [0, 5, 10] and said.values.shape == (3, 3) and said.played == 40
    assert_allclose(said.gain, said.mean - said.mean[0])
    assert (said.interval[0] <= said.mean).all() and (said.mean <= said.interval[1]).all()
    low, high = agent.rewards.limits
    assert (said.values >= agent.spaces.horizon * low).all() and (said.values <= agent.spaces.horizon * high).all()
    assert "+10" in str(said) and "not in it" in str(said) and said.as_dict()["more episodes"] == [0, 5, 10]
    after = agent.act([0.3, 0.3], 0), agent.episodes, agent.values([[0.2, 0.2]], 0)
    assert before[:2] == after[:2] and np.array_equal(before[2], after[2])
    again = agent.forecast([5, 10], transitions=transitions, resamples=3, evaluations=5, seed=4, progress=False)
    assert np.array_equal(again.values, said.values)  # the agent keeps the same transitions


def test_continuous_actions():
    agent = krl.KernelUCBVI(action_bins=3)
    agent.fit("kernelrl/Oil-v0", 30, seed=1, progress=False)
    said = agent.forecast(3, resamples=2, evaluations=3, progress=False)
    assert np.isfinite(said.values).all()


def test_bad_input(trained):
    agent, transitions = trained
    for wrong in ([], [0], [-1], [1.5], ["a"], None, "10"):
        with pytest.raises((TypeError, ValueError), match="episodes"):
            agent.forecast(wrong, progress=False)
    assert agent.forecast(np.int64(2), resamples=1, evaluations=2, progress=False).episodes.tolist() == [0, 2]
    with pytest.raises(ValueError, match="needs 5 episodes"):
        agent.forecast([5], transitions=transitions.head(30), progress=False)
    with pytest.raises(RuntimeError, match="start"):
        krl.KernelUCBVI().forecast([5])
    other = krl.OptQL(bins=4)
    kept = other.fit(ENV, 10, seed=1, driver="python", progress=False, transitions=True).transitions
    with pytest.raises(ValueError, match=r"transitions=history\.transitions"):
        other.forecast([5])
    assert other.forecast([2], transitions=kept, resamples=1, evaluations=2, progress=False).values.shape == (1, 2)
    table = krl.UCBVI()
    table.start(gym.spaces.Discrete(3), gym.spaces.Discrete(2), 4, 0)
    with pytest.raises(TypeError, match="Box"):
        table.forecast([5])


def test_a_table_of_transitions_that_cannot_be_is_named(trained):
    agent, transitions = trained
    with pytest.raises(TypeError, match=r"^transitions must be a polars or pandas frame, .*; got int"):
        agent.forecast([5], transitions=3)
    with pytest.raises(ValueError, match=r'^transitions: the column "reward" is missing'):
        agent.forecast([5], transitions=transitions.drop("reward"))
    with pytest.raises(ValueError, match=r"^progress must be True, False or None, got 'x'"):
        agent.forecast([5], progress="x")


def test_in_the_middle_of_episodes():
    """What was told counts, the agent does not change, and its open episodes go on."""
    agent, x = krl.KernelUCBVI(), [0.5, 0.5]
    agent.fit(ENV, 30, seed=1, driver="python", progress=False)
    options = {"resamples": 1, "evaluations": 2, "progress": False}
    agent.begin_episode()
    agent.observe(x, agent.choose(x, 0), 0.0, x, 0)
    assert agent.forecast([2], **options).played == 31
    assert agent.episode.step == 1
    agent.abandon_episode()
    handles = [agent.open_episode() for _ in range(2)]
    for handle in handles:
        handle.choose(x)
    handles[0].observe(0.0, x)
    said = agent.forecast([2], **options)
    assert said.played == 31 and np.isfinite(said.values).all()
    assert [handle.episode.step for handle in handles] == [1, 0] and len(agent.open_episodes) == 2
    for handle in handles:
        handle.abandon()
    assert agent.forecast([2], **options).played == 30


def test_ctrl_c_ends_a_forecast(trained, monkeypatch):
    """`fit` would end early and return, and the value of fewer episodes would stand in the forecast."""
    plain = Resampled.reset

    def reset(self, **arguments):
        if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:  # within `fit`
            signal.raise_signal(signal.SIGINT)
            monkeypatch.undo()
        return plain(self, **arguments)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(Resampled, "reset", reset)
        with pytest.raises(KeyboardInterrupt):
            trained[0].forecast([5], resamples=1, evaluations=2, progress=False)
    finally:
        signal.signal(signal.SIGINT, before)
