"""Ctrl-C during `fit`: the first ends it after the running episode with nothing lost, the second at once."""

from __future__ import annotations

import os
import signal
import threading

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from plain import plain

STEPS = 20


class CtrlC(gym.Wrapper):
    """Presses Ctrl-C during the steps of these numbers, counted from 0."""

    def __init__(self, *when):
        super().__init__(make_env())
        self.when, self.steps = when, 0

    def step(self, action):
        if self.steps in self.when:
            signal.raise_signal(signal.SIGINT)
        self.steps += 1
        return self.env.step(action)


def make_env():
    return gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)


def make():
    return plain(krl.GreedyKernelUCBVI)(bandwidth=0.1, bonus_scale=0.02, lipschitz=2.0, representatives=None)


@pytest.fixture(autouse=True)
def the_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    yield
    after = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, before)
    assert after is before


def check_continues(agent, history, more=6):
    """The agent goes on as if nothing had happened."""
    rest = agent.fit(make_env(), more)
    assert not rest.interrupted and rest.first_episode == len(history)
    whole = make().fit(make_env(), len(history) + more, seed=5)
    assert np.array_equal(np.concatenate([history.returns, rest.returns]), whole.returns)
    assert whole.returns.max() > 0


@pytest.mark.parametrize("when", [0, 3 * STEPS + 7, 4 * STEPS - 1])
def test_the_running_episode_is_finished(when, capsys):
    agent, env = make(), CtrlC(when)
    history = agent.fit(env, 10, seed=5)
    played = when // STEPS + 1
    assert history.interrupted is True
    assert len(history) == agent.episodes == played
    assert history.lengths.tolist() == [STEPS] * played and env.steps == played * STEPS
    assert "Stopping when this episode ends" in capsys.readouterr().err
    check_continues(agent, history)


def test_in_the_last_episode_nothing_is_cut_off():
    history = make().fit(CtrlC(9 * STEPS + 3), 10, seed=5)
    assert len(history) == 10 and history.interrupted is False


def test_a_second_one_stops_at_once():
    agent, env = make(), CtrlC(2 * STEPS + 3, 2 * STEPS + 5)
    with pytest.raises(KeyboardInterrupt):
        agent.fit(env, 10, seed=5)
    assert env.steps == 2 * STEPS + 5
    assert agent.episodes == 2
    assert len(agent.fit(make_env(), 3)) == 3  # still usable


def test_the_next_call_begins_with_a_clean_slate():
    agent = make()
    assert agent.fit(CtrlC(3), 5, seed=5).interrupted
    history = agent.fit(CtrlC(3), 5)
    assert history.interrupted and len(history) == 1


def test_compiled_driver(capsys):
    """Python regains control between blocks of episodes, every tenth of a second or so."""
    make().fit(make_env(), 2, seed=5, driver="compiled")  # so that nothing is left to compile
    agent = make()
    timer = threading.Timer(0.25, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        history = agent.fit(make_env(), 1_000_000, seed=5, driver="compiled")
    finally:
        timer.cancel()
        timer.join()
    assert history.interrupted is True
    assert 0 < len(history) == agent.episodes < 1_000_000
    assert history.seconds < 5
    assert "Stopping when this episode ends" in capsys.readouterr().err
    check_continues(agent, history)


def test_with_a_progress_bar(capsys):
    history = make().fit(CtrlC(25), 10, seed=5, progress=True)
    assert len(history) == 2 and history.interrupted
    assert "2/10" in capsys.readouterr().err


def test_a_handler_of_the_users_is_put_back():
    pressed = []
    before = signal.signal(signal.SIGINT, lambda number, frame: pressed.append(number))
    mine = signal.getsignal(signal.SIGINT)
    try:
        assert make().fit(CtrlC(3), 5, seed=5).interrupted
        assert signal.getsignal(signal.SIGINT) is mine and pressed == []
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_error_in_the_environment_puts_the_handler_back():
    class Broken(gym.Wrapper):
        def step(self, action):
            raise ZeroDivisionError("broken")

    with pytest.raises(ZeroDivisionError, match="broken"):
        make().fit(Broken(make_env()), 5, seed=5)


def test_in_another_thread_signals_are_left_alone():
    """Python takes signals in the main thread only, so there `fit` must not try."""
    found = []
    thread = threading.Thread(target=lambda: found.append(make().fit(make_env(), 4, seed=5)))
    thread.start()
    thread.join()
    assert len(found) == 1 and len(found[0]) == 4 and not found[0].interrupted
