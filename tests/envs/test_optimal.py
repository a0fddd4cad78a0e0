"""Optimal values against the simplest dynamic programming, against play, and where they are kept."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scipy.special import ndtr

import kernelrl as krl
from ending_motions import MOVES, motion, naive, puddle_world
from kernelrl.envs import TwinRooms, optimal
from kernelrl.envs.interface import advance, reset
from naive.optimal import EndingValues, optimal_values
from small_envs import Halved, Line
from terminating import REWARDS, Corridor

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture(scope="module")
def twin_rooms(own_cache):
    return krl.envs.solve(gym.make("kernelrl/TwinRooms-v0"))


@pytest.mark.parametrize(
    "options",
    [
        {"move": 0.15, "noise": 0.05, "radius": 0.6, "goal": (0.7, 0.6)},
        {"move": 0.1, "noise": 0.2, "radius": 0.9, "goal": (0.95, 1.0)},  # most moves end at a wall
        {"move": 0.25, "noise": 0.0, "radius": 0.8, "goal": (0.5, 0.5)},
    ],
    ids=["some noise", "walls", "no noise"],
)
def test_like_naive(options):
    horizon = 4
    env = TimeLimit(TwinRooms(**options), horizon)
    found = krl.envs.solve(env, 5e-3)
    assert found.change <= 5e-3
    naive = optimal_values(horizon, **options)
    states = np.random.default_rng(0).random((200, 2)) * [0.95, 1.0]
    for room, offset in enumerate([0.0, 1.05]):
        x = states + np.array([offset, 0.0])
        for step in range(horizon):
            np.testing.assert_allclose(found.values(x, step), naive[room][step](x), atol=0.02)
    np.testing.assert_allclose(
        found.start_value, np.mean([naive[0][0]([[0.1, 0.1]]), naive[1][0]([[1.1, 0.1]])]), atol=0.02
    )


def test_twin_rooms_at_the_start(twin_rooms):
    np.testing.assert_allclose(twin_rooms.values([[0.1, 0.1], [1.1, 0.1]], 0), [2.925, 2.926], atol=1e-3)
    assert twin_rooms.change <= twin_rooms.tolerance == 1e-3
    assert twin_rooms.horizon == 20


def test_playing_it_collects_it(twin_rooms):
    """Monte Carlo of the greedy policy on the environment's own dynamics."""
    env = TwinRooms().dynamics
    n, stream = 4000, np.zeros((4000, 4), np.uint64)
    x, y, total = np.zeros((n, 2)), np.zeros(2), np.zeros(n)
    for k in range(n):
        reset(env, k, stream[k], x[k])
    for h in range(20):
        actions = twin_rooms.actions(x, h)
        for k in range(n):
            total[k] += advance(env, stream[k], x[k], int(actions[k]), y)[0]
            x[k] = y
    error = total.std(ddof=1) / np.sqrt(n)
    assert error < 0.02
    assert abs(total.mean() - twin_rooms.start_value) < 4 * error + twin_rooms.change


def test_read_outs_agree(twin_rooms):
    x = np.random.default_rng(1).random((50, 2)) * [0.95, 1.0]
    for step in (0, 10, 19):
        Q = twin_rooms.q_values(x, step)
        assert Q.shape == (50, 4)
        np.testing.assert_array_equal(twin_rooms.values(x, step), Q.max(axis=1))
        np.testing.assert_array_equal(twin_rooms.actions(x, step), Q.argmax(axis=1))
    rewards = np.maximum(0, 1 - np.linalg.norm(x - [0.8, 0.8], axis=1) / 0.1)
    np.testing.assert_allclose(twin_rooms.values(x, 19), rewards, atol=1e-12)


def test_one_step():
    found = krl.envs.solve(TimeLimit(TwinRooms(start=(0.8, 0.75)), 1), 0.01)
    np.testing.assert_allclose(found.start_value, 0.5, atol=1e-9)


def test_motion_is_the_environment():
    """The description and the compiled dynamics say the same."""
    env = TwinRooms(start=(0.3, 0.1), noise=0.0, wall=0.3, move=0.2, radius=0.5, goal=(0.4, 0.6))
    motion, rng = env.motion(), np.random.default_rng(0)
    stream, y = np.zeros(4, np.uint64), np.zeros(2)
    reset(env.dynamics, 0, stream, y)
    assert (motion.starts == y).all(axis=1).any()
    for _ in range(200):
        room = rng.integers(2)
        x = rng.uniform(motion.low[room], motion.high[room])
        a = int(rng.integers(4))
        r, _, _ = advance(env.dynamics, stream, x, a, y)
        assert motion.room(x[None])[0] == room
        np.testing.assert_allclose(motion.reward(x[None], a), r, atol=1e-15)
        np.testing.assert_allclose(np.clip(motion.move(x[None], a)[0], motion.low[room], motion.high[room]), y)


def test_kept_on_disk_and_a_damaged_file_is_computed_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(optimal, "cache_dir", lambda: tmp_path / "code")
    env = TimeLimit(TwinRooms(noise=0.1, radius=0.5), 3)
    first = krl.envs.solve(env, 0.01)
    assert krl.envs.solve(env, 0.01) is first
    (file,) = (tmp_path / "optimal").iterdir()
    optimal.SOLVED.clear()
    with monkeypatch.context() as patch:
        patch.setattr(optimal, "refine", None)  # would fail if it were called
        again = krl.envs.solve(env, 0.01)
    assert again.start_value == first.start_value
    np.testing.assert_array_equal(again.q_values([[0.3, 0.3]], 1), first.q_values([[0.3, 0.3]], 1))
    optimal.SOLVED.clear()
    file.write_bytes(file.read_bytes()[:1000])
    assert krl.envs.solve(env, 0.01).start_value == first.start_value
    other = krl.envs.solve(TimeLimit(TwinRooms(noise=0.1, radius=0.6), 3), 0.01)
    assert other.start_value > first.start_value


def test_a_cache_that_cannot_be_written_is_no_harm(tmp_path, monkeypatch):
    (tmp_path / "optimal").write_text("in the way")
    monkeypatch.setattr(optimal, "cache_dir", lambda: tmp_path / "code")
    assert krl.envs.solve(TimeLimit(TwinRooms(noise=0.1, radius=0.4), 2), 0.01).horizon == 2


def test_refusals(twin_rooms):
    with pytest.raises(ValueError, match="Line cannot be set to a state"):
        krl.envs.solve(TimeLimit(Line(), 5))
    with pytest.raises(ValueError, match="the wrapper Halved may change"):
        krl.envs.solve(Halved(gym.make("kernelrl/TwinRooms-v0")))
    with pytest.raises(ValueError, match="no time limit"):
        krl.envs.solve(TwinRooms())
    for tolerance in (0, -1, float("nan"), "small", True):
        with pytest.raises(ValueError, match="tolerance"):
            krl.envs.solve(gym.make("kernelrl/TwinRooms-v0"), tolerance)
    with pytest.raises(ValueError, match="step"):
        twin_rooms.values([[0.1, 0.1]], 20)
    with pytest.raises(ValueError, match="states"):
        twin_rooms.values([0.1, 0.1], 0)


def test_a_tolerance_out_of_reach(monkeypatch):
    monkeypatch.setattr(optimal, "MOST_POINTS", 200**2)
    with pytest.raises(RuntimeError, match="was not reached"):
        krl.envs.solve(TimeLimit(TwinRooms(), 3), 1e-9)


# Problems that end.

COST = lambda x, a: np.full(len(x), -1.0)  # noqa: E731
SHAPES = {
    "box": lambda y: (abs(y[:, 0] - 0.7) < 0.1) & (abs(y[:, 1] - 0.6) < 0.15),
    "ball": lambda y: np.hypot(y[:, 0] - 0.7, y[:, 1] - 0.6) < 0.15,
    "half-space": lambda y: y[:, 0] + y[:, 1] > 1.4,
    "outside a ball": lambda y: np.hypot(y[:, 0] - 0.5, y[:, 1] - 0.5) > 0.42,
    "a wall": lambda y: y[:, 0] >= 1.0,
    "corner": lambda y: (y[:, 0] > 0.9) & (y[:, 1] == 0.0),
}


@pytest.mark.parametrize("ends", SHAPES.values(), ids=SHAPES)
def test_ends_like_naive_in_two_dimensions(ends):
    problem = {
        "moves": 3 * MOVES, "noise": 0.05, "ends": ends, "reward": COST,
        "after": lambda y, a: 0.3 * y[:, 1] * a, "at_end": lambda y, a: 2.0 * y[:, 0],
    }  # fmt: skip
    H = 4
    found = optimal.refine(motion(**problem), H, 1e-3)
    assert found.change <= 1e-3
    simple = naive(H, 200, **problem)
    x = np.random.default_rng(0).random((60, 2))
    live = x[~ends(x)]
    assert len(live) > 20
    for step in range(H):
        np.testing.assert_allclose(found.q_values(live, step), simple.q_values(live, step), atol=4e-3)
    assert not found.q_values(x[ends(x)], 0).any()


@pytest.mark.parametrize("noise", [0.02, 0.05, 0.2])
@pytest.mark.parametrize("rewards", REWARDS.values(), ids=map(str, REWARDS))
def test_corridor_like_naive(rewards, noise):
    H = 20
    env = Corridor(noise=noise, **rewards["corridor"]).dynamics
    found = optimal.refine(Corridor(noise=noise, **rewards["corridor"]).motion(), H, 1e-4)
    simple = EndingValues(
        H, [[-env.move], [env.move]], noise, lambda y: y[:, 0] >= env.goal, lambda x, a: np.full(len(x), env.step),
        lambda y, a: np.zeros(len(y)), lambda y, a: np.full(len(y), env.arrival - env.step), 1000,
    )  # fmt: skip
    x = np.linspace(0.0, 0.89, 24)[:, None]
    for step in (0, 10, 18, 19):
        np.testing.assert_allclose(found.q_values(x, step), simple.q_values(x, step), atol=1e-3)
    np.testing.assert_allclose(found.start_value, simple.values(np.array([[0.1]]), 0), atol=1e-3)
    np.testing.assert_array_equal(found.values([[0.9], [0.95], [1.0]], 0), 0.0)


def corridor_of_cells(env, cells, twin):
    """A corridor in which a cell counts as its middle: P (A, X, X), r (X, A, X) and terminal (X,)."""
    edges, middles = np.linspace(0, 1, cells + 1), (np.arange(cells) + 0.5) / cells
    P = []
    for move in (-env.move, env.move):
        below = ndtr((edges - middles[:, None] - move) / env.noise)
        below[:, 0], below[:, -1] = 0.0, 1.0  # the outermost cells take what is clipped
        P.append(np.diff(below, axis=1))
    P, over = np.array(P), middles >= env.goal
    r = np.full((cells, 2, cells), env.step)
    r[:, :, over] = env.arrival
    if twin:
        P[:, over], r[over] = np.eye(cells)[over], 0.0
        over = np.zeros(cells, bool)
    return P, r, over


@pytest.mark.parametrize("rewards", REWARDS.values(), ids=map(str, REWARDS))
def test_corridor_and_its_absorbing_twin(rewards):
    """The same values, and those of the continuous corridor but for the width of the cells."""
    env, H = Corridor(**rewards["corridor"]), 20
    finite = []
    for twin in (False, True):
        P, r, terminal = corridor_of_cells(env.dynamics, 400, twin)
        finite.append(krl.envs.solve_finite(P, r, H, terminal))
    np.testing.assert_allclose(finite[0].table, finite[1].table, rtol=0, atol=1e-9)
    x = (np.arange(360) + 0.5) / 400
    found = optimal.refine(env.motion(), H, 1e-4)
    np.testing.assert_allclose(found.values(x[:, None], 0), finite[0].values(np.arange(360), 0), atol=5e-3)


def test_the_error_is_within_the_change():
    """Of the corridor, against a grid far finer than the one that `refine` stops at."""
    motion, x, H = Corridor(noise=0.03, goal=0.87).motion(), np.linspace(0, 0.86, 200)[:, None], 10
    _, Z, R = optimal.solve_room(motion, 0, 972, H)
    fine = optimal.OptimalValues(H, 0.0, 0.0, 972, 0.0, motion, Z[None], R[None])
    for tolerance in (1e-3, 1e-5, 2e-6):
        found = optimal.refine(motion, H, tolerance)
        assert found.change <= tolerance
        for step in range(H):
            assert abs(found.values(x, step) - fine.values(x, step)).max() <= tolerance


def test_puddle_world():
    """Published and independently computed: -32.92 from (0.2, 0.5), -33.54 from (0.1, 0.1), -20.44 on average."""
    found = optimal.refine(motion(**puddle_world()), 50, 0.06)
    np.testing.assert_allclose(found.values([[0.2, 0.5], [0.1, 0.1]], 0), [-32.92, -33.54], atol=0.01)
    assert abs(found.start_value + 20.44) < 0.02


def test_playing_the_corridor_collects_it():
    """Monte Carlo of the greedy policy on the environment itself."""
    env, H = Corridor(noise=0.1, arrival=0.5), 8
    found = optimal.refine(env.motion(), H, 1e-4)
    n, stream = 3000, np.zeros((3000, 4), np.uint64)
    x, y, total, live = np.zeros((n, 1)), np.zeros(1), np.zeros(n), np.ones(n, bool)
    for k in range(n):
        reset(env.dynamics, k, stream[k], x[k])
    for h in range(H):
        actions = found.actions(x, h)
        for k in np.flatnonzero(live):
            reward, over, _ = advance(env.dynamics, stream[k], x[k], int(actions[k]), y)
            total[k] += reward
            x[k], live[k] = y, not over
    assert abs(total.mean() - found.start_value) < 4 * total.std() / np.sqrt(n)
    assert live.mean() < 0.1


def test_rewards_on_arrival_without_ends():
    """Q in the last step is r(x, a) + E[s(y)]."""
    problem = {"moves": [[-0.2], [0.2]], "noise": 0.1, "ends": None}
    found = optimal.refine(motion(**problem, reward=COST, after=lambda y, a: np.sin(3 * y[:, 0])), 3, 2e-3)
    t = np.random.default_rng(0).normal(size=20_000) * 0.1
    x = np.array([[0.05], [0.4], [0.9]])
    expected = [[np.sin(3 * np.clip(z + m + t, 0, 1)).mean() for m in (-0.2, 0.2)] for z in x[:, 0]]
    np.testing.assert_allclose(found.q_values(x, 2), np.array(expected) - 1, atol=6e-3)


def test_kept_on_disk_with_ends(tmp_path):
    problem = Corridor(noise=0.1, arrival=0.3).motion()
    found = optimal.refine(problem, 3, 1e-3)
    optimal.keep(tmp_path / "found.npz", found)
    again = optimal.load(tmp_path / "found.npz", problem, 3, 1e-3)
    np.testing.assert_array_equal(again.q_values([[0.3], [0.8]], 2), found.q_values([[0.3], [0.8]], 2))
    np.testing.assert_array_equal(again.q_values([[0.3], [0.8]], 0), found.q_values([[0.3], [0.8]], 0))


def test_ends_that_cannot_be_solved(monkeypatch):
    with pytest.raises(ValueError, match="more noise is needed in every coordinate"):
        optimal.refine(Corridor(noise=0.0).motion(), 3, 1e-3)
    line = {"moves": [[-0.2], [0.2]], "noise": 0.1, "reward": COST}
    with pytest.raises(ValueError, match="reward_at_end needs `ends`"):
        optimal.refine(motion(**line, ends=None, at_end=COST), 3, 1e-3)
    with pytest.raises(ValueError, match=r"`ends` must give True or False .* shape \(1, 1\) and type bool"):
        optimal.refine(motion(**line, ends=lambda y: y > 0.9), 3, 1e-3)
    with pytest.raises(ValueError, match="1 or 2 dimensions, not in 3"):
        optimal.refine(motion([[0.1] * 3], 0.1, lambda y: y[:, 0] > 0.9, COST), 3, 1e-3)
    monkeypatch.setattr(optimal, "MOST_POINTS", 300)
    with pytest.raises(RuntimeError, match="was not reached"):
        optimal.refine(Corridor(noise=0.01).motion(), 5, 1e-9)
