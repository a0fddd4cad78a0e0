"""Continuous actions: what goes in and out, both drivers, files, and errors that name the remedy."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest

import kernelrl as krl
from walks import pushed

OIL = "kernelrl/Oil-v0"
STATES = np.linspace(0.05, 0.95, 7)[:, None]
AGENTS = [krl.KernelUCBVI, krl.GreedyKernelUCBVI]
OPTIONS = {
    "auto": {},
    "given bandwidth": {"bandwidth": 0.1, "action_bins": 9},
    "given σ_A": {"bandwidth": 0.1, "action_bins": 9, "action_bandwidth": 0.2, "action_metric": "manhattan"},
    "unrelated": {"action_bandwidth": None, "action_bins": 5},
    "per step": {"stationary": False, "action_bins": 5},
}
every_agent = pytest.mark.parametrize("cls", AGENTS)
every_option = pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)


def box(low=-1.0, high=1.0, shape=(1,), dtype=np.float32):
    return gym.spaces.Box(low, high, shape, dtype)


def started(cls=krl.KernelUCBVI, action_space=None, **options):
    agent = cls(**options)
    agent.start(box(0.0, 1.0, (2,)), box() if action_space is None else action_space, 5, 0)
    return agent


def same(one, other):
    for h in range(5):
        assert np.array_equal(one.q_values(STATES, h), other.q_values(STATES, h))
    assert all(np.array_equal(one.act(x, 2), other.act(x, 2)) for x in STATES)


@every_option
@every_agent
def test_drivers_parts_and_files(cls, options, tmp_path):
    whole = cls(**options)
    returns = whole.fit(OIL, 60, seed=3, progress=False).returns
    by_python = cls(**options)
    assert np.array_equal(by_python.fit(OIL, 60, seed=3, driver="python", progress=False).returns, returns)
    same(whole, by_python)
    parts = cls(**options)
    parts.fit(OIL, 35, seed=3, progress=False)
    parts.save(tmp_path / "a.krl")
    loaded = krl.load(tmp_path / "a.krl")
    for agent in (parts, loaded):
        assert np.array_equal(agent.fit(OIL, 25, progress=False).returns, returns[35:])
        same(agent, whole)
    assert parts.settings_used() == whole.settings_used()


@every_agent
@pytest.mark.parametrize(("shape", "dtype"), [((1,), np.float32), ((2, 1), np.float64), ((), np.float32)])
def test_actions_have_the_shape_and_type_of_the_box(cls, shape, dtype):
    space = box(shape=shape, dtype=dtype)
    agent = started(cls, space, action_bins=3)
    agent.begin_episode()
    for action in (agent.choose([0.5, 0.5], 0), agent.act([0.5, 0.5], 0)):
        assert space.contains(action) and action.dtype == dtype and action.shape == shape
        action[...] = 9.0  # it is the caller's own
    assert space.contains(agent.act([0.5, 0.5], 0))
    number = max(1, int(np.prod(shape)))
    assert agent.action_net.shape == (3**number, number)
    assert agent.q_values([[0.5, 0.5]], 0).shape == (1, 3**number)


def test_the_net():
    agent = started(action_space=gym.spaces.Box(np.array([-2.0, 1.0], np.float32), np.array([2.0, 1.0], np.float32)))
    assert agent.action_net[:, 1].tolist() == [1.0] * 63  # an axis without width has one value
    assert agent.action_net[[0, 31, -1], 0].tolist() == [-2.0, 0.0, 2.0]
    agent = started(action_space=box(shape=(2,)), action_bins=(2, 3))
    assert agent.action_net.tolist() == [[-1, -1], [-1, 0], [-1, 1], [1, -1], [1, 0], [1, 1]]
    assert agent.settings_used()["action_bins"] == (2, 3)


def test_discrete_actions_are_their_own_net():
    agent = started(action_space=gym.spaces.Discrete(3, start=5))
    assert agent.action_net.tolist() == [[5], [6], [7]]


def test_other_actions_count_as_the_nearest_of_the_net():
    one, other = (started(action_bins=3, bandwidth=0.1, representatives=0.1) for _ in range(2))
    for agent, action in ((one, 0.4), (other, 0.0)):
        agent.begin_episode()
        agent.observe([0.5, 0.5], np.array([action], np.float32), 1.0, [0.6, 0.5], 0)
        agent.end_episode()
        agent.begin_episode()
    assert np.array_equal(one.counts([[0.5, 0.5]], 0), other.counts([[0.5, 0.5]], 0))


def test_related_actions_know_of_each_other():
    agent = started(action_bins=5, bandwidth=0.1, representatives=0.1, action_bandwidth=0.3)
    agent.begin_episode()
    agent.observe([0.5, 0.5], np.zeros(1, np.float32), 1.0, [0.6, 0.5], 0)
    agent.end_episode()
    agent.begin_episode()
    K = np.exp(-0.5 * ((np.arange(5) - 2) / 4 / 0.3) ** 2)
    np.testing.assert_allclose(agent.counts([[0.5, 0.5]], 0)[0], 0.01 + K)


def test_ordered_discrete_actions():
    agent = started(action_space=gym.spaces.Discrete(3), bandwidth=0.1, representatives=0.1, action_metric="euclidean")
    assert agent.settings_used()["action_bandwidth"] == 0.05 * 2.0
    agent = started(action_space=gym.spaces.Discrete(3), bandwidth=0.1, representatives=0.1)
    assert agent.settings_used()["action_bandwidth"] == "auto"  # which relates none


@every_agent
def test_it_learns(cls):
    """The best that a constant push can do, and more."""
    agent = cls()
    agent.fit(pushed(), 300, seed=1, progress=False)
    constant = max(play(action) for action in np.linspace(-1, 1, 9))
    assert agent.evaluate(pushed(), 50).mean > constant - 0.05 * abs(constant)


def play(action, episodes=50):
    env, total = pushed(), 0.0
    for k in range(episodes):
        env.reset(seed=k)
        over = False
        while not over:
            _, reward, terminated, truncated, _ = env.step(np.array([action], np.float32))
            total, over = total + reward, terminated or truncated
    return total / episodes


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, "many", (), (3, 1), True, None, np.nan])
def test_bins_that_are_none(bins):
    with pytest.raises(ValueError, match=r"^action_bins must be a whole number of at least 2"):
        krl.KernelUCBVI(action_bins=bins)


def test_as_many_bins_as_axes():
    with pytest.raises(ValueError, match=r"^action_bins: 3 numbers were given for 2 axes"):
        started(action_space=box(shape=(2,)), action_bins=(3, 3, 3))


def test_a_net_larger_than_memory():
    with pytest.raises(ValueError, match=r"^action_bins: 100 × 100 × 100 are 1,000,000 actions"):
        started(action_space=box(shape=(3,)), action_bins=100)


@pytest.mark.parametrize("bound", [np.inf, -np.inf])
def test_unbounded_actions(bound):
    low, high = min(-1.0, bound), max(1.0, bound)
    with pytest.raises(ValueError, match=r"^action_space: axis 0 reaches from .*TransformAction"):
        started(action_space=box(low, high))


def test_numbers_that_are_too_far():
    with pytest.raises(ValueError, match=r"^action_space: axis 0 reaches from -1e\+308"):
        started(action_space=box(-1e308, 1e308, dtype=np.float64))


def test_fewer_numbers_than_actions():
    with pytest.raises(ValueError, match=r"^action_space: .* has fewer than 63 different actions of its type"):
        started(action_space=box(1e8, 1e8 + 16))


@pytest.mark.parametrize(("cls", "axes"), [(krl.KernelUCBVI, 9), (krl.RandomAgent, 11)])
def test_many_axes(cls, axes):
    agent = started(cls, box(shape=(axes,)))
    assert agent.action_net.shape == (2**axes, axes)


@pytest.mark.parametrize(
    ("cls", "axes"), [(krl.GreedyKernelUCBVI, 17), (krl.RandomAgent, 17), (krl.AdaptiveQL, 8), (krl.AdaMB, 8)]
)
def test_too_many_axes(cls, axes):
    with pytest.raises(ValueError, match=r"^action_space: with so many axes"):
        started(cls, box(shape=(axes,)))


def test_more_actions_than_can_be_related():
    with pytest.raises(ValueError, match=r"^action_bins: weights between 5,000 actions"):
        started(action_bins=5000)
    assert started(action_bins=5000, action_bandwidth=None).spaces.actions == 5000


def test_bins_of_ones_own_agent():
    class Mine(krl.RandomAgent, abstract=True):
        action_bins = "many"

    with pytest.raises(ValueError, match=r"^action_bins must be a whole number"):
        started(Mine)


@pytest.mark.parametrize("metric", ["x", 3])
def test_metrics_of_actions_that_are_none(metric):
    with pytest.raises((TypeError, ValueError), match=r"^action_metric: "):
        krl.KernelUCBVI(action_metric=metric)


class Pushed32(krl.envs.CompiledEnv):
    """Oil's dynamics with an action in single precision."""

    def __init__(self):
        dynamics = gym.make(OIL).unwrapped.dynamics
        super().__init__(dynamics, observation_space=box(0.0, 1.0, dtype=np.float64), action_space=box(0.0, 1.0))


@pytest.mark.parametrize("cls", [krl.KernelUCBVI, krl.RandomAgent, krl.AdaptiveQL, krl.AdaMB])
def test_single_precision_is_the_same_compiled(cls):
    one, other = cls(horizon=5), cls(horizon=5)
    a, b = (
        agent.fit(gym.wrappers.TimeLimit(Pushed32(), 5), 40, seed=0, driver=driver, progress=False).returns
        for agent, driver in ((one, "compiled"), (other, "python"))
    )
    assert np.array_equal(a, b)


@pytest.mark.parametrize("make", [krl.RandomAgent, krl.AdaptiveQL, krl.AdaMB, lambda: krl.KernelUCBVI(action_bins=5)])
def test_our_own_checks(make):
    krl.testing.check_agent(make, env=gym.make(OIL))


@pytest.mark.parametrize("env", [OIL, "Pendulum-v1"])
def test_our_own_checks_of_environments(env):
    krl.testing.check_environment(env)


def test_whole_numbers_in_a_box():
    with pytest.raises(TypeError, match=r"^action_space must be a Box of floats"):
        started(action_space=gym.spaces.Box(0, 3, (1,), np.int64))


@pytest.mark.parametrize("space", [gym.spaces.MultiDiscrete([2, 3]), gym.spaces.MultiBinary(3)])
def test_actions_of_other_kinds(space):
    with pytest.raises(TypeError, match=r"^action_space must be gymnasium's Discrete or a Box, got .*TransformAction"):
        started(action_space=space)


@pytest.mark.parametrize("cls", [krl.UCBVI, krl.OptQL, krl.GreedyUCBVI])
def test_agents_that_take_discrete_actions_only(cls):
    with pytest.raises(TypeError, match=r"^action_space must be gymnasium's Discrete, got Box"):
        started(cls)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.array([np.nan]), "^action must lie in the box"),
        (np.array([1.1]), "^action must lie in the box"),
        (np.array([0.0, 0.0]), r"^action must have shape \(1,\), got shape \(2,\)"),
        (0, r"^action must have shape \(1,\)"),
        ("left", "^action must be an array of numbers"),
    ],
)
def test_actions_that_are_none(action, message):
    agent = started()
    agent.begin_episode()
    with pytest.raises((TypeError, ValueError), match=message):
        agent.observe([0.5, 0.5], action, 0.0, [0.5, 0.5], 0)


@pytest.mark.parametrize(
    "space", [box(-1.0, 0.5), box(shape=(2,)), box(dtype=np.float64), gym.spaces.Discrete(3)], ids=str
)
def test_another_action_space(space):
    agent = krl.KernelUCBVI(action_bins=3)
    agent.fit(pushed(), 2, seed=0, progress=False)
    env = pushed()
    env.unwrapped.action_space = space
    with pytest.raises(ValueError, match=r"^env: its actions are .* not what this agent was started with"):
        agent.fit(env, 1, progress=False)


@pytest.mark.parametrize("value", [0.0, -1.0, np.inf, "wide"])
def test_bandwidths_of_actions_that_are_none(value):
    with pytest.raises(ValueError, match=r"^action_bandwidth"):
        krl.KernelUCBVI(action_bandwidth=value)


def test_kernels_that_are_no_products():
    with pytest.raises(ValueError, match=r"^action_bandwidth: only the Gaussian kernel"):
        krl.KernelUCBVI(kernel="uniform", action_bandwidth=0.1)
    agent = started(kernel="uniform", bandwidth=0.1)
    assert agent.settings_used()["action_bandwidth"] == "auto" and not len(agent.model.settings.action_weights)


def test_guarantees():
    given = {"bandwidth": 0.1, "lipschitz": (1.0, 1.0), "reward_range": (0, 1)}
    with pytest.raises(ValueError, match=r"^action_bandwidth: the bonus Full"):
        krl.KernelUCBVI(bonus=krl.bonuses.Full(0.1), action_bandwidth=0.1, **given)
    with pytest.raises(ValueError, match=r"^action_metric: the bonus Joint"):
        krl.KernelUCBVI(bonus=krl.bonuses.Joint(0.1), action_bandwidth=0.1, **given)
    agent = started(bonus=krl.bonuses.Joint(0.1), action_bins=3, **given)
    assert not len(agent.model.settings.action_weights)  # by a rule nothing is related
    agent = started(
        bonus=krl.bonuses.Joint(0.1), action_bins=3, action_bandwidth=0.1, action_metric="euclidean", **given
    )
    assert len(agent.model.settings.action_weights) == 3


def test_a_certificate_on_a_net():
    env = gym.make(OIL, form="quadratic")
    L = env.unwrapped.lipschitz(5)
    agent = krl.KernelUCBVI(
        bandwidth=0.1, bonus=krl.bonuses.Joint(0.1), lipschitz=L, reward_range=(0, 1), action_bins=5,
        action_bandwidth=0.2, action_metric="euclidean", metric="euclidean",
    )  # fmt: skip
    agent.fit(env, 50, seed=0, progress=False)
    net = gym.make(OIL, form="quadratic", actions=5)
    lower, upper = agent.certificate([0.5])
    assert lower <= krl.envs.solve(net).start_value <= upper


@pytest.mark.parametrize(("metric", "holds_for_all"), [("auto", False), ("euclidean", True)])
def test_upper_bounds_of_all_actions(metric, holds_for_all):
    """No noise and hardly any smoothing, so that estimates are exact: cones alone must bound what lies between."""
    env = gym.make(OIL, form="quadratic", steepness=10.0)
    agent = krl.KernelUCBVI(
        bandwidth=1e-3, regularization=1e-9, bonus_scale=0.0, lipschitz=env.unwrapped.lipschitz(5), metric="euclidean",
        representatives=0.0, reward_range=(0, 1), action_bins=4, action_bandwidth=None, action_metric=metric,
    )  # fmt: skip
    agent.fit(env, 100, seed=0, progress=False)
    net, best = (krl.envs.solve(gym.make(OIL, form="quadratic", steepness=10.0, actions=n)) for n in (4, None))
    found = float(agent.values([[0.5]], 0)[0])
    assert found >= net.start_value - 1e-6
    assert (found >= best.start_value - 1e-6) == holds_for_all
    assert np.ptp(agent.q_values([[0.5]], 0)) <= env.unwrapped.lipschitz(5)[0] or not holds_for_all


@pytest.mark.parametrize("cls", AGENTS)
def test_upper_bounds_in_a_box_of_two_axes(cls, tmp_path):
    """Branch and bound: V is above the best action of the net, by at most L_h·ε; both go into files."""
    L = 0.7
    options = {"bandwidth": 0.2, "lipschitz": L, "action_bins": (3, 2), "action_metric": "manhattan"}
    agent = started(cls, action_space=box(shape=(2,)), reward_range=(0, 1), **options)
    rng = np.random.default_rng(0)
    for _ in range(40):
        agent.begin_episode()
        x = rng.random(2)
        for h in range(5):
            y = rng.random(2)
            agent.observe(x, agent.choose(x, h), rng.random(), y, h)
            x = y
        agent.end_episode()
    agent.save(tmp_path / "a.krl")
    states = rng.random((20, 2))
    for one in (agent, krl.load(tmp_path / "a.krl")):
        values, best = one.values(states, 3), one.q_values(states, 3).max(axis=1)
        if cls is krl.KernelUCBVI:
            assert (values >= np.minimum(2.0, best)).all() and (values <= best + L * 1.5 + 2e-3).all()
            assert (values > best + 0.1).any()
        assert np.array_equal(values, agent.values(states, 3))


@pytest.mark.parametrize(
    ("space", "wrapper"),
    [
        (gym.spaces.Dict({"x": box()}), "FlattenObservation"),
        (gym.spaces.Tuple([box(), box()]), "FlattenObservation"),
        (gym.spaces.MultiDiscrete([2, 2]), "FlattenObservation"),
        (gym.spaces.Text(5), "TransformObservation"),
        (gym.spaces.Box(0, 255, (8, 8, 3), np.uint8), "TransformObservation"),
    ],
    ids=str,
)
def test_states_of_other_kinds(space, wrapper):
    with pytest.raises((TypeError, ValueError), match=f"^observation_space.*{wrapper}"):
        krl.KernelUCBVI().start(space, box(), 5, 0)


def test_an_environment_that_clips_actions():
    """`ClipAction` says that any action is possible, so the box has to be given."""
    clipped = gym.wrappers.ClipAction(pushed())
    with pytest.raises(ValueError, match=r"^action_space: axis 0 reaches from -inf to inf"):
        krl.KernelUCBVI().fit(clipped, 1, seed=0, progress=False)
    bounded = gym.wrappers.TransformAction(clipped, lambda action: action, box(-2.0, 2.0))
    agent = krl.KernelUCBVI(action_bins=3)
    agent.fit(bounded, 3, seed=0, progress=False)
    assert agent.action_net.tolist() == [[-2.0], [0.0], [2.0]]


def test_bounds_between_too_many_actions():
    with pytest.raises(ValueError, match=r"^action_bins: bounds between 4,000 actions .* leave out action_metric"):
        started(
            bandwidth=0.1, lipschitz=1.0, action_bins=4000, action_bandwidth=None, action_metric="euclidean",
            reward_range=(0, 1),
        )  # fmt: skip
