"""`solve` without a motion: values from draws, on a grid, with an interval that holds the optimal value."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit

import kernelrl as krl
from kernelrl.cli.solve import solve as solve_command
from kernelrl.envs import sampled
from kernelrl.envs.draws import drawn_from
from kernelrl.envs.interface import advance
from kernelrl.jit.stream import index_below, new_stream, seed_stream
from naive.sampled import tank_values, values_from_draws
from small_envs import Line


def hidden(name: str, steps: int | None = None, **options: Any) -> gym.Env:
    """The environment without its motion: nothing but its dynamics and spaces."""
    env = gym.make(name, **options)
    inside = env.unwrapped
    bare = krl.envs.CompiledEnv(inside.dynamics, observation_space=env.observation_space, action_space=env.action_space)
    return TimeLimit(bare, steps or env.spec.max_episode_steps)


@pytest.fixture
def quick(monkeypatch):
    """Fewer draws and episodes."""
    monkeypatch.setattr(sampled, "WORK", 3e7)
    monkeypatch.setattr(sampled, "PLAYED", 20_000)


def check_inside(found: Any, value: float, width: float) -> None:
    low, high = found.interval
    assert low <= value <= high and high - low < width
    assert low <= found.start_value <= high


# ---------------------------------------------------------------------------------------------------- the optimal value


@pytest.mark.parametrize(
    ("name", "options", "width"),
    [
        ("kernelrl/SquareWorld-v0", {}, 0.8),
        ("kernelrl/Oil-v0", {}, 1e-4),
        ("kernelrl/Oil-v0", {"form": "noise"}, 0.25),
        ("kernelrl/Oil-v0", {"form": "noise", "actions": 9}, 0.25),
        ("kernelrl/Ambulance-v0", {}, 0.1),
        ("kernelrl/Ambulance-v0", {"arrivals": "uniform", "alpha": 0.0}, 0.15),
        ("kernelrl/Ramp-v0", {}, 0.01),
        ("kernelrl/PuddleWorld-v0", {}, 3.0),
    ],
    ids=str,
)
def test_the_optimal_value_is_in_the_interval(quick, name, options, width):
    check_inside(krl.envs.solve(hidden(name, **options)), krl.envs.solve(gym.make(name, **options)).start_value, width)


def test_the_tank(quick, tank):
    found = krl.envs.solve(TimeLimit(tank.TankEnv(), 30))
    x, V = tank_values(0.2, 0.1, 0.02, tank.GOAL, 30)
    starts = np.linspace(0, 0.3, 301)
    check_inside(found, float(np.interp(starts, x, V).mean()), 0.2)
    assert abs(found.values(starts[:, None], 0) - np.interp(starts, x, V)).max() < 0.1
    assert len(found.starts) > 1000 and found.horizon == 30


def test_intervals_hold_as_often_as_they_say(monkeypatch):
    """With other random numbers; the interval is one of 95 %, and wider by the grid's error."""
    monkeypatch.setattr(sampled, "WORK", 4e5)
    monkeypatch.setattr(sampled, "PLAYED", 2000)
    value, held = krl.envs.solve(gym.make("kernelrl/Ambulance-v0", actions=5)).start_value, 0
    for seed in range(40):
        monkeypatch.setattr(sampled, "SEED", 10_000 * seed)
        low, high = krl.envs.solve(hidden("kernelrl/Ambulance-v0", actions=5)).interval
        held += low <= value <= high
    assert held >= 36  # 38 are expected at least


def test_the_policy_and_the_read_outs(quick):
    env, exact = hidden("kernelrl/Ambulance-v0"), krl.envs.solve(gym.make("kernelrl/Ambulance-v0"))
    found, x = krl.envs.solve(env), np.linspace(0.1, 0.9, 9)[:, None]
    assert found.action_net.shape == (*found.q_values(x, 2).shape[1:], 1)
    assert abs(found.values(x, 2) - exact.values(x, 2)).max() < 0.05
    assert abs(found.actions(x, 2) - exact.actions(x, 2)).max() < 0.2
    table = krl.envs.solve(hidden("kernelrl/Ambulance-v0", actions=5))
    assert table.action_net.tolist() == [[0], [1], [2], [3], [4]] and table.actions(x, 0).dtype == np.int64
    for states, step, message in ((x[0], 0, "^states must be"), (x, 5, "^step must be"), (x, -1, "^step must be")):
        with pytest.raises(ValueError, match=message):
            found.q_values(states, step)


# ---------------------------------------------------------------------------------------------------- the naive version


@pytest.mark.parametrize("name", ["kernelrl/SquareWorld-v0", "kernelrl/PuddleWorld-v0", "kernelrl/Oil-v0"])
def test_one_level_against_naive(name):
    """The same draws, so the same values, up to the order of sums."""
    options = {"form": "noise", "actions": 3} if "Oil" in name else {}
    drawn, H, n, count = drawn_from(hidden(name, **options)), 3, 4, 3
    level = sampled.solve_level(drawn, H, 0, n, count, 0, fixed=False)
    axes = [np.linspace(a, b, n + 1) for a, b in zip(drawn.low, drawn.high, strict=True)]
    actions, tables = drawn.actions(0).values, []
    for r in range(sampled.REPLICATES):
        seeds, stream, number = new_stream(sampled.SEED + 100 + r), new_stream(0), [0]

        def draw(x, a, q, seeds=seeds, stream=stream, number=number):
            if a == 0 and q == 0:  # all actions of a point begin with the same random numbers
                number[0] = index_below(seeds, 2**53)
            if q == 0:
                seed_stream(stream, number[0])
            y = np.zeros(x.size)
            reward, terminated, truncated = advance(drawn.dynamics, stream, x, a, y)
            return y, reward, not (terminated or truncated)

        tables.append(values_from_draws(draw, axes, actions, H, count))
    assert np.allclose(np.mean(tables, axis=0).reshape(H, -1), level.V, atol=1e-12)
    assert np.allclose(np.array(tables)[:, 0].reshape(len(tables), -1), level.first, atol=1e-12)


# ----------------------------------------------------------------------------------------------------- ends of episodes


class Lamp(NamedTuple):
    """Pays 1 per step and goes out with probability 1/2; `how` says by a termination (1) or a truncation (0)."""

    how: int


@krl.envs.reset.implement(Lamp)
def reset_lamp(env, seed, stream, state):
    state[0] = 0.5


@krl.envs.advance.implement(Lamp)
def advance_lamp(env, stream, state, action, next_state):
    next_state[0] = state[0]
    out = krl.random.uniform(stream) < 0.5
    return 1.0, out and env.how == 1, out and env.how == 0


class LampEnv(krl.envs.CompiledEnv):
    def __init__(self, how: int = 1) -> None:
        box = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
        super().__init__(Lamp(how), observation_space=box, action_space=gym.spaces.Discrete(2))


@pytest.mark.parametrize("how", [0, 1])
def test_nothing_is_collected_after_the_end(quick, how):
    check_inside(krl.envs.solve(TimeLimit(LampEnv(how), 10)), 2 - 2.0**-9, 0.4)


def test_states_outside_the_box():
    class Away(LampEnv):
        def step(self, action):
            return np.array([2.0]), 1.0, False, False, {}

    with pytest.raises(ValueError, match=r"^env: .* `state` is \[0.5\], what it observes \[2.\]"):
        krl.envs.solve(TimeLimit(Away(), 5))

    class Gone(NamedTuple):
        x: float

    krl.envs.reset.implement(Gone)(reset_lamp)

    @krl.envs.advance.implement(Gone)
    def leave(env, stream, state, action, next_state):
        next_state[0] = env.x
        return 0.0, False, False

    box = gym.spaces.Box(0.0, 1.0, (1,), np.float64)
    for x in (1.5, np.nan):
        bad = krl.envs.CompiledEnv(Gone(x), observation_space=box, action_space=gym.spaces.Discrete(2))
        with pytest.raises(ValueError, match=r"^env: from a state of its box, .*next state"):
            krl.envs.solve(TimeLimit(bad, 3))


# ----------------------------------------------------------------------------------------------- environments in Python


class Slow(LampEnv):
    """The same in Python."""

    def step(self, action):
        return super().step(action)


def test_an_environment_in_python_with_noise(monkeypatch):
    monkeypatch.setattr(sampled, "SLOW_WORK", 1e5)
    monkeypatch.setattr(sampled, "SLOW_STEPS", 6000)
    check_inside(krl.envs.solve(TimeLimit(Slow(), 3)), 1.75, 0.5)


def test_mountain_car(monkeypatch):
    """Gymnasium's own, without noise, with a goal; the best known mean returns are about -98."""
    monkeypatch.setattr(sampled, "SLOW_WORK", 1.5e4)
    monkeypatch.setattr(sampled, "SLOW_STEPS", 20_000)
    found = krl.envs.solve(gym.make("MountainCar-v0"))
    low, high = found.interval
    assert -115 < low < -98 < high + 5 < -80 and found.draws == 1


class Clumsy(Line):
    """Has a state that is not what it observes."""

    state = np.zeros(3)


class Closed(Line):
    """Has a state that cannot be set."""

    @property
    def state(self) -> np.ndarray:
        return self._observation()


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (Line(), "Line cannot be set to a state .* no attribute `state`.*krl.envs.CompiledEnv"),
        (Clumsy(), r"its `state` has shape \(3,\) after reset, what it observes \(1,\)"),
        (Closed(), "setting its `state` fails"),
        (gym.make("Pendulum-v1"), "cannot be set to a state"),
        (gym.make("CartPole-v1"), "a grid needs bounds for each coordinate"),
        (gym.make("FrozenLake-v1"), "need a Box of states .* krl.envs.solve_finite"),
        (gym.wrappers.TransformReward(gym.make("kernelrl/Ramp-v0"), abs), "the wrapper TransformReward may change"),
        (gym.wrappers.ClipAction(gym.make("MountainCarContinuous-v0")), "the actions must be Discrete, or a Box with"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_drawn_from(env, message):
    with pytest.raises(ValueError, match=f"^env: .*{message}"):
        krl.envs.solve(env if env.spec else TimeLimit(env, 5))


def test_no_time_limit():
    with pytest.raises(ValueError, match=r"^env: it has no time limit"):
        krl.envs.solve(LampEnv())


def test_too_much(monkeypatch):
    monkeypatch.setattr(sampled, "WORK", 1e3)
    with pytest.raises(ValueError, match=r"^env: .*is too much: a grid of 16 cells along each of 2 axes"):
        krl.envs.solve(hidden("kernelrl/SquareWorld-v0"))


# --------------------------------------------------------------------------------------------------- tolerance, command


def test_tolerance(monkeypatch):
    monkeypatch.setattr(sampled, "WORK", 1e6)
    found = krl.envs.solve(hidden("kernelrl/Ambulance-v0", actions=5), tolerance=0.05)
    low, high = found.interval
    assert high - low <= 0.1 and found.tolerance == 0.05
    with pytest.raises(RuntimeError, match=r"^tolerance: 1e-07 was not reached; .* is between 4\.\d+ and 4\.\d+"):
        krl.envs.solve(hidden("kernelrl/Ambulance-v0", actions=5), tolerance=1e-7)


def lamp() -> gym.Env:
    """For the command line."""
    return TimeLimit(LampEnv(), 10)


def test_the_command(quick, capsys):
    solve_command(f"{__name__}:lamp", None, json=True)
    answer = json.loads(capsys.readouterr().out)
    low, high = answer["interval"]
    assert low <= 2 - 2.0**-9 <= high and answer["starts"][0]["state"] == [0.5]
    assert {"played", "episodes", "draws", "sampling_error", "grid_error"} <= answer.keys()
    solve_command(f"{__name__}:lamp", None, json=False)
    out = " ".join(capsys.readouterr().out.split())
    assert f"between {low:.4f} and {high:.4f}" in out and "declares no motion" in out
