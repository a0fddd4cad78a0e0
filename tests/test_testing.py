"""The public checks: what is right passes, and each kind of mistake is found and named."""

from __future__ import annotations

import math
import random
from typing import NamedTuple

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from kernelrl.algorithms import random_agent
from kernelrl.episodes import verbs
from kernelrl.geometry.masks import EVERYTHING, Everything
from small_envs import Chain, Line

SPACE = gym.spaces.Box(0.0, 1.0, (2,), np.float64)

# --------------------------------------------------------------------------------------------------------- environments


@pytest.mark.parametrize("make", [Line, lambda: Line(actions=3, first=4, ends=True), Chain, lambda: Chain(first=2)])
def test_environments_in_python_pass(make):
    assert krl.testing.check_environment(TimeLimit(make(), 8), episodes=6) is None
    krl.testing.check_environment(make(), 3, horizon=5)


def test_environments_by_id_pass():
    krl.testing.check_environment("kernelrl/Ramp-v0")
    krl.testing.check_environment("CartPole-v1", episodes=3)


class Odd(Line):
    """A walk with one thing changed, given as keywords."""

    def __init__(self, **changes):
        super().__init__()
        for name, value in changes.items():
            setattr(self, name, value)

    given = staticmethod(lambda env, given: given)
    given_by_reset = staticmethod(lambda env, given: given)

    def reset(self, **options):
        return self.given_by_reset(self, super().reset(**options))

    def step(self, action):
        return self.given(self, super().step(action))


class Shared(Odd):
    """Returns one array, which it goes on changing."""

    def _observation(self):
        self.array = getattr(self, "array", np.zeros(1))
        self.array[0] = self.x
        return self.array


def put(place, value):
    return lambda env, given: (*given[:place], value, *given[place + 1 :])


def unseeded(env, given):
    return (given[0], random.SystemRandom().random(), *given[2:])


def counting(env, given):
    env.total = getattr(env, "total", 0) + 1
    return (given[0], float(env.total), *given[2:])


MISTAKES = {
    "dict space": (Odd(observation_space=gym.spaces.Dict({})), "observation_space must be a Box or a Discrete"),
    "two kinds of actions": (
        Odd(action_space=gym.spaces.MultiDiscrete([2, 2])),
        "action_space must be gymnasium's Discrete or a Box, .* wrapper",
    ),
    "unbounded actions": (
        Odd(action_space=gym.spaces.Box(-np.inf, np.inf, (1,))),
        "action_space: axis 0 reaches from -inf",
    ),
    "state outside": (Odd(given=put(0, np.array([1.5]))), "the state of step 0 must lie in observation_space.*clip"),
    "nan state": (Odd(given=put(0, np.array([math.nan]))), "the state of step 0 must be finite"),
    "start outside": (Odd(given_by_reset=put(0, np.array([-1.0]))), "the state of reset must lie in observation_space"),
    "shape": (Odd(given=put(0, np.zeros(3))), r"the state of step 0 must have shape \(1,\), .*got \(3,\)"),
    "no state": (Odd(given=put(0, "here")), "the state of step 0 must be an array of numbers"),
    "no reward": (Odd(given=put(1, None)), "the reward of step 0 must be a number, got None"),
    "nan reward": (Odd(given=put(1, math.nan)), "the reward of step 0 must be a finite number"),
    "flag": (Odd(given=put(2, 1)), "terminated of step 0 must be True or False, got 1"),
    "truncated": (Odd(given=put(3, None)), "truncated of step 0 must be True or False, got None"),
    "four values": (Odd(given=lambda env, given: given[:4]), "step must return .observation, reward, terminated, tr"),
    "four values in a wrapper": (TimeLimit(Odd(given=lambda env, given: given[:4]), 6), "step must return .*got 4"),
    "no seed": (Odd(reset=lambda: None), "reset must take a seed: def reset"),
    "old reset": (Odd(given_by_reset=lambda env, given: given[0]), "reset must return .observation, info"),
    "unseeded": (Odd(given=unseeded), r"gave another episode the second time; draw .* self\.np_random"),
    "carried over": (Odd(given=counting), "gave another episode the second time; .* set in reset all that step"),
    "one array": (Shared(), "observation of step 0 was changed by later steps; return a copy"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_of_environments_are_named(mistake):
    env, message = MISTAKES[mistake]
    with pytest.raises(AssertionError, match=message):
        krl.testing.check_environment(env, episodes=4, horizon=6)


def test_what_is_no_environment_or_has_no_end():
    with pytest.raises(TypeError, match="env must be a Gymnasium environment or the id of one, got 3"):
        krl.testing.check_environment(3)
    with pytest.raises(TypeError, match=r"this is the class: give an object of it, Line\(\)"):
        krl.testing.check_environment(Line)
    plain = type("Plain", (), {"step": lambda self, action: None})
    with pytest.raises(TypeError, match=r"wrap the simulator in a class that inherits from gymnasium\.Env"):
        krl.testing.check_environment(plain())
    with pytest.raises(ValueError, match=r"env has no time limit: wrap it in gymnasium\.wrappers\.TimeLimit"):
        krl.testing.check_environment(Line())


def compiled_env(advance, reset=None, dynamics=None):
    """A compiled environment of these functions."""

    class Dynamics(NamedTuple):
        table: np.ndarray

    def start(env, seed, stream, state):
        state[0], state[1] = 0.5 * krl.random.uniform(stream), 0.5

    krl.envs.reset.implement(Dynamics)(reset or start)
    krl.envs.advance.implement(Dynamics)(advance)
    env = krl.envs.CompiledEnv(
        Dynamics(np.zeros(3)), observation_space=SPACE, action_space=gym.spaces.Discrete(2, start=1)
    )
    return TimeLimit(env, 6)


def right(env, stream, state, action, next_state):
    next_state[0] = 0.5 * state[0] + 0.25 * action + 0.25 * krl.random.uniform(stream)
    next_state[1] = state[1]
    return state[0], krl.random.uniform(stream) < 0.1, krl.random.uniform(stream) < 0.1


def one_entry(env, stream, state, action, next_state):
    next_state[0] = 0.5
    return 0.0, False, False


def into_state(env, stream, state, action, next_state):
    next_state[0], next_state[1] = 0.5, 0.5
    state[0] = 0.1
    return 0.0, False, False


def into_dynamics(env, stream, state, action, next_state):
    next_state[0], next_state[1] = state[0], state[1]
    env.table[0] += 1.0
    return 0.0, False, False


def numpys_own_numbers(env, stream, state, action, next_state):
    next_state[0], next_state[1] = np.random.random(), state[1]
    return 0.0, False, False


def half_a_start(env, seed, stream, state):
    state[1] = 0.5


@pytest.mark.parametrize(
    ("advance", "reset", "message"),
    [
        (one_entry, None, "advance must write every entry of next_state, got .0.5 nan. where it was nan before"),
        (into_state, None, "advance must not change state"),
        (numpys_own_numbers, None, "gave another episode the second time; .* from `stream`, by krl.random"),
        (into_dynamics, None, "an episode has changed an array of Dynamics: .* may only read"),
        (right, half_a_start, "reset must write every entry of state, got .nan 0.5. where"),
    ],
)
def test_mistakes_of_compiled_environments_are_named(advance, reset, message):
    krl.testing.check_environment(compiled_env(right))
    with pytest.raises(AssertionError, match=message):
        krl.testing.check_environment(compiled_env(advance, reset))


def test_drivers_that_differ_are_found():
    """What Python adds to an episode behind the driver's back."""

    class Other(type(compiled_env(right).unwrapped)):
        masks_actions = False

        def info(self):
            self._state[1] = 0.25
            return {}

    dynamics = compiled_env(right).unwrapped.dynamics
    env = Other(dynamics, observation_space=SPACE, action_space=gym.spaces.Discrete(2))
    with pytest.raises(AssertionError, match="the states of episode 0 differ between the drivers"):
        krl.testing.check_environment(env, horizon=4)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")
def test_code_that_cannot_be_kept_is_found():
    @numba.vectorize
    def halved(x):
        return 0.5 * x

    def halving(env, stream, state, action, next_state):
        next_state[0], next_state[1] = state[0], halved(state[1])
        return 0.0, False, False

    with pytest.raises(AssertionError, match=r"code of Dynamics cannot be kept on disk.* it uses .*halved, a DUFunc"):
        krl.testing.check_environment(compiled_env(halving))


# --------------------------------------------------------------------------------------------------------------- agents


def test_agents_pass():
    assert krl.testing.check_agent(krl.RandomAgent) is None
    krl.testing.check_agent(lambda: krl.OptQL(bins=4, bonus_scale=0.01), "kernelrl/Ramp-v0")
    krl.testing.check_agent(lambda: krl.OptQL(bonus_scale=0.01), TimeLimit(Chain(first=1), 6))
    krl.testing.check_agent(lambda: krl.OptQL(bins=4, horizon=7), Line(actions=3, first=2, ends=True))
    with pytest.raises(ValueError, match="no time limit"):
        krl.testing.check_agent(krl.RandomAgent, Line())
    with pytest.raises(AssertionError, match=r"all 30 episodes had the return 0, so .* in another environment, env=…"):
        krl.testing.check_agent(krl.RandomAgent, "kernelrl/TwinRooms-v0")


def easy():
    return gym.make("kernelrl/TwinRooms-v0", goal=(0.3, 0.3), radius=0.3)


class Careless(krl.RandomAgent):
    """The random agent, from which each of those below departs in one thing."""


class IgnoresSeed(Careless):
    def fit(self, env, episodes, *, seed=None, **options):
        seed = None if self.episodes else random.SystemRandom().randrange(2**31)
        return super().fit(env, episodes, seed=seed, **options)


class DrawsInEachCall(Careless):
    def fit(self, env, episodes, **options):
        if self.episodes:
            self.choose(env.reset(seed=0)[0], 0)
        return super().fit(env, episodes, **options)


class KnowsTheDriver(Careless):
    def fit(self, env, episodes, *, driver="auto", **options):
        return super().fit(env, episodes - (driver == "compiled"), driver=driver, **options)


class ForgetsItsStream(Careless):
    def __getstate__(self):
        return self.__dict__ | {"model": self.model._replace(stream=np.ones(4, np.uint64))}


class ActsAnyhow(Careless):
    def act(self, state, step):
        return 99


class ActsFromZero(Careless):
    def act(self, state, step):
        return 0


class ChoosesZero(Careless):
    def choose(self, state, step):
        return int(self.spaces.first_action)


class HasNoValues(Careless):
    def values(self, states, step):
        return np.full(len(states), math.nan)


class HasTableOfValues(Careless):
    def values(self, states, step):
        return super().q_values(states, step)


class ValuesAreHigher(Careless):
    def values(self, states, step):
        return super().values(states, step) + 1.0


class DrawsWhenRead(Careless):
    def q_values(self, states, step):
        self.choose(states[0], step)
        return super().q_values(states, step)


class SwallowsErrors(Careless):
    def observe(self, *arguments, **options):
        try:
            super().observe(*arguments, **options)
        except ValueError:
            pass


class CountsRefused(Careless):
    def observe(self, *arguments, **options):
        try:
            super().observe(*arguments, **options)
        except (ValueError, TypeError):
            self.choose(self.spaces.low, 0)
            raise


class CountsBroken(Careless):
    def fit(self, env, episodes, **options):
        try:
            return super().fit(env, episodes, **options)
        except Exception:
            self.choose(self.spaces.low, 0)
            raise


class LosesSettings(Careless):
    hyper_parameters = ("horizon", "reward_range")

    def __init__(self, horizon=None, reward_range="auto"):
        super().__init__(horizon=5 if horizon is None else None, reward_range=reward_range)


class CountsRows(Careless):
    def after_rows(self):
        super().after_rows()
        self.episodes += 1


CARELESS = {
    IgnoresSeed: ("seed", "two agents that learnt with seed 7 .* the returns differ"),
    DrawsInEachCall: ("fit in parts", "fit in parts and fit in one call: the returns differ"),
    KnowsTheDriver: ("drivers", "the two drivers: the returns differ"),
    ForgetsItsStream: ("pickling", "pickled in between has other returns"),
    ActsAnyhow: ("history and read-outs", "act must give an action of Discrete.4., of type int, got .99"),
    ActsFromZero: ("first action", "actions that begin at another number: act at step"),
    ChoosesZero: ("driving by hand", "driving by hand and fit: the returns differ"),
    HasNoValues: ("history and read-outs", "values must be numbers, got"),
    HasTableOfValues: ("history and read-outs", r"values must be float64 of shape \(8,\), got float64 \(8, 4\)"),
    ValuesAreHigher: ("optimistic values", "history.optimistic_values is .* but the agent says"),
    DrawsWhenRead: ("reading", "reading has changed the agent"),
    SwallowsErrors: ("refusals", "observe.* must be a ValueError or TypeError, but it was accepted"),
    CountsRefused: ("refusals", "a call that was rejected has changed the agent"),
    CountsBroken: ("failing environment", "after an error of the environment the returns are"),
    LosesSettings: ("save and load", "an agent that was loaded has other settings"),
    CountsRows: ("logged data", "rows of a table are not episodes, but learn_from has counted 1"),
}


@pytest.mark.parametrize("cls", CARELESS, ids=lambda cls: cls.__name__)
def test_mistakes_of_agents_are_found(cls):
    name, message = CARELESS[cls]
    with pytest.raises(AssertionError, match=f"(?s){message}"):
        krl.testing.AGENT_CHECKS[name](cls, easy())


def test_check_agent_names_the_check():
    with pytest.raises(AssertionError, match=r"^history and read-outs: act must give an action"):
        krl.testing.check_agent(ActsAnyhow)


class Stretched(NamedTuple):
    """The random agent's model, which loses its stream when it grows."""

    horizon: int
    actions: int
    mask: Everything
    stream: np.ndarray


for _verb, _function in (
    (verbs.choose, random_agent.choose_uniform),
    (verbs.observe, random_agent.observe_uniform),
    (verbs.read_q, random_agent.read_q_uniform),
    (verbs.read_values, random_agent.read_values_uniform),
):
    _verb.implement(Stretched)(_function)
verbs.grow.implement_plain(Stretched)(lambda model: model._replace(stream=np.ones(4, np.uint64)))


class Stretches(Careless):
    def new_model(self, spaces, stream):
        return Stretched(spaces.horizon, spaces.actions, EVERYTHING, stream)


def test_arrays_that_matter_by_their_length_are_found():
    with pytest.raises(AssertionError, match="with longer arrays the returns are"):
        krl.testing.AGENT_CHECKS["growing"](Stretches, easy())
