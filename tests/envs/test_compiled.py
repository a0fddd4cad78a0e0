"""A user's own compiled environment: what `CompiledEnv` does with it, and what it says when something is wrong."""

from __future__ import annotations

import copy
import math
import pickle
from typing import NamedTuple

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import OrderEnforcing, TimeLimit

import kernelrl as krl
from kernelrl.agents import fitting
from kernelrl.envs.wrapping import compiled_dynamics, is_shipped, why_not_compiled
from kernelrl.random import normal, seed_stream, uniform
from plain import plain
from small_envs import Counting

compiling = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing is compiled with the JIT disabled")
BOX = gym.spaces.Box(0.0, 1.0, (2,), np.float64)


class Walk(NamedTuple):
    """A walk in the unit square by steps out of a table; `trouble` is the level of state[0] from which on it fails."""

    moves: np.ndarray  # (A, 2)
    noise: float
    trouble: float = 2.0
    kind: int = 0


@krl.envs.reset.implement(Walk)
def start(walk, number, random, x):  # argument names are the user's own
    x[0], x[1] = 0.1 * uniform(random), 0.5


@krl.envs.advance.implement(Walk)
def step(walk, random, x, a, y):
    for j in range(2):
        y[j] = min(max(x[j] + walk.moves[a, j] + walk.noise * normal(random), 0.0), 1.0)
    reward = y[0]
    if x[0] > walk.trouble:
        if walk.kind == 0:
            y[1] = math.nan
        elif walk.kind == 1:
            y[1] = 1.5
        else:
            reward = math.nan
    return reward, y[0] > 0.95, False


class WalkEnv(krl.envs.CompiledEnv):
    def __init__(self, first=0, **options):
        moves = np.array([[0.1, 0.0], [-0.1, 0.0], [0.0, 0.1]])
        super().__init__(
            Walk(moves, **{"noise": 0.02, **options}),
            observation_space=BOX,
            action_space=gym.spaces.Discrete(3, start=first),
        )


def limited(**options):
    return TimeLimit(WalkEnv(**options), 25)


def agent(**options):
    return krl.OptQL(bins=4, bonus_scale=0.05, **options)


def test_gymnasium_and_our_own_check_are_content():
    check_env(WalkEnv(), skip_render_check=True)
    krl.testing.check_environment(limited())
    krl.testing.check_environment(limited(first=3))


@pytest.mark.parametrize("first", [0, 4])
def test_both_drivers(first):
    histories = [agent().fit(limited(first=first), 40, seed=1, driver=driver) for driver in ("compiled", "python")]
    assert np.array_equal(histories[0].returns, histories[1].returns)
    assert np.array_equal(histories[0].lengths, histories[1].lengths)
    assert histories[0].lengths.min() < 25
    assert np.array_equal(agent().fit(limited(first=0), 40, seed=1).returns, histories[0].returns)


def test_auto_is_compiled(monkeypatch):
    def refuse(self, action):
        raise AssertionError("the Python driver was used")

    monkeypatch.setattr(krl.envs.CompiledEnv, "step", refuse)
    agent().fit(OrderEnforcing(limited()), 3, seed=0)
    with pytest.raises(AssertionError, match="Python driver"):
        agent().fit(Counting(limited()), 3, seed=0)


def test_what_is_evaluated():
    learner = agent()
    learner.fit(limited(), 50, seed=0)
    found = learner.evaluate(limited(), 20, seed=3)
    assert np.array_equal(found.returns, learner.evaluate(Counting(limited()), 20, seed=3).returns)
    with pytest.raises(ValueError, match="the environment's next state must be finite"):
        learner.evaluate(limited(trouble=0.0), 5)


@pytest.mark.parametrize("cls", [krl.OptQL, krl.KernelUCBVI])
@pytest.mark.parametrize("driver", ["compiled", "python"])
@pytest.mark.parametrize(
    ("kind", "message"),
    [(0, "next state.* must be finite"), (1, "next state.* must lie in the box"), (2, "reward.* must be a finite")],
)
def test_dynamics_that_fail(cls, driver, kind, message):
    """The agent is as before the episode; what was played before is what is played without the trouble."""

    def new():
        return agent() if cls is krl.OptQL else plain(krl.KernelUCBVI)(bandwidth=0.2, bonus_scale=0.05)

    learner, twin = new(), new()
    with pytest.raises(ValueError, match=f"^the environment's {message}") as caught:
        learner.fit(limited(trouble=0.5, kind=kind), 500, seed=2, driver=driver)
    played = len(caught.value.history)
    assert learner.episodes == played > 0
    history = twin.fit(limited(), played, seed=2)
    assert np.array_equal(history.returns, caught.value.history.returns)
    assert np.array_equal(learner.fit(limited(), 10).returns, twin.fit(limited(), 10).returns)
    states = np.random.default_rng(0).random((5, 2))
    for h in (0, 12):
        assert np.array_equal(learner.q_values(states, h), twin.q_values(states, h))


def test_only_ours_are_trusted():
    assert not is_shipped(limited()) and is_shipped(gym.make("kernelrl/Ramp-v0"))
    learner = agent()
    learner.start(BOX, gym.spaces.Discrete(3), 25, seed=0)
    assert fitting.recovery_for(learner, limited(), compiled_dynamics(limited())) is not None


def test_a_subclass_with_a_step_or_reset_of_its_own_is_obeyed():
    class Lazy(WalkEnv):
        def step(self, action):
            x, _, *rest = super().step(action)
            return x, 0.25, *rest

    class Late(WalkEnv):
        def reset(self, **options):
            return super().reset(**options)

    assert why_not_compiled(Lazy()) == "Lazy has a step of its own"
    assert why_not_compiled(Late()) == "Late has a reset of its own"
    history = krl.RandomAgent(horizon=4).fit(Lazy(), 3, seed=0)
    assert history.returns.tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(ValueError, match=r'^driver: .*but Lazy has a step of its own.*driver="python"'):
        krl.RandomAgent(horizon=4).fit(Lazy(), 3, driver="compiled")
    patched = WalkEnv()
    patched.step = Lazy().step
    assert why_not_compiled(patched) == "WalkEnv has a step of its own"
    with pytest.raises(ValueError, match=r"but CartPoleEnv is no krl\.envs\.CompiledEnv"):
        krl.RandomAgent().fit("CartPole-v1", 1, driver="compiled")


@pytest.mark.parametrize("duplicate", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_copies_share_nothing(duplicate):
    env = limited()
    env.reset(seed=1)
    env.step(0)
    twin = duplicate(env)
    assert twin.unwrapped.dynamics.moves is not env.unwrapped.dynamics.moves
    for a in (0, 2, 1):
        assert np.array_equal(env.step(a)[0], twin.step(a)[0])


def test_state_can_be_set():
    env = WalkEnv(noise=0.0)
    with pytest.raises(gym.error.ResetNeeded, match=r"reset\(\)"):
        _ = env.state
    env.state = [0.4, 0.4]
    assert env.step(0)[0] == pytest.approx([0.5, 0.4])
    env.state[:] = 7.0  # a copy
    assert env.state == pytest.approx([0.5, 0.4])
    with pytest.raises(ValueError, match=r"state must have shape \(2,\), got shape \(3,\)"):
        env.state = [0.1, 0.2, 0.3]


def test_numbers_of_float_fields_are_floats():
    assert type(WalkEnv(noise=0).dynamics.noise) is float
    assert type(WalkEnv(noise=np.float32(0.5)).dynamics.noise) is float
    assert type(WalkEnv(kind=1).dynamics.kind) is int


@pytest.mark.parametrize("action", [-1, 3, 1.5, None])
def test_bad_actions(action):
    env = WalkEnv()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^action must be one of 0 … 2; got"):
        env.step(action)


def test_a_stream_that_is_not_seeded_is_no_harm():
    """`start` leaves it to the caller; an episode is a function of its seed all the same."""
    env = limited()
    starts = [env.reset(seed=seed)[0][0] for seed in (5, 6, 5)]
    assert starts[0] == starts[2] != starts[1]
    stream = np.zeros(4, np.uint64)
    seed_stream(stream, 5)
    assert starts[0] == 0.1 * uniform(stream)


# ----------------------------------------------------------------------------------------------- what is wrong, is said


class Bare(NamedTuple):
    level: float


class Half(NamedTuple):
    level: float


@krl.envs.reset.implement(Half)
def start_half(env, seed, stream, state):
    state[0] = 0.5


def make(dynamics, space=BOX, actions=None):
    return krl.envs.CompiledEnv(dynamics, observation_space=space, action_space=actions or gym.spaces.Discrete(2))


def test_missing_verbs():
    with pytest.raises(TypeError, match=r"^Bare lacks the verb reset: put @krl\.envs\.reset\.implement\(Bare\) above"):
        make(Bare(0.5))
    with pytest.raises(TypeError, match=r"^Half lacks the verb advance: .* return reward, terminated, truncated$"):
        make(Half(0.5))
    with pytest.raises(TypeError, match=r"^Half does not implement advance: .*@advance\.implement\(Half\)"):
        krl.envs.advance(Half(0.5), None, None, 0, None)


def test_too_few_arguments():
    with pytest.raises(TypeError, match=r"reset\.implement\(Bare\): begin must take 4 arguments, \(env, seed, str"):

        @krl.envs.reset.implement(Bare)
        def begin(env, state):
            state[0] = 0.0


@pytest.mark.parametrize(
    ("dynamics", "message"),
    [
        (3.0, r"^dynamics must be a NamedTuple of the numbers and arrays .*, got 3\.0"),
        ((1.0, 2.0), r"^dynamics must be a NamedTuple"),
        (Walk("text", 0.1), r"^dynamics: Walk\.moves must be a number or a NumPy array of numbers, .*got 'text'"),
        (Walk([0.1], 0.1), r"^dynamics: Walk\.moves must be .*got \[0\.1\]"),
        (Walk(np.array([None]), 0.1), r"^dynamics: Walk\.moves must be "),
        (Walk(Bare(None), 0.1), r"^dynamics: Walk\.moves\.level must be .*got None"),
    ],
)
def test_dynamics_that_cannot_be_compiled(dynamics, message):
    with pytest.raises(TypeError, match=message):
        make(dynamics)


@pytest.mark.parametrize(
    ("space", "actions", "error", "message"),
    [
        (
            gym.spaces.Box(0, 1, (2,)),
            None,
            ValueError,
            r"dtype=np\.float64, as compiled .*, got Box\(.*float32",
        ),
        (gym.spaces.Box(0, 1, (2, 1), np.float64), None, ValueError, r"a Box of shape \(d,\)"),
        (gym.spaces.MultiBinary(2), None, TypeError, "observation_space must be a Box or a Discrete space"),
        (BOX, BOX, TypeError, r"action_space must be Discrete, or a bounded Box of shape \(1,\), got Box"),
    ],
)
def test_spaces(space, actions, error, message):
    with pytest.raises(error, match=message):
        make(WalkEnv().dynamics, space, actions)


def wrong_env(advance):
    """An environment with that function for `advance`."""

    class Wrong(NamedTuple):
        level: float

    krl.envs.reset.implement(Wrong)(start_half)
    krl.envs.advance.implement(Wrong)(advance)
    return TimeLimit(make(Wrong(0.5), gym.spaces.Box(0.0, 1.0, (1,), np.float64)), 5)


def makes_an_array(env, stream, state, action, next_state):
    next_state[:] = state + 0.1
    return 0.0, False, False


def names_nothing(env, stream, state, action, next_state):
    next_state[0] = env.no_such_field
    return 0.0, False, False


def returns_two(env, stream, state, action, next_state):
    next_state[0] = state[0]
    return 0.0, False


@compiling
@pytest.mark.parametrize(
    ("advance", "message"),
    [
        (makes_an_array, "^advance of Wrong cannot be compiled: it makes an array, .* next_state"),
        (names_nothing, "^advance of Wrong cannot be compiled: Unknown attribute 'no_such_field'.*test_compiled.py"),
        (returns_two, r"^advance of Wrong must return \(reward, terminated, truncated\), got \(0\.0, False\)"),
    ],
)
def test_functions_that_cannot_be_compiled(advance, message):
    env = wrong_env(advance)
    for call in (
        lambda: env.reset(seed=0),
        lambda: krl.RandomAgent().fit(env, 1, seed=0),
        lambda: krl.testing.check_environment(env),
    ):
        with pytest.raises(TypeError, match=message):
            call()


def test_a_verb_is_not_replaced():
    """Compiled code of this process would go on with the old one; the same again, as a cell run twice, is no harm."""
    krl.envs.reset.implement(Half)(start_half)
    with pytest.raises(TypeError, match=r"reset\.implement\(Half\): start_half implements it already.* run the cell"):
        krl.envs.reset.implement(Half)(start)


def test_a_function_that_numba_has_compiled_may_be_a_verb():
    class Fading(NamedTuple):
        level: float

    krl.envs.reset.implement(Fading)(start_half)

    @krl.envs.advance.implement(Fading)
    @numba.njit
    def advance_fading(env, stream, state, action, next_state):
        next_state[0] = env.level * state[0]
        return 1, False, False

    env = TimeLimit(make(Fading(0.5), gym.spaces.Box(0.0, 1.0, (1,), np.float64)), 3)
    krl.testing.check_environment(env)
    assert env.reset(seed=0)[0] == [0.5] and env.step(0)[0] == [0.25]
