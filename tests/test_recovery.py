"""Environments that fail at any point: the agent is as before that episode, and goes on as if nothing had happened."""

from __future__ import annotations

import gc
import math
import weakref

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.agents import fitting, recovery
from test_interface import AGENTS, CLASSES, EPISODES, SEED, H, check_equal, make, make_env, read, whole

FAIL_AT = 11  # the episode in which something goes wrong, from 0


class Failing(gym.Wrapper):
    """Does something wrong in episode FAIL_AT, at a step (-1: in reset), the first time only."""

    def __init__(self, env, wrong, step):
        super().__init__(env)
        self.wrong, self.fail_step = wrong, step
        self.episode, self.step_number, self.armed = -1, 0, True

    def reset(self, **options):
        self.episode, self.step_number = self.episode + 1, 0
        given = self.env.reset(**options)
        return self.spoilt(given) if self.due(-1) else given

    def step(self, action):
        given = self.env.step(action)
        due = self.due(self.step_number)
        self.step_number += 1
        return self.spoilt(given) if due else given

    def due(self, step):
        return self.armed and self.episode == FAIL_AT and step == self.fail_step

    def spoilt(self, given):
        self.armed = False
        return self.wrong(given)


class BrokenError(Exception):
    """Of the environment's own making."""


def raising(given):
    raise BrokenError("a cable came loose")


def interrupted(given):
    raise KeyboardInterrupt


def replacing(place, value):
    return lambda given: (*given[:place], value, *given[place + 1 :])


# What is wrong, whether it can be wrong in reset, and the error.
WRONG = {
    "exception": (raising, True, BrokenError, "a cable came loose"),
    "Ctrl-C": (interrupted, True, KeyboardInterrupt, None),
    "nan state": (replacing(0, np.array([math.nan, 0.5])), True, ValueError, "state must be finite"),
    "state outside": (replacing(0, np.array([0.5, 7.0])), True, ValueError, "state must lie in the box"),
    "wrong shape": (replacing(0, np.zeros(3)), True, ValueError, r"state must have shape \(2,\), got shape \(3,\)"),
    "no state": (replacing(0, None), True, ValueError, "state must"),
    "four values": (lambda given: given[:-1], True, TypeError, r"env: (step|reset) must return"),
    "nothing": (lambda given: None, True, TypeError, r"env: (step|reset) must return .*got None"),
    "nan reward": (replacing(1, math.nan), False, ValueError, "reward must be a finite number, got nan"),
    "reward None": (replacing(1, None), False, TypeError, "reward must be a number, got None"),
    "reward text": (replacing(1, "one"), False, TypeError, "reward must be a number, got 'one'"),
    "two rewards": (replacing(1, np.zeros(2)), False, TypeError, "reward must be a number"),
}


def check_recovery(variant, wrong, step, error, message):
    env, agent = Failing(make_env(), wrong, step), make(variant)
    with pytest.raises(error, match=message) as caught:
        agent.fit(env, EPISODES, seed=SEED, driver="python")
    history, found = whole(variant)
    assert agent.episodes == len(caught.value.history) == FAIL_AT
    assert np.array_equal(caught.value.history.returns, history.returns[:FAIL_AT])
    assert np.array_equal(caught.value.history.optimistic_values, history.optimistic_values[:FAIL_AT])
    rest = agent.fit(env, EPISODES - FAIL_AT, driver="python")
    assert np.array_equal(rest.returns, history.returns[FAIL_AT:])
    check_equal(found, read(agent))


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("agent", CLASSES)
def test_every_agent_and_every_fault(agent, what):
    wrong, in_reset, error, message = WRONG[what]
    variant = next(name for name, (cls, options) in AGENTS.items() if (cls, options) == CLASSES[agent])
    check_recovery(variant, wrong, 7, error, message)
    if in_reset:
        check_recovery(variant, wrong, -1, error, message)


@pytest.mark.parametrize("step", [0, H - 1])
@pytest.mark.parametrize("variant", AGENTS)
def test_every_variant_at_any_step(variant, step, monkeypatch):
    # Copies are made now and then; here after every episode, or never after the first.
    monkeypatch.setattr(recovery, "SHARE", -math.inf if step else math.inf)
    check_recovery(variant, raising, step, BrokenError, "cable")


def test_short_calls_share_a_copy(monkeypatch):
    """A loop of one's own around `fit` does not copy the agent at each call."""
    copies = []
    take = recovery.Recovery._copy
    monkeypatch.setattr(recovery, "SHARE", 1e9)
    monkeypatch.setattr(recovery.Recovery, "_copy", lambda self, agent: (copies.append(1), take(self, agent)))
    variant = "GreedyKernelUCBVI merged"
    env, agent = Failing(make_env(), raising, 3), make(variant)
    _, found = whole(variant)
    for _ in range(FAIL_AT):
        agent.fit(env, 1, seed=SEED, driver="python")
    with pytest.raises(BrokenError):
        agent.fit(env, 1, driver="python")
    assert len(copies) == 1 and agent.episodes == FAIL_AT
    agent.fit(env, EPISODES - FAIL_AT, driver="python")
    check_equal(found, read(agent))


def test_driving_by_hand_between_two_calls():
    """What a copy does not know of is not lost."""
    env, agent = make_env(), make("OptQL")
    agent.fit(env, 2, seed=0, driver="python")
    agent.begin_episode()
    agent.observe([0.1, 0.1], 0, 0.5, [0.2, 0.1], 0)
    agent.end_episode()
    counts = agent.counts([[0.1, 0.1]], step=0)
    broken = Failing(env, raising, 0)
    broken.episode = FAIL_AT - 1
    with pytest.raises(BrokenError):
        agent.fit(broken, 1, driver="python")
    assert np.array_equal(agent.counts([[0.1, 0.1]], step=0), counts) and agent.episodes == 3


# -------------------------------------------------------------------------------------------------- the compiled driver


@pytest.mark.parametrize("what", ["noise", "radius", "start_x"])
@pytest.mark.parametrize("agent", CLASSES)
def test_compiled_environments(agent, what, monkeypatch):
    """Dynamics that give a state, a reward or a start that is no number."""
    monkeypatch.setattr(fitting, "is_shipped", lambda env: False)
    cls, options = CLASSES[agent]
    variant = next(name for name, given in AGENTS.items() if given == (cls, options))
    history, found = whole(variant)
    learner, env = cls(**options), make_env()
    learner.fit(env, FAIL_AT, seed=SEED)
    good = env.unwrapped.dynamics
    env.unwrapped.dynamics = good._replace(**{what: -1e-320 if what == "radius" else math.nan})  # 1/radius: infinite
    message = {"noise": "next state at step 0 must", "radius": "reward at step 0 must", "start_x": "start state must"}
    with pytest.raises(ValueError, match=f"the environment's {message[what]}") as caught:
        learner.fit(env, 5)
    assert learner.episodes == FAIL_AT and len(caught.value.history) == 0
    env.unwrapped.dynamics = good
    rest = learner.fit(env, EPISODES - FAIL_AT)
    assert np.array_equal(rest.returns, history.returns[FAIL_AT:])
    check_equal(found, read(learner))


@pytest.mark.parametrize("driver", ["compiled", "python"])
@pytest.mark.parametrize("representatives", [None, 0.1])
@pytest.mark.parametrize("cls", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
def test_a_promise_is_broken_after_many_episodes(cls, representatives, driver):
    """In the middle of a block of compiled code."""

    def new():
        return cls(
            bandwidth=0.1, bonus=krl.bonuses.Joint(0.1), lipschitz=(10.0, 1.0), representatives=representatives,
            reward_range=(0, 0.95), bonus_scale=0.001,
        )  # fmt: skip

    agent, env = new(), make_env()
    with pytest.raises(ValueError, match=r"^reward: 0.9\d+ is outside reward_range=\(0.0, 0.95\)") as caught:
        agent.fit(env, 300, seed=SEED, driver=driver)
    played = len(caught.value.history)
    assert agent.episodes == played > 2
    other = new()
    history = other.fit(env, played, seed=SEED)
    assert np.array_equal(history.returns, caught.value.history.returns)
    check_equal(read(other), read(agent))


def test_a_termination_where_the_range_excludes_zero():
    class Ending(gym.Wrapper):
        def step(self, action):
            x, _, _, truncated, info = self.env.step(action)
            return x, 1.5, bool(x[1] > 0.5), truncated, info

    agent = krl.OptQL(bins=4, reward_range=(1, 2))
    with pytest.raises(ValueError, match=r"^reward_range: \(1.0, 2.0\) excludes 0, but the env") as caught:
        agent.fit(Ending(make_env()), 500, seed=0)
    assert agent.episodes == len(caught.value.history) > 0
    with pytest.raises(ValueError, match="excludes 0"):
        agent.observe([0.1, 0.1], 0, 1.5, [0.1, 0.2], 0, terminated=True)
    krl.OptQL(bins=4).fit(Ending(make_env()), 50, seed=0)  # "auto" always includes it


def test_a_monitored_run_that_fails():
    env = Failing(make_env(), raising, 7)
    agent = make("KernelUCBVI merged")
    with pytest.raises(BrokenError) as caught:
        agent.fit(env, EPISODES, seed=SEED, monitor=lambda states, step: np.zeros(len(states)))
    optimism = caught.value.history.optimism
    assert set(optimism.episodes.tolist()) == set(range(FAIL_AT)) and optimism.values.size == H * FAIL_AT


def test_an_agent_is_freed_at_once(monkeypatch):
    """Its arrays are large, and the garbage collector may come late."""
    monkeypatch.setattr(recovery, "SHARE", 1e9)  # so that the next call of `fit` would reuse the copy
    gc.collect()
    gc.disable()
    try:
        agent = krl.KernelUCBVI()
        agent.fit(gym.wrappers.TimeLimit(gym.Wrapper(make_env()), H), 3, seed=0, progress=False)
        assert agent.recovery is not None
        agent.act(agent.spaces.low, step=0)
        alive = weakref.ref(agent)
        del agent
        assert alive() is None
    finally:
        gc.enable()
