"""The environments of the literature against plain NumPy, and as Gymnasium, agents and users meet them."""

from __future__ import annotations

import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from kernelrl.envs import Ambulance, Oil, PBall2D, PuddleWorld, Ramp, SquareWorld, TwinRooms
from kernelrl.envs.interface import advance
from kernelrl.jit.stream import new_stream
from naive import literature as naive
from naive.stream import Stream

# Class, arguments, steps of an episode.
CASES = [
    (SquareWorld, {}, 20),
    *((PBall2D, {"level": level}, 30) for level in (1, 2, 3, 4, 5)),
    *((Oil, {"form": form, "steepness": 10.0, "actions": 7}, 5) for form in ("laplace", "quadratic", "noise")),
    *((Ambulance, {"arrivals": kind, "alpha": 0.25, "actions": 9}, 5) for kind in ("beta", "uniform", "shifting")),
    *((PuddleWorld, {"noise": noise}, 50) for noise in ("shared", "independent")),
]
ONE_OF_EACH = [CASES[i] for i in (0, 4, 8, 11, 12)]
CONTINUOUS = [
    (Oil, {"form": "laplace", "steepness": 10.0}, 5),
    (Oil, {"form": "noise"}, 5),
    (Ambulance, {"arrivals": "shifting"}, 5),
]


def name_of(case):
    return "-".join([case[0].__name__, *map(str, case[1].values())])


def made(case, **options):
    return gym.make(f"kernelrl/{case[0].__name__}-v0", **case[1], **options)


def plain_version(case):
    """The naive version, and a function from an action of the environment to one of it."""
    cls, options, _ = case
    n = options.get("actions")
    kept = {key: value for key, value in options.items() if key != "actions"}
    return getattr(naive, cls.__name__)(**kept), lambda a: float(a[0]) if np.ndim(a) else a / (n - 1) if n else a


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_gymnasium_and_our_own_check_are_content(case):
    env = made(case, render_mode="rgb_array")
    assert type(env.unwrapped) is case[0] is getattr(krl.envs, case[0].__name__)
    assert env.spec.max_episode_steps == case[2]
    check_env(env.unwrapped)
    krl.testing.check_environment(made(case))


@pytest.mark.parametrize("case", CASES + CONTINUOUS, ids=name_of)
def test_episodes_are_those_of_the_naive_version(case):
    env, (simple, physical) = made(case), plain_version(case)
    rng = np.random.default_rng(1)
    for seed in range(40):
        x, _ = env.reset(seed=seed)
        stream = Stream.seeded(seed)
        z = simple.start(stream)
        np.testing.assert_allclose(x, z, rtol=0, atol=1e-14)
        over = truncated = False
        while not (over or truncated):
            space = env.action_space
            a = rng.random(1) if isinstance(space, gym.spaces.Box) else int(rng.integers(space.n))
            x, r, over, truncated, _ = env.step(a)
            z, expected, end = simple.step(stream, z, physical(a))
            np.testing.assert_allclose(x, z, rtol=0, atol=1e-12)
            assert r == pytest.approx(expected, abs=1e-9) and over == end


@pytest.mark.parametrize("case", [case for case in CASES if "shifting" not in case[1].values()], ids=name_of)
def test_one_step_from_anywhere(case):
    """Also from states that random episodes hardly reach: near rewards, walls, puddles and goals."""
    cls, options, _ = case
    env, (simple, physical) = cls(**options), plain_version(case)
    rng, low, high = np.random.default_rng(2), env.observation_space.low, env.observation_space.high
    ends, rewards = 0, []
    for seed in range(300):
        x = rng.uniform(low, high) if seed % 3 else rng.uniform(0.92 * high, high)
        if cls is PBall2D and np.linalg.norm(x) > 1:
            x /= np.linalg.norm(x)
        a, y = int(rng.integers(env.action_space.n)), np.full(x.size, np.nan)
        r, over, truncated = advance(env.dynamics, new_stream(seed), x, a, y)
        z, expected, end = simple.step(Stream.seeded(seed), x, physical(a))
        np.testing.assert_allclose(y, z, rtol=0, atol=1e-12)
        assert r == pytest.approx(expected, abs=1e-9) and over == end and not truncated
        ends += over
        rewards.append(r)
    assert np.ptp(rewards) > 0.5
    assert (ends > 0) == (cls is PuddleWorld)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=name_of)
def test_both_drivers_and_seeds(case):
    runs = [
        krl.RandomAgent().fit(made(case), 25, seed=seed, driver=driver)
        for seed, driver in ((3, "compiled"), (3, "python"), (4, "compiled"))
    ]
    for name in ("returns", "lengths"):
        assert np.array_equal(getattr(runs[0], name), getattr(runs[1], name))
    assert not np.array_equal(runs[0].returns, runs[2].returns)
    assert (runs[0].lengths <= case[2]).all()


@pytest.mark.parametrize("case", ONE_OF_EACH + CONTINUOUS[:1], ids=name_of)
@pytest.mark.parametrize("duplicate", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_copies_go_on_where_the_original_was(case, duplicate):
    env = made(case)
    env.reset(seed=1)
    env.action_space.seed(0)
    actions = [env.action_space.sample() for _ in range(3)]
    env.step(actions[0])
    twin = duplicate(env)
    for action in actions[1:]:
        assert np.array_equal(env.step(action)[0], twin.step(action)[0])


def test_noise_of_rewards():
    env = SquareWorld(reward_noise=0.01)
    rewards = []
    for seed in range(2000):
        env.reset(seed=seed)
        env.state = [0.75, 0.75]
        rewards.append(env.step(0)[1])
    assert abs(np.mean(rewards) - 1) < 0.001 and abs(np.std(rewards) - 0.01) < 0.001


def test_beta_arrivals():
    """Mean 5/7 and variance 10/392 of beta(5, 2)."""
    env = Ambulance(actions=2)
    env.reset(seed=0)
    calls = np.array([env.step(0)[0][0] for _ in range(20_000)])
    deviation = np.sqrt(10 / 392)
    assert abs(calls.mean() - 5 / 7) < 4 * deviation / np.sqrt(20_000)
    assert abs(calls.std() / deviation - 1) < 0.03


def test_shifting_arrivals():
    """One interval after the other, also beyond the usual five steps, and when the start lies in one of them."""
    bounds = [(0, 0.25), (0.25, 0.3), (0.3, 0.5), (0.5, 0.6), (0.6, 0.65), (0.6, 0.65), (0.6, 0.65)]
    for start in (0.5, 0.1, 0.9):
        env = TimeLimit(Ambulance(arrivals="shifting", actions=3, start=start), 7)
        for seed in range(50):
            env.reset(seed=seed)
            for low, high in bounds:
                assert low <= env.step(1)[0][0] < high


def test_puddle_world_ends_at_the_goal():
    env = made(CASES[-2])
    env.reset(seed=0)
    env.unwrapped.state = [0.97, 0.92]
    y, reward, terminated, truncated, _ = env.step(2)
    assert y.sum() > 1.9 and (reward, terminated, truncated) == (0.0, True, False)
    starts = np.array([env.reset(seed=seed)[0] for seed in range(500)])
    assert starts.sum(axis=1).max() <= 1.9 and abs(starts.mean(axis=0) - 0.495).max() < 0.05


# ------------------------------------------------------------------------------------------------- continuous actions


@pytest.mark.parametrize("case", CONTINUOUS, ids=name_of)
def test_box_actions_by_gymnasium(case):
    env = made(case)
    assert env.action_space == gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    check_env(env.unwrapped, skip_render_check=True)
    first, again = [], []
    for states in (first, again):
        env.reset(seed=5)
        for h in range(5):
            states.append(env.step(np.array([0.1 + 0.2 * h], np.float32))[0])
    assert np.array_equal(first, again)


def test_the_index_of_an_action_is_its_number():
    for cls in (Oil, Ambulance):
        net, box = cls(actions=5), cls()
        for index in range(5):
            results = []
            for env, action in ((net, index), (box, np.array([index / 4]))):
                env.reset(seed=index)
                results.append(env.step(action)[:2])
            assert np.array_equal(results[0][0], results[1][0]) and results[0][1] == results[1][1]


@pytest.mark.parametrize("action", [0.5, [0.2, 0.3], [1.5], [float("nan")], "left", None, [[0.5]]])
def test_bad_box_actions(action):
    env = Oil()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"^action must be an array of shape \(1,\) with a number from 0 to 1; got"):
        env.step(action)


@pytest.mark.parametrize("cls", [krl.UCBVI, krl.OptQL])
def test_agents_say_what_they_support(cls):
    with pytest.raises(TypeError, match=r"action_space must be gymnasium's Discrete, got Box"):
        cls().fit("kernelrl/Oil-v0", 1, seed=0)


# ------------------------------------------------------------------------------------------------------ bad arguments


@pytest.mark.parametrize(
    ("cls", "options", "message"),
    [
        (SquareWorld, {"move": 0}, "move must be a finite number above 0, got 0"),
        (SquareWorld, {"noise": -1}, "noise must be a finite number of at least 0, got -1"),
        (SquareWorld, {"start": 0.5}, r"start must be a pair \(x, y\) of numbers from 0 to 1, got 0.5"),
        (SquareWorld, {"goal": (0.5, 1.5)}, "y of goal must be a number from 0 to 1, got 1.5"),
        (SquareWorld, {"render_mode": "human"}, 'render_mode must be None or "rgb_array"; got'),
        (PBall2D, {"level": 6}, "level must be 1, 2, 3, 4 or 5, got 6"),
        (PBall2D, {"level": True}, "level must be 1, 2, 3, 4 or 5, got True"),
        (PBall2D, {"level": "hard"}, "level must be 1, 2, 3, 4 or 5, got 'hard'"),
        (Oil, {"form": "cubic"}, "form must be one of laplace, quadratic, noise, got 'cubic'"),
        (Oil, {"steepness": -1}, "steepness must be a finite number above 0, got -1"),
        (Oil, {"actions": 1}, "actions must be a whole number of at least 2, .* or None for all"),
        (Oil, {"start": 2}, "start must be a number from 0 to 1, got 2"),
        (Ambulance, {"arrivals": "poisson"}, "arrivals must be one of beta, uniform, shifting, got 'poisson'"),
        (Ambulance, {"alpha": 1.1}, "alpha must be a number from 0 to 1, got 1.1"),
        (Ambulance, {"actions": 2.5}, "actions must be a whole number of at least 2"),
        (PuddleWorld, {"noise": 0.01}, "noise must be one of shared, independent, got 0.01"),
    ],
)
def test_bad_arguments(cls, options, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        cls(**options)


# ------------------------------------------------------------------------------------------------ Lipschitz constants

CONSTANTS = [
    (TwinRooms(), 10.0, 1.0),
    (Ramp(), 0.5, 1.0),
    (SquareWorld(), 6.0653, 1.0),
    (PBall2D(1), 1.41421, 1.0),
    *((PBall2D(level), 5.0, 1.0) for level in (2, 3, 4, 5)),
    *((Oil(form="laplace", steepness=s), s + 1.0, 1.0) for s in (1, 10, 50)),
    *((Oil(form="quadratic", steepness=s), r, 1.0) for s, r in ((1, 2.5), (10, 7.32456), (50, 15.1421))),
    *((Oil(form="noise", steepness=s), s + 1.0, 1.00014) for s in (1, 10, 50)),
    *((Ambulance(arrivals=kind), 1.0, 0.0) for kind in ("beta", "uniform", "shifting")),
]


@pytest.mark.parametrize(("env", "reward", "transition"), CONSTANTS)
def test_lipschitz_constants(env, reward, transition):
    assert env.lipschitz_constants == pytest.approx((reward, transition), rel=1e-5)
    L = env.lipschitz(3)
    assert L[2] == pytest.approx(reward, rel=1e-5) and (np.diff(L) <= 0).all()


def test_no_constant_where_rewards_jump():
    assert PuddleWorld().lipschitz_constants is None and PuddleWorld().lipschitz(5) is None


@pytest.mark.parametrize("env", [env for env, *_ in CONSTANTS[2:]], ids=lambda env: str(env.dynamics)[:50])
def test_constants_are_not_violated(env):
    """By rewards and next states with the same random numbers; some pairs nearly attain that of the rewards."""
    rng, steepest = np.random.default_rng(0), 0.0
    λ_r, λ_p = env.lipschitz_constants
    box, noisy_oil = isinstance(env.action_space, gym.spaces.Box), isinstance(env, Oil) and env.dynamics.form == 2
    low, high = env.observation_space.low, env.observation_space.high
    if isinstance(env, Ambulance) and env.dynamics.arrivals == 2:
        high = np.array([0.249])  # the states of one step
    d = len(low)
    for seed in range(1500):
        x = rng.uniform(low, high)
        z = np.clip(x + rng.normal(size=d) * 10.0 ** rng.uniform(-6, -1), low, high)
        if isinstance(env, PBall2D):
            x, z = (state / max(1.0, np.linalg.norm(state)) for state in (x, z))
        a = float(rng.random()) if box else int(rng.integers(env.action_space.n))
        b = float(np.clip(a + rng.normal() * 10.0 ** rng.uniform(-6, -1), 0, 1)) if box else a
        apart = np.linalg.norm(x - z) + abs(a - b)
        ends = []
        for state, action in ((x, a), (z, b)):
            y = np.empty(d)
            r, _, _ = advance(env.dynamics, new_stream(seed), state, action, y)
            ends.append((r, y))
        (r, y), (s, w) = ends
        assert abs(r - s) <= λ_r * apart + 1e-12
        steepest = max(steepest, abs(r - s) / (apart + 1e-12))
        if not noisy_oil:  # its constant holds on average: the next test
            assert np.linalg.norm(y - w) <= λ_p * apart + 1e-12
    assert steepest > 0.4 * λ_r


def test_transitions_of_noisy_oil_on_average():
    env, rng = Oil(form="noise"), np.random.default_rng(3)
    t = rng.normal(size=20_000)
    for x, a, z, b in rng.random((50, 4)):
        y, w = (np.clip(to + np.sqrt(0.1) * (at + to) * t, 0, 1) for at, to in ((x, a), (z, b)))
        assert abs(y - w).mean() <= env.lipschitz_constants[1] * (abs(x - z) + abs(a - b)) + 1e-3


def test_oil_is_less_steep_where_the_next_state_ignores_the_state():
    np.testing.assert_allclose(Oil(steepness=10).lipschitz(5), [12, 12, 12, 12, 11])
    assert Oil(form="noise", steepness=10).lipschitz(5)[0] > 54


# ----------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize(
    ("env", "state", "place", "size"),
    [
        (SquareWorld(), [0.3, 0.6], (134, 172), (420, 420)),
        (PBall2D(4), [-0.5, 0.25], (120, 170), (440, 440)),
        (PuddleWorld(), [0.3, 0.6], (134, 172), (420, 420)),
        (Oil(), [0.25], (210, 65), (131, 800)),
        (Ambulance(arrivals="shifting"), [0.25], (210, 65), (131, 800)),
    ],
    ids=["square", "ball", "puddle", "oil", "ambulance"],
)
def test_pictures(env, state, place, size):
    """The agent, and nothing else, is blue, where the state is."""
    picture = env.draw(np.array(state))
    assert picture.shape == (*size, 3) and picture.dtype == np.uint8
    rows, columns = np.nonzero((picture == (28, 100, 190)).all(axis=2))
    assert (columns.mean(), rows.mean()) == pytest.approx(place, abs=1)
    assert np.ptp(columns) < 25 and tuple(picture[0, 0]) == (255, 255, 255)
    with pytest.warns(UserWarning, match="rgb_array"):
        assert env.render() is None


def test_colours_are_rewards():
    square, puddle = SquareWorld().draw(np.array([0.1, 0.1])), PuddleWorld().draw(np.array([0.1, 0.1]))
    at = lambda picture, x, y: picture[int(400 - 380 * y), int(20 + 380 * x)].astype(int)  # noqa: E731
    shades = [at(square, 0.75 + z, 0.75)[2] for z in (0.0, 0.05, 0.1, 0.2)]
    assert shades == sorted(set(shades))
    assert at(puddle, 0.45, 0.6)[0] < 100 < at(puddle, 0.8, 0.3)[0]  # water, and floor
    assert tuple(at(puddle, 0.98, 0.98)) == (240, 160, 32)


# ----------------------------------------------------------------------------------------------------------- learning


def test_an_agent_with_nothing_set_learns_in_square_world():
    history = krl.KernelUCBVI().fit("kernelrl/SquareWorld-v0", 150, seed=0)
    assert history.returns[-30:].mean() > 5.0
    assert krl.RandomAgent().fit("kernelrl/SquareWorld-v0", 50, seed=0).returns.mean() < 1.0


@pytest.mark.parametrize("case", [CASES[8], CASES[11]], ids=name_of)
@pytest.mark.parametrize(
    "make", [lambda: krl.OptQL(bins=8), krl.AdaptiveQL, krl.AdaMB], ids=["OptQL", "AdaptiveQL", "AdaMB"]
)
def test_agents_with_a_net_of_actions(make, case):
    histories = [make().fit(made(case), 30, seed=2, driver=driver) for driver in ("compiled", "python")]
    assert np.array_equal(histories[0].returns, histories[1].returns)
    assert np.array_equal(histories[0].optimistic_values, histories[1].optimistic_values)
