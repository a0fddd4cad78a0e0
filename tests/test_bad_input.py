"""What is wrong is said at once, by the name of the argument and with what would work."""

from __future__ import annotations

import math
import re

import gymnasium as gym
import numba
import numpy as np
import pytest
from gymnasium.wrappers import TransformReward

import kernelrl as krl
from plain import GREEDY, plain
from small_envs import Line

KERNEL = {**GREEDY, "bandwidth": 0.1, "representatives": None}
BOX = gym.spaces.Box(np.array([0.0, -1.0]), np.array([1.0, 2.0]), dtype=np.float64)
GOOD = [0.5, 0.5]
H, A = 3, 2


def kernel(**options):
    return krl.KernelUCBVI(**{**KERNEL, **options})


def greedy(**options):
    return krl.GreedyKernelUCBVI(**{**KERNEL, "lipschitz": 1.0, **options})


def make_env(**options):
    return gym.make("kernelrl/TwinRooms-v0", **options)


MAKE = {
    "KernelUCBVI": kernel,
    "GreedyKernelUCBVI": greedy,
    "RandomAgent": krl.RandomAgent,
    "UCBVI": lambda: krl.UCBVI(bins=3),
    "GreedyUCBVI": lambda: krl.GreedyUCBVI(bins=3),
    "OptQL": lambda: krl.OptQL(bins=3),
    "AdaptiveQL": krl.AdaptiveQL,
    "AdaMB": krl.AdaMB,
}


@pytest.fixture(params=MAKE)
def agent(request):
    """Started in BOX with H steps and A actions."""
    agent = MAKE[request.param]()
    agent.start(BOX, gym.spaces.Discrete(A), H, seed=0)
    agent.begin_episode()
    return agent


# --------------------------------------------------------------------------------------------------------------- states

BAD_STATES = {
    "nan": ([0.5, math.nan], "{name} must be finite"),
    "inf": ([math.inf, 0.5], "{name} must be finite"),
    "too few": ([0.5], r"{name} must have shape \(2,\), got shape \(1,\)"),
    "too many": ([0.5, 0.5, 0.5], r"{name} must have shape \(2,\), got shape \(3,\)"),
    "a row": ([[0.5, 0.5]], r"{name} must have shape \(2,\), got shape \(1, 2\)"),
    "a number": (0.5, r"{name} must have shape \(2,\), got shape \(\)"),
    "above": ([0.5, 2.1], r"{name} must lie in the box from \[ 0. -1.\] to \[1. 2.\], got \[0.5 2.1\]"),
    "below": ([-0.01, 0.5], "{name} must lie in the box from"),
    "words": (["a", "b"], "{name} must be an array of numbers"),
    "nothing": (None, "{name} must"),
    "ragged": ([[1.0], [1.0, 2.0]], "{name} must be an array of numbers"),
}


@pytest.mark.parametrize("which", BAD_STATES)
def test_states(agent, which):
    state, message = BAD_STATES[which]
    expected = pytest.raises((ValueError, TypeError), match=r"^" + message.format(name="state"))
    with expected:
        agent.act(state, step=0)
    with expected:
        agent.choose(state, 0)
    with expected:
        agent.observe(state, 0, 0.5, GOOD, 0)
    with pytest.raises((ValueError, TypeError), match=r"^" + message.format(name="next_state")):
        agent.observe(GOOD, 0, 0.5, state, 0)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (GOOD, r"^states must have shape \(n, 2\), got shape \(2,\)"),
        (0.5, r"^states must have shape \(n, 2\), got shape \(\)"),
        ([[0.5]], r"^states must have shape \(n, 2\), got shape \(1, 1\)"),
        ([[GOOD]], r"^states must have shape \(n, 2\)"),
        ([GOOD, [math.nan, 0.5]], r"^states must be finite, got \[nan 0.5\]"),
        ([GOOD, [0.5, 7.0], GOOD], r"^states must lie in the box .*, got \[0.5 7. \]"),
        ([["a", "b"]], "^states must be an array of numbers"),
    ],
)
def test_states_to_read(agent, states, message):
    for name in ("q_values", "values", "counts", "bonuses"):
        if hasattr(agent, name):
            with pytest.raises((ValueError, TypeError), match=message):
                getattr(agent, name)(states, step=0)


def test_no_states_are_no_mistake(agent):
    assert agent.q_values(np.zeros((0, 2)), step=0).shape == (0, A)
    assert agent.values(np.zeros((0, 2)), step=0).shape == (0,)


def test_rounding_to_single_precision_is_no_mistake():
    """0.1 as float32 is above 0.1, and 0.7 as float32 below 0.7; a state is put back onto the bound it stands for."""
    low, high = 0.1, 0.7
    agent = kernel()
    agent.start(gym.spaces.Box(low, high, (1,), np.float64), gym.spaces.Discrete(2), 2, seed=0)
    for bound in (np.float32(low), np.float32(high), low - 1e-9, high + 1e-9):
        agent.observe([bound], 0, 0.0, [bound], 0)
    seen = agent.model.store.states[:, :4, 0]
    assert seen.min() == low and seen.max() == high
    other = kernel()
    other.start(gym.spaces.Box(np.float32(low), np.float32(high), (1,)), gym.spaces.Discrete(2), 2, seed=0)
    for bound in (low, high):
        other.observe([bound], 0, 0.0, [bound], 0)
    for far in (low - 1e-6, high + 1e-6):
        with pytest.raises(ValueError, match="must lie in the box"):
            agent.choose([far], 0)


def test_rounding_is_measured_by_the_size_of_the_bounds():
    agent = kernel()
    agent.start(gym.spaces.Box(-5e3, 1e4, (1,), np.float64), gym.spaces.Discrete(2), 2, seed=0)
    agent.choose([1e4 + 1e-3], 0)
    with pytest.raises(ValueError, match="must lie in the box"):
        agent.choose([1e4 + 0.1], 0)


def test_bounds_as_large_as_they_come():
    """Nothing overflows on the way."""
    large = np.finfo(np.float32).max
    agent = kernel()
    agent.start(gym.spaces.Box(-large, large, (2,), np.float32), gym.spaces.Discrete(2), 2, seed=0)
    agent.begin_episode()
    agent.observe([3.0, 4.0], 0, 0.5, [5.0, 6.0], 0)
    assert agent.counts([[3.0, 4.0]], step=0).tolist() == [[0.01, 0.01]]  # those of the last plan
    agent.begin_episode()
    assert agent.counts([[3.0, 4.0]], step=0).tolist() == [[1.01, 0.01]]


@pytest.mark.parametrize("driver", ["python"])
@pytest.mark.parametrize("when", ["start", "next"])
def test_states_of_an_environment(driver, when):
    class Astray(Line):
        def reset(self, **options):
            x, info = super().reset(**options)
            return (x + 3 if when == "start" else x), info

        def step(self, action):
            x, *rest = super().step(action)
            return x + 3, *rest

    with pytest.raises(ValueError, match=f"^the environment's {when} state must lie in the box"):
        kernel(horizon=4, reward_range=(-1, 2)).fit(Astray(), 2, seed=0, driver=driver)


# ---------------------------------------------------------------------------------------------- steps, actions, rewards


@pytest.mark.parametrize("step", [-1, H, 10**6, 0.5, math.nan, math.inf, None, "1", [0], GOOD])
def test_steps(agent, step):
    message = f"^step must be one of 0 … {H - 1}, got "
    with pytest.raises(ValueError, match=message):
        agent.act(GOOD, step=step)
    with pytest.raises(ValueError, match=message):
        agent.choose(GOOD, step)
    with pytest.raises(ValueError, match=message):
        agent.observe(GOOD, 0, 0.5, GOOD, step)
    with pytest.raises(ValueError, match=message):
        agent.values([GOOD], step=step)
    with pytest.raises(ValueError, match=message):
        agent.q_values([GOOD], step=step)


@pytest.mark.parametrize("action", [-1, A, 0.5, math.nan, None, "0", GOOD])
def test_actions(agent, action):
    with pytest.raises(ValueError, match=f"^action must be one of 0 … {A - 1}, got "):
        agent.observe(GOOD, action, 0.5, GOOD, 0)


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, 1e150, np.array([math.nan])])
def test_rewards(agent, reward):
    with pytest.raises(ValueError, match=rf"^reward must be a finite number, got {re.escape(repr(reward))}"):
        agent.observe(GOOD, 0, reward, GOOD, 0)


@pytest.mark.parametrize("reward", [1, True, np.float32(0.25), np.int8(1), np.array(0.5), np.array([0.5]), [[0.5]]])
def test_rewards_of_any_kind_of_number(agent, reward):
    agent.observe(GOOD, 0, reward, GOOD, 0)
    agent.end_episode()
    assert agent.settings_used()["reward_range"] == (0.0, float(np.asarray(reward).reshape(())))


@pytest.mark.parametrize("reward", [None, "much", "1.0", b"1", [1.0, 2.0], [], {}, 1j])
def test_rewards_that_are_no_numbers(agent, reward):
    with pytest.raises(TypeError, match=r"^reward must be a number, got"):
        agent.observe(GOOD, 0, reward, GOOD, 0)


@pytest.mark.parametrize("terminated", ["no", None, [True, False], 2, 0.5])
def test_terminations_that_are_no_flags(agent, terminated):
    with pytest.raises(TypeError, match=r"^terminated must be True or False, got"):
        agent.observe(GOOD, 0, 0.5, GOOD, 0, terminated=terminated)
    for good in (np.bool_(False), 0, np.array([False])):
        agent.observe(GOOD, 0, 0.5, GOOD, 0, terminated=good)


def test_a_refused_termination_leaves_no_trace():
    agent = krl.OptQL(bins=3, reward_range=(1, 2))
    agent.start(BOX, gym.spaces.Discrete(A), H, seed=0)
    agent.begin_episode()
    with pytest.raises(ValueError, match="excludes 0"):
        agent.observe(GOOD, 0, 7.0, GOOD, 0, terminated=True)
    agent.end_episode()
    assert agent.settings_used()["reward_range"] == (1.0, 2.0)


def test_refused_transitions_leave_no_trace(agent):
    def state():
        return agent.q_values([GOOD, [0.2, 0.1]], step=0).tolist()

    agent.observe(GOOD, 0, 0.5, GOOD, 0)
    agent.begin_episode()
    before = state()
    for wrong in (
        (GOOD, 0, math.nan, GOOD, 0),
        (GOOD, 9, 0.5, GOOD, 0),
        (GOOD, 0, 0.5, [9.0, 9.0], 0),
        (GOOD, 0, 0.5, GOOD, H),
    ):
        with pytest.raises(ValueError):
            agent.observe(*wrong)
    agent.begin_episode()
    assert state() == before


@pytest.mark.parametrize("make", [kernel, greedy])
def test_rewards_outside_a_range_that_guarantees_rest_on(make):
    """TwinRooms' rewards are between 0 and 1, and most are 0; both drivers say the same."""
    messages = []
    for driver in ("compiled", "python"):
        agent = make(reward_range=(0.5, 1.0), bonus="joint", lipschitz=(10.0, 1.0))
        with pytest.raises(
            ValueError, match=r"^reward: 0\.0 is outside reward_range=\(0.5, 1.0\), on which .*; make the agent"
        ) as error:
            agent.fit(make_env(), 5, seed=0, driver=driver)
        assert agent.episodes == 0 and len(error.value.history) == 0
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_rewards_of_an_environment_that_are_no_numbers():
    env = TransformReward(make_env(), lambda r: math.nan)
    with pytest.raises(ValueError, match=r"^the environment's reward must be a finite number, got nan"):
        kernel().fit(env, 5, seed=0)


def test_rounding_of_rewards_is_no_mistake():
    agent = kernel(reward_range=(0.1, 0.3))
    agent.start(BOX, gym.spaces.Discrete(A), H, seed=0)
    agent.begin_episode()
    agent.observe(GOOD, 0, 0.1 + 0.2, GOOD, 0)
    agent.observe(GOOD, 0, np.float64(0.3) - np.float64(0.2), GOOD, 0)
    agent.end_episode()
    assert agent.settings_used()["reward_range"] == (0.1, 0.3)


# ----------------------------------------------------------------------------------------------------- hyper-parameters

NOT_POSITIVE = [0, -1, -0.5, math.nan, math.inf, "wide", None, [1.0, 2.0]]


@pytest.mark.parametrize("value", NOT_POSITIVE)
@pytest.mark.parametrize("make", [kernel, greedy])
@pytest.mark.parametrize("name", ["bandwidth", "regularization"])
def test_positive_numbers(make, name, value):
    with pytest.raises(ValueError, match=f"^{name} must be a finite number above 0, got {re.escape(repr(value))}"):
        make(**{name: value})


@pytest.mark.parametrize("value", NOT_POSITIVE[1:])
def test_bonus_scale(value):
    with pytest.raises(ValueError, match=r"^bonus_scale must be a finite number of at least 0, got"):
        kernel(bonus_scale=value)
    assert kernel(bonus_scale=0).bonus_scale == 0.0


def test_bandwidth_is_needed():
    """Where every sample is kept; representatives can choose their own."""
    for cls in (krl.KernelUCBVI, krl.GreedyKernelUCBVI):
        with pytest.raises(ValueError, match=r"^bandwidth: an agent that keeps every sample .* give a number"):
            cls(representatives=None, lipschitz=1.0)
    with pytest.raises(TypeError, match="positional"):
        krl.KernelUCBVI(0.1)


@pytest.mark.parametrize("make", [kernel, greedy])
@pytest.mark.parametrize("value", ["gauss", None, 3])
def test_kernel(make, value):
    with pytest.raises(ValueError, match=r"^kernel: .* is not known; use one of gaussian, compact, .*ExponentialPower"):
        make(kernel=value)


@pytest.mark.parametrize("make", [kernel, greedy])
def test_metric(make):
    with pytest.raises(ValueError, match=r"^metric: 'euclid' is not known; use one of euclidean, .*krl\.metrics\.Lp"):
        make(metric="euclid")
    with pytest.raises(TypeError, match=r"must be a compiled function.*@numba\.njit"):
        make(metric=3)
    if not numba.config.DISABLE_JIT:
        with pytest.raises(TypeError, match=r"must be a compiled function.*@numba\.njit"):
            make(metric=lambda x, y: 0.0)


@pytest.mark.parametrize("make", [kernel, greedy])
@pytest.mark.parametrize("value", ["hoeffding", None, 0])
def test_bonus(make, value):
    with pytest.raises(ValueError, match=r"^bonus: .* is not known; use one of simplified"):
        make(bonus=value)


@pytest.mark.parametrize("make", [kernel, greedy])
@pytest.mark.parametrize(
    "value", [-1, math.nan, math.inf, [1.0, -1.0, 0.0], [[1.0], [2.0]], (1.0, 2.0, 3.0), (1.0,), (1.0, -1.0), "steep"]
)
def test_lipschitz(make, value):
    with pytest.raises(
        ValueError, match=r"^lipschitz must be a number, an array of L_h of length H, a tuple \(λ_r, λ_p\)"
    ):
        make(lipschitz=value)


@pytest.mark.parametrize("make", [kernel, greedy])
@pytest.mark.parametrize("length", [0, 2, 4])
def test_lipschitz_of_another_length(make, length):
    """Known when the number of steps is."""
    agent = make(lipschitz=[1.0] * length)
    with pytest.raises(
        ValueError, match=f"^lipschitz: an array of L_h must have length 3, the horizon; got length {length}"
    ):
        agent.start(BOX, gym.spaces.Discrete(A), 3, seed=0)
    agent.lipschitz = [1.0] * 3
    agent.start(BOX, gym.spaces.Discrete(A), 3, seed=0)  # it was not started halfway


def test_lipschitz_that_overflows():
    with pytest.raises(ValueError, match=r"^lipschitz: .* overflows .* give L_h as an array"):
        kernel(lipschitz=(1.0, 1e200)).start(BOX, gym.spaces.Discrete(A), 9, seed=0)


def test_greedy_needs_lipschitz_or_representatives():
    with pytest.raises(ValueError, match=r"^lipschitz: .* can learn nothing.*give lipschitz=… or representatives=…"):
        greedy(lipschitz=None)


@pytest.mark.parametrize("value", ["always", None, 1, 0.5, True, math.nan, math.inf, [2.0]])
def test_replan(value):
    with pytest.raises(
        ValueError, match=r"^replan must be one of episode, step, doubling, auto, or a number above 1, .*; got"
    ):
        kernel(replan=value)


@pytest.mark.parametrize("value", [None, 1, "yes"])
def test_stationary(value):
    with pytest.raises(ValueError, match=r"^stationary must be True or False, got"):
        kernel(stationary=value)


@pytest.mark.parametrize("make", [kernel, greedy, krl.RandomAgent])
@pytest.mark.parametrize("value", [0, -3, 2.5, math.nan, "20", True])
def test_horizon(make, value):
    with pytest.raises(ValueError, match=r"^horizon must be a whole number of at least 1, got"):
        make(horizon=value)


@pytest.mark.parametrize("make", [kernel, greedy, krl.RandomAgent])
@pytest.mark.parametrize("value", [(1, 0), (0, 0), (0, math.inf), (math.nan, 1), (0,), (0, 1, 2), 5, None, "ab"])
def test_reward_range(make, value):
    with pytest.raises(ValueError, match=r"^reward_range must be"):
        make(reward_range=value)


def test_axes_of_very_different_widths():
    wide = gym.spaces.Box(np.array([0.0, 0.0]), np.array([1.0, 10.5]), dtype=np.float64)
    with pytest.warns(
        UserWarning, match=r'^metric: .*differ more than tenfold.*metric=krl\.metrics\.Lp\(2, scale="box"\)'
    ):
        kernel().start(wide, gym.spaces.Discrete(A), H, seed=0)
    # warnings are errors here, so these are silent
    kernel(metric=krl.metrics.Lp(2, scale="box")).start(wide, gym.spaces.Discrete(A), H, seed=0)
    kernel(metric=krl.metrics.Lp(2, scale=[1, 10])).start(wide, gym.spaces.Discrete(A), H, seed=0)
    tenfold = gym.spaces.Box(np.array([0.0, 0.0]), np.array([1.0, 10.0]), dtype=np.float64)
    kernel().start(tenfold, gym.spaces.Discrete(A), H, seed=0)
    half = gym.spaces.Box(np.array([0.0, 0.0]), np.array([1.0, math.inf]), dtype=np.float64)
    kernel().start(half, gym.spaces.Discrete(A), H, seed=0)
    krl.RandomAgent().start(wide, gym.spaces.Discrete(A), H, seed=0)


def test_box_scale_without_a_box():
    half = gym.spaces.Box(np.array([0.0, 0.0]), np.array([1.0, math.inf]), dtype=np.float64)
    with pytest.raises(ValueError, match=r'^metric: scale="box" needs a state space that is bounded'):
        kernel(metric=krl.metrics.Lp(2, scale="box")).start(half, gym.spaces.Discrete(A), H, seed=0)


# ------------------------------------------------------------------------------------------------- starting and fitting

MAKERS = pytest.mark.parametrize("make", [kernel, greedy, krl.RandomAgent])


@MAKERS
def test_spaces_of_another_kind(make):
    if not make().takes_discrete:
        with pytest.raises(TypeError, match=r"^observation_space must be a gymnasium Box of states, got Discrete\(3\)"):
            make().start(gym.spaces.Discrete(3), gym.spaces.Discrete(A), H)
    with pytest.raises(TypeError, match=r"^observation_space must be a gymnasium Box of states.*, got MultiDiscrete"):
        make().start(gym.spaces.MultiDiscrete([3, 3]), gym.spaces.Discrete(A), H)
    with pytest.raises(TypeError, match=r"^action_space must be gymnasium's Discrete( or a Box)?, got MultiDiscrete"):
        make().start(BOX, gym.spaces.MultiDiscrete([2, 2]), H)


@MAKERS
def test_environment_without_a_time_limit(make):
    with pytest.raises(ValueError, match=r"^horizon: the environment has no time limit.*\(horizon=…\)"):
        make(reward_range=(-1, 2)).fit(Line(), 3, seed=0)
    with pytest.raises(ValueError, match=r"^horizon: the environment has no time limit"):
        make().fit(make_env(max_episode_steps=-1), 3, seed=0)


@MAKERS
def test_horizon_of_start(make):
    with pytest.raises(ValueError, match=r"^horizon: the agent was made for 4 steps, got 3"):
        make(horizon=4).start(BOX, gym.spaces.Discrete(A), 3)
    with pytest.raises(ValueError, match=r"^horizon must be a whole number of at least 1, got 0"):
        make().start(BOX, gym.spaces.Discrete(A), 0)


@MAKERS
@pytest.mark.parametrize("seed", [-1, 0.5, math.nan, "7", True, [1, 2]])
def test_seed(make, seed):
    with pytest.raises(ValueError, match=r"^seed must be a whole number of at least 0, got"):
        make().start(BOX, gym.spaces.Discrete(A), H, seed=seed)
    with pytest.raises(ValueError, match=r"^seed must be a whole number of at least 0, got"):
        make().fit(make_env(), 1, seed=seed)


def test_largest_seed():
    with pytest.raises(ValueError, match=r"^seed must be below 2\*\*63, got"):
        kernel().fit(make_env(), 1, seed=2**63)
    assert len(kernel().fit(make_env(), 1, seed=2**63 - 1)) == 1


@MAKERS
@pytest.mark.parametrize("episodes", [-1, 1.5, "ten", math.inf])
def test_episodes(make, episodes):
    with pytest.raises(ValueError, match=r"^episodes must be a whole number of at least 0, got"):
        make().fit(make_env(), episodes, seed=0)


@MAKERS
def test_driver(make):
    agent = make()
    with pytest.raises(ValueError, match=r"^driver must be \"auto\", \"python\" or \"compiled\", got 'fast'"):
        agent.fit(make_env(), 3, seed=0, driver="fast")
    with pytest.raises(ValueError, match=r"^driver: only a krl.envs.CompiledEnv.*driver=\"python\""):
        agent.fit(Line(), 3, seed=0, driver="compiled")
    agent.fit(make_env(), 3, seed=1)  # a call that was refused has not started it


@MAKERS
def test_not_started(make):
    agent = make()
    for call in (
        agent.begin_episode,
        agent.end_episode,
        lambda: agent.choose(GOOD, 0),
        lambda: agent.observe(GOOD, 0, 0.5, GOOD, 0),
        lambda: agent.act(GOOD, step=0),
        lambda: agent.q_values([GOOD], step=0),
        lambda: agent.values([GOOD], step=0),
    ):
        with pytest.raises(
            RuntimeError, match=r"^this agent has not been started: call fit\(env, …\) or start\(…\) first"
        ):
            call()


def test_started_twice(agent):
    with pytest.raises(RuntimeError, match=r"^this agent has been started already: make a new one"):
        agent.start(BOX, gym.spaces.Discrete(A), H)


@MAKERS
def test_going_on_with_something_else(make):
    agent = make(reward_range=(-1, 2), horizon=4)
    agent.fit(Line(), 2, seed=6)
    with pytest.raises(
        ValueError, match=r"^seed: this agent goes on with seed 6, got 7; leave seed out, or make a new agent"
    ):
        agent.fit(Line(), 2, seed=7)
    with pytest.raises(ValueError, match=r"^env: its states are Box.*not what this agent was started with"):
        agent.fit(make_env(), 2)
    narrow = Line()
    narrow.observation_space = gym.spaces.Box(0.0, 0.9, (1,), np.float64)
    with pytest.raises(ValueError, match=r"^env: its states are"):
        agent.fit(narrow, 2)
    for env in (Line(actions=3), Line(first=1)):
        with pytest.raises(ValueError, match=r"^env: its actions are Discrete.*not what this agent was started with"):
            agent.fit(env, 2)
    assert len(agent.fit(Line(), 2, seed=6)) == 2 and agent.episodes == 4


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x, y: x[0] - y[0], "negative"),
        (lambda x, y: abs(x[0] - y[0]) * (2.0 if x[0] < y[0] else 1.0), "not symmetric"),
        (lambda x, y: np.nan if x[0] > 0.9 else abs(x[0] - y[0]), "no finite number"),
        (lambda x, y: 1.0 + abs(x[0] - y[0]), "to itself is not 0"),
        (lambda x, y: (x[0] - y[0]) ** 2, "triangle inequality"),
    ],
)
def test_what_is_no_metric_is_refused_with_the_states_that_show_it(function, words):
    with pytest.raises(ValueError, match=words) as caught:
        krl.metrics.Custom(numba.njit(function)).check(np.zeros(2), np.ones(2))
    assert caught.match(r"\[[-0-9. e]+\]")


def test_pseudometrics_are_fine():
    krl.metrics.Custom(numba.njit(lambda x, y: abs(x[0] - y[0]))).check(np.zeros(2), np.ones(2))
    krl.metrics.Folded(krl.envs.twin_rooms_fold).check(np.zeros(2), np.array([2.0, 1.0]))


def test_a_map_to_nowhere_is_refused():
    def nowhere(state, out):
        out[0], out[1] = np.nan, state[1]

    with pytest.raises(ValueError, match="which is no state"):
        krl.metrics.Folded(numba.njit(nowhere)).check(np.zeros(2), np.ones(2))


def test_a_bandwidth_in_which_no_two_states_meet():
    """A box of 100 × 40 and the bandwidth of the unit box; said once."""

    class Wide(gym.Env):
        observation_space = gym.spaces.Box(np.zeros(2), np.array([100.0, 40.0]), dtype=np.float64)
        action_space = gym.spaces.Discrete(4)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.x = self.np_random.random(2) * [100, 40]
            return self.x, {}

        def step(self, action):
            move = [(1, 0), (-1, 0), (0, 1), (0, -1)][action]
            self.x = np.clip(self.x + move + 0.1 * self.np_random.standard_normal(2), 0, [100, 40])
            return self.x, float(self.x[0] > 90), False, False, {}

    with pytest.warns(UserWarning, match=r"^bandwidth: \d+ samples have made \d+ representative states") as caught:
        plain(krl.KernelUCBVI)(bandwidth=0.025, horizon=20).fit(Wide(), 80, seed=0)
    assert len(caught) == 1
    plain(krl.KernelUCBVI)(bandwidth=5.0, representatives=1.5, horizon=20).fit(Wide(), 80, seed=0)


# --------------------------------------------------------------------------------------------------------- environments


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([], [], "observation_space: states must have at least one coordinate"),
        ([0.0, 0.0], [1.0, 1e-310], "observation_space: axis 1 is only 1e-310 wide, .*RescaleObservation"),
        ([0.0, 1.0], [1.0, 1.0 + 1e-16], None),
        ([0.0, 5.0], [1.0, 5.0], None),
    ],
)
def test_boxes(make, low, high, message):
    """Without axes, narrower than can be divided, of no width."""
    agent, box = make(), gym.spaces.Box(np.array(low), np.array(high), dtype=np.float64)
    if message is not None:
        with pytest.raises(ValueError, match=message):
            agent.start(box, gym.spaces.Discrete(A), H, seed=0)
        assert agent.episodes == 0
        return
    agent.start(box, gym.spaces.Discrete(A), H, seed=0)
    agent.begin_episode()
    agent.observe(low, 0, 0.5, high, 0)
    agent.end_episode()
    assert np.isfinite(agent.values([low, high], step=0)).all()


@pytest.mark.parametrize("make", [kernel, greedy, krl.RandomAgent])
def test_boxes_without_end(make):
    """Infinite on some sides, and as wide as numbers go."""
    far = gym.spaces.Box(-1.7e308, 1.7e308, (1,), np.float64)
    with pytest.raises(
        ValueError, match=r"observation_space: axis 0 reaches from -1.7e\+308 to 1.7e\+308; give bounds"
    ):
        make().start(far, gym.spaces.Discrete(A), H, seed=0)
    box = gym.spaces.Box(np.array([-np.inf, 0.0, -1e290]), np.array([np.inf, np.inf, 1e290]), dtype=np.float64)
    agent = make()
    agent.start(box, gym.spaces.Discrete(A), H, seed=0)
    for x in ([0.0, 0.0, 0.0], [1e30, 1e30, -1e30], [-1e290, 1e290, 1e290]):
        agent.begin_episode()
        agent.observe(x, 0, 0.5, x, 0)
        agent.end_episode()
        assert not np.isnan(agent.values([x], step=0)).any()
    with pytest.raises(ValueError, match="must be finite"):
        agent.choose([np.inf, 0.0, 0.0], 0)


@pytest.mark.parametrize("make", [krl.RandomAgent, lambda: krl.OptQL(bins=3)])
def test_environments_by_their_id(make):
    assert len(make().fit("kernelrl/TwinRooms-v0", 2, seed=0)) == 2
    with pytest.raises(ValueError, match=r'^env: there is no environment "kernelrl/TwinRoms-v0"'):
        make().fit("kernelrl/TwinRoms-v0", 2)
    with pytest.raises(ValueError, match=r"^env: .*nomod"):
        make().fit("nomod:X-v0", 1)
    with pytest.raises(TypeError, match=r"^env must be a Gymnasium environment or the id of one, got 5"):
        make().fit(5, 2)
    with pytest.raises(TypeError, match=r"^env: agents learn from one environment at a time"):
        make().fit(gym.make_vec("CartPole-v1", num_envs=2), 2)
