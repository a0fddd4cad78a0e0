"""TwinRooms against its plain NumPy version, and as Gymnasium, compiled loops and users meet it."""

import copy
import json
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from kernelrl import envs
from kernelrl.envs import pictures
from kernelrl.envs import twin_rooms as module
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.twin_rooms import TwinRooms, draw, make_dynamics, twin_rooms_fold
from kernelrl.jit.stream import new_stream
from kernelrl.testing import check_environment
from naive import twin_rooms as naive
from naive.stream import Stream

envs.register()
ACTIONS = [0, 0, 2, 2, 1, 3, 0, 0, 0, 2, 2, 0, 2, 2, 0, 2, 2, 0, 0, 1]


def trajectory(env, seed, actions=ACTIONS):
    first = env.reset(seed=seed)[0]
    steps = [env.step(action) for action in actions]
    return np.array([first, *(step[0] for step in steps)]), np.array([step[1] for step in steps])


def step_from(env, state, action, stream=None):
    """Reward and next state of one compiled step from `state`."""
    y = np.empty(2)
    r, terminated, truncated = advance(env, new_stream(0) if stream is None else stream, np.array(state), action, y)
    assert not terminated and not truncated
    return r, y


def test_gymnasium_finds_nothing_to_say():
    check_env(gym.make("kernelrl/TwinRooms-v0").unwrapped)
    check_env(gym.make("kernelrl/TwinRooms-v0", render_mode="rgb_array").unwrapped)
    check_environment("kernelrl/TwinRooms-v0")


def test_importing_and_registering_leaves_numba_alone():
    program = "import sys, kernelrl.envs; kernelrl.envs.register(); print('numba' in sys.modules)"
    assert run_python(program) == "False"


def test_spaces_and_truncation_after_twenty_steps():
    envs.register()  # again is no harm
    env = gym.make("kernelrl/TwinRooms-v0")
    assert type(env.unwrapped) is envs.TwinRooms
    assert env.observation_space == gym.spaces.Box(np.array([0.0, 0.0]), np.array([2.0, 1.0]), dtype=np.float64)
    assert env.action_space == gym.spaces.Discrete(4)
    env.reset(seed=0)
    ends = [env.step(0)[2:4] for _ in range(20)]
    assert ends == [(False, False)] * 19 + [(False, True)]


def test_trajectories_are_those_of_the_naive_version():
    env, rooms = TwinRooms(), set()
    for seed in range(6):
        states, rewards = trajectory(env, seed)
        expected_states, expected_rewards = naive.trajectory(Stream.seeded(seed), ACTIONS)
        np.testing.assert_allclose(states, expected_states, rtol=0, atol=1e-13)
        np.testing.assert_allclose(rewards, expected_rewards, rtol=0, atol=1e-11)
        assert expected_rewards.sum() > 0.1
        rooms.add(naive.room_of(expected_states[0]))
    assert rooms == {0, 1}


def test_rewards_and_moves_over_the_rooms():
    env, rng = make_dynamics(noise=0.0), np.random.default_rng(0)
    for _ in range(200):
        room, a = rng.integers(2), int(rng.integers(4))
        x = rng.uniform(naive.LOW[room], naive.HIGH[room])
        if rng.random() < 0.5:  # as many again around the goal, where the reward is
            x = naive.GOALS[room] + rng.uniform(-0.1, 0.1, 2)
        r, y = step_from(env, x, a)
        assert r == pytest.approx(naive.reward(x), abs=1e-12)
        np.testing.assert_allclose(y, naive.move(x, a, (0, 0)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("goal", [(0.8, 0.8), (1.8, 0.8)])
def test_reward_is_that_of_the_state_before_the_move(goal):
    env = make_dynamics()
    for a in range(4):
        assert step_from(env, goal, a)[0] == 1.0
    assert step_from(env, (goal[0] - 0.1, goal[1]), 0)[0] == pytest.approx(0.0, abs=1e-12)
    assert step_from(env, (goal[0], goal[1] - 0.05), 2)[0] == pytest.approx(0.5)
    assert step_from(env, (goal[0] - 0.06, goal[1] - 0.08), 2)[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize(
    ("state", "action", "axis", "bound"),
    [((0.94, 0.5), 0, 0, 0.95), ((0.01, 0.5), 1, 0, 0.0), ((1.99, 0.5), 0, 0, 2.0), ((1.06, 0.5), 1, 0, 1.05)]
    + [((x, 0.99), 2, 1, 1.0) for x in (0.5, 1.5)]
    + [((x, 0.01), 3, 1, 0.0) for x in (0.5, 1.5)],
)
def test_walls_stop_every_move(state, action, axis, bound):
    stream = new_stream(1)
    for _ in range(50):
        y = step_from(make_dynamics(), state, action, stream)[1]
        assert y[axis] == bound
        assert y[1 - axis] != state[1 - axis]  # the other coordinate is only noisy


def test_no_move_crosses_the_wall_however_long():
    for state, action, bound in [((0.5, 0.5), 0, 0.995), ((1.5, 0.5), 1, 1.005)]:
        assert step_from(make_dynamics(move=1.5, wall=0.01), state, action)[1][0] == pytest.approx(bound, abs=1e-15)


def test_noise_statistics():
    def fits(noise, std, n=20_000):
        centred = abs(noise.mean(axis=0)) < 4 * std / np.sqrt(n)
        spread = abs(noise.std(axis=0) / std - 1) < 4 / np.sqrt(2 * n)
        return centred.all() and spread.all() and abs(np.corrcoef(noise.T)[0, 1]) < 4 / np.sqrt(n)

    env, stream = make_dynamics(), new_stream(3)
    noise = np.array([step_from(env, (0.5, 0.5), 0, stream)[1] for _ in range(20_000)]) - np.array([0.6, 0.5])
    assert fits(noise, 0.01)
    # Noise a little too wide, off centre or correlated would not pass.
    assert not fits(1.05 * noise, 0.01)
    assert not fits(noise + np.array([0.0005, 0.0]), 0.01)
    assert not fits(noise @ [[1.0, 0.05], [0.0, 1.0]], 0.01)


def test_start_and_room():
    env, n = TwinRooms(), 2_000
    rooms = np.empty(n, int)
    for seed in range(n):
        state, info = env.reset(seed=seed)
        rooms[seed] = info["room"]
        assert np.array_equal(state, naive.STARTS[rooms[seed]])
    assert abs(rooms.mean() - 0.5) < 4 * 0.5 / np.sqrt(n)
    for seed in (int(np.flatnonzero(rooms == 0)[0]), int(np.flatnonzero(rooms == 1)[0])):
        state, _ = env.reset(seed=seed)
        for action in (0, 1) * 20:
            state[:] = 9.0  # what was returned is the caller's to change
            state, *_, info = env.step(action)
            assert info["room"] == rooms[seed]


def test_parameters_reach_the_dynamics():
    env = TwinRooms(wall=0.2, move=0.05, noise=0, radius=0.5, start=[0.2, 0.3], goal=(0.5, 0.7))
    assert all(type(value) is float for value in env.dynamics)
    state, info = env.reset(seed=0)
    np.testing.assert_allclose(state, [0.2 + info["room"], 0.3])
    state, reward, *_ = env.step(2)
    np.testing.assert_allclose(state, [0.2 + info["room"], 0.35])
    assert reward == pytest.approx(0.0, abs=1e-12)  # 0.5 from the goal
    assert env.step(2)[1] == pytest.approx(1 - np.hypot(0.3, 0.35) / 0.5)


def test_same_seed_same_trajectory_and_others_differ():
    first, again, other = (trajectory(TwinRooms(), seed)[0] for seed in (7, 7, 8))
    assert np.array_equal(first, again)
    assert not np.array_equal(first[1:] - first[0], other[1:] - other[0])
    assert np.isfinite(trajectory(TwinRooms(), 2**70)[0]).all()  # any seed that Gymnasium takes


def test_resets_without_seed_follow_from_the_last_seed():
    runs = []
    for env in (TwinRooms(), TwinRooms()):
        env.reset(seed=5)
        runs.append([(env.reset()[0], env.step(0)[0])[1][1] for _ in range(5)])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 5  # five episodes, not one five times


@pytest.mark.parametrize("duplicate", [lambda env: pickle.loads(pickle.dumps(env)), copy.deepcopy])
def test_copies_go_on_where_the_original_was(duplicate):
    env = gym.make("kernelrl/TwinRooms-v0", noise=0.02)
    env.reset(seed=1)
    env.step(2)
    twin = duplicate(env)
    assert twin.unwrapped.dynamics == env.unwrapped.dynamics == make_dynamics(noise=0.02)
    for action in (0, 0, 3):
        assert np.array_equal(env.step(action)[0], twin.step(action)[0])
    assert np.array_equal(env.reset()[0], twin.reset()[0])


def test_one_compilation_of_each_function():
    trajectory(TwinRooms(noise=0, move=1, radius=1), 0, [0, np.int64(1), np.int32(2)])
    reset(make_dynamics(), np.int64(4), new_stream(0), np.empty(2))
    for function in (module.reset_twin_rooms, module.advance_twin_rooms):
        assert len(getattr(function, "signatures", [None])) == 1


def run_python(program, **variables):
    result = subprocess.run(
        [sys.executable, "-c", program], env=os.environ | variables, capture_output=True, text=True, check=True
    )
    return result.stdout.strip()


def test_without_compilation_the_numbers_are_the_same():
    program = f"""
import json
from kernelrl.envs.twin_rooms import TwinRooms, advance_twin_rooms
env = TwinRooms()
state, _ = env.reset(seed=11)
steps = [env.step(action) for action in {ACTIONS}]
print(json.dumps([hasattr(advance_twin_rooms, "py_func"), [step[0].tolist() for step in steps]]))
"""
    was_compiled, states = json.loads(run_python(program, NUMBA_DISABLE_JIT="1"))
    assert not was_compiled
    np.testing.assert_allclose(states, trajectory(TwinRooms(), 11)[0][1:], rtol=0, atol=1e-13)


def test_fold_lays_the_second_room_over_the_first():
    out = np.empty(2)
    for state, expected in [((0.3, 0.4), (0.3, 0.4)), ((1.3, 0.4), (0.3, 0.4)), ((0.95, 1.0), (0.95, 1.0))]:
        twin_rooms_fold(np.array(state), out)
        np.testing.assert_allclose(out, expected, rtol=0, atol=1e-15)
    assert envs.twin_rooms_fold is twin_rooms_fold
    for room in (0, 1):
        twin_rooms_fold(naive.STARTS[room], out)
        np.testing.assert_allclose(out, naive.STARTS[0], rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("argument", "value", "remedy"),
    [("wall", value, "over 0 and under 1") for value in (0.0, 1.0, 1e-20, None)]  # 1 - 1e-20 is 1: no wall
    + [("move", value, "positive") for value in (0.0, float("inf"), "0.1")]
    + [("radius", value, "positive") for value in (0, True)]
    + [("noise", value, "not below 0") for value in (-0.01, float("nan"))]
    + [("start", value, "pair") for value in (0.1, (0.1, 0.2, 0.3), "ab")]
    + [("start", (0.01, 0.5), "from 0.05 to 0.95"), ("start", (0.5, "up"), "from 0 to 1")]  # room 2 begins at 1.05
    + [("goal", (0.99, 0.5), "from 0.05 to 0.95"), ("goal", (0.5, 1.2), "from 0 to 1")]
    + [("render_mode", "human", "rgb_array")],
)
def test_bad_parameters_are_named_with_a_remedy(argument, value, remedy):
    with pytest.raises(ValueError) as caught:
        TwinRooms(**{argument: value})
    message = str(caught.value)
    wrong = {"x of": 0, "y of": 1}.get(message[:4])
    assert argument in message and remedy in message
    assert message.endswith(f"got {value if wrong is None else value[wrong]!r}.")


@pytest.mark.parametrize("action", [-1, 4, 1.5, "right", None, [0]])
def test_bad_actions(action):
    env = TwinRooms()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"0 \(right\), 1 \(left\), 2 \(up\) or 3 \(down\); got"):
        env.step(action)


def test_step_and_render_say_what_they_lack():
    for call in (lambda: TwinRooms().step(0), lambda: TwinRooms(render_mode="rgb_array").render()):
        with pytest.raises(gym.error.ResetNeeded, match=r"reset\(\)"):
            call()
    with pytest.warns(UserWarning, match="rgb_array"):
        assert TwinRooms().render() is None


def pixel(picture, x, y):
    """The pixel that shows (x, y): 380 pixels a unit inside a margin of 20, y upwards."""
    return tuple(int(value) for value in picture[int(400 - 380 * y), int(20 + 380 * x)])


def test_picture_of_rooms_wall_and_discs():
    picture = draw(make_dynamics(), np.array([0.1, 0.1]))
    assert picture.shape == (420, 800, 3) and picture.dtype == np.uint8
    assert pixel(picture, -0.04, 0.5) == module.PAPER
    assert {pixel(picture, x, y) for x, y in [(0.5, 0.5), (1.5, 0.5), (0.94, 0.02), (1.06, 0.98)]} == {module.FLOOR}
    assert {pixel(picture, x, y) for x, y in [(1.0, 0.5), (0.96, 0.1), (1.04, 0.9), (2.01, 0.5)]} == {module.WALL}
    for x in (0.8, 1.8):
        assert abs(np.subtract(module.REWARD, pixel(picture, x, 0.8))).max() <= 6
        shades = [pixel(picture, x + z, 0.8)[2] for z in (0.0, 0.03, 0.06, 0.09)]
        assert shades == sorted(set(shades))  # paler the farther from the goal
        assert pixel(picture, x + 0.1, 0.8) != module.FLOOR
        assert pixel(picture, x + 0.11, 0.8) == pixel(picture, x, 0.69) == module.FLOOR


@pytest.mark.parametrize("state", [(0.1, 0.1), (1.1, 0.1), (0.0, 0.0), (2.0, 1.0), (0.95, 0.0), (0.81, 0.78)])
def test_picture_shows_the_agent_where_it_is(state):
    picture = draw(make_dynamics(), np.array(state))
    rows, columns = np.nonzero((picture == pictures.AGENT).all(axis=2))
    centre = (columns.mean() + 0.5 - 20) / 380, (400 - rows.mean() - 0.5) / 380
    assert centre == pytest.approx(state, abs=1 / 380)
    assert rows.size == pytest.approx(np.pi * (module.AGENT_RADIUS * 380) ** 2, rel=0.2)


def test_pictures_follow_the_agent_and_the_parameters():
    env = TwinRooms(render_mode="rgb_array", wall=0.4, radius=0.2, start=(0.3, 0.1), goal=(0.6, 0.5))
    env.reset(seed=0)
    before = env.render()
    state, *_ = env.step(2)
    after = env.render()
    assert pixel(after, *state) == pictures.AGENT != pixel(before, *state)
    assert pixel(after, 0.85, 0.9) == module.WALL
    assert pixel(after, 0.75, 0.5) != module.FLOOR != pixel(after, 1.75, 0.5)
    before[:] = 0  # a picture is the caller's
    assert np.array_equal(env.render(), after)
