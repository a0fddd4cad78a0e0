"""What the baselines say to wrong arguments and spaces."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from small_envs import Chain, Line

BOX = gym.spaces.Box(np.array([0.0, -1.0]), np.array([1.0, 2.0]), dtype=np.float64)
TWO = gym.spaces.Discrete(2)
GRIDS = (krl.UCBVI, krl.GreedyUCBVI, krl.OptQL)
each_grid = pytest.mark.parametrize("cls", GRIDS)
each_class = pytest.mark.parametrize("cls", [*GRIDS, krl.AdaptiveQL])


@each_grid
@pytest.mark.parametrize("bins", [0, -1, 2.5, "ten", [3, 0], [], [[3]], True, np.nan])
def test_bins(cls, bins):
    with pytest.raises(ValueError, match=r"^bins must be a whole number of at least 1, or one for each dimension"):
        cls(bins=bins)


@each_grid
def test_bins_and_spaces(cls):
    with pytest.raises(ValueError, match=rf"^bins: a Box of states must be divided.* {cls.__name__}\(bins=…\)"):
        cls().start(BOX, TWO, 3)
    with pytest.raises(ValueError, match=r"^bins: states have 2 dimensions, got 3 numbers: \(1, 2, 3\)"):
        cls(bins=[1, 2, 3]).start(BOX, TWO, 3)
    with pytest.raises(ValueError, match=r"^bins: the states are those of a Discrete space already; leave bins out"):
        cls(bins=3).start(gym.spaces.Discrete(3), TWO, 3)
    for many in (10_000_000, 2**31, 2**53 - 1):
        with pytest.raises(MemoryError, match=r"^bins: .* cells times 2 actions times 3 steps take about .* bytes"):
            cls(bins=many).start(BOX, TWO, 3)
    with pytest.raises(
        TypeError, match=r"^observation_space must be a gymnasium Box of states or a Discrete space, got"
    ):
        cls(bins=3).start(gym.spaces.MultiDiscrete([2, 2]), TWO, 3)
    agent = cls(bins=(2, 3))
    agent.start(BOX, TWO, 3)  # what was refused has left no trace on the class
    assert agent.bins == (2, 3)


def test_adaptive_ql_divides_boxes_only():
    with pytest.raises(TypeError, match=r"^observation_space must be a gymnasium Box of states, got Discrete\(3\)"):
        krl.AdaptiveQL().start(gym.spaces.Discrete(3), TWO, 3)
    with pytest.raises(
        ValueError, match=r"^observation_space: a ball splits into 2\^d, .* 12 dimensions at most; got 13"
    ):
        krl.AdaptiveQL().start(gym.spaces.Box(0, 1, (13,)), TWO, 3)


@each_class
@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (0.0, np.inf, "unbounded in dimension 1 .*TransformObservation"),
        (-np.inf, 0.0, "unbounded in dimension 1 .*TransformObservation"),
        (-1e308, 1e308, r"axis 1 reaches from -1e\+308 to 1e\+308; give bounds below"),
    ],
)
def test_unbounded_states(cls, low, high, message):
    space = gym.spaces.Box(np.array([0.0, low]), np.array([1.0, high]), dtype=np.float64)
    agent = cls() if cls is krl.AdaptiveQL else cls(bins=3)
    with pytest.raises(ValueError, match=f"^observation_space: .*{message}"):
        agent.start(space, TWO, 3)


@each_class
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"bonus": "bernstein"}, "^bonus must be one of simplified, hoeffding, got 'bernstein'"),
        ({"bonus": None}, "^bonus must be one of"),
        ({"bonus_scale": -1}, "^bonus_scale must be a finite number of at least 0, got -1"),
        ({"delta": 0}, "^delta must be a finite number above 0, got 0"),
        ({"delta": 1}, "^delta must be a probability of failure between 0 and 1"),
        ({"bonus": "hoeffding"}, "^total_episodes: bonus=.*give total_episodes=…"),
        ({"total_episodes": 0}, "^total_episodes must be a whole number of at least 1, got 0"),
        ({"horizon": 0}, "^horizon must be a whole number of at least 1"),
        ({"reward_range": (1, 0)}, "^reward_range must be .*two finite numbers"),
    ],
)
def test_options(cls, options, message):
    with pytest.raises(ValueError, match=message):
        cls(**options)


def test_options_of_one_agent():
    with pytest.raises(
        ValueError, match=r"^replan must be one of episode, step, doubling, auto, or a number above 1, .*got 'never'"
    ):
        krl.UCBVI(bins=3, replan="never")
    with pytest.raises(ValueError, match=r"^minimum must be True or False, got 1"):
        krl.UCBVI(bins=3, minimum=1)
    for cls in (krl.UCBVI, krl.GreedyUCBVI):
        with pytest.raises(ValueError, match=r"^stationary must be True or False, got 1"):
            cls(bins=3, stationary=1)
    with pytest.raises(ValueError, match=r"^bonus_place must be one of target, after, got 'before'"):
        krl.OptQL(bins=3, bonus_place="before")
    with pytest.raises(ValueError, match=r"^lipschitz: bonus=.*give lipschitz=…"):
        krl.AdaptiveQL(bonus="hoeffding", total_episodes=10)
    with pytest.raises(ValueError, match=r"^lipschitz must be a finite number of at least 0, got -1"):
        krl.AdaptiveQL(lipschitz=-1)


# ----------------------------------------------------------------------------------------------------- Discrete states


@each_grid
def test_states_of_a_discrete_space(cls):
    agent = cls()
    agent.start(gym.spaces.Discrete(4, start=3), TWO, 2, seed=0)
    agent.begin_episode()
    for wrong in (2, 7, 3.5, np.array(9)):
        with pytest.raises(ValueError, match=r"^state must be among 3 … 6, got"):
            agent.choose(wrong, 0)
        with pytest.raises(ValueError, match=r"^next_state must be among 3 … 6, got"):
            agent.observe(3, 0, 0.5, wrong, 0)
    with pytest.raises(ValueError, match=r"^states must be among 3 … 6, got"):
        agent.values([3, 2], step=0)
    with pytest.raises(ValueError, match=r"^states must have shape \(n\), got shape \(\)"):
        agent.values(3, step=0)
    with pytest.raises(ValueError, match=r"^state must have shape \(\), got shape \(1,\)"):
        agent.choose([3], 0)
    with pytest.raises(ValueError, match=r"^state must be finite"):
        agent.choose(np.nan, 0)
    agent.observe(np.int64(3), 0, 0.5, 6, 0)
    agent.begin_episode()
    assert agent.counts([3, 4, 6], step=0).tolist() == [[1, 0], [0, 0], [0, 0]]


@each_grid
def test_going_on_with_other_discrete_states(cls, tmp_path):
    agent = cls(horizon=3)
    first = agent.fit(Chain(first=5), 5, seed=1)
    agent.save(tmp_path / "agent.krl")
    twin = krl.load(tmp_path / "agent.krl")
    for env in (Chain(), Chain(box=True), Line()):
        with pytest.raises(ValueError, match=r"^env: its states are .* not what this agent was started with"):
            twin.fit(env, 1)
    second = twin.fit(Chain(first=5), 5)
    whole = cls(horizon=3).fit(Chain(first=5), 10, seed=1)
    assert np.array_equal(np.concatenate([first.returns, second.returns]), whole.returns)
    boxed = cls(horizon=3, bins=4)
    boxed.fit(Chain(box=True), 1, seed=0)
    with pytest.raises(ValueError, match=r"^env: its states are Discrete"):
        boxed.fit(Chain(), 1)
