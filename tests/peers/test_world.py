"""What the library sees of an environment, and how its loop is paused; the library itself is not needed."""

from __future__ import annotations

import threading

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete

from kernelrl.jit.stream import episode_seed
from kernelrl.peers.turns import Enough, Turns
from kernelrl.peers.world import Episodes, Seen, check_actions


class Counting(gym.Env):
    """Counts steps; ends after `ends` of them."""

    def __init__(self, states=None, actions=None, ends=100, reward=1.0):
        self.observation_space = Discrete(3, start=5) if states is None else states
        self.action_space = Discrete(2, start=7) if actions is None else actions
        self.ends, self.reward, self.given, self.seeds = ends, reward, [], []

    def state(self):
        return self.observation_space.sample() if not isinstance(self.observation_space, Discrete) else 5 + self.h % 3

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(0)
        self.seeds.append(seed)
        self.h = 0
        return self.state(), {}

    def step(self, action):
        self.given.append(action)
        self.h += 1
        return self.state(), self.reward, self.h >= self.ends, False, {}


def test_time_and_one_hot_states():
    world = Seen(Counting(), horizon=4, time_aware=True)
    assert world.observation_space == Box(0.0, 1.0, (4,), np.float32)
    seen = [world.reset(seed=0)[0]] + [world.step(0)[0] for _ in range(4)]
    expected = [[1, 0, 0, 0], [0, 1, 0, 0.25], [0, 0, 1, 0.5], [1, 0, 0, 0.75], [0, 1, 0, 1]]
    assert np.array_equal(seen, expected) and seen[0].dtype == np.float32
    assert all(x in world.observation_space for x in seen)


def test_without_time():
    world = Seen(Counting(), 4, time_aware=False)
    assert world.reset()[0].tolist() == [1, 0, 0] and world.step(1)[0].tolist() == [0, 1, 0]
    box = Box(-2.0, 2.0, (2, 3))
    world = Seen(Counting(box), 4, time_aware=False)
    assert world.observation_space == box and world.reset()[0].shape == (2, 3)


def test_states_of_other_kinds_are_flattened():
    both = Dict({"a": Box(-2.0, 2.0, (2, 2)), "b": Discrete(3)})
    world = Seen(Counting(both), 4, time_aware=True)
    assert world.observation_space.shape == (8,) and world.reset()[0] in world.observation_space
    with pytest.raises(ValueError, match=r"observation_space: .* cannot be flattened"):
        Seen(Counting(gym.spaces.Sequence(Discrete(2))), 4, time_aware=True)


def test_actions_count_from_0_and_are_not_seeded_for_others():
    env = Counting()
    world = Seen(env, 4, True)
    world.reset()
    world.step(np.int64(1))
    assert world.action_space == Discrete(2) and env.given == [8] and type(env.given[0]) is int
    box = Counting(actions=Box(-1.0, 1.0, (2,)))
    assert Seen(box, 4, True).action_space is not box.action_space


def test_the_horizon_truncates():
    world = Seen(Counting(ends=3), 5, True)
    world.reset()
    assert [world.step(0)[2:4] for _ in range(3)] == [(False, False), (False, False), (True, False)]
    world = Seen(Counting(), 2, True)
    world.reset()
    assert [world.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]


@pytest.mark.parametrize("time_aware", [True, False])
def test_what_an_environment_must_not_return(time_aware):
    with np.errstate(invalid="ignore"):
        world = Seen(Counting(Box(-1.0, 1.0, (1,)), reward=np.nan), 5, time_aware)
    world.reset()
    with pytest.raises(ValueError, match="the environment's reward must be a finite number"):
        world.step(0)
    env = Counting(Box(-1.0, 1.0, (1,)))
    env.state = lambda: np.array([np.nan], np.float32)
    with pytest.raises(ValueError, match="the environment's start state must be finite"):
        Seen(env, 5, time_aware).reset()


@pytest.mark.parametrize(
    ("name", "space", "words"),
    [
        ("SAC", Discrete(2), "SAC needs Box actions.*DQN, PPO and A2C take Discrete"),
        ("TD3", Discrete(2), "TD3 needs Box actions"),
        ("DQN", Box(-1.0, 1.0, (1,)), "DQN needs Discrete actions.*SAC, TD3, PPO and A2C take a Box"),
        ("PPO", Box(-np.inf, 1.0, (1,)), "PPO needs actions with finite bounds"),
    ],
)
def test_actions_that_an_algorithm_does_not_take(name, space, words):
    with pytest.raises(ValueError, match=f"action_space: {words}"):
        check_actions(name, space)


def test_actions_that_it_takes():
    box, few = Box(-1.0, 1.0, (2,)), Discrete(3)
    for name, space in [("SAC", box), ("TD3", box), ("DQN", few), ("PPO", box), ("PPO", few), ("A2C", few)]:
        check_actions(name, space)


def test_episodes_have_the_seeds_of_our_agents():
    env, paused = Counting(ends=3), []
    world = Episodes(Seen(env, 5, True), 11, lambda: paused.append(len(world.returns)), 2)
    for _ in range(2):
        world.reset(seed=99)
        while not world.step(0)[2]:
            pass
    assert env.seeds == [episode_seed(11, 0), episode_seed(11, 1)]
    assert world.returns == [3.0, 3.0] and world.lengths == [3, 3] and paused == [0, 1]
    last, _ = world.reset()  # the library does this after the last episode
    assert last in world.observation_space and len(env.seeds) == 2
    with pytest.raises(Enough):
        world.step(0)
    assert len(env.given) == 6


# --------------------------------------------------------------------------------------------------------------- turns


def test_taking_turns():
    said = []

    def work():
        said.append(threading.current_thread() is not threading.main_thread())
        turns.pause()
        said.append("second")

    turns = Turns(work)
    turns.resume()
    assert said == [True] and not turns.ended
    turns.resume()
    assert said == [True, "second"] and turns.ended
    with pytest.raises(RuntimeError, match="has ended"):
        turns.resume()
    turns.close()


def test_an_error_of_the_work_comes_to_the_caller():
    def work():
        turns.pause()
        raise ZeroDivisionError("in the middle")

    turns = Turns(work)
    turns.resume()
    with pytest.raises(ZeroDivisionError, match="in the middle") as caught:
        turns.resume()
    assert "work" in [entry.name for entry in caught.traceback]


@pytest.mark.parametrize("pieces", [0, 1])
def test_the_work_is_ended(pieces):
    ended = []

    def work():
        try:
            turns.pause()
        except BaseException as error:
            ended.append(type(error))
            raise

    turns, before = Turns(work), threading.active_count()
    for _ in range(pieces):
        turns.resume()
    turns.close()
    assert ended == [Enough] * pieces and threading.active_count() == before


def test_masks_are_refused():
    class Masked(gym.Wrapper):
        def reset(self, **given):
            state, info = self.env.reset(**given)
            return state, {**info, "action_mask": np.ones(2, bool)}

    with pytest.raises(ValueError, match="info has an action_mask, which Stable-Baselines3's agents do not obey"):
        Seen(Masked(gym.make("CartPole-v1")), 5, True).reset(seed=0)
