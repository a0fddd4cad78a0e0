"""`mask=`, a function of the state: every way to choose obeys it, in both drivers, files, and errors."""

from __future__ import annotations

import pickle

import gymnasium as gym
import numba
import numpy as np
import pytest

import kernelrl as krl
from small_envs import Line
from user_functions import only_right_of_half

AGENTS = {
    "UCBVI": lambda **more: krl.UCBVI(bins=8, **more),
    "GreedyUCBVI": lambda **more: krl.GreedyUCBVI(bins=8, **more),
    "OptQL": lambda **more: krl.OptQL(bins=8, **more),
    "AdaptiveQL": krl.AdaptiveQL,
    "AdaMB": krl.AdaMB,
    "RandomAgent": krl.RandomAgent,
}
every_agent = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
ROOMS = "kernelrl/TwinRooms-v0"


def forbidden(history):
    rows = history.transitions
    return int(((rows["action"] == 0) & (rows["state_0"] <= 0.5)).sum())


@every_agent
def test_both_drivers_obey_it_and_agree(make, tmp_path):
    env, found = gym.make(ROOMS), []
    for driver in ("compiled", "python"):
        agent = make(mask=only_right_of_half)
        history = agent.fit(env, 25, seed=3, driver=driver, transitions=True, progress=False)
        assert forbidden(history) == 0 and (history.transitions["action"] == 0).any()
        found.append((history.returns, history.optimistic_values, agent.q_values([[0.2, 0.3], [0.9, 0.1]], 2)))
    for one, other in zip(*found, strict=True):
        assert np.array_equal(one, other)
    agent.save(tmp_path / "agent.krl")
    again, twin = krl.load(tmp_path / "agent.krl", trust=True), pickle.loads(pickle.dumps(agent))
    assert again.mask is only_right_of_half
    ends = [a.fit(env, 5, transitions=True, progress=False) for a in (agent, again, twin)]
    assert forbidden(ends[0]) == 0
    for end in ends[1:]:
        assert np.array_equal(end.returns, ends[0].returns)
    policy = agent.policy()
    for x in np.random.default_rng(0).random((20, 2)):
        assert agent.act(x, 0) == policy(x, 0) == agent.predict(x)[0]
        assert x[0] > 0.5 or 0 not in (agent.act(x, 0), agent.choose(x, 0), agent.predict(x, deterministic=False)[0])
    assert agent.evaluate(env, 3).returns.size == 3


@pytest.mark.parametrize("name", ["GreedyUCBVI", "AdaMB"])
def test_a_mask_that_allows_everything_changes_nothing(name):
    @numba.njit
    def everything(state, action):
        return True

    env, make = gym.make(ROOMS), AGENTS[name]
    one, other = make(), make(mask=everything)
    histories = [agent.fit(env, 20, seed=1, driver="python", progress=False) for agent in (one, other)]
    assert np.array_equal(histories[0].returns, histories[1].returns)
    states = np.random.default_rng(0).random((9, 2))
    for h in (0, 7):
        assert np.array_equal(one.q_values(states, h), other.q_values(states, h))
        assert np.array_equal(one.values(states, h), other.values(states, h))
        assert [one.act(x, h) for x in states] == [other.act(x, h) for x in states]


def test_masks_of_calls_and_of_info_are_combined_with_it():
    agent = krl.OptQL(bins=4, mask=only_right_of_half)
    agent.start(gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Discrete(3), 4, seed=0)
    for _ in range(10):
        assert agent.choose([0.2], 0, mask=[1, 1, 0]) == agent.act([0.2], 0, mask=[1, 1, 0]) == 1
        assert agent.predict([0.2], action_masks=[1, 1, 0])[0] == 1
    for call in (agent.choose, agent.act):
        with pytest.raises(ValueError, match=r"mask: the agent's mask and the mask given together allow no action in"):
            call([0.2], 0, mask=[1, 0, 0])

    class Barred(Line):
        def reset(self, **given):
            x, _ = super().reset(**given)
            return x, {"action_mask": np.array([1, 0, 1], np.int8)}

        def step(self, action):
            *others, _ = super().step(action)
            return *others, {"action_mask": np.array([1, 0, 1], np.int8)}

    env = gym.wrappers.TimeLimit(Barred(actions=3), 4)
    agent = krl.OptQL(bins=4, mask=only_right_of_half)
    rows = agent.fit(env, 20, seed=0, transitions=True, progress=False).transitions
    assert (rows["action"] != 1).all() and (rows.filter(rows["state_0"] <= 0.5)["action"] == 2).all()
    assert agent.evaluate(env, 3).returns.size == 3


@pytest.mark.parametrize("driver", ["compiled", "python"])
def test_a_mask_that_allows_nothing_is_an_error_that_leaves_whole_episodes(driver):
    @numba.njit
    def nothing_at_the_right(state, action):
        return state[0] < 0.5

    agent = krl.OptQL(bins=4, mask=nothing_at_the_right)
    nothing = r"^mask: the agent's mask allows no action in state \[{}\]; at least one must be allowed"
    with pytest.raises(ValueError, match=nothing.format(r"(0\.[5-9]|1\.)\d* +0\.\d+")) as error:
        agent.fit(gym.make(ROOMS), 500, seed=0, driver=driver, progress=False)
    assert agent.episodes == len(error.value.history) < 500
    at = np.array([0.9, 0.1])
    for call in (
        lambda: agent.act(at, 0),
        lambda: agent.choose(at, 0),
        lambda: agent.predict([at / 2, at]),
        lambda: agent.predict([at / 2, at], deterministic=False),
    ):
        with pytest.raises(ValueError, match=nothing.format(r"0\.9 0\.1")):
            call()


@pytest.mark.parametrize("make", [krl.RandomAgent, krl.AdaMB, lambda **more: krl.UCBVI(bins=8, **more)])
def test_the_state_in_which_nothing_is_allowed_may_be_the_first(make):
    @numba.njit
    def nothing_at_the_left(state, action):
        return state[0] > 0.5

    agent = make(mask=nothing_at_the_left)
    with pytest.raises(ValueError, match=r"^mask: the agent's mask allows no action in state \[0\.1 0\.1\]"):
        agent.fit(gym.make(ROOMS), 5, seed=0, driver="python", progress=False)
    assert agent.episodes == 0


def test_what_cannot_be_a_mask_is_refused():
    with pytest.raises(TypeError, match=r"mask must be a compiled function mask\(state, action\) that returns"):
        krl.UCBVI(mask=lambda state, action: True)
    with pytest.raises(TypeError, match="mask must be a compiled function"):
        krl.RandomAgent(mask=[True, False])

    @numba.njit
    def of_states(state):
        return True

    @numba.njit
    def of_more(state, action, step, most=3):
        return True

    with pytest.raises(
        TypeError, match=r"^mask must be a compiled function mask\(state, action\) .*; got of_states\(state"
    ):
        krl.UCBVI(mask=of_states)
    with pytest.raises(TypeError, match=r"; got of_more\(state, action, step, most=3\)"):
        krl.AdaMB(mask=of_more)
    with pytest.raises(
        TypeError, match=r"^Custom: function must be a compiled function function\(x, y\); got of_states"
    ):
        krl.metrics.Custom(of_states)

    @numba.njit
    def a_number(state, action):
        return 0.5

    spaces = gym.spaces.Box(0.0, 1.0, (1,)), gym.spaces.Discrete(2)
    with pytest.raises(TypeError, match=r"mask must return True or False, got 0\.5"):
        krl.OptQL(bins=3, mask=a_number).start(*spaces, 3)
    for make in (krl.AdaptiveQL, krl.AdaMB, krl.RandomAgent):
        with pytest.raises(ValueError, match="mask: masks are for Discrete actions"):
            make(mask=only_right_of_half).start(spaces[0], gym.spaces.Box(0.0, 1.0, (1,)), 3)


def test_export_of_discrete_states_obeys_it(tmp_path):
    agent = krl.UCBVI(mask=only_right_of_half)
    agent.fit(gym.make("FrozenLake-v1", max_episode_steps=6), 30, seed=0, progress=False)
    agent.export(tmp_path / "policy.json")
    box = krl.UCBVI(bins=4, mask=only_right_of_half)
    box.fit(gym.make(ROOMS), 5, seed=0, progress=False)
    with pytest.raises(ValueError, match="export: mask is a function of states in a Box"):
        box.export(tmp_path / "box.json")
