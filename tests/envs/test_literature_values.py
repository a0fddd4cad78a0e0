"""Optimal values of the literature's environments: known figures, closed forms, play, other ways to compute them."""

from __future__ import annotations

import json

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit
from scipy.special import ndtri

import kernelrl as krl
from ending_motions import motion as ending_motion
from ending_motions import puddle_world
from kernelrl.cli.solve import solve as solve_command
from kernelrl.envs import Ambulance, Oil, PBall2D, PuddleWorld, SquareWorld, optimal
from kernelrl.envs.interface import advance, reset
from kernelrl.envs.motion import Motion
from kernelrl.envs.outcomes import Outcomes, refine_outcomes
from kernelrl.reporting.maps import possible

pytestmark = pytest.mark.usefixtures("own_cache")


def collected(env, found, horizon, episodes, seed=0):
    """The returns of the optimal policy by the compiled dynamics."""
    dynamics, d = env.dynamics, env.observation_space.shape[0]
    streams, x, y = np.zeros((episodes, 4), np.uint64), np.zeros((episodes, d)), np.zeros(d)
    total, live = np.zeros(episodes), np.ones(episodes, bool)
    for k in range(episodes):
        reset(dynamics, seed + k, streams[k], x[k])
    for h in range(horizon):
        actions = found.actions(x, h)
        for k in np.flatnonzero(live):
            a = float(actions[k, 0]) if actions.ndim == 2 else int(actions[k])
            reward, over, _ = advance(dynamics, streams[k], x[k], a, y)
            total[k] += reward
            x[k], live[k] = y, not over
    return total


def agrees(total, value, slack):
    """Whether the mean of returns is that value, but for chance and `slack`."""
    return abs(total.mean() - value) < 4 * total.std() / np.sqrt(len(total)) + slack


@pytest.mark.parametrize(("horizon", "value"), [(15, 2.8842), (20, 7.1020), (30, 15.541)])
def test_square_world(horizon, value):
    env = gym.make("kernelrl/SquareWorld-v0", max_episode_steps=horizon)
    found = krl.envs.solve(env, 3e-3)
    assert found.start_value == pytest.approx(value, abs=2e-3)
    if horizon == 20:
        assert agrees(collected(env.unwrapped, found, 20, 2000), found.start_value, found.change)


def on_grid(env, horizon, cells):
    """The values on one grid of a motion with one room."""
    motion = env.motion()
    _, Z, R = optimal.solve_room(motion, 0, cells, horizon)
    arrivals = None if R is None else R[None]
    return optimal.OptimalValues(horizon, 0.0, 0.0, cells, 0.0, motion, Z[None], arrivals)


@pytest.mark.parametrize("level", [1, 2, 3, 4, 5])
def test_pball(level):
    """Extrapolated from two grids, since the error falls with the square of the cell width."""
    coarse, fine = (on_grid(PBall2D(level), 30, n).values([[0.0, 0.0]], 0)[0] for n in (192, 288))
    value = fine + (fine - coarse) * 4 / 5
    assert value == pytest.approx([19.107, 11.103, 10.114, 11.103, 10.114][level - 1], abs=2.5e-3)
    assert abs(fine - value) < abs(coarse - value)


def test_pball_against_play():
    """Level 3: 10.114, and not 10.149, as a coarser grid had it."""
    found = on_grid(PBall2D(3), 30, 192)
    rng, env, n = np.random.default_rng(0), PBall2D(3).motion(), 100_000
    x, total = np.zeros((n, 2)), np.zeros(n)
    for h in range(30):
        a = found.actions(x, h)
        total += env.reward(x, 0)
        x = env.project(moved(env, x, a) + 0.025 * rng.normal(size=x.shape))
    assert agrees(total, 10.114, 2e-3) and not agrees(total, 10.149, 2e-3)


def moved(motion, x, actions):
    """Where each state is moved by its own action."""
    return np.choose(actions[:, None], [motion.move(x, a) for a in range(len(motion.actions))])


def test_pball_at_its_rim():
    """Q near the rim, where projection matters, against sampled next states."""
    found, motion = on_grid(PBall2D(1), 4, 288), PBall2D(1).motion()
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 30)
    x = rng.uniform(0.97, 1.0, 30)[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    noise = 0.01 * rng.normal(size=(20_000, 2))
    for a in range(5):
        y = motion.project((motion.move(x, a)[:, None] + noise).reshape(-1, 2))
        expected = motion.reward(x, a) + found.values(y, 3).reshape(30, -1).mean(axis=1)
        np.testing.assert_allclose(found.q_values(x, 2)[:, a], expected, atol=1e-3)


def test_states_outside_the_disc_are_not_possible():
    states = np.array([[0.0, 0.0], [0.9, 0.9], [0.6, 0.8], [0.71, 0.71]])
    assert possible(PBall2D().motion(), states).tolist() == [True, False, True, False]


@pytest.mark.parametrize(
    ("form", "steepness", "value"),
    [
        ("laplace", 1, 4 + np.exp(-0.25) - 0.25), ("laplace", 10, 4.0), ("laplace", 50, 4.0),
        ("quadratic", 1, 4.75), ("quadratic", 10, 4.13125), ("quadratic", 50, 4.0),
        ("noise", 1, 3.1881), ("noise", 10, 2.0236), ("noise", 50, 1.9607),
    ],
)  # fmt: skip
def test_oil(form, steepness, value):
    env = gym.make("kernelrl/Oil-v0", form=form, steepness=steepness)
    found = krl.envs.solve(env)
    assert found.change <= found.tolerance == 1e-3
    assert found.start_value == pytest.approx(value, abs=1e-3)
    assert agrees(collected(env.unwrapped, found, 5, 500), value, 2e-3)


@pytest.mark.parametrize("alpha", [0, 0.25, 1])
@pytest.mark.parametrize(
    ("arrivals", "values"),
    [("beta", (4.35469, 4.36976, 5)), ("uniform", (3.75, 3.88657, 5)), ("shifting", (4.8375, 4.67292, 5))],
)
def test_ambulance(arrivals, values, alpha):
    env = gym.make("kernelrl/Ambulance-v0", arrivals=arrivals, alpha=alpha)
    found = krl.envs.solve(env)
    value = values[(0, 0.25, 1).index(alpha)]
    assert found.start_value == pytest.approx(value, abs=2e-4)
    assert agrees(collected(env.unwrapped, found, 5, 500), value, 1e-3)


@pytest.mark.parametrize("env", [Oil(form="noise", steepness=10, actions=6), Ambulance(arrivals="beta", actions=6)])
def test_few_actions(env):
    """Indices of actions, q_values with their columns, and less than with the continuum."""
    found = krl.envs.solve(TimeLimit(env, 5))
    assert found.action_net[:, 0] == pytest.approx(np.arange(6) / 5)
    x = np.random.default_rng(0).random((30, 1))
    Q = found.q_values(x, 2)
    assert Q.shape == (30, 6) and found.actions(x, 2).dtype == np.int64
    np.testing.assert_array_equal(found.values(x, 2), Q.max(axis=1))
    np.testing.assert_array_equal(found.actions(x, 2), Q.argmax(axis=1))
    assert agrees(collected(env, found, 5, 2000), found.start_value, 2e-3)
    kind = {"form": "noise", "steepness": 10} if isinstance(env, Oil) else {"arrivals": "beta"}
    assert found.start_value < krl.envs.solve(TimeLimit(type(env)(**kind), 5)).start_value


def test_a_continuum_of_actions():
    found = krl.envs.solve(gym.make("kernelrl/Oil-v0", steepness=10))
    assert found.actions([[0.5], [0.7]], 0) == pytest.approx(np.full((2, 1), 0.75), abs=1e-3)
    x = np.array([[0.2], [0.74]])
    assert (found.values(x, 1) >= found.q_values(x, 1).max(axis=1)).all()
    assert found.q_values(x, 1).shape == (2, len(found.action_net))
    for states, step, message in (([0.5], 0, "states"), ([[np.nan]], 0, "states"), ([[0.5]], 5, "step")):
        with pytest.raises(ValueError, match=f"^{message} must be"):
            found.values(states, step)


def test_kept_on_disk(tmp_path):
    env = gym.make("kernelrl/Ambulance-v0", arrivals="uniform")
    first = krl.envs.solve(env)
    optimal.SOLVED.clear()
    again = krl.envs.solve(env)
    assert again is not first and again.start_value == first.start_value and again.change == first.change
    np.testing.assert_array_equal(again.table, first.table)


@pytest.mark.parametrize(("noise", "corner", "mean"), [("shared", -33.58, -20.46), ("independent", -33.54, -20.44)])
def test_puddle_world(noise, corner, mean):
    """From (0.2, 0.5), from (0.1, 0.1), on average, and against play."""
    env = PuddleWorld(noise=noise)
    found = on_grid(env, 50, 128)
    assert found.values([[0.2, 0.5], [0.1, 0.1]], 0) == pytest.approx([-32.92, corner], abs=0.02)
    assert found.values(env.motion().starts, 0).mean() == pytest.approx(mean, abs=0.02)
    total = collected(env, found, 50, 1000)
    assert agrees(total, found.values(start_states(env, 1000), 0).mean(), 0.1)


def start_states(env, n):
    """The starts of episodes with seeds 0 … n-1."""
    x, stream = np.zeros((n, 2)), np.zeros(4, np.uint64)
    for k in range(n):
        reset(env.dynamics, k, stream, x[k])
    return x


def test_pball_with_nothing_given():
    found = krl.envs.solve(gym.make("kernelrl/PBall2D-v0", level=3))
    assert found.change <= found.tolerance == 0.01
    assert found.start_value == pytest.approx(10.114, abs=2e-3)


def test_tolerances_that_fit():
    """`solve` without a tolerance works for all: rewards of PuddleWorld are 40 times as large."""
    assert PuddleWorld().motion().tolerance == 0.15 and PuddleWorld(noise="independent").motion().tolerance == 0.04
    assert PBall2D().motion().tolerance == 0.01 and SquareWorld().motion().tolerance == 1e-3
    assert Oil().motion().tolerance == Ambulance().motion().tolerance == 1e-3


# ------------------------------------------------------------------------------------------------ descriptions alone


def test_shared_noise_like_sampling():
    """In the corner, where episodes end, at walls and elsewhere: E[V(y)] and E[V(y); y ended] by many draws."""
    low, σ = np.zeros((1, 2)), 0.04
    motion = Motion(
        low=low, high=low + 1, noise=np.array([σ, σ]), actions=("0",), room=lambda x: np.zeros(len(x), np.int64),
        move=lambda x, a: x, reward=lambda x, a: np.sin(3 * x[:, 0]) + x[:, 1] ** 2, starts=low + 0.5,
        ends=lambda y: y[:, 0] + y[:, 1] > 1.7, reward_after=lambda y, a: np.cos(4 * y[:, 1]),
        reward_at_end=lambda y, a: 2 + y[:, 0], shared_noise=True,
    )  # fmt: skip
    _, Z, R = optimal.solve_room(motion, 0, 128, 2)
    found = optimal.OptimalValues(2, 0.0, 0.0, 128, 0.0, motion, Z[None], R[None])
    t = σ * ndtri((np.arange(20_000) + 0.5) / 20_000)
    for x in np.array([[0.84, 0.84], [0.78, 0.9], [0.02, 0.5], [0.5, 0.99], [0.5, 0.5]]):
        y = np.clip(x + t[:, None], 0, 1)
        over = motion.ends(y)
        onwards = np.where(over, 2 + y[:, 0], np.cos(4 * y[:, 1]))
        last = np.where(over, 0.0, found.values(y, 1))
        here = motion.reward(x[None], 0)
        assert found.q_values(x[None], 1)[0, 0] == pytest.approx(here[0] + onwards.mean(), abs=2e-3)
        assert found.q_values(x[None], 0)[0, 0] == pytest.approx(here[0] + (onwards + last).mean(), abs=4e-3)


def test_shared_noise_with_no_end():
    motion = Motion(
        low=np.zeros((1, 1)), high=np.ones((1, 1)), noise=np.array([0.1]), actions=("0", "1"),
        room=lambda x: np.zeros(len(x), np.int64), move=lambda x, a: x + 0.2 * (2 * a - 1),
        reward=lambda x, a: np.sin(3 * x[:, 0]), starts=np.array([[0.5]]), shared_noise=True,
    )  # fmt: skip
    x = np.linspace(0, 1, 20)[:, None]
    same = optimal.refine(optimal.replace(motion, shared_noise=False), 4, 1e-3)
    np.testing.assert_allclose(optimal.refine(motion, 4, 1e-3).q_values(x, 0), same.q_values(x, 0), atol=2e-3)


def test_projection_onto_the_room_is_clipping():
    motion = SquareWorld(noise=0.05).motion()
    x = np.random.default_rng(0).random((50, 2))
    clipped = optimal.replace(motion, project=lambda y: np.clip(y, 0, 1))
    np.testing.assert_allclose(
        optimal.refine(clipped, 4, 3e-3).q_values(x, 0), optimal.refine(motion, 4, 3e-3).q_values(x, 0), atol=3e-3
    )


def test_projections_that_cannot_be_solved():
    problem = optimal.replace(ending_motion(**puddle_world()), project=lambda y: y)
    with pytest.raises(ValueError, match="`project` is for one room, without `ends`"):
        optimal.refine(problem, 3, 0.1)


def test_outcomes_like_motion():
    """A walk in two dimensions in which episodes may end, described both ways; a part of the weight is missing."""

    def next_states(x, a, h, count):
        y = np.clip(x + np.array([0.1, 0.0]) * (2 * a - 1)[:, None], 0, 1)
        return y[:, None, :], np.full((len(x), 1), 0.9)

    walk = Outcomes(
        low=np.zeros((1, 2)), high=np.ones((1, 2)), starts=np.full((1, 2), 0.5), next_states=next_states,
        reward=lambda x, a, h: x[:, 0] + h * x[:, 1], action_values=np.array([0.0, 1.0]),
    )  # fmt: skip
    found = refine_outcomes(walk, 3, 1e-3)
    value = 0.5 + 0.9 * (0.6 + 0.5) + 0.81 * (0.7 + 1.0)
    assert found.start_value == pytest.approx(value, abs=1e-6)
    assert found.actions([[0.5, 0.5]], 0) == [1] and walk.actions == ("0", "1")


def test_outcomes_out_of_reach(monkeypatch):
    monkeypatch.setattr("kernelrl.envs.outcomes.MOST_WORK", 10_000)
    with pytest.raises(RuntimeError, match=r"^tolerance: 1e-12 was not reached; with 64 cells"):
        refine_outcomes(Oil(form="noise").motion(), 3, 1e-12)


def test_the_command(capsys, monkeypatch):
    solve_command("kernelrl/Oil-v0", None, json=True)
    answer = json.loads(capsys.readouterr().out)
    assert answer["start_value"] == pytest.approx(4.5288, abs=1e-3) and answer["tolerance"] == 1e-3
    assert answer["starts"] == [{"state": [0.5], "value": answer["start_value"]}]
    monkeypatch.setattr("kernelrl.cli.solve.optimal_values", lambda env, tolerance: on_grid(PuddleWorld(), 1, 128))
    solve_command("kernelrl/PuddleWorld-v0", None, json=False)  # thousands of starts: only their mean
    assert len(capsys.readouterr().out.splitlines()) < 15
