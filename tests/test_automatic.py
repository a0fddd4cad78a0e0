"""Agents that choose their settings themselves: in parts, by both drivers, across files and errors, to the last bit."""

from __future__ import annotations

import functools

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from kernelrl.agents.deploying import displaces
from kernelrl.jit.handles import model_of
from kernelrl.planning.reading import read_q
from kernelrl.planning.sides import DEPLOYED
from kernelrl.stores.log import Log
from test_interface import check_equal, make_env
from walks import limited, pushed

# What each case is for; `chosen` below makes sure that it happens.
CASES = {
    "rooms": (make_env, {}, 60),
    "coarser": (make_env, {"max_representatives": 80}, 60),
    "per step": (make_env, {"max_representatives": 80, "stationary": False}, 50),
    "finer": (functools.partial(limited, noise=0.3), {}, 130),
    "given metric": (functools.partial(limited, widths=(1.0, 30.0)), {"metric": "manhattan"}, 60),
    "given merge distance": (functools.partial(limited, widths=(1.0, 1.0)), {"representatives": 0.5}, 60),
    "unbounded": (functools.partial(limited, widths=(1.0, 50.0), unbounded=True, ends=True), {}, 80),
    "interpolated": (functools.partial(limited, noise=0.3), {"lipschitz": 5.0}, 60),
}
PARTS = (3, 1, 0, 13, 1, 2, 25)  # and the rest

both = pytest.mark.parametrize("cls", [krl.KernelUCBVI, krl.GreedyKernelUCBVI])
cases = pytest.mark.parametrize("case", CASES)


def read(agent, env):
    low, high = (np.clip(bound, -1.0, 60.0) for bound in (env.observation_space.low, env.observation_space.high))
    states = low + (high - low) * np.random.default_rng(0).random((12, low.size))
    H, names = env.spec.max_episode_steps if env.spec else 8, ("q_values", "values", "counts", "bonuses")
    found = {(name, h): getattr(agent, name)(states, step=h) for name in names for h in (0, H // 2, H - 1)}
    return found | {("act", h): [agent.act(x, step=h) for x in states] for h in (0, H - 1)}


def chosen(agent):
    """What the rule has chosen."""
    return agent.to_store()["automatic"]


@functools.cache
def whole(cls, case):
    """An agent after all episodes in one call."""
    make, options, episodes = CASES[case]
    agent = cls(**options)
    return agent, agent.fit(make(), episodes, seed=3, progress=False)


def check_same(agent, histories, cls, case):
    """As in one call."""
    one, history = whole(cls, case)
    for name in ("returns", "lengths", "optimistic_values"):
        assert np.array_equal(np.concatenate([getattr(part, name) for part in histories]), getattr(history, name))
    assert agent.to_store() == one.to_store()
    assert agent.number_of_representatives == one.number_of_representatives
    check_equal(read(agent, CASES[case][0]()), read(one, CASES[case][0]()))


@both
@cases
def test_what_the_cases_are_for(cls, case):
    agent, history = whole(cls, case)
    found = chosen(agent)
    assert found["scale"] is not None and found["due"] > agent.episodes > 20
    assert (found["grain"] > 1.0) == (case in ("coarser", "per step"))
    assert (found["grain"] < 1.0) == (case in ("finer", "interpolated"))
    assert len(found["scale"]) == {"given metric": 1}.get(case, CASES[case][0]().observation_space.shape[0])
    assert np.unique(history.returns).size > 5
    limit = CASES[case][1].get("max_representatives")
    assert limit is None or agent.number_of_representatives <= limit + 2 * 20


@both
@cases
def test_in_parts_and_across_files(cls, case, tmp_path):
    make, options, episodes = CASES[case]
    agent, histories = cls(**options), []
    for n in (*PARTS, episodes - sum(PARTS)):
        histories.append(agent.fit(make(), n, seed=3 if not histories else None, progress=False))
        agent.save(tmp_path / "agent.krl")
        agent = krl.load(tmp_path / "agent.krl")
    check_same(agent, histories, cls, case)


@both
@pytest.mark.parametrize("case", ["rooms", "coarser", "per step"])
def test_drivers(cls, case):
    make, options, episodes = CASES[case]
    agent = cls(**options)
    check_same(agent, [agent.fit(make(), episodes, seed=3, driver="python", progress=False)], cls, case)


@both
@pytest.mark.parametrize("case", ["coarser", "finer", "unbounded"])
def test_reading_and_acting_change_nothing(cls, case):
    make, options, episodes = CASES[case]
    agent, histories = cls(**options), []
    for n in (2, 5, 6, 7, episodes - 20):
        histories.append(agent.fit(make(), n, seed=3 if not histories else None, progress=False))
        before = read(agent, make())
        check_equal(before, read(agent, make()))
    check_same(agent, histories, cls, case)


class Breaks(gym.Wrapper):
    """Raises an error in the third step of the episodes of these numbers, from 1."""

    def __init__(self, env, when):
        super().__init__(env)
        self.when, self.episode = set(when), 0

    def reset(self, **options):
        self.episode, self.steps = self.episode + 1, 0
        return self.env.reset(**options)

    def step(self, action):
        self.steps += 1
        if self.steps == 3 and self.episode in self.when:
            self.when.remove(self.episode)
            self.episode -= 1  # which is played again
            raise ArithmeticError
        return self.env.step(action)


@both
@pytest.mark.parametrize("case", ["coarser", "finer", "unbounded"])
def test_an_error_of_the_environment(cls, case):
    """Each comes in an episode before which settings may have changed; all is as it was before it."""
    make, options, episodes = CASES[case]
    agent, histories, env = cls(**options), [], Breaks(make(), (4, 6, 13, 14, 15, 18, 21, 26, 31))
    while agent.episodes < episodes:
        try:
            history = agent.fit(env, episodes - agent.episodes, seed=None if histories else 3, progress=False)
        except ArithmeticError as error:
            history = error.history
        histories.append(history)
    assert len(histories) == 10
    check_same(agent, histories, cls, case)


@both
def test_actions_are_random_at_first(cls):
    """Until the end of the episode in which 100 steps are reached: 13 episodes of 8 steps."""
    agent = cls()
    agent.fit(limited(), 12, seed=0, progress=False)
    assert chosen(agent)["scale"] is None and agent.number_of_representatives == 0
    agent.fit(limited(), 1, progress=False)
    assert agent.number_of_representatives == 0
    agent.fit(limited(), 1, progress=False)
    assert chosen(agent)["scale"] is not None and agent.number_of_representatives > 3


@both
@pytest.mark.parametrize(("horizon", "episodes", "options"), [(8, 4, {}), (16, 7, {}), (8, 13, {"kernel": "uniform"})])
def test_fewer_of_them_in_short_episodes_with_a_net(cls, horizon, episodes, options):
    """25 steps in place of 100, if episodes have at most 15 of them and actions are related."""
    agent, env = cls(action_bins=5, **options), pushed(horizon)
    agent.fit(env, episodes, seed=0, progress=False)
    assert chosen(agent)["scale"] is None
    agent.fit(env, 1, progress=False)
    assert chosen(agent)["scale"] is not None
    if cls is krl.KernelUCBVI:
        assert agent.settings_used()["replan"] == (1.0005 if episodes == 4 else 1.005)


@both
@pytest.mark.parametrize(
    "changes",
    [
        {"scale": [1.0, 1.0]}, {"scale": [0.0]}, {"scale": 0.3}, {"scale": ["a"]}, {"grain": -1.0}, {"grain": 1e9},
        {"due": 1.5}, {"due": -3}, {"more": 1},
    ],
)  # fmt: skip
def test_a_file_that_cannot_be(cls, changes):
    """What was chosen is checked when it is read."""
    agent = cls()
    agent.fit(limited(), 20, seed=0, progress=False)
    new = cls()
    new.stored = agent.to_store() | {"automatic": chosen(agent) | changes}
    with pytest.raises(ValueError, match="automatic"):
        new.start(limited().observation_space, limited().action_space, 8, 0)


class Late(gym.Wrapper):
    """Only the fifth step pays."""

    def reset(self, **options):
        self.played = 0
        return self.env.reset(**options)

    def step(self, action):
        self.played += 1
        state, _, *end = self.env.step(action)
        return state, (self.played == 5) * float(state[0]), *end


@both
@pytest.mark.filterwarnings("ignore:stationary. rewards seem to depend:UserWarning")
def test_a_file_where_rewards_depend_on_the_step(cls, tmp_path):
    """Scratch arrays are made for as many representatives as there are, more than a new agent has room for."""
    agent, env = cls(), Late(limited(widths=(1.0, 1.0), step=0.06, noise=0.2))
    agent.fit(env, 80, seed=0, progress=False)
    assert agent.model.settings.by_step and agent.number_of_representatives > 80
    agent.save(tmp_path / "agent.krl")
    again = krl.load(tmp_path / "agent.krl")
    assert again.model.plan.rewards.shape == agent.model.plan.rewards.shape
    for one in (agent, again):
        one.fit(env, 3, progress=False)
    check_equal(read(again, env), read(agent, env))
    assert np.array_equal(again.model.store.of_step, agent.model.store.of_step)  # not only up to rounding


def transitions(x, y, actions):
    """A log of these transitions, without rewards."""
    labels = np.array([np.zeros(len(x), int), actions, np.zeros(len(x), int)])
    return Log(np.array([x, y]), labels, np.zeros(len(x)), np.array([len(x)]))


@pytest.mark.parametrize("seed", range(3))
def test_where_steps_lead(seed):
    """The first coordinate moves, the second jumps to a place, the third stays, the fourth is noise."""
    rng = np.random.default_rng(seed)
    x, actions = rng.random((500, 4)), rng.integers(3, size=500)
    y = np.column_stack([x[:, 0] + 0.1 * actions, 0.3 * actions, x[:, 2], rng.random(500)])
    y += 0.01 * rng.standard_normal(y.shape)
    assert displaces(transitions(x, y, actions), np.full(4, 0.1)).tolist() == [1.0, 0.0, 1.0, 0.0]


def test_steps_resemble_those_of_the_same_action():
    """Each action goes to a place of its own, so that the places of any action say nothing."""
    x = np.tile(np.linspace(0.0, 1.0, 100), 2)[:, None]
    actions = np.repeat([0, 1], 100)
    places = np.where(actions == 0, 0.0, 50.0)[:, None]
    assert displaces(transitions(x, places, actions), np.ones(1)) == 0.0
    assert displaces(transitions(x, x + places, actions), np.ones(1)) == 1.0


@both
def test_deployed_where_only_equal_states_are_merged(cls):
    """All plans to deploy are the same there, and so is their mean."""
    agent = cls(representatives=0.0)
    agent.fit(limited(widths=(1.0, 1.0), ends=True), 30, seed=0, progress=False)
    agent.act(np.array([0.5, 0.5]), step=0)
    planned = model_of(agent._deployed[1])
    U = agent.number_of_representatives
    for h in (0, 4, 7):
        np.testing.assert_allclose(planned.plan.Q[h, :U, :4].max(axis=1), planned.plan.V[h, :U], rtol=1e-12)


@both
def test_one_representative(cls):
    agent = cls(max_representatives=1)
    agent.fit(limited(widths=(1.0, 1.0)), 30, seed=0, progress=False)
    assert agent.number_of_representatives <= 2 * 8 + 1  # one, and those of the last episode


@both
@pytest.mark.filterwarnings("ignore:stationary. rewards seem to depend:UserWarning")
def test_nothing_is_promised_where_nothing_was_seen(cls):
    """Only the fifth step pays: no other step does, and an action that was never tried has no value."""
    agent, env = cls(), Late(limited(widths=(1.0, 1.0), step=0.06, noise=0.2))
    agent.fit(env, 60, seed=0, progress=False)
    assert agent.model.settings.by_step
    agent.act([0.5, 0.5], step=0)
    planned = agent._deployed[1]
    values = [read_q(planned, DEPLOYED, np.random.default_rng(0).random((50, 2)), h) for h in range(8)]
    assert max(q.max() for q in values[5:]) < 0.02 and values[4].max() > 0.8
