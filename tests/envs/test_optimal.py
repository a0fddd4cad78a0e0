"""Optimal values against the simplest dynamic programming, against play, and where they are kept."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from kernelrl.envs import TwinRooms, optimal
from kernelrl.envs.interface import advance, reset
from naive.optimal import optimal_values
from small_envs import Halved, Line


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory):
    """A cache of these tests' own."""
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("cache")
    patch.setattr(optimal, "cache_dir", lambda: folder / "code")
    patch.setattr(optimal, "SOLVED", {})
    yield
    patch.undo()


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
    with pytest.raises(ValueError, match="kernelrl/TwinRooms-v0"):
        krl.envs.solve(TimeLimit(Line(), 5))
    with pytest.raises(ValueError, match="wrappers of your own"):
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
    with pytest.raises(ValueError, match="there is no environment"):
        optimal.solve_command("kernelrl/Nowhere-v0", 1e-3, False)


def test_a_tolerance_out_of_reach(monkeypatch):
    monkeypatch.setattr(optimal, "MOST_POINTS", 200**2)
    with pytest.raises(RuntimeError, match="was not reached"):
        krl.envs.solve(TimeLimit(TwinRooms(), 3), 1e-9)
    with pytest.raises(ValueError, match="was not reached"):  # which the command line shows without a traceback
        optimal.solve_command("kernelrl/TwinRooms-v0", 1e-9, False)


def test_command(capsys, twin_rooms):
    optimal.solve_command("kernelrl/TwinRooms-v0", 1e-3, True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["start_value"] == twin_rooms.start_value
    assert [start["state"] for start in answer["starts"]] == [[0.1, 0.1], [1.1, 0.1]]
    optimal.solve_command("kernelrl/TwinRooms-v0", 1e-3, False)
    assert f"{twin_rooms.start_value:.4f}" in capsys.readouterr().out
